"""Where a public file is: a given path, ``BUDGE_DATA``, the user's cache, or its origin; its SHA-256 is always checked."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import logging
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from budge.errors import DataError, StorageError, nearest

__all__ = ["SOURCES", "Source", "cache_folder", "locate", "raw"]

log = logging.getLogger(__name__)

#: No original is near this size; more is not the file that was asked for.
LARGEST_DOWNLOAD = 50_000_000


@dataclass(frozen=True)
class Source:
    """A public file: its name, its digest, and how to get it from its origin.

    ``url`` is None where no lasting address is known; ``origin`` says in words where the data comes from.
    ``convert`` turns what the address gives into the file as it is known here.
    """

    file: str
    sha256: str
    origin: str
    url: str | None = None
    convert: Callable[[bytes], bytes] = bytes


def cache_folder() -> Path:
    """The folder in which downloads are kept: ``$XDG_CACHE_HOME/budge``, else ``~/.cache/budge``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "budge"


def locate(source: Source, path: str | os.PathLike[str] | None = None) -> Path:
    """The path of a checked copy of the file, downloaded if need be.

    Raises
    ------
    StorageError
        It is in none of the places, cannot be downloaded, or is not the file that is known.
    """
    looked = []
    for place in _places(source, path):
        try:
            if place.is_file():
                _check(place.read_bytes(), source, str(place))
                return place
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError("the file cannot be read", where=str(place), got=str(error), remedy="mind permissions") from error
        looked.append(str(place))
    if os.environ.get("BUDGE_OFFLINE"):
        reason = "downloads are off (BUDGE_OFFLINE is set)"
    elif source.url is None:
        reason = "no lasting address for a download is known"
    else:
        try:
            return _download(source, source.url)
        except ConnectionError as error:
            reason = f"the download from {source.url} failed ({error})"
    raise StorageError(
        f"{source.file} was not found; looked for {', '.join(looked)}; {reason}",
        remedy="put the file into a folder and give that as path= or in the environment variable BUDGE_DATA; "
        f"origin: {source.origin}",
    )


def raw(name: str, *, path: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """A public file as it came, before any encoding.

    Parameters
    ----------
    name : str
        One of the keys of ``SOURCES``: the file's name without ``.csv``.
    path : path, optional
        The file, or a folder that holds it; else ``BUDGE_DATA``, the cache and the origin are tried.

    Examples
    --------
    >>> sorted(SOURCES)[:3]
    ['compas', 'german_credit', 'taiwan_credit']
    """
    if name not in SOURCES:
        raise DataError("no such file", where="name", got=name, remedy=nearest(name, SOURCES))
    return pd.read_csv(locate(SOURCES[name], path))


def _places(source: Source, path: str | os.PathLike[str] | None) -> list[Path]:
    places = []
    if path is not None:
        given = Path(path)
        places.append(given / source.file if given.is_dir() or not given.suffix else given)
    if folder := os.environ.get("BUDGE_DATA"):
        places.append(Path(folder) / source.file)
    places.append(cache_folder() / source.file)
    return places


def _check(content: bytes, source: Source, where: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != source.sha256:
        raise StorageError(
            f"this is not the {source.file} that is known: its SHA-256 is {digest}, expected {source.sha256}",
            where=where,
            remedy="remove the file, or replace it by the original; results on other data would not be comparable",
        )


def _fetch(url: str) -> bytes:
    """What the address answers; any failure on the way is a ``ConnectionError``."""
    from http.client import HTTPException  # late: most sessions download nothing
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers={"User-Agent": "budge"}), timeout=60) as answer:
            content: bytes = answer.read(LARGEST_DOWNLOAD + 1)
    except (OSError, HTTPException) as error:
        raise ConnectionError(str(getattr(error, "reason", error))) from error
    return content


def _download(source: Source, url: str) -> Path:
    log.info("downloading %s from %s", source.file, url)
    content = _fetch(url)
    if len(content) > LARGEST_DOWNLOAD:
        size = f"over {LARGEST_DOWNLOAD} bytes"
        raise StorageError("the answer is too large to be the file", where=url, got=size, remedy="get it by hand")
    try:
        content = source.convert(content)
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise StorageError("the answer is not the original file", where=url, got=str(error), remedy="get it by hand") from error
    _check(content, source, url)
    return _keep(content, cache_folder() / source.file)


def _keep(content: bytes, target: Path) -> Path:
    """Write at once or not at all: a killed download leaves no half file in the cache."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        remedy = "set XDG_CACHE_HOME to a folder that can be written"
        raise StorageError("the download cannot be kept", where=str(target), got=str(error), remedy=remedy) from error
    return target


def _german_from_zip(content: bytes) -> bytes:
    """UCI's archive holds ``german.data``: codes apart by blanks, no header."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        lines = archive.read("german.data").decode("ascii").split("\n")
    return _rows(GERMAN_COLUMNS, [line.split() for line in lines if line.strip()])


def _taiwan_from_csv(content: bytes) -> bytes:
    """UCI's table calls its columns X1 to X23 and Y."""
    lines = list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))
    return _rows(TAIWAN_COLUMNS, [line for line in lines[1:] if line])


def _compas_from_csv(content: bytes) -> bytes:
    """ProPublica's usual filter, and the nine columns that carry neither names nor dates."""
    lines = list(csv.reader(io.StringIO(content.decode("utf-8"))))
    at = {name: lines[0].index(name) for name in (*COMPAS_COLUMNS, "days_b_screening_arrest", "is_recid", "score_text")}
    kept = []
    for line in lines[1:]:
        days = line[at["days_b_screening_arrest"]]
        if not days or abs(float(days)) > 30 or line[at["is_recid"]] == "-1":
            continue
        if line[at["c_charge_degree"]] == "O" or line[at["score_text"]] == "N/A":
            continue
        kept.append([line[at[name]] for name in COMPAS_COLUMNS])
    return _rows(COMPAS_COLUMNS, kept)


def _rows(columns: tuple[str, ...], rows: list[list[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in ([*columns], *rows)).encode("utf-8")


GERMAN_COLUMNS = (
    *("checking_acct", "duration", "credit_history", "purpose", "credit_amt", "savings_acct", "employment", "installment_rate"),
    *("personal_status", "other_debtors", "residence_since", "property", "age", "other_installments", "housing"),
    *("existing_credits", "job", "liable_persons", "telephone", "foreign_worker", "credit_risk"),
)
COMPAS_COLUMNS = (
    *("sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"),
    *("c_charge_degree", "two_year_recid"),
)
TAIWAN_COLUMNS = (
    *("ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
    "default payment next month",
)

_UCI = "https://archive.ics.uci.edu/static/public"
_TBS = "https://raw.githubusercontent.com/SurgicalInformatics/transplantbenefit/556f884ea5d4f45ea4df6c975e705dcfd0bfd3ef/data"
_TBS_ORIGIN = "NHSBT policy, as published with the open calculator github.com/SurgicalInformatics/transplantbenefit (data/)"

#: The public files that the loaders read.
SOURCES: dict[str, Source] = {
    "german_credit": Source(
        "german_credit.csv",
        "6e6c607a21ce403c490a7cabbfe4e8068da3b56445cdd207a366d8fc3795ac04",
        "UCI Machine Learning Repository, Statlog (German Credit Data), data set 144; german.data with column names added",
        f"{_UCI}/144/statlog+german+credit+data.zip",
        _german_from_zip,
    ),
    "twitterbot": Source(
        "twitterbot.csv",
        "77fe6971a5d896da3c52f37bd7c0d67cbf600ab394ffa32787df50d3db813e38",
        "Gilani, Kochmar and Crowcroft (ASONAM 2017), the four follower groups in one table, screen names removed",
    ),
    "compas": Source(
        "compas.csv",
        "c60822bc2f8a282973d0d9356c19f1cda6467d63fd6c312c0d20ed59a36487a6",
        "ProPublica (2016), compas-scores-two-years.csv with its usual filter, names and dates removed",
        "https://raw.githubusercontent.com/propublica/compas-analysis/master/compas-scores-two-years.csv",
        _compas_from_csv,
    ),
    "taiwan_credit": Source(
        "taiwan_credit.csv",
        "4edce6da569b2c30788a85fd98a9bafb1a983e8ca1a7aac875dd7ff853cbd0bb",
        "UCI Machine Learning Repository, Default of Credit Card Clients, data set 350",
        f"{_UCI}/350/data.csv",
        _taiwan_from_csv,
    ),
    "tbs_betas": Source(
        "tbs_betas.csv", "6650f6ce2bd4045ab98ce8c3227fc7bf0409b8011969714ed105526ba4d5ef09", _TBS_ORIGIN, f"{_TBS}/betas.csv"
    ),
    "tbs_surv_cancer": Source(
        "tbs_surv_cancer.csv",
        "6ede4b48b6777f22c80f50c8ae7ff6695784b80bc57a7cfe257137d4947d724e",
        _TBS_ORIGIN,
        f"{_TBS}/surv_cancer.csv",
    ),
    "tbs_surv_noncancer": Source(
        "tbs_surv_noncancer.csv",
        "69251fd1ae68d7806d22be8cb7b4dd09217fa71f1ff9f2e2b9ba1050b87ed79f",
        _TBS_ORIGIN,
        f"{_TBS}/surv_noncancer.csv",
    ),
}
