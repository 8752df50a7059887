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
from budge import cli, read_table
from budge.errors import DataError
from budge.spec import check, parse, suggest
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
    alone = suggest(PEOPLE.drop(columns="housing"))
    assert [f.spec["one_hot"] for f in alone.findings if f.kind == "one_hot"] == [{"features": ["home=rent", "home=own", "home=free"]}]
    assert found("thermometer") == [{"features": ["rank>=1", "rank>=2", "rank>=3"]}]
    beside = {"features": ["home=rent", "home=own", "home=free", "housing"], "values": [[0, 0, 1, "free"], [0, 1, 0, "own"], [1, 0, 0, "rent"]]}
    assert [{**c, "values": sorted(c["values"])} for c in found("reachability")] == [beside]  # of a category and its dummies
    assert found("one_hot") == []
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
    im = budge.InteractionModel.from_frame(PEOPLE, outcome="income")
    assert "income" not in im.by_name
    assert {c.kind for c in im.constraints} == {"reachability", "thermometer"}
    assert [f.name for f in im.features if not f.actionable] == ["age"]
    assert im.draft
    assert not im.confirmed().draft
    assert im.confirmed() == im  # the mark is no content
    assert FOUND.model("none").constraints == ()
    assert len(FOUND.model([0]).constraints) == 1


def test_the_text_reads_back_and_holds_suggestions_as_comments_with_support() -> None:
    text = FOUND.to_text()
    assert parse(text, "yaml") == FOUND.model("encodings")
    assert parse(text, "yaml").draft
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
    with pytest.raises(DataError, match=r"outcome: no such column \(got 'incom'\); did you mean 'income'"):
        suggest(PEOPLE, outcome="incom")
    with pytest.raises(DataError, match="no column is left"):
        suggest(PEOPLE[["age"]], drop="age")
    with pytest.raises(DataError, match="a name that is a text"):
        suggest(pd.DataFrame(np.eye(3)))


# -- what helps ----------------------------------------------------------------------------------------------------------------------


def census(n: int = 3000) -> pd.DataFrame:
    """A table like that of the Adult census: education as a text and as a number, an identifier, traits, codes, an outcome."""
    rng = np.random.default_rng(1)
    level = np.append(np.arange(16), rng.choice(16, n - 16, p=np.arange(1, 17) / 136))
    city = rng.integers(0, 12, n)
    return pd.DataFrame({
        "id": rng.permutation(n) + 7, "age": rng.integers(17, 90, n), "education": np.array([f"level {k:02d}" for k in range(16)])[level],
        "education-num": level + 1, "city": [f"city {k}" for k in city], "region": np.array(list("NESW"))[city % 4], "SEX": rng.integers(1, 3, n),
        "marriage": rng.integers(0, 4, n), "children": rng.integers(0, 5, n), "age_of_account": rng.integers(0, 30, n),
        "capital-gain": np.where(rng.random(n) < 0.01, 99_999, rng.integers(0, 9000, n)), "email": [f"p{k}@example.org" for k in range(n)],
        "native-country": rng.choice(["US", "MX"], n), "approved": rng.integers(0, 2, n),
    })  # fmt: skip


def test_columns_that_determine_each_other_change_together() -> None:
    """Without the constraint nearly all draws are people who cannot be."""
    X = census()
    found = suggest(X, outcome="approved")
    pairs = {tuple(row) for row in X[["education", "education-num"]].drop_duplicates().to_numpy().tolist()}

    def impossible(im: budge.InteractionModel) -> float:
        points = im.sample(X.iloc[[0]], 400).points
        return float(np.mean([tuple(row) not in pairs for row in points[["education", "education-num"]].to_numpy().tolist()]))

    assert impossible(found.model("none")) > 0.9
    assert impossible(found.model()) == 0
    groups = {tuple(f.spec["reachability"]["features"]): len(f.spec["reachability"]["values"]) for f in found.findings if f.kind == "reachability"}
    assert groups == {("education", "education-num"): 16, ("city", "region"): 12}
    X.loc[5, "education-num"] = X.loc[5, "education-num"] % 16 + 1
    assert not any("education" in f.spec["reachability"]["features"] for f in suggest(X).findings if f.kind == "reachability")


def test_decimals_of_a_category_change_with_it() -> None:
    """Whole numbers that are written as decimals, and a rate per region; of two amounts neither is pinned to the values of the other that occur."""
    rng = np.random.default_rng(1)
    school, region, size = rng.integers(0, 5, 300), rng.integers(0, 3, 300), rng.integers(1, 40, 300)
    X = pd.DataFrame({
        "school": np.array(list("abcde"))[school], "years": school * 3.0, "region": np.array(["n", "s", "w"])[region],
        "rate": np.array([5.3, 4.125, 7.5])[region], "size": size, "root": np.sqrt(size), "cut": np.where(size > 20, np.inf, 1.0 * school),
    })  # fmt: skip
    found = suggest(X)
    ruled = [f.spec["reachability"] for f in found.findings if f.kind == "reachability"]
    assert [r["features"] for r in ruled] == [["school", "years"], ["region", "rate"]]
    assert sorted(ruled[0]["values"]) == [["a", 0], ["b", 3], ["c", 6], ["d", 9], ["e", 12]]
    assert found.follows == {"root": "size"}


def test_flags_of_a_category_change_with_it() -> None:
    """Two values are enough, beside a category; a flag of an amount is an implication, which leaves all amounts possible."""
    rng = np.random.default_rng(3)
    level, kids, smokes = rng.integers(0, 6, 300), rng.integers(0, 4, 300), rng.integers(0, 2, 300)
    X = pd.DataFrame({
        "level": np.array(list("abcdef"))[level], "college": (level > 3) * 1, "doctor": np.where(level > 4, "yes", "no"),
        "kids": kids, "no_kids": (kids == 0) * 1,
        "smoker": np.array(["y", "n"])[smokes], "smokes": smokes == 0, "coin": rng.integers(0, 2, 300), "toss": rng.choice(["h", "t"], 300),
    })  # fmt: skip
    found = suggest(X)
    assert [f.spec["reachability"]["features"] for f in found.findings if f.kind == "reachability"] == [["level", "college", "doctor"], ["smoker", "smokes"]]
    assert {tuple(f.spec["if_then"].values()) for f in found.findings if f.kind == "if_then"} == {("no_kids == 1", "kids == 0"), ("no_kids == 0", "kids >= 1")}
    points = found.model().sample(X.iloc[[0]], 300).points
    assert (points["college"].eq(1) == points["level"].isin(["e", "f"])).all()
    assert (points["doctor"].eq("yes") == points["level"].eq("f")).all()
    assert (points["smokes"] == points["smoker"].eq("y")).all()
    lacking = suggest(X.assign(grade=[*level[:-1] * 2.0, np.nan]))  # the others are tied as before
    assert [f.spec for f in lacking.findings if f.kind == "reachability"] == [f.spec for f in found.findings if f.kind == "reachability"]
    assert "tied to level" in lacking.remarks["grade"]
    assert check(found.model("all"), X).broken_rows == 0


def test_what_holds_but_for_missing_values_is_remarked_and_no_constraint() -> None:
    """As a constraint it would break the rows that lack a value, and rows that lack another column's value count."""
    rng = np.random.default_rng(2)
    school, home, a, b = rng.integers(0, 5, 200), rng.integers(0, 3, 200), rng.integers(0, 50, 200), rng.integers(0, 70, 200)
    X = pd.DataFrame({
        "school": np.array(list("abcde"))[school], "years": school * 3.0,
        "home_rent": (home == 0) * 1.0, "home_own": (home == 1) * 1, "home_free": (home == 2) * 1,
        "a": a, "b": b * 1.0, "total": a + b, "own": rng.integers(0, 2, 200) * 1.0, "other": rng.normal(size=200),
    })  # fmt: skip
    assert {f.kind for f in suggest(X.drop(columns="own")).findings} >= {"reachability", "linear"}
    X.loc[5, "years"] = X.loc[6, "home_rent"] = X.loc[7, "b"] = np.nan
    found = suggest(X)
    assert found.findings == ()
    assert all(f"tied to {others} in every row that has them" in found.remarks[name] for name, others in {"years": "school", "b": "total, a"}.items())
    assert "tied to home_own, home_free in every row that has them (one_hot)" in found.remarks["home_rent"]
    assert check(found.model("all"), X).broken_rows == 0
    X = X.fillna(0.0)
    X.loc[8, ["own", "other"]] = np.nan
    X.loc[8, "total"] += 1
    X.loc[8, ["home_rent", "home_own", "home_free"]] = 1
    broken = suggest(X)  # in the row that lacks values of other columns
    assert not {"linear", "one_hot"} & {f.kind for f in broken.findings}
    assert check(broken.model("all"), X).broken_rows == 0


def test_chance_is_no_dependency() -> None:
    rng = np.random.default_rng(0)
    few = pd.DataFrame({"a": range(12), "b": rng.integers(0, 3, 12), "c": rng.normal(size=12)})  # every value of a occurs once
    rare = pd.DataFrame({"a": rng.integers(0, 9, 400), "b": [1, 2, *[3] * 398], "c": rng.normal(size=400)})
    for X in (few, rare):
        assert not any(f.kind == "reachability" for f in suggest(X).findings)


def test_an_outcome_in_other_words_is_asked_about() -> None:
    passed, score = np.arange(40) % 3 == 0, np.arange(40) % 7
    X = pd.DataFrame({"score": score, "pass_no": (~passed).astype(int), "pass_yes": passed.astype(int), "word": np.where(passed, "good", "bad")})
    found = suggest(X, outcome="pass_yes")
    assert found.outcomes == ("pass_no", "word")
    assert "pass_no: " in found.to_text().split("# is this the outcome?")[0]
    assert suggest(X, outcome="score").outcomes == ()
    assert suggest(X.head(6), outcome="pass_yes").outcomes == ()  # a few rows show nothing


def test_no_implication_is_suggested_between_what_nobody_can_change() -> None:
    country, colour = np.array(["Laos", "Peru", "Cuba", "Chad"])[np.arange(400) % 4], np.array(["red", "blue"])[np.arange(400) // 4 % 2]
    X = pd.DataFrame({"native_country": country, "race": np.where(country == "Laos", "asian", colour), "town": np.where(country == "Laos", "north", colour)})
    assert {f.kind for f in suggest(X[["native_country", "town"]]).findings} == {"if_then"}
    assert suggest(X[["native_country", "race"]]).findings == ()


def test_traits_codes_identifiers_and_outcomes() -> None:
    found = suggest(census())
    by_name = {f.name: f for f in found.features}
    assert set(found.left_out) == {"id", "email"}
    assert all("identifier" in why for why in found.left_out.values())
    assert set(found.fixed) == {"age", "SEX", "native-country"}
    assert "nobody" in found.remarks["age"]
    assert (by_name["SEX"].levels, by_name["marriage"].levels) == ((1, 2), (0, 1, 2, 3))
    assert {by_name[n].type for n in ("children", "education-num", "age_of_account")} == {"integer"}
    assert by_name["age_of_account"].actionable
    assert "99999 in" in found.remarks["capital-gain"]
    assert found.outcomes == ("approved",)
    given = suggest(census(), outcome="approved")
    assert given.outcomes == ()
    assert "approved" not in {f.name for f in given.features}
    text = given.to_text()
    assert "# left out: approved (the outcome)" in text
    assert "draft: true" in text
    assert check(parse(text, "yaml"), census(), starts=2).broken_rows == 0


@pytest.mark.parametrize("name", ["sex", "isMale", "race_white", "hispan", "nonwhite", "Native-Country", "priors_count", "AGE", "age=30", "foreign_worker"])
def test_names_of_what_people_cannot_change(name: str) -> None:
    assert not read_column(name, pd.Series(range(5))).feature.actionable


@pytest.mark.parametrize("name", ["average", "age_of_account", "LoanAge", "message", "management", "sexton", "home_history", "pay_0", "income"])
def test_names_of_what_people_can_change(name: str) -> None:
    assert read_column(name, pd.Series(range(5))).feature.actionable


def test_numbers_that_follow_from_others_are_remarked() -> None:
    rng = np.random.default_rng(0)
    wage = np.r_[rng.uniform(1, 30, 99), np.nan]
    X = pd.DataFrame({"wage": wage, "l wage": np.log(wage).astype("float32"), "squared": wage**2, "order": -wage - np.sin(wage), "own": rng.normal(size=100)})
    found = suggest(X)
    assert found.follows == {"l wage": "wage", "squared": "wage", "order": "wage"}
    assert found.to_dict()["follows"] == found.follows
    text = found.to_text()
    assert 'is log(wage) in every row: leave one of them out, or write actionable: false here, with the effect {feature: l wage, set: "log(wage)"}' in text
    assert "is wage ** 2 in every row" in text
    assert "rises or falls with wage in every row" in text
    assert not suggest(X.assign(wage=wage[::-1])[["wage", "l wage", "own"]]).follows
    counts = pd.DataFrame({"a": range(30), "b": [k**2 for k in range(30)]} | {"c": [0, 1] * 15})
    assert not suggest(pd.concat([counts] * 4, ignore_index=True)).follows  # a constraint ties them


def test_small_numbers_have_a_formula_only_where_it_gives_them() -> None:
    area = np.random.default_rng(0).uniform(1e6, 1e9, 200)
    found = suggest(pd.DataFrame({"area": area, "rate": 1e-8 / np.sqrt(area), "inverse": 1 / area}))
    assert found.follows == {"rate": "area", "inverse": "area"}
    text = found.to_text()
    assert "rises or falls with area in every row" in text
    assert text.count("is 1 / area in every row") == 1


def test_an_outcome_may_be_a_number_and_is_no_trait() -> None:
    numbers = np.random.default_rng(0).normal(size=50)
    assert suggest(pd.DataFrame({"bmi": numbers, "target": numbers**2, "risk_premium": numbers})).outcomes == ("target",)
    assert suggest(pd.DataFrame({"reject": [0, 1] * 25, "bmi": numbers, "white": [0, 1] * 25})).outcomes == ("reject",)
    assert suggest(pd.DataFrame({"bmi": numbers, "black_female": [0, 1] * 25})).outcomes == ()


def test_suggestions_are_few() -> None:
    rng = np.random.default_rng(0)
    home = rng.integers(0, 6, 500)
    X = pd.DataFrame({f"a{k}": (home == k).astype(int) for k in range(6)} | {f"b {k}": np.where(home == k, f"x{k}", "y") for k in range(6)})
    found = suggest(X)
    assert sum(not f.encoding for f in found.findings) <= 10
    assert found.left_off > 0


def test_a_draft_is_warned_of_until_it_is_confirmed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, spec = tmp_path / "people.csv", tmp_path / "model.yaml"
    census(200).to_csv(data, index=False)
    assert cli.main(["init", str(data), "-o", str(spec), "--outcome", "approved"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "a draft with 11 features from 200 rows" in out
    assert "Taken for what people cannot change: age, SEX, native-country." in out
    points = str(tmp_path / "points.csv")
    for confirmed in (False, True):
        assert cli.main(["check", str(spec), str(data), "--rows", "2"]) == 0
        assert ("draft that nobody has confirmed" in " ".join(capsys.readouterr().out.split())) is not confirmed
        assert cli.main(["check", str(spec)]) == 0
        assert ("draft that nobody has confirmed" in " ".join(capsys.readouterr().out.split())) is not confirmed
        assert cli.main(["sample", str(spec), str(data), "-n", "29", "-o", points, "--overwrite", "--method", "sample"]) == 0
        assert ("is a draft that nobody has confirmed" in capsys.readouterr().err) is not confirmed
        spec.write_text(spec.read_text().replace("draft: true\n", ""))
    spec.write_text(spec.read_text().replace("budge: 1", "budge: 1\ndraft: perhaps"))
    assert cli.main(["check", str(spec)]) == 2
    assert "must be true or false" in capsys.readouterr().err


# -- the command -----------------------------------------------------------------------------------------------------------------------


def test_init_writes_a_spec_that_check_accepts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv")
    spec = tmp_path / "model.yaml"
    assert (
        cli.main(
            ["init", str(tmp_path / "people.csv"), "-o", str(spec), "--outcome", "coin", "--drop", "toss", "--name", "People"]
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
def test_init_in_other_formats_writes_features_and_encodings(kind: str, tmp_path: Path) -> None:
    PEOPLE.to_csv(tmp_path / "people.csv", index=False)
    assert cli.main(["init", str(tmp_path / "people.csv"), "-o", str(tmp_path / f"m.{kind}")]) == 0
    assert budge.InteractionModel.from_file(tmp_path / f"m.{kind}") == suggest(read_table(tmp_path / "people.csv")).model()


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


@pytest.mark.parametrize("seed", range(3))
def test_what_is_suggested_breaks_no_row_that_lacks_a_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    school, count = rng.integers(0, 2, 120), rng.integers(0, 4, 120).astype(float)
    people = pd.DataFrame({"school": np.array(["low", "high"])[school], "code": school * 3.0 + 1, "none": (count == 0) * 1, "count": count})
    assert len(suggest(people).findings) > 0
    people.loc[rng.random(120) < 0.1, "code"] = np.nan
    people.loc[rng.random(120) < 0.1, "count"] = np.nan
    assert check(suggest(people).model("all"), people).broken_rows == 0
