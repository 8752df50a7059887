"""One answer, on random models of every kind: the definition (masks), the solver, the enumeration, an independent brute force.

"Is this change feasible?" is asked of each: `im.feasible`, the integer program on HiGHS, membership among the points of
`im.enumerate` (where the model can be enumerated), and scalar rules that use neither. Each planted bug must be caught by
the very check that passes on the right code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from brute import Brute
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import budge
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Reachability, Switch, registry
from budge.errors import EmptyError, ReachError
from budge.expressions import holds
from budge.parts import Part
from budge.program.milp import PartProgram
from budge.testing import random_candidates
from budge.testing.strategies import KINDS, features, interaction_models, starts

BATCH = 12


@dataclass
class Tally:
    """What was asked, and what was there."""

    asked: int = 0
    feasible: int = 0
    listed: int = 0  # asked of the enumeration, too
    models: int = 0
    seen: Counter[str] = field(default_factory=Counter)  # how often each kind was there


def listed_changes(im: budge.InteractionModel, row: Mapping[str, Any]) -> set[tuple[float, ...]] | None:
    """The changes that `im.enumerate` lists, each once; None where it cannot, because something continuous moves or a change does not tell the action."""
    start = np.array(list(im.start(row).values()))
    try:
        points = im.enumerate(row, on_invalid="keep").values
    except EmptyError:
        return set()
    except ReachError as error:
        refused = ("continuous features cannot be enumerated", "an own action that its change does not tell")
        if not any(text in str(error) for text in refused):
            raise
        return None
    changes = [tuple(change) for change in (np.round(np.where(np.isnan(start), 0.0, points - start), 7) + 0.0).tolist()]
    assert len(set(changes)) == len(changes), "the enumeration repeats itself"
    return set(changes)


def compare(
    im: budge.InteractionModel, row: Mapping[str, Any], n: int, rng: np.random.Generator, tally: Tally, *, solve: bool = True, brute: bool = True
) -> None:
    """Ask everyone about n changes of the person of this row."""
    x = im.start(row)
    change: dict[str, Any] = {}
    for part in im.parts:
        change |= random_candidates(part, x, n, rng)[1]
    table = np.stack([np.broadcast_to(change[f.name], (n,)) for f in im.features], axis=1)
    defined = im.feasible(row, table)
    scalar = Brute(im, x) if brute else None
    programs = [PartProgram(part, x) for part in im.parts] if solve else []
    members = listed_changes(im, row)
    for i, rounded in enumerate((np.round(table, 7) + 0.0).tolist()):
        one = {f.name: float(value) for f, value in zip(im.features, table[i])}
        answers = {"definition": bool(defined[i])}
        if scalar is not None:
            answers["brute force"] = scalar.feasible(one)
        if programs:
            answers["solver"] = all(p.feasible({name: one[name] for name in p.part.names}) for p in programs)
        if members is not None:
            answers["enumeration"] = tuple(rounded) in members
        if len(set(answers.values())) > 1:
            declared = {f.name: f.to_spec() for f in im.features}
            raise AssertionError(f"{answers}\nx={dict(x)}\nchange={one}\nfeatures={declared}\nconstraints={im.constraints}")
    tally.asked += n
    tally.feasible += int(defined.sum())
    tally.listed += n * (members is not None)
    tally.models += 1
    tally.seen.update(c.kind for c in im.constraints)


def agree(
    examples: int,
    n: int,
    models: st.SearchStrategy[budge.InteractionModel],
    *,
    solve: bool = True,
    missing: bool = False,
) -> Tally:
    """Compare on random models; with `missing`, on people of whom some value is missing (brute force knows of none)."""
    tally = Tally()

    @settings(max_examples=BATCH, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(models, st.data())
    def run(im: budge.InteractionModel, data: st.DataObject) -> None:
        row = data.draw(starts(im))
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        if missing:
            gone = im.features[rng.integers(len(im.features))].name
            im = budge.InteractionModel([f.but(missing="fixed") if f.name == gone else f for f in im.features], im.constraints)
            row = {**row, gone: None}
        compare(im, row, n, rng, tally, solve=solve, brute=not missing)

    for number in range(-(-examples // BATCH)):  # fresh starts: within one run Hypothesis tends to vary what it had
        seed(number)(run)()
    return tally


def test_definition_solver_and_enumeration_agree_on_20000_changes() -> None:
    found = agree(216, 95, interaction_models())
    assert found.listed == found.asked >= 20_000
    assert found.feasible > 0.1 * found.asked
    assert set(found.seen) == set(registry())


def test_definition_solver_and_brute_force_agree_on_mixed_models() -> None:
    found = agree(108, 90, interaction_models(continuous=True))
    assert found.asked >= 9_000
    assert found.feasible > 0.1 * found.asked
    assert set(found.seen) == set(registry())


def test_they_agree_where_a_value_is_missing() -> None:
    found = agree(108, 40, interaction_models(), missing=True)
    assert found.listed == found.asked >= 4_000
    assert 0 < found.feasible < found.asked
    assert set(found.seen) == set(registry())


@pytest.mark.parametrize("continuous", [False, True], ids=["discrete", "mixed"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone(kind: str, continuous: bool) -> None:
    found = agree(15, 40, interaction_models(kinds=(kind,), continuous=continuous, max_features=4))
    assert 0 < found.feasible < found.asked
    assert found.seen[kind] > 5
    assert continuous or found.listed == found.asked


def test_directions_on_the_dummies_of_a_one_hot() -> None:
    """Enumeration, solver and brute force agree with the definition, and directions take something away."""
    ways = {"a": "increase", "b": "decrease", "c": None}
    free = budge.InteractionModel([budge.Feature(name, "binary") for name in ways], [OneHot(tuple(ways))])
    im = budge.InteractionModel([budge.Feature(name, "binary", direction=way) for name, way in ways.items()], free.constraints)  # type: ignore[arg-type]
    expected = {(1, 0, 0): [(1, 0, 0)], (0, 1, 0): [(0, 0, 1), (0, 1, 0), (1, 0, 0)], (0, 0, 1): [(0, 0, 1), (1, 0, 0)]}
    every = np.array([(a, b, c) for a in (-1, 0, 1) for b in (-1, 0, 1) for c in (-1, 0, 1)], dtype=float)
    for start, reachable in expected.items():
        row = dict(zip(ways, start))
        assert sorted(tuple(point) for point in im.enumerate(row).values.astype(int).tolist()) == reachable
        assert len(free.enumerate(row)) == 3
        defined = im.feasible(row, every)
        program = PartProgram(im.parts[0], im.start(row))
        assert [program.feasible(dict(zip(ways, change))) for change in every.tolist()] == defined.tolist()
        assert sorted(tuple(int(v) for v in np.add(start, change)) for change in every[defined].tolist()) == reachable
        assert {tuple(point) for point in im.sample(row, 200).values.astype(int).tolist()} == set(reachable)
    found = agree(60, 40, interaction_models(kinds=("one_hot", "one_hot", "if_then", "linear"), max_features=5, directed=True))
    assert 0 < found.feasible < found.asked == found.listed
    assert found.seen["one_hot"] > 20


@pytest.mark.heavy
def test_a_million_changes(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """A million of all four on discrete models; beside them a quarter of a million on mixed ones and on people with a missing value."""
    if "heavy" not in str(request.config.getoption("markexpr")):
        pytest.skip("a million changes: run with -m heavy")
    found = agree(4200, 240, interaction_models())
    assert found.listed == found.asked >= 1_000_000
    assert set(found.seen) == set(registry())
    mixed = agree(900, 240, interaction_models(continuous=True))
    assert mixed.asked >= 200_000
    gone = agree(240, 240, interaction_models(), missing=True)
    assert gone.listed == gone.asked >= 50_000
    for name, tally in {"discrete": found, "mixed": mixed, "missing": gone}.items():
        record_property(name, tally)


# -- planted bugs -----------------------------------------------------------------------------------------------------------


def one_hot_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """A one-hot equality that was dropped."""
    right = OneHot.mask
    monkeypatch.setattr(
        OneHot, "mask", lambda self, x, a, c: right(replace(self, relation="<=") if self.relation == "==" else self, x, a, c)
    )


def last_source_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several linkages on one target only the last counts."""
    from budge import parts
    from budge.constraints import links

    right = links.induced
    for module in (links, parts):
        monkeypatch.setattr(module, "induced", lambda target, many, x, a: right(target, many[-1:], x, a))


def a_row_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """An enumeration that leaves out the last configuration of a part."""
    from budge.reach import prepare

    right = prepare.build_core

    def broken(*given: Any, **more: Any) -> Any:
        made = right(*given, **more)
        if made.size > 1 and not given[1]:
            made.take(np.arange(made.size - 1))
        return made

    monkeypatch.setattr(prepare, "build_core", broken)


def a_row_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """An enumeration that applies all constraints of a part but the last."""
    from budge.reach import core

    right = core.Pending
    monkeypatch.setattr(core, "Pending", lambda starts, left, waiting: right(starts, left, [c for c in waiting if c is not starts.part.constraints[-1]]))


def first_overlap_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that adds a constraint to the first part it overlaps, and never joins two parts."""

    def broken(features: Any, constraints: Any, effects: Any, latent: Any) -> tuple[Part, ...]:
        groups: list[list[str]] = []
        for c in constraints:
            free = [name for name in c.scope if not any(name in group for group in groups)]
            home = next((group for group in groups if set(group) & set(c.scope)), None)
            if home is None:
                groups.append(free)
            else:
                home.extend(free)
        groups += [[f.name] for f in features if not any(f.name in group for group in groups)]
        parts = []
        for group in groups:
            own = [c for c in constraints if set(c.scope) <= set(group)]  # what does not fit is lost
            links = {n: tuple(c for c in own if isinstance(c, DirectionalLinkage) and n in c.targets) for n in group}
            rest = tuple(c for c in own if not isinstance(c, DirectionalLinkage))
            parts.append(Part(tuple(f for f in features if f.name in group), rest, {n: ls for n, ls in links.items() if ls}))
        return tuple(parts)

    monkeypatch.setattr("budge.interaction.partition", broken)


def if_then_freezes(monkeypatch: pytest.MonkeyPatch) -> None:
    """An if-then whose targets cannot move while its condition is false."""
    right = IfThen.mask

    def broken(self: IfThen, x: Any, a: Any, c: Any) -> Any:
        off = right(replace(self, then=f"not ({self.then})"), x, a, c) & right(self, x, a, c)
        still = np.logical_and.reduce([np.asarray(a[name]) == 0 for name in self.consequence.names()])
        return right(self, x, a, c) & (~off | still)

    monkeypatch.setattr(IfThen, "mask", broken)


def transposed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reachability matrix that is read from column to row."""
    right = Reachability.mask

    def broken(self: Reachability, x: Any, a: Any, c: Any) -> Any:
        turned = None if self.reachable is None else tuple(zip(*self.reachable))
        return right(replace(self, reachable=turned), x, a, c)

    monkeypatch.setattr(Reachability, "mask", broken)


@st.composite
def bridged(draw: Any) -> budge.InteractionModel:
    """Two pairs of features, then a constraint that joins them."""
    pool = [draw(features(f"n{i}", ("integer",))) for i in range(5)]
    pairs = [("n0", "n1"), ("n2", "n3"), (draw(st.sampled_from(["n0", "n1"])), draw(st.sampled_from(["n2", "n3"])))]
    relation, constant = st.sampled_from(["==", "<=", ">="]), st.integers(-1, 3)
    return budge.InteractionModel(
        pool, [LinearConstraint(dict.fromkeys(pair, 1), draw(relation), draw(constant)) for pair in pairs]
    )


@pytest.mark.parametrize(
    ("plant", "models"),
    [
        (one_hot_at_most, interaction_models(kinds=("one_hot",))),
        (last_source_only, interaction_models(kinds=("directional_linkage",), max_constraints=5)),
        (first_overlap_only, bridged()),
        (if_then_freezes, interaction_models(kinds=("if_then",))),
        (transposed, interaction_models(kinds=("reachability",))),
        (a_row_forgotten, interaction_models()),
        (a_row_too_many, interaction_models(kinds=("linear", "rule", "if_then"))),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("solve", [False, True], ids=["brute force", "with solver"])
def test_planted_bugs_are_caught(monkeypatch: pytest.MonkeyPatch, plant: Any, models: Any, solve: bool) -> None:
    agree(48, 15, models, solve=solve)  # the right code passes
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="definition"):
        agree(48, 15, models, solve=solve)


@pytest.mark.parametrize(("x", "points"), [({"closed": 1, "a": 0, "b": 0}, 17), ({"closed": 1, "a": 2, "b": 0}, 32), ({"closed": 0, "a": 0, "b": 0}, 17)])
def test_a_precondition_adds_a_switch_only_where_the_start_agrees_with_it(x: dict[str, float], points: int) -> None:
    """By hand: two counts of 4 values each; closed, they stay (1 point), open, they are free (16)."""
    counts = [budge.Feature(name, "integer", bounds=(0, 3)) for name in ("a", "b")]
    held = Switch("closed == 1", ("a", "b"), precondition=True)
    im = budge.InteractionModel([budge.Feature("closed", "binary"), *counts], [held])
    assert len(im.enumerate(x).points) == points
    compare(im, x, 60, np.random.default_rng(0), Tally())
    drawn = im.sample(x, n=400, seed=1).points
    moved = (drawn[["a", "b"]] != [x["a"], x["b"]]).any(axis=1)
    assert bool((moved & (drawn["closed"] == 1)).any()) == (points == 32)
    assert budge.InteractionModel.from_spec(im.to_spec()) == im


def test_a_precondition_is_judged_for_each_of_many_people_prepared_together() -> None:
    counts = [budge.Feature(name, "real", bounds=(0, 3)) for name in ("a", "b")]
    im = budge.InteractionModel([budge.Feature("closed", "binary"), *counts], [Switch("closed == 1", ("a", "b"), precondition=True)])
    people = pd.DataFrame({"closed": [1, 1, 1, 1], "a": [0.0, 2.0, 0.0, 1.0], "b": [0.0, 0.0, 0.0, 3.0]})
    (block,) = im.sample_many(people, 200, seed=1, block_rows=10_000)
    values = block.values.reshape(4, 200, 3)
    moved = (values[:, :, 1:] != people[["a", "b"]].to_numpy()[:, None, :]).any(axis=2)
    assert (moved & (values[:, :, 0] == 1)).any(axis=1).tolist() == [False, True, False, True]
    held = im.constraints[0].bind({f.name: f for f in im.features})
    x = {name: people[name].to_numpy(dtype=float) for name in people}
    rest = {name: np.zeros(4) for name in x}
    action = {**rest, "a": np.full(4, 0.5)}
    formula = held.rows(x)
    assert formula is not None
    env = {(layer, name): v for name in x for layer, v in (("value", x[name] + action[name]), ("action", action[name]))}
    assert holds(formula, env).tolist() == held.mask(x, action, action).tolist() == [False, True, False, True]
