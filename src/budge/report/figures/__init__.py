"""Figures of every result: each function gives a `Figure`, which is SVG by itself and matplotlib on request.

>>> from budge import plan
>>> from budge.report.figures import power_curve
>>> str(power_curve(plan.power_curve(threshold=0.4, rate=0.227)))[:4]
'<svg'
"""

from budge.report.figures.cdf import cdf
from budge.report.figures.choosing import audit_figure, chosen
from budge.report.figures.colours import figure_style
from budge.report.figures.drawing import Figure, Panels
from budge.report.figures.partition import partition
from budge.report.figures.person import person
from budge.report.figures.planning import how_much, power_curve
from budge.report.figures.stress import gains, pareto, tornado
from budge.report.figures.verdicts import verdicts

__all__ = [
    "Figure",
    "Panels",
    "audit_figure",
    "cdf",
    "chosen",
    "figure_style",
    "gains",
    "how_much",
    "pareto",
    "partition",
    "person",
    "power_curve",
    "tornado",
    "verdicts",
]
