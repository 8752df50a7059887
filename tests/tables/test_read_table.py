"""One reader for every kind of file: whatever a table is kept in, the values that come back are the same, and what was noticed is stated."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import logging
import lzma
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import cli
from budge.errors import DataError, InputError, MissingDependencyError, StorageError
from budge.people import People

RNG = np.random.default_rng(3)
N = 60
PEOPLE = pd.DataFrame({
    "who": [f"{k:03d}" for k in range(N)], "age": RNG.integers(18, 90, N), "income": RNG.normal(1000, 300, N).round(2),
    "home": RNG.choice(["rent", "own", "São Paulo; free"], N), "owner": RNG.random(N) < 0.5,
    "jobs": np.where(RNG.random(N) < 0.2, np.nan, RNG.integers(0, 4, N)),
})  # fmt: skip
CSV = PEOPLE.to_csv(index=False)


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "budge.tables")


def together(path: Path | str, part: int = 7, **how: Any) -> pd.DataFrame:
    label = how.pop("label", None)
    people = People.of(path, part=part, id=label, read=how)
    return pd.concat([people.read(one) for one in people.parts])


def zipped(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, CSV)
    return path


def wrote(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def zstd(path: Path) -> Path:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(CSV.encode())
    return path


def database(path: Path) -> str:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
    connection = sqlite3.connect(path)
    PEOPLE.to_sql("people", connection, index=False)
    connection.close()
    return f"sqlite:///{path}?table=people"


def excel(path: Path) -> Path:
    pytest.importorskip("openpyxl", reason="openpyxl is in the `excel` extra")
    PEOPLE.to_excel(path, index=False)
    return path


def arrow(path: Path, write: str) -> Path:
    pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    getattr(PEOPLE, write)(path)
    return path


KINDS: dict[str, Callable[[Path], Path | str]] = {
    "csv": lambda d: wrote(d / "x.csv", CSV),
    "no ending": lambda d: wrote(d / "x", CSV),
    "semicolons": lambda d: wrote(d / "x.csv", PEOPLE.to_csv(index=False, sep=";")),
    "decimal commas": lambda d: wrote(d / "x.csv", PEOPLE.to_csv(index=False, sep=";", decimal=",")),
    "tabs": lambda d: wrote(d / "x.txt", PEOPLE.to_csv(index=False, sep="\t")),
    "tsv": lambda d: wrote(d / "x.tsv", PEOPLE.to_csv(index=False, sep="\t")),
    "pipes": lambda d: wrote(d / "x.csv", PEOPLE.to_csv(index=False, sep="|")),
    "spaces after commas": lambda d: wrote(d / "x.csv", "\n".join(", ".join(f'"{c}"' if ";" in c else c for c in row) for row in csv.reader(io.StringIO(CSV)))),
    "cp1252": lambda d: wrote(d / "x.csv", CSV.encode("cp1252")),
    "mark": lambda d: wrote(d / "x.csv", CSV.encode("utf-8-sig")),
    "utf-16": lambda d: wrote(d / "x.csv", CSV.encode("utf-16")),
    "gz": lambda d: wrote(d / "x.csv.gz", gzip.compress(CSV.encode())),
    "gz of two streams": lambda d: wrote(d / "x.csv.gz", gzip.compress(CSV.encode()[:500]) + gzip.compress(CSV.encode()[500:])),
    "gz by content": lambda d: wrote(d / "x.csv", gzip.compress(CSV.encode())),
    "bz2": lambda d: wrote(d / "x.csv.bz2", bz2.compress(CSV.encode())),
    "xz": lambda d: wrote(d / "x.csv.xz", lzma.compress(CSV.encode())),
    "zip": lambda d: zipped(d / "x.zip", "x.csv"),
    "zst": lambda d: zstd(d / "x.csv.zst"),
    "json lines": lambda d: wrote(d / "x.jsonl", PEOPLE.to_json(orient="records", lines=True)),
    "json list": lambda d: wrote(d / "x.json", PEOPLE.to_json(orient="records")),
    "packed json lines": lambda d: wrote(d / "x.jsonl.gz", gzip.compress(PEOPLE.to_json(orient="records", lines=True).encode())),
    "parquet": lambda d: arrow(d / "x.parquet", "to_parquet"),
    "feather": lambda d: arrow(d / "x.feather", "to_feather"),
    "excel": lambda d: excel(d / "x.xlsx"),
    "sql": lambda d: database(d / "x.db"),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same_people_by_the_table_and_by_the_stream(tmp_path: Path, kind: str) -> None:
    given = KINDS[kind](tmp_path)
    wanted = PEOPLE.set_index("who").astype({"home": object})
    if kind == "sql":
        wanted["owner"] = wanted["owner"].astype(int)  # SQLite has no truth values
    for found in (budge.read_table(given, label="who").set_index("who"), together(given, label="who")):
        pd.testing.assert_frame_equal(found.astype({"home": object}), wanted, check_index_type=False)
        assert [str(v) for v in found.index] == [str(v) for v in wanted.index]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("csv", []),
        ("semicolons", ["semicolons separate cells"]),
        ("decimal commas", ["semicolons separate cells", "decimals are written with a comma"]),
        ("pipes", ["vertical bars separate cells"]),
        ("spaces after commas", ["the space after each separator is left out"]),
        ("cp1252", ["is not UTF-8 (byte "]),
        ("utf-16", ["is written in UTF-16"]),
    ],
)  # fmt: skip
def test_what_was_noticed_is_stated(tmp_path: Path, kind: str, said: list[str], caplog: pytest.LogCaptureFixture) -> None:
    for read in (budge.read_table, together):
        caplog.clear()
        read(KINDS[kind](tmp_path))
        lines = [record.getMessage() for record in caplog.records]
        expected = [*said, "zeros before numbers are left out in who"]
        assert len(lines) == len(expected)
        assert all(words in line for words, line in zip(expected, lines)), lines


@pytest.mark.parametrize(("kind", "given"), [
    ("parquet", {"missing": "?"}), ("feather", {"text": ["who"]}), ("json lines", {"names": ["a"]}), ("sql", {"header": True}), ("csv", {"sheet": "x"}),
    ("excel", {"separator": ";"}), ("gz", {"member": "x.csv"}), ("zip", {"table": "x"}),
])  # fmt: skip
def test_a_choice_that_a_kind_of_file_does_not_take_is_an_error(tmp_path: Path, kind: str, given: dict[str, Any]) -> None:
    place = KINDS[kind](tmp_path)
    with pytest.raises(InputError, match=f"{next(iter(given))}: is not for"):
        budge.read_table(place, **given)
    with pytest.raises(InputError, match=f"{next(iter(given))}: is not for"):
        People.of(place, read=given)


@pytest.mark.parametrize(("text", "said", "kept"), [
    ('a,b\n"1,234",1\n"2,500",2\n', "kept as texts in a (1,234): write plain digits where they are amounts", ["1,234", "2,500"]),
    ('a,b\n"1,5",1\n"2,5",2\n', "kept as texts in a (1,5): write plain digits where they are amounts; otherwise: decimal=','", ["1,5", "2,5"]),
    ("a,b\n10%,1\n?,2\n", "kept as texts in a (10%)", ["10%", "?"]),
    ("a,b\n01234,1\n98765,2\n", "zeros before numbers are left out in a; otherwise: text='a'", [1234, 98765]),
])  # fmt: skip
def test_digits_that_are_not_read_as_they_stand_are_stated(tmp_path: Path, text: str, said: str, kept: list[Any], caplog: pytest.LogCaptureFixture) -> None:
    for read in (budge.read_table, together):
        caplog.clear()
        assert read(wrote(tmp_path / "x.csv", text))["a"].tolist() == kept
        assert any(said in record.getMessage() for record in caplog.records)


def test_a_point_is_no_decimal_sign_beside_a_comma_that_is(tmp_path: Path) -> None:
    place = wrote(tmp_path / "x.csv", "a;b;c\n1.234;1,5;1.234\n2.500;2,5;2,25\n")  # 1.234 is a thousand and more
    for found in (budge.read_table(place, decimal=","), together(place, decimal=",")):
        assert found["b"].tolist() == [1.5, 2.5]
        assert found["c"].tolist() == ["1.234", "2,25"]
        assert found["a"].tolist() == ["1.234", "2.500"]


@pytest.mark.parametrize(("text", "values"), [
    ("30;1,5;rent\n31;2,5;own\n32;1,0;rent\n", [[30, 1.5, "rent"], [31, 2.5, "own"], [32, 1.0, "rent"]]),
    ("1,5\t2,5\n2,5\t3,5\n1,0\t1,0\n", [[1.5, 2.5], [2.5, 3.5], [1.0, 1.0]]),
    ("30,1;2,a\n31,3;4,b\n30,1;2,a\n", [[30, "1;2", "a"], [31, "3;4", "b"], [30, "1;2", "a"]]),
])  # fmt: skip
def test_decimal_commas_do_not_separate_cells_where_no_line_has_names(tmp_path: Path, text: str, values: list[list[Any]]) -> None:
    path = wrote(tmp_path / "x.csv", text)
    assert budge.read_table(path).to_numpy(object).tolist() == values == together(path, 1).to_numpy(object).tolist()


@pytest.mark.parametrize(("text", "income"), [
    ("income;rate\n1.234;2,5\n2.345;3,5\n999;1,5\n", ["1.234", "2.345", "999"]), ("income;rate\n0.125;2,5\n2.345;3,5\n", [0.125, 2.345]),
])  # fmt: skip
def test_a_thousand_with_a_point_is_no_fraction_beside_decimal_commas(
    tmp_path: Path, text: str, income: list[Any], caplog: pytest.LogCaptureFixture
) -> None:  # fmt: skip
    path = wrote(tmp_path / "x.csv", text)
    frame = budge.read_table(path)
    assert frame["income"].tolist() == income == together(path, 1)["income"].tolist()
    assert frame["rate"].tolist() == ([2.5, 3.5, 1.5] if len(income) == 3 else ["2,5", "3,5"])
    assert "is kept as texts in" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_an_empty_first_cell_stays_where_it_is_behind_a_blank_line(tmp_path: Path, encoding: str) -> None:
    path = wrote(tmp_path / "x.csv", 'a,b\r1,2\r\r,3\r"x, y",4\r'.encode(encoding))  # lines as Macintosh programs end them
    for frame in (budge.read_table(path), together(path, 1)):
        assert frame["a"].fillna("").tolist() == ["1", "", "x, y"]
        assert frame["b"].tolist() == [2, 3, 4]


def test_a_formula_without_its_result_is_an_error_and_no_missing_value(tmp_path: Path) -> None:
    book = pytest.importorskip("openpyxl").Workbook()
    for row in (["a", "b"], [1, "=A2*2"], [2, 5]):
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(DataError, match=r"cell B2: holds a formula without its result.*save"):
        budge.read_table(tmp_path / "x.xlsx")


# -- the first line ---------------------------------------------------------------------------------------------------

HEADS: dict[str, tuple[str, bool]] = {
    "adult": ("39, State-gov, 13, <=50K\n50, Self-emp, 13, <=50K\n38, State-gov, 9, >50K\n", False),
    "numbers alone": ("5.1,3.5,0\n4.9,3.0,1\n", False),
    "whole numbers alone": ("8,3,0\n4,3,1\n", False),
    "names": ("age,job\n39,a\n50,b\n", True),
    "names that are years": ("country,2019,2020\nfr,3,4\nde,4,5\n", True),
    "columns that are counted": ("0,1,2\n8,3,0\n4,3,1\n", True),
    "texts alone": ("colour,taste\nred,sweet\nblue,sour\nred,sour\n", True),
    "texts that occur again": ("red,sweet\nblue,sour\nred,sour\nblue,sweet\n", False),
    "one line": ("39,40\n", True),
    "a cell is empty": ("39,State-gov,,13\n50,Self-emp,1.5,13\n38,State-gov,,9\n", False),
    "a sign for a missing number": ("2,30,2,?,1.0,2\n1,40,1,3,1.2,1\n2,33,2,5,2.2,3\n", False),
    "a name that is a sign": ("NA,-,x\n3,4,5\n6,7,8\n", True),
    "a first column without a name": (",2019,2021\n0,3,4\n1,4,5\n", True),
    "a name that is a number": ("7,b\nx,2\ny,3\n", True),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_first_line_of_values_is_noticed(tmp_path: Path, case: str, caplog: pytest.LogCaptureFixture) -> None:
    text, named = HEADS[case]
    found = budge.read_table(wrote(tmp_path / "x.csv", text))
    if case == "a first column without a name":
        assert list(found.columns) == ["2019", "2021"]
        return
    assert len(found) == text.count("\n") - named
    assert (found.columns[0] == "column_1") is not named
    assert any("holds values, not names" in record.getMessage() for record in caplog.records) is not named
    if len(found):
        pd.testing.assert_frame_equal(together(tmp_path / "x.csv", part=1), found)
    names = [f"n{k}" for k in range(found.shape[1])]
    other = budge.read_table(tmp_path / "x.csv", header=not named, names=names)
    assert list(other.columns) == names
    assert len(other) == text.count("\n") - (not named)


def test_names_that_occur_twice_or_are_empty_may_be_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, said in (("a,a\n1,2\n", "column labels occur twice"), ("a,\nx,2\n", "column 2 has no name")):
        with pytest.raises(DataError, match=rf"{said}.*if the first line holds values, not names: header=no"):
            budge.read_table(wrote(tmp_path / "x.csv", text))
        assert cli.main(["init", str(tmp_path / "x.csv")]) == 2
        assert "--read header=no" in capsys.readouterr().err
        assert budge.read_table(tmp_path / "x.csv", header=False).shape == (2, 2)


# -- missing values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_first_line_that_given_names_replace_is_stated(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    path, rows = tmp_path / f"x.{kind}", [["Berlin", "nurse"], ["Paris", "cook"]]
    if kind == "csv":
        wrote(path, "Berlin,nurse\nParis,cook\n")
    else:
        pytest.importorskip("openpyxl", reason="openpyxl is in the `excel` extra")
        pd.DataFrame(rows).to_excel(path, index=False, header=False)
    found = budge.read_table(path, names=["city", "job"])  # the first line may hold names, or a person
    assert found.to_numpy().tolist() == rows[1:]
    assert "the first line ('Berlin', 'nurse') is taken for names, which those that are given replace; otherwise: header='no'" in caplog.text
    caplog.clear()
    assert budge.read_table(path, names=["city", "job"], header=False).to_numpy().tolist() == rows
    assert budge.read_table(path, names=["Berlin", "nurse"]).to_numpy().tolist() == rows[1:]
    assert not caplog.text


def test_signs_for_missing_values_are_noticed_and_read_only_where_that_is_safe(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = wrote(tmp_path / "x.csv", "age,job,code,who\n?,?,01,?\n30,NA,02,7\n31,clerk,03,8\n")
    for read in (budge.read_table, lambda path, **how: together(path, part=1, **how)):
        caplog.clear()
        found = read(path)
        assert found["age"].isna().tolist() == [True, False, False]
        assert found["job"].tolist() == ["?", "NA", "clerk"]
        lines = [record.getMessage() for record in caplog.records]
        assert lines == [
            "x.csv: zeros before numbers are left out in code; otherwise: text='code'",
            "x.csv: '?' is read as missing in columns of numbers: age (1), who (1); otherwise: text='COLUMN'",
            "x.csv: '?' is kept as a text like any other in job (1); otherwise: missing='?'",
            "x.csv: 'NA' is kept as a text like any other in job (1); otherwise: missing='NA'",
        ]
        chosen = read(path, missing=["?", "NA"], text=["code"])
        assert chosen["job"].isna().tolist() == [True, True, False]
        assert chosen["code"].tolist() == ["01", "02", "03"]
        assert read(path, text=["age"])["age"].tolist() == ["?", "30", "31"]
        assert read(path, missing="31")["age"].isna().tolist() == [True, False, True]
        assert read(path, label="who", missing="?").index.tolist() == (["?", "7", "8"] if read is not budge.read_table else [0, 1, 2])


@pytest.mark.parametrize("write", ["jsonl", "xlsx", "db"])
def test_texts_of_digits_stay_texts_where_the_file_has_types(tmp_path: Path, write: str) -> None:
    table = pd.DataFrame({"code": ["007", "7"], "big": [2**53 + 1, 5], "mixed": [1, "?"], "word": ["a", "?"]})
    path: Path | str = tmp_path / f"x.{write}"
    if write == "jsonl":
        wrote(tmp_path / "x.jsonl", "".join(json.dumps(dict(row)) + "\n" for row in table.to_dict("records")))
    elif write == "xlsx":
        pytest.importorskip("openpyxl", reason="openpyxl is in the `excel` extra")
        table.drop(columns="big").to_excel(path, index=False)  # a sheet holds floats alone
    else:
        pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
        connection = sqlite3.connect(path)
        table.to_sql("t", connection, index=False)
        connection.close()
        path = f"sqlite:///{path}?table=t"
    found = budge.read_table(path)
    assert found["code"].tolist() == ["007", "7"]
    assert found["word"].tolist() == ["a", "?"]
    assert write == "db" or found["mixed"].isna().tolist() == [False, True]
    assert write == "xlsx" or found["big"].tolist() == [2**53 + 1, 5]


# -- databases --------------------------------------------------------------------------------------------------------


def test_a_database_is_read_and_never_written(tmp_path: Path) -> None:
    address = database(tmp_path / "x.db")
    plain = address.partition("?")[0]
    before = (tmp_path / "x.db").read_bytes()
    assert len(budge.read_table(plain, table="people")) == N
    assert budge.read_table(plain, query="SELECT who, age FROM people WHERE age < 40 ORDER BY who").columns.tolist() == ["who", "age"]
    assert budge.read_table(plain, query="SELECT age AS \"set\" FROM people -- ; drop").columns.tolist() == ["set"]
    for query in (
        "DROP TABLE people", "SELECT 1; DROP TABLE people", "WITH a AS (SELECT 1) DELETE FROM people", "PRAGMA user_version = 5", "SELECT 1 INTO t", "",
    ):  # fmt: skip
        with pytest.raises(InputError, match=r"one SELECT|neither a table nor a query"):
            budge.read_table(plain, query=query or None)
    with pytest.raises(InputError, match="did you mean 'people'"):
        budge.read_table(plain, table="peple")
    with pytest.raises(StorageError, match="no such file"):
        budge.read_table(f"sqlite:///{tmp_path}/none.db", table="people")
    with pytest.raises(DataError, match=r"sqlite:///x.db\?table=NAME"):
        budge.read_table(tmp_path / "x.db")
    assert (tmp_path / "x.db").read_bytes() == before
    assert not (tmp_path / "none.db").exists()


def test_a_view_that_never_ends_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE VIEW people AS WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n FROM a) SELECT n FROM a WHERE n = 2")
    connection.commit()
    connection.close()
    with pytest.raises(InputError, match="no such table"):
        budge.read_table(f"sqlite:///{tmp_path}/x.db?table=people")


def test_no_password_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
    for address in ("postgresql://ann:hidden@127.0.0.1:1/db?table=t", "nonsense://ann:hidden@host/db?table=t", "sqlite://ann:hidden@host/x.db?table=t"):
        assert cli.main(["init", address]) in (2, 3)
        told = "".join(capsys.readouterr())
        assert "hidden" not in told
        assert told


def test_no_password_is_kept_in_a_run_or_named_where_a_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.cli.shared import as_typed

    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("budge.tables.packages.import_module", absent)
    for address in ("postgresql://ann:hid@den/x@host/db?table=t", "postgresql://host/db?password=hid@den/x&table=t"):
        context: Any = SimpleNamespace(find_root=lambda address=address: SimpleNamespace(obj=("audit", "spec.yaml", address, "--target", "1")))
        typed = as_typed(context)
        assert typed.endswith("--target 1")
        assert "table=t" in typed
        with pytest.raises(MissingDependencyError) as refused:
            budge.read_table(address)
        assert not any(word in text for word in ("hid", "den") for text in (typed, str(refused.value)))


# -- what is refused --------------------------------------------------------------------------------------------------


def test_packed_files_within_limits(tmp_path: Path) -> None:
    both = zipped(tmp_path / "x.zip", "a.csv", "b.csv", "__MACOSX/a.csv")
    with pytest.raises(DataError, match=r"holds 2 files \(got 'a.csv, b.csv'\); name one: member="):
        budge.read_table(both)
    assert len(budge.read_table(both, member="b.csv")) == N
    with pytest.raises(DataError, match="holds no such file"):
        budge.read_table(both, member="c.csv")
    for name, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        whole = pack(CSV.encode())
        with pytest.raises(DataError, match="cannot be unpacked"):
            budge.read_table(wrote(tmp_path / f"cut.csv.{name}", whole[:-20]))
        with pytest.raises(DataError, match="unfolds to more than 200 times"):
            budge.read_table(wrote(tmp_path / f"bomb.csv.{name}", pack(b"a,b\n" + b"1,1\n" * 30_000_000)))
        with pytest.raises(DataError, match="packed twice"):
            budge.read_table(wrote(tmp_path / f"twice.csv.gz.{name}", pack(gzip.compress(CSV.encode()))))


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.jsonl", '{"a": 1}\n[1]\n', "line 2: is not an object"),
        ("x.jsonl", '{"a": 1}\n{"a": [1]}\n', "line 2: a cell is a text"),
        ("x.jsonl", '{"a": 1}\n{"a": \n', "line 2: is no JSON"),
        ("x.jsonl", '{"a": 1, "a": 2}\n', "repeated"),
        ("x.jsonl", "".join(f'{{"c{k}": 1}}\n' for k in range(4000)), "mostly blank"),
        ("x.jsonl", "\n", "no people"),
        ("x.jsonl", "[" * 100_000, "is no JSON"),
        ("x.xlsx", "PK\x03\x04nonsense", "cannot be read"),
        ("x.feather", "ARROW1\0\0nonsense", "cannot be read"),
        ("x.xls", b"\xd0\xcf\x11\xe0\xa1\xb1", "old format"),
        ("x.csv", "a;b\n1;2\n3;4;5\n", "not a table|more cells"),
        ("x.csv", "a,a\n1,2\n", "occur twice"),
    ],
)
def test_hostile_and_damaged_files(tmp_path: Path, name: str, data: str | bytes, said: str) -> None:
    if name.endswith((".feather", ".parquet")):
        pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl", reason="openpyxl is in the `excel` extra")
    path = wrote(tmp_path / name, data)
    for read in (budge.read_table, together):
        with pytest.raises(DataError, match=said):
            read(path)


def test_a_feather_file_that_unfolds_to_far_more_than_its_size(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    zeros = pd.DataFrame({"a": np.zeros(20_000_000)})
    zeros.to_feather(tmp_path / "x.feather", compression="zstd", chunksize=10_000_000)
    with pytest.raises(DataError, match="unfolds to 160,000,000 bytes"):
        budge.read_table(tmp_path / "x.feather")
    coded = pd.DataFrame({"a": pd.Categorical(["x", "y"] * 50)})
    coded.to_feather(tmp_path / "y.feather", compression="lz4")
    pd.testing.assert_frame_equal(budge.read_table(tmp_path / "y.feather"), coded)


def test_a_sheet_with_one_cell_far_away(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is in the `excel` extra")
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"], book.active["A2"] = "a", "b", 1
    for row in range(1, 2000):
        book.active.cell(row, 16_000, 1)
    book.save(tmp_path / "x.xlsx")
    with pytest.raises(DataError, match="mostly blank"):
        budge.read_table(tmp_path / "x.xlsx")
    book = openpyxl.Workbook()
    book.active["A1"] = 1
    book.create_sheet("people")["A1"] = "age"
    book["people"]["A2"] = 30
    book.save(tmp_path / "y.xlsx")
    with pytest.raises(DataError, match=r"has 2 sheets.*sheet="):
        budge.read_table(tmp_path / "y.xlsx")
    assert budge.read_table(tmp_path / "y.xlsx", sheet="people")["age"].tolist() == [30]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"separator": ";;"}, "one sign"),
        ({"decimal": "x"}, "point or a comma"),
        ({"encoding": "klingon"}, "no encoding of text"),
        ({"encoding": "rot13"}, "no encoding of text"),
        ({"names": ["a"]}, "the table has 6 columns"),
        ({"text": ["agee"]}, "did you mean 'age'"),
        ({"table": "a", "query": "SELECT 1"}, "a table and a query"),
    ],
)
def test_choices_that_cannot_be_taken(tmp_path: Path, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        budge.read_table(wrote(tmp_path / "x.csv", CSV), **how)


def test_a_missing_package_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr("budge.tables.packages.import_module", absent)
    sheet = wrote(tmp_path / "x.xlsx", "PK\x03\x04")
    for given, extra in ((sheet, "excel"), (wrote(tmp_path / "x.parquet", "PAR1"), "parquet"), ("sqlite:///x.db?table=t", "sql")):
        with pytest.raises(MissingDependencyError, match=rf"pip install 'budge\[{extra}\]'"):
            budge.read_table(given)


# -- the commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_init_and_check_take_what_audit_takes(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = str(KINDS[kind](tmp_path))
    spec = str(tmp_path / "model.yaml")
    assert cli.main(["init", given, "-o", spec, "--quiet"]) == 0
    assert "age" in budge.InteractionModel.from_file(spec).by_name
    assert cli.main(["check", spec, given, "--strict", "--quiet", "--rows", "2"]) == 0
    assert capsys.readouterr().err == ""  # --quiet
    assert cli.main(["sample", spec, given, "-n", "29", "-o", str(tmp_path / "points.csv"), "--quiet"]) == 0


def test_the_shell_states_what_was_noticed_once_and_with_its_own_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(wrote(tmp_path / "x.csv", "age;job\n30;?\n40;b\n50;c\n"))
    assert cli.main(["init", path, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["rows"] == 3
    assert err.splitlines() == [
        "budge: x.csv: semicolons separate cells; otherwise: --read separator=comma",
        "budge: x.csv: '?' is kept as a text like any other in job (1); otherwise: --read 'missing=?'",
    ]
    assert cli.main(["init", path, "--read", "missing=?", "--read", "separator=semicolon"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "missing: fixed" in out
    assert cli.main(["init", path, "--read", "missing"]) == 2
    assert cli.main(["init", path, "--read", "seperator=;"]) == 2
    assert "did you mean 'separator'" in capsys.readouterr().err


def test_an_audit_is_the_same_from_every_file(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    X = PEOPLE[["age", "income"]]
    booster = lightgbm.train({"verbosity": -1, "num_threads": 1, "objective": "binary"}, lightgbm.Dataset(X, X["income"] > 1000), 3)
    booster.save_model(tmp_path / "model.txt")
    (tmp_path / "spec.yaml").write_text("budge: 1\ndraft: true\nfeatures:\n  age: {type: integer, bounds: [18, 90], max_increase: 3, max_decrease: 3}\n")
    told = []
    for kind in ("csv", "decimal commas", "gz", "json lines"):
        given = str(KINDS[kind](tmp_path))
        for most in (200_000_000, 1):
            monkeypatch.setattr("budge.cli.audit.IN_MEMORY", most)
            drop = [word for column in ("home", "owner", "jobs") for word in ("--drop", column)]
            read = ["--read", "separator=semicolon"] if kind == "decimal commas" else []
            model = ["--model", str(tmp_path / "model.txt"), "--target", "1", "--cutoff", "0.5"]
            assert cli.main(["audit", str(tmp_path / "spec.yaml"), given, *model, "--id", "who", *drop, *read, "--json"]) == 0
            out, err = capsys.readouterr()
            record = json.loads(out)
            told.append({key: record[key] for key in ("no_way", "every_way")})
            assert "spec.yaml: is a draft that nobody has confirmed" in err
            assert "semicolons" not in err
            assert ("decimals are written" in err) is (kind == "decimal commas")
    assert len({json.dumps(one, sort_keys=True) for one in told}) == 1
    assert told[0]["no_way"]["model"] > 0


def test_lines_with_too_few_cells_are_stated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A line break within a cell without quotes makes two people of one."""
    place = tmp_path / "people.csv"
    place.write_text('age,job,years\n30,clerk,3\n41,"a\nnurse",\n52,cook,\n\n33,a\ncook,5\n')
    assert budge.read_table(place)["years"].isna().tolist() == [False, True, True, True, True]
    (told,) = [record.getMessage() for record in caplog.records if "fewer cells" in record.getMessage()]
    assert "2 rows have fewer cells than there are columns (row 4 has 2 of 3): the others are read as missing" in told
    caplog.clear()
    place.write_text("age,job,years\n30,clerk,3\n41,nurse,\n")
    budge.read_table(place)
    assert not caplog.records


def test_fractions_with_a_decimal_comma_may_have_an_exponent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "people.csv"
    place.write_text("age;rate\n30;1,5e-07\n31;2,25E-08\n")
    assert budge.read_table(place)["rate"].tolist() == [1.5e-07, 2.25e-08]
    caplog.clear()
    place.write_text('rate\n"1,5e-07"\n"2,5"\n')
    assert budge.read_table(place)["rate"].tolist() == ["1,5e-07", "2,5"]
    assert "kept as texts in rate" in caplog.text


def test_numbers_with_spaces_between_are_columns_also_in_a_csv_file(tmp_path: Path) -> None:
    """They were one feature of texts; words with spaces between are one cell there."""
    place = tmp_path / "people.csv"
    for sign in (" ", "   "):
        place.write_text("\n".join(sign.join(row) for row in (["age", "job", "years"], ["30", "clerk", "3.5"], ["41", "nurse", "2"])) + "\n")
        assert budge.read_table(place)["years"].tolist() == [3.5, 2.0]
    for text in ("full name\nAnn Lee\nBo Ray\n", "street\nOak 12\nElm 7\n", "street no\nOak 12\nElm 7b\n"):
        place.write_text(text)
        assert budge.read_table(place).shape == (2, 1)
