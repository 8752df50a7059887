"""Tables of few bytes that would unfold to gigabytes, by what their format repeats; and databases that would run what their author wrote."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from isolated import judged

import budge
from budge.audit.pieces import read_rows
from budge.errors import BudgeError, DataError, StorageError
from budge.llm.answer_files import _arrow_table
from budge.people import People

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the `parquet` extra")

LONG = "x" * 1_000_000


def varint(number: int) -> bytes:
    number, found = 2 * number, b""
    while number > 127:
        found, number = found + bytes([number & 127 | 128]), number >> 7
    return found + bytes([number])


def parquets(folder: Path) -> list[Path]:
    """Write files of a few hundred bytes that unfold to more than half a gigabyte."""
    once = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, "int32")), pa.array([LONG]))})
    parquet.write_table(once, folder / "text.parquet", compression="zstd", store_schema=False)  # one text, a thousand times
    fixed = pa.array([LONG.encode()] * 600, pa.binary(len(LONG)))
    parquet.write_table(pa.table({"a": fixed}), folder / "fixed.parquet", compression="zstd")
    pages = io.BytesIO()
    zeros = pa.table({"a": np.zeros(75_000_000)})
    parquet.write_table(zeros, pages, compression="zstd", use_dictionary=False, write_statistics=False, row_group_size=len(zeros), data_page_size=1 << 30)
    stated = varint(parquet.ParquetFile(pages).metadata.row_group(0).column(0).total_uncompressed_size)
    content, least = pages.getvalue(), bytes([*varint(1), *[128] * (len(stated) - 2), 0])
    least = bytes([least[0] | 128, *least[1:]])
    assert content.count(stated) >= 1
    at = content.rindex(stated)
    (folder / "pages.parquet").write_bytes(content[:at] + least + content[at + len(stated) :])  # its footer states one byte
    return sorted(folder.glob("*.parquet"))


def in_parts(path: Path) -> None:
    people = People.of(str(path))
    for part in people.parts:
        people.read(part)


def rows_of_a_run(path: Path) -> None:
    try:
        read_rows(path.read_bytes())
    except ValueError as error:
        raise BudgeError(str(error)) from None


def test_parquet_files_that_unfold_to_gigabytes_are_refused_by_every_reader(tmp_path: Path) -> None:
    paths = parquets(tmp_path)
    assert [path.stem for path in paths] == ["fixed", "pages", "text"]
    assert max(path.stat().st_size for path in paths) < 500_000
    readers: list[Callable[[Path], Any]] = [budge.read_table, in_parts, _arrow_table, rows_of_a_run]
    for read in readers:
        for path, (kind, said, seconds, megabytes) in zip(paths, judged(read, paths, package="pyarrow.dataset")):
            assert kind == "refused", (read, path, kind, said)
            assert megabytes < 300, (read, path, megabytes, seconds)


def feathers(folder: Path) -> list[Path]:
    view = pa.array([LONG]).cast(pa.string_view())
    one = bytes(view.buffers()[1])
    tables = {
        "null": pa.nulls(10**9), "inside": pa.StructArray.from_arrays([pa.nulls(10**9)], ["f"]),
        "list": pa.array([None] * 10, pa.list_(pa.null(), 100_000_000)),
        "view": pa.Array.from_buffers(pa.string_view(), 10_000, [None, pa.py_buffer(one[:16] * 10_000), view.buffers()[2]]),
        "ends": pa.RunEndEncodedArray.from_arrays(pa.array([10**9], pa.int64()), pa.array([1.5])),
        "lists": pa.ListViewArray.from_arrays(pa.array([0] * 1000, pa.int32()), pa.array([10**5] * 1000, pa.int32()), pa.array(np.zeros(10**5))),
    }  # fmt: skip
    for name, column in tables.items():
        with pa.OSFile(str(folder / f"{name}.feather"), "wb") as file, pa.ipc.new_file(file, pa.schema([("a", column.type)])) as writer:
            writer.write_table(pa.table({"a": column}))
    return sorted(folder.glob("*.feather"))


def test_feather_files_whose_values_are_not_written_one_by_one_are_refused(tmp_path: Path) -> None:
    paths = feathers(tmp_path)
    for path, (kind, said, seconds, megabytes) in zip(paths, judged(budge.read_table, paths)):
        assert (kind, megabytes < 300) == ("refused", True), (path, kind, said, seconds, megabytes)
        assert "a cell is a text or a number" in said or "states 1,000,000,000 rows" in said


def test_honest_files_of_these_kinds_are_read(tmp_path: Path) -> None:
    day = pd.Timestamp("2020-01-01")
    frame = pd.DataFrame({"a": ["red", None] * 500, "b": [None] * 1000, "c": pd.Categorical(["x", "y"] * 500), "d": day, "e": [True] * 1000})
    frame.to_feather(tmp_path / "t.feather")
    parquet.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=100, data_page_size=64)
    for name in ("t.feather", "t.parquet"):
        pd.testing.assert_frame_equal(budge.read_table(tmp_path / name), frame, check_dtype=False)
    once = pa.table({"a": pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, "int32")), pa.array(["a long text " * 1000]))})
    parquet.write_table(once, tmp_path / "categories.parquet")  # categories are not repeated in memory
    assert len(budge.read_table(tmp_path / "categories.parquet")) == 100_000


def database(path: Path, *statements: str) -> str:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def test_nothing_in_a_database_runs(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"
    address = database(
        tmp_path / "x.db", "create table t (a int, b text)", "insert into t values (1, 'x')", f"create view v as {endless}",
        "create table g (a int, b text generated always as (hex(zeroblob(400000))) virtual)", "insert into g (a) values (1)",
        "create table s (a int, b int generated always as (a + 1) stored)", "insert into s (a) values (1)",
        "create virtual table f using fts5 (a, b)", "insert into f values ('x', 'y')",
    )  # fmt: skip
    for query in ("select * from v limit 3", "select count(*) as n from V", "select count(*) as n from v", "select (select 1 from v) as n", "select a from g",
                  "select b from s", "select a from f", "select * from t, (select * from g)"):  # fmt: skip
        with pytest.raises(StorageError, match=r"(prohibited|not authorized); views, virtual tables and computed columns run"):
            budge.read_table(address, query=query)
    with pytest.raises(StorageError, match="prohibited"):
        budge.read_table(address, table="g")
    for query in ("select * from t", "with u as (select * from t) select * from u", "select * from (select * from t) as h"):
        assert budge.read_table(address, query=query).to_numpy().tolist() == [[1, "x"]]


def test_a_database_of_long_texts_is_refused_before_it_is_held(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="SQLAlchemy is in the `sql` extra")
    rows = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 300) insert into t select zeroblob(1000000) from c"
    address = f"{database(tmp_path / 'x.db', 'create table t (a)', rows)}?table=t"
    ((kind, said, _, megabytes),) = judged(budge.read_table, [address], package="sqlalchemy")
    assert (kind, megabytes < 300) == ("refused", True), (said, megabytes)
    assert "letters" in said


@pytest.mark.parametrize("line", ['{"a": "\\ud800"}', '{"\\udfff": 1}'])
def test_half_a_sign_in_json_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.jsonl").write_text(f'{{"a": "\\ud83d\\ude00"}}\n{line}\n')
    with pytest.raises(DataError, match="line 2: holds half a sign"):
        budge.read_table(tmp_path / "x.jsonl")
