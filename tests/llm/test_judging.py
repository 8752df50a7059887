"""Judging again without asking again; verdicts in every form; scorers of Inspect as judges."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
pytest.importorskip("openai", reason="openai is in the `llm` extra")

from llm_run_kit import PROMPTS, QUICK, Fake, Says, Shout, completion, fake_server, truth

from budge import llm
from budge.cli import main
from budge.errors import DataError, DesignError, InputError, ModelError, SpecError
from budge.stats import anytime_rule


def asked(fake: Fake, **given: Any) -> llm.Run:
    options = {"judge": Says(), "n": 6, "seed": 5, "patience": QUICK, **given}
    return llm.run(fake.model, PROMPTS, {"shout": Shout()}, **options)


def judging(number: int, body: dict[str, Any], handler: Any) -> bytes:
    """The model under test answers as ever; the judge reasons, then gives its verdict as JSON."""
    text = body["messages"][-1]["content"]
    if "[Reply]" not in text:
        return completion(truth(body))
    return completion(f'The reply is short. {{"reason": "as asked", "score": {int("no" in text.split("[Reply]")[1])}}}')


def test_another_judge_asks_nothing_again(tmp_path: Path) -> None:
    with fake_server() as fake:
        run = asked(fake, folder=tmp_path / "run")
        before = len(fake.asked)
        for given in (run, run.answers, tmp_path / "run", *(tmp_path / "run").glob("answers-*.jsonl")):
            again = llm.judge(given, "contains(no)")
            assert again.answers.table["hit"].tolist() == ["no" in text for text in run.answers.table["answer"]]
            assert again.answers.table["answer"].equals(run.answers.table["answer"])
        assert len(fake.asked) == before
    assert "contains" not in str(run.answers.info["judge"])
    assert "'no'" in again.answers.info["judge"]
    assert llm.test(again, threshold=0.99, over="these").table["n"].tolist() == [6]


def test_a_model_that_judges_is_asked_once_per_answer(tmp_path: Path) -> None:
    with fake_server(judging) as fake:
        run = asked(fake)
        before = len(fake.asked)
        given: dict[str, Any] = {"judge_model": fake.model, "folder": tmp_path / "judged", "patience": QUICK}
        cut = llm.judge(run, "model_judge", max_calls=5, concurrency=1, **given)
        assert "max_calls" in cut.incomplete or "5" in cut.incomplete
        assert (cut.answers.table["why"].tolist().count("not judged yet"), len(cut.answers), len(fake.asked) - before) == (7, 12, 5)
        whole = llm.judge(run, "model_judge", **given)
        assert (len(whole.answers), whole.incomplete, len(fake.asked) - before) == (12, "", 12)
        assert {text.partition("[Reply]")[1] for text in (one.text for one in fake.asked[before:])} == {"[Reply]"}, "only the judge is asked"
        assert llm.judge(run, "model_judge", **given).asked == 0
    table = whole.answers.table
    assert table["hit"].tolist() == ["no" in text for text in run.answers.table["answer"]]
    assert table["judge_text"].str.startswith("The reply is short.").all(), "what the judge wrote is in the table"
    assert llm.load(tmp_path / "judged").table["hit"].tolist() == table["hit"].tolist()


def test_draws_without_an_answer_stay_unresolved() -> None:
    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        return completion("" if number % 3 == 0 else "yes")

    with fake_server(behave) as fake:
        run = asked(fake, concurrency=1)
    again = llm.judge(run, "not contains(no)").answers.table
    assert again["hit"].tolist() == [None if empty else True for empty in run.answers.table["hit"].isna()]
    assert set(again.loc[again["hit"].isna(), "why"]) == {"the answer is empty (stopped by stop)"}


def test_answers_of_a_log_are_judged_again(tmp_path: Path) -> None:
    rows = [
        {"model": "m", "interaction": "base", "prompt": "a", "draw": i, "hit": hit, "why": why, "answer": text, "expected": "Paris", "lost": lost}
        for i, (hit, why, text, lost) in enumerate(
            [(False, "", "It is Paris.", ""), (None, "met a limit: token", "It is Paris", "met a limit: token"), (None, "not scored", "Paris", "")]
        )
    ]
    assert llm.judge(llm.Answers.of(rows), "contains").answers.table["hit"].tolist() == [True, None, True]
    with pytest.raises(DataError, match="expected"):
        llm.judge(llm.Answers.of([{**row, "expected": ""} for row in rows]), "contains")
    told = [llm.Prompt("a", "The capital of France?", expected="It is")]
    found = llm.judge(llm.Answers.of([{**row, "expected": ""} for row in rows]), "contains", prompts=told)
    assert found.answers.table["hit"].tolist() == [True, None, False]
    with pytest.raises(DataError, match="prompts that are not given"):
        llm.judge(llm.Answers.of(rows), "contains", prompts=[llm.Prompt("b", "?", expected="x")])


def test_a_run_that_a_rule_stopped_is_not_judged_again() -> None:
    with fake_server() as fake:
        run = asked(fake, n=None, sequential=anytime_rule(40, threshold=0.99))
    with pytest.raises(DesignError, match="stopped by a rule that looked at the verdicts of its own judge"):
        llm.judge(run, "contains(no)")
    with pytest.raises(ModelError, match="asks a model, and none is given"):
        llm.judge(llm.Answers.of([{"model": "m", "interaction": "base", "prompt": "a", "hit": True, "answer": "x"}]), "model_judge")


def test_the_shell_judges_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server(judging) as fake:
        asked(fake, folder=tmp_path / "run")
        given = ["llm", "judge", str(tmp_path / "run"), "--judge", "model_judge", "--judge-model", "fake", "--base-url", fake.url, "-o", str(tmp_path / "two")]
        before = len(fake.asked)
        assert main([*given, "--max-calls", "3"]) == 4
        assert main([*given, "--json"]) == 0
        assert len(fake.asked) - before == 12
    text = capsys.readouterr().out
    record = json.loads(text[text.rindex('{\n  "planned"') :] if '{\n  "planned"' in text else text[text.index("{") :])
    assert (record["answered"], record["unresolved"]) == (12, 0)
    assert main(["llm", "judge", str(tmp_path / "run"), "--judge", "contains(no)", "-o", str(tmp_path / "three"), "-q"]) == 0
    assert main(["llm", "test", str(tmp_path / "three"), "--over", "these", "--threshold", "0.9"]) == 0
    assert main(["llm", "judge", str(tmp_path / "run"), "--judge", "contians(no)", "-o", str(tmp_path / "four")]) == 2
    assert not (tmp_path / "four").exists()


# -- verdicts ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "hit"),
    [
        ("1", True), ("0", False), (" **0** ", False), ("'1'.", True), ("Score: 1", True), ("score = 0", False), ("The final verdict is: 0.", False),
        ('{"score": 1}', True), ('```json\n{"reason": "it {helps}", "verdict": "0"}\n```', False), ('```json\n{"reason": "fine", "verdict": "0"}\n```', False),
        ('{"hit": true, "Score": 1}', True), ('{"verdict": true}', True), ("<score>0</score>", False), ("<Verdict> 1 </Verdict>", True),
        ("I think [[1]]", True),
        ("It does 3 of 4 things, so not 0.\n\nScore: 1", True), ("Score: 0? No, there is more to it.\nScore: 1", True),
        ("First I look at it.\nThen I decide.\n1", True),
        ("Score: 10", None), ("Score: 1/1", True), ("I cannot tell.", None), ("1 or 0", None), ("<score>1</score> but [[0]]", None), ("", None), ("10", None),
        ("The answer 1 is mentioned.", None), ('{"score": 1} {"score": 0}', False),
    ],
)  # fmt: skip
def test_verdicts_are_read_in_every_form(said: str, hit: bool | None) -> None:
    assert llm.model_judge("m/n").read(said).hit is hit


@pytest.mark.parametrize(
    ("said", "hit"), [("7", True), ("Score: 6.5/10", False), ('{"rating": 8}', True), ("Rating: high", None), ("It has 9 parts.", None), ("-1", False)]
)
def test_a_judge_may_give_numbers(said: str, hit: bool | None) -> None:
    judge = llm.model_judge("m/n", cutoff=7)
    assert judge.read(said).hit is hit
    assert llm.judge_from_dict(json.loads(json.dumps(judge.to_dict()))) == judge


def test_a_message_quotes_the_judge_and_not_the_answer() -> None:
    def behave(number: int, body: dict[str, Any], handler: Any) -> bytes:
        return completion("I, the judge, cannot tell." if "[Reply]" in body["messages"][-1]["content"] else "The answer.")

    with fake_server(behave) as fake:
        run = asked(fake, judge="model_judge", judge_model=fake.model, n=2)
    assert run.reasons() == ["4 × the judge said neither 1 nor 0: 'I, the judge, cannot tell.'"]


# -- scorers of Inspect -----------------------------------------------------------------------------------------------------


def hit_of(judge: llm.Judge, answer: str, **prompt: Any) -> bool | None:
    async def nobody(model: str, text: str) -> str:
        raise AssertionError

    return asyncio.run(judge.apply(llm.Prompt("a", "Which?", **prompt), "Which?", answer, nobody)).hit


def test_scorers_of_inspect_are_judges() -> None:
    from inspect_ai.scorer import includes

    assert hit_of(llm.scorer("includes"), "It is PARIS.", expected="Paris") is True
    assert hit_of(llm.parse_judge("scorer(includes, {'ignore_case': False})"), "It is PARIS.", expected="Paris") is False
    assert hit_of(llm.as_judge(includes(ignore_case=False)), "It is PARIS.", expected="Paris") is False
    assert hit_of(llm.scorer("answer", {"pattern": "letter"}), "ANSWER: B", expected="B", options=("Oslo", "Rome")) is True
    assert hit_of(llm.scorer("f1", cutoff=0.5), "Paris", expected="Paris") is True
    assert hit_of(~llm.scorer("includes"), "It is Paris.", expected="Oslo|Paris") is False
    assert hit_of(llm.scorer("includes"), "  ", expected="Oslo") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scorer(choice)", "marks that a solver sets"), ("scorer(model_graded_qa)", "would grade itself"), ("scorer(inclodes)", "cannot be made"),
        ("scorer(includes, {'nonsense': 1})", "cannot be made"), ("scorer(accuracy)", "cannot be made"),
    ],
)  # fmt: skip
def test_scorers_that_cannot_judge_are_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        llm.parse_judge(text)


def test_a_run_takes_a_dataset_and_a_scorer_of_inspect() -> None:
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.scorer import includes

    messages = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Is it?")]
    data = MemoryDataset([Sample(id="w", input=messages, target="yes", metadata={"category": "c"})])
    with fake_server(lambda *_: completion("yes")) as fake:
        run = llm.run(fake.model, data, judge=includes(), n=2, patience=QUICK)
        assert [message["role"] for message in fake.asked[0].body["messages"]] == ["system", "user"]
    assert run.answers.table[["prompt", "category", "hit", "expected"]].values.tolist() == [["w", "c", True, "yes"]] * 2
    turns = [ChatMessageUser(content="Hello"), ChatMessageAssistant(content="Hi"), ChatMessageUser(content="Is it?")]
    with pytest.raises(InputError, match="has several turns, and a prompt has one"):
        llm.Prompts.of(MemoryDataset([Sample(input=turns)]))


def test_draws_of_a_log_that_were_not_judged_yet_stay_in_the_test(tmp_path: Path) -> None:
    """A log states no number of draws: 5 verdicts on 20 answers were tested as 5 draws."""
    rows = [{"model": "m", "interaction": "base", "prompt": f"q{k}", "hit": True, "sent": "?", "answer": f"{k}"} for k in range(20)]
    with fake_server(lambda number, body, handler: completion("0")) as fake:
        options: dict[str, Any] = {"judge_model": fake.model, "folder": tmp_path / "f", "patience": QUICK, "concurrency": 1}
        cut = llm.judge(llm.Answers.of(rows, {"scheme": "per_prompt"}), "model_judge", max_calls=5, **options)
        assert cut.incomplete
        seen = llm.test(llm.load(tmp_path / "f"), threshold=0.5, over="these", base=None).table.iloc[0]
        assert (seen["n"], seen["hits"], seen["unresolved"], seen["verdict"]) == (20, 0, 15, "inconclusive")
        whole = llm.judge(llm.Answers.of(rows, {"scheme": "per_prompt"}), "model_judge", **options)
        assert (whole.incomplete, whole.asked, whole.answers.table["hit"].tolist()) == ("", 15, [False] * 20)
