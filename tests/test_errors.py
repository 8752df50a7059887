"""Errors: what they state survives the way between processes, near files are near, and one mistake is stated once."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import budge
from budge.errors import InputError, Problem, SpecError
from budge.files import near_file
from budge.spec import parse


@pytest.mark.parametrize("problem", [Problem("draft", "is a draft"), Problem("alpha", "must be positive", got=None)], ids=["nothing got", "None got"])
def test_a_problem_is_the_same_in_another_process(problem: Problem) -> None:
    for again in (pickle.loads(pickle.dumps(problem)), copy.deepcopy(problem)):
        assert again == problem
        assert str(again) == str(problem)
        assert again.to_dict() == problem.to_dict()
    assert str(pickle.loads(pickle.dumps(InputError(problem)))) == str(problem)


@pytest.mark.parametrize(
    ("name", "said"),
    [("peeple.csv", "did you mean 'people.csv'?"), ("people.parquet", "did you mean 'people.csv'?"), ("modle.yml", "did you mean 'model.yaml'?"),
     ("ans.csv", "check the path"), ("answers.xlsx", "check the path"), ("z.onnx", "check the path"), (f"{'p' * 300}.csv", "check the path")],
)  # fmt: skip
def test_only_near_names_of_files_are_named(tmp_path: Path, name: str, said: str) -> None:
    for there in ("people.csv", "plain.csv", "p.xlsx", "model.yaml", "model.onnx"):
        (tmp_path / there).touch()
    assert near_file(tmp_path / name) == said
    assert near_file(tmp_path / "no folder" / name) == "check the path"


def test_a_name_with_hyphens_is_one_problem() -> None:
    text = "budge: 1\nfeatures:\n  hours-per-week: {type: integer, bounds: [0, 99]}\nconstraints:\n  - rule: hours-per-week <= 60 and agee > 3\n"
    with pytest.raises(SpecError) as caught:
        budge.InteractionModel.from_spec(parse(text, "yaml"))
    told = [problem.remedy for problem in caught.value.problems]
    assert told == ["write the name in backticks: `hours-per-week`", "known: hours-per-week"]
