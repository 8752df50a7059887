"""Models that fail while something is proved about them: a point without an answer proves nothing, and is asked about again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Audit, Execution, Feature, InteractionModel
from budge.errors import IncompleteError
from budge.people import People
from budge.proof.structure import Additive, Answer, Column
from budge.stress import minimal_relaxations

NAMES = [f"x{j}" for j in range(12)]
IM = InteractionModel([Feature(name, "integer", bounds=(0, 9)) for name in NAMES])  # 10^12 points per person
PEOPLE = pd.DataFrame(np.arange(36).reshape(3, 12) % 5, columns=NAMES)
CUT = 100.0  # no draw comes near: 54 is expected
HOW: dict[str, Any] = {"target": 1, "n": 20}


class Sum:
    """Predicts 1 from a sum on, shows its structure, and fails on some sums; `calls` are those that failed."""

    classes_ = (0, 1)

    def __init__(self, fails: Callable[[Any], Any] = lambda total: total < 0) -> None:
        self.fails, self.calls = fails, 0

    def predict(self, table: pd.DataFrame) -> Any:
        total = table.to_numpy().sum(axis=1)
        if self.fails(total).any():
            self.calls += 1
            raise ConnectionError("the server is down")
        return (total >= CUT).astype(int)

    def structure(self, columns: Sequence[Column]) -> Additive:
        answer = Answer("binary", self.classes_, cut=CUT, strict=False, link=None)
        return Additive(tuple(columns), answer, np.zeros(1), {column.name: np.ones(1) for column in columns})


def high(total: Any) -> Any:
    return total >= CUT


def test_a_target_is_not_proved_impossible_by_points_without_an_answer() -> None:
    assert set(budge.prove(Sum(), PEOPLE, IM, **HOW).table["status"]) == {"possible"}
    model = Sum(high)
    found = budge.prove(model, PEOPLE, IM, **HOW)
    assert set(found.table["status"]) == {"unresolved"}
    assert set(found.table["reason"]) == {"answers are missing"}
    assert "the proofs about 3 people need have no answer: ConnectionError: the server is down" in str(found.audit.notes[-1])
    assert model.calls < 40


def test_a_target_is_not_proved_certain_by_points_without_an_answer() -> None:
    assert set(budge.prove(Sum(), PEOPLE, IM, target=0, n=20).table["status"]) == {"possible"}
    assert set(budge.prove(Sum(high), PEOPLE, IM, target=0, n=20).table["status"]) == {"possible"}
    assert (budge.audit(Sum(high), PEOPLE, IM, target=0, n=60, prove=True, population="all").table["extreme"] == "").all()


def test_no_plan_is_called_the_least_where_cheaper_points_have_no_answer() -> None:
    few = IM.features[:3]
    im = InteractionModel([*few, *(Feature(name, "integer", bounds=(0, 9), actionable=False) for name in NAMES[3:])])
    person = PEOPLE.iloc[[0]].assign(**dict.fromkeys(NAMES[3:], 9))  # 81 as they are, and 100 with 19 of 27 more
    honest = budge.recourse(Sum(), person, im, target=1, cost={"x0": 1, "x1": 2, "x2": 4}, design=budge.Design(method="sample"))
    assert honest.least == (True,)
    found = budge.recourse(Sum(lambda total: total == CUT), person, im, target=1, cost={"x0": 1, "x1": 2, "x2": 4}, design=budge.Design(method="sample"))
    assert found.cost[0] > honest.cost[0]
    assert found.least == (False,)
    assert budge.recourse(Sum(high), person, im, target=1, design=budge.Design(method="sample")).status == "unresolved"


def test_a_share_is_not_counted_with_points_without_an_answer() -> None:
    more: dict[str, Any] = {"target": 1, "method": "exact", "prove": True}
    honest = budge.audit(Sum(), PEOPLE, IM, **more)
    assert set(honest.table["method"]) == {"proved"}
    found = budge.audit(Sum(lambda total: total == CUT), PEOPLE, IM, **more)
    assert set(found.table["status"]) == {"not_exact"}
    assert set(found.table["proof"]) == {"answers are missing"}
    assert "ConnectionError" in str(found.notes[-1])


def test_sets_that_were_counted_and_not_listed_are_not_listed_at_the_end() -> None:
    more: dict[str, Any] = {"target": 1, "method": "exact", "prove": True}
    found = budge.audit(Sum(), PEOPLE, IM, **more, execution=Execution(block_people=1))
    assert found.table.equals(budge.audit(Sum(), PEOPLE, IM, **more, execution=Execution(check=False)).table)


@pytest.mark.parametrize("method", ["auto", "exact"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_proof_that_lacks_an_answer_is_tried_again_when_the_run_goes_on(stream: bool, method: Any, tmp_path: Path) -> None:
    if stream:
        pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")
        PEOPLE.to_parquet(tmp_path / "people.parquet")
    people: Any = People.of(tmp_path / "people.parquet", part=2) if stream else PEOPLE
    more: dict[str, Any] = {"target": 1, "n": 60, "prove": True, "method": method}
    model, seen = Sum(lambda total: high(total)), list[str]()  # code without a digest, which may change

    def interrupt(result: Audit) -> Audit:
        seen.extend(result.table["proof"])
        raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, IncompleteError)) as caught:  # a model that was asked about edges alone, and failed, is down
        budge.audit(model, people, IM, **more, execution=Execution(journal=tmp_path / "run", block_people=1, finish=interrupt))
    seen += caught.value.result.table["proof"].tolist() if isinstance(caught.value, IncompleteError) else []  # type: ignore[attr-defined]
    assert set(seen) == {"answers are missing"}
    model.fails = lambda total: total < 0
    again = budge.audit(model, people, IM, **more, execution=Execution(journal=tmp_path / "run", block_people=1))
    honest = budge.audit(Sum(), PEOPLE, IM, **more)
    assert again.table["proof"].tolist() == honest.table["proof"].tolist()
    assert again.table["rho"].tolist() == honest.table["rho"].tolist()
    assert not again.notes


def test_nobody_is_proved_stuck_by_points_without_an_answer() -> None:
    im = InteractionModel([Feature(name, "integer", bounds=(0, 9), actionable=name != "x0") for name in NAMES])
    honest = minimal_relaxations(Sum(), PEOPLE, im, target=1, n=20, prove=True, max_size=1)
    assert honest.table["proven"].tolist() == [True]  # the two others are not stuck
    found = minimal_relaxations(Sum(high), PEOPLE, im, target=1, n=20, prove=True, max_size=1)
    assert len(found.stuck) == 3
    assert not found.proven_without
