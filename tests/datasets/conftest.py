"""Where the tests of data sets find real data: ``BUDGE_DATA``, else ``../shared/data`` beside the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

GIVEN = os.environ.get("BUDGE_DATA")  # tests may take the variable away
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test reaches for the network or the user's own cache unless it sets up its own."""
    monkeypatch.setenv("BUDGE_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def data_folder(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the real files; a test that asks for it skips with a reason where there is none."""
    folder = Path(GIVEN or ROOT.parent / "shared" / "data")
    if not (folder / "german_credit.csv").is_file():
        pytest.skip(f"the real data is not in {folder}; set BUDGE_DATA")
    monkeypatch.setenv("BUDGE_DATA", str(folder))
    return folder
