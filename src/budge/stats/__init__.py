"""Pure functions of counts: what can be claimed about responsiveness, and with what error.

========================  =====================================================================================
one rate                  `interval`, `upper_bound`, `lower_bound`, `p_value`, `test`, `falsification`
looking more than once    `anytime_p_value`, `anytime_bound`, `anytime_interval`, `anytime_test`; rules that stop: `sprt_rule`,
                          `anytime_rule`, `curtailed_rule`
many tests                `adjust`, `flag`, `certify`, `share`, `group_intervals`, `compare_groups`
averages over rows        `average`
weighted draws            `weighted`, `effective_sample_size`, `importance_weights`, `weight_bound`
how much                  `how_much`, `quantile_interval`, `bounded_mean`
differences               `difference`, `paired_difference`, `relaxation`
missing answers           `unresolved_interval`, `unresolved_test`
========================  =====================================================================================

Planning (how many draws) is in `budge.plan`.
"""

from budge.stats.anytime import AnytimeTest, anytime_bound, anytime_interval, anytime_p_value, anytime_test
from budge.stats.averages import Average, average
from budge.stats.binomial import Interval, TestResult, interval, lower_bound, p_value, test, upper_bound
from budge.stats.bounded import bounded_mean
from budge.stats.differences import Ablation, Difference, difference, paired_difference, relaxation
from budge.stats.falsify import Falsification, falsification
from budge.stats.groups import GroupReport, compare_groups, group_intervals
from budge.stats.multiplicity import FamilyVerdict, adjust, certify, flag
from budge.stats.quantiles import HowMuch, how_much, quantile_interval
from budge.stats.sequential import Performance, SequentialResult, StoppingRule, anytime_rule, curtailed_rule, sprt_rule
from budge.stats.shares import Share, share, share_from_p_values
from budge.stats.unresolved import unresolved_interval, unresolved_test
from budge.stats.weights import Weighted, effective_sample_size, importance_weights, weight_bound, weighted

__all__ = [
    "Ablation",
    "AnytimeTest",
    "Average",
    "Difference",
    "Falsification",
    "FamilyVerdict",
    "GroupReport",
    "HowMuch",
    "Interval",
    "Performance",
    "SequentialResult",
    "Share",
    "StoppingRule",
    "TestResult",
    "Weighted",
    "adjust",
    "anytime_bound",
    "anytime_interval",
    "anytime_p_value",
    "anytime_rule",
    "anytime_test",
    "average",
    "bounded_mean",
    "certify",
    "compare_groups",
    "curtailed_rule",
    "difference",
    "effective_sample_size",
    "falsification",
    "flag",
    "group_intervals",
    "how_much",
    "importance_weights",
    "interval",
    "lower_bound",
    "p_value",
    "paired_difference",
    "quantile_interval",
    "relaxation",
    "share",
    "share_from_p_values",
    "sprt_rule",
    "test",
    "unresolved_interval",
    "unresolved_test",
    "upper_bound",
    "weight_bound",
    "weighted",
]
