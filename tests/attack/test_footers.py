"""Footers of Parquet files: read as pyarrow reads them, and a footer that contradicts itself is an error, not the end of the process."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from isolated import attempt

from budge import footers
from budge.errors import BudgeError, DataError
from budge.footers import MOST_FOOTER, footer_of, groups_of
from budge.tables import load as read_parquet

pa = pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is in the `parquet` extra")


def file(**options: object) -> bytes:
    rng = np.random.default_rng(0)
    columns = {"a": rng.random(50), "b": pa.array([None, *range(49)]), "c": ["x", None] * 25, "d": pa.array([[1, 2]] * 50), "e": [{"f": 1}] * 50}
    sink = io.BytesIO()
    parquet.write_table(pa.table(columns), sink, **options)
    return sink.getvalue()


WAYS = [{}, {"row_group_size": 7}, {"write_statistics": False}, {"version": "1.0", "compression": "gzip"}, {"use_dictionary": False}]
TOO_LARGE = bytes(MOST_FOOTER + 1) + (MOST_FOOTER + 1).to_bytes(4, "little") + b"PAR1"


@pytest.mark.parametrize("options", WAYS)
def test_a_footer_is_read_as_pyarrow_reads_it(options: dict[str, object]) -> None:
    content = file(**options)
    footer, found = parquet.ParquetFile(io.BytesIO(content)).metadata, groups_of(footer_of(io.BytesIO(content)))
    assert [group.rows for group in found] == [footer.row_group(g).num_rows for g in range(footer.num_row_groups)]
    for g, group in enumerate(found):
        for j, column in enumerate(group.columns):
            told = footer.row_group(g).column(j)
            missing = told.statistics.null_count if told.statistics is not None and told.statistics.has_null_count else None
            assert (column.path, column.values, column.unfolded, column.missing) == (
                told.path_in_schema, told.num_values, told.total_uncompressed_size, missing,
            )  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"PAR1", b"\x01\0\0\0PAR1", b"x" * 100, b"\xff\xff\xff\x7fPAR1", TOO_LARGE])
def test_no_footer_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"footer|end as a Parquet file"):
        groups_of(footer_of(io.BytesIO(content)))


def read_changed(path: Path, changes: list[tuple[int, int]]) -> int:
    """Read a file with each change as a table of people, as rows of a run and as answers; return how often it was refused."""
    from budge.audit.pieces import read_rows
    from budge.cli.shared import read_people
    from budge.llm.answer_files import _arrow_table
    from budge.people import People

    def people(path: Path) -> None:
        found = People.of(str(path))
        for part in found.parts:
            found.read(part)

    content, refused = path.read_bytes(), 0
    for at, value in changes:
        changed = bytearray(content)
        changed[at] = value
        path.write_bytes(changed)
        for read in (people, read_people, _arrow_table):
            try:
                read(path)
            except BudgeError:
                refused += 1
        with contextlib.suppress(ValueError, RuntimeError, KeyError, TypeError):  # the reader of a run makes these errors that name the file
            read_rows(bytes(changed))
    return refused


def test_changed_bytes_of_a_footer_are_refused_or_read(tmp_path: Path) -> None:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"a": [1.5, 2.5, 3.5], "b": [1, 2, 3]}), sink)
    content = sink.getvalue()
    first = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    told = content.index(b"\x18\x0cARROW:schema")  # what follows is pandas' and Arrow's own description
    every = [(at, value) for at in range(first, told) for value in sorted({0, 0xFF, content[at] ^ 1, content[at] ^ 4, content[at] ^ 6})]
    path = tmp_path / "t.parquet"
    path.write_bytes(content)
    outcome = attempt(read_changed, path, every, hung=600.0)
    assert outcome.kind == "done", outcome
    assert outcome.value > len(every) / 2


HONEST = {
    "no rows": {"a": pa.array([], pa.float64()), "c": pa.array([], pa.string()), "k": pa.array([], pa.dictionary(pa.int32(), pa.string()))},
    "long texts": {"c": ["x" * 3_000, "y" * 40_000, None] * 4, "d": ["z" * 700] * 12},
    "nothing but missing": {"a": pa.nulls(7), "b": pa.nulls(7, pa.int32()), "c": pa.nulls(7, pa.string())},
    "nested": {"l": pa.array([[1], [2], [], None, [3]]), "s": [{"f": "x" * 900}] * 5},
    "times and decimals": {"t": pa.array([0, 1, None], pa.timestamp("us", "UTC")), "m": pa.array([1, 2, None], pa.decimal128(20, 3)), "b": [True, False, None]},
}


@pytest.mark.parametrize("options", [*WAYS, {"data_page_version": "2.0"}, {"write_page_checksum": True}, {"write_page_index": True}, {"compression": "zstd"}])
@pytest.mark.parametrize("name", HONEST)
def test_honest_files_are_read(name: str, options: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(HONEST[name]), path, **options)
    assert len(read_parquet(path)) == len(next(iter(HONEST[name].values())))
    with path.open("rb") as opened:
        groups = groups_of(footer_of(opened))
        footers.check_contents(opened, groups)
        footers.check_texts(opened, groups)


@pytest.mark.parametrize("rows", [0, 1000])
def test_files_of_other_writers_are_read(rows: int, tmp_path: Path) -> None:
    polars = pytest.importorskip("polars", reason="polars is in the `dev` extra")
    path = tmp_path / "t.parquet"
    polars.DataFrame({"a": range(rows), "c": ["x" * 5_000] * rows}, schema={"a": polars.Int64, "c": polars.String}).write_parquet(path)
    assert len(read_parquet(path)) == rows


def test_a_table_of_few_bytes_and_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.parquet"
    parquet.write_table(pa.table({"a": pa.array(np.zeros(1_000_000, np.int8))}), path)
    assert len(read_parquet(path)) == 1_000_000
    monkeypatch.setattr(footers, "MOST_VALUES", 100_000)
    monkeypatch.setattr(footers, "VALUES_A_BYTE", 100)
    with pytest.raises(DataError, match=r"states 1,000,000 values in"):
        read_parquet(path)
