"""The audit against brute force, closed forms and itself under every way to run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import ONCE, PROPOSAL, approve, below_rate, dials, loans
from scipy.stats import binom

import budge
from budge import Design, Execution
from budge.audit.result import COLUMNS
from budge.errors import IncompleteError, InputError, InvalidStartError, ModelError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def exact() -> budge.Audit:
    X, im = loans()
    return budge.audit(approve, X, im, target=1, threshold=0.1, seed=3, population="all")


def test_exact_responsiveness_is_the_share_over_all_reachable_points(exact: budge.Audit) -> None:
    X, im = loans()
    for label in X.index:
        points = im.enumerate(X.loc[[label]]).points
        row = exact.table.loc[label]
        assert row["method"] == "exact"
        assert row["n"] == len(points)
        assert row["hits"] == approve(points).sum()
        assert row["rho"] == row["low"] == row["high"] == approve(points).mean()
        assert np.isnan(row["p_value"])
        assert row["verdict"] == ("below" if row["rho"] < 0.1 else "above" if row["rho"] > 0.1 else "at the threshold")
        assert row["exactness"] == "exact"
        assert (row["lower"], row["upper"]) == (row["rho"], row["rho"])
        assert row["extreme"] == {0: "none", len(points): "every"}.get(row["hits"], "")


def test_the_table_has_the_promised_columns_and_the_callers_index() -> None:
    X, im = loans()
    X.index = [f"id{i}" for i in range(len(X))]
    table = budge.audit(approve, X, im, target=1, population="all").table
    assert tuple(table.columns) == COLUMNS
    assert len(COLUMNS) == 16
    assert list(table.index) == list(X.index)
    assert (table["prediction"].to_numpy() == approve(X)).all()


def test_sampled_intervals_cover_the_exact_value(exact: budge.Audit) -> None:
    X, im = loans()
    drawn = budge.audit(approve, X, im, target=1, method="sample", seed=12, population="all", design=Design(width=0.05)).table
    assert (drawn["method"] == "sample").all()
    assert (drawn["n"] == 1574).all()
    assert ((drawn["low"] <= exact.table["rho"]) & (exact.table["rho"] <= drawn["high"])).sum() >= 11  # 12 at 95 %: P(< 11) < 0.12


@pytest.mark.parametrize("how", [{"block_people": 1}, {"block_people": 7}, {"block_people": 1000}, {"n_jobs": 2}, {"engine": "threads", "n_jobs": 2}])
@pytest.mark.parametrize("sequential", [False, True])
def test_the_table_is_the_same_to_the_bit_whatever_the_blocks_and_workers(how: dict[str, Any], sequential: bool) -> None:
    X, im = dials(40)
    plain = budge.audit(below_rate, X, im, target=1, n=70, seed=9, population="all", sequential=sequential)
    other = budge.audit(below_rate, X, im, target=1, n=70, seed=9, population="all", sequential=sequential, execution=Execution(**how))
    pd.testing.assert_frame_equal(plain.table, other.table, check_exact=True)
    for label in X.index:
        pd.testing.assert_frame_equal(plain.change(label), other.change(label), check_exact=True)


def test_the_table_is_the_same_for_people_in_another_order() -> None:
    X, im = dials(40)
    plain = budge.audit(below_rate, X, im, target=1, n=50, seed=9, adjust="none", population="all").table
    shuffled = X.sample(frac=1.0, random_state=1)
    other = budge.audit(below_rate, shuffled, im, target=1, n=50, seed=9, adjust="none", population="all").table
    pd.testing.assert_frame_equal(plain, other.loc[plain.index], check_exact=True)


def test_many_models_cost_one_drawing_and_give_what_each_gives_alone() -> None:
    X, im = dials(30)
    models = {f"m{k}": (lambda t, k=k: (t["dial"].to_numpy() < t["rate"].to_numpy() * k / 3).astype(int)) for k in range(1, 4)}
    together = budge.audit(models, X, im, target=1, n=60, seed=2)
    for name, model in models.items():
        alone = budge.audit(model, X, im, target=1, n=60, seed=2).table
        pd.testing.assert_frame_equal(together.of_model(name), alone, check_exact=True)


def test_misses_over_many_people_match_the_exact_expectation() -> None:
    """20,000 simulated audits through the public API; false alarm below 1e-6 (5 sigma)."""
    _misses(20_000)


@pytest.mark.heavy
def test_misses_over_very_many_people_match_the_exact_expectation() -> None:
    """100,000 simulated audits; false alarm below 1e-6 (5 sigma)."""
    _misses(100_000)


def _misses(people: int) -> None:
    n = 60
    X, im = dials(people, seed=4)
    table = budge.audit(below_rate, X, im, target=1, n=n, seed=21, population="all", execution=ONCE).table
    missed = (table["low"].to_numpy() > X["rate"]) | (table["high"].to_numpy() < X["rate"])
    ends = budge.stats.interval(np.arange(n + 1), n)
    expected = variance = 0.0
    for rate, count in X["rate"].value_counts().items():
        miss = ((np.asarray(ends.low) > rate) | (np.asarray(ends.high) < rate)).astype(float)
        p = float((binom.pmf(np.arange(n + 1), n, rate) * miss).sum())
        assert p <= 0.05
        expected, variance = expected + count * p, variance + count * p * (1 - p)
    assert abs(missed.sum() - expected) <= 5 * np.sqrt(variance)
    at_threshold = int((X["rate"] == 0.1).sum())
    for wrong in (table["verdict"].eq("below") & X["rate"].ge(0.1), table["verdict"].eq("above") & X["rate"].le(0.1)):
        assert wrong.sum() <= 0.05 * at_threshold + 5 * np.sqrt(at_threshold * 0.05)
    # Verdict, p-value and one-sided bound are one statement.
    assert (table["verdict"].eq("below") == (table["p_value"] < 0.05)).all()
    assert (table["verdict"].eq("below") == (table["upper"] < 0.1)).all()
    assert (table["verdict"].eq("above") == (table["lower"] > 0.1)).all()


def test_witnesses_are_reachable_hit_and_nearest(exact: budge.Audit) -> None:
    X, im = loans()
    seen = 0
    for label in X.index:
        witness = exact.witness(label)
        if exact.table["hits"][label] == 0 or exact.table["prediction"][label] == 1:  # nothing was found, or nothing is needed
            assert witness is None
            assert len(exact.change(label)) == 0
            assert ("already has" in exact.why_not(label)) == (exact.table["prediction"][label] == 1)
            continue
        seen += 1
        point = witness.to_frame().T
        assert approve(point.astype({c: X[c].dtype for c in X.columns}))[0] == 1
        points = im.enumerate(X.loc[[label]]).points
        assert (points.astype(str) == point.astype(str).iloc[0]).all(axis=1).any()
        moved = exact.change(label)
        assert set(moved["feature"]) <= im.moving
    assert seen > 1


def test_a_model_that_answers_otherwise_the_second_time_gives_no_witness() -> None:
    X, im = dials(3)
    calls = {"n": 0}

    def fickle(table: pd.DataFrame) -> np.ndarray:
        calls["n"] += 1
        return np.ones(len(table), dtype=int) if len(table) > 10 else np.zeros(len(table), dtype=int)

    result = budge.audit(fickle, X, im, target=1, n=50, execution=ONCE)
    assert (result.table["hits"] > 0).all()
    assert all(result.witness(label) is None for label in X.index)


def test_population_chooses_who_is_asked() -> None:
    X, im = loans()
    outside = budge.audit(approve, X, im, target=1, population="outside").table
    assert (outside["prediction"] == 0).all()
    assert len(outside) == (approve(X) == 0).sum()
    pd.testing.assert_frame_equal(outside, budge.audit(approve, X, im, target=1).table, check_exact=True)
    young = budge.audit(approve, X, im, target=1, population="age < 40").table
    assert list(young.index) == list(X.index[X["age"] < 40])
    owners = budge.audit(approve, X, im, target=1, population="home == 'own' and age < 40").table
    assert list(owners.index) == list(X.index[(X["home"] == "own") & (X["age"] < 40)])
    odd = budge.audit(approve, X, im, target=1, population=np.arange(len(X)) % 2 == 1).table
    assert list(odd.index) == list(X.index[1::2])
    with pytest.raises(InputError, match="'age'"):
        budge.audit(approve, X, im, target=1, population="agee < 40")
    with pytest.raises(InputError, match="not a condition"):
        budge.audit(approve, X, im, target=1, population="age + 1")
    with pytest.raises(InputError, match="true and false"):
        budge.audit(approve, X, im, target=1, population=[0, 1])


def test_groups_and_summary_count_verdicts(exact: budge.Audit) -> None:
    X, _ = loans()
    groups = exact.by("home")
    assert list(groups.columns) == ["people", "count", "verdicts", "low", "high", "mean_rho"]
    counted = exact.table["verdict"].eq("above").groupby(X["home"].astype(str)).sum()
    for home, count in counted.items():
        row = groups.loc[(home, "above")]
        assert row["count"] == count
        assert row["low"] == row["high"] == row["verdicts"] == count / (X["home"] == home).sum()  # all exact: the share itself
    summary = exact.summary()
    assert sum(summary.verdicts.values()) == len(X)
    assert summary.share is not None
    low, high = summary.share
    share = (exact.table["rho"] < 0.1).mean()
    assert low <= share <= high
    assert "threshold 0.1" in str(summary)
    assert summary.no_way == (exact.table["hits"] == 0).sum()
    assert "known to have no way at all" in str(summary)


def test_shares_of_groups_and_their_differences_hold_together() -> None:
    """60 audits of two groups with known shares below the threshold: at 0.05, more than 9 misses would happen once in 10^3."""
    people = 60
    truth = {"a": 0.8, "b": 0.2}
    X = pd.DataFrame({"dial": 0.5, "rate": 0.0, "who": np.arange(people), "group": np.repeat(["a", "b"], people // 2)})
    X["rate"] = np.where((X["who"] % 30) < X["group"].map(truth) * 30, 0.01, 0.4)
    im = dials(1)[1]
    missed = shown = 0
    for seed in range(60):
        result = budge.audit(below_rate, X, im, target=1, n=60, seed=seed, population="all", groups="group", execution=ONCE)
        table = result.summary().groups["group"]
        pd.testing.assert_frame_equal(table, result.by("group"))
        below = table.xs("below", level="verdict")
        (gap,) = result.differences("group").to_dict(orient="records")
        assert (gap["first"], gap["second"]) == ("a", "b")
        assert gap["low"] == below.loc["a", "low"] - below.loc["b", "high"]
        held = all(_within(below.loc[g, "low"], share, below.loc[g, "high"]) for g, share in truth.items())
        missed += not held
        shown += gap["low"] > 0
        other = result.differences("group", side="above").iloc[0]
        if held:  # the shares hold together, and so do their differences, on both sides
            assert _within(gap["low"], 0.6, gap["high"])
            assert _within(other["low"], -0.6, other["high"])
    assert missed <= 9
    assert shown == 60  # the difference is shown every time, and said
    assert "higher for a than for b" in str(result)


def _within(low: float, value: float, high: float) -> bool:
    return low - 1e-12 <= value <= high + 1e-12


def test_people_are_those_whose_verdict_says_so() -> None:
    X, im = dials(200, seed=3)
    result = budge.audit(below_rate, X, im, target=1, n=120, seed=2, adjust="bonferroni", population="all", execution=ONCE)
    for verdict in ("below", "above", "inconclusive"):
        assert list(result.people(verdict).index) == list(result.table.index[result.table["verdict"] == verdict])
    claims = result.claims()
    for side, p in (("below", claims.p_below), ("above", claims.p_above)):
        survives = budge.stats.adjust(p, "bonferroni") < 0.05
        assert list(result.people(side, adjusted=True).index) == list(result.table.index[survives])
        assert 0 < survives.sum() <= len(result.people(side)) - (side == "below")  # some are lost, at least of the fainter claims
    listed = budge.audit(approve, *loans(), target=1, population="all")
    assert len(listed.people("above", adjusted=True)) == len(listed.people("above"))  # what is known needs no adjustment


def test_a_value_at_the_threshold_is_called_that() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [0, 1]})
    result = budge.audit(lambda t: (t["a"] > 8).astype(int), X, im, target=1, threshold=0.1)
    assert result.table["verdict"].tolist() == ["at the threshold"] * 2
    assert len(result.people("at the threshold")) == 2
    share = result.summary().share
    assert share is not None
    assert (share.low, share.high) == (0.0, 0.0)
    none = budge.audit(lambda t: (t["a"] > 9 - (t["a"] == 1)).astype(int), X, im, target=1, threshold=0)
    assert none.table["verdict"].tolist() == ["none", "none"]
    assert (none.table["extreme"] == "none").all()


@pytest.mark.parametrize("claim", ["below", "above"])
def test_a_sequential_audit_keeps_alpha_and_asks_less(claim: Any) -> None:
    """4,000 people, half at the threshold itself; false alarm below 1e-6."""
    X, im = dials(4000, seed=8)
    X["rate"] = np.where(np.arange(4000) % 2, 0.1, 0.0 if claim == "below" else 1.0)
    wish: dict[str, Any] = {"target": 1, "seed": 5, "claim": claim, "adjust": "none", "population": "all", "execution": ONCE}
    result = budge.audit(below_rate, X, im, sequential=True, **wish)
    table, at = result.table, X["rate"] == 0.1
    fixed = budge.audit(below_rate, X.head(1), im, **wish).table["n"].iloc[0]
    for verdict in ("below", "above"):
        assert ((table["verdict"] == verdict) & at).sum() <= 2000 * 0.05 + 5 * np.sqrt(2000 * 0.05 * 0.95)
    assert (table["verdict"][~at] == claim).all()
    assert table["n"].mean() < fixed
    assert (table["method"] == "sequential").all()
    # Rows really asked are counted: rounds go past the stop of a row, and each witness is asked twice.
    counts = result.rows["model"].counts
    assert (counts.asked >= counts.n + (counts.witness >= 0)).all()
    assert result.summary().asked == counts.asked.sum() > counts.n.sum()


@pytest.mark.parametrize("adjust", ["bh", "holm", "bonferroni"])
def test_a_sequential_verdict_survives_the_adjustment(adjust: Any) -> None:
    """A row that stopped with the claim is still claimed when all people are allowed for; p-value, bound and verdict agree."""
    X, im = dials(60, seed=8)
    result = budge.audit(below_rate, X, im, target=1, sequential=True, adjust=adjust, seed=5, population="all", execution=ONCE)
    table, design = result.table, result.design
    assert design.level == pytest.approx(0.05 * (0.1 if adjust == "bh" else 1 / 60))
    stopped = table["p_value"] < design.level
    assert stopped.sum() >= 10
    assert (table["verdict"][stopped] == "below").all()
    assert (table["p_adjusted"][stopped] < 0.05).all()
    assert set(table.index[stopped]) <= set(result.people("below", adjusted=True).index)
    assert (table["verdict"].eq("below") == (table["p_value"] < 0.05)).all()
    assert (table["verdict"].eq("below") == (table["upper"] < 0.1)).all()
    assert (table["verdict"].eq("above") == (table["lower"] > 0.1)).all()


def test_weighted_draws_estimate_the_same_rho() -> None:
    X, im = loans()
    true = budge.audit(approve, X, im, target=1, population="all").table["rho"]
    table = budge.audit(approve, X, im, target=1, method="sample", n=4000, proposal=PROPOSAL, seed=1, population="all").table
    assert (table["method"] == "weighted").all()
    missed = (table["low"] > true + 1e-12) | (true > table["high"] + 1e-12)
    assert missed.sum() <= 3  # 12 intervals at 95 %: P(> 3) < 0.003
    assert np.abs(table["rho"] - true).max() < 0.08


def test_unanswered_draws_widen_the_interval_and_past_the_limit_the_audit_is_incomplete() -> None:
    X, im = dials(5)

    def gaps(table: pd.DataFrame) -> np.ndarray:
        answer = below_rate(table).astype(object)
        answer[table["dial"].to_numpy() > 0.9] = None
        return answer

    table = budge.audit(gaps, X, im, target=1, n=100, population="all", design=Design(max_unresolved=1.0), execution=ONCE).table
    assert (table["unresolved"] > 0).all()
    hits, n, lost = (table[name].to_numpy() for name in ("hits", "n", "unresolved"))
    assert np.array_equal(table["low"], budge.stats.interval(hits, n).low)
    assert np.array_equal(table["high"], budge.stats.interval(hits + lost, n).high)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(gaps, X, im, target=1, n=100, population="all", design=Design(max_unresolved=0.01), execution=ONCE)
    assert caught.value.exit_code == 4
    assert len(caught.value.result.table) == 5  # type: ignore[attr-defined]


def test_empty_and_fixed_people_have_a_status_and_never_a_zero() -> None:
    im = budge.InteractionModel(
        [budge.Feature("a", "binary", direction="increase"), budge.Feature("b", "binary", actionable=False)],
        [budge.constraints.Rule("action.a == 1", name="must move")],
    )
    X = pd.DataFrame({"a": [0, 1], "b": [0, 0]})
    table = budge.audit(lambda t: t["a"].to_numpy(), X, im, target=1, population="all").table
    assert table["status"].tolist() == ["ok", "empty"]
    assert table["verdict"].tolist() == ["above", "empty"]
    assert np.isnan(table["rho"].iloc[1])
    still = budge.InteractionModel([budge.Feature("a", "binary", actionable=False)])
    assert budge.audit(lambda t: t["a"].to_numpy(), X, still, target=1, population="all").table["status"].tolist() == ["fixed", "fixed"]


def test_people_who_break_the_spec_are_refused_skipped_or_kept() -> None:
    X, im = loans()
    X.loc[2, "ge_1"], X.loc[2, "ge_5"] = 0, 1
    with pytest.raises(InvalidStartError, match="row 2"):
        budge.audit(approve, X, im, target=1)
    skipped = budge.audit(approve, X, im, target=1, population="all", design=Design(on_invalid="skip")).table
    assert skipped["status"][2] == skipped["verdict"][2] == "invalid_start"
    assert np.isnan(skipped["rho"][2])
    assert budge.audit(approve, X, im, target=1, population="all", design=Design(on_invalid="keep")).table["n"][2] > 0


def test_three_tasks_on_one_person_and_on_a_table() -> None:
    X, im = loans()
    one = budge.estimate(approve, X.iloc[0], im, target=1)  # this person has the target already: one person is judged all the same
    assert approve(X)[0] == 1
    table = budge.estimate(approve, X, im, target=1, population="all")
    assert one.rho == table.rho.iloc[0]
    assert "exactly" in str(one)
    assert len(budge.estimate(approve, X, im, target=1).table) == (approve(X) == 0).sum()
    found = budge.falsify(approve, X, im, target=1, population="all")
    assert (found.found == (table.hits > 0)).all()
    assert (found.impossible == (table.hits == 0)).all()
    drawn = budge.falsify(lambda t: np.zeros(len(t), dtype=int), X.iloc[0], im, target=1, method="sample", execution=ONCE)
    assert not drawn.found
    assert drawn.bound == pytest.approx(1 - 0.05 ** (1 / 299))
    verdict = budge.verify(approve, X.iloc[0], im, target=1, method="sample", seed=2)
    assert verdict.verdict in ("below", "above", "inconclusive")
    assert verdict.to_dict()["n"] == verdict.n


def test_inputs_that_are_no_table_are_audited_through_draw() -> None:
    class Noise:
        def draw(self, x: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
            return x + rng.normal(0, 1, (n, *x.shape))

    X = np.array([[[0.0, 0.0], [0.0, 0.0]], [[9.0, 0.0], [0.0, 0.0]]])
    result = budge.audit(lambda batch: (batch.sum(axis=(1, 2)) > 5).astype(int), X, Noise(), target=1, seed=1, population="all", design=Design(width=0.05))
    from scipy.stats import norm

    for rho, low, high in zip(norm.sf([5, -4], scale=2), result.table["low"], result.table["high"]):
        assert low <= rho <= high  # two intervals at 95 %, fixed seed
    assert result.witness(0).sum() > 5
    again = budge.audit(lambda batch: (batch.sum(axis=(1, 2)) > 5).astype(int), X[::-1], Noise(), target=1, seed=1, population="all", design=Design(width=0.05))
    assert again.table["hits"].tolist() == result.table["hits"].tolist()[::-1]


def test_how_much_is_the_distribution_of_the_change() -> None:
    X, im = dials(3)
    model = budge.models.as_predictor(lambda t: t["dial"].to_numpy() * 4, output="score")
    result = budge.audit(model, X, im, target="higher", n=999, seed=3)
    much = result.how_much(1)
    middle = much.quantiles[0.5]
    assert middle.low <= 0.0 <= middle.high
    assert abs(middle.estimate) < 0.2
    assert str(much)


def test_people_without_a_group_are_a_group() -> None:
    X, im = loans()
    some = budge.audit(approve, X, im, target=1, seed=3, population=(X.index % 2 == 0))
    assert 0 < len(some.table) < len(X)
    groups = pd.Series(["b", None, "a"] * len(X), index=None)[: len(some.table)].set_axis(some.table.index)
    for column in (groups, groups.astype("category")):
        table = some.by(column)
        assert list(table.index.get_level_values("group").unique()) == ["a", "b", "missing"]
        assert table.xs("below", level="verdict")["people"].sum() == len(some.table)
    with pytest.raises(InputError, match="no such column"):
        some.by("hme")
    with pytest.raises(InputError, match="no such column"):
        budge.audit(approve, X, im, target=1, groups="hme")


# -- models that are not what they seem ---------------------------------------------------------------------------------


class Drifting:
    """Answers as it should until it was asked about so many rows, and otherwise after that."""

    def __init__(self, after: int):
        self.left = after

    def __call__(self, table: pd.DataFrame) -> np.ndarray:
        self.left -= len(table)
        return below_rate(table) if self.left > 0 else 1 - below_rate(table)


def test_a_model_that_drifts_is_an_error_with_the_result() -> None:
    X, im = dials(20, seed=2)
    wish: dict[str, Any] = {"target": 1, "n": 60, "population": "all"}
    with pytest.raises(ModelError, match="answers otherwise than at the start") as caught:
        budge.audit(Drifting(900), X, im, **wish)
    assert len(caught.value.result.table) == 20  # type: ignore[attr-defined]
    noted = budge.audit(Drifting(900), X, im, **wish, execution=Execution(check="warn"))
    assert [note.severity for note in noted.notes] == ["warning"]
    assert "answers otherwise" in noted.notes[0].what
    assert budge.audit(Drifting(900), X, im, **wish, execution=ONCE).notes == ()
    assert budge.audit(below_rate, X, im, **wish).notes == ()


def test_a_model_that_is_random_is_an_error() -> None:
    X, im = dials(20, seed=2)
    rng = np.random.default_rng(0)
    with pytest.raises(ModelError):
        budge.audit(lambda t: rng.integers(0, 2, len(t)), X, im, target=1, n=60, population="all")


def _other_kind(table: pd.DataFrame) -> Any:
    return below_rate(table) if (table["dial"] == 0.5).all() else np.where(below_rate(table), "yes", "no")


def _shares(table: pd.DataFrame) -> Any:
    return below_rate(table) if (table["dial"] == 0.5).all() else below_rate(table) * 0.7


def _too_few(table: pd.DataFrame) -> Any:
    return below_rate(table)[: len(table) if (table["dial"] == 0.5).all() else -1]


def _writes(table: pd.DataFrame) -> Any:
    answer = below_rate(table)
    if not (table["dial"] == 0.5).all():
        table["dial"] = 0.5
    return answer


class Strange:
    """Knows two classes, and answers a third about points."""

    classes_ = np.array([0, 1])

    def predict(self, table: pd.DataFrame) -> Any:
        return below_rate(table) if (table["dial"] == 0.5).all() else 2 * below_rate(table)


@pytest.mark.parametrize(
    ("model", "what"),
    [(_other_kind, "another kind"), (_shares, "shares where labels"), (_too_few, "one output"), (_writes, "changes the table"), (Strange(), "classes")],
)
def test_what_comes_back_is_checked_in_every_block(model: Any, what: str) -> None:
    """About people as they are these models answer well: only the points show what is wrong."""
    X, im = dials(6, seed=2)
    with pytest.raises((ModelError, IncompleteError), match=what):
        budge.audit(model, X, im, target=1, n=60, population="all", execution=ONCE)


def test_people_computed_exactly_are_counted_and_unanswered_points_leave_only_ends() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [1, 2, 3]})
    summary = budge.audit(lambda t: np.asarray(t["a"]) > 9, X, im, target=True).summary()
    assert summary.share is not None
    assert (summary.share.low, summary.share.high) == (1.0, 1.0)

    def gaps(table: pd.DataFrame) -> np.ndarray:
        return np.array([None if a > 4 else 0 for a in table["a"]], dtype=object)

    found = budge.estimate(gaps, {"a": 1}, im, target=0, design=Design(max_unresolved=1.0))
    assert np.isnan(found.rho)
    assert (found.low, found.high) == (0.5, 1.0)
    assert "exactly" not in str(found)
    assert found.to_dict()["unresolved"] == 5
    with pytest.raises(IncompleteError):
        budge.estimate(gaps, {"a": 1}, im, target=0)


def test_objects_reach_the_model_as_they_were_given() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [1, 2], "u": pd.Series(["p", None], dtype=object)})
    table = budge.audit(lambda t: np.array([v is None for v in t["u"]]), X, im, target=True, population="all").table
    assert table["rho"].tolist() == [0.0, 1.0]
    drawn = budge.audit(lambda t: np.array([v is None for v in t["u"]]), X, im, target=True, method="sample", n=40, population="all").table
    assert drawn["rho"].tolist() == [0.0, 1.0]
    assert im.sample(X.iloc[[1]], 3).points["u"].dtype == object


@pytest.mark.parametrize("streamed", [False, True])
def test_a_draft_is_noted_in_the_result_and_in_its_report(streamed: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if streamed:
        pytest.importorskip("pyarrow", reason="streams need pyarrow, of the `parquet` extra")
    people = pd.DataFrame({"income": range(10), "rooms": [1, 2, 3, 4, 5] * 2})
    people.to_csv(tmp_path / "people.csv", index=False)
    draft = budge.InteractionModel.from_frame(people)
    for im, expected in ((draft, ["draft"]), (draft.confirmed(), [])):
        caplog.clear()
        found = budge.audit(lambda t: t["income"] > 4, tmp_path / "people.csv" if streamed else people, im, target=True)
        assert [note.where for note in found.notes] == expected
        assert [record.name for record in caplog.records if "draft" in record.message] == ["budge.drafts"] * len(expected)
        found.save(tmp_path / f"run-{im.draft}")
        assert [note.where for note in budge.Audit.load(tmp_path / f"run-{im.draft}").notes] == expected
        if not streamed:
            assert found.to_html(tmp_path / f"{im.draft}.html").read_text(encoding="utf-8").count("nobody has confirmed") == len(expected)
