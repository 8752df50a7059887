"""How many draws, before anything is drawn: the public face of planning.

>>> from budge import plan
>>> plan.min_samples(threshold=0.1, alpha=0.05)
29
"""

from budge.stats.calls import Calls, expected_calls
from budge.stats.curves import PowerCurve, power_curve
from budge.stats.margins import Margin, detectable_margin, provable_threshold
from budge.stats.planning import PowerPlan, check_n, min_samples, samples_for_power, samples_for_width
from budge.stats.power import critical_hits, power
from budge.stats.sequential import StoppingRule, anytime_rule, curtailed_rule, sprt_rule

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
