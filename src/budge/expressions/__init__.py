"""The safe expression language: a subset of Python, parsed once, evaluated vectorised, that knows its names and its linear form.

Examples
--------
>>> from budge.expressions import parse
>>> rule = parse("income >= 12 * rent and housing == 'own'")
>>> env = {("value", "income"): [9000, 5000], ("value", "rent"): 500, ("value", "housing"): 1}
>>> rule.evaluate(env, levels={"housing": ["rent", "own"]}).tolist()
[True, False]
"""

from .check import unknown_name
from .evaluate import Env
from .expression import Expression, parse
from .formulas import All, Formula, OneOf, Row, Some, Total, Truth, all_of, formula_vars, holds, negate, some_of, substitute
from .levels import Levels
from .linear import Linear
from .nodes import LAYERS, Var, quote
from .tolerance import TOLERANCE, close, compare, equal, greater, greater_equal, less, less_equal, not_equal
from .whole import common_denominator, fraction

__all__ = [
    "LAYERS",
    "TOLERANCE",
    "All",
    "Env",
    "Expression",
    "Formula",
    "Levels",
    "Linear",
    "OneOf",
    "Row",
    "Some",
    "Total",
    "Truth",
    "Var",
    "all_of",
    "close",
    "common_denominator",
    "compare",
    "equal",
    "formula_vars",
    "fraction",
    "greater",
    "greater_equal",
    "holds",
    "less",
    "less_equal",
    "negate",
    "not_equal",
    "parse",
    "quote",
    "some_of",
    "substitute",
    "unknown_name",
]
