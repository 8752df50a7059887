"""The public data sets in the paper's encodings: figures that a slip in a derivation would change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budge import datasets

pytestmark = pytest.mark.usefixtures("data_folder")


def test_german_has_the_papers_features() -> None:
    data = datasets.german()
    assert data.X.shape == (1000, 36)
    assert data.X.columns[:5].tolist() == [
        "Age",
        "YearsAtResidence",
        "YearsEmployed>=1",
        "CheckingAcct_exists",
        "CheckingAcct>=0",
    ]
    assert data.X.columns[-2:].tolist() == ["HistoryOfBankInstallments", "HistoryOfStoreInstallments"]
    assert int(data.y.sum()) == 700
    assert (data.X["Age"].min(), data.X["Age"].max()) == (19, 75)
    assert set(np.unique(data.X.drop(columns=["Age", "YearsAtResidence", "LiablePersons", "LoanRate"]))) == {0, 1}


def test_german_encodings_are_consistent() -> None:
    X = datasets.german().X
    assert (X["CheckingAcct>=0"] <= X["CheckingAcct_exists"]).all()
    assert (X["SavingsAcct>=100"] <= X["SavingsAcct_exists"]).all()
    assert (X.filter(like="Housing=").sum(axis=1) == 1).all()
    amounts = X.filter(like="CreditAmt>=").to_numpy()
    assert (np.diff(amounts, axis=1) <= 0).all()
    assert int((X["Male"] == 1).sum()) == 690
    assert int((X["HasGuarantor"] == 1).sum()) == 52


def test_german_reaches_the_published_number_of_points() -> None:
    """With the authors' two-year step, 1000 applicants reach 106,752 points (median 96, at most 432)."""
    X = datasets.german().X
    years = np.minimum(7 - X["YearsAtResidence"], 2) + 1
    free = 2 ** (1 - X[["YearsEmployed>=1", "HasGuarantor", "HistoryOfBankInstallments", "HistoryOfStoreInstallments"]]).sum(
        axis=1
    )
    checking = 3 - X["CheckingAcct_exists"] - X["CheckingAcct>=0"]
    savings = 3 - X["SavingsAcct_exists"] - X["SavingsAcct>=100"]
    points = years * free * checking * savings
    assert (int(points.sum()), float(points.median()), int(points.max())) == (106_752, 96.0, 432)


def test_twitterbot_has_the_papers_features() -> None:
    data = datasets.twitterbot()
    X = data.X
    assert X.shape == (3431, 20)
    assert int(data.y.sum()) == 1939
    for plural in ("tweets", "retweets", "replies"):
        assert ((X[f"no_{plural}"] == 1) == (X[f"num_{plural}"] == 0)).all()
    assert X[["no_tweets", "no_retweets", "no_replies"]].sum().tolist() == [375, 1113, 622]
    for prefix in ("followers>=", "age_of_account>="):
        assert (np.diff(X.filter(like=prefix).to_numpy(), axis=1) <= 0).all()
    assert (X["followers>=1k"] == 1).all()
    assert int(X["followers>=10M"].sum()) == 50
    assert int(X["age_of_account>=180_days"].sum()) == 3431 - 59


def test_twitterbot_reads_the_impossible_ratio_as_zero() -> None:
    raw = datasets.raw("twitterbot")["follower_friend_ratio"]
    ratio = datasets.twitterbot().X["follower_friend_ratio"]
    assert int((raw < 0).sum()) == 1
    assert ratio[raw < 0].tolist() == [0.0]
    assert (ratio[raw >= 0] == raw[raw >= 0]).all()


def test_twitterbot_sources_are_read_from_the_list_of_codes() -> None:
    raw = datasets.raw("twitterbot")["source_identity"]
    X = datasets.twitterbot().X
    assert (X.loc[raw == "[2;1]", ["source_web", "source_mobile", "source_app", "source_news"]] == [1, 1, 0, 0]).all(axis=None)
    assert (X.loc[raw == "[3;1;6;2]", ["source_web", "source_mobile", "source_app", "source_news"]] == 1).all(axis=None)
    assert (X.loc[raw == "[0]"].filter(like="source_") == 0).all(axis=None)


def test_compas_record_is_consistent() -> None:
    data = datasets.compas()
    X, raw = data.X, datasets.raw("compas")
    assert X.shape == (6172, 15)
    assert data.y.equals(raw["two_year_recid"])
    record = X.columns[1:8]
    assert (X.loc[X["no_record"] == 1, record] == 0).all(axis=None)
    assert (X.loc[X["no_record"] == 0, record].sum(axis=1) > 0).all()
    assert int(X["no_record"].sum()) == 2085 - 75  # no priors, less those with a juvenile record
    assert (X[[c for c in X if c.startswith("age_")]].sum(axis=1) == 1).all()
    assert (X["priors=1"] + X["priors>=2"] <= 1).all()


def test_taiwan_is_as_published() -> None:
    data = datasets.taiwan()
    assert data.X.shape == (30_000, 23)
    assert "ID" not in data.X
    assert data.y.mean() == pytest.approx(0.2212)


def test_loaders_take_a_folder_or_a_file(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUDGE_DATA")
    pd.testing.assert_frame_equal(datasets.compas(path=data_folder).X, datasets.compas(path=data_folder / "compas.csv").X)
    assert len(datasets.load("german", path=data_folder)) == 1000
