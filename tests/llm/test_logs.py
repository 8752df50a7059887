"""Logs of other harnesses: real ones of Inspect, made here by its own mock model, and samples in lm-evaluation-harness's format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budge import llm
from budge.errors import BudgeError, DataError, InputError, StorageError

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def inspect_log(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Run a task on Inspect's mock model and give the path of its log; each set of arguments runs once."""
    pytest.importorskip("inspect_ai", reason="logs of Inspect need inspect-ai (extra `llm`)")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.model._model_output import ModelUsage
    from inspect_ai.scorer import Score, Scorer, Target, accuracy, includes, match, scorer
    from inspect_ai.solver import Generate, TaskState, generate, solver

    @scorer(metrics=[accuracy()])
    def odd() -> Scorer:
        """Values of every kind, by the prompt."""
        values: dict[str, Any] = {"q1": "C", "q2": "I", "q3": 1, "q4": 0.0, "q5": "P", "q6": 0.5, "q7": True, "q8": "N"}

        async def score(state: TaskState, target: Target) -> Score:
            return Score(value=values[str(state.sample_id)], explanation="because")

        return score

    @solver
    def fails() -> Any:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            if state.sample_id == "q2":
                raise RuntimeError("no luck <script>")
            return await generate(state)

        return solve

    made: dict[str, Path] = {}

    def make(answers: list[str], *, epochs: int = 1, format: str = "eval", kind: str = "match", limit: int | None = None) -> Path:
        key = json.dumps([answers, epochs, format, kind, limit])
        if key in made:
            return made[key]
        scorers: Any = {"match": match(), "both": [match(), includes()], "odd": odd(), "none": None, "fails": match()}[kind]
        count = 8 if kind == "odd" else len(answers)
        samples = [
            Sample(id=f"q{i + 1}", input=f"Question {i + 1}?", target="yes", metadata={"topic": "even" if i % 2 else "odd"})
            for i in range(count)
        ]
        outputs = []
        for text in (answers or ["yes"] * 8) * epochs * 3:
            output = ModelOutput.from_content("mockllm/model", text)
            output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
            outputs.append(output)
        task = Task(
            dataset=MemoryDataset(samples), solver=fails() if kind == "fails" else generate(), scorer=scorers, name="capitals"
        )
        log = eval(
            task, model=get_model("mockllm/model", custom_outputs=outputs), epochs=epochs, log_dir=str(tmp_path_factory.mktemp("logs")), log_format=format,  # type: ignore[arg-type]
            display="none", fail_on_error=False, limit=limit, max_samples=1, max_tasks=1,
        )[0]  # fmt: skip
        made[key] = Path(str(log.location).removeprefix("file://"))
        return made[key]

    return make


# -- Inspect ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["eval", "json"])
def test_an_inspect_log_becomes_answers(inspect_log: Make, format: str) -> None:
    answers = llm.read_log(inspect_log(["yes", "no", "yes"], epochs=2, format=format), interaction="typos", category="topic")
    table = answers.table
    assert len(table) == 6
    assert answers.models == ("mockllm/model",)
    assert answers.interactions == ("typos",)
    assert sorted(zip(table["prompt"], table["draw"])) == [(f"q{i}", d) for i in (1, 2, 3) for d in (0, 1)]
    assert dict(zip(table["prompt"], table["category"])) == {"q1": "odd", "q2": "even", "q3": "odd"}
    assert table["sent"].iloc[0].startswith("Question")
    assert all((answer == "yes") == hit for answer, hit in zip(table["answer"], table["hit"])), "the scorer's word is kept"
    assert set(table["hit"]) == {True, False}
    assert answers.info["judge"] == "match"
    assert answers.info["task"] == "capitals"
    assert llm.test(answers, threshold=0.9, over="these").info["scheme"] == "per_prompt"


def test_values_that_say_neither_are_unresolved(inspect_log: Make) -> None:
    table = llm.read_log(inspect_log([], kind="odd")).table.set_index("prompt")
    assert table["hit"].to_dict() == {
        "q1": True, "q2": False, "q3": True, "q4": False, "q5": None, "q6": None, "q7": True, "q8": None,
    }  # fmt: skip
    assert table.loc["q5", "why"] == "scored 'P', which is neither a hit nor a miss"
    assert table.loc["q5", "judge_text"] == "because"
    assert table.loc["q1", "why"] == table.loc["q2", "why"] == "", "only what is unresolved needs a reason"
    turned = llm.read_log(inspect_log([], kind="odd"), values={"C": False, "I": True, "P": True}).table.set_index("prompt")
    assert turned["hit"].to_dict() == {
        "q1": False,
        "q2": True,
        "q3": None,
        "q4": None,
        "q5": True,
        "q6": None,
        "q7": None,
        "q8": None,
    }


def test_the_scorer_has_to_be_chosen_where_there_are_several(inspect_log: Make) -> None:
    path = inspect_log(["yes it is", "no"], kind="both")
    with pytest.raises(InputError, match=r"several scores.*match.*includes"):
        llm.read_log(path)
    with pytest.raises(InputError, match="did you mean 'includes'"):
        llm.read_log(path, score="include")
    by = {name: llm.read_log(path, score=name).table["hit"].tolist() for name in ("match", "includes")}
    assert by["includes"] == [True, False]
    assert by["match"] == [False, False], "it looks at the end of the answer"


def test_samples_that_failed_are_unresolved(inspect_log: Make) -> None:
    table = llm.read_log(inspect_log(["yes", "yes", "no"], kind="fails")).table.set_index("prompt")
    assert table["hit"].to_dict() == {"q1": True, "q2": None, "q3": True}
    assert "no luck" in table.loc["q2", "why"]


def test_samples_that_are_planned_and_not_there_are_unresolved(inspect_log: Make, tmp_path: Path) -> None:
    """A log of a run that was broken off: what it lacks is not forgotten."""
    log = json.loads(inspect_log(["yes", "no", "yes"], epochs=2, format="json").read_text(encoding="utf-8"))
    log["samples"] = [sample for sample in log["samples"] if not (sample["id"] == "q3" and sample["epoch"] == 2)]
    log["status"] = "cancelled"
    (tmp_path / "cut.json").write_text(json.dumps(log), encoding="utf-8")
    answers = llm.read_log(tmp_path / "cut.json")
    lost = answers.table[answers.table["why"] == "planned, but not in the log"]
    assert lost[["prompt", "draw"]].values.tolist() == [["q3", 1]]
    assert lost["hit"].tolist() == [None]
    assert len(answers) == 6


def test_a_run_on_a_part_of_the_data_lacks_nothing(inspect_log: Make) -> None:
    table = llm.read_log(inspect_log(["yes", "no", "yes"], limit=2)).table
    assert table[["prompt", "hit"]].values.tolist() == [["q1", True], ["q2", False]]


def test_a_log_without_scores_says_so(inspect_log: Make) -> None:
    with pytest.raises(DataError, match="nothing in this log is scored"):
        llm.read_log(inspect_log(["yes"], kind="none"))


def test_several_logs_are_one_test(inspect_log: Make) -> None:
    paths = {"base": inspect_log(["no"] * 30), "typos": inspect_log(["yes"] * 15 + ["no"] * 15)}
    answers = llm.read_logs(paths, model="mine")
    assert answers.models == ("mine",)
    result = llm.test(answers, threshold=0.9, over="these")
    assert result.table[["interaction", "n", "base_rate", "rate", "delta", "verdict"]].values.tolist() == [
        ["typos", 30, 0.0, 0.5, 0.5, "below"]
    ]
    assert result.table["delta_method"][0] == "paired, fixed prompts", "prompts are matched by their identifiers"
    with pytest.raises(DataError, match="judge"):
        llm.read_logs({"base": paths["base"], "odd": inspect_log([], kind="odd")})


def test_damaged_inspect_logs_are_refused(inspect_log: Make, tmp_path: Path) -> None:
    for path in (inspect_log(["yes", "no", "yes"], epochs=2), inspect_log(["yes", "no", "yes"], epochs=2, format="json")):
        data = path.read_bytes()
        for size in (0, 1, len(data) // 3, len(data) // 2, len(data) - 3):
            cut = tmp_path / f"cut{path.suffix}"
            cut.write_bytes(data[:size])
            with pytest.raises(BudgeError) as error:
                llm.read_log(cut)
            assert str(cut) in str(error.value)


@pytest.mark.parametrize(
    "text", ["{}", "[]", "null", '{"version": 2, "status": "success"}', "not json", '{"eval": {"model": 1}}']
)
def test_foreign_json_is_refused(tmp_path: Path, text: str) -> None:
    pytest.importorskip("inspect_ai", reason="logs of Inspect need inspect-ai (extra `llm`)")
    (tmp_path / "other.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.json: (is not a whole log of Inspect|is no log of a known format|is not whole JSON)"):
        llm.read_log(tmp_path / "other.json")


def test_a_packed_bomb_is_not_unfolded(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai", reason="logs of Inspect need inspect-ai (extra `llm`)")
    import zipfile

    with zipfile.ZipFile(tmp_path / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", "0" * (100 << 20))
    with pytest.raises(StorageError, match="it unfolds to 104,857,600 bytes"):
        llm.read_log(tmp_path / "bomb.eval")


# -- lm-evaluation-harness ----------------------------------------------------------------------------------------------------


def sample(doc_id: int, **changes: Any) -> dict[str, Any]:
    """One line as the harness writes it: multiple choice, with the request's arguments spelled out."""
    return {
        "doc_id": doc_id,
        "doc": {"question": f"Question {doc_id}?", "subject": "even" if doc_id % 2 == 0 else "odd", "choices": ["a", "b"]},
        "target": "0",
        "arguments": {
            "gen_args_0": {"arg_0": f"Q: Question {doc_id}?\nA:", "arg_1": " a"},
            "gen_args_1": {"arg_0": "…", "arg_1": " b"},
        },
        "resps": [[[-1.5, True]], [[-2.5, False]]],
        "filtered_resps": [[-1.5, True], [-2.5, False]],
        "filter": "none",
        "metrics": ["acc"],
        "doc_hash": "d" * 64,
        "prompt_hash": "p" * 64,
        "target_hash": "t" * 64,
        "acc": 1.0,
    } | changes


def written(folder: Path, samples: list[dict[str, Any]], name: str = "samples_arc_easy_2026-01-01T00-00-00.000000.jsonl") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(s, ensure_ascii=False) + "\n" for s in samples), encoding="utf-8")
    return folder / name


def test_samples_become_answers(tmp_path: Path) -> None:
    path = written(tmp_path, [sample(0), sample(1, acc=0.0), sample(2, acc=0.3), sample(3, acc=True)])
    answers = llm.read_log(path, model="gpt2", category="subject")
    table = answers.table
    assert table["hit"].tolist() == [True, False, None, True]
    assert table["why"].iloc[2] == "scored 0.3, which is neither a hit nor a miss"
    assert table["category"].tolist() == ["even", "odd", "even", "odd"]
    assert table["prompt"].tolist() == ["0", "1", "2", "3"]
    assert table["sent"].iloc[0] == "Q: Question 0?\nA:"
    assert answers.info == {"scheme": "per_prompt", "judge": "acc", "source": path.name, "task": "arc_easy", "runs": [], "settings": {}}


def test_the_older_spelling_is_read_too(tmp_path: Path) -> None:
    old = {
        "doc_id": 7,
        "doc": {},
        "target": "4",
        "arguments": [["2 + 2 =", {"until": ["\n"]}]],
        "resps": [["4"]],
        "filtered_resps": ["4"],
        "exact_match": 1.0,
    }
    table = llm.read_log(written(tmp_path, [old]), model="m").table
    assert table[["prompt", "hit", "sent", "answer"]].values.tolist() == [["7", True, "2 + 2 =", "4"]]


def test_metric_and_filter_have_to_be_chosen_where_there_are_several(tmp_path: Path) -> None:
    both = [sample(i, metrics=["acc", "acc_norm"], acc_norm=float(i)) for i in (0, 1)]
    path = written(tmp_path, both)
    with pytest.raises(InputError, match="several scores"):
        llm.read_log(path, model="m")
    with pytest.raises(InputError, match="did you mean 'acc_norm'"):
        llm.read_log(path, model="m", score="acc_nrm")
    assert llm.read_log(path, model="m", score="acc_norm").table["hit"].tolist() == [False, True]
    filters = [sample(i, filter=f, acc=float(f == "strict")) for f in ("strict", "flexible") for i in (0, 1)]
    path = written(tmp_path, filters)
    with pytest.raises(InputError, match=r"several filters.*strict"):
        llm.read_log(path, model="m")
    assert llm.read_log(path, model="m", filter="flexible").table["hit"].tolist() == [False, False]
    with pytest.raises(InputError, match="no such filter"):
        llm.read_log(path, model="m", filter="loose")


def test_two_sample_files_are_one_test(tmp_path: Path) -> None:
    base = written(tmp_path, [sample(i, acc=1.0) for i in range(60)], "samples_a_1.jsonl")
    typos = written(tmp_path, [sample(i, acc=float(i < 20)) for i in range(60)], "samples_b_1.jsonl")
    result = llm.test(llm.read_logs({"base": base, "typos": typos}, model="m"), threshold=0.5, over="these")
    assert result.table[["base_rate", "rate", "verdict"]].values.tolist() == [[1.0, 20 / 60, "below"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ('{"results": {"arc": {"acc,none": 0.5}}}\n', "is no log of a known format"),
        ("[1]\n", "is no log of a known format"),
        ('{"doc_id": 1, "acc": 1}\n[1]\n', "line 2: is no JSON object"),
        ('{"doc_id": 1, "acc": 1}\n{"acc": 1}\n', "line 2: is no sample of lm-evaluation-harness"),
        ('{"doc_id": 1, "acc"', "line 1: is not whole JSON"),
        ("[" * 50_000 + "\n", "line 1: is not whole JSON"),
        ('{"doc_id": 1, "resps": []}\n', "no metric"),
        ('{"doc_id": 1, "acc": 1}\n{"doc_id": 1, "acc": 0}\n', "line 2: the document is there twice"),
    ],
)
def test_damaged_and_foreign_samples_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "samples_x.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message) as error:
        llm.read_log(tmp_path / "samples_x.jsonl", model="m")
    assert "samples_x.jsonl" in str(error.value)


def test_samples_that_were_cut_off_are_refused(tmp_path: Path) -> None:
    data = written(tmp_path, [sample(i) for i in range(3)]).read_bytes()
    for size in range(1, len(data), 97):
        if data[size - 1 : size] == b"\n" or data[size : size + 1] == b"\n":
            continue
        (tmp_path / "cut.jsonl").write_bytes(data[:size])
        with pytest.raises(DataError, match="not whole JSON"):
            llm.read_log(tmp_path / "cut.jsonl", model="m")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "samples.jsonl").write_bytes(b'{"doc_id": 1, "acc": "\xff\xfe"}\n')
    with pytest.raises(DataError, match="UTF-8"):
        llm.read_log(tmp_path / "samples.jsonl", model="m")


def test_the_model_has_to_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which model answered"):
        llm.read_log(written(tmp_path, [sample(0)]))


# -- both -------------------------------------------------------------------------------------------------------------------


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match="is no log of a known format"):
        llm.read_log(tmp_path / "x.txt")
    with pytest.raises(StorageError, match="no such file"):
        llm.read_log(tmp_path / "gone.eval")
    with pytest.raises(DataError, match="no log is in this folder"):
        llm.read_log(tmp_path)
    with pytest.raises(InputError, match="unknown format"):
        llm.read_log(tmp_path / "x.txt", format="elm")
    with pytest.raises(DataError, match="no logs"):
        llm.read_logs({})
    (tmp_path / "x.jsonl").write_text('{"doc_id": 1, "acc": 1}', encoding="utf-8")
    with pytest.raises(InputError, match=r"True .hit. or False .miss."):
        llm.read_log(tmp_path / "x.jsonl", model="m", values={"C": 1})  # type: ignore[dict-item]
