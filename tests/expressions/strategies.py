"""Random texts of the language, in and out of brackets, and random environments for them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from budge.errors import ExpressionError
from budge.expressions import Expression, parse

Var = tuple[str, str]
ROWS = 6
NUMBERS = ["0", "1", "2", "3", "0.5", "-1", "-2", "1.25", "1000", "1e-3"]
NAMES = ["x", "y", "z", "before.x", "action.y"]
VARS: list[Var] = [
    ("value", "x"),
    ("value", "y"),
    ("value", "z"),
    ("before", "x"),
    ("action", "y"),
    ("value", "kind"),
    ("before", "kind"),
]
COMPARISONS = ["<", "<=", "==", "!=", ">=", ">"]
VALUES = [-3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 1000.0]


def bracketed(text: str, wanted: bool) -> str:
    return f"({text})" if wanted else text


@st.composite
def numbers(draw: st.DrawFn, depth: int = 3, linear: bool = False) -> str:
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(NUMBERS + NAMES * 3))
    sub = numbers(depth - 1, linear)
    kinds = ["sum", "sum", "product", "minus", "function", "where", "truth"]
    kind = draw(st.sampled_from(kinds if linear else [*kinds, "power", "divide", "smooth"]))
    loose = draw(st.booleans())
    if kind == "sum":
        return bracketed(f"{draw(sub)} {draw(st.sampled_from('+-'))} {draw(sub)}", loose)
    if kind == "product":
        left = draw(sub) if not linear else draw(st.sampled_from(NUMBERS))
        return bracketed(f"{left} * {bracketed(draw(sub), draw(st.booleans()))}", loose)
    if kind == "divide":
        return bracketed(f"{draw(sub)} {draw(st.sampled_from(['/', '//', '%']))} {draw(sub)}", loose)
    if kind == "minus":
        return bracketed(f"-{draw(sub)}", loose)
    if kind == "power":
        return bracketed(f"{draw(sub)} ** {draw(st.sampled_from(['2', '3', '-1', '0.5', 'z']))}", loose)
    if kind == "where":
        return f"where({draw(truths(depth - 1, linear))}, {draw(sub)}, {draw(sub)})"
    if kind == "truth":
        return f"({draw(truths(depth - 1, linear))})"
    if kind == "smooth":
        return f"{draw(st.sampled_from(['exp', 'log', 'sqrt']))}({draw(sub)})"
    name = draw(st.sampled_from(["abs", "min", "max", "clip"] if linear else ["abs", "min", "max", "clip", "round", "round2"]))
    if name in ("abs", "round"):
        return f"{name}({draw(sub)})"
    if name == "round2":
        return f"round({draw(sub)}, {draw(st.sampled_from(['1', '-1', '0']))})"
    if name == "clip":
        return f"clip({draw(sub)}, -1, {draw(sub)})"
    return f"{name}({', '.join(draw(st.lists(sub, min_size=2, max_size=3)))})"


@st.composite
def truths(draw: st.DrawFn, depth: int = 3, linear: bool = False) -> str:
    kind = draw(
        st.sampled_from(["compare", "compare", "chain", "in", "level", "levels", "constant", "and", "or", "not", "number"])
    )
    loose = draw(st.booleans())
    if depth == 0 and kind in ("and", "or", "not", "chain"):
        kind = "compare"
    number = numbers(max(depth - 1, 0), linear)
    relation = st.sampled_from(COMPARISONS)
    if kind == "compare":
        return bracketed(f"{draw(number)} {draw(relation)} {draw(number)}", loose)
    if kind == "chain":
        return bracketed(f"{draw(number)} {draw(relation)} {draw(number)} {draw(relation)} {draw(number)}", loose)
    if kind == "in":
        values = ", ".join(draw(st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3)))
        return bracketed(f"{draw(number)} {draw(st.sampled_from(['in', 'not in']))} [{values}]", loose)
    name = draw(st.sampled_from(["kind", "before.kind"]))
    if kind == "level":
        return bracketed(f"{name} {draw(relation)} '{draw(st.sampled_from('abc'))}'", loose)
    if kind == "levels":
        return bracketed(f"{name} {draw(st.sampled_from(['in', 'not in']))} ('a', '{draw(st.sampled_from('bc'))}')", loose)
    if kind == "constant":
        return draw(st.sampled_from(["True", "False"]))
    if kind == "number":
        return bracketed(f"not {draw(number)}", True)
    sub = truths(depth - 1, linear)
    if kind == "not":
        return bracketed(f"not {draw(sub)}", loose)
    return bracketed(f" {kind} ".join(draw(st.lists(sub, min_size=2, max_size=3))), loose)


def parsed(texts: st.SearchStrategy[str]) -> st.SearchStrategy[Expression]:
    """The expressions of the texts; those with impossible constants (1 / 0) are left out."""
    return texts.map(_parse).filter(lambda e: e is not None)  # type: ignore[arg-type, return-value]


def _parse(text: str) -> Expression | None:
    try:
        return parse(text)
    except ExpressionError as error:
        if any(word in str(error) for word in ("finite number", "above the upper", "beyond 100")):
            return None
        raise


@st.composite
def environments(draw: st.DrawFn, missing: bool = True, infinite: bool = False) -> dict[Var, np.ndarray]:
    pool = VALUES + [float("nan")] * missing + [float("inf")] * infinite
    env: dict[Var, np.ndarray] = {}
    for layer, name in VARS:
        choices = [0.0, 1.0, 2.0] + [float("nan")] * missing if name == "kind" else pool
        env[layer, name] = np.array(draw(st.lists(st.sampled_from(choices), min_size=ROWS, max_size=ROWS)))
    return env
