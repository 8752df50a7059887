"""Ablation against brute force over the definition, its draws, what it refuses, and a planted bug."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from stress_kit import brute, planted, rate, world

from budge import Design, Execution, Feature, InteractionModel, constraints
from budge.errors import DesignError, IncompleteError, InputError, ModelError
from budge.parts import Part
from budge.stress import Relaxation, ablate, default_relaxations, drop, free, lift, listing, pool

ONCE = Execution(check=False)  # nothing is asked twice


@pytest.mark.parametrize("seed", range(12))
def test_listed_sets_equal_brute_force(seed: int) -> None:
    """Every ρ before and after, the size ratio and newly reachable, from the definition alone."""
    rng = np.random.default_rng(seed)
    X, im = world(rng)
    X = X.iloc[:3]
    model = planted(rng)
    chosen = default_relaxations(im, X)[0]
    result = ablate(model, X, im, target=1, population="all")
    models = {r.name: r.model(im) for r in chosen}
    for i in X.index:
        before = brute(im, X.loc[i])
        for r in chosen:
            row = result.of(r.name).loc[i]
            after = brute(models[r.name], X.loc[i])
            if not len(after) or not len(before):
                assert row["status"] == "empty" or not len(before)
                continue
            assert row["method_after"] == "exact"
            assert row["after"] == pytest.approx(rate(model, after, X.columns)), (r.name, i)
            assert row["before"] == pytest.approx(rate(model, before, X.columns))
            assert row["size_ratio"] == pytest.approx(len(after) / len(before))
            assert row["low"] == row["high"] == pytest.approx(row["delta"])
            assert bool(row["newly_reachable"]) == (row["before"] == 0 and row["after"] > 0)
            assert not row["seen_only_after"]  # nothing was drawn
            assert row["exactness"] == "exact"


def test_a_part_is_prepared_once_however_many_sets_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, str]] = []
    whole = pool.PartBlock.of

    def counted(part: Part, columns: object, rows: np.ndarray, *more: object) -> object:
        made.append((part, str(rows.tolist())))
        return whole(part, columns, rows, *more)

    monkeypatch.setattr(pool.PartBlock, "of", counted)
    X, im = world(np.random.default_rng(7))
    result = ablate(lambda t: (t["a"] > 1).to_numpy().astype(int), X, im, target=1, population="all")
    assert len(result.relaxations) > 5
    for k, (part, start) in enumerate(made):
        assert not any(other == part and start == there for other, there in made[:k])


class Once:
    """A model that remembers every point that it was asked about."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.seen.append(table.to_numpy())
        return (table["a"] + table["b"] > 4).to_numpy().astype(int)


@pytest.mark.parametrize("seed", range(6))
def test_no_point_of_a_person_is_asked_twice(seed: int) -> None:
    X, im = world(np.random.default_rng(seed))
    model = Once()
    result = ablate(model, X.iloc[[0]], im, target=1, population="all", execution=ONCE)
    asked = np.concatenate(model.seen[1:])  # the first call is about the person as they are
    assert len(np.unique(asked, axis=0)) == len(asked) == result.info["asked"]


def test_a_miscounted_bundle_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted bug: new points of a bundle are counted as misses. The comparison with brute force must see it."""
    whole = listing.Listing._by_change

    def wrong(self: object, *args: object) -> object:
        sums = whole(self, *args)  # type: ignore[arg-type]
        sums[args[2].base :] = 0  # type: ignore[attr-defined]
        return sums

    monkeypatch.setattr(listing.Listing, "_by_change", wrong)
    caught = 0
    for seed in range(12):
        try:
            test_listed_sets_equal_brute_force(seed)
        except AssertionError:
            caught += 1
    assert caught


def test_the_true_driver_comes_first_in_100_of_100() -> None:
    """One frozen feature decides; freeing it, and nothing else, lets predictions change."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        m = 5
        driver = int(rng.integers(0, m))
        names = [f"f{j}" for j in range(m)]
        features = [
            Feature(n, "integer", bounds=(0, 4), actionable=bool(j != driver and rng.integers(0, 2))) for j, n in enumerate(names)
        ]
        im = InteractionModel(
            features, [constraints.LinearConstraint({names[0]: 1, names[1]: 1}, "<=", 3, on="action", name="budget")]
        )
        X = pd.DataFrame(rng.integers(0, 3, (6, m)), columns=names)
        noise = rng.normal(0, 0.05, m)

        def model(t: pd.DataFrame, driver: int = driver, noise: np.ndarray = noise) -> np.ndarray:
            return (t.iloc[:, driver].to_numpy() + t.to_numpy() @ noise > 3).astype(int)

        assert ablate(model, X, im, target=1, population="all", execution=ONCE).relaxations[0] == f"free {names[driver]}", seed


def test_freed_continuous_features_equalities_and_forced_switches() -> None:
    im = InteractionModel(
        [
            Feature("income", "real", actionable=False), Feature("rent", "real", bounds=(0, 2)), Feature("rest", "real", bounds=(0, 2)),
            Feature("on", "binary"), Feature("level", "integer", bounds=(0, 3)),
        ],
        [
            constraints.LinearConstraint({"rent": 1, "rest": 1}, "==", 2, name="sum"),
            constraints.Switch("on == 0", ("level",), otherwise="any", name="forced"),
        ],
    )  # fmt: skip
    X = pd.DataFrame({"income": [1.0, 5.0], "rent": [1.0, 0.5], "rest": [1.0, 1.5], "on": [0, 0], "level": [1, 2]})

    def model(t: pd.DataFrame) -> np.ndarray:
        return ((t["income"] > 3) | (t["rent"] + t["rest"] > 3) | ((t["on"] == 1) & (t["level"] == 1))).to_numpy().astype(int)

    result = ablate(model, X, im, target=1, n=2000, seed=3, population="all")
    one = result.table[result.table.index == 0].set_index("relaxation")
    # Freed over the data's range [1, 5]: half of it is past 3. Dropped equality: P(rent + rest > 3) = 1/8 on [0, 2]^2.
    forced = 0  # on and level both move when on: level 1 is where they stand, so it is never reached
    assert one.loc["free income", "low"] <= 0.5 <= one.loc["free income", "high"]
    assert one.loc["drop sum", "low"] <= 0.125 <= one.loc["drop sum", "high"]
    assert one.loc["drop forced", "seen_only_after"]  # rent is real: the original was drawn, so that "no way at all" is not known
    assert not one["newly_reachable"].any()
    assert (one["exactness"] == "guaranteed").all()
    assert one["before"].eq(forced).all()
    paired = ablate(model, X, im, target=1, n=500, method="paired", population="all")
    rows = paired.table[paired.table["relaxation"].isin(["free income", "drop sum"])]
    assert (rows["status"] == "too_few_accepted").all()
    assert rows["delta"].isna().all()
    assert (rows["accepted"] == 0).all()
    note = paired.ranking.set_index("relaxation").loc["free income", "note"]
    assert "too few" in note
    assert "method='both'" in note


def test_the_paired_probe_agrees_where_it_accepts() -> None:
    """Over 60 worlds, its intervals (95 %) hold the exact change; more than 12 misses in 300 would happen once in 10^4 at worst."""
    misses = checked = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, im = world(rng)
        model = planted(rng)
        exact = ablate(model, X, im, target=1, population="all").table.set_index("relaxation", append=True)["delta"]
        if not any(r.superset for r in default_relaxations(im, X)[0]):
            continue
        paired = ablate(model, X, im, target=1, method="paired", n=300, population="all", execution=ONCE).table.set_index("relaxation", append=True)
        for key, row in paired[paired["delta"].notna()].iterrows():
            checked += 1
            misses += not (row["low"] - 1e-9 <= exact.loc[key] <= row["high"] + 1e-9)
    assert checked > 300
    assert misses <= 0.08 * checked


def test_what_is_refused() -> None:
    X, im = world(np.random.default_rng(1))
    im = im.with_constraint(constraints.LinearConstraint({"b": 1, "c": 1}, "<=", 3, on="action", name="own rule"))

    def model(t: pd.DataFrame) -> np.ndarray:
        return (t["a"] > 1).to_numpy().astype(int)

    with pytest.raises(InputError, match="no such constraint"):
        drop(im, "nothing of the kind")
    with pytest.raises(InputError, match="no such thing to relax"):
        ablate(model, X, im, ["drop nothing"], target=1)
    with pytest.raises(InputError, match="nothing to free"):
        free(im, "t1")
    with pytest.raises(InputError, match="no direction to lift"):
        lift(im, "t1", "direction")
    with pytest.raises(InputError, match="changes nothing"):
        ablate(model, X, im, {"same": im}, target=1)
    with pytest.raises(InputError, match="no relaxation"):
        ablate(model, X, im, {}, target=1)
    more = constraints.LinearConstraint({"t1": 1, "t2": 1}, "<=", 0, on="action", name="more")
    with pytest.raises(DesignError, match="not a superset"):
        ablate(model, X, im, {"tighter": im.with_constraint(more)}, target=1)
    declared = Relaxation("tighter", lambda m: m.with_constraint(more), superset=False)
    assert len(ablate(model, X, im, [declared], target=1, population="all").table) == len(X)
    assert len(ablate(model, X, im, [declared], target=1).table) == (model(X) == 0).sum()
    with pytest.raises(DesignError, match="not a superset"):
        ablate(model, X, im, [declared], target=1, method="paired")


def test_more_draws_after_looking_are_refused() -> None:
    X, im = world(np.random.default_rng(1))
    result = ablate(lambda t: (t["a"] > 1).to_numpy().astype(int), X, im, n=50, design=Design(target=1, exact_limit=1))
    with pytest.raises(DesignError, match="more draws after looking"):
        result.again(n=5000)
    other = result.again(n=60, seed=1)
    assert other.info["n"] == 60
    assert other.info["seed"] == 1


def test_a_hit_that_the_original_allows_is_not_seen_only_after_where_levels_differ() -> None:
    """Levels are added in front: codes of the two sets differ, and the same points are drawn by chance in one of them alone."""

    def declared(*levels: str) -> InteractionModel:
        return InteractionModel([Feature("a", "integer", bounds=(0, 400)), Feature("d", "category", levels=levels)], [constraints.Rule("d != 'w'")])

    im, X = declared("w", "x", "y"), pd.DataFrame({"a": [1, 2, 3], "d": ["x", "y", "x"]})
    more = {"more": declared("z", "w", "y", "x")}
    seen = {}
    for wanted in ("y", "z"):
        for seed in range(8):
            design = Design(target=1, method="sample", n=300, seed=seed, population="all")
            rows = ablate(lambda t, level=wanted: ((t["a"] == 77) & (t["d"] == level)).astype(int), X, im, more, design=design).table
            hit = (rows["before"] == 0) & (rows["after"] > 0)
            assert (rows["seen_only_after"] == (hit & (wanted == "z"))).all()
            seen[wanted] = seen.get(wanted, 0) + int(hit.sum())
    assert min(seen.values()) > 0


def test_whole_numbers_made_real_are_a_relaxation_too() -> None:
    """Another type: its points are no longer shared, and it is still compared with the same original."""
    im = InteractionModel([Feature("a", "integer", bounds=(0, 4)), Feature("b", "binary", actionable=False)])
    X = pd.DataFrame({"a": [0, 4], "b": [0, 1]})
    loose = Relaxation("real a", lambda m: m.relax("a", what="integrality"))
    result = ablate(lambda t: (t["a"] > 2.5).astype(int), X, im, [loose, free(im, "b")], target=1, n=2000, population="all")
    rows = result.of("real a")
    assert (rows["method_after"] == "sample").all()
    assert np.allclose(rows["before"], 0.4)
    assert ((rows["low"] <= -0.025) & (rows["high"] >= -0.025)).all()
    assert np.allclose(result.of("free b")["after"], 0.4)


def test_the_sentence_and_the_record() -> None:
    X, im = world(np.random.default_rng(4))
    result = ablate(planted(np.random.default_rng(4)), X, im, target=1, population="all")
    assert "mean responsiveness" in str(result)
    assert result.to_dict()["ranking"][0]["relaxation"] == result.relaxations[0]
    cdf = result.cdf(result.relaxations[0])
    assert cdf["share"].iloc[-1] == 1
    assert cdf["share"].is_monotonic_increasing
    with pytest.raises(InputError, match="no such relaxation"):
        result.of("nothing")


def test_newly_reachable_is_proved_and_what_was_only_seen_is_said_apart() -> None:
    """The original has no way at all; listed, that is known, drawn, it is not, however many draws missed."""
    steps = Feature("a", "integer", bounds=(0, 4), direction="increase", max_increase=1)
    im = InteractionModel([steps, Feature("b", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [0, 1, 3], "b": [0, 0, 0]})

    def model(t: pd.DataFrame) -> np.ndarray:
        return (t["a"] > 3).to_numpy().astype(int)

    listed = ablate(model, X, im, ["lift steps of a"], target=1)
    assert listed.table["newly_reachable"].tolist() == [True, True, False]
    assert not listed.table["seen_only_after"].any()
    assert listed.ranking["newly_reachable"].tolist() == [2]
    assert "becomes reachable for 2 people who had no way at all" in str(listed)
    drawn = ablate(model, X, im, ["lift steps of a"], n=60, design=Design(target=1, method="sample"))
    assert not drawn.table["newly_reachable"].any()
    assert drawn.table["seen_only_after"].tolist() == [True, True, False]
    assert (drawn.table["exactness"] == "guaranteed").all()
    half = ablate(model, X, im, ["lift steps of a"], n=60, design=Design(target=1, exact_limit=25))  # 20 points before, up to 50 after
    assert half.table["method_before"].tolist() == ["exact"] * 3
    assert half.table["method_after"].tolist() == ["sample", "sample", "exact"]
    assert half.table["newly_reachable"].tolist() == [True, True, False]
    stuck = InteractionModel([Feature("a", "integer", bounds=(0, 4), direction="increase")], [constraints.Rule("action.a >= 9", name="must")])
    empty = ablate(model, X[["a"]], stuck, ["drop must"], target=1)
    assert empty.table["newly_reachable"].all()  # nothing could be reached at all
    assert empty.table["low"].isna().all()


def test_points_without_an_answer_are_no_proof() -> None:
    im = InteractionModel([Feature("a", "integer", bounds=(0, 4), direction="increase", max_increase=1)])
    X = pd.DataFrame({"a": [0, 2]})

    def gaps(t: pd.DataFrame) -> np.ndarray:
        return np.array([None if a == 1 else int(a > 3) for a in t["a"]], dtype=object)

    with pytest.raises(IncompleteError) as refused:
        ablate(gaps, X, im, ["lift steps of a"], target=1)
    result = refused.value.result  # type: ignore[attr-defined]
    assert result.table["newly_reachable"].tolist() == [False, True]
    one = result.table.iloc[0]  # 0 or 1 is reached before: one of the two has no answer
    assert np.isnan(one["delta"])
    assert (one["low"], one["high"]) == pytest.approx((0.2 - 0.5, 0.4))


@pytest.mark.parametrize("measure", ["configuration", "volume"])
def test_the_paired_probe_refuses_parts_whose_law_changes(measure: str) -> None:
    """Whole and real features that move in one part: under `configuration` kept draws do not follow the original's law."""
    features = [Feature("on", "binary"), Feature("level", "real", bounds=(0, 1)), Feature("c", "integer", bounds=(0, 4), max_increase=1)]
    cap, two = constraints.Rule("level <= 0.5 * on + 0.25", name="cap"), constraints.Rule("level <= on + 0.2", name="two")
    im, mixed = InteractionModel(features, [cap], measure=measure), InteractionModel(features, [cap, two], measure=measure)
    X = pd.DataFrame({"on": [0, 1], "level": [0.1, 0.2], "c": [0, 1]})

    def model(t: pd.DataFrame) -> np.ndarray:
        return (t["level"] + 0.1 * t["c"] > 0.7).to_numpy().astype(int)

    if measure == "configuration":
        with pytest.raises(DesignError, match="do not follow the original's law"):
            ablate(model, X, mixed, ["drop two"], target=1, n=200, method="paired")
    else:
        assert len(ablate(model, X, mixed, ["drop two"], target=1, n=200, method="paired").table) == 2
    both = ablate(model, X, im, ["drop cap", "lift steps of c"], target=1, n=200, method="paired")
    kept = {"lift steps of c"} | ({"drop cap"} if measure == "volume" else set())
    assert set(both.relaxations) == kept  # dropping the only rule parts the two: the original's part was mixed


def test_a_model_that_drifts_is_an_error_with_the_result() -> None:
    X, im = world(np.random.default_rng(3))

    class Drifting:
        asked = 0

        def __call__(self, table: pd.DataFrame) -> np.ndarray:
            self.asked += len(table)
            return (table["a"] > 1).to_numpy().astype(int) ^ (self.asked > 150)

    with pytest.raises(ModelError, match="answers otherwise than at the start") as caught:
        ablate(Drifting(), X, im, target=1, population="all")
    assert len(caught.value.result.table)  # type: ignore[attr-defined]
    noted = ablate(Drifting(), X, im, target=1, population="all", execution=Execution(check="warn"))
    assert "answers otherwise" in noted.info["notes"][0]
    assert "notes" not in ablate(Drifting(), X, im, target=1, population="all", execution=ONCE).info
