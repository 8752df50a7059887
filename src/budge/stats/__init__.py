"""Pure functions of counts: what can be claimed about responsiveness, and with what error.

========================  =====================================================================================
any law                   `claim`: `Counts` to `Claims`, for listed, drawn, stopped and weighted rows, means of them, erring judges
one rate                  `interval`, `upper_bound`, `lower_bound`, `p_value`, `test`
looking more than once    `anytime_p_value`, `anytime_bound`, `anytime_interval`; rules: `sprt_rule`, `anytime_rule`, `curtailed_rule`
weighted draws            `weighted`, `effective_sample_size`
how much                  `how_much`, `quantile_interval`, `bounded_mean`
many tests                `adjust`, `flag`, `certify`, `share`, `share_from_p_values`, `true_claims`
averages over rows        `average`, `pooled_bounds`
differences               `difference`, `paired_difference`, `difference_bounds`, `paired_difference_bounds`
========================  =====================================================================================

Planning (how many draws) is in `budge.plan`.
"""

from budge.stats.averages import Average, average
from budge.stats.binomial import Interval, TestResult, interval, lower_bound, p_value, test, upper_bound
from budge.stats.claims import Claims, claim
from budge.stats.counts import Counts
from budge.stats.differences import Difference, difference, difference_bounds, paired_difference, paired_difference_bounds
from budge.stats.evidence import anytime_bound, anytime_interval, anytime_p_value
from budge.stats.means import pooled_bounds
from budge.stats.multiplicity import FamilyVerdict, adjust, certify, flag
from budge.stats.quantiles import HowMuch, bounded_mean, how_much, quantile_interval
from budge.stats.sequential import Performance, StoppingRule, anytime_rule, curtailed_rule, sprt_rule
from budge.stats.shares import Share, share, share_from_p_values, true_claims
from budge.stats.weights import effective_sample_size, weighted

__all__ = [
    "Average",
    "Claims",
    "Counts",
    "Difference",
    "FamilyVerdict",
    "HowMuch",
    "Interval",
    "Performance",
    "Share",
    "StoppingRule",
    "TestResult",
    "adjust",
    "anytime_bound",
    "anytime_interval",
    "anytime_p_value",
    "anytime_rule",
    "average",
    "bounded_mean",
    "certify",
    "claim",
    "curtailed_rule",
    "difference",
    "difference_bounds",
    "effective_sample_size",
    "flag",
    "how_much",
    "interval",
    "lower_bound",
    "p_value",
    "paired_difference",
    "paired_difference_bounds",
    "pooled_bounds",
    "quantile_interval",
    "share",
    "share_from_p_values",
    "sprt_rule",
    "test",
    "true_claims",
    "upper_bound",
    "weighted",
]
