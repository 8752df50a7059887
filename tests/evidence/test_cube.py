"""The cube of evidence: {laws} × {claims} × {unanswered points} × {models} × {alone, groups, families}, and bugs that its checks must catch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import evidence_kit as kit
import numpy as np
import pandas as pd
import pytest
from evidence_kit import EXACT, HIT, LAWS, LOST, MISS, World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.audit import counting, sources, tally
from budge.audit.sources import TableSource
from budge.stats import anytime_rule, curtailed_rule, sprt_rule
from budge.stats import claims as claims_module
from budge.stats.counts import Counts

TAUS = (0.05, 0.1, 0.4, 0.5)
CALM = settings(deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def worlds(draw: Any, law: str, unanswered: str, models: int | None = None) -> World:
    """Some people with any answers at their points."""
    people = draw(st.integers(1, {"stopped": 5, "drawn approximately": 2}.get(law, 8)))
    size = draw(st.integers(2, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    several = draw(st.integers(1, 3)) if models is None else models
    states = []
    for _ in range(several):
        rate = rng.choice([0.0, 0.05, 0.3, 1.0], people)[:, None, None]
        answer = np.where(rng.random((people, size, 2)) < rate, HIT, MISS)
        if unanswered == "some":
            answer = np.where(rng.random(answer.shape) < rng.choice([0.1, 0.5]), LOST, answer)
        states.append(np.full_like(answer, LOST) if unanswered == "all" else answer)
    weights = tuple(int(w) for w in rng.choice([1, 2, 5, 91], size))
    group = tuple(rng.choice(["x", "y", "z"], people).tolist())
    return World(law, tuple(states), weights, tuple(int(w) for w in rng.choice([1, 3, 10], size)), group)


@pytest.mark.parametrize("unanswered", ["none", "some", "all"])
@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("law", LAWS)
def test_every_cell(law: str, claim: str, unanswered: str) -> None:
    @settings(CALM, max_examples=2 if law == "drawn approximately" else 10)
    @given(
        worlds(law, unanswered),
        st.sampled_from([0.1, 0.25, 0.5] if claim == "below" else [0.25, 0.5]),
        st.sampled_from(["alone", "groups", "bh", "holm", "bonferroni"]),
        st.integers(0, 1000),
    )
    def cell(world: World, tau: float, how: str, seed: int) -> None:
        more: dict[str, Any] = {"groups": "group"} if how == "groups" else {} if how == "alone" else {"adjust": how}
        result = world.audit(threshold=tau, claim=claim, seed=seed, **more)
        assert kit.story(result) == []
        expected = {"listed": "exact", "listed with weights": "exact", "stopped": "sequential"}
        kinds = set(result.table["method"])
        if law == "weighted":
            assert kinds == {"sample" if len(set(world.proposal)) == 1 else "weighted"}
        else:
            assert kinds == {expected.get(law, "sample")}
        if law in EXACT:
            assert kit.truth(world, result, np.random.default_rng(seed)) == []
        elif law == "drawn approximately" and how != "groups":
            assert kit.words(result) == []
        else:
            assert "guaranteed" in set(result.table["exactness"]) or law == "drawn approximately"
        if unanswered == "all":
            assert (result.table["verdict"] == "inconclusive").all()
            assert (result.table["low"] == 0).all()
            assert (result.table["high"] == 1).all()

    cell()


def test_shares_of_groups_drawn_by_a_chain_claim_no_confidence() -> None:
    states = (np.full((4, 3, 2), MISS),)
    world = World("drawn approximately", states, (1, 1, 1), (1, 1, 1), ("x", "x", "y", "y"))
    assert kit.words(world.audit(threshold=0.1, groups="group")) == []


@pytest.mark.parametrize("law", LAWS)
def test_results_depend_on_neither_blocks_nor_order_nor_workers(law: str) -> None:
    rng, people = np.random.default_rng(3), 3 if law == "drawn approximately" else 9
    rate, shape = rng.choice([0.05, 0.5], people)[:, None, None], (people, 5, 2)
    states = tuple(np.where(rng.random(shape) < 0.1, LOST, rng.random(shape) < rate).astype(int) for _ in range(2))
    world = World(law, states, (1, 2, 3, 4, 5), (1, 3, 10, 1, 1), tuple("xyzxyzxyz"[:people]))
    more = {"threshold": 0.25, "groups": "group", "seed": 5}
    whole = world.audit(**more)
    ways = [
        {"execution": Execution(check=False, block_people=1)},
        {"execution": Execution(check=False, block_people=4, n_jobs=2, engine="threads")},
        {"order": rng.permutation(people), "execution": Execution(check=False, block_people=2)},
    ]
    for way in ways:
        again = world.audit(**more, **way)
        for name in whole.models:
            other = again.of_model(name).loc[whole.of_model(name).index]
            pd.testing.assert_frame_equal(whole.of_model(name), other)
            pd.testing.assert_frame_equal(whole.by("group", model=name), again.by("group", model=name), rtol=1e-12)
            assert whole.summary(name).share == again.summary(name).share
            assert whole.summary(name).asked == again.summary(name).asked


@pytest.mark.parametrize("law", ["drawn", "weighted", "stopped"])
@pytest.mark.parametrize("method", ["auto", "sample"])
def test_people_of_several_laws_in_one_audit(law: str, method: str) -> None:
    """People with few points are listed, others drawn; with one point left, weights are even. Rows are what each person's audit alone gives."""
    im = InteractionModel([Feature("a", "integer", bounds=(0, 9), direction="increase"), Feature("who", "integer", actionable=False)])
    X = pd.DataFrame({"a": np.tile(np.arange(10), 3), "who": np.arange(30), "group": ["x", "y", "z"] * 10})

    def model(table: pd.DataFrame) -> list[Any]:
        return [None if (a, who % 3) == (9, 2) else int(a >= 5 + who % 5) for a, who in zip(table["a"], table["who"])]

    more = {"weighted": {"proposal": {"a": {"weights": {a: 1 + a % 3 for a in range(10)}}}, "n": 40}, "stopped": {"sequential": True}}.get(law, {"n": 40})
    design = Design(target=1, threshold=0.25, population="all", max_unresolved=1.0, method=method, exact_limit=4, adjust="none", **more)
    starts = {(a, w): int(a >= 5 + w % 5) for a, w in zip(X["a"], X["who"])}

    def run(people: pd.DataFrame, block: int | None = None) -> Any:
        first = [True]

        def asked(table: pd.DataFrame) -> Any:
            if first[0]:
                first[0] = False
                return [starts[a, w] for a, w in zip(table["a"], table["who"])]
            return model(table)

        return budge.audit(asked, people, im, design=design, execution=Execution(check=False, block_people=block))

    whole = run(X)
    assert kit.story(whole) == []
    drawn = {"drawn": "sample", "weighted": "weighted", "stopped": "sequential"}[law]
    expected = {drawn, *(["exact"] if method == "auto" else ["sample"] if law == "weighted" else [])}
    assert set(whole.table["method"]) == expected
    pd.testing.assert_frame_equal(whole.table, run(X, 7).table)
    alone = pd.concat([run(X.iloc[[i]]).table for i in range(0, 30, 4)])
    pd.testing.assert_frame_equal(whole.table.iloc[::4].drop(columns="p_adjusted"), alone.drop(columns="p_adjusted"))
    listed = whole.table[whole.table["method"] == "exact"]
    for label, row in listed.iterrows():
        answers = model(pd.DataFrame({"a": range(X["a"][label], 10), "who": label}))
        ends = [np.mean([fill if v is None else v for v in answers]) for fill in (0, 1)]
        assert (row["low"], row["high"]) == pytest.approx(ends)


# -- `claim` alone: coverage by enumeration -------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", TAUS)
def test_fixed_draws_cover_exactly(tau: float) -> None:
    assert kit.fixed_coverage([1, 2, 3, 5, 8, 13, 21, 29, 34, 46, 60], tau) == []
    assert kit.fixed_coverage([29, 60], tau, alpha=0.01) == []


@pytest.mark.parametrize("tau", TAUS)
def test_fixed_draws_cover_whatever_is_hidden(tau: float) -> None:
    assert kit.fixed_coverage_with_losses(range(1, 13), tau) == []


def rules(tau: float, claim: str) -> list[Any]:
    margin = tau / 2 if claim == "below" else (1 - tau) / 2
    return [
        sprt_rule(threshold=tau, margin=margin, claim=claim), anytime_rule(150, threshold=tau, claim=claim),
        curtailed_rule(85, threshold=tau, claim=claim),
    ]  # fmt: skip


@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("tau", TAUS)
def test_every_stop_covers_and_keeps_its_decision(tau: float, claim: str) -> None:
    for rule in rules(tau, claim):
        assert kit.stopped_coverage(rule) == []


@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("tau", [0.4, 0.5])
def test_every_stop_covers_whatever_is_hidden(tau: float, claim: str) -> None:
    margin = 0.35 if claim == "below" else 0.45
    some = [
        sprt_rule(threshold=tau, margin=margin, claim=claim, max_n=12), anytime_rule(12, threshold=tau, claim=claim),
        curtailed_rule(12, threshold=tau, claim=claim),
    ]  # fmt: skip
    rates = np.unique(np.r_[np.linspace(0, 1, 41), tau])
    for rule in some:
        for hidden in ((0.0, 0.3), (0.3, 0.0), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0), (0.9, 0.1)):
            assert kit.stopped_coverage(rule, hidden, rates) == []


@pytest.mark.parametrize("tau", [0.05, 0.1, 0.5])
def test_listed_masses_hold_for_every_filling(tau: float) -> None:
    rng = np.random.default_rng(0)
    mass, state = rng.dirichlet(np.ones(8), 3000), rng.integers(0, 3, (3000, 8))
    hit, lost = (mass * (state == HIT)).sum(axis=1), (mass * (state == LOST)).sum(axis=1)
    counts = Counts.of((state == HIT).sum(axis=1), 8, (state == LOST).sum(axis=1), law="exact", hit_mass=hit, lost_mass=lost)
    c = claims_module.claim(counts, kit.asked(tau))
    assert kit.agreement(c, counts) == []
    for bits in range(256):
        filled = (mass * np.where(state == LOST, (bits >> np.arange(8)) & 1, state == HIT)).sum(axis=1)
        assert ((c.low - 1e-12 <= filled) & (filled <= c.high + 1e-12)).all()
        assert (filled[c.verdict == "below"] < tau).all()
        assert (filled[c.verdict == "above"] > tau).all()


# -- planted bugs ---------------------------------------------------------------------------------------------------------


def listed_with_losses() -> list[str]:
    """Check listed people with declared weights, some points of whom have no answer."""
    rng = np.random.default_rng(1)
    states = np.where(rng.random((12, 4, 2)) < 0.3, LOST, rng.random((12, 4, 2)) < 0.2).astype(int)
    states[0] = MISS
    states[0, 3] = LOST  # 91 % of the probability
    world = World("listed with weights", (states,), (1, 3, 5, 91), (1,) * 4, ("x", "y") * 6)
    result = world.audit(threshold=0.25)
    return kit.story(result) + kit.truth(world, result, rng)


def stopped_states() -> list[str]:
    return kit.stopped_coverage(sprt_rule(threshold=0.1, margin=0.05)) + kit.stopped_coverage(anytime_rule(150, threshold=0.1))


def fixed_states() -> list[str]:
    return kit.fixed_coverage([29, 60], 0.1)


def hidden_draws() -> list[str]:
    return kit.fixed_coverage_with_losses([8, 12], 0.4)


CHECKS = {
    "listed with losses": listed_with_losses, "stopped states": stopped_states, "fixed states": fixed_states, "hidden draws": hidden_draws,
    "weighted draws": kit.weighted_errors, "twins": kit.twin_errors,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_the_checks_pass_without_a_bug(name: str) -> None:
    assert CHECKS[name]() == []


def without_losses(counts: Counts, *, dropped: bool = False) -> Counts:
    gone = np.zeros_like(counts.unresolved)
    n = np.maximum(counts.n - counts.unresolved, 1) if dropped else counts.n
    return replace(counts, n=n, unresolved=gone, lost_mass=np.zeros_like(counts.lost_mass))


def losses_are_misses_of_draws(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._fixed
    patch.setattr(claims_module, "_fixed", lambda counts: right(without_losses(counts)))


def losses_are_misses_of_lists(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._certain
    patch.setattr(claims_module, "_certain", lambda counts, known: right(without_losses(counts), known))


def losses_are_dropped_of_draws(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._fixed
    patch.setattr(claims_module, "_fixed", lambda counts: right(without_losses(counts, dropped=True)))


def losses_are_dropped_of_lists(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._certain

    def wrong(counts: Counts, known: Any) -> Any:
        share = counts.hit_mass / np.maximum(1 - counts.lost_mass, 1e-9)
        return right(replace(without_losses(counts, dropped=True), hit_mass=share), known)

    patch.setattr(claims_module, "_certain", wrong)


def counts_for_masses(patch: pytest.MonkeyPatch) -> None:
    right = counting._Sheet.add

    def wrong(self: Any, chunk: Any, found: Any, law: str) -> None:
        right(self, chunk, found, law)
        c = self.counts
        c.lost_mass[chunk.people] = c.unresolved[chunk.people] / c.n[chunk.people]

    patch.setattr(counting._Sheet, "add", wrong)


def whole_alpha_at_both_ends(patch: pytest.MonkeyPatch) -> None:
    right = claims_module._Tails.bound
    patch.setattr(claims_module._Tails, "bound", lambda self, alpha, claim: right(self, 0.05, claim))


def largest_weight_seen(patch: pytest.MonkeyPatch) -> None:
    right = TableSource._drawn

    def wrong(self: Any, *args: Any) -> Any:
        chunk = right(self, *args)
        return replace(chunk, tops=np.maximum(np.maximum.reduceat(chunk.weights, chunk.starts), 1.0 + 1e-6))

    patch.setattr(sources.TableSource, "_drawn", wrong)


def fixed_p_after_every_draw(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claims_module, "_stopped", lambda counts, rule: claims_module._fixed(counts))


def twins_ignored(patch: pytest.MonkeyPatch) -> None:
    right = tally.share_from_p_values
    patch.setattr(tally, "share_from_p_values", lambda *args, **named: right(*args, **{**named, "units": None}))


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (losses_are_misses_of_draws, "hidden draws"), (losses_are_misses_of_lists, "listed with losses"), (losses_are_dropped_of_draws, "hidden draws"),
        (losses_are_dropped_of_lists, "listed with losses"), (counts_for_masses, "listed with losses"), (whole_alpha_at_both_ends, "fixed states"),
        (largest_weight_seen, "weighted draws"), (fixed_p_after_every_draw, "stopped states"), (twins_ignored, "twins"),
    ],
)  # fmt: skip
def test_planted_bugs_are_caught(plant: Callable[[pytest.MonkeyPatch], None], check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert CHECKS[check]() != []
