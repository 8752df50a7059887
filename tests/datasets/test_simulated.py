"""Simulated data: reproducible, within its rules, and with the features that a demonstration needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budge import datasets
from budge.datasets import REARREST_NY_COLUMNS, Dataset
from budge.errors import DataError, StorageError

MADE = [datasets.lending, datasets.transplant_cohort, datasets.simulate_rearrest_ny]


@pytest.mark.parametrize("make", MADE)
def test_a_seed_fixes_the_rows(make: Callable[..., Dataset]) -> None:
    pd.testing.assert_frame_equal(make(n=50, seed=3).X, make(n=50, seed=3).X)
    assert not make(n=50, seed=3).X.equals(make(n=50, seed=4).X)
    assert len(make()) == 1000


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize(("n", "seed"), [(0, 0), (-1, 0), (2.5, 0), (True, 0), ("9", 0), (9, -1), (9, None)])
def test_bad_sizes_and_seeds_are_named(make: Callable[..., Dataset], n: object, seed: object) -> None:
    with pytest.raises(DataError, match=r"^(n|seed): "):
        make(n=n, seed=seed)


def test_lending_keeps_its_own_rules() -> None:
    X = datasets.lending(n=5000, seed=1).X
    assert (X["housing"][X["mortgage"] == 1] == "own").all()
    assert (X["savings"] <= 0.5 * X["income"]).all()
    assert (X["income"] >= np.where(X["housing"] == "rent", 6000, 0)).all()
    assert (X["years_at_address"] < X["age"]).all()
    assert X["age"].between(18, 100).all()
    assert X["income"].between(0, 200_000).all()
    assert X["savings"].between(0, 50_000).all()
    assert X["years_at_address"].between(0, 60).all()
    assert set(X["housing"]) == {"rent", "own", "free"}
    assert X["age"].corr(X["years_at_address"]) > 0.2
    assert X["income"].corr(X["savings"]) > 0.3


def logistic(Z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's steps with a small ridge."""
    w = np.zeros(Z.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-Z @ w))
        w += np.linalg.solve((Z * (p * (1 - p))[:, None]).T @ Z + 1e-3 * np.eye(len(w)), Z.T @ (y - p) - 1e-3 * w)
    return w


def design(X: pd.DataFrame) -> np.ndarray:
    columns = [np.ones(len(X)), X["age"] / 10, X["income"] / 1e4, X["n_dependents"], X["mortgage"], X["years_at_address"] / 10]
    return np.column_stack([*columns, X["savings"] / 1e3, X["housing"] == "own", X["housing"] == "free"]).astype(float)


def test_lending_shows_precluded_and_gameable_people() -> None:
    """A model fitted to it refuses people whom no drawn action helps, and people whom many do."""
    data = datasets.lending(n=1000, seed=0)
    w = logistic(design(data.X), data.y.to_numpy())
    refused = data.X[design(data.X) @ w < 0]
    assert len(refused) > 150
    rng, rho = np.random.default_rng(0), []
    for _, x in refused.iterrows():
        n = 400
        moved = pd.DataFrame([x] * n).reset_index(drop=True)
        years = rng.integers(0, 3, n)
        moved["years_at_address"] += years
        moved["age"] += years
        moved["income"] += rng.uniform(0, 5000, n)
        moved["n_dependents"] += rng.integers(0, 2, n)
        moved["mortgage"] = np.maximum(moved["mortgage"], rng.integers(0, 2, n))
        moved["savings"] += rng.integers(-2000, 2001, n)
        moved["housing"] = rng.choice(["rent", "own", "free"], n)
        keeps = (moved["savings"] >= 0) & (moved["savings"] <= 0.5 * moved["income"])
        keeps &= (moved["mortgage"] == 0) | (moved["housing"] == "own")
        keeps &= (moved["housing"] != "rent") | (moved["income"] >= 6000)
        rho.append(float((design(moved[keeps]) @ w >= 0).mean()))
    assert np.mean(np.array(rho) == 0) > 0.05, "nobody is precluded"
    assert np.mean(np.array(rho) > 0.5) > 0.05, "nobody can game the model"


def test_cohort_follows_the_structural_model() -> None:
    X = datasets.transplant_cohort(n=20_000, seed=5).X
    assert X.shape[1] == 30
    assert (X["rdisease_primary_tbs"] != 1).all()
    assert (X["rage_tbs"].min(), X["rage_tbs"].max()) == (30, 80)
    for name, low, high in (("rbilirubin", 15, 200), ("rsodium", 125, 145), ("rinr", 0.9, 2.4), ("rcreatinine", 45, 200)):
        assert X[f"{name}_tbs"].between(low, high).all()
    assert str(X["rsodium_tbs"].dtype) == "int64"
    # Medians are what clipping leaves alone; the standard error of each is below a tenth of the tolerance.
    assert np.log(X["rbilirubin_tbs"].median()) == pytest.approx(3.5, abs=0.03)
    assert X["rsodium_tbs"].median() == pytest.approx(137, abs=0.5)
    assert X["rinr_tbs"].median() == pytest.approx(np.exp(-0.2) + 0.8, abs=0.02)
    assert np.log(X["rcreatinine_tbs"].median()) == pytest.approx(4.2, abs=0.03)
    # Spearman's correlation of a bivariate normal with r is 6/pi asin(r/2); ties and clipping move it a little.
    ranks = X[["rbilirubin_tbs", "rsodium_tbs", "rinr_tbs", "rcreatinine_tbs"]].rank().corr().to_numpy()
    wanted = 6 / np.pi * np.arcsin(np.array([0.447, 0.320, -0.257]) / 2)
    assert ranks[0, 1:] == pytest.approx(wanted, abs=0.05)


def test_no_value_of_the_cohort_depends_on_the_last_bits_of_a_processor() -> None:
    """Draws are keyed by values: a value that differs in its last bit is another patient with other draws."""
    X = datasets.transplant_cohort(n=2000, seed=0).X
    assert X["rinr_tbs"].tolist() == X["rinr_tbs"].round(2).tolist()
    assert X["rinr_tbs"].nunique() > 100


def test_simulated_record_keeps_the_papers_rules() -> None:
    X = datasets.simulate_rearrest_ny(n=3000, seed=2).X
    assert tuple(X.columns) == REARREST_NY_COLUMNS
    assert len(REARREST_NY_COLUMNS) == 29
    record = [c for c in X.columns[:12] if c != "no_prior_arrests"]
    assert (X.loc[X["no_prior_arrests"] == 1, record] == 0).all(axis=None)
    assert 0 < X["no_prior_arrests"].mean() < 0.6
    assert (X[list(X.columns[12:21])].sum(axis=1) == 1).all()
    assert X["age_at_release"].between(17.3, 83.9).all()


def test_rearrest_ny_reads_the_readers_copy(tmp_path: Path) -> None:
    data = datasets.simulate_rearrest_ny(n=40, seed=0)
    table = data.X.assign(rearrest=data.y, extra="x")[["rearrest", "extra", *reversed(REARREST_NY_COLUMNS)]]
    table = table.rename(columns={"prior_arrests>=2": "prior_arrests≥2", "time_served<=1_year": " time_served≤1_year"})
    table.to_csv(tmp_path / "mine.csv", index=False)
    back = datasets.load("rearrest_ny", path=tmp_path / "mine.csv")
    pd.testing.assert_frame_equal(back.X, data.X)
    assert back.y.tolist() == data.y.tolist()


def test_rearrest_ny_names_all_that_is_wrong(tmp_path: Path) -> None:
    data = datasets.simulate_rearrest_ny(n=5, seed=0)
    table = data.X.assign(rearrest=data.y).rename(columns={"female": "femal"}).drop(columns="drug_abuser")
    table["drug_treatment"] = [0, 1, 2, 0, 1]
    table.to_csv(tmp_path / "mine.csv", index=False)
    with pytest.raises(DataError) as caught:
        datasets.rearrest_ny(tmp_path / "mine.csv")
    message = str(caught.value)
    assert "3 problems" in message
    for part in ("'drug_abuser' is missing", "'female' is missing", "did you mean 'femal'?", "row 2, column 'drug_treatment'"):
        assert part in message
    with pytest.raises(StorageError, match="ICPSR"):
        datasets.rearrest_ny(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="not a CSV"):
        datasets.rearrest_ny(tmp_path / "empty.csv")
