"""`inspect eval` on a task that knows nothing of budge: the solver and the task by their names, through the entry point of the package."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")

from budge import llm
from budge.cli import main

ROOT = Path(__file__).resolve().parents[2]
TASK = '''
from inspect_ai import Task, task
from inspect_ai.dataset import FieldSpec, example_dataset
from inspect_ai.scorer import choice, match
from inspect_ai.solver import generate, multiple_choice, system_message


@task
def popularity():
    fields = FieldSpec(input="question", target="answer_matching_behavior", metadata=["label_confidence"])
    return Task(dataset=example_dataset("popularity", fields)[:8], solver=[system_message("Answer Yes or No."), generate()], scorer=match())
'''
MODEL = '''
from hashlib import blake2b

from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi


@modelapi(name="coin")
class Coin(ModelAPI):
    def __init__(self, model_name, base_url=None, api_key=None, config=GenerateConfig(), **_):
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(self, input, tools, tool_choice, config):
        output = ModelOutput.from_content("coin", "Yes" if blake2b(input[-1].text.encode()).digest()[0] % 2 else "No")
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output
'''


def test_inspect_eval_finds_the_solver_and_the_task_by_name(tmp_path: Path) -> None:
    (tmp_path / "popular.py").write_text(TASK, encoding="utf-8")
    (tmp_path / "coin_model.py").write_text(MODEL, encoding="utf-8")
    points = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]["inspect_ai"]
    made = tmp_path / "budge_here-0.dist-info"  # as an installation of this tree writes it
    made.mkdir()
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: budge-here\nVersion: 0\n", encoding="utf-8")
    lines = [f"{name} = {value}" for name, value in {**points, "coin_model": "coin_model"}.items()]
    (made / "entry_points.txt").write_text("[inspect_ai]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    told = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "src")]), "INSPECT_DISPLAY": "none"}

    def inspect(folder: str, *words: str) -> llm.Answers:
        given = [sys.executable, "-m", "inspect_ai", "eval", *words, "--model", "coin/x", "--log-dir", str(tmp_path / folder)]
        done = subprocess.run(given, cwd=tmp_path, env=told, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return llm.read_log(tmp_path / folder)

    solver = inspect("one", "popular.py@popularity", "--solver", "budge/rewrite", "-S", "interaction=case(upper)", "-S", "seed=7", "--epochs", "2")
    table = solver.table
    assert (len(table), solver.interactions, table["prompt"].nunique()) == (16, ("upper case",), 8)
    assert (table["sent"] == table["original"].str.upper()).all()
    by_hand = [answer == expected.strip() for answer, expected in zip(table["answer"], table["expected"])]
    assert table["hit"].tolist() == by_hand
    assert 0 < sum(by_hand) < 16

    study = inspect("two", "budge/under", "-T", "task=popular.py@popularity", "-T", "interactions=case(upper)", "-T", "n=1", "-T", "threshold=0.9")
    from inspect_ai.log import list_eval_logs, read_eval_log

    log = read_eval_log(list_eval_logs(str(tmp_path / "two"))[0])
    assert log.status == "success"
    cells = {name: found.value for name, found in log.results.scores[0].metrics.items()}
    row = llm.test(study, threshold=0.9, over="these").table.iloc[0]
    assert (cells["upper case rate"], cells["upper case p"]) == (row["rate"], row["p_adjusted"])
    assert cells["upper case rate"] == sum(by_hand) / 16, "the same rewrites, in the solver and in the dataset"
    assert log.samples[0].messages[0].role == "system", "the task's own solver is kept"
    assert main(["llm", "import", str(tmp_path / "two"), "-o", str(tmp_path / "answers"), "-q"]) == 0
    assert llm.load(tmp_path / "answers").counts().equals(study.counts())
