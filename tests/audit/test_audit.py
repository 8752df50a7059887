"""The audit against brute force, closed forms and itself under every way to run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, below_rate, dials, loans
from scipy.stats import binom

import budge
from budge.audit.result import COLUMNS
from budge.errors import DesignError, IncompleteError, InputError, InvalidStartError, ModelError, OutputExistsError, StorageError

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def exact() -> budge.Audit:
    X, im = loans()
    return budge.audit(approve, X, im, target=1, threshold=0.1, seed=3)


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
        assert row["verdict"] == ("below" if row["rho"] < 0.1 else "above" if row["rho"] > 0.1 else "inconclusive")


def test_the_table_has_the_promised_columns_and_the_callers_index() -> None:
    X, im = loans()
    X.index = [f"id{i}" for i in range(len(X))]
    table = budge.audit(approve, X, im, target=1).table
    assert tuple(table.columns) == COLUMNS
    assert list(table.index) == list(X.index)
    assert (table["prediction"].to_numpy() == approve(X)).all()


def test_sampled_intervals_cover_the_exact_value(exact: budge.Audit) -> None:
    X, im = loans()
    drawn = budge.audit(approve, X, im, target=1, method="sample", width=0.05, seed=11).table
    assert (drawn["method"] == "sample").all()
    assert (drawn["n"] == 1574).all()
    assert ((drawn["low"] <= exact.table["rho"]) & (exact.table["rho"] <= drawn["high"])).sum() >= 11  # 12 at 95 %: P(< 11) < 0.12


@pytest.mark.parametrize("how", [{"block_people": 1}, {"block_people": 7}, {"block_people": 1000}, {"n_jobs": 2}, {"engine": "threads", "n_jobs": 2}])
def test_the_table_is_the_same_to_the_bit_whatever_the_blocks_and_workers(how: dict[str, object]) -> None:
    X, im = dials(40)
    plain = budge.audit(below_rate, X, im, target=1, n=50, seed=9).table
    other = budge.audit(below_rate, X, im, target=1, n=50, seed=9, **how).table
    pd.testing.assert_frame_equal(plain, other, check_exact=True)


def test_the_table_is_the_same_for_people_in_another_order() -> None:
    X, im = dials(40)
    plain = budge.audit(below_rate, X, im, target=1, n=50, seed=9, adjust="none").table
    shuffled = X.sample(frac=1.0, random_state=1)
    other = budge.audit(below_rate, shuffled, im, target=1, n=50, seed=9, adjust="none").table
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
    table = budge.audit(below_rate, X, im, target=1, n=n, seed=21, check=False).table
    missed = (table["low"].to_numpy() > X["rate"]) | (table["high"].to_numpy() < X["rate"])
    ends = budge.stats.interval(np.arange(n + 1), n)
    expected = variance = 0.0
    for rate, count in X["rate"].value_counts().items():
        miss = ((np.asarray(ends.low) > rate) | (np.asarray(ends.high) < rate)).astype(float)
        p = float((binom.pmf(np.arange(n + 1), n, rate) * miss).sum())
        assert p <= 0.05
        expected, variance = expected + count * p, variance + count * p * (1 - p)
    assert abs(missed.sum() - expected) <= 5 * np.sqrt(variance)
    wrong = (table["verdict"] == "below").to_numpy() & (X["rate"] >= 0.1).to_numpy()
    at_threshold = int((X["rate"] == 0.1).sum())
    assert wrong.sum() <= 0.05 * at_threshold + 5 * np.sqrt(at_threshold * 0.05)


def test_witnesses_are_reachable_hit_and_nearest(exact: budge.Audit) -> None:
    X, im = loans()
    seen = 0
    for label in X.index:
        witness = exact.witness(label)
        if exact.table["hits"][label] == 0:
            assert witness is None
            continue
        seen += 1
        point = witness.to_frame().T
        assert approve(point.astype({c: X[c].dtype for c in X.columns}))[0] == 1
        points = im.enumerate(X.loc[[label]]).points
        assert (points.astype(str) == point.astype(str).iloc[0]).all(axis=1).any()
        moved = exact.change(label)
        assert set(moved["feature"]) <= im.moving
    assert seen > 3


def test_a_model_that_answers_otherwise_the_second_time_gives_no_witness() -> None:
    X, im = dials(3)
    calls = {"n": 0}

    def fickle(table: pd.DataFrame) -> np.ndarray:
        calls["n"] += 1
        return np.ones(len(table), dtype=int) if len(table) > 10 else np.zeros(len(table), dtype=int)

    result = budge.audit(fickle, X, im, target=1, n=50, check=False)
    assert (result.table["hits"] > 0).all()
    assert all(result.witness(label) is None for label in X.index)


def test_population_chooses_who_is_asked() -> None:
    X, im = loans()
    outside = budge.audit(approve, X, im, target=1, population="outside").table
    assert (outside["prediction"] == 0).all()
    assert len(outside) == (approve(X) == 0).sum()
    young = budge.audit(approve, X, im, target=1, population="age < 40").table
    assert list(young.index) == list(X.index[X["age"] < 40])
    with pytest.raises(InputError, match="query"):
        budge.audit(approve, X, im, target=1, population="agee < 40")


def test_groups_and_summary_count_verdicts(exact: budge.Audit) -> None:
    X, _ = loans()
    groups = exact.by("home")
    counted = exact.table["verdict"].eq("above").groupby(X["home"].astype(str)).sum()
    for home, count in counted.items():
        assert groups.loc[(home, "above"), "count"] == count
    summary = exact.summary()
    assert sum(summary.verdicts.values()) == len(X)
    assert summary.share is not None
    low, high = summary.share
    share = (exact.table["rho"] < 0.1).mean()
    assert low <= share <= high
    assert "threshold 0.1" in str(summary)


def test_a_sequential_audit_keeps_alpha_and_asks_less() -> None:
    """4,000 people at the threshold itself; false alarm below 1e-6."""
    X, im = dials(4000, seed=8)
    X["rate"] = np.where(np.arange(4000) % 2, 0.1, 0.0)
    table = budge.audit(below_rate, X, im, target=1, sequential=True, seed=5, check=False).table
    fixed = budge.audit(below_rate, X.head(1), im, target=1, seed=5, check=False).table["n"].iloc[0]
    wrong = ((table["verdict"] == "below") & (X["rate"] == 0.1)).sum()
    assert wrong <= 2000 * 0.05 + 5 * np.sqrt(2000 * 0.05 * 0.95)
    assert (table["verdict"][X["rate"] == 0.0] == "below").all()
    assert table["n"].mean() < fixed


def test_weighted_draws_estimate_the_same_rho() -> None:
    X, im = loans()
    true = budge.audit(approve, X, im, target=1).table["rho"]
    table = budge.audit(approve, X, im, target=1, method="sample", n=4000, proposal={"balance": {"weights": {0: 1, 1: 1, 2: 2, 3: 3, 4: 4}}}, seed=1).table
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

    table = budge.audit(gaps, X, im, target=1, n=100, check=False, max_unresolved=1.0).table
    assert (table["unresolved"] > 0).all()
    ends = budge.stats.unresolved_interval(table["hits"].to_numpy(), table["n"].to_numpy(), table["unresolved"].to_numpy())
    assert np.array_equal(table["low"], ends.low)
    assert np.array_equal(table["high"], ends.high)
    with pytest.raises(IncompleteError) as caught:
        budge.audit(gaps, X, im, target=1, n=100, check=False, max_unresolved=0.01)
    assert caught.value.exit_code == 4
    assert len(caught.value.result.table) == 5  # type: ignore[attr-defined]


def test_empty_and_fixed_people_have_a_status_and_never_a_zero() -> None:
    im = budge.InteractionModel(
        [budge.Feature("a", "binary", direction="increase"), budge.Feature("b", "binary", actionable=False)],
        [budge.constraints.Rule("action.a == 1", name="must move")],
    )
    X = pd.DataFrame({"a": [0, 1], "b": [0, 0]})
    table = budge.audit(lambda t: t["a"].to_numpy(), X, im, target=1).table
    assert table["status"].tolist() == ["ok", "empty"]
    assert table["verdict"].tolist() == ["above", "empty"]
    assert np.isnan(table["rho"].iloc[1])
    still = budge.InteractionModel([budge.Feature("a", "binary", actionable=False)])
    assert budge.audit(lambda t: t["a"].to_numpy(), X, still, target=1).table["status"].tolist() == ["fixed", "fixed"]


def test_people_who_break_the_spec_are_refused_skipped_or_kept() -> None:
    X, im = loans()
    X.loc[2, "ge_1"], X.loc[2, "ge_5"] = 0, 1
    with pytest.raises(InvalidStartError, match="row 2"):
        budge.audit(approve, X, im, target=1)
    skipped = budge.audit(approve, X, im, target=1, on_invalid="skip").table
    assert skipped["status"][2] == skipped["verdict"][2] == "invalid_start"
    assert np.isnan(skipped["rho"][2])
    assert budge.audit(approve, X, im, target=1, on_invalid="keep").table["n"][2] > 0


def test_bad_designs_are_refused() -> None:
    X, im = loans()
    with pytest.raises(DesignError, match="29"):
        budge.audit(approve, X, im, target=1, n=20)
    with pytest.raises(DesignError, match="one of"):
        budge.audit(approve, X, im, target=1, n=50, width=0.1)
    with pytest.raises(ModelError):
        budge.audit({}, X, im, target=1)
    with pytest.raises(InputError, match="draw"):
        budge.audit(approve, X, object(), target=1)


def test_three_tasks_on_one_person_and_on_a_table() -> None:
    X, im = loans()
    one = budge.estimate(approve, X.iloc[0], im, target=1)
    table = budge.estimate(approve, X, im, target=1)
    assert one.rho == table.rho.iloc[0]
    assert "exactly" in str(one)
    found = budge.falsify(approve, X, im, target=1)
    assert (found.found == (table.hits > 0)).all()
    assert (found.impossible == (table.hits == 0)).all()
    drawn = budge.falsify(lambda t: np.zeros(len(t), dtype=int), X.iloc[0], im, target=1, method="sample", check=False)
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
    result = budge.audit(lambda batch: (batch.sum(axis=(1, 2)) > 5).astype(int), X, Noise(), target=1, width=0.05, seed=1)
    from scipy.stats import norm

    for rho, low, high in zip(norm.sf([5, -4], scale=2), result.table["low"], result.table["high"]):
        assert low <= rho <= high  # two intervals at 95 %, fixed seed
    assert result.witness(1).sum() > 5
    again = budge.audit(lambda batch: (batch.sum(axis=(1, 2)) > 5).astype(int), X[::-1], Noise(), target=1, width=0.05, seed=1)
    assert again.table["hits"].tolist() == result.table["hits"].tolist()[::-1]


def test_how_much_is_the_distribution_of_the_change() -> None:
    X, im = dials(3)
    model = budge.models.as_predictor(lambda t: t["dial"].to_numpy() * 4, output="score")
    result = budge.audit(model, X, im, target="higher", n=999, seed=3, how_much=True)
    much = result.how_much(1)
    assert "q0.5" in result.changes["model"][1]
    middle, low, high = result.changes["model"][1]["q0.5"]
    assert low <= 0.0 <= high
    assert abs(middle) < 0.2
    assert str(much)


def test_saved_runs_come_back_whole_and_changes_on_disk_are_found(tmp_path: Path) -> None:
    X, im = loans()
    result = budge.audit(approve, X, im, target=1, seed=3)
    result.save(tmp_path / "run")
    back = budge.Audit.load(tmp_path / "run")
    pd.testing.assert_frame_equal(back.table, result.table, check_exact=True)
    assert back.info["spec_digest"] == im.digest
    assert back.replay(approve, X).table.equals(result.table)
    some = budge.audit(approve, X, im, target=1, seed=3, population=(X.index % 2 == 0))
    some.save(tmp_path / "some")
    groups = pd.Series(["b", None, "a"] * len(X), index=None)[: len(some.table)].set_axis(some.table.index)
    for column in (groups, groups.astype("category")):
        table = some.by(column)
        assert list(table.index.get_level_values("group").unique()) == ["a", "b", "missing"]
        assert table.xs("below", level="verdict")["people"].sum() == len(some.table)
    assert 0 < len(some.table) < len(X)
    assert budge.Audit.load(tmp_path / "some").replay(approve, X).table.equals(some.table)
    with pytest.raises(OutputExistsError):
        result.save(tmp_path / "run")
    with pytest.raises(InputError, match="differs"):
        back.replay(lambda t: 1 - approve(t), X)
    for name in os.listdir(tmp_path / "run"):
        path = tmp_path / "run" / name
        whole = path.read_bytes()
        for broken in (whole[: len(whole) // 2], whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], b""):
            path.write_bytes(broken)
            with pytest.raises(StorageError, match=name):
                budge.Audit.load(tmp_path / "run")
        path.write_bytes(whole)


def test_a_run_of_another_seed_is_not_resumed(tmp_path: Path) -> None:
    X, im = dials(4)
    budge.audit(below_rate, X, im, target=1, n=50, seed=1, journal=tmp_path)
    with pytest.raises(InputError, match="seed"):
        budge.audit(below_rate, X, im, target=1, n=50, seed=2, journal=tmp_path)


CRASH = """
import sys, time
sys.path.insert(0, {here!r})
import numpy as np, budge
from audit_kit import below_rate, dials
def slow(table):
    time.sleep(0.01)
    return below_rate(table)
X, im = dials(120)
budge.audit(slow, X, im, target=1, n=40, seed=6, journal={folder!r}, block_people=3, check=False)
"""


@pytest.mark.parametrize("wait", [0.05, 0.2, 0.35])
def test_a_killed_run_resumes_to_the_same_table(tmp_path: Path, wait: float) -> None:
    _killed(tmp_path, wait)


@pytest.mark.heavy
@pytest.mark.parametrize("wait", np.random.default_rng(0).uniform(0.0, 0.6, 20).round(3).tolist())
def test_a_run_killed_at_any_instant_resumes_to_the_same_table(tmp_path: Path, wait: float) -> None:
    _killed(tmp_path, wait)


def _killed(folder: Path, wait: float) -> None:
    process = subprocess.Popen([sys.executable, "-c", CRASH.format(here=str(HERE), folder=str(folder))])
    deadline = time.monotonic() + 60
    while not list(folder.glob("journal.sqlite*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(wait)
    process.send_signal(signal.SIGKILL)
    process.wait()
    X, im = dials(120)
    asked = {"rows": 0}

    def counting(table: pd.DataFrame) -> np.ndarray:
        asked["rows"] += len(table)
        return below_rate(table)

    whole = budge.audit(below_rate, X, im, target=1, n=40, seed=6, check=False).table
    resumed = budge.audit(counting, X, im, target=1, n=40, seed=6, journal=folder, block_people=50, check=False).table
    pd.testing.assert_frame_equal(whole, resumed, check_exact=True)
    asked["rows"] = 0
    budge.audit(counting, X, im, target=1, n=40, seed=6, journal=folder, check=False)
    assert asked["rows"] == len(X)  # only the people as they are: nothing is drawn again


def test_people_computed_exactly_are_counted_and_unanswered_points_leave_only_ends() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [1, 2, 3]})
    summary = budge.audit(lambda t: np.asarray(t["a"]) > 9, X, im, target=True).summary()
    assert summary.share is not None
    assert (summary.share.low, summary.share.high) == (1.0, 1.0)

    def gaps(table: pd.DataFrame) -> np.ndarray:
        return np.array([None if a > 4 else 0 for a in table["a"]], dtype=object)

    found = budge.estimate(gaps, {"a": 1}, im, target=0, max_unresolved=1.0)
    assert np.isnan(found.rho)
    assert (found.low, found.high) == (0.5, 1.0)
    assert "exactly" not in str(found)
    assert found.to_dict()["unresolved"] == 5
    with pytest.raises(IncompleteError):
        budge.estimate(gaps, {"a": 1}, im, target=0)


def test_objects_reach_the_model_as_they_were_given() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9))])
    X = pd.DataFrame({"a": [1, 2], "u": pd.Series(["p", None], dtype=object)})
    table = budge.audit(lambda t: np.array([v is None for v in t["u"]]), X, im, target=True).table
    assert table["rho"].tolist() == [0.0, 1.0]
    drawn = budge.audit(lambda t: np.array([v is None for v in t["u"]]), X, im, target=True, method="sample", n=40).table
    assert drawn["rho"].tolist() == [0.0, 1.0]
    assert im.sample(X.iloc[[1]], 3).points["u"].dtype == object
