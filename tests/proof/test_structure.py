"""Structures score coded rows, and targets become conditions on scores."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import budge
from budge.models.reading import Reading
from budge.proof import Additive, Answer, Column, Trees, UnreadableError
from budge.proof.goals import goal_of
from budge.proof.structure import codes_of, columns_of


def test_additive_scores_add_slopes_steps_tables_and_missing_values():
    structure = Additive(
        (Column("income"), Column("age", whole=True), Column("home", ("rent", "own"))),
        Answer("binary", (0, 1)),
        np.array([1.0]),
        slopes={"income": np.array([2.0])},
        steps={"age": (np.array([30.0, 60.0]), np.array([[0.0], [5.0], [7.0]]))},
        tables={"home": np.array([[0.0], [10.0]])},
        missing={"income": np.array([-1.0])},
    )
    codes = codes_of(structure.columns, pd.DataFrame({"income": [3.0, np.nan], "age": [30, 31], "home": ["own", "rent"]}))
    assert structure.scores(codes)[:, 0].tolist() == [1 + 6 + 0 + 10, 1 - 1 + 5 + 0]
    codes[0, 1] = np.nan
    with pytest.raises(UnreadableError, match="age is missing"):
        structure.scores(codes)


def test_trees_split_at_cuts_levels_and_missing_values():
    structure = Trees(
        (Column("x"), Column("home", ("rent", "own", "free"))), Answer("binary", (0, 1)), np.array([0.5]),
        roots=np.array([0, 3]), column=np.array([0, -1, -1, 1, -1, -1]), cut=np.array([2.0, 0, 0, np.nan, 0, 0]),
        missing=np.array([False, False, False, True, False, False]), left=np.array([1, 0, 0, 4, 0, 0]), right=np.array([2, 0, 0, 5, 0, 0]),
        value=np.array([[0.0], [1.0], [2.0], [0.0], [10.0], [20.0]]), lefts={3: np.array([True, False, True])},
    )  # fmt: skip
    codes = np.array([[2.0, 0], [np.nextafter(2.0, 3), 1], [np.nan, np.nan]])
    assert structure.scores(codes)[:, 0].tolist() == [0.5 + 1 + 10, 0.5 + 2 + 20, 0.5 + 2 + 10]


def test_levels_of_different_types_are_different():
    frame = pd.DataFrame({"a": pd.Series([1, "1", True], dtype=object)})
    (column,) = columns_of(frame)
    assert len(column.levels) == 3
    with pytest.raises(UnreadableError, match="not among the known levels"):
        codes_of([Column("a", (1,))], frame)


LABELS = Reading(output="label", ask="label", classes=("no", "yes"))
SCORE = Reading(output="score", ask="probability", classes=("no", "yes"))


@pytest.mark.parametrize(
    ("reading", "target", "before", "expected"),
    [
        (LABELS, budge.targets.label("yes"), "no", [[(1.0, 0.3)]]),
        (LABELS, budge.targets.different(), "yes", [[(-1.0, -0.3)]]),
        (LABELS, budge.targets.labels(["no", "yes"]), "no", [[]]),
        (SCORE, budge.targets.above(0.5), 0.1, [[(1.0, 0.0)]]),
        (SCORE, budge.targets.interval(0.0, 0.5), 0.1, [[(-1.0, 0.0)]]),
        (SCORE, budge.targets.interval(1.5, 2.0), 0.1, []),
        (Reading(output="score", ask="probability", classes=("no", "yes"), column=0), budge.targets.above(0.5), 0.1, [[(-1.0, 0.0)]]),
        (Reading(output="label", ask="probability", classes=("no", "yes"), threshold=0.0), budge.targets.label("yes"), "yes", [[]]),
        (Reading(output="label", ask="probability", classes=("no", "yes"), threshold=0.0), budge.targets.label("no"), "yes", []),
        (Reading(output="label", ask="probability", classes=("no", "yes"), column=0, threshold=0.5), budge.targets.label("no"), "yes", [[(-1.0, 0.0)]]),
    ],
)  # fmt: skip
def test_a_target_becomes_conditions(reading, target, before, expected):
    goal = goal_of(Answer("binary", ("no", "yes"), cut=0.3), reading, target, before)
    assert [[(float(c.weights[0]), pytest.approx(c.bound)) for c in alternative] for alternative in goal] == [
        [(w, pytest.approx(b)) for w, b in alternative] for alternative in expected
    ]


def test_a_class_among_several_is_not_behind_any_other():
    answer = Answer("argmax", (0, 1, 2), link=None)
    goal = goal_of(answer, Reading(output="label", ask="label", classes=(0, 1, 2)), budge.targets.labels([0, 2]), 1)
    assert [[c.weights.tolist() for c in alternative] for alternative in goal] == [[[1, -1, 0]], [[0, -1, 1]]]
    with pytest.raises(UnreadableError, match="more than two classes"):
        goal_of(answer, Reading(output="score", ask="probability", classes=(0, 1, 2)), budge.targets.above(0.5), 0.2)


@pytest.mark.parametrize(("low", "high"), [(0.9999999, 1.0), (0.0, 0.0), (1.0, 1.0)])
def test_probabilities_at_the_edge_are_not_told_from_scores(low, high):
    with pytest.raises(UnreadableError):
        goal_of(Answer("binary", ("no", "yes")), SCORE, budge.targets.interval(low, high), 0.1)


def test_missing_the_target_is_the_rest_of_the_scores():
    answer, plain = Answer("number", link="identity"), Reading(output="score", ask="score")

    def ends(target, before, miss):
        return [sorted((float(c.weights[0]), round(c.bound, 3)) for c in a) for a in goal_of(answer, plain, target, before, miss=miss)]

    assert ends(budge.targets.interval(1.0, 2.0), 0.0, True) == [[(-1.0, -1.0)], [(1.0, 2.0)]]
    assert ends(budge.targets.above(margin=1.0), 3.0, False) == [[(1.0, 4.0)]]
    assert ends(budge.targets.above(margin=1.0), 3.0, True) == [[(-1.0, -4.0)]]
    assert ends(budge.targets.different(), 3.0, False) == [[(1.0, 3.0)], [(-1.0, -3.0)]]
    assert ends(budge.targets.different(), 3.0, True) == [[(-1.0, -3.0), (1.0, 3.0)]]
    near = goal_of(answer, plain, budge.targets.different(), np.float32(3.0), miss=True)[0]
    assert all(c.bound < 0 or c.bound < 3.0 for c in near)  # what rounds to the same score misses too
    labels = goal_of(Answer("binary", ("no", "yes")), LABELS, budge.targets.label("yes"), "yes", miss=True)
    assert labels[0][0].weights.tolist() == [-1.0]
