"""What the tests of proofs share: random structures over the features of a model, random goals, and listing as the judge."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reach"))

from reach_kit import random_cases

from budge import InteractionModel
from budge.errors import DrawError, EmptyError
from budge.proof import Additive, Answer, Column, Trees
from budge.proof.goals import Condition, Goal
from budge.proof.structure import Structure

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
ANSWER = Answer("argmax", (0, 1, 2))


def columns_for(im: InteractionModel, extra: bool = True) -> tuple[Column, ...]:
    found = [Column(f.name, f.levels, f.discrete and f.levels is None) for f in im.features]
    return (*found, Column("elsewhere")) if extra else tuple(found)


def leaf_value(rng: np.random.Generator, scores: int, ties: bool) -> FloatArray:
    return rng.integers(-3, 4, scores).astype(float) if ties else rng.normal(size=scores)


def cut_for(im: InteractionModel, name: str, rng: np.random.Generator) -> float:
    f = im.by_name.get(name)
    low, high = f.range if f is not None else (-1.0, 1.0)
    at = float(rng.integers(int(low) * 2, int(high) * 2 + 1)) / 2
    return float(np.nextafter(at, rng.choice([-np.inf, at, np.inf])))


def random_trees(im: InteractionModel, rng: np.random.Generator, scores: int, trees: int, depth: int, extra: bool = True) -> Trees:
    columns = columns_for(im, extra)
    ties = bool(rng.random() < 0.5)
    nodes: list[dict[str, Any]] = []
    lefts: dict[int, BoolArray] = {}

    def grow(level: int) -> int:
        me = len(nodes)
        nodes.append({"column": -1, "cut": 0.0, "missing": False, "left": 0, "right": 0, "value": np.zeros(scores)})
        if level == depth or rng.random() < 0.15:
            nodes[me]["value"] = leaf_value(rng, scores, ties)
            return me
        j = int(rng.integers(len(columns)))
        levels = columns[j].levels
        nodes[me] |= {"column": j, "missing": bool(rng.random() < 0.5), "cut": np.nan if levels else cut_for(im, columns[j].name, rng)}
        if levels:
            lefts[me] = rng.random(len(levels)) < 0.5
        nodes[me]["left"], nodes[me]["right"] = grow(level + 1), grow(level + 1)
        return me

    roots = [grow(0) for _ in range(trees)]
    arrays = [np.array([node[key] for node in nodes]) for key in ("column", "cut", "missing", "left", "right", "value")]
    return Trees(columns, ANSWER, leaf_value(rng, scores, ties), np.array(roots), *arrays, lefts)


def random_additive(im: InteractionModel, rng: np.random.Generator, scores: int, extra: bool = True) -> Additive:
    columns = columns_for(im, extra)
    ties = bool(rng.random() < 0.5)
    slopes, steps, tables = {}, {}, {}
    for column in columns:
        if column.levels is not None:
            tables[column.name] = np.array([leaf_value(rng, scores, ties) for _ in column.levels])
        elif rng.random() < 0.5:
            slopes[column.name] = leaf_value(rng, scores, ties)
        elif rng.random() < 0.8:
            cuts = np.unique([cut_for(im, column.name, rng) for _ in range(int(rng.integers(1, 5)))])
            steps[column.name] = cuts, np.array([leaf_value(rng, scores, ties) for _ in range(len(cuts) + 1)])
    missing = {c.name: leaf_value(rng, scores, ties) for c in columns}
    return Additive(columns, ANSWER, leaf_value(rng, scores, ties), slopes, steps, tables, missing)


def random_structure(im: InteractionModel, rng: np.random.Generator, extra: bool = True) -> Structure:
    scores = int(rng.integers(1, 4))
    if rng.random() < 0.4:
        return random_additive(im, rng, scores, extra)
    return random_trees(im, rng, scores, int(rng.integers(1, 9)), int(rng.integers(1, 5)), extra)


def random_goal(structure: Structure, points: FloatArray, rng: np.random.Generator) -> Goal:
    """Alternatives with bounds near to the upper end of what the points score, so that both answers occur."""
    scores = structure.scores(points)
    found = []
    for _ in range(int(rng.integers(1, 3))):
        conditions = []
        for _ in range(int(rng.integers(1, 3))):
            weights = rng.integers(-1, 2, scores.shape[1]).astype(float)
            reached = scores @ weights
            near = float(rng.choice(reached)) if rng.random() < 0.3 else float(reached.max())
            conditions.append(Condition(weights, near + float(rng.choice([0.0, 0.0, 1e-13, -1e-13, 0.1, -0.1, 0.5, 2.0]))))
        found.append(tuple(conditions))
    return tuple(found)


def judge(structure: Structure, goal: Goal, strict: bool = False) -> Callable[[FloatArray], BoolArray]:
    """Return the answer of a model that is its structure."""

    def ask(points: FloatArray) -> BoolArray:
        scores = structure.scores(np.asarray(points))
        good = np.zeros(len(points), dtype=bool)
        for conditions in goal:
            met = np.ones(len(points), dtype=bool)
            for c in conditions:
                reached = scores @ c.weights
                met &= (reached > c.bound) if strict else (reached >= c.bound)
            good |= met
        return good

    return ask


@dataclass(frozen=True)
class Triple:
    """A person, a model that is its structure, a goal, and points that the person reaches: all of them, or draws."""

    im: InteractionModel
    x: dict[str, Any]
    start: FloatArray
    points: FloatArray
    structure: Structure
    goal: Goal
    ask: Callable[[FloatArray], BoolArray]
    rng: np.random.Generator

    @property
    def hits(self) -> FloatArray:
        return self.points[self.ask(self.points)] if len(self.points) else self.points

    def reaches(self, point: FloatArray) -> bool:
        """Whether a coded row is feasible by the definition, over all features and at once."""
        change = np.where(np.isnan(self.start), 0.0, point - self.start)
        assert np.isnan(self.start[-1]) or change[-1] == 0.0
        return bool(self.im.feasible(self.x, change[None, :-1])[0])

    def moved(self, point: FloatArray) -> frozenset[int]:
        return frozenset(np.flatnonzero(~(np.isnan(self.start) | (self.start == point))).tolist())


def triples(count: int, key: int, draws: int = 0, low: bool = False) -> Iterator[Triple]:
    """Random triples; every third without constraints. `draws`: real features too, and so many draws. `low`: bounds that many points meet."""
    for i, (made, x) in enumerate(random_cases(count, key, continuous=bool(draws))):
        rng = np.random.default_rng([key, i])
        im = InteractionModel([f.but(distribution=None) for f in made.features], made.constraints if i % 3 else ())
        try:
            values = im.sample(x, draws, on_invalid="keep").values if draws else im.enumerate(x, on_invalid="keep").values
        except EmptyError:
            values = np.zeros((0, len(im.features)))
        except DrawError:
            continue
        elsewhere = float(rng.choice([np.nan, 0.3, -0.2]))
        points = np.concatenate([values, np.full((len(values), 1), elsewhere)], axis=1)
        start = np.append(np.array(list(im.start(x).values())), elsewhere)
        structure = random_structure(im, rng)
        around = points if len(points) else start[None]
        goal = random_goal(structure, around, rng)
        if low:
            scores, here = structure.scores(around)[:, 0], float(structure.scores(start[None])[0, 0])
            above = scores[scores > here]
            first = np.eye(structure.scores(start[None]).shape[1])[0]
            goal = ((Condition(first, float(np.quantile(above, 0.3)) if len(above) else here + 0.1),),)
        yield Triple(im, x, start, points, structure, goal, judge(structure, goal, strict=bool(rng.random() < 0.5)), rng)
