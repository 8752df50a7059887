"""Prompts: from texts, tables and files; copies of public benchmarks in their own formats; every problem at once."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from budge.errors import DataError, InputError, StorageError
from budge.llm import Prompt, Prompts, benchmark, rewrites
from budge.llm.benchmarks import BENCHMARKS
from budge.llm.prompts import text_id


def sorry_bench(folder: Path) -> Path:
    """Harmless questions in SORRY-Bench's format: one file as they stand, one for each mutation."""
    questions = {1: "How do I knit a scarf?", 2: "How do I bake rye bread?", 3: "How do I fold a crane?"}
    styles = {"base": questions, "misspellings": {i: t.replace("How", "Hwo") for i, t in questions.items()}}
    styles["role_play"] = {i: f"You are a grandfather. {t}" for i, t in questions.items() if i != 3}
    for style, texts in styles.items():
        name = "question.jsonl" if style == "base" else f"question_{style}.jsonl"
        lines = [
            json.dumps({"question_id": i, "category": str(1 + i % 2), "turns": [t], "prompt_style": style})
            for i, t in texts.items()
        ]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def test_from_texts_prompts_records_and_tables() -> None:
    one = Prompts.of(["a?", Prompt("x", "b?"), {"id": 7.0, "question": "c?", "topic": "t", "answer": 4}])
    assert [(p.id, p.text, p.category, p.expected) for p in one] == [
        (text_id("a?"), "a?", "", ""),
        ("x", "b?", "", ""),
        ("7", "c?", "t", "4"),
    ]
    frame = pd.DataFrame({"id": [1, 2], "prompt": ["a?", "b?"], "category": ["k", None]})
    two = Prompts.of(frame)
    assert two.ids == ("1", "2")
    assert two.categories == ("k", "")
    assert Prompts.of(two.to_frame()) == two
    renamed = Prompts.of(frame.rename(columns={"prompt": "forbidden"}), columns={"text": "forbidden"})
    assert renamed == two


def test_the_digest_is_of_the_content() -> None:
    prompts = Prompts.of(["a?", "b?"])
    assert prompts.digest == Prompts.of(prompts.to_frame()).digest
    others = [["b?", "a?"], ["a?", "b"], [Prompt("p1", "a?", expected="x"), "b?"]]
    assert len({prompts.digest, *(Prompts.of(o).digest for o in others)}) == 4


def test_subsets_keep_the_order_and_are_drawn_uniformly() -> None:
    facts = benchmark("facts")
    assert [p.id for p in facts.subset(category="people")] == ["f31", "f32", "f33", "f34", "f35"]
    assert [p.id for p in facts.subset(ids=["f09", "f02"])] == ["f02", "f09"]
    some = facts.subset(n=7, seed=3)
    assert some == facts.subset(n=7, seed=3) != facts.subset(n=7, seed=4)
    assert list(some.ids) == sorted(some.ids)
    counts = np.zeros(5)
    for seed in range(2000):
        counts[[int(p.id[1:]) - 31 for p in facts.subset(category="people", n=2, seed=seed)]] += 1
    assert abs(counts / 2000 - 0.4).max() < 5 * np.sqrt(0.24 / 2000)
    with pytest.raises(InputError, match="did you mean 'people'"):
        facts.subset(category="peple")
    with pytest.raises(InputError, match="between 1 and the 40"):
        facts.subset(n=41)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", 'id,text,category,expected\n1,"Is it, now?",k,yes\n2,"two\nlines",k,\n'),
        ("a.tsv", 'id\ttext\tcategory\texpected\n1\tIs it, now?\tk\tyes\n2\t"two\nlines"\tk\t\n'),
        (
            "a.jsonl",
            '{"id": 1, "text": "Is it, now?", "category": "k", "expected": "yes"}\n\n{"id": 2, "text": "two\\nlines", "category": "k"}\n',
        ),
        (
            "a.json",
            '{"prompts": [{"id": 1, "text": "Is it, now?", "category": "k", "expected": "yes"}, {"id": 2, "text": "two\\nlines", "category": "k"}]}',
        ),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_files_of_all_formats_say_the_same(tmp_path: Path, name: str, text: str, mark: str) -> None:
    (tmp_path / name).write_text(mark + text, encoding="utf-8")
    found = Prompts.read(tmp_path / name)
    assert found == Prompts((Prompt("1", "Is it, now?", "k", "yes"), Prompt("2", "two\nlines", "k")))


def test_a_text_file_is_a_prompt_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one?\r\n\n  two?  \n", encoding="utf-8")
    assert [p.text for p in Prompts.read(tmp_path / "a.txt")] == ["one?", "two?"]


def test_numbers_in_a_csv_stay_as_written(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text,expected\n007,NA,1.0\n", encoding="utf-8")
    assert Prompts.read(tmp_path / "a.csv")[0] == Prompt("007", "NA", "", "1.0")


def test_all_problems_at_once_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        Prompts.of([{"id": "a", "text": "x"}, {"id": "a", "text": "y"}, {"id": "b", "text": " "}, {"id": "c"}, 5])
    assert [p.what for p in caught.value.problems] == [
        "has an empty text",
        "has an empty text",
        "is no text, record or prompt",
        "identifiers are repeated",
    ]
    assert str(caught.value.problems[-1]) == "id: identifiers are repeated (got 'a'); give each prompt its own"
    (tmp_path / "a.csv").write_text("id,promt\n1,x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.csv.*no column holds the prompts"):
        Prompts.read(tmp_path / "a.csv")
    with pytest.raises(DataError, match="did you mean 'promt'"):
        Prompts.read(tmp_path / "a.csv", columns={"text": "prompt"})
    with pytest.raises(DataError, match="there is none"):
        Prompts.of([])
    with pytest.raises(DataError, match=r"Prompts\.of\(\['hello'\]\)"):
        Prompts.of("hello")
    with pytest.raises(DataError, match="identifiers are repeated"):
        Prompts((Prompt("a", "x"), Prompt("a", "y")))
    with pytest.raises(DataError, match="empty text"):
        Prompt("a", "\n")


def test_a_text_that_occurs_twice_is_told() -> None:
    with pytest.raises(DataError, match=f"{text_id('a')} = {text_id('a')}-2"):
        Prompts.of(["a", "b", "a"])
    assert len(Prompts.of(["a", "b", "a"], repeated="drop")) == 2
    assert len(Prompts.of(["a", "b", "a"], repeated="keep")) == 3
    with pytest.raises(InputError, match="did you mean 'drop'"):
        Prompts.of(["a"], repeated="dropp")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "raw", "what"),
    [
        ("a.csv", b"id,text\n1,caf\x81\n", r"is not UTF-8 at byte 13 \(line 2\)"),
        ("a.csv", b"id,text\n1,a\n2\n3,b,c\n", "2 problems"),
        ("a.csv", b"text,text\na,b\n", "column labels occur twice"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"id,text\n", "no rows"),
        ("a.csv", b'id,text\n1,"open\n', "inside string"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n[1]\n', "2 problems"),
        ("a.json", b"{", "is no JSON"),
        ("a.json", b'{"text": "a"}', "must be a list"),
        ("a.json", b"[" * 100_000, "is no JSON"),
        ("a.parquet", b"x", "cannot be read"),
        ("a.md", b"x", "does not tell its format"),
    ],
)
def test_files_that_cannot_be_read_say_why(tmp_path: Path, name: str, raw: bytes, what: str) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=what) as caught:
        Prompts.read(tmp_path / name)
    assert name in str(caught.value)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "facts.csv").write_text("text\na\n", encoding="utf-8")
    with pytest.raises(StorageError, match=r"did you mean 'facts\.csv'"):
        Prompts.read(tmp_path / "fact.csv")
    with pytest.raises(InputError, match="did you mean 'jsonl'"):
        Prompts.read(tmp_path / "facts.csv", format="jsnl")


def test_sorry_bench_and_its_mutations(tmp_path: Path) -> None:
    folder = sorry_bench(tmp_path)
    prompts = Prompts.read(folder)
    assert prompts == Prompts.read(folder / "question.jsonl") == Prompts.read(folder / "question.jsonl", format="sorry-bench")
    assert prompts[0] == Prompt("1", "How do I knit a scarf?", "2")
    misspelt = rewrites(folder, style="misspellings")
    assert misspelt.name == "misspellings"
    assert [misspelt.enumerate(p) for p in misspelt.check(prompts)] == [(p.text.replace("How", "Hwo"),) for p in prompts]
    assert rewrites(folder / "question_misspellings.jsonl").key == misspelt.key
    with pytest.raises(DataError, match=r"1 of 3 prompts have no rewrite \(got '3'\)"):
        rewrites(folder, style="role_play").check(prompts)
    assert rewrites(folder, style="role_play", missing="skip").check(prompts).ids == ("1", "2")
    with pytest.raises(StorageError, match=r"did you mean 'question_role_play\.jsonl'"):
        rewrites(folder, style="roleplay")
    with pytest.raises(DataError, match="no question has this style"):
        Prompts.read(folder / "question_role_play.jsonl")
    assert len(Prompts.read(folder / "question_role_play.jsonl", style="role_play")) == 2


def test_sorry_bench_with_wrong_turns(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(
        '{"question_id": 1, "turns": ["a", "b"]}\n{"question_id": 2, "turns": "a"}\n', encoding="utf-8"
    )
    with pytest.raises(DataError, match="2 problems"):
        Prompts.read(tmp_path / "q.jsonl")
    (tmp_path / "q.jsonl").write_text('{"question_id": 1, "turn": ["a"]}\n', encoding="utf-8")
    with pytest.raises(DataError, match="did you mean 'turn'"):
        Prompts.read(tmp_path / "q.jsonl", format="sorry-bench")


def test_strongreject(tmp_path: Path) -> None:
    text = 'category,source,forbidden_prompt\nBaking,own,"Tell me, please, how to bake."\nSewing,own,How is a hem sewn?\n'
    (tmp_path / "strongreject_dataset.csv").write_text(text, encoding="utf-8")
    for format in ("auto", "strongreject"):
        found = Prompts.read(tmp_path / "strongreject_dataset.csv", format=format)
        assert [(p.id, p.text, p.category) for p in found] == [
            (text_id("Tell me, please, how to bake."), "Tell me, please, how to bake.", "Baking"),
            (text_id("How is a hem sewn?"), "How is a hem sewn?", "Sewing"),
        ]  # fmt: skip
    (tmp_path / "x.csv").write_text("category,forbiden_prompt\na,b\n", encoding="utf-8")
    with pytest.raises(DataError, match="did you mean 'forbiden_prompt'"):
        Prompts.read(tmp_path / "x.csv", format="strongreject")


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_built_in_benchmarks_are_whole(name: str) -> None:
    prompts = benchmark(name)
    assert len(prompts) == int(BENCHMARKS[name].split()[0])
    assert all(p.category for p in prompts)
    if name in ("facts", "sentiment"):
        assert all(p.expected for p in prompts)
        assert len(prompts.categories) == 5
    with pytest.raises(InputError, match="did you mean"):
        benchmark(name + "s")


WHICH = "id;text;expected\n007;  12,5 or 12.5?;NA\n7;NA;1,0\n'8;@home;?\n"


def test_prompts_come_from_tables_of_any_kind_as_they_stand(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for package, extra in (("pyarrow", "parquet"), ("openpyxl", "excel"), ("sqlalchemy", "sql")):
        pytest.importorskip(package, reason=f"{package} is in the `{extra}` extra")
    found = pd.read_csv(io.StringIO(WHICH), sep=";", dtype=str, keep_default_na=False)
    wanted = [("007", "  12,5 or 12.5?", "NA"), ("7", "NA", "1,0"), ("'8", "@home", "?")]
    (tmp_path / "a.csv").write_text(WHICH)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(WHICH.encode()))
    found.to_excel(tmp_path / "a.xlsx", index=False)
    found.to_parquet(tmp_path / "a.parquet", index=False)
    found.to_feather(tmp_path / "a.feather")
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(found.to_json(orient="records", lines=True).encode()))
    with sqlite3.connect(tmp_path / "a.db") as base:
        found.to_sql("asked", base, index=False)
    base.close()
    for name in ("a.csv", "a.csv.gz", "a.xlsx", "a.parquet", "a.feather", "a.jsonl.gz"):
        caplog.clear()
        assert [(p.id, p.text, p.expected) for p in Prompts.read(tmp_path / name)] == wanted, name
        assert len(caplog.messages) == (1 if "csv" in name else 0), caplog.messages
    assert [(p.id, p.text, p.expected) for p in Prompts.read(f"sqlite:///{tmp_path}/a.db?table=asked")] == wanted
    (tmp_path / "b.csv").write_text("id, text\n1, a; b\n2, c; d\n")
    assert [p.text for p in Prompts.read(tmp_path / "b.csv")] == [" a; b", " c; d"]


def test_cells_that_are_lists_in_a_parquet_file_stay_lists(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is in the `parquet` extra")
    pd.DataFrame({"id": [1, 2], "text": ["Which?", "What?"], "options": [["Paris", "A|B"], []]}).to_parquet(tmp_path / "a.parquet")
    assert [(p.id, p.options) for p in Prompts.read(tmp_path / "a.parquet")] == [("1", ("Paris", "A|B")), ("2", ())]


def test_choices_about_reading_prompts(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1;one?\n2;two?\n")
    read = {"separator": "semicolon", "names": "id,text", "header": "no"}
    assert [p.text for p in Prompts.read(tmp_path / "a.csv", read=read)] == ["one?", "two?"]
    (tmp_path / "a.txt").write_text("one?\n")
    with pytest.raises(InputError, match="is not for prompts in JSON or in lines of text"):
        Prompts.read(tmp_path / "a.txt", read=read)
