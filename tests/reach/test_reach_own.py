"""Own actions given the change: uniform among those that lead to it, against brute force over actions and changes."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from reach_kit import flat, ks, law_p_value

import budge
from budge.constraints import Constraint, DirectionalLinkage, LinearConstraint
from budge.errors import ReachError, SpecError
from budge.parts import Part
from budge.reach.downstream import draw_own, open_own

FloatArray = npt.NDArray[np.float64]
Pairs = dict[tuple[float, ...], list[tuple[float, ...]]]


def pairs(part: Part, x: dict[str, float]) -> Pairs | None:
    """Every feasible (change, own actions), change by change; None where there are too many to try."""
    spans = [np.arange(float(low), float(high) + 1) for low, high in (f.moves(x[f.name]) for f in part.features)]
    wide = [np.arange(span[0] - 9.0, span[-1] + 10.0) if f.name in part.links else None for f, span in zip(part.features, spans)]
    found: Pairs = defaultdict(list)
    if np.prod([len(s) for s in spans], dtype=float) * np.prod([len(w) for w in wide if w is not None], dtype=float) > 200_000:
        return None
    for action in product(*spans):
        columns = [np.array([a]) if w is None else w for a, w in zip(action, wide)]
        grid = np.stack([c.ravel() for c in np.meshgrid(*columns, indexing="ij")], axis=1)
        own = {name: np.full(len(grid), a) for name, a in zip(part.names, action)}
        good = part.holds(x, own, dict(zip(part.names, grid.T)))
        for change in grid[np.broadcast_to(good, (len(grid),))].tolist():
            found[tuple(change)].append(tuple(float(a) for a in action))
    return found


def drawn(part: Part, x: dict[str, Any], change: tuple[float, ...], uniforms: FloatArray) -> FloatArray:
    columns = {name: np.full(len(uniforms), value) for name, value in zip(part.names, change)}
    own = draw_own(part, x, columns, uniforms)
    return np.stack([own[name] for name in part.names], axis=1)


def random_part(rng: np.random.Generator) -> tuple[Part, dict[str, float]] | None:
    """Whole features, linkages from earlier to later ones, and constraints that read values or own actions; None where that is unsound."""
    names = list("abcd"[: rng.integers(2, 5)])
    features = [
        budge.Feature(name, "integer", bounds=(0, int(rng.integers(1, 4))), actionable=bool(rng.random() < 0.85), max_increase=rng.choice([None, 1, 2]))
        for name in names
    ]
    policy = rng.choice(["allow", "clip", "reject"])
    made: list[Constraint] = []
    for _ in range(rng.integers(1, 4)):
        source, target = (names[k] for k in sorted(rng.permutation(len(names))[:2]))
        scale, relation = float(rng.choice([1, 2, -1, 0.5, 1.5])), str(rng.choice(["==", "<=", ">="]))
        made.append(DirectionalLinkage(source, {target: scale}, relation, policy))  # type: ignore[arg-type]
    for _ in range(rng.integers(0, 3)):
        some = [str(name) for name in rng.permutation(names)[: rng.integers(1, 3)]]
        on = "action" if rng.random() < 0.8 else "value"
        made.append(LinearConstraint(dict.fromkeys(some, 1.0), str(rng.choice(["<=", ">="])), float(rng.integers(-1, 3)), on))  # type: ignore[arg-type]
    try:
        im = budge.InteractionModel(features, made)
    except SpecError:
        return None
    x = {f.name: float(rng.integers(0, f.range[1] + 1)) for f in im.features}
    part = max(im.parts, key=lambda p: len(open_own(p)))
    return (part, x) if open_own(part) else None


def test_whole_own_actions_are_uniform_given_the_change() -> None:
    """Against every own action that brute force finds, on random parts of linkages with and without readers."""
    met = dict.fromkeys(("guess", "open", "both", "two guesses", "several", "changes"), 0)
    p_values: list[float] = []
    rng = np.random.default_rng(3)
    for _ in range(900):
        case = random_part(rng)
        known = pairs(*case) if case is not None else None
        if case is None or not known:
            continue
        part, x = case
        names = open_own(part)
        splits = [part.split(name) for name in names]
        met["guess"] += "guess" in splits
        met["open"] += "open" in splits
        met["both"] += set(splits) == {"guess", "open"}
        met["two guesses"] += splits.count("guess") > 1
        listed = sorted(known.items())
        for change, own in [listed[i] for i in rng.permutation(len(listed))[:4]]:
            found = drawn(part, x, change, rng.random((60 * len(own), len(names))))
            p_values.append(law_p_value(np.array(own), found))
            met["several"] += len(own) > 1
            met["changes"] += 1
    assert min(met.values()) > 10, met
    assert min(p_values) > 1e-4 / len(p_values)


@pytest.mark.parametrize("read", [False, True], ids=["open", "guess"])
@pytest.mark.parametrize("policy", ["allow", "clip"])
def test_one_feature_is_drawn_in_equal_steps(policy: Any, read: bool) -> None:
    features = [budge.Feature("source", "integer", bounds=(0, 3)), budge.Feature("target", "integer", bounds=(0, 6))]
    more = [LinearConstraint({"target": 1}, "<=", 4, on="action")] if read else []
    im = budge.InteractionModel(features, [DirectionalLinkage("source", {"target": 1}, "<=", policy), *more])
    (part,) = im.parts
    assert part.split("target") == ("guess" if read else "open")
    known = pairs(part, {"source": 0.0, "target": 0.0})
    assert known is not None
    for change, own in known.items():
        steps = (np.arange(12 * len(own)) + 0.5) / (12 * len(own))
        found = drawn(part, {"source": 0.0, "target": 0.0}, change, steps[:, None])
        assert found.tolist() == [list(action) for action in sorted(own) for _ in range(12)]
        ends = drawn(part, {"source": 0.0, "target": 0.0}, change, np.array([[0.0], [1.0 - 2.0**-53]]))
        assert ends.tolist() == [list(min(own)), list(max(own))]


def test_real_own_actions_are_uniform_on_their_interval() -> None:
    features = [budge.Feature("source", "integer", bounds=(0, 3)), budge.Feature("target", "real", bounds=(0, 10), max_increase=4)]
    rng = np.random.default_rng(1)
    cases: dict[tuple[Any, float], tuple[float, float]] = {
        ("allow", 3.0): (1.0, 3.0),  # two units of the source add 0 to 2
        ("allow", 5.0): (3.0, 4.0),  # the step limit ends it
        ("clip", 10.0): (8.0, 10.0),
    }
    for (policy, moved), (low, high) in cases.items():
        free = features if policy == "allow" else [features[0], features[1].but(max_increase=None)]
        im = budge.InteractionModel(free, [DirectionalLinkage("source", {"target": 1}, "<=", policy)])
        (part,) = im.parts
        x = {"source": 0.0, "target": 0.0}
        found = drawn(part, x, (2.0, moved), rng.random((2000, 1)))
        assert (found[:, 0] == 2.0).all()
        assert ks(found[:, 1], flat(low, high)) > 1e-4
        change = {"source": np.full(2000, 2.0), "target": np.full(2000, moved)}
        assert part.holds(x, dict(zip(part.names, found.T)), change).all()
        assert not part.holds(x, {"source": np.array([2.0]), "target": np.array([low - 1e-3])}, {k: v[:1] for k, v in change.items()}).any()


def test_a_person_per_draw_and_a_missing_value() -> None:
    features = [budge.Feature("source", "integer", bounds=(0, 3)), budge.Feature("target", "integer", bounds=(0, 6), missing="fixed")]
    link, reader = DirectionalLinkage("source", {"target": 1}, "<="), LinearConstraint({"target": 1}, ">=", 0, on="action")
    (part,) = budge.InteractionModel(features, [link, reader]).parts
    x = {"source": np.zeros(5), "target": np.array([0.0, 0.0, 5.0, 5.0, np.nan])}
    change = {"source": np.full(5, 2.0), "target": np.array([2.0, 2.0, 2.0, 2.0, 0.0])}
    own = draw_own(part, x, change, np.array([[0.0], [0.99], [0.0], [0.99], [0.5]]))
    assert own["target"].tolist() == [0.0, 2.0, 0.0, 1.0, 0.0]  # from 5 the target itself moves by at most 1


def test_a_change_that_nothing_leads_to_is_an_error() -> None:
    features = [budge.Feature(name, "integer", bounds=(0, 3)) for name in ("source", "target")]
    reader = LinearConstraint({"target": 1}, "<=", 1, on="action")
    (part,) = budge.InteractionModel(features, [DirectionalLinkage("source", {"target": 1}, "<="), reader]).parts
    with pytest.raises(ReachError, match="no own action leads to this change"):
        drawn(part, {"source": 0.0, "target": 0.0}, (0.0, 3.0), np.zeros((1, 1)))


def test_where_the_change_tells_the_action_nothing_is_drawn() -> None:
    features = [budge.Feature(name, "integer", bounds=(0, 3)) for name in ("source", "target")]
    (part,) = budge.InteractionModel(features, [DirectionalLinkage("source", {"target": 1})]).parts
    assert open_own(part) == ()
    assert drawn(part, {"source": 0.0, "target": 0.0}, (1.0, 3.0), np.zeros((2, 0))).tolist() == [[1.0, 2.0]] * 2


def test_draws_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    features = [budge.Feature(name, "integer", bounds=(0, 3)) for name in ("source", "target")]
    reader = LinearConstraint({"target": 1}, "<=", 3, on="action")
    (part,) = budge.InteractionModel(features, [DirectionalLinkage("source", {"target": 1}, "<="), reader]).parts
    uniforms = np.random.default_rng(0).random((50, 1))
    whole = drawn(part, {"source": 0.0, "target": 0.0}, (2.0, 3.0), uniforms)
    monkeypatch.setattr("budge.reach.downstream.MOST_CELLS", 12)
    assert np.array_equal(whole, drawn(part, {"source": 0.0, "target": 0.0}, (2.0, 3.0), uniforms))
