"""Interaction models from what other packages declare: reachml's action sets, DiCE's features and ranges, alibi's ranges.

None of them is imported: their objects are read by their public attributes. What they declare keeps the meaning that it has there, also where
the defaults differ; what has no mapping is an error, all problems at once. `docs/how-to/moving-over.md` states what differs and what is gained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.constraints import (
    AdditiveLinkage,
    Constraint,
    DirectionalLinkage,
    IfThen,
    OneHot,
    Ordinal,
    Reachability,
    Rule,
    Switch,
    Thermometer,
)
from budge.constraints.base import Relation
from budge.errors import DataError, InputError, Problem, SpecError, nearest
from budge.expressions.nodes import quote
from budge.features import Direction, Feature
from budge.interaction import InteractionModel

__all__ = ["AlibiExplainer", "DiceData", "ReachmlActionSet", "from_alibi", "from_dice", "from_reachml"]

_RELATIONS: dict[str, Relation] = {"E": "==", "G": ">=", "L": "<="}


class ReachmlActionSet(Protocol):
    """A `reachml.ActionSet`: an iterable of elements, and constraints."""

    @property
    def constraints(self) -> Iterable[object]: ...

    def __iter__(self) -> Iterator[object]: ...


class DiceData(Protocol):
    """What `dice_ml.Data(...)` returns: the names of features, which of them are numbers, and the ranges seen."""

    feature_names: Sequence[str]
    continuous_feature_names: Sequence[str]
    permitted_range: Mapping[str, Sequence[Any]]


class AlibiExplainer(Protocol):
    """An `alibi.explainers.CounterfactualRLTabular`: what it was built with stands in `params`."""

    params: Mapping[str, Any]


# -- reachml ------------------------------------------------------------------------------------------------------------


def from_reachml(action_set: ReachmlActionSet, *, name: str = "") -> InteractionModel:
    """Return the interaction model of a reachml action set; see `InteractionModel.from_reachml`."""
    if not hasattr(action_set, "constraints") or not hasattr(action_set, "__iter__"):
        raise InputError("is no action set of reachml", where="action_set", got=type(action_set).__name__, remedy="give a reachml.ActionSet")
    found: list[Problem] = []
    features = [f for f in (_reachml_feature(element, found) for element in action_set) if f is not None]
    by_name = {f.name: f for f in features}
    constraints: list[Constraint] = []
    for i, given in enumerate(action_set.constraints):
        kind = type(given).__name__
        place = f"constraints[{i}].{kind}"
        if kind not in _REACHML:
            remedy = f"drop it, and declare what it means with budge.constraints; these have a mapping: {', '.join(_REACHML)}"
            found.append(Problem(place, "a constraint of this kind has no mapping", kind, remedy))
            continue
        try:
            made = _REACHML[kind](given, by_name)
        except AttributeError as error:
            found.append(Problem(place, f"cannot be read: {error}", remedy="give a constraint as reachml 0.2 makes it"))
            continue
        except SpecError as error:
            found += error.at(place).problems
            continue
        constraints += made
        found += [Problem(f"{place}.{p.where}", p.what, p.got, p.remedy, p.severity) for c in made for p in c.problems(by_name)]
    SpecError.raise_if([*(p for f in features for p in f.problems()), *found])
    return InteractionModel(features, constraints, name=name)


def _reachml_feature(element: object, found: list[Problem]) -> Feature | None:
    """Return the feature of one action element, or None and a problem."""
    try:
        name, kind = str(getattr(element, "name")), getattr(element, "variable_type")  # noqa: B009  (read as any object)
        low, high, direction = (getattr(element, key) for key in ("lb", "ub", "step_direction"))
        up, down, actionable = (getattr(element, key) for key in ("step_ub", "step_lb", "actionable"))
    except AttributeError as error:
        found.append(Problem("action_set", f"an element cannot be read: {error}", type(element).__name__, "give a reachml.ActionSet"))
        return None
    types: dict[object, Literal["binary", "integer", "real"]] = {bool: "binary", int: "integer", float: "real"}
    if kind not in types:
        found.append(Problem(f"features.{name}", "an element is bool, int or float", kind, "set variable_type to one of them"))
        return None
    bounds = (_number(low), _number(high))
    return Feature(
        name, types[kind], bounds=None if bounds in ((0, 1), (-math.inf, math.inf)) and kind is not int else bounds, actionable=bool(actionable),
        direction=_direction(direction), max_increase=_number(up) if math.isfinite(up) else None, max_decrease=_number(-down) if math.isfinite(down) else None,
    )  # fmt: skip


def _one_hot(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    return [OneHot(tuple(given.names), count=int(given.limit), relation="==" if given.limit_type == "equal" else "<=")]


def _codes(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    """Return an ordinal or thermometer group; a listed reachability where a dummy has rules of its own, or other codes than the encoding's are kept."""
    names, m, kept = tuple(given.names), len(given.names), len(given.values)
    baseline: Literal["lowest"] | None = None if getattr(given, "exhaustive", True) else "lowest"
    ordinal = type(given).__name__ == "OrdinalEncoding"
    own = any(n in features and features[n].direction is not None for n in names)
    if own or kept != (m if ordinal and baseline is None else m + 1):
        return _reachability(given, features)
    direction = _direction(given.step_direction)
    return [Ordinal(names, direction, baseline=baseline) if ordinal else Thermometer(names, direction)]


def _reachability(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    values = tuple(tuple(_number(cell) for cell in row) for row in np.asarray(given.values).tolist())
    step = np.asarray(given.reachability)
    return [Reachability(tuple(given.names), values, None if step.all() else tuple(tuple(int(cell) for cell in row) for row in step.tolist()))]


def _directional(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    """Return the linkage; where targets keep their bounds, also that they keep to their own direction, steps and rest, as there."""
    targets = {name: _number(scale) for name, scale in zip(given.targets, given.scales)}
    binary = [n for n in targets if n in features and features[n].type == "binary"]
    if binary and not given.keep_bounds:
        raise SpecError("a binary target would leave 0 and 1", where="targets", got=binary[0], remedy="set keep_bounds=True, or drop the target")
    link = DirectionalLinkage(given.source, targets, _RELATIONS[given.linkage_type], on_exceed="reject" if given.keep_bounds else "allow")
    return [link, *(Rule(text) for n in targets if given.keep_bounds and n in features for text in _kept(features[n]))]


def _kept(feature: Feature) -> Iterator[str]:
    """Yield the limits of a feature's own moves as rules about its whole change."""
    name = quote(feature.name)
    if not feature.actionable:
        yield f"{name} == before.{name}"
        return
    if feature.direction is not None:
        yield f"{name} {'>=' if feature.direction == 'increase' else '<='} before.{name}"
    if feature.max_increase is not None:
        yield f"{name} - before.{name} <= {feature.max_increase}"
    if feature.max_decrease is not None:
        yield f"before.{name} - {name} <= {feature.max_decrease}"


def _additive(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    targets = {name: _number(c) for name, c in zip(given.targets, given.target_coeffs)}
    return [AdditiveLinkage(given.source, _number(given.source_coeff), targets, _RELATIONS[given.linkage_type])]


def _if_then(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    """Return the rule over own actions, which is what reachml's conditions are about."""
    one, other = given.if_condition, given.then_condition
    if_ = f"{quote(one.name)} {_RELATIONS[one.sense]} {_number(one.value)}"
    return [IfThen(if_, f"action.{quote(other.name)} {_RELATIONS[other.sense]} {_number(other.value)}", on="action")]


def _switch(given: Any, features: Mapping[str, Feature]) -> list[Constraint]:
    """Return the switch; where reachml forces a change, at least one target moves while it is off."""
    when = f"{quote(given.switch)} == {int(given.on_value)}"
    return [Switch(when, tuple(given.targets), otherwise="any" if given.force_change_when_off else "free")]


_REACHML: dict[str, Callable[[Any, Mapping[str, Feature]], list[Constraint]]] = {
    "OneHotEncoding": _one_hot,
    "OrdinalEncoding": _codes,
    "ThermometerEncoding": _codes,
    "ReachabilityConstraint": _reachability,
    "DirectionalLinkage": _directional,
    "AdditiveLinkage": _additive,
    "IfThenConstraint": _if_then,
    "MutabilitySwitch": _switch,
}


# -- DiCE ---------------------------------------------------------------------------------------------------------------


def from_dice(
    data: DiceData,
    features_to_vary: Literal["all"] | Sequence[str] = "all",
    permitted_range: Mapping[str, Sequence[Any]] | None = None,
    *,
    name: str = "",
) -> InteractionModel:
    """Return the interaction model of a counterfactual question to DiCE; see `InteractionModel.from_dice`."""
    missing = [key for key in ("feature_names", "continuous_feature_names", "permitted_range") if not hasattr(data, key)]
    if missing:
        raise InputError("is no data object of DiCE", where="data", got=type(data).__name__, remedy="give what dice_ml.Data(...) returns")
    names, numbers, permitted = [str(n) for n in data.feature_names], set(data.continuous_feature_names), data.permitted_range
    found: list[Problem] = []
    if isinstance(features_to_vary, str) and features_to_vary != "all":
        found.append(Problem("features_to_vary", "must be 'all' or a list of features", features_to_vary, f"write [{features_to_vary!r}]"))
    elif not len(features_to_vary):
        found.append(Problem("features_to_vary", "names no feature", [], "name the features that can change, or write 'all'"))
    vary = set(names) if isinstance(features_to_vary, str) else {str(n) for n in features_to_vary}
    asked: Mapping[str, Sequence[Any]] = permitted_range or {}
    for where, given in (("features_to_vary", sorted(vary)), ("permitted_range", list(asked))):
        found += [Problem(where, "no such feature", n, nearest(n, names)) for n in given if n not in names]
    features: list[Feature] = []
    constraints: list[Constraint] = []
    for n in names:
        place, values = f"permitted_range.{n}", [_plain(v) for v in asked.get(n, permitted[n])]
        if n in numbers:
            try:
                low, high = (_number(v) for v in values)
            except (TypeError, ValueError):
                found.append(Problem(place, "a number has a lowest and a highest value", values, "write [0, 10]"))
                continue
            whole = _dice_whole(data, n)
            low, high = (math.ceil(low), math.floor(high)) if whole and math.isfinite(low) and math.isfinite(high) else (low, high)
            features.append(Feature(n, "integer" if whole else "real", bounds=(low, high), actionable=n in vary))
            continue
        levels = _dice_levels(data, n)
        unknown = [v for v in values if v not in levels]
        found += [Problem(place, "not a level that DiCE has seen", v, nearest(v, map(str, levels))) for v in unknown]
        found += [Problem(place, "permits no level", [], "list the levels that can be reached")] if not values else []
        if len(levels) < 2:
            features.append(Feature(n, "fixed"))
            continue
        features.append(Feature(n, "category", levels=tuple(levels), actionable=n in vary))
        if n in vary and values and not unknown and set(values) != set(levels):
            step = tuple(tuple(int(to in values or to == at) for to in levels) for at in levels)
            constraints.append(Reachability((n,), tuple((v,) for v in levels), step))
    SpecError.raise_if([*found, *(p for f in features for p in f.problems())])
    return InteractionModel(features, constraints, name=name)


def _dice_levels(data: DiceData, name: str) -> list[Any]:
    """Return the levels of a category in the training data, or those declared of private data; a person may start at one that is not permitted."""
    frame = getattr(data, "data_df", None)
    found = frame[name].unique() if frame is not None else getattr(data, "categorical_levels", data.permitted_range)[name]
    return sorted({_plain(v) for v in found}, key=str)


def _dice_whole(data: DiceData, name: str) -> bool:
    """Return whether DiCE takes a number for a whole one: by the type of its column, or by what was declared of private data."""
    frame = getattr(data, "data_df", None)
    if frame is not None:
        return bool(frame[name].dtype.kind in "iu")
    return bool(getattr(data, "type_and_precision", {}).get(name, "int") == "int")


# -- alibi --------------------------------------------------------------------------------------------------------------


def from_alibi(explainer: AlibiExplainer | Mapping[str, Any], X: pd.DataFrame | npt.ArrayLike, *, name: str = "") -> InteractionModel:
    """Return the interaction model of alibi's counterfactuals by reinforcement learning; see `InteractionModel.from_alibi`."""
    params = explainer if isinstance(explainer, Mapping) else getattr(explainer, "params", None)
    if not isinstance(params, Mapping) or "feature_names" not in params or "category_map" not in params:
        remedy = "give a CounterfactualRLTabular, or a mapping of feature_names, category_map, immutable_features and ranges"
        what = "has no mapping: only explainers that state what people can change have one"
        raise InputError(what, where="explainer", got=type(explainer).__name__, remedy=remedy)
    names = [str(n) for n in params["feature_names"]]
    table = np.asarray(X.to_numpy() if isinstance(X, pd.DataFrame) else X)
    if table.ndim != 2 or table.shape[1] != len(names) or not len(table):
        raise DataError(f"the training data need rows and {len(names)} columns, one for each feature", where="X", got=f"shape {table.shape}")
    levels = {names[int(i)]: len(v) for i, v in params["category_map"].items() if 0 <= int(i) < len(names)}
    still, ranges = [str(n) for n in params.get("immutable_features") or ()], dict(params.get("ranges") or {})
    found = [Problem("category_map", "no such column", i, f"columns are 0 to {len(names) - 1}") for i in params["category_map"] if not 0 <= int(i) < len(names)]
    for where, given in (("immutable_features", still), ("ranges", list(ranges))):
        found += [Problem(where, "no such feature", n, nearest(n, names)) for n in given if n not in names]
    features: list[Feature] = []
    for j, n in enumerate(names):
        free = n not in still
        if n in levels:
            if n in ranges:
                found.append(Problem(f"ranges.{n}", "a category has no range", ranges[n], "leave it out, or list it in immutable_features"))
            features.append(Feature(n, "category", levels=tuple(range(levels[n])), actionable=free) if levels[n] > 1 else Feature(n, "fixed"))
            continue
        try:
            column = table[:, j].astype(float)
            low, high = (float(v) for v in ranges.get(n, (-1.0, 1.0)))
        except (TypeError, ValueError):
            found.append(Problem(n, "needs numbers in X, and a range of two numbers", [ranges.get(n), table[0, j]], "add it to category_map, or write [-1, 1]"))
            continue
        if not np.isfinite(column).all():
            found.append(Problem(f"X.{n}", "the training data have a missing or infinite value", remedy="drop those rows"))
            continue
        if not -1 <= low <= 0 <= high <= 1:
            found.append(Problem(f"ranges.{n}", "a range lies between -1 and 0 downwards, and 0 and 1 upwards", [low, high], "write [0, 1] for increase only"))
            continue
        features.append(_alibi_number(n, column, low, high, free))
    SpecError.raise_if([*found, *(p for f in features for p in f.problems())])
    return InteractionModel(features, name=name)


def _alibi_number(name: str, column: npt.NDArray[np.float64], low: float, high: float, free: bool) -> Feature:
    """Return a number that moves by shares of the range seen in training, within that range; whole where all values seen are."""
    least, most = float(column.min()), float(column.max())
    whole = bool((column == np.round(column)).all())
    return Feature(
        name, "integer" if whole else "real", bounds=(_number(least), _number(most)), actionable=free and (low < 0 or high > 0),
        direction="increase" if low == 0 < high else "decrease" if low < 0 == high else None,
        max_increase=high * (most - least) if 0 < high < 1 else None, max_decrease=-low * (most - least) if -1 < low < 0 else None,
    )  # fmt: skip


# -- plain values ---------------------------------------------------------------------------------------------------------


def _number(value: Any) -> float:
    """Return the value as Python's own number, whole where it is whole."""
    found = float(value)
    return int(found) if math.isfinite(found) and found == int(found) else found


def _plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's own value."""
    return value.item() if isinstance(value, np.generic) else value


def _direction(sign: int) -> Direction | None:
    return "increase" if sign > 0 else "decrease" if sign < 0 else None
