"""A first spec from data: what is there is found, what is not there is not, and nothing is decided in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budge
from budge import cli
from budge.errors import DataError
from budge.spec import check, parse, read_table, suggest
from budge.spec.columns import read_column

N = 400
RNG = np.random.default_rng(5)


def people() -> pd.DataFrame:
    """Columns with everything that can be found in them, and some that hold nothing."""
    tweets = RNG.integers(0, 40, N) * (RNG.random(N) < 0.7)
    home = RNG.integers(0, 3, N)
    rank = RNG.integers(0, 4, N)
    a, b = RNG.integers(0, 9, N), RNG.integers(0, 9, N)
    mortgage = ((home == 1) & (RNG.random(N) < 0.5)).astype(int)
    return pd.DataFrame({
        "age": RNG.integers(18, 90, N),
        "income": RNG.normal(1000, 50, N).round(2),
        "tweets": tweets, "no_tweets": (tweets == 0).astype(int),
        "home=rent": (home == 0).astype(int), "home=own": (home == 1).astype(int), "home=free": (home == 2).astype(int),
        "rank>=3": (rank >= 3).astype(int), "rank>=1": (rank >= 1).astype(int), "rank>=2": (rank >= 2).astype(int),
        "a": a, "b": b, "total": a + 2 * b + 3,
        "mortgage": mortgage, "housing": np.array(["rent", "own", "free"])[home],
        "coin": RNG.integers(0, 2, N), "toss": RNG.integers(0, 2, N),
    })  # fmt: skip


PEOPLE = people()
FOUND = suggest(PEOPLE)


def found(kind: str) -> list[Any]:
    return [f.spec[kind] for f in FOUND.findings if f.kind == kind]


def test_types_and_bounds() -> None:
    by_name = {f.name: f for f in FOUND.features}
    assert list(by_name) == list(PEOPLE.columns)
    assert (by_name["age"].type, by_name["age"].bounds) == ("integer", (PEOPLE["age"].min(), PEOPLE["age"].max()))
    assert (by_name["income"].type, by_name["income"].bounds) == ("real", (PEOPLE["income"].min(), PEOPLE["income"].max()))
    assert (by_name["coin"].type, by_name["coin"].bounds) == ("binary", None)
    assert by_name["housing"].levels == ("free", "own", "rent")


def test_groups() -> None:
    assert {"features": ["home=rent", "home=own", "home=free"]} in found("one_hot")
    assert {"features": ["rank>=1", "rank>=2", "rank>=3"]} in found("thermometer")
    assert len(found("one_hot")) == len(found("thermometer")) == 1
    assert all(f.support == f.rows == N for f in FOUND.findings if f.encoding)


def test_implications_with_their_support() -> None:
    rules = {(f.spec["if_then"]["if"], f.spec["if_then"]["then"]): f.support for f in FOUND.findings if f.kind == "if_then"}
    empty = int((PEOPLE["tweets"] == 0).sum())
    assert rules["no_tweets == 1", "tweets == 0"] == empty
    assert rules["no_tweets == 0", "tweets >= 1"] == N - empty
    assert rules["mortgage == 1", "housing == 'own'"] == PEOPLE["mortgage"].sum()
    assert not any("coin" in text or "toss" in text for pair in rules for text in pair)


def test_linear_relations() -> None:
    assert {"coefficients": {"total": 1, "a": -1, "b": -2}, "relation": "==", "constant": 3} in found("linear")
    assert len(found("linear")) == 1


@pytest.mark.parametrize("broken", ["home=rent", "rank>=2", "no_tweets", "total", "mortgage"])
def test_one_row_against_is_enough(broken: str) -> None:
    """A single exception takes the suggestion away."""
    spoilt = PEOPLE.copy()
    if broken == "rank>=2":
        spoilt.loc[spoilt.index[(spoilt["rank>=1"] == 0)][0], "rank>=2"] = 1
    elif broken == "mortgage":
        spoilt.loc[spoilt.index[spoilt["housing"] == "rent"][0], "mortgage"] = 1
    else:
        spoilt.loc[7, broken] = spoilt.loc[7, broken] + 1 if broken == "total" else 1 - spoilt.loc[7, broken]
    gone = {"home=rent": "one_hot", "rank>=2": "thermometer", "total": "linear"}.get(broken)
    after = suggest(spoilt).findings
    if gone:
        assert not any(f.kind == gone and broken in json.dumps(f.spec) for f in after)
    elif broken == "no_tweets":
        assert not any("tweets == 0" in json.dumps(f.spec) for f in after)
    else:
        assert not any(f.spec.get("if_then") == {"if": "mortgage == 1", "then": "housing == 'own'"} for f in after)


def test_everything_suggested_holds_and_can_be_confirmed() -> None:
    whole = FOUND.model("all")
    assert len(whole.constraints) == len(FOUND.findings)
    assert check(whole, PEOPLE, starts=2).broken_rows == 0


def test_from_frame_takes_types_bounds_and_encodings() -> None:
    im = budge.InteractionModel.from_frame(PEOPLE, target="income")
    assert "income" not in im.by_name
    assert {c.kind for c in im.constraints} == {"one_hot", "thermometer"}
    assert all(f.actionable for f in im.features)
    assert FOUND.model("none").constraints == ()
    assert len(FOUND.model([0]).constraints) == 1


def test_the_text_reads_back_and_holds_suggestions_as_comments_with_support() -> None:
    text = FOUND.to_text()
    assert parse(text, "yaml") == FOUND.model("none")
    assert text.count(f" of {N} rows") == len(FOUND.findings)
    confirmed = "\n".join(line.replace("  # - ", "  - ", 1) if line.startswith("  # - ") else line for line in text.splitlines())
    assert parse(confirmed, "yaml").to_spec()["constraints"] == FOUND.model("all").to_spec()["constraints"]


# -- nothing in silence ------------------------------------------------------------------------------------------------------------

COLUMNS: dict[str, tuple[pd.Series, str, str]] = {
    "decimals of 0 and 1": (pd.Series([0.0, 1.0, 1.0]), "real", "only 0 and 1"),
    "decimals that are whole": (pd.Series([0.0, 7.0, 3.0]), "real", "only whole numbers"),
    "bools": (pd.Series([True, False, True]), "binary", ""),
    "whole 0 and 1": (pd.Series([0, 1, 1]), "binary", ""),
    "whole with a gap": (pd.Series([3.0, np.nan, 5.0]), "integer", "1 missing value"),
    "0, 1 and a gap": (pd.Series([0.0, np.nan, 1.0]), "binary", "taken for binary"),
    "nullable": (pd.Series([3, None, 5], dtype="Int64"), "integer", "1 missing value"),
    "one value": (pd.Series([4, 4, 4]), "fixed", "only 4"),
    "one text": (pd.Series(["a", "a", "a"]), "fixed", "only 'a'"),
    "nothing": (pd.Series([None, None], dtype=object), "fixed", "no value"),
    "dates": (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"])), "fixed", "dates"),
    "names": (pd.Series([f"person {i}" for i in range(60)]), "fixed", "60 different texts"),
    "row numbers": (pd.Series(range(30)), "fixed", "identifier"),
    "huge numbers": (pd.Series([2**60, 2**61]), "fixed", "identifier"),
    "infinity": (pd.Series([1.5, np.inf, 2.5]), "real", "infinite"),
    "ordered": (pd.Series(pd.Categorical(["lo", "hi"], ["lo", "hi"], ordered=True)), "category", ""),
    "numbers as levels": (pd.Series(pd.Categorical([3, 5, 3])), "category", ""),
    "mixed": (pd.Series(["a", 1, "a"], dtype=object), "category", ""),
    "lists": (pd.Series([(1, 2), (3,)]), "fixed", "tuple"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_what_a_column_seems_to_be_is_said(case: str) -> None:
    column, kind, remark = COLUMNS[case]
    got = read_column("x", column)
    assert got.feature.type == kind
    assert remark in got.remark
    assert bool(got.remark) == bool(remark)
    assert got.feature.problems() == []
    text = suggest(pd.DataFrame({"x": column, "other": np.linspace(0, 1, len(column))})).to_text()
    assert remark in text
    parse(text, "yaml")


def test_dummies_stored_as_decimals_are_a_group_after_they_are_declared() -> None:
    X = pd.DataFrame({"h_a": [1.0, 0, 0, 1], "h_b": [0.0, 1, 1, 0]})
    got = suggest(X)
    assert [f.remark for f in got.findings] == ["declare h_a, h_b binary first"]
    assert got.model().constraints == ()


@given(st.integers(2, 12), st.integers(1, 6), st.integers(0, 10**6))
@settings(max_examples=80, deadline=None)
def test_any_table_gives_a_spec_that_its_rows_keep(rows: int, columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    makers = [lambda: rng.integers(0, 2, rows), lambda: rng.integers(-5, 5, rows), lambda: rng.normal(size=rows), lambda: rng.choice(list("abc"), rows), lambda: rng.random(rows) < 0.5]  # fmt: skip  # noqa: E501
    X = pd.DataFrame({f"c_{i}": makers[int(rng.integers(len(makers)))]() for i in range(columns)})
    got = suggest(X)
    for confirm in ("none", "encodings", "all"):
        assert check(got.model(confirm), X, starts=1).broken_rows == 0


def test_bad_requests() -> None:
    with pytest.raises(DataError, match=r"target: no such column \(got 'incom'\); did you mean 'income'"):
        suggest(PEOPLE, target="incom")
    with pytest.raises(DataError, match="no column is left"):
        suggest(PEOPLE[["age"]], target="age")
    with pytest.raises(DataError, match="a name that is a text"):
        suggest(pd.DataFrame(np.eye(3)))


# -- the command -----------------------------------------------------------------------------------------------------------------------


def test_init_writes_a_spec_that_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv")
    spec = tmp_path / "model.yaml"
    assert (
        cli.main(
            ["init", str(tmp_path / "people.csv"), "-o", str(spec), "--target", "coin", "--target", "toss", "--name", "People"]
        )
        == 0
    )
    assert f"15 features from {N} rows" in " ".join(capsys.readouterr().out.split())
    im = budge.InteractionModel.from_file(spec)
    assert im.name == "People"
    assert "coin" not in im.by_name
    assert cli.main(["init", str(tmp_path / "people.csv"), "-o", str(spec)]) == 2
    assert "something stands there" in capsys.readouterr().err
    assert cli.main(["init", str(tmp_path / "people.csv"), "-o", str(spec), "--overwrite"]) == 0
    assert cli.main(["check", str(spec), str(tmp_path / "people.csv"), "--strict", "--rows", "2"]) == 0


@pytest.mark.parametrize("kind", ["json", "toml"])
def test_init_in_other_formats_writes_the_features(kind: str, tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    assert cli.main(["init", str(tmp_path / "people.csv"), "-o", str(tmp_path / f"m.{kind}")]) == 0
    assert budge.InteractionModel.from_file(tmp_path / f"m.{kind}") == suggest(read_table(tmp_path / "people.csv")).model("none")


def test_init_as_a_record_and_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    assert cli.main(["init", str(tmp_path / "people.csv"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["rows"] == N
    assert record["written"] is None
    assert {"kind", "constraint", "support", "rows"} <= set(record["suggestions"][0])
    assert cli.main(["init", str(tmp_path / "people.csv")]) == 0
    assert parse(capsys.readouterr().out, "yaml").by_name["age"].type == "integer"
    assert cli.main(["init", str(tmp_path / "nobody.csv")]) == 3
    (tmp_path / "empty.csv").write_text("")
    assert cli.main(["init", str(tmp_path / "empty.csv"), "-o", str(tmp_path / "e.yaml")]) == 2
    assert not (tmp_path / "e.yaml").exists()


# -- tables from files -------------------------------------------------------------------------------------------------------------------


def test_texts_that_look_like_nothing_stay_texts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("region,score,flag\nNA,1,True\nNone,NA,False\nEU,3,True\n")
    X = read_table(tmp_path / "a.csv")
    assert X["region"].tolist() == ["NA", "None", "EU"]
    assert np.isnan(X["score"].iloc[1])
    assert X["score"].dtype.kind == "f"
    assert X["flag"].dtype.kind == "b"


def test_a_first_column_without_a_name_labels_the_rows(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1, 2]}, index=["ann", "bob"]).to_csv(tmp_path / "a.csv")
    assert read_table(tmp_path / "a.csv").index.tolist() == ["ann", "bob"]
    (tmp_path / "b.tsv").write_text("a\tb\n1\t2\n")
    assert read_table(tmp_path / "b.tsv").columns.tolist() == ["a", "b"]
