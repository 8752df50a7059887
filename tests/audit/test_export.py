"""Files for others: they hold what the table holds, and no cell of them is code for a spreadsheet or for LaTeX."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, loans
from streams_kit import LISTED, people_of, score

import budge
from budge.cli import main
from budge.errors import InputError, OutputExistsError
from budge.table_files import FORMULA, latex, write_rows, write_workbook

NASTY = ["=1+1", "+1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "a_x0041_b", "<b>&\"'", "\x00\x1b[2J", "50 % of $x_1$ \\input{x}"]
MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def sheets_of(path: Path) -> dict[str, list[list[Any]]]:
    """Return the cells of a workbook as they are typed in it: texts, numbers, truths."""
    with zipfile.ZipFile(path) as pack:
        names = [s.attrib["name"] for s in ElementTree.fromstring(pack.read("xl/workbook.xml")).iter(f"{MAIN}sheet")]
        found = {}
        for k, name in enumerate(names, 1):
            tree = ElementTree.fromstring(pack.read(f"xl/worksheets/sheet{k}.xml"))
            assert not list(tree.iter(f"{MAIN}f"))  # no formula
            found[name] = [[_value(cell) for cell in row] for row in tree.iter(f"{MAIN}row")]
        return found


def _value(cell: Any) -> Any:
    kind, value = cell.attrib.get("t"), cell.find(f"{MAIN}v")
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{MAIN}t"))
    return None if value is None else bool(int(value.text)) if kind == "b" else float(value.text)


@pytest.fixture(scope="module")
def nasty() -> budge.Audit:
    X, im = loans()
    people = X.assign(group=NASTY).set_axis(pd.Index([f"{text} {k}" for k, text in enumerate(NASTY)], name="=who"))
    return budge.audit({"=m": approve, "b": lambda t: 1 - approve(t)}, people, im, target=1, population="all", groups="group")


def test_tables_come_back_as_they_were(tmp_path: Path, nasty: budge.Audit) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    whole = nasty.table.reset_index()
    back = pd.read_parquet(nasty.export(tmp_path / "people.parquet"))
    for column in whole.columns:
        assert [v if v == v else None for v in back[column].tolist()] == [v if v == v else None for v in whole[column].tolist()], column
    assert back["group"].tolist() == NASTY * 2
    csv = pd.read_csv(nasty.export(tmp_path / "people.csv"), keep_default_na=False)
    assert csv["hits"].tolist() == whole["hits"].tolist()
    np.testing.assert_allclose(csv["rho"].astype(float), whole["rho"])
    with pytest.raises(OutputExistsError):
        nasty.export(tmp_path / "people.csv")
    with pytest.raises(InputError, match=r"\.xlsx"):
        nasty.export(tmp_path / "people.doc")


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path, nasty: budge.Audit) -> None:
    frame = pd.read_csv(nasty.export(tmp_path / "people.csv"), dtype=str, keep_default_na=False, header=None)
    texts = [cell for cell in frame.to_numpy().ravel() if cell.startswith(FORMULA)]
    assert [t for t in texts if not _number(t)] == []
    assert "'=1+1" in frame.to_numpy().ravel()
    raw = tmp_path / "raw.csv"
    write_rows([pd.DataFrame({"a": NASTY[:4]})], raw, raw=True)
    assert pd.read_csv(raw)["a"].tolist() == NASTY[:4]  # for programs that read them again


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_a_workbook_holds_texts_and_numbers(tmp_path: Path, nasty: budge.Audit) -> None:
    found = sheets_of(nasty.export(tmp_path / "run.xlsx"))
    assert list(found) == ["shares", "people", "differences", "run"]
    head, *rows = found["people"]
    table = nasty.table
    assert len(rows) == len(table)
    at = {name: k for k, name in enumerate(head)}
    assert [row[at["n"]] for row in rows] == table["n"].tolist()
    np.testing.assert_allclose([row[at["rho"]] for row in rows], table["rho"])
    assert [row[at["verdict"]] for row in rows] == table["verdict"].tolist()
    assert rows[0][at["group"]] == "=1+1"
    assert dict(found["run"][1:])["threshold"] == 0.1
    shares = {(row[0], row[2]): row for row in found["shares"][1:]}
    below = nasty.of_model("=m")["verdict"].eq("below")
    assert shares["=m", "all"][3:6] == [len(below), below.sum(), pytest.approx(below.mean())]
    assert len(found["differences"]) == 1 + 2 * 12 * 11 // 2


def test_cells_that_excel_would_change_stay_what_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": pd.Series([12345678901234567890, 7, 10**15], dtype=object), "x": [np.nan, np.inf, -0.5], "b": [True, False, True]})
    write_workbook({"a & b": [frame, frame]}, tmp_path / "x.xlsx")
    ((head, first, second, third, *again),) = sheets_of(tmp_path / "x.xlsx").values()
    assert (head, first, second, third) == (["id", "x", "b"], ["12345678901234567890", None, True], [7, "inf", False], ["1000000000000000", -0.5, True])
    assert again == [first, second, third]
    write_workbook({"t": [pd.DataFrame({"t": NASTY})]}, tmp_path / "t.xlsx")
    text = zipfile.ZipFile(tmp_path / "t.xlsx").read("xl/worksheets/sheet1.xml").decode()
    assert "a_x005F_x0041_b" in text
    assert "\x1b" not in text
    openpyxl = pytest.importorskip("openpyxl", reason="a second reader of workbooks")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx")["t"]
    assert [cell.data_type for (cell,) in sheet.iter_rows()] == ["s"] * (1 + len(NASTY))


def test_latex_has_no_commands_of_others(tmp_path: Path, nasty: budge.Audit) -> None:
    text = nasty.export(tmp_path / "shares.tex").read_text()
    assert r"50 \% of \$x\_1\$ \textbackslash{}input\{x\}" in text
    assert text.count(r"\\") == 1 + 2 * 13
    assert latex("a\nb") == "a b"


def test_a_stream_is_exported_part_by_part(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="streams are Parquet files")
    people = people_of(500)
    people.to_parquet(tmp_path / "people.parquet")
    stream = budge.audit(
        score, budge.people.People.of(str(tmp_path / "people.parquet"), part=100), LISTED, target=1, groups="sex", journal=tmp_path / "run", population="all"
    )
    table = budge.audit(score, people, LISTED, target=1, groups="sex", population="all")
    assert len(stream.info["pieces"]) > 1
    for kind, read in ((".csv", pd.read_csv), (".parquet", pd.read_parquet)):
        one, two = (read(run.export(tmp_path / f"{name}{kind}")) for name, run in (("s", stream), ("t", table)))
        pd.testing.assert_frame_equal(one, two)
    assert sheets_of(stream.export(tmp_path / "s.xlsx"))["people"] == sheets_of(table.export(tmp_path / "t.xlsx"))["people"]
    assert stream.export(tmp_path / "s.tex").read_text() == table.export(tmp_path / "t.tex").read_text()


def test_labels_and_people_that_files_have_no_place_for(tmp_path: Path) -> None:
    X, im = loans()
    models = {"one": approve, "two": lambda t: 1 - approve(t)}
    named = budge.audit(models, X.set_index(pd.Index([f"p{k}" for k in range(len(X))], name="model")), im, target=1, population="all")
    named.export(tmp_path / "named.csv")
    rows = pd.read_csv(tmp_path / "named.csv")
    assert rows["person"].tolist() == 2 * [f"p{k}" for k in range(len(X))]
    assert rows["model"].tolist() == len(X) * ["one"] + len(X) * ["two"]
    nobody = budge.audit(lambda t: np.ones(len(t), dtype=int), X, im, target=1, groups="home")
    for kind in (".csv", ".xlsx", ".tex"):
        assert nobody.export(tmp_path / f"nobody{kind}").exists()


def test_labels_of_several_types_are_no_column_of_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    X, im = loans()
    nobody = budge.audit(lambda t: np.ones(len(t), dtype=int), X, im, target=1, groups="home")
    assert nobody.export(tmp_path / "nobody.parquet").exists()
    mixed = budge.audit(approve, X.set_index(pd.Index([*range(len(X) - 1), "last"], name="id", dtype=object)), im, target=1, population="all")
    with pytest.raises(InputError, match=r"mixed\.parquet: a column of a Parquet file has values of one type.*write \.csv"):
        mixed.export(tmp_path / "mixed.parquet")
    assert not (tmp_path / "mixed.parquet").exists()


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, im = loans()
    found = budge.audit(approve, X, im, target=1, groups="home")
    found.save(tmp_path / "run")
    run = str(tmp_path / "run")
    assert main(["export", run]) == 2
    assert "--csv" in capsys.readouterr().err
    assert main(["export", run, "--csv", "--latex", "--xlsx", "--json", "-o", str(tmp_path / "out")]) == 0
    assert [Path(f["file"]).name for f in json.loads(capsys.readouterr().out)["files"]] == ["people.csv", "shares.tex", "run.xlsx"]
    assert len(pd.read_csv(tmp_path / "out" / "people.csv")) == len(found.table)
    assert main(["export", run, "--csv", "-o", str(tmp_path / "out")]) == 2
    assert main(["export", run, "--csv", "-q"]) == 0
    capsys.readouterr()
    assert budge.Audit.load(run).table.equals(found.table)  # files beside a run do it no harm
    assert main(["show", run]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "have almost no way" in told or "no way" in told
    assert "By home" in told
    assert main(["show", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"] == json.loads(json.dumps(found.to_dict()["table"], default=str))
    assert main(["show", str(tmp_path / "nothing")]) == 3
