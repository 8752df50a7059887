"""`budge study`: what it prints, writes and refuses."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from budge.cli import main
from budge.cli.study import STUDIES, load, studies_folder

Program = Callable[[str], ModuleType]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_writes_its_table_and_figure(name: str, quick: Callable[[str], Any], tmp_path: Path) -> None:
    study = quick(name)
    written = study.write(tmp_path)
    assert {path.suffix for path in written} == {".md", ".csv", ".svg"}
    table = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False)
    assert list(table.columns) == ["figure", "paper", "here", "why they differ"]
    differ = (table["paper"] != table["here"]) & (table["paper"] != "–")
    assert (table.loc[differ, "why they differ"] != "").all(), "every deviation has its reason"
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert "quick" in page
    for path in written:
        if path.suffix == ".svg":
            assert ET.parse(path).getroot().tag.endswith("svg")
            assert f"({path.name})" in page
            assert "nan" not in path.read_text(encoding="utf-8")


def test_the_command_prints_json(
    quick: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = quick("german")  # made once; the command is given it
    monkeypatch.setattr(load("german"), "run", lambda *, quick: study if quick else None)
    assert main(["study", "german", "--quick", "--json", "--out", str(tmp_path / "out")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["study"] == "german"
    assert record["quick"] is True
    assert all(Path(path).is_file() for path in record["files"])
    assert record["data"] == list(study.data)
    assert [reason["text"] for reason in record["reasons"]] == [reason.text for reason in study.reasons.values()]
    assert main(["study", "german", "--quick"]) == 0
    said = capsys.readouterr().out
    assert "these are not the numbers of the study" in said
    assert "paper: 88.0%" in said
    said = " ".join(said.split())
    assert f"Data: {study.data[0]}." in said, "where the data comes from stands on the shell, too"
    for reason in study.reasons.values():
        assert " ".join(f"Reason: {reason.text} tested by: {reason.run} result: {reason.result}".split()) in said


def test_an_unknown_study_and_a_file_out_of_place_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "germany"]) == 2
    assert "german" in capsys.readouterr().err
    assert main(["study", "german", "--data", "mine.csv"]) == 2
    assert "recidivism" in capsys.readouterr().err


def test_missing_data_is_told(
    monkeypatch: pytest.MonkeyPatch, program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BUDGE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["study", "transplant", "--quick"]) == 3
    assert "tbs_betas.csv" in capsys.readouterr().err


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*, quick: bool) -> None:
        raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn.linear_model")

    monkeypatch.setattr(load("german"), "run", run)
    assert main(["study", "german", "--quick"]) == 3
    assert "budge[studies]" in capsys.readouterr().err


def test_a_study_runs_from_an_installed_package(tmp_path: Path) -> None:
    """Beside the package's modules, as a wheel would have them, the programs are found and imported in the ordinary way."""
    site = tmp_path / "site"
    shutil.copytree(ROOT / "src" / "budge", site / "budge", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "studies", site / "budge" / "studies", ignore=shutil.ignore_patterns("__pycache__"))
    code = "from budge.cli import main; from budge.cli.study import studies_folder; print(studies_folder()); main(['study', 'overview', '-q', '-o', 'found'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(site / "budge" / "studies")
    assert "402" in (tmp_path / "found" / "overview.md").read_text(encoding="utf-8")


def test_an_output_folder_that_cannot_be_made_is_told(quick: Callable[[str], Any], tmp_path: Path) -> None:
    from budge.errors import StorageError

    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        quick("german").write(tmp_path / "file" / "out")


def test_programs_and_specs_are_together() -> None:
    folder = studies_folder()
    assert {path.stem for path in folder.glob("*.py")} == {*STUDIES, "__init__", "charts", "common", "elastic"}
    assert load("german") is load("german")
    assert (folder / "german.yaml").is_file()


@pytest.mark.parametrize("name", STUDIES)
def test_the_docs_carry_the_full_run(name: str) -> None:
    folder = ROOT / "docs" / "studies"
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert "## Paper and here" in page
    assert "quick" not in page, "the page in the docs is of a full run"
    for figure in folder.glob(f"{name}_*.svg"):
        assert f"({figure.name})" in page
    assert list(folder.glob(f"{name}_*.svg"))


@pytest.mark.parametrize("name", STUDIES)
def test_the_tables_in_the_docs_are_those_of_the_program(name: str, quick: Callable[[str], Any]) -> None:
    """A quick run has other numbers and the same rows and files: what the docs lack or have left over is found without a full run."""
    study, folder = quick(name), ROOT / "docs" / "studies"
    kept = pd.read_csv(folder / f"{name}.csv", keep_default_na=False)
    if name != "moderation":
        assert kept[["figure", "paper"]].astype(str).equals(study.comparison[["figure", "paper"]].astype(str)), "budge study all --out docs/studies"
    files = {path.name for path in folder.glob(f"{name}_*")}
    assert files == {f"{name}_{table}.csv" for table in study.tables} | {f"{name}_{figure}.svg" for figure in study.figures}
