"""How many draws, before anything is drawn: the public face of planning.

>>> from budge import plan
>>> plan.min_samples(threshold=0.1, alpha=0.05)
29
"""

from budge.stats.planning import (
    Margin,
    PowerCurve,
    PowerPlan,
    check_n,
    detectable_margin,
    min_samples,
    power_curve,
    provable_threshold,
    samples_for_power,
    samples_for_width,
)
from budge.stats.power import critical_hits, power
from budge.stats.sequential import Calls, StoppingRule, anytime_rule, curtailed_rule, expected_calls, sprt_rule

__all__ = [
    "Calls",
    "Margin",
    "PowerCurve",
    "PowerPlan",
    "StoppingRule",
    "anytime_rule",
    "check_n",
    "critical_hits",
    "curtailed_rule",
    "detectable_margin",
    "expected_calls",
    "min_samples",
    "power",
    "power_curve",
    "provable_threshold",
    "samples_for_power",
    "samples_for_width",
    "sprt_rule",
]
