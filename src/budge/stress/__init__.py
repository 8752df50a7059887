"""Stress tests: does the verdict survive other assumptions, and which constraint is to blame?

=====================  ===============================================================================================
`sensitivity`          a family of interaction models: `grid`, `toggles` or any mapping of names
`ablate`               each constraint relaxed in turn: `default_relaxations`, or `drop`, `free`, `lift` and `Relaxation`
`minimal_relaxations`  why a person is stuck: the smallest sets that let them out, and what blocks all of these
`select`               the most accurate model whose gaming is certified; `convex` shows what a relaxation under-reports
=====================  ===============================================================================================
"""

from budge.stress.ablating import ablate
from budge.stress.ablation_result import Ablation
from budge.stress.families import Family, grid, toggles
from budge.stress.minimal import MinimalRelaxations, minimal_relaxations
from budge.stress.relaxations import Relaxation, convex, default_relaxations, drop, free, lift
from budge.stress.selecting import Selection, select
from budge.stress.sensing import Sensitivity, sensitivity

__all__ = [
    "Ablation",
    "Family",
    "MinimalRelaxations",
    "Relaxation",
    "Selection",
    "Sensitivity",
    "ablate",
    "convex",
    "default_relaxations",
    "drop",
    "free",
    "grid",
    "lift",
    "minimal_relaxations",
    "select",
    "sensitivity",
    "toggles",
]
