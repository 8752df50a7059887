"""Liver transplants: patients simulated from the paper's structural model, and the Transplant Benefit Score."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.datasets.dataset import Dataset
from budge.datasets.files import raw
from budge.datasets.sizes import rows_and_generator
from budge.errors import DataError, Problem, nearest

__all__ = ["TbsTables", "default_patient", "tbs_tables", "transplant_benefit_score", "transplant_cohort"]

Floats = npt.NDArray[np.float64]

TUMOUR_NUMBERS = ("0 or 1", "2", "3+")
_DEFAULT: dict[str, object] = {
    "rinpatient_tbs": 0,
    "rregistration_tbs": 1,
    "rwaiting_time_tbs": 30,
    "rage_tbs": 52,
    "rgender_tbs": 0,
    "rdisease_primary_tbs": 3,
    "rdisease_secondary_tbs": 9,
    "rdisease_tertiary_tbs": 9,
    "previous_tx_tbs": 0,
    "rprevious_surgery_tbs": 0,
    "rbilirubin_tbs": 20,
    "rinr_tbs": 1.0,
    "rcreatinine_tbs": 70,
    "rrenal_tbs": 0,
    "rsodium_tbs": 135,
    "rpotassium_tbs": 4.5,
    "ralbumin_tbs": 30,
    "rencephalopathy_tbs": 0,
    "rascites_tbs": 0,
    "rdiabetes_tbs": 0,
    "rmax_afp_tbs": 5,
    "rtumour_number_tbs": "0 or 1",
    "rmax_tumour_size_tbs": 1.0,
    "dage_tbs": 52,
    "dcause_tbs": 1,
    "dbmi_tbs": 25.0,
    "ddiabetes_tbs": 1,
    "dtype_tbs": 0,
    "bloodgroup_compatible_tbs": 0,
    "splittable_tbs": 0,
}
#: Correlation of bilirubin, sodium, INR and creatinine before their structural equations.
_CORRELATION = np.array(
    [[1.0, 0.447, 0.320, -0.257], [0.447, 1.0, 0.370, -0.043], [0.320, 0.370, 1.0, -0.091], [-0.257, -0.043, -0.091, 1.0]]
)


def default_patient(n: int = 1) -> pd.DataFrame:
    """The calculator's default patient, ``n`` times: 52 years old, no cancer, normal laboratory values.

    Examples
    --------
    >>> default_patient()["rage_tbs"].item()
    52
    """
    frame = pd.DataFrame({name: [value] * n for name, value in _DEFAULT.items()})
    frame["rtumour_number_tbs"] = pd.Categorical(frame["rtumour_number_tbs"], categories=list(TUMOUR_NUMBERS))
    return frame


def transplant_cohort(n: int = 1000, seed: int = 0) -> Dataset:
    """Patients without cancer, simulated from the structural model of the paper's appendix; 30 features.

    Age is uniform on 30 to 80. Bilirubin, sodium, INR and creatinine come from one correlated normal draw through the
    paper's structural equations. Columns that the paper's table calls whole are rounded, INR has two digits. All else is the default patient.
    The outcome has no meaning here and is 0: the study asks about the score itself.

    Examples
    --------
    >>> transplant_cohort(n=5, seed=1).X.shape
    (5, 30)
    """
    n, rng = rows_and_generator(n, seed)
    frame = default_patient(n)
    frame["rgender_tbs"] = rng.integers(0, 2, n)
    frame["rage_tbs"] = rng.integers(30, 81, n)
    frame["ralbumin_tbs"] = rng.integers(30, 41, n)
    frame["rpotassium_tbs"] = rng.uniform(3.5, 5.0, n)
    noise = rng.standard_normal((n, 4)) @ np.linalg.cholesky(_CORRELATION).T
    bilirubin, sodium, inr, creatinine = noise.T
    frame["rbilirubin_tbs"] = _whole(np.exp(0.5 * bilirubin + 3.5), 15, 200)
    frame["rsodium_tbs"] = _whole(5 * sodium + 137, 125, 145)
    # draws are keyed by the values of a row, and processors differ in the last bit of a product: two digits are the same on all of them
    frame["rinr_tbs"] = np.clip(np.exp(0.3 * inr - 0.2) + 0.8, 0.9, 2.4).round(2)
    frame["rcreatinine_tbs"] = _whole(np.exp(0.4 * creatinine + 4.2), 45, 200)
    return Dataset(
        "transplant_cohort",
        frame,
        pd.Series(np.zeros(n, dtype="int64"), name="none"),
        "Liver patients without cancer, simulated; ages uniform on 30 to 80; the outcome is a placeholder",
        "the paper's structural model after Attia et al. 2023, on the default patient of the open TBS calculator",
        "MIT",
    )


def _whole(values: Floats, low: int, high: int) -> npt.NDArray[np.int64]:
    return np.rint(np.clip(values, low, high)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class TbsTables:
    """Coefficients and baseline survival of the Transplant Benefit Score: read once, used for many patients."""

    betas: pd.DataFrame
    cancer: pd.DataFrame
    noncancer: pd.DataFrame


def tbs_tables(*, path: str | os.PathLike[str] | None = None) -> TbsTables:
    """The three published tables of the score.

    Parameters
    ----------
    path : path, optional
        The folder of ``tbs_betas.csv``, ``tbs_surv_cancer.csv`` and ``tbs_surv_noncancer.csv``.
    """
    return TbsTables(raw("tbs_betas", path=path), raw("tbs_surv_cancer", path=path), raw("tbs_surv_noncancer", path=path))


def transplant_benefit_score(X: pd.DataFrame, *, tables: TbsTables | None = None) -> pd.DataFrame:
    """Need, utility and benefit of each patient, in days of the first five years.

    *Need* is the expected survival without a transplant, *utility* with one, ``tbs`` is utility minus need. A patient
    with cancer in any of the three diseases is scored by other models than one without.

    Parameters
    ----------
    X : pandas.DataFrame
        Patients, with the 30 columns of `default_patient`.
    tables : TbsTables, optional
        What `tbs_tables` gives; read anew if left out.

    Returns
    -------
    pandas.DataFrame
        Columns ``need``, ``utility``, ``tbs``; the index of ``X``.

    Examples
    --------
    >>> from budge import datasets
    >>> datasets.transplant_benefit_score(datasets.default_patient())["need"].round(3).item()    # doctest: +SKIP
    1387.112
    """
    DataError.raise_if(
        Problem("X", f"column {name!r} is missing", remedy=nearest(name, [str(c) for c in X.columns]))
        for name in _DEFAULT
        if name not in X
    )
    tables = tables or tbs_tables()
    variables = _variables(X)
    diseases = X[["rdisease_primary_tbs", "rdisease_secondary_tbs", "rdisease_tertiary_tbs"]].to_numpy()
    cancer = (diseases == 1).any(axis=1)
    scores: dict[str, Floats] = {}
    for score, model in (("need", "m1"), ("utility", "m2")):
        days = np.empty(len(X))
        for kind, baseline, rows in (("cancer", tables.cancer, cancer), ("noncancer", tables.noncancer, ~cancer)):
            if rows.any():
                predictor = _linear_predictor(
                    tables.betas, f"{model}_{kind}", {k: v[rows] for k, v in variables.items()}, int(rows.sum())
                )
                days[rows] = _expected_days(baseline[f"{model}_surv"].to_numpy(dtype=np.float64), predictor)
        scores[score] = days
    return pd.DataFrame({**scores, "tbs": scores["utility"] - scores["need"]}, index=X.index)


def _variables(X: pd.DataFrame) -> dict[str, Floats]:
    """The variables by the names that the coefficients use; factors by level come from `_value`."""

    def column(name: str) -> Floats:
        return np.asarray(X[name].to_numpy(), dtype=np.float64)

    first = np.minimum.reduce([column(f"rdisease_{rank}_tbs") for rank in ("primary", "secondary", "tertiary")])
    hcv = np.logical_or.reduce([column(f"rdisease_{rank}_tbs") == 2 for rank in ("primary", "secondary", "tertiary")])
    tumours = X["rtumour_number_tbs"].astype(str).to_numpy()
    if unknown := sorted(set(tumours) - set(TUMOUR_NUMBERS)):
        raise DataError(
            "unknown number of tumours", where="rtumour_number_tbs", got=unknown[0], remedy=f"one of {TUMOUR_NUMBERS}"
        )
    registration = column("rregistration_tbs")
    diabetes = column("ddiabetes_tbs")
    return {
        "RAGE": column("rage_tbs"),
        "RGENDER": column("rgender_tbs"),
        "RHCV": hcv.astype(np.float64),
        "RDISEASE GROUP": np.where(column("previous_tx_tbs") > 0, 10.0, first),
        "RCREATININE": column("rcreatinine_tbs"),
        "RBILIRUBIN": column("rbilirubin_tbs"),
        "RINR": column("rinr_tbs"),
        "RSODIUM": column("rsodium_tbs"),
        "RPOTASSIUM": column("rpotassium_tbs"),
        "RALBUMIN": column("ralbumin_tbs"),
        "RRENAL": column("rrenal_tbs"),
        "RINPATIENT": column("rinpatient_tbs"),
        "RREGISTRATION YEAR": np.where(registration == 1, 2013.0, registration + 2005),
        "RPREVIOUS ABDOMINAL SURGERY": column("rprevious_surgery_tbs"),
        "RENCEPHALOPATHY": column("rencephalopathy_tbs"),
        "RASCITES": column("rascites_tbs"),
        "RWAITING TIME+1": column("rwaiting_time_tbs") + 1,
        "RDIABETES": column("rdiabetes_tbs"),
        "RMAXIMUM AFP LEVEL+1": column("rmax_afp_tbs") + 1,
        "RMAXIMUM TUMOUR SIZE": column("rmax_tumour_size_tbs"),
        "RTWO TUMOUR": (tumours == "2").astype(np.float64),
        "RTHREE OR MORE TUMOURS": (tumours == "3+").astype(np.float64),
        "DAGE": column("dage_tbs"),
        "DCAUSE OF DEATH": column("dcause_tbs"),
        "DBMI": column("dbmi_tbs"),
        "DHISTORY OF DIABETES": np.where(diabetes == 3, 9.0, diabetes),  # the third level is "unknown", coded 9
        "DTYPE": column("dtype_tbs") + 1,
        "BLOOD GROUP COMPATIBILITY": column("bloodgroup_compatible_tbs"),
        "LIVER MEETS SPLIT CRITERIA": column("splittable_tbs"),
    }


def _linear_predictor(betas: pd.DataFrame, model: str, variables: dict[str, Floats], rows: int) -> Floats:
    total = np.zeros(rows)
    for row in betas.to_dict("records"):
        beta = float(row[f"{model}_beta"])
        if beta == 0:
            continue  # also keeps what a model does not use (the log of an AFP, say) out of it
        name = re.sub(r" - MEAN\(.*$", "", str(row["parameter"])).removesuffix(" SQUARED")
        first, *second = name.split("*")
        term = _value(first, variables) ** float(row["power"])
        if row["ln_1"]:
            term = np.log(term)
        for other in second:
            factor = _value(other, variables)
            term = term * (np.log(factor) if row["ln_2"] else factor)
        total += beta * (term - float(row[f"{model}_mean"]))
    return total


def _value(name: str, variables: dict[str, Floats]) -> Floats:
    """``RAGE``, ``LN(RINR)`` (the log itself is told by its own column) or ``DTYPE=2`` (1 at that level)."""
    plain, _, level = name.removeprefix("LN(").removesuffix(")").partition("=")
    values = variables[plain]
    return values if not level else (values == float(level)).astype(np.float64)


def _expected_days(survival: Floats, predictor: Floats) -> Floats:
    """The sum over days of ``survival ** exp(predictor)``; days of equal baseline are counted once, in blocks of patients."""
    levels, counts = np.unique(survival, return_counts=True)
    logs = np.log(levels)
    days = np.empty(len(predictor))
    for start in range(0, len(predictor), 4096):
        hazard = np.exp(predictor[start : start + 4096, None])
        days[start : start + 4096] = np.exp(hazard * logs) @ counts
    return days
