"""The conformance suite: does a constraint keep what the others rely on?

>>> from budge.constraints import OneHot
>>> from budge.testing import check_constraint
>>> check_constraint(OneHot)
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage, Example
from budge.errors import SpecError
from budge.expressions import Var, equal, holds
from budge.features import Feature
from budge.parts import Part, partition
from budge.program.milp import PartProgram
from budge.testing.candidates import random_candidates, random_start

__all__ = ["check_constraint"]

FloatArray = npt.NDArray[np.float64]
Columns = Mapping[str, FloatArray]


def check_constraint(
    constraint: type[Constraint] | Constraint,
    examples: Iterable[Example] | None = None,
    *,
    starts: int = 3,
    candidates: int = 40,
    seed: int = 0,
) -> None:
    """Raise an AssertionError that says which promise a constraint breaks; return nothing if it keeps all.

    Parameters
    ----------
    constraint
        The class, or one value of it.
    examples
        Cases to use besides those of the class's own `examples`.
    starts, candidates
        How many random starts for each example, and how many random changes from each.
    seed
        Of the random starts and changes.

    Notes
    -----
    Checked are: examples hold or are violated as stated, and at least one of each is there; `problems` finds none in
    them; `mask` is vectorised, broadcasts, writes into nothing and depends only on what `scope` and `reads` name; the
    mask equals the rows, the listed configurations and the solver on random changes; `describe` is one sentence; the
    spec round trip gives an equal constraint; values are frozen.
    """
    kind = constraint if isinstance(constraint, type) else type(constraint)
    _need(issubclass(kind, Constraint), f"{kind.__name__} is not a subclass of budge.constraints.Constraint")
    _need(isinstance(kind.kind, str) and kind.kind, f"{kind.__name__} has no kind")
    given = tuple(examples or ())
    cases = (*given, *kind.examples()) if isinstance(constraint, type) else given or kind.examples()
    _need(cases, f"{kind.kind}: no examples")
    truths = {bool(case.holds) for case in cases}
    _need(truths == {True, False}, f"{kind.kind}: examples must show a case that holds and one that is violated")
    if not isinstance(constraint, type) and constraint.declared:
        stay = dict.fromkeys(constraint.scope, 0.0)
        features = tuple(constraint.declared[name] for name in constraint.scope)
        _check_value(constraint, features, [stay], starts, candidates, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    for i, case in enumerate(cases):
        place = f"{kind.kind}, example {i} ({case.constraint.label})"
        _check_example(case, place)
        features = tuple(f for f in case.features if f.name in case.constraint.scope)
        _check_value(case.constraint, features, [case.x], starts, candidates, rng, place)


def _need(kept: object, message: str) -> None:
    """Like assert, but not stripped by ``python -O``."""
    if not kept:
        raise AssertionError(message)


def _check_example(case: Example, place: str) -> None:
    by_name = {f.name: f for f in case.features}
    errors = [p for p in case.constraint.problems(by_name) if p.severity == "error"]
    _need(not errors, f"{place}: problems() finds: {'; '.join(map(str, errors))}")
    missing = [name for name in case.constraint.scope if name not in case.x]
    _need(not missing, f"{place}: x has no value for {missing}")
    x, action = _columns(case.x), _columns(case.action)
    change = action if case.change is None else _columns(case.change)
    found = bool(case.constraint.bind(by_name).mask(x, action, change))
    at = f"x={dict(case.x)}, action={dict(case.action)}"
    _need(found == case.holds, f"{place}: should {'hold' if case.holds else 'be violated'}, mask says {found} at {at}")


def _check_value(
    constraint: Constraint,
    features: Sequence[Feature],
    given: Sequence[Mapping[str, float]],
    starts: int,
    candidates: int,
    rng: np.random.Generator,
    place: str | None = None,
) -> None:
    place = place or constraint.label
    bound = constraint.bind({f.name: f for f in features})
    _check_shape(bound, place)
    _check_spec(bound, features, place)
    parts = partition(tuple(features), (bound,), (), ())
    part = next(p for p in parts if p.constraints or p.links)
    for x in [*given, *({f.name: random_start(f, rng) for f in features} for _ in range(starts))]:
        start = {f.name: float(x.get(f.name, 0.0)) for f in features}
        action, change = random_candidates(part, start, candidates, rng)
        mask = _check_vectorised(bound, _columns(start), action, change, place)
        _check_reads(bound, part, _columns(start), action, change, mask, rng, place)
        _check_forms(bound, start, action, change, mask, place)
        _check_solver(part, start, change, place)


def _columns(values: Mapping[str, float]) -> dict[str, FloatArray]:
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


def _check_shape(c: Constraint, place: str) -> None:
    _need(is_dataclass(c), f"{place}: must be a dataclass")
    _need(type(c).__dataclass_params__.frozen, f"{place}: must be a frozen dataclass")  # type: ignore[attr-defined]
    _need(isinstance(c.scope, tuple) and c.scope, f"{place}: scope must be a tuple of names, got {c.scope!r}")
    _need(len(set(c.scope)) == len(c.scope), f"{place}: scope names a feature twice: {c.scope}")
    layers = {layer for layer, _ in c.reads}
    _need(layers <= {"value", "action"}, f"{place}: reads may hold the layers value and action, got {sorted(layers)}")
    strange = sorted({name for _, name in c.reads} - set(c.scope))
    _need(not strange, f"{place}: reads {strange}, which scope does not name")
    text = c.describe()
    _need(
        isinstance(text, str) and text.strip() == text and text.endswith(".") and "\n" not in text,
        f"{place}: describe() is not one sentence: {text!r}",
    )
    _need(isinstance(c.label, str) and c.label, f"{place}: has no label")


def _check_spec(c: Constraint, features: Sequence[Feature], place: str) -> None:
    from budge.spec import model_from

    try:
        spec = c.to_spec()
    except SpecError:
        return  # it is Python code, and says so
    json.dumps(spec)
    model = {"budge": 1, "features": {f.name: f.to_spec() for f in features}, "constraints": [json.loads(json.dumps(spec))]}
    (again,) = model_from(model).constraints
    _need(again == c and again.to_spec() == spec, f"{place}: the spec round trip gives {again!r}, not {c!r}")


def _check_vectorised(c: Constraint, x: Columns, action: Columns, change: Columns, place: str) -> npt.NDArray[np.bool_]:
    n = len(next(iter(change.values())))
    before = {
        k: v.copy() for k, v in {**{("a", k): v for k, v in action.items()}, **{("c", k): v for k, v in change.items()}}.items()
    }
    for column in (*x.values(), *action.values(), *change.values()):
        column.flags.writeable = False
    mask = np.asarray(c.mask(x, action, change))
    _need(mask.dtype == bool, f"{place}: mask must return truth values, got {mask.dtype}")
    _need(mask.shape == (n,), f"{place}: mask of {n} candidates has shape {mask.shape}")
    unchanged = all(np.array_equal(({"a": action, "c": change}[k[0]])[k[1]], v) for k, v in before.items())
    _need(unchanged, f"{place}: mask writes into its inputs")
    single = np.array([bool(c.mask(x, _row(action, i), _row(change, i))) for i in range(min(n, 12))])
    _need(np.array_equal(single, mask[: len(single)]), f"{place}: mask of one candidate differs from the same in an array")
    people = {k: np.repeat(v[None], 2)[:, None] for k, v in x.items()}  # two people, one row of candidates
    both = np.asarray(c.mask(people, {k: v[None] for k, v in action.items()}, {k: v[None] for k, v in change.items()}))
    try:
        both = np.broadcast_to(both, (2, n))
    except ValueError:
        raise AssertionError(f"{place}: mask does not broadcast 2 people against {n} candidates: shape {both.shape}") from None
    _need(
        np.array_equal(both[0], mask) and np.array_equal(both[1], mask),
        f"{place}: mask changes when people and candidates broadcast",
    )
    return mask


def _row(columns: Columns, i: int) -> dict[str, FloatArray]:
    return {k: np.asarray(v[i]) for k, v in columns.items()}


def _check_reads(
    c: Constraint,
    part: Part,
    x: Columns,
    action: Columns,
    change: Columns,
    mask: npt.NDArray[np.bool_],
    rng: np.random.Generator,
    place: str,
) -> None:
    if isinstance(c, DirectionalLinkage):  # reads what it links as well: the part sees to that
        return
    for name in c.scope:
        other = rng.permutation(action[name]) + 1.0
        if ("action", name) not in c.reads:
            moved = np.asarray(c.mask(x, {**action, name: other}, change))
            _need(np.array_equal(moved, mask), f"{place}: depends on the own action of {name}, which reads does not say")
        if ("value", name) not in c.reads:
            moved = np.asarray(c.mask(x, action, {**change, name: other}))
            _need(np.array_equal(moved, mask), f"{place}: depends on the value of {name}, which reads does not say")


def _check_forms(
    c: Constraint, x: Mapping[str, float], action: Columns, change: Columns, mask: npt.NDArray[np.bool_], place: str
) -> None:
    domain = _in_domain(c, x, action, change)
    mask, action, change = mask[domain], _take(action, domain), _take(change, domain)
    formula = c.rows(x)
    if formula is not None:
        env: dict[Var, FloatArray | float] = {}
        for name, start in x.items():
            env["before", name], env["action", name], env["change", name] = start, action[name], change[name]
            env["value", name] = start + change[name]
        _same(mask, np.broadcast_to(holds(formula, env), mask.shape), "its rows", x, action, change, place)
    listed = c.configurations(x)
    if listed is not None:
        shape = listed.values.shape
        _need(len(shape) == 2 and shape[1] == len(listed.names), f"{place}: configurations have shape {shape}")
        _need(len(np.unique(listed.values, axis=0)) == len(listed.values), f"{place}: a configuration is listed twice")
        if set(listed.names) == set(c.scope):
            reached = np.stack([x[name] + change[name] for name in listed.names], axis=-1)
            fits = np.asarray(equal(reached[:, None, :], listed.values[None]))
            _same(mask, np.asarray(fits.all(axis=-1).any(axis=-1)), "its configurations", x, action, change, place)


def _in_domain(c: Constraint, x: Mapping[str, float], action: Columns, change: Columns) -> npt.NDArray[np.bool_]:
    """Values that the types allow, by actions that the limits allow: of a dummy at 2 a mask may say anything."""
    good = np.ones(len(next(iter(change.values()))), dtype=bool)
    for name in c.scope:
        feature = c.declared.get(name)
        if feature is None:
            continue
        least, most = feature.moves(x[name])
        good &= (action[name] >= least) & (action[name] <= most)
        if feature.type in ("binary", "category"):
            low, high = (0.0, 1.0) if feature.type == "binary" else feature.range
            reached = x[name] + change[name]
            good &= (reached >= low) & (reached <= high)
    return good


def _take(columns: Columns, where: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
    return {k: v[where] for k, v in columns.items()}


def _check_solver(part: Part, x: Mapping[str, float], change: Columns, place: str) -> None:
    program = PartProgram(part, x)
    defined = np.broadcast_to(part.feasible(_columns(x), dict(change)), (len(next(iter(change.values()))),))
    solved = np.array([program.feasible({k: float(v[i]) for k, v in change.items()}) for i in range(len(defined))])
    _same(defined, solved, "the solver", x, change, change, place)


def _same(
    mask: npt.NDArray[np.bool_], other: npt.NDArray[np.bool_], what: str, x: Any, action: Columns, change: Columns, place: str
) -> None:
    wrong = np.flatnonzero(mask != other)
    if len(wrong):
        i = int(wrong[0])
        acted, moved = ({k: float(v[i]) for k, v in columns.items()} for columns in (action, change))
        at = f"x={dict(x)}, action={acted}, change={moved}"
        raise AssertionError(
            f"{place}: mask says {bool(mask[i])}, {what} {bool(other[i])} at {at} ({len(wrong)} of {len(mask)} differ)"
        )
