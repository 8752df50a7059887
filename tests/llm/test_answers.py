"""Answers: what is refused, counts against brute force, files that come back as they were and run nothing."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from budge.errors import DataError, InputError, OutputExistsError, StorageError
from budge.llm import Answers
from budge.llm.answers import COLUMNS

ENDS = ("csv", "jsonl", "parquet")


def row(**changes: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "interaction": "base",
        "prompt": "q1",
        "category": "c",
        "draw": 0,
        "hit": True,
        "why": "",
        "sent": "s",
        "answer": "a",
    } | changes


def same(one: Answers, two: Answers) -> None:
    assert one.table.to_dict("records") == two.table.to_dict("records")
    assert list(one.table.columns) == list(two.table.columns)


# -- what is refused --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("absent", ["model", "interaction", "prompt", "hit"])
def test_a_missing_column_is_named(absent: str) -> None:
    with pytest.raises(DataError, match=f"column {absent}: is missing"):
        Answers(pd.DataFrame([row()]).drop(columns=absent))


@pytest.mark.parametrize("bad", ["yes", 2, 0.5, "C", -1, [True]])
def test_a_value_that_is_neither_hit_nor_miss_is_named_and_never_guessed(bad: Any) -> None:
    with pytest.raises(DataError, match=r"column hit, row 1: is neither a hit nor a miss"):
        Answers.of([row(), row(draw=1, hit=bad)])


def test_all_problems_come_at_once_and_long_lists_are_cut() -> None:
    with pytest.raises(DataError) as error:
        Answers.of([row(draw=i, hit="?", model="") for i in range(9)])
    assert len(error.value.problems) == 1 + 5 + 1
    assert "4 further rows" in str(error.value)


def test_a_draw_that_is_there_twice_is_refused() -> None:
    with pytest.raises(DataError, match="a repeat is not a new draw"):
        Answers.of([row(), row(hit=False)])
    assert len(Answers.of([row(), row(draw=1), row(prompt="q2"), row(model="n")])) == 4


@pytest.mark.parametrize("bad", [-1, 0.5, "0", None, True])
def test_draws_are_whole_numbers(bad: Any) -> None:
    with pytest.raises(DataError, match="column draw, row 0"):
        Answers.of([row(draw=bad)])


def test_hits_are_true_false_or_none() -> None:
    values = [True, False, None, 1, 0, 1.0, np.True_, np.nan, pd.NA]
    table = Answers.of([row(draw=i, hit=v) for i, v in enumerate(values)]).table
    assert table["hit"].tolist() == [True, False, None, True, False, True, True, None, None]
    assert table["hit"].dtype == object
    assert list(table.columns) == list(COLUMNS)


def test_draws_are_numbered_where_they_are_not() -> None:
    rows = [{k: v for k, v in row(prompt=p).items() if k != "draw"} for p in ("q1", "q1", "q2", "q1")]
    assert Answers.of(rows).table["draw"].tolist() == [0, 1, 0, 2]


def test_further_columns_are_kept() -> None:
    assert Answers.of([row(cost=3)]).table["cost"].tolist() == [3]


# -- counts -----------------------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.tuples(
        st.sampled_from("ab"), st.sampled_from(["base", "typos"]), st.sampled_from("xyz"), st.sampled_from([True, False, None])
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=50)
@given(ROWS)
def test_counts_are_those_of_a_loop(rows: list[tuple[str, str, str, bool | None]]) -> None:
    answers = Answers.of(
        [row(model=m, interaction=i, prompt=p, category=p.upper(), draw=k, hit=h) for k, (m, i, p, h) in enumerate(rows)]
    )
    for by in ((), ("category",), ("prompt",), ("category", "prompt")):
        expected: dict[tuple[str, ...], list[int]] = {}
        for m, i, p, h in rows:
            key = (m, i, *({"category": p.upper(), "prompt": p}[name] for name in by))
            cell = expected.setdefault(key, [0, 0, 0])
            cell[0] += 1
            cell[1] += h is True
            cell[2] += h is None
        counted = answers.counts(by)
        found = {tuple(r[:-3]): list(r[-3:]) for r in counted.itertuples(index=False)}
        assert found == expected


def test_counting_by_something_else_is_refused() -> None:
    with pytest.raises(DataError, match="category or prompt"):
        Answers.of([row()]).counts("model")


def test_only_one_model_or_interaction() -> None:
    answers = Answers.of([row(), row(model="n"), row(interaction="typos")])
    assert len(answers.only(model="m")) == 2
    assert answers.only(interaction="typos").models == ("m",)
    with pytest.raises(DataError, match="did you mean 'typos'"):
        answers.only(interaction="typo")
    assert str(answers) == "3 answers of 2 models under 2 interactions to 1 prompts; 0 unresolved"


# -- several runs -----------------------------------------------------------------------------------------------------------


def test_runs_are_put_together_if_they_were_made_alike() -> None:
    one = Answers.of([row()], {"scheme": "joint", "n": 1, "seed": 1, "prompts": "440 prompts, ab"})
    two = Answers.of([row(model="other")], {"scheme": "joint", "n": 2, "seed": 1, "prompts": "440 prompts, ab"})
    both = Answers.concat([one, two])
    assert len(both) == 2
    assert both.info == {"scheme": "joint", "n": [1, 2], "seed": 1, "prompts": "440 prompts, ab"}


@pytest.mark.parametrize(
    ("key", "one", "two"),
    [
        ("scheme", "joint", "per_prompt"),
        ("judge", "a", "b"),
        ("prompts", "4 prompts, a", "4 prompts, b"),
        ("sequential", {"kind": "SPRT"}, None),
    ],
)
def test_runs_that_were_made_differently_are_refused(key: str, one: Any, two: Any) -> None:
    with pytest.raises(DataError, match=key):
        Answers.concat([Answers.of([row()], {key: one}), Answers.of([row(draw=1)], {key: two})])


def test_a_draw_in_both_runs_is_refused() -> None:
    with pytest.raises(DataError, match="a repeat is not a new draw"):
        Answers.concat([Answers.of([row()]), Answers.of([row()])])


def test_an_incomplete_run_stays_incomplete() -> None:
    one, two = Answers.of([row()], {"complete": True, "n": 3}), Answers.of([row(draw=1)], {"complete": False, "n": 3})
    assert Answers.concat([one, two]).info["complete"] is False
    with pytest.raises(DataError, match="incomplete"):
        Answers.concat([one, Answers.of([row(draw=1)], {"complete": False, "n": 4})])


# -- files ------------------------------------------------------------------------------------------------------------------

TEXT = st.text(max_size=8) | st.sampled_from(
    ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\tx", "'", "'=x", "a\r\nb", '"', ",", "\n", "=1+1\n", "−", "﻿x"]
)
SAFE = TEXT.filter(lambda t: "\0" not in t and t.encode("utf-8", "ignore").decode() == t)


@pytest.mark.parametrize("end", ENDS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(texts=st.lists(st.tuples(SAFE, SAFE, SAFE, st.sampled_from([True, False, None])), max_size=6))
def test_files_come_back_as_they_were(end: str, tmp_path: Path, texts: list[tuple[str, str, str, bool | None]]) -> None:
    if end == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra `parquet`)")
    rows = [row(model=m or "m", prompt=p or "p", answer=a, sent=a, why=m, draw=i, hit=h) for i, (m, p, a, h) in enumerate(texts)]
    answers = Answers.of(rows, {"scheme": "joint", "seed": 3})
    path = answers.write(tmp_path / f"a.{end}", overwrite=True)
    again = Answers.read(path)
    same(answers, again)
    assert again.info == {"scheme": "joint", "seed": 3}


@settings(deadline=None)
@given(SAFE)
def test_no_cell_of_a_csv_file_is_a_formula(text: str) -> None:
    from budge.llm.answer_files import _csv

    answers = Answers.of([row(answer=text, why=text, model=text or "m", prompt=text or "p")])
    for line in csv.reader(io.StringIO(_csv(answers).decode(), newline="")):
        for cell in line:
            assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_a_table_of_ones_own_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(
        "model,interaction,prompt,hit\nm,base,q1,1\nm,base,q2,FALSE\nm,base,q3,\n", encoding="utf-8"
    )
    assert Answers.read(tmp_path / "mine.csv").table["hit"].tolist() == [True, False, None]


def test_files_are_not_replaced_unless_told(tmp_path: Path) -> None:
    answers = Answers.of([row()])
    answers.write(tmp_path / "a.jsonl")
    with pytest.raises(OutputExistsError):
        answers.write(tmp_path / "a.jsonl")
    answers.write(tmp_path / "a.jsonl", overwrite=True)
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"], "no half file is left behind"


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.json"])
def test_other_ends_are_refused(tmp_path: Path, name: str) -> None:
    for act in (Answers.of([row()]).write, Answers.read):
        with pytest.raises(InputError, match="CSV, JSON lines or Parquet"):
            act(tmp_path / name)


@pytest.mark.parametrize("end", ENDS)
def test_files_that_were_cut_off_are_refused_or_differ(end: str, tmp_path: Path) -> None:
    """No cut through a file gives other values; a cut at the end of a line gives fewer rows, which nothing but a digest can tell."""
    if end == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra `parquet`)")
    answers = Answers.of([row(prompt=f"q{i}", answer='a "quoted"\ntext', hit=None if i == 2 else i % 2 == 0) for i in range(4)])
    data = answers.write(tmp_path / f"a.{end}").read_bytes()
    whole = answers.table.to_dict("records")
    for size in range(0, len(data), 7):
        (tmp_path / f"cut.{end}").write_bytes(data[:size])
        try:
            found = Answers.read(tmp_path / f"cut.{end}").table.to_dict("records")
        except (DataError, StorageError):
            continue
        for k, record in enumerate(found):
            cut = {key for key in record if record[key] != whole[k][key]}
            assert k == len(found) - 1 or not cut
            assert cut <= {"answer"}, "only the last text can be shorter"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.csv", b"", "is empty"),
        ("a.jsonl", b"  \n", "is empty"),
        ("a.csv", b"\xff\xfe\x00", "UTF-8"),
        ("a.jsonl", b'{"model": "m"\n', "line 1 is not whole JSON"),
        ("a.jsonl", b"[1, 2]\n", "line 1 is no record"),
        ("a.jsonl", b"[" * 100_000, "line 1 is not whole JSON"),
        ("a.csv", b"model,interaction,prompt,hit\nm,base,q\n", "line 2 has 3 cells instead of 4"),
        ("a.csv", b"model,interaction,prompt,hit\nm,base,q,maybe\n", "neither a hit nor a miss"),
        ("a.csv", b"model,prompt,hit\nm,q,1\n", "column interaction: is missing"),
        ("a.parquet", b"PAR1 and nothing more", "not a whole Parquet file"),
    ],
)
def test_foreign_and_hostile_files_are_refused_by_name(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra `parquet`)")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=message) as error:
        Answers.read(tmp_path / name)
    assert name in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such file"):
        Answers.read(tmp_path / "gone.csv")


def test_a_long_answer_passes(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    answers = Answers.of([row(answer="x" * 300_000)])
    same(answers, Answers.read(answers.write(tmp_path / "a.csv")))
    assert csv.field_size_limit() == limit, "the limit of others is left alone"


def test_lone_surrogates_pass_through_json_lines(tmp_path: Path) -> None:
    answers = Answers.of([row(answer="\ud800 x")])
    assert Answers.read(answers.write(tmp_path / "a.jsonl")).table["answer"].tolist() == ["\ud800 x"]
    assert json.loads((tmp_path / "a.jsonl").read_text().splitlines()[1])["hit"] is True


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_other_files_spell_half_a_character_out(tmp_path: Path, end: str) -> None:
    if end == "parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra `parquet`)")
    answers = Answers.of([row(answer="\ud800 x")])
    assert Answers.read(answers.write(tmp_path / f"a.{end}")).table["answer"].tolist() == ["\\ud800 x"]


def test_a_table_will_do_in_place_of_records() -> None:
    rows = [{"model": "m", "interaction": "base", "prompt": "q1", "hit": True}, {"model": "m", "interaction": "base", "prompt": "q2", "hit": None}]
    made = Answers.of(pd.DataFrame(rows), {"scheme": "joint"})
    assert made.table.equals(Answers.of(rows).table)
    assert made.info == {"scheme": "joint"}
    with pytest.raises(DataError, match=r"rows\[0\]"):
        Answers.of(["model"])  # type: ignore[list-item]
