"""The Transplant Benefit Score: the calculator's default patient, and an independent computation for one with cancer."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from budge import datasets
from budge.errors import DataError

pytestmark = pytest.mark.usefixtures("data_folder")


def test_the_default_patient() -> None:
    score = datasets.transplant_benefit_score(datasets.default_patient())
    assert score["need"].item() == pytest.approx(1387.112, abs=5e-4)
    assert score["utility"].item() == pytest.approx(1595.993, abs=5e-4)
    assert score["tbs"].item() == pytest.approx(1595.993 - 1387.112, abs=1e-3)


def test_need_of_a_patient_with_cancer_term_by_term() -> None:
    """The 16 terms of the cancer need model that are not zero here, written out by hand."""
    patient = datasets.default_patient()
    patient[["rage_tbs", "rgender_tbs", "rdisease_primary_tbs", "rdisease_secondary_tbs", "rregistration_tbs"]] = [61, 1, 1, 2, 5]
    patient[["rbilirubin_tbs", "rcreatinine_tbs", "rsodium_tbs", "rrenal_tbs", "rinpatient_tbs", "rmax_afp_tbs"]] = [
        44,
        90,
        131,
        1,
        1,
        300,
    ]
    patient["rinr_tbs"], patient["rmax_tumour_size_tbs"], patient.loc[:, "rtumour_number_tbs"] = 1.4, 3.2, "2"
    predictor = (
        0.68275 * (61 - 56.95303)
        - 0.00592 * (61**2 - 3303.43182)
        - 0.02769
        + 0.3635  # hepatitis C as the secondary disease
        + 0.12636 * (log(90) - 4.31761)
        + 10.39328 * (log(44) - 3.09368)
        + 1.80141 * (log(1.4) - 0.20828)
        + 0.21044 * (131 - 138.28333)
        + 0.17586
        - 0.19193
        + 0.67265  # registration level 5 is the year 2010
        - 0.07307 * (log(44) * 131 - 426.70281)
        + 0.08003 * (log(301) - 3.03361)
        + 0.19334 * (3.2 - 2.64273)
        + 0.19005
    )
    baseline = datasets.tbs_tables().cancer["m1_surv"]
    wanted = sum(s ** exp(predictor) for s in baseline)
    assert len(baseline) == 1826
    assert datasets.transplant_benefit_score(patient)["need"].item() == pytest.approx(wanted, rel=1e-12)


def test_many_patients_at_once_are_the_same_as_one_by_one() -> None:
    """Across the seam of a block and with both kinds of patient mixed."""
    tables = datasets.tbs_tables()
    X = datasets.transplant_cohort(n=4100, seed=2).X
    X.loc[::3, "rdisease_primary_tbs"] = 1
    together = datasets.transplant_benefit_score(X, tables=tables)
    for row in (0, 1, 4095, 4096, 4099):
        alone = datasets.transplant_benefit_score(X.iloc[[row]], tables=tables)
        np.testing.assert_allclose(alone.to_numpy()[0], together.iloc[row].to_numpy(), rtol=1e-12)
    assert together.index.equals(X.index)
    assert together[["need", "utility"]].to_numpy().min() >= 0
    assert together[["need", "utility"]].to_numpy().max() <= 1826


def test_levels_are_read_as_documented() -> None:
    tables = datasets.tbs_tables()

    def utility(**changes: object) -> float:
        return float(
            datasets.transplant_benefit_score(datasets.default_patient().assign(**changes), tables=tables)["utility"].item()
        )

    base = utility()
    assert utility(previous_tx_tbs=1) != base  # group 10
    assert utility(dtype_tbs=1) < base  # donation after circulatory death
    assert utility(ddiabetes_tbs=3) != utility(ddiabetes_tbs=2) != base
    assert utility(rdisease_secondary_tbs=2) == utility(rdisease_primary_tbs=2)  # the lowest number of the three counts


def test_missing_columns_are_named() -> None:
    with pytest.raises(DataError, match=r"'rage_tbs' is missing.*\n.*'dbmi_tbs' is missing"):
        datasets.transplant_benefit_score(datasets.default_patient().drop(columns=["rage_tbs", "dbmi_tbs"]))
    with pytest.raises(DataError, match="number of tumours"):
        datasets.transplant_benefit_score(datasets.default_patient().assign(rtumour_number_tbs="4"))
