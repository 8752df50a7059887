"""Logs of Inspect that need care: retries, limits, folders, dict scores, rewritten messages, unrelated tasks; made here by Inspect itself."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")

from inspect_ai import Task, eval, eval_retry, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi
from inspect_ai.scorer import Score, Scorer, Target, accuracy, mean, scorer
from inspect_ai.scorer import includes as including
from inspect_ai.solver import TaskState

from budge import llm
from budge.errors import DataError, InputError
from budge.llm.inspect_ext import responsiveness, rewrite, wrap

ASKED: list[str] = []


@modelapi(name="parity")
class Parity(ModelAPI):
    """Answers by a digest of what is sent, as stopped by STOPPED_BY; fails on every third call while BROKEN is set. A retry makes it again from its name."""

    def __init__(self, model_name: str, base_url: str | None = None, api_key: str | None = None, config: Any = GenerateConfig(), **_: Any):  # noqa: B008
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        text = input[-1].text
        ASKED.append(text)
        if os.environ.get("BROKEN") and len(ASKED) % 3 == 0:
            raise RuntimeError("no answer")
        output = ModelOutput.from_content("parity", answer_to(text), stop_reason=os.environ.get("STOPPED_BY", "stop"))
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output


def answer_to(text: str) -> str:
    return "yes" if blake2b(text.encode()).digest()[0] % 2 else "no"


@scorer(metrics={"length": [mean()], "right": [mean()]})
def graded() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"length": len(state.output.completion) / 3, "right": state.output.completion == "yes"}, explanation="I counted")

    return score


def samples(count: int = 6, topic: str = "Question") -> MemoryDataset:
    return MemoryDataset([Sample(id=f"q{i}", input=f"{topic} number {i}, please?", target="yes") for i in range(count)])


@task
def plain(count: int = 6, topic: str = "Question") -> Task:
    return Task(dataset=samples(count, topic), scorer=including())


@task
def several(count: int = 6, n: int = 2) -> Task:
    return wrap(plain(count), ["case(upper)"], n=n, seed=3, threshold=0.9)


Make = Callable[..., Path]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Run a task and return the path of its log."""
    monkeypatch.delenv("BROKEN", raising=False)
    ASKED.clear()

    def make(one: Task, folder: str = "logs", **options: Any) -> Path:
        (log,) = eval(one, model="parity/x", log_dir=str(tmp_path / folder), display="none", fail_on_error=False, max_samples=1, **options)
        return Path(str(log.location).removeprefix("file://"))

    return make


def counted(answers: llm.Answers) -> dict[str, tuple[int, int, int]]:
    return {str(i): (int(n), int(h), int(u)) for i, n, h, u in answers.counts()[["interaction", "n", "hits", "unresolved"]].itertuples(index=False)}


def test_the_solver_the_import_and_a_hand_count_agree(made: Make) -> None:
    path = made(Task(dataset=samples(), solver=rewrite("case(upper)"), scorer=including(), metrics=[accuracy(), responsiveness(0.9)]), epochs=2)
    from inspect_ai.log import read_eval_log

    log = read_eval_log(str(path))
    by_hand = sum(answer_to(f"QUESTION NUMBER {i}, PLEASE?") == "yes" for i in range(6))
    assert 0 < by_hand < 6
    answers = llm.read_log(path)
    assert counted(answers) == {"upper case": (12, 2 * by_hand, 0)}
    cells = {name: found.value for score in log.results.scores for name, found in score.metrics.items()}
    tested = llm.test(answers, threshold=0.9, over="these").table.iloc[0]
    assert cells["draws rate"] == tested["rate"] == by_hand / 6 == cells["accuracy"]
    for key, column in {"low": "low", "high": "high", "p": "p_adjusted", "n": "n", "hits": "hits"}.items():
        assert cells[f"draws {key}"] == pytest.approx(tested[column], abs=0)
    row = answers.table.iloc[0]
    assert (row["sent"], row["original"]) == ("QUESTION NUMBER 0, PLEASE?", "Question number 0, please?"), "the rewrite is in the messages, not in the input"


def test_a_task_under_interactions_gives_the_numbers_of_its_import(made: Make) -> None:
    from inspect_ai.log import read_eval_log

    path = made(several())
    cells = {name: found.value for name, found in read_eval_log(str(path)).results.scores[0].metrics.items()}
    answers = llm.read_log(path)
    hits = {"base": sum(answer_to(f"Question number {i}, please?") == "yes" for i in range(6))}
    hits["upper case"] = sum(answer_to(f"QUESTION NUMBER {i}, PLEASE?") == "yes" for i in range(6))
    assert counted(answers) == {name: (12, 2 * count, 0) for name, count in hits.items()}
    tested = llm.test(answers, threshold=0.9, over="these").table.iloc[0]
    assert (cells["upper case rate"], cells["upper case p"], cells["base rate"]) == (tested["rate"], tested["p_adjusted"], tested["base_rate"])
    assert answers.table["prompt"].nunique() == 6, "the six draws of both interactions are of the same six prompts"


def test_draws_that_changed_nothing_or_were_cut_off_are_marked(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPPED_BY", "max_tokens")
    table = llm.read_log(made(Task(dataset=samples(3), solver=rewrite("template('{prompt}')"), scorer=including()))).table
    assert table["unchanged"].tolist() == [True] * 3
    assert table["cut"].tolist() == [True] * 3


def test_a_retried_task_counts_each_draw_once(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    first = made(several(n=1))
    failed = counted(llm.read_log(first))
    assert sum(lost for *_, lost in failed.values()) == 4
    assert {n for n, *_ in failed.values()} == {6}
    monkeypatch.delenv("BROKEN")
    asked = len(ASKED)
    eval_retry(str(first), log_dir=str(tmp_path / "logs"), display="none")
    assert len(ASKED) - asked == 4
    assert len(list((tmp_path / "logs").glob("*.eval"))) == 2
    whole = llm.read_log(tmp_path / "logs")
    assert {name: (n, lost) for name, (n, _, lost) in counted(whole).items()} == {"base": (6, 0), "upper case": (6, 0)}
    newest, oldest = sorted((tmp_path / "logs").glob("*.eval"), reverse=True)
    assert llm.read_log([oldest, newest]).table.equals(llm.read_log([newest, oldest]).table), "the order of the files does not matter"


def test_two_tries_of_one_run_are_not_two_interactions(made: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKEN", "1")
    first = made(plain())
    monkeypatch.delenv("BROKEN")
    eval_retry(str(first), log_dir=str(tmp_path / "again"), display="none")
    (second,) = (tmp_path / "again").glob("*.eval")
    with pytest.raises(DataError, match="is of the same run as base"):
        llm.read_logs({"base": first, "typos": second})


def test_a_sample_that_met_a_limit_is_unresolved(made: Make) -> None:
    answers = llm.read_log(made(plain(), token_limit=1))
    assert counted(answers) == {"base": (6, 0, 6)}
    assert set(answers.table["why"]) == {"met a limit: token"}


def test_unrelated_logs_with_equal_ids_are_refused(made: Make) -> None:
    one, two = made(plain()), made(plain(topic="River"), "other")
    with pytest.raises(DataError, match=r"6 of 6 identifiers stand for different prompts.*match ids"):
        llm.read_logs({"base": one, "typos": two})
    with pytest.raises(DataError, match="different prompts"):
        llm.Answers.concat([llm.read_log(one), llm.read_log(two, interaction="typos")])
    assert len(llm.read_logs({"base": one, "typos": two}, match="ids")) == 12


def test_one_model_with_two_settings_is_refused(made: Make) -> None:
    paths = {name: made(plain(), name, temperature=heat) for name, heat in (("base", 0.0), ("typos", 1.0))}
    with pytest.raises(DataError, match=r"different settings.*temperature"):
        llm.read_logs(paths)


def test_a_folder_of_several_tasks(made: Make, tmp_path: Path) -> None:
    made(plain())
    made(Task(dataset=samples(3, "River"), scorer=graded(), name="rivers"), "logs/inner")
    with pytest.raises(InputError, match=r"several scores are in this task rivers .*graded/length.*graded/right"):
        llm.read_log(tmp_path / "logs")
    inner = tmp_path / "logs" / "inner"
    right = llm.read_log(inner, score="graded/right")
    assert right.table["hit"].tolist() == [answer_to(f"River number {i}, please?") == "yes" for i in range(3)]
    assert set(right.table["judge_text"]) == {"I counted"}
    long = llm.read_log(inner, score="graded/length", cutoff="> 0.9")
    assert long.table["hit"].tolist() == right.table["hit"].tolist(), '"yes" has three letters and "no" has two'
    made(Task(dataset=samples(3, "River"), scorer=including(), name="rivers"), "two")
    made(plain(), "two")
    both = llm.read_log(tmp_path / "two")
    assert set(both.table["prompt"]) == {*(f"rivers/q{i}" for i in range(3)), *(f"plain/q{i}" for i in range(6))}
    assert both.table["category"].value_counts().to_dict() == {"plain": 6, "rivers": 3}


def test_the_answer_is_not_quoted_as_the_word_of_the_judge(made: Make) -> None:
    """A scorer that matches gives the answer itself as its explanation."""
    table = llm.read_log(made(plain())).table
    assert set(table["judge_text"]) == {""}
    assert set(table["why"]) == {""}


def test_draws_that_a_rule_stopped_are_not_read_as_unresolved(made: Make, tmp_path: Path) -> None:
    log = json.loads(made(plain(), log_format="json").read_text())
    log["results"]["early_stopping"] = {"manager": "a rule", "early_stops": [{"id": "q5", "epoch": 1}], "metadata": {}}
    log["samples"] = log["samples"][:5]
    (tmp_path / "stopped.json").write_text(json.dumps(log))
    with pytest.raises(DataError, match="1 draws were not made because a stopping rule had ended"):
        llm.read_log(tmp_path / "stopped.json")


@pytest.mark.parametrize("change", [{"interaction": ["misspell"]}, {"interaction": ""}, {"draw": "0"}, {"draw": None}, {"unchanged": 1}, {"more": 1}])
def test_a_record_of_another_shape_is_refused_and_not_counted_as_the_prompt_as_it_stands(tmp_path: Path, change: dict[str, Any]) -> None:
    task = Task(dataset=samples(2), solver=rewrite("misspell(0.2)"), scorer=including())
    eval(task, model="parity/x", log_dir=str(tmp_path), log_format="json", display="none")
    (place,) = tmp_path.glob("*.json")
    log = json.loads(place.read_text())
    assert set(llm.read_log(place).table["interaction"]) == {"misspell"}
    log["samples"][0]["metadata"]["budge"].update(change)
    place.write_text(json.dumps(log))
    with pytest.raises(DataError, match="is no record of a draw"):
        llm.read_log(place)
