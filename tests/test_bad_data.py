"""Bad tables: one test for each row of the table of bad inputs. Row, column, value and remedy; odd but sound tables are accepted."""


from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import cli, read_table
from budge.errors import DataError, InvalidStartError
from budge.spec import check

SPEC = """\
budge: 1
features:
  age:     {type: integer, bounds: [18, 100], actionable: false}
  years:   {type: integer, bounds: [0, 60], direction: increase, max_increase: 2}
  income:  {type: real, bounds: [0, 9000], max_increase: 100, max_decrease: 100}
  tel:     {type: binary}
  housing: {type: category, levels: [rent, own, free]}
constraints:
  - rule: "income >= 500 * (housing == 'own')"
"""


@pytest.fixture
def im(tmp_path: Path) -> budge.InteractionModel:
    (tmp_path / "spec.yaml").write_text(SPEC)
    return budge.InteractionModel.from_file(tmp_path / "spec.yaml")


def people(**columns: Any) -> pd.DataFrame:
    base: dict[str, Any] = {
        "age": [40, 31, 64], "years": [4, 0, 30], "income": [1000.5, 2000.0, 800.0], "tel": [1, 0, 1], "housing": ["rent", "own", "free"],
    }  # fmt: skip
    return pd.DataFrame({**base, **columns}, index=["ann", "bob", "cy"])


def first_draws(im: budge.InteractionModel, X: Any) -> np.ndarray[Any, Any]:
    return np.concatenate([block.values for block in im.sample_many(X, 5, seed=3)])


# -- refused, with row, column and value ---------------------------------------------------------------------------------------

CELLS: dict[str, tuple[dict[str, Any], str]] = {
    "NaN": ({"income": [1.0, np.nan, 3.0]}, r"row bob, column income: a value is missing \(got nan\); fill it, or declare missing: fixed"),
    "infinity": ({"income": [1.0, 2.0, np.inf]}, r"row cy, column income: an infinite value \(got inf\)"),
    "minus infinity": ({"income": [-np.inf, 2.0, 3.0]}, r"row ann, column income: an infinite value \(got -inf\)"),
    "None": ({"housing": ["rent", None, "own"]}, r"row bob, column housing: a value is missing"),
    "None among numbers": ({"age": [40, None, 30]}, r"row bob, column age: a value is missing"),
    "pd.NA": ({"age": pd.array([40, pd.NA, 30], dtype="Int64")}, r"row bob, column age: a value is missing"),
    "NaT": ({"age": pd.to_datetime(["2020-01-01", None, "2021-01-01"])}, r"column age"),
    "strings in a numeric column": ({"age": ["40", "31", "64"]}, r"row ann, column age: not a number \(and 2 more rows\) \(got '40'\)"),
    "a string among numbers": ({"age": [40, "n/a", 64]}, r"row bob, column age: not a number \(got 'n/a'\)"),
    "3.5 in an integer": ({"age": [40, 3.5, 64]}, r"row bob, column age: an integer feature holds a fraction \(got 3.5\)"),
    "2 in a binary": ({"tel": [0, 1, 2]}, r"row cy, column tel: a binary feature is 0 or 1 \(got 2\)"),
    "unknown level": ({"housing": ["rent", "onw", "own"]}, r"row bob, column housing: not a level of housing \(got 'onw'\); levels: 'rent', 'own', 'free'"),
    "integers beyond 2^53": ({"age": [40, 2**53 + 2, 64]}, r"row bob, column age: whole numbers beyond 2\^53"),
    "dates": ({"age": pd.to_datetime(["2020-01-01"] * 3)}, r"column age: holds dates"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_cells_that_cannot_be_read(case: str, im: budge.InteractionModel) -> None:
    columns, message = CELLS[case]
    with pytest.raises(DataError) as caught:
        check(im, people(**columns))
    assert re.search(message, str(caught.value)), str(caught.value)
    with pytest.raises(DataError):
        first_draws(im, people(**columns))


def test_missing_values_are_allowed_where_the_feature_declares_it() -> None:
    im = budge.InteractionModel(
        {
            "a": {"type": "integer", "bounds": [0, 3], "missing": "fixed"},
            "b": {"type": "category", "levels": ["x", "y"], "missing": "fixed"},
        }
    )
    X = pd.DataFrame({"a": [1.0, np.nan], "b": [None, "y"]})
    assert check(im, X).ok
    points = im.sample(X.iloc[[1]], 50, seed=1).points
    assert points["a"].isna().all()
    assert set(im.sample(X.iloc[[0]], 50, seed=1).points["b"].map(lambda v: v if isinstance(v, str) else None)) == {None}


def test_all_problems_of_a_table_are_told_at_once(im: budge.InteractionModel) -> None:
    bad = people(age=[40, 3.5, 64], housing=["rent", "onw", "own"], income=[1.0, np.nan, 3.0]).drop(columns="tel")
    with pytest.raises(DataError) as caught:
        check(im, bad)
    assert len(caught.value.problems) == 4


COLUMNS: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "missing column": (
        lambda X: X.rename(columns={"housing": "housng"}),
        r"column housing: is missing from the table; did you mean 'housng'",
    ),
    "duplicate column labels": (
        lambda X: X[["age", "age", "years", "income", "tel", "housing"]],
        r"column labels occur twice \(got \['age'\]\)",
    ),
    "zero rows": (lambda X: X.iloc[:0], "the table has no rows"),
    "zero columns": (lambda X: X[[]], "the table has no columns"),
    "a vector": (lambda X: X["age"], r"a table is expected, not a vector \(got 'Series of length 3'\)"),
    "a vector of numpy": (lambda X: X["age"].to_numpy(), "a table is expected, not a vector"),
    "an array without names": (lambda X: X[["age", "years"]].to_numpy(), "a table with column names is expected"),
    "a dictionary of lists": (lambda X: [1, 2, 3], "a table is expected"),
    "duplicate index": (lambda X: X.set_axis(["ann", "ann", "cy"]), r"the index has a label twice.*\(got 'ann'\).*reset_index"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_tables_that_are_none(case: str, im: budge.InteractionModel) -> None:
    change, message = COLUMNS[case]
    with pytest.raises(DataError) as caught:
        check(im, change(people()))
    assert re.search(message, str(caught.value)), str(caught.value)
    with pytest.raises(DataError):
        first_draws(im, change(people()))


# -- accepted ----------------------------------------------------------------------------------------------------------------------

SAME: dict[str, Callable[[pd.DataFrame], Any]] = {
    "other column order": lambda X: X[X.columns[::-1]],
    "extra columns": lambda X: X.assign(note=["a", "b", None], weight=[np.nan, np.inf, 0.0]),
    "bool": lambda X: X.assign(tel=X["tel"].astype(bool)),
    "nullable": lambda X: X.convert_dtypes(),
    "nullable boolean": lambda X: X.assign(tel=X["tel"].astype(bool).astype("boolean")),
    "categorical": lambda X: X.assign(housing=X["housing"].astype("category")),
    "categorical numbers": lambda X: X.assign(years=X["years"].astype("category")),
    "objects": lambda X: X.astype(object),
    "float32": lambda X: X.assign(age=X["age"].astype(np.float32), years=X["years"].astype(np.float32)),
    "small integers": lambda X: X.assign(age=X["age"].astype(np.int8), tel=X["tel"].astype(np.uint8)),
    "big-endian": lambda X: X.assign(age=X["age"].to_numpy().astype(">i4"), income=X["income"].to_numpy().astype(">f8")),
    "read-only": lambda X: X.assign(income=_frozen(X["income"].to_numpy())),
    "Fortran-ordered": lambda X: pd.DataFrame(
        np.asfortranarray(X[["age", "years", "income", "tel"]].to_numpy()),
        columns=["age", "years", "income", "tel"],
        index=X.index,
    ).assign(housing=X["housing"]),
}


def _frozen(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    copy = np.array(values)
    copy.flags.writeable = False
    return copy


@pytest.mark.parametrize("case", SAME)
def test_odd_tables_give_the_same_answer(case: str, im: budge.InteractionModel) -> None:
    plain, odd = people(), SAME[case](people())
    before = odd.copy()
    assert check(im, odd).ok
    np.testing.assert_array_equal(first_draws(im, odd), first_draws(im, plain))
    pd.testing.assert_frame_equal(odd, before)


def test_extra_columns_are_passed_on_untouched_and_the_order_is_the_callers(im: budge.InteractionModel) -> None:
    X = people().assign(note=["a", "b", "c"])[["note", "housing", "tel", "income", "years", "age"]]
    points = im.sample(X.iloc[[1]], 20, seed=1).points
    assert list(points.columns) == list(X.columns)
    assert set(points["note"]) == {"b"}
    assert points.dtypes.astype(str).to_dict() == X.dtypes.astype(str).to_dict()


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_other_tables_are_accepted(kind: str, im: budge.InteractionModel) -> None:
    module = pytest.importorskip(kind)
    X = people().reset_index(drop=True)
    other = module.DataFrame(X.to_dict("list")) if kind == "polars" else module.table(X.to_dict("list"))
    np.testing.assert_array_equal(first_draws(im, other), first_draws(im, X))


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_other_tables_come_back_as_they_came(kind: str, n_jobs: int, im: budge.InteractionModel) -> None:
    """Points are of the caller's kind with her types, and so is every table that her model is asked about."""
    module = pytest.importorskip(kind)
    pytest.importorskip("joblib")
    X = people().reset_index(drop=True)
    other = module.DataFrame(X.to_dict("list")) if kind == "polars" else module.table(X.to_dict("list"))
    row = other[:1] if kind == "polars" else other.slice(0, 1)
    points = im.sample(row, 5, seed=1).points
    assert type(points) is type(other)
    assert points.schema == other.schema
    assert points.to_pandas().to_dict("list") == im.sample(X.iloc[[0]], 5, seed=1).points.to_dict("list")

    def model(frame: object) -> np.ndarray:
        assert type(frame) is type(other), type(frame)
        return np.asarray(frame["income"]) > 900  # type: ignore[index]

    found = budge.audit(model, other, im, target=True, n=40, n_jobs=n_jobs).table
    assert found.equals(budge.audit(lambda t: t["income"] > 900, X, im, target=True, n=40).table)
    gains = budge.ablate(model, other, im, target=True, n=40).ranking
    assert gains.equals(budge.ablate(lambda t: t["income"] > 900, X, im, target=True, n=40).ranking)


def test_minus_zero_draws_as_zero_does(im: budge.InteractionModel) -> None:
    zero, minus = people(income=[0.0, 2000.0, 800.0]), people(income=[-0.0, 2000.0, 800.0])
    np.testing.assert_array_equal(first_draws(im, zero), first_draws(im, minus))


# -- starts that break the spec --------------------------------------------------------------------------------------------------------

STARTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a value outside its bounds": ({"age": [40, 130, 64]}, "bounds of age", "age = 130"),
    "a start that breaks a constraint": ({"income": [1000.5, 20.0, 800.0]}, "rule(housing, income)", "income = 20.0"),
}


@pytest.mark.parametrize("case", STARTS)
def test_invalid_starts_are_named(case: str, im: budge.InteractionModel) -> None:
    columns, label, value = STARTS[case]
    X = people(**columns)
    assert [p.where for p in im.broken(X.iloc[[1]])] == [label]
    with pytest.raises(InvalidStartError, match=re.escape(label)):
        im.sample(X.iloc[[1]], 5)
    assert im.sample(X.iloc[[1]], 5, on_invalid="skip").status == "invalid_start"
    assert len(im.sample(X.iloc[[1]], 5, on_invalid="keep").points) == 5
    report = check(im, X)
    assert (report.ok, report.broken_rows, [b.label for b in report.broken]) == (False, 1, [label])
    assert "row bob" in str(report)
    assert value in str(report)


# -- the same through files and the command line ------------------------------------------------------------------------------------------

TABLES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n\n", "the file is empty"),
    "no rows": (b"age,years,income,tel,housing\n", "the table has no rows"),
    "not UTF-8": (b"age,years,income,tel,housing\n40,4,1000,1,caf\x81\n", r"is not UTF-8 at byte 44 \(line 2\)"),
    "NUL bytes": (b"age,years\n1,\0\n", "NUL byte at byte 12"),
    "duplicate columns": (b"age,age,years,income,tel,housing\n1,1,1,1,1,rent\n", r"column labels occur twice \(got \['age'\]\)"),
    "a ragged row": (b"age,years\n1,2\n1,2,3\n", "is not a table: .*line 3"),
    "a column without a name": (b"age,,years\n1,2,3\n", "column 2 has no name"),
    "missing column": (b"age,years,income,tel,housng\n40,4,1000,1,rent\n", "did you mean 'housng'"),
    "a bad cell": (b"age,years,income,tel,housing\n40,4,1000,1,rent\n40,x,1000,1,rent\n", "row 1, column years: not a number|column years: not a number"),
    "a missing cell": (b"age,years,income,tel,housing\n40,,1000,1,rent\n40,3,1000,1,rent\n", "row 0, column years: a value is missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_files_that_hold_no_table(
    case: str, im: budge.InteractionModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, message = TABLES[case]
    (tmp_path / "people.csv").write_bytes(data)
    assert cli.main(["check", str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(message, err), err
    with pytest.raises(DataError):
        check(im, read_table(tmp_path / "people.csv"))


def test_a_missing_file_is_named(im: budge.InteractionModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", str(tmp_path / "spec.yaml"), str(tmp_path / "nobody.csv")]) == 3
    assert "nobody.csv: there is no such file" in capsys.readouterr().err
    assert cli.main(["check", str(tmp_path / "spce.yaml"), str(tmp_path / "nobody.csv")]) == 3
    assert "did you mean 'spec.yaml'" in capsys.readouterr().err


def test_rows_that_break_the_spec_are_reported_and_fail_only_if_asked(
    im: budge.InteractionModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people(age=[40, 130, 64]).to_csv(tmp_path / "people.csv")
    command = ["check", str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv")]
    assert cli.main(command) == 0
    assert "1 of 3 rows break the spec" in capsys.readouterr().out
    assert cli.main([*command, "--strict"]) == 1


def test_a_name_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "spec.yaml").write_text('budge: 1\nfeatures:\n  "a\\e[31mb": {type: integer, bounds: [0, 1]}\n')
    (tmp_path / "people.csv").write_text("a\x1b[31mb\n5\n")
    assert cli.main(["check", str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv")]) == 0
    assert cli.main(["check", str(tmp_path / "spec.yaml")]) == 0
    assert cli.main(["init", str(tmp_path / "people.csv")]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())
