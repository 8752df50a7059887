"""Two runs side by side: the table is what the two tables say, intervals hold the truth, and runs that cannot be compared are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, below_rate, dials, loans
from scipy.stats import beta
from streams_kit import LISTED, people_of, score

import budge
from budge import stats
from budge.audit import streamed
from budge.cli import main
from budge.errors import InputError


def harder(table: pd.DataFrame) -> np.ndarray:
    """Approve fewer."""
    return approve(table) & (table["age"] < 40).to_numpy()


def half_rate(table: pd.DataFrame) -> np.ndarray:
    """1 where the dial is below half the rate."""
    return (table["dial"].to_numpy() < table["rate"].to_numpy() / 2).astype(int)


ROUTES: dict[str, dict[str, Any]] = {
    "listed": {}, "drawn": {"method": "sample", "n": 60}, "above": {"claim": "above", "threshold": 0.3}, "no way": {"threshold": 0},
    "one drawn": {"method": "sample", "n": 60},
}  # fmt: skip


@pytest.mark.parametrize("route", ROUTES)
def test_a_comparison_is_what_the_two_tables_say(route: str) -> None:
    X, im = loans()
    wish: dict[str, Any] = {"target": 1, "population": "all"} | ROUTES[route]
    one = budge.audit(approve, X, im, **wish)
    two = budge.audit(harder, X.iloc[2:], im, **({**wish, "method": "auto", "n": None} if route == "one drawn" else wish))
    found = one.compare(replace_digest(two, one))
    both = one.table.join(two.table.add_suffix("_2"), how="inner")
    expected = pd.DataFrame({"first": both["verdict"], "second": both["verdict_2"], "rho_first": both["rho"], "rho_second": both["rho_2"]})
    pd.testing.assert_frame_equal(found.table[list(expected.columns)], expected, check_dtype=False)
    assert (found.table["changed"] == (both["verdict"] != both["verdict_2"])).all()
    assert found.changed.index.isin(both.index[both["verdict"] != both["verdict_2"]]).all()
    assert len(found.changed) == int((both["verdict"] != both["verdict_2"]).sum())
    np.testing.assert_allclose(found.table["difference"], both["rho_2"] - both["rho"])
    for label, row in found.table.iterrows():
        ends = [_ends(both.loc[label], suffix, other) for suffix, other in (("", "_2"), ("_2", ""))]
        np.testing.assert_allclose([row["low"], row["high"]], [ends[1][0] - ends[0][1], ends[1][1] - ends[0][0]], atol=1e-9)
    moved = {(a, b): k for a, b, k in found.moves.itertuples(index=False)}
    assert moved == both.groupby(["verdict", "verdict_2"]).size().to_dict()
    assert found.only == (2, 0)
    side = {"listed": "below", "above": "above", "no way": "none"}.get(route)
    if side is not None:  # everything is known
        first, second = (both[c].eq(side).to_numpy() for c in ("verdict", "verdict_2"))
        assert found.exact
        assert found.counts == (first.sum(), second.sum())
        np.testing.assert_allclose([found.low, found.high], second.mean() - first.mean(), atol=1e-12)
        paired = stats.paired_difference((second & ~first).sum(), (first & ~second).sum(), len(both))
        assert found.population is not None
        assert (found.population.low, found.population.high) == (paired.low, paired.high)
    else:
        assert found.population is None


def replace_digest(run: budge.Audit, as_of: budge.Audit) -> budge.Audit:
    """Return the run with the people of another: some of the same people."""
    from dataclasses import replace

    return replace(run, info={**run.info, "data_digest": as_of.info["data_digest"]})


def _ends(row: pd.Series, own: str, other: str) -> tuple[float, float]:
    """Return a Clopper–Pearson interval at half the error where both are drawn, at the whole where the other is known."""
    hits, n = row[f"hits{own}"], row[f"n{own}"]
    if row[f"method{own}"] == "exact":
        return row[f"rho{own}"], row[f"rho{own}"]
    tail = (0.05 if row[f"method{other}"] == "exact" else 0.025) / 2
    return (0.0 if hits == 0 else beta.ppf(tail, hits, n - hits + 1)), (1.0 if hits == n else beta.ppf(1 - tail, hits + 1, n - hits))


@pytest.mark.parametrize("seeds", [(1, 1), (1, 2)])
def test_intervals_hold_the_truth_whether_or_not_draws_are_shared(seeds: tuple[int, int]) -> None:
    X, im = dials(300, seed=4)
    one, two = (budge.audit(m, X, im, target=1, population="all", n=60, seed=s) for m, s in zip((below_rate, half_rate), seeds))
    found = one.compare(two)
    truth = -X["rate"].to_numpy() / 2
    missed = (found.table["low"] > truth + 1e-12) | (found.table["high"] < truth - 1e-12)
    assert missed.mean() <= 0.05
    share = [(X["rate"] * k < 0.1 - 1e-12).mean() for k in (1, 0.5)]
    assert found.low - 1e-12 <= share[1] - share[0] <= found.high + 1e-12
    assert found.low > -0.5
    assert "95 % confidence" in str(found)
    assert "known exactly" not in str(found)


def test_runs_that_ask_different_questions_are_refused() -> None:
    X, im = loans()
    base = budge.audit(approve, X, im, target=1)
    others = {"threshold": {"threshold": 0.2}, "claim": {"claim": "above", "threshold": 0.1}, "alpha": {"alpha": 0.1}, "targets": {"target": 0}}
    for what, wish in others.items():
        other = budge.audit(approve, X, im, **({"target": 1} | wish))
        with pytest.raises(InputError, match=what):
            base.compare(other)
    with pytest.raises(InputError, match="named by their position"):
        base.compare(budge.audit(approve, X.iloc[::-1].reset_index(drop=True), im, target=1))
    with pytest.raises(InputError, match="nobody is in both"):
        base.compare(replace_digest(budge.audit(approve, X.set_axis(X.index + 100), im, target=1), base))
    named = X.set_index("note")
    one, two = budge.audit(approve, named, im, target=1, population="all"), budge.audit(approve, named.iloc[::-1], im, target=1, population="all")
    found = one.compare(two)
    assert not found.table["changed"].any()
    assert "matched by their labels" in str(found)
    loose = budge.audit(approve, X, im.freeze("home"), target=1)
    assert "interaction models differ" in str(base.compare(loose))


def test_several_models_of_one_run_can_be_compared() -> None:
    X, im = loans()
    both = budge.audit({"old": approve, "new": harder}, X, im, target=1)
    found = both.compare(both, model="old", other_model="new")
    alone = budge.audit(approve, X, im, target=1).compare(budge.audit(harder, X, im, target=1))
    pd.testing.assert_frame_equal(found.table, alone.table)
    assert f"{alone.only[1]:,} in the second alone: they have the target in the other run" in str(found)
    with pytest.raises(InputError, match="several models"):
        both.compare(both)


def test_streams_are_compared_as_tables_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="streams are Parquet files")
    people = people_of(400)
    people.to_parquet(tmp_path / "people.parquet")
    runs = {}
    for name, cut in (("one", 8), ("two", 9)):

        def model(table: pd.DataFrame, cut: int = cut) -> Any:
            return score(table) * (table["a"] < cut).astype(int)

        stream = budge.audit(model, str(tmp_path / "people.parquet"), LISTED, target=1, journal=tmp_path / name)
        runs[name] = stream, budge.audit(model, people, LISTED, target=1)
    (s1, t1), (s2, t2) = runs["one"], runs["two"]
    assert isinstance(s1, streamed.StreamedAudit)
    found = budge.Audit.load(tmp_path / "one").compare(budge.Audit.load(tmp_path / "two"))
    pd.testing.assert_frame_equal(found.table, t1.compare(t2).table, check_names=False)
    assert s1.compare(s2).sentences()[0] == t1.compare(t2).sentences()[0]
    monkeypatch.setattr(streamed, "MOST_LOADED", 100)
    with pytest.raises(InputError, match="more than 100"):
        s1.compare(s2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, im = loans()
    one, two = budge.audit(approve, X, im, target=1, population="all"), budge.audit(harder, X, im, target=1, population="all")
    one.save(tmp_path / "one")
    two.save(tmp_path / "two")
    places = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert main(["compare", *places, "-o", str(tmp_path / "both.csv")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert one.compare(two).sentences()[0] in told
    assert pd.read_csv(tmp_path / "both.csv")["second"].tolist() == two.table["verdict"].tolist()
    assert main(["compare", *places, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["moves"] == one.compare(two).moves.to_dict(orient="records")
    many = int((one.table["verdict"] != two.table["verdict"]).sum())
    assert many
    assert main(["compare", *places, "-q", "--fail-if", f"count(changed) >= {many}"]) == 1
    assert main(["compare", *places, "-q", "--fail-if", f"count(changed) > {many}", "--fail-if", "difference_high < -0.9"]) == 0
    assert main(["compare", *places, "-q", "--fail-if", "count(first == 'belwo') > 0"]) == 2
    assert main(["compare", *places, "-o", str(tmp_path / "both.csv")]) == 2
    capsys.readouterr()
    assert main(["compare", places[0], str(tmp_path / "twoo")]) == 3
    assert "did you mean 'two'?" in capsys.readouterr().err
