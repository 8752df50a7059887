"""Data to try things on: a synthetic lending set, simulated patients, and loaders for public data.

No real data is in the package. A loader looks in the ``path`` given, in ``$BUDGE_DATA``, in the user's cache, and then
downloads the original; in each case the SHA-256 of the file is checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from budge.datasets.bots import twitterbot
from budge.datasets.credit import german, taiwan
from budge.datasets.dataset import Dataset
from budge.datasets.files import raw
from budge.datasets.loans import lending
from budge.datasets.recidivism import REARREST_NY_COLUMNS, compas, north_carolina, rearrest_ny, simulate_rearrest_ny
from budge.datasets.scorecard import Scorecard
from budge.datasets.transplant import TbsTables, default_patient, tbs_tables, transplant_benefit_score, transplant_cohort
from budge.errors import DataError, nearest

__all__ = [
    "REARREST_NY_COLUMNS",
    "Dataset",
    "Scorecard",
    "TbsTables",
    "compas",
    "default_patient",
    "german",
    "lending",
    "load",
    "names",
    "north_carolina",
    "raw",
    "rearrest_ny",
    "simulate_rearrest_ny",
    "spec_path",
    "taiwan",
    "tbs_tables",
    "transplant_benefit_score",
    "transplant_cohort",
    "twitterbot",
]

_FROM_FILES: dict[str, Callable[..., Dataset]] = {
    "german": german,
    "twitterbot": twitterbot,
    "compas": compas,
    "north_carolina": north_carolina,
    "taiwan": taiwan,
}
_MADE: dict[str, Callable[[], Dataset]] = {
    "lending": lending,
    "transplant_cohort": transplant_cohort,
    "simulate_rearrest_ny": simulate_rearrest_ny,
}


def names() -> list[str]:
    """The names that `load` knows.

    Examples
    --------
    >>> names()
    ['compas', 'german', 'lending', 'north_carolina', 'rearrest_ny', 'simulate_rearrest_ny', 'taiwan', 'transplant_cohort', 'twitterbot']
    """
    return sorted([*_FROM_FILES, *_MADE, "rearrest_ny"])


def load(name: str, *, path: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by its name.

    Parameters
    ----------
    name : str
        One of `names`.
    path : path, optional
        The file, or its folder; simulated sets take none, ``rearrest_ny`` needs one.

    Raises
    ------
    DataError
        The name is not known, or the path does not fit it.
    StorageError
        The file is nowhere, or is not the one that is known.

    Examples
    --------
    >>> len(load("lending"))
    1000
    >>> load("lendin")
    Traceback (most recent call last):
    budge.errors.DataError: name: no such data set (got 'lendin'); did you mean 'lending'?
    """
    if name in _FROM_FILES:
        return _FROM_FILES[name](path=path)
    if name == "rearrest_ny":
        if path is None:
            raise DataError(
                "rearrest_NY is restricted",
                where="path",
                remedy="give the path of your own CSV copy, or load simulate_rearrest_ny",
            )
        return rearrest_ny(path)
    if name not in _MADE:
        raise DataError("no such data set", where="name", got=name, remedy=nearest(name, names()))
    if path is not None:
        raise DataError(f"{name} is simulated and reads no file", where="path", got=str(path), remedy="leave path out")
    return _MADE[name]()


def spec_path(name: str) -> Path:
    """The spec file of an interaction model that ships with the package.

    Examples
    --------
    >>> spec_path("lending").name
    'lending.yaml'
    """
    shipped = {file.stem: file for file in Path(__file__).parent.glob("*.yaml")}
    if name not in shipped:
        raise DataError("no such spec file", where="name", got=name, remedy=nearest(name, shipped))
    return shipped[name]
