"""Logs of other evaluators. Those in `data/` were written by the real tools with mock providers: lm-eval 0.4.13, garak 0.17.1, promptfoo 0.121.20."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from budge import llm
from budge.cli import main
from budge.errors import DataError, InputError

DATA = Path(__file__).parent / "data"


def counted(answers: llm.Answers) -> dict[str, tuple[int, int, int]]:
    """Draws, hits and unresolved per interaction."""
    return {str(i): (int(n), int(h), int(u)) for i, n, h, u in answers.counts()[["interaction", "n", "hits", "unresolved"]].itertuples(index=False)}


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


# -- lm-evaluation-harness --------------------------------------------------------------------------------------------------


def test_samples_of_lm_eval_give_its_own_accuracy() -> None:
    (results,) = (DATA / "lm_eval").glob("results_*.json")
    told = json.loads(results.read_text())
    for metric in ("acc", "acc_norm"):
        answers = llm.read_log(DATA / "lm_eval", score=metric)
        n, hits, lost = counted(answers)["base"]
        assert (n, lost) == (told["n-samples"]["toyq"]["effective"], 0)
        assert hits / n == pytest.approx(told["results"]["toyq"][f"{metric},none"])
        assert answers.models == (told["model_name"],), "the results file beside the samples names the model"
    assert answers.table["expected"].iloc[1] == "1"


def test_documents_that_differ_under_one_number_are_not_joined(tmp_path: Path) -> None:
    (real,) = (DATA / "lm_eval").glob("samples_*.jsonl")
    other = [json.loads(line) for line in real.read_text().splitlines()]
    for record in other:
        record["doc"], record["doc_hash"] = {"q": "Something else?"}, "0" * 64
    unrelated = lines(tmp_path / "samples_other.jsonl", other)
    with pytest.raises(DataError, match=r"30 of 30 identifiers stand for different prompts.*--match ids"):
        llm.read_logs({"base": real, "typos": unrelated}, model="m", score="acc")
    assert len(llm.read_logs({"base": real, "typos": unrelated}, model="m", score="acc", match="ids")) == 60


# -- garak ------------------------------------------------------------------------------------------------------------------


def test_a_report_of_garak_gives_its_own_counts() -> None:
    told = [json.loads(line) for line in (DATA / "garak.report.jsonl").read_text().splitlines()]
    (summary,) = [record for record in told if record["entry_type"] == "eval"]
    answers = llm.read_log(DATA / "garak.report.jsonl")
    n, hits, lost = counted(answers)["Lowercase"]
    assert (n, hits, lost) == (summary["total_evaluated"], summary["fails"], summary["nones"]) == (24, 12, 0)
    assert len([record for record in told if record["entry_type"] == "attempt"]) == 16, "each of the 8 attempts is written twice"
    assert answers.info["judge"] == "always.Random"
    assert answers.models == ("test.Lipsum",)


def test_a_detector_without_a_result_and_an_attempt_without_a_detector_are_unresolved(tmp_path: Path) -> None:
    told = [json.loads(line) for line in (DATA / "garak.report.jsonl").read_text().splitlines()]
    judged = [record for record in told if record.get("status") == 2]
    judged[0]["detector_results"]["always.Random"][0] = None
    told.remove(judged[1])
    answers = llm.read_log(lines(tmp_path / "r.report.jsonl", told))
    assert len(answers) == 24
    assert sorted(answers.table["why"].value_counts().to_dict().items()) == [
        ("", 20), ("not scored", 3), ("scored None, which is no number", 1),
    ]  # fmt: skip


def test_a_hit_log_of_garak_has_no_denominator() -> None:
    with pytest.raises(DataError, match="lists hits alone, so no rate follows"):
        llm.read_log(DATA / "garak.hitlog.jsonl")


# -- promptfoo --------------------------------------------------------------------------------------------------------------


def test_results_of_promptfoo_give_its_own_counts() -> None:
    stats = json.loads((DATA / "promptfoo.json").read_text())["results"]["stats"]
    answers = llm.read_log(DATA / "promptfoo.json", base="plain", category="country")
    found = counted(answers)
    assert found == {"base": (6, 6, 0), "shout": (6, 2, 2)}
    assert sum(hits for _, hits, _ in found.values()) == stats["successes"]
    assert sum(lost for *_, lost in found.values()) == stats["errors"]
    assert set(answers.table["draw"]) == {0, 1}, "a repeat is a draw of the same case"
    assert answers.table["prompt"].nunique() == 3
    assert set(answers.table["category"]) == {"France", "Japan", "Peru"}
    assert llm.test(answers, threshold=0.9, over="these").table["interaction"].tolist() == ["shout"]


def test_an_answer_from_the_cache_is_not_a_new_draw(tmp_path: Path) -> None:
    document = json.loads((DATA / "promptfoo.json").read_text())
    for result in document["results"]["results"]:
        result["response"]["cached"] = True
    (tmp_path / "out.json").write_text(json.dumps(document))
    assert counted(llm.read_log(tmp_path / "out.json"))["plain"] == (3, 3, 0)


def test_a_base_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'plain'"):
        llm.read_log(DATA / "promptfoo.json", base="plane")
    with pytest.raises(InputError, match="holds several interactions"):
        llm.read_log(DATA / "promptfoo.json", interaction="typos")


# -- HELM -------------------------------------------------------------------------------------------------------------------


def helm_run(folder: Path, changes: list[dict[str, Any] | None], *, fail: str = "") -> Path:
    """A run as HELM documents it: a request state and a list of statistics per instance, perturbation and trial."""
    folder.mkdir(parents=True)
    states, stats = [], []
    for i in range(4):
        for change in changes:
            made = {"perturbation": change} if change else {}
            right = i < 3 if change is None else i < 2
            instance = {"id": f"id{i}", "input": {"text": f"Question {i}?" if not change else f"Qestion {i}?"}, "split": "test", **made}
            instance["references"] = [{"output": {"text": "yes"}, "tags": ["correct"]}, {"output": {"text": "no"}, "tags": []}]
            result = {"success": f"id{i}" != fail, "completions": [{"text": "yes" if right else "no"}], "error": "no answer"}
            request = {"model": "acme/m", "prompt": f"Q: {instance['input']['text']}\nA:"}
            states.append({"instance": instance, "train_trial_index": 0, "request": request, "result": result})
            name = {"name": "exact_match", "split": "test", **made}
            stats.append({"instance_id": f"id{i}", "train_trial_index": 0, **made, "stats": [{"name": name, "count": 1, "mean": float(right)}]})
    (folder / "scenario_state.json").write_text(json.dumps({"adapter_spec": {"model": "acme/m", "temperature": 0}, "request_states": states}))
    (folder / "per_instance_stats.json").write_text(json.dumps(stats))
    return folder


def typos(seed: int | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "typos", "robustness": True, "fairness": False, "computed_on": "perturbed", **({} if seed is None else {"seed": seed}), **more}


def test_perturbations_of_helm_are_interactions_and_their_seeds_are_draws(tmp_path: Path) -> None:
    answers = llm.read_log(helm_run(tmp_path / "run", [None, typos(1), typos(2)]))
    assert counted(answers) == {"base": (4, 3, 0), "typos": (8, 4, 0)}
    row = answers.table[(answers.table["interaction"] == "typos") & (answers.table["prompt"] == "id0")].iloc[1]
    assert row[["draw", "sent", "original", "expected", "answer"]].tolist() == [1, "Q: Qestion 0?\nA:", "Question 0?", "yes", "yes"]


def test_two_laws_of_one_name_are_two_interactions(tmp_path: Path) -> None:
    answers = llm.read_log(helm_run(tmp_path / "run", [None, typos(1, prob=0.1), typos(1, prob=0.3)], fail="id3"))
    assert counted(answers) == {"base": (4, 3, 1), "typos(prob=0.1)": (4, 2, 1), "typos(prob=0.3)": (4, 2, 1)}


def test_a_folder_of_several_runs_names_prompts_by_their_run(tmp_path: Path) -> None:
    helm_run(tmp_path / "suite" / "a:model=acme_m", [None])
    helm_run(tmp_path / "suite" / "b:model=acme_m", [None])
    answers = llm.read_log(tmp_path / "suite")
    assert counted(answers) == {"base": (8, 6, 0)}
    assert answers.table["prompt"].tolist() == [f"{task}/id{i}" for task in "ab" for i in range(4)]
    assert set(answers.table["category"]) == {"a", "b"}


# -- OpenAI's evals ---------------------------------------------------------------------------------------------------------


def evals_log(path: Path, *, question: str = "What is 2+{i}?") -> Path:
    """A log as OpenAI's recorder writes it: the report before the events, a sample that failed without a verdict."""
    records: list[Any] = [
        {"spec": {"completion_fns": ["acme"], "eval_name": "sums.s1", "run_config": {"seed": 1}, "run_id": "R1"}},
        {"final_report": {"accuracy": 2 / 3}, "run_id": "R1"},
    ]
    for i in range(4):
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question.format(i=i)}]
        records.append({"run_id": "R1", "sample_id": f"sums.s1.{i}", "type": "sampling", "data": {"prompt": prompt, "sampled": [str(2 + i)]}})
        if i < 3:
            data = {"correct": i < 2, "expected": str(2 + i), "picked": None, "sampled": str(2 + i)}
            records.append({"run_id": "R1", "sample_id": f"sums.s1.{i}", "type": "match", "data": data})
    return lines(path, records)


def test_events_of_openai_evals_give_its_own_accuracy(tmp_path: Path) -> None:
    answers = llm.read_log(evals_log(tmp_path / "log.jsonl"))
    n, hits, lost = counted(answers)["base"]
    assert (n, hits, lost) == (4, 2, 1)
    assert hits / (n - lost) == pytest.approx(2 / 3)
    assert answers.table["sent"].iloc[1] == "What is 2+1?"
    with pytest.raises(DataError, match="4 of 4 identifiers stand for different prompts"):
        llm.Answers.concat([answers, llm.read_log(evals_log(tmp_path / "two.jsonl", question="Name river {i}."), interaction="typos")])


# -- tables -----------------------------------------------------------------------------------------------------------------


def test_a_table_of_numbers_is_read_with_a_cutoff(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow (extra `parquet`)")
    frame = pd.DataFrame({"qid": ["a", "a", "b", "b"], "grade": [0.2, 0.5, 0.9, None], "variant": "typos", "output": ["w", "x", "y", "z"]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        answers = llm.read_log(tmp_path / name, model="m", score="grade", cutoff=0.5, columns={"prompt": "qid"})
        assert answers.table[["prompt", "draw", "hit", "answer"]].values.tolist() == [
            ["a", 0, False, "w"], ["a", 1, True, "x"], ["b", 0, True, "y"], ["b", 1, None, "z"],
        ]  # fmt: skip
        assert answers.interactions == ("typos",)
    below = llm.read_log(tmp_path / "t.csv", model="m", score="grade", cutoff="< 0.5", columns={"prompt": "qid"})
    assert below.table["hit"].tolist() == [True, False, False, None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"score": "grad", "columns": {"prompt": "qid"}}, "no such column of scores"),
        ({"columns": {"prompt": "id"}}, "no column for prompt"),
        ({"columns": {"question": "qid"}}, "no such field"),
        ({"columns": {"prompt": "qid"}, "cutoff": "high"}, "a cut-off is a number"),
        ({"columns": {"prompt": "qid"}, "cutoff": 0.5, "values": {1: True}}, "values or a cut-off"),
        ({"columns": {"prompt": "qid"}, "match": "id"}, "by text or by ids"),
        ({"filter": "x"}, "has no filter"),
        ({}, "no column identifies the prompts"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_table_is_named(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    pd.DataFrame({"qid": ["a"], "grade": [1.0]}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message):
        llm.read_log(tmp_path / "t.csv", **{"model": "m", "score": "grade", **given})


# -- the shell --------------------------------------------------------------------------------------------------------------


def test_logs_are_imported_on_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    assert main(["llm", "import", str(DATA / "promptfoo.json"), "--base", "plain", "-o", out]) == 0
    assert "2 unresolved: failed: no answer" in capsys.readouterr().out
    assert counted(llm.load(out)) == {"base": (6, 6, 0), "shout": (6, 2, 2)}
    assert main(["llm", "import", str(DATA / "promptfoo.json"), "-o", out]) == 2
    assert main(["llm", "test", out, "--over", "these", "--threshold", "0.9"]) == 0
    capsys.readouterr()
    pd.DataFrame({"qid": ["a", "b"], "grade": [1, 5]}).to_csv(tmp_path / "t.csv", index=False)
    given = ["llm", "import", str(tmp_path / "t.csv"), "--model", "m", "--score", "grade", "--cutoff", ">= 3", "--columns", "prompt=qid"]
    assert main([*given, "-o", str(tmp_path / "two"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == [{"model": "m", "interaction": "base", "n": 2, "hits": 1, "unresolved": 0}]
    assert main(["llm", "import", str(DATA / "garak.hitlog.jsonl"), "-o", str(tmp_path / "three")]) == 2
    assert not (tmp_path / "three").exists()
