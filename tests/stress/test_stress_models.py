"""Models that go bad during recourse and stress tests: an error, a note or the honest result, never another number without a word."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.errors import IncompleteError, ModelError
from budge.people import People
from budge.stress import ablate, grid, minimal_relaxations, select, sensitivity, tally

A = np.array([4, 2, 3, 0, 1, 3, 2, 0, 4, 1, 2, 3])
PEOPLE = pd.DataFrame({"a": A, "b": np.arange(12) % 3, "from_a": A})  # `from_a` shows which rows are people as they are
IM = InteractionModel(
    [Feature("a", "integer", bounds=(0, 5)), Feature("b", "integer", bounds=(0, 3), max_increase=1), Feature("from_a", "integer", actionable=False)]
)
FAMILY = grid(IM, {"features.b.max_increase": [1, 2, 3]})
DRAWN = Design(method="sample", n=60, threshold=0.9)


def honest(table: pd.DataFrame) -> Any:
    return (table["a"].to_numpy() + table["b"].to_numpy() >= 5).astype(int)


def flip(table: pd.DataFrame) -> Any:
    """Return other answers about points, and the same about people as they are."""
    return np.where(table["a"] != table["from_a"], 1 - honest(table), honest(table))


def gaps(table: pd.DataFrame) -> Any:
    return [None if a == 5 else label for a, label in zip(table["a"], honest(table).tolist())]


def meddle(table: pd.DataFrame) -> Any:
    found = honest(table)
    table["a"] = 0
    return found


def full(table: pd.DataFrame) -> Any:
    raise MemoryError("no room")


BAD: dict[str, Callable[[pd.DataFrame], Any]] = {"flip": flip, "turn": lambda table: 1 - honest(table), "meddle": meddle, "full": full}


class Model:
    """Is honest before a call and bad from it on, up to another one."""

    def __init__(self, first: int = 10**9, last: int = 10**9, bad: Callable[[pd.DataFrame], Any] = flip) -> None:
        self.first, self.last, self.bad, self.calls, self.points = first, last, bad, 0, 0

    def __call__(self, table: pd.DataFrame) -> Any:
        self.calls += 1
        if not self.points and (table["a"] != table["from_a"]).any():
            self.points = self.calls  # the first question about points
        return self.bad(table) if self.first <= self.calls < self.last else honest(table)


def selected(model: Any, **more: Any) -> Any:
    return select({"m": model, "other": lambda t: honest(t)}, PEOPLE, IM, accuracy={"m": 0.9, "other": 0.1}, target=1, limit=0.99, **more)


TASKS: dict[str, Callable[[Any], Any]] = {
    "recourse": lambda m: budge.recourse(m, PEOPLE.iloc[[0]], IM, target=1),
    "polished": lambda m: budge.recourse(m, PEOPLE.iloc[[0]], IM, target=1, n=50, design=Design(method="sample")),
    "sensitivity": lambda m: sensitivity(m, PEOPLE, FAMILY, target=1),
    "drawn sensitivity": lambda m: sensitivity(m, PEOPLE, FAMILY, target=1, method="sample", n=60),
    "select": lambda m: selected(m, threshold=0.9),
    "drawn select": lambda m: selected(m, compare={"same": IM}, design=DRAWN),
    "ablate": lambda m: ablate(m, PEOPLE, IM, target=1),
    "drawn ablate": lambda m: ablate(m, PEOPLE, IM, target=1, design=DRAWN),
    "paired": lambda m: ablate(m, PEOPLE, IM, ["lift steps of b"], target=1, method="paired", n=200),
}


def figures(result: Any) -> str:
    tables = [getattr(result, name) for name in ("table", "ranking", "people", "points") if hasattr(result, name)]
    return "\n".join([str(result), *(table.to_csv() for table in tables)])


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("task", TASKS)
def test_a_model_that_goes_bad_after_its_first_points_is_noticed(task: str, bad: str) -> None:
    before, model = PEOPLE.copy(), Model()
    expected = figures(TASKS[task](model))
    for first in np.unique(np.linspace(model.points + 1, model.calls, 4).astype(int)).tolist():
        with suppress(ModelError, IncompleteError):
            assert figures(TASKS[task](Model(first, bad=BAD[bad]))) == expected
        assert PEOPLE.equals(before)


@pytest.mark.parametrize("task", [name for name in TASKS if name not in ("recourse", "polished", "paired")])
def test_a_model_that_is_bad_for_a_while_is_noticed(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tally, "BLOCK_ROWS", 120)  # several questions
    model = Model()
    expected = figures(TASKS[task](model))
    for first in range(model.points, model.calls):
        with suppress(ModelError):
            assert figures(TASKS[task](Model(first, first + 1))) == expected


def test_a_plan_that_misses_the_target_when_asked_about_again_is_no_plan() -> None:
    model = Model()
    budge.recourse(model, PEOPLE.iloc[[0]], IM, target=1)
    with pytest.raises(ModelError, match="a plan that attained the target misses it"):
        budge.recourse(Model(model.points + 1), PEOPLE.iloc[[0]], IM, target=1)


@pytest.mark.parametrize("method", ["auto", "sample"])
def test_a_person_without_a_plan_learns_that_answers_are_missing_and_why(method: Any) -> None:
    def failing(table: pd.DataFrame) -> Any:
        if (honest(table) == 1).any():
            raise ConnectionError("the server is down")
        return honest(table)

    found = budge.recourse(failing, PEOPLE.iloc[[3]], IM, target=1, n=50, design=Design(method=method))
    assert found.status == "unresolved"
    assert "have no answer (ConnectionError: the server is down)" in found.reason
    assert "ConnectionError: the server is down" in str(found.notes[-1])


@pytest.mark.parametrize("task", ["sensitivity", "select", "ablate"])
def test_missing_answers_are_noted_with_their_cause(task: str) -> None:
    result = {
        "sensitivity": lambda: sensitivity(gaps, PEOPLE, FAMILY, target=1, design=Design(max_unresolved=0.5)),
        "select": lambda: selected(gaps, design=Design(max_unresolved=0.5, threshold=0.9)),
        "ablate": lambda: ablate(gaps, PEOPLE, IM, target=1, design=Design(max_unresolved=0.5)),
    }[task]()
    assert "points have no answer: no answer (None or NaN)" in str(result)
    assert result.to_dict()["info"]["notes"]


def test_minimal_relaxations_note_missing_answers() -> None:
    found = minimal_relaxations(gaps, PEOPLE, IM, target=1, max_size=1, design=Design(max_unresolved=0.5))
    assert "points have no answer: no answer (None or NaN)" in str(found)


def test_members_about_other_people_are_an_error_in_any_case() -> None:
    model = Model()
    sensitivity(model, PEOPLE, FAMILY, target=1, execution=Execution(check=False))
    turned = Model(model.points + 1, bad=BAD["turn"])
    with pytest.raises(ModelError, match="other people have the target"):
        sensitivity(turned, PEOPLE, FAMILY, target=1, execution=Execution(check=False))


def test_a_model_that_goes_bad_between_the_members_of_a_stream_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")
    PEOPLE.to_parquet(tmp_path / "people.parquet")
    people, calls = People.of(tmp_path / "people.parquet", part=5), list[int]()

    def told(done: int, total: int) -> None:
        if len(FAMILY) * done == total:  # the last of these: the second member begins
            calls.append(model.calls)

    model = Model()
    expected = figures(sensitivity(model, people, FAMILY, target=1, progress=told))
    assert expected == figures(sensitivity(honest, people, FAMILY, target=1))
    with pytest.raises(ModelError, match="otherwise"):
        sensitivity(Model(calls[-1] + 1), people, FAMILY, target=1)


def test_warnings_keep_the_result() -> None:
    model, calls = Model(), list[int]()
    sensitivity(model, PEOPLE, FAMILY, target=1, progress=lambda done, total: calls.append(model.calls) if len(FAMILY) * done == total else None)
    found = sensitivity(Model(calls[-1] + 1), PEOPLE, FAMILY, target=1, execution=Execution(check="warn"))
    assert "Note: model: the model answers otherwise than at the start" in str(found)
