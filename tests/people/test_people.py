"""Streams of people: whatever the parts, together they are the table that a reader of the whole gives."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budge import read_table
from budge.errors import DataError, InputError, StorageError
from budge.people import People, is_stream

pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")

PARTS = (1, 7, 99, 100, 101, 299, 300, 5000)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 1000
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n), "income": rng.normal(size=n), "town": rng.choice(["x", "y,z", 'q "r"\nnew'], n),
            "rate": pd.Categorical(rng.choice(list("abcd"), n), categories=list("dcbae"), ordered=True), "owner": rng.random(n) < 0.5,
            "jobs": np.where(rng.random(n) < 0.1, np.nan, rng.integers(0, 5, n)),
        }
    )  # fmt: skip


def together(people: People) -> pd.DataFrame:
    """Return all parts, each sent through a pickle as to a worker."""
    assert all(a.first + a.rows == b.first for a, b in zip(people.parts, people.parts[1:]))
    sent = pickle.loads(pickle.dumps(people))
    return pd.concat([sent.read(part) for part in sent.parts])


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_parquet_file_are_the_file(tmp_path: Path, table: pd.DataFrame, part: int) -> None:
    table.to_parquet(tmp_path / "a.parquet", row_group_size=300)
    people = People.of(tmp_path / "a.parquet", part=part)
    assert len(people) == 1000
    assert max(p.rows for p in people.parts) <= part
    pd.testing.assert_frame_equal(together(people), pd.read_parquet(tmp_path / "a.parquet"))


def test_labels_of_the_file_stay(tmp_path: Path, table: pd.DataFrame) -> None:
    named = table.set_index(pd.Index([f"p{i}" for i in range(1000)], name="who"))
    named.to_parquet(tmp_path / "named.parquet")
    pd.testing.assert_frame_equal(together(People.of(tmp_path / "named.parquet", part=99)), pd.read_parquet(tmp_path / "named.parquet"))
    table.iloc[100:].to_parquet(tmp_path / "late.parquet")
    pd.testing.assert_frame_equal(together(People.of(tmp_path / "late.parquet", part=99)), pd.read_parquet(tmp_path / "late.parquet"))


def test_many_files_are_joined_up_to_a_part_and_know_all_categories(tmp_path: Path, table: pd.DataFrame) -> None:
    for k in range(10):
        some = table.iloc[100 * k : 100 * k + 100]
        some.assign(rate=some["rate"].cat.remove_unused_categories()).to_parquet(tmp_path / f"{k}.parquet", index=False)
    for given_ in (tmp_path, str(tmp_path / "*.parquet"), sorted(tmp_path.glob("*.parquet"))):
        people = People.of(given_, part=250)
        assert [p.rows for p in people.parts] == [200] * 5
        found = together(people)
        pd.testing.assert_frame_equal(found.drop(columns="rate"), table.drop(columns="rate"))
        assert (found["rate"].astype(str) == table["rate"].astype(str)).all()
        assert {tuple(people.read(p)["rate"].cat.categories) for p in people.parts} == {tuple(found["rate"].cat.categories)}


def test_folders_with_values_in_their_names_give_a_column(tmp_path: Path, table: pd.DataFrame) -> None:
    table.assign(year=2000 + np.arange(1000) % 3).to_parquet(tmp_path / "by", partition_cols=["year"])
    found = together(People.of(tmp_path / "by", part=200))
    assert found["year"].value_counts().to_dict() == {2000: 334, 2001: 333, 2002: 333}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("index", [False, True])
def test_parts_of_a_csv_file_are_what_the_reader_of_the_whole_gives(tmp_path: Path, table: pd.DataFrame, part: int, index: bool) -> None:
    plain = table.drop(columns="rate")
    plain.loc[5, "town"] = np.nan
    plain.to_csv(tmp_path / "x.csv", index=index)
    pd.testing.assert_frame_equal(together(People.of(tmp_path / "x.csv", part=part)), read_table(tmp_path / "x.csv"), check_index_type=False)


CELLS = st.sampled_from(["1", "2", "-3", "2.5", "", "NA", "True", "False", "abc", '"a, b"', '"two\nlines"', '"a ""b"""', "None", "007", "1e3"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), st.integers(1, 13), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_a_column_has_the_type_of_the_whole_whatever_its_parts_hold(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], part: int, end: str, last: bool
) -> None:
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    text = end.join(["k,a,b", *(f"{i},{a},{b}" for i, (a, b) in enumerate(rows))]) + (end if last else "")
    path.write_bytes(text.encode())
    pd.testing.assert_frame_equal(together(People.of(path, part=part)), read_table(path))


def test_tables_that_come_once(table: pd.DataFrame) -> None:
    def come() -> Iterator[pd.DataFrame]:
        for k in range(5):
            yield table.iloc[200 * k : 200 * k + 200]

    people = People.of(come(), part=150)
    pd.testing.assert_frame_equal(together(people), table)
    assert people.digest == People.of(come(), part=150).digest
    assert people.digest != People.of(iter([table.iloc[:999]]), part=150).digest
    with pytest.raises(DataError, match="table 1 differs from the first"):
        People.of(iter([table, table.rename(columns={"age": "years"})]))
    with pytest.raises(DataError, match="without a table"):
        People.of(iter([]))


def test_dask_and_arrow(tmp_path: Path, table: pd.DataFrame) -> None:
    dask = pytest.importorskip("dask.dataframe", reason="dask is in the `dask` extra")
    from pyarrow import dataset

    frame = dask.from_pandas(table, npartitions=4)
    people = People.of(frame)
    assert len(people.parts) == 4
    pd.testing.assert_frame_equal(together(people), frame.compute())
    table.to_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(together(People.of(dataset.dataset(tmp_path / "a.parquet"), part=77)), pd.read_parquet(tmp_path / "a.parquet"))
    with pytest.raises(DataError, match=r"categorize\(\)"):
        People.of(dask.read_parquet(tmp_path / "a.parquet"))


def test_the_digest_is_of_the_content_not_of_the_name(tmp_path: Path, table: pd.DataFrame) -> None:
    table.to_parquet(tmp_path / "a.parquet")
    table.to_parquet(tmp_path / "b.parquet")
    table.assign(age=table["age"] + 1).to_parquet(tmp_path / "c.parquet")
    a, b, c = (People.of(tmp_path / f"{k}.parquet").digest for k in "abc")
    assert a == b != c


def test_a_column_of_labels_and_columns_that_are_not_for_the_model(tmp_path: Path, table: pd.DataFrame) -> None:
    table.assign(who=[f"p{i}" for i in range(1000)]).to_parquet(tmp_path / "a.parquet")
    people = People.of(tmp_path / "a.parquet", id="who", drop=["owner"])
    frame = people.read(people.parts[0])
    assert frame.index[3] == "p3"
    assert list(people.for_model(frame).columns) == ["age", "income", "town", "rate", "jobs"]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda d: People.of(d / "none.parquet"), StorageError, "there is no such file"),
        (lambda d: People.of(d / "*.parquet"), StorageError, "no file has such a name"),
        (lambda d: People.of(d), StorageError, "no Parquet files"),
        (lambda d: People.of([_written(d / "x.csv", "a"), _written(d / "y.csv", "a")]), DataError, "several files must be Parquet files"),
        (lambda d: People.of(_written(d / "x.csv", "a,b\n1,2\n"), read={"seperator": ";"}), InputError, "did you mean 'separator'"),
        (lambda d: People.of(_written(d / "x.parquet", "a")), DataError, "cannot be read"),
        (lambda d: People.of(_written(d / "x.csv", 'a,b\n1,"2\n')), DataError, "quotation is not closed"),
        (lambda d: People.of(_written(d / "x.csv", "a,b\n")), DataError, "no people"),
        (lambda d: People.of(_written(d / "x.csv", "a,b\n1,2\n"), drop=["c"]), InputError, "no such column"),
        (lambda d: People.of(_written(d / "x.csv", "a,b\n1,2\n"), part=0), InputError, "at least 1"),
        (lambda d: People.of(5), InputError, "is no stream of people"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, make: Callable[[Path], Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make(tmp_path)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_what_is_a_stream(table: pd.DataFrame) -> None:
    assert is_stream("people.csv")
    assert is_stream(iter([table]))
    assert not any(map(is_stream, (table, table.to_numpy(), [1, 2], {"a": 1}, table["age"])))


def test_names_of_folders_above_the_people_are_no_columns(tmp_path: Path, table: pd.DataFrame) -> None:
    place = tmp_path / "age=3"
    place.mkdir()
    table.astype({"age": "int32"}).to_parquet(place / "p.parquet")
    for given_ in (place / "p.parquet", [place / "p.parquet"], str(place / "*.parquet"), place):
        assert together(People.of(given_))["age"].tolist() == table["age"].tolist()
    with pytest.raises(DataError, match="gives a column that the file has, too"):
        People.of(tmp_path)


def test_files_of_other_types_are_joined_as_pandas_joins_them(tmp_path: Path, table: pd.DataFrame) -> None:
    one, two = table.iloc[:300].astype({"income": "float32", "age": "int8"}), table.iloc[300:].copy()
    two["age"] = two["age"].astype(float).where(two.index % 7 > 0)
    one.to_parquet(tmp_path / "a.parquet", index=False)
    two.to_parquet(tmp_path / "b.parquet", index=False)
    for part in (100, 5000):
        found = together(People.of(tmp_path, part=part))
        pd.testing.assert_frame_equal(found.drop(columns="rate"), pd.concat([one, two]).drop(columns="rate"))
        alone = together(People.of(tmp_path / "b.parquet", part=part))  # after the same file was read with other types
        pd.testing.assert_frame_equal(alone, pd.read_parquet(tmp_path / "b.parquet"))
    two.assign(age="5").to_parquet(tmp_path / "b.parquet", index=False)
    with pytest.raises(DataError, match="different types"):
        People.of(tmp_path)
    two.drop(columns="town").to_parquet(tmp_path / "b.parquet", index=False)
    with pytest.raises(DataError, match="different columns"):
        People.of(tmp_path)


@pytest.mark.parametrize("statistics", [True, False])
def test_a_gap_anywhere_gives_a_column_the_same_type_in_every_part(tmp_path: Path, statistics: bool) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    rows = pa.table({"k": pa.array([1] * 50 + [None] + [2] * 49), "flag": pa.array([True] * 99 + [None]), "full": pa.array(range(100))})
    parquet.write_table(rows, tmp_path / "p.parquet", row_group_size=10, write_statistics=statistics)
    whole = pd.read_parquet(tmp_path / "p.parquet")
    people = People.of(tmp_path / "p.parquet", part=10)
    assert {tuple(map(str, people.read(p).dtypes)) for p in people.parts} == {tuple(map(str, whole.dtypes))}
    pd.testing.assert_frame_equal(together(people), whole)


def test_lines_with_too_many_cells_and_blank_lines(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n4,5,6\n5,Smith,John,9\n7,8,9\n")
    for part in (1, 2, 3, 100):
        with pytest.raises(DataError, match="not a table"):
            People.of(tmp_path / "x.csv", part=part)
    (tmp_path / "y.csv").write_text("a,b\n1,2\n3,4\n\n\n")
    for part in (1, 2, 3):
        pd.testing.assert_frame_equal(together(People.of(tmp_path / "y.csv", part=part)), read_table(tmp_path / "y.csv"))


def test_a_label_that_stands_for_two_people(tmp_path: Path, table: pd.DataFrame) -> None:
    named = table.assign(who=[f"p{i}" for i in range(999)] + ["p17"])
    named.to_parquet(tmp_path / "a.parquet", index=False)
    named.drop(columns="rate").to_csv(tmp_path / "a.csv", index=False)
    named.set_index("who").to_parquet(tmp_path / "b.parquet")
    for make in (
        lambda: People.of(tmp_path / "a.parquet", id="who", part=100), lambda: People.of(tmp_path / "b.parquet", part=100),
        lambda: People.of(tmp_path / "a.csv", id="who", part=100),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"stands for two people.*p17"):
            make()


def test_labels_of_tables_that_come_once(table: pd.DataFrame) -> None:
    late = table.iloc[500:]
    pd.testing.assert_frame_equal(together(People.of(iter([late.iloc[:200], late.iloc[200:]]), part=70)), late, check_index_type=False)
    with pytest.raises(DataError, match="labels its people"):
        People.of(iter([table.iloc[:10], table.iloc[20:30]]))


def test_data_sets_that_cannot_be_cut(tmp_path: Path, table: pd.DataFrame) -> None:
    from pyarrow import dataset

    table.to_csv(tmp_path / "x.csv")
    with pytest.raises(DataError, match="no data set of Parquet files"):
        People.of(dataset.dataset(tmp_path / "x.csv", format="csv"))
    table.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"cannot be read in parts|no data set"):
        People.of(dataset.dataset(tmp_path / "x.parquet").filter(dataset.field("age") > 30))
