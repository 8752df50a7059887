"""Small action sets of reachml, recorded with the points that reachml itself lists: `python tests/interaction/reachml_record.py`, with reachml installed.

Each case was chosen so that every kind of element and constraint occurs, alone and together. What reachml lists is written as it came, its slips included.
"""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).with_name("reachml_recorded.json")
ELEMENT = ("name", "lb", "ub", "actionable", "step_direction", "step_ub", "step_lb", "variable_type")
CONSTRAINT = (
    "names", "limit", "limit_type", "values", "reachability", "exhaustive", "step_direction", "source", "targets", "scales", "linkage_type", "keep_bounds",
    "source_coeff", "target_coeffs", "if_condition", "then_condition", "switch", "on_value", "force_change_when_off",
)  # fmt: skip


def cases() -> dict[str, tuple[Any, list[list[float]]]]:
    """Return action sets and the points to start from."""
    from reachml import ActionSet
    from reachml import constraints as c

    made: dict[str, tuple[Any, list[list[float]]]] = {}

    def case(name: str, columns: dict[str, list[float]], starts: list[list[float]], *rules: Any, **edits: dict[str, Any]) -> None:
        # names are given apart: a DataFrame would be read alike
        actions = ActionSet(np.array(list(columns.values()), dtype=float).T, names=list(columns))
        for feature, changes in edits.items():
            for key, value in changes.items():
                setattr(actions[feature], key, value)
        for rule in rules:
            actions.constraints.add(rule)
        made[name] = (actions, starts)

    count, flag = [0, 2, 4], [0, 1, 0]
    case(
        "elements", {"a": count, "b": count, "c": flag, "d": flag, "age": [20, 50, 90], "with-sign": [0, 3, 1]},
        [[2, 2, 0, 1, 30, 1], [0, 4, 1, 0, 20, 3]],
        a={"step_direction": 1}, b={"step_ub": 1, "step_lb": -2}, d={"step_direction": -1}, age={"actionable": False},
    )  # fmt: skip
    dummies = {"r": [1, 0, 0], "o": [0, 1, 0], "f": [0, 0, 1]}
    case("one hot", {**dummies, "n": count}, [[1, 0, 0, 2]], c.OneHotEncoding(["r", "o", "f"]), o={"step_direction": 1})
    case("at most two", dummies, [[1, 0, 0]], c.OneHotEncoding(["r", "o", "f"], limit=2, limit_type="max"))
    for direction in (0, 1, -1):
        case(f"ordinal {direction}", dummies, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], c.OrdinalEncoding(["r", "o", "f"], step_direction=direction))
        thermometer = {"p": [0, 1, 1], "q": [0, 0, 1]}
        case(f"thermometer {direction}", thermometer, [[0, 0], [1, 0], [1, 1]], c.ThermometerEncoding(["p", "q"], step_direction=direction))
    case("lowest has no dummy", {"o": [0, 1], "f": [0, 0]}, [[0, 0], [0, 1]], c.OrdinalEncoding(["o", "f"], exhaustive=False, step_direction=1))
    case("invalid codes kept", {"p": [0, 1], "q": [0, 1]}, [[1, 0], [0, 1]], c.ThermometerEncoding(["p", "q"], drop_invalid_values=False))
    case("dummy with direction", {"p": [0, 1], "q": [0, 1]}, [[1, 0], [1, 1]], c.ThermometerEncoding(["p", "q"]), q={"step_direction": -1})
    values = np.array([[0, 0], [1, 0], [1, 3]])
    case(
        "reachability", {"p": flag, "n": [0, 3, 1]}, [[0, 0], [1, 0], [1, 3]],
        c.ReachabilityConstraint(["p", "n"], values, reachability=np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]])),
    )  # fmt: skip
    case("every value", {"p": flag, "n": [0, 3, 1]}, [[0, 0]], c.ReachabilityConstraint(["p", "n"], values))
    years = {"years": [0, 5, 3], "age": [20, 60, 40], "n": count}
    starts, still = [[1, 59, 0], [4, 30, 4]], {"actionable": False}
    case("linkage", years, starts, c.DirectionalLinkage(["years", "age"], scales=[1, 2]), age=still, years={"step_direction": 1})
    case("linkage, bounds kept", years, starts, c.DirectionalLinkage(["n", "years"], keep_bounds=True), years={"step_ub": 2}, age=still)
    case("linkage, still target", years, [[1, 59, 0]], c.DirectionalLinkage(["n", "age"], keep_bounds=True), age=still)
    balance = {"none": flag, "b": count, "d": count}
    case("switch", balance, [[0, 1, 2], [1, 0, 0]], c.MutabilitySwitch("none", ["b", "d"], force_change_when_off=False))
    case("switch, forced", balance, [[0, 1, 2], [1, 0, 0]], c.MutabilitySwitch("none", ["b", "d"]))
    case("switch, off", {"any": flag, "b": count}, [[1, 3], [0, 0]], c.MutabilitySwitch("any", "b", on_value=0, force_change_when_off=False))
    case(
        "if then", {"a": count, "b": count}, [[0, 1], [2, 1]], c.IfThenConstraint(c.Condition("a", "G", 2), c.Condition("b", "E", 1)),
    )  # fmt: skip
    return made


def plain(value: Any) -> Any:
    """Return the value as JSON holds it; types by name, conditions as mappings."""
    if isinstance(value, type):
        return value.__name__
    if hasattr(value, "sense"):
        return {"name": value.name, "sense": value.sense, "value": value.value}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value if isinstance(value, str | bool | int | None) else float(value)


def record() -> dict[str, Any]:
    """Return every case as reachml declares it, and the points that it lists."""
    from reachml import ReachableSetEnumerator

    found = {}
    for name, (actions, starts) in cases().items():
        listed = []
        for x in starts:
            with contextlib.redirect_stdout(io.StringIO()):
                search = ReachableSetEnumerator(actions, np.array(x, dtype=float), solver="cplex")
                search.enumerate(max_points=500)
            assert search.complete
            points = {tuple(np.round(p, 6).tolist()) for p in search.reachable_points}
            listed.append({"x": x, "points": sorted(points)})
        found[name] = {
            "elements": [{key: plain(getattr(e, key)) for key in ELEMENT} for e in actions],
            "constraints": [{"kind": type(k).__name__, **{key: plain(getattr(k, key)) for key in CONSTRAINT if hasattr(k, key)}} for k in actions.constraints],
            "reached": json.loads(json.dumps(listed)),
        }
    return found


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(record()).replace('"elements"', '\n"elements"').replace('"reached"', '\n "reached"') + "\n", encoding="utf-8")
