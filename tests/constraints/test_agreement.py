"""The definition (masks), the solver's rows and an independent brute force give one answer, on random models of every kind.

Each planted bug must be caught by the very check that passes on the right code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from brute import Brute
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import budge
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Reachability, registry
from budge.parts import Part
from budge.reach.milp import PartProgram
from budge.testing import random_candidates
from budge.testing.strategies import KINDS, features, interaction_models, starts

BATCH = 12


def compare(
    im: budge.InteractionModel, x: Mapping[str, float], n: int, rng: np.random.Generator, *, solve: bool = True
) -> tuple[int, int]:
    """Ask all three about n changes; return how many were asked about and how many are feasible."""
    change: dict[str, Any] = {}
    for part in im.parts:
        change |= random_candidates(part, x, n, rng)[1]
    defined = np.ones(n, dtype=bool)
    for part in im.parts:
        own = {name: change[name] for name in part.names}
        defined &= np.broadcast_to(part.feasible({name: np.asarray(x[name]) for name in part.names}, own), (n,))
    brute = Brute(im, x)
    programs = [PartProgram(part, x) for part in im.parts] if solve else []
    for i in range(n):
        one = {name: float(column[i]) for name, column in change.items()}
        answers = {"definition": bool(defined[i]), "brute force": brute.feasible(one)}
        if programs:
            answers["solver"] = all(p.feasible({name: one[name] for name in p.part.names}) for p in programs)
        if len(set(answers.values())) > 1:
            declared = {f.name: f.to_spec() for f in im.features}
            raise AssertionError(f"{answers}\nx={dict(x)}\nchange={one}\nfeatures={declared}\nconstraints={im.constraints}")
    return n, int(defined.sum())


def agree(
    examples: int, n: int, models: st.SearchStrategy[budge.InteractionModel], *, solve: bool = True
) -> tuple[int, int, Counter[str]]:
    """Compare on random models; return pairs, feasible ones, and how often each kind was there."""
    totals, seen = [0, 0], Counter[str]()

    @settings(max_examples=BATCH, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(models, st.data())
    def run(im: budge.InteractionModel, data: st.DataObject) -> None:
        x = im.start(data.draw(starts(im)))
        rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
        asked, feasible = compare(im, x, n, rng, solve=solve)
        totals[0] += asked
        totals[1] += feasible
        seen.update(c.kind for c in im.constraints)

    for number in range(-(-examples // BATCH)):  # fresh starts: within one run Hypothesis tends to vary what it had
        seed(number)(run)()
    return totals[0], totals[1], seen


def test_definition_solver_and_brute_force_agree_on_discrete_models() -> None:
    asked, feasible, seen = agree(120, 95, interaction_models())
    assert asked >= 11_000
    assert feasible > 0.1 * asked
    assert set(seen) == set(registry())


def test_definition_solver_and_brute_force_agree_on_mixed_models() -> None:
    asked, feasible, seen = agree(108, 90, interaction_models(continuous=True))
    assert asked >= 9_000
    assert feasible > 0.1 * asked
    assert set(seen) == set(registry())


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_alone(kind: str) -> None:
    asked, feasible, seen = agree(15, 40, interaction_models(kinds=(kind,), continuous=True, max_features=4))
    assert 0 < feasible < asked
    assert seen[kind] > 5


@pytest.mark.heavy
def test_a_million_pairs(request: pytest.FixtureRequest) -> None:
    if "heavy" not in str(request.config.getoption("markexpr")):
        pytest.skip("a million pairs: run with -m heavy")
    asked = sum(agree(2100, 240, interaction_models(continuous=continuous))[0] for continuous in (False, True))
    assert asked >= 1_000_000


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
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("solve", [False, True], ids=["brute force", "with solver"])
def test_planted_bugs_are_caught(monkeypatch: pytest.MonkeyPatch, plant: Any, models: Any, solve: bool) -> None:
    agree(48, 15, models, solve=solve)  # the right code passes
    plant(monkeypatch)
    with pytest.raises(AssertionError, match="definition"):
        agree(48, 15, models, solve=solve)
