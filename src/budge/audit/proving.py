"""What draws leave open is settled by the model's structure: rows whose draws all miss the target, and rows whose draws all attain it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import Answers
from budge.audit.design import Design
from budge.audit.sources import BoolArray, FloatArray, Source, TableSource
from budge.errors import Problem
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.models.predictor import Adapted
from budge.models.reading import Reading
from budge.proof.exact import Share, exact_share
from budge.proof.goals import Goal, goal_of
from budge.proof.prover import Proof, Prover
from budge.proof.reading import read
from budge.proof.structure import Structure, UnreadableError, codes_of, columns_of
from budge.reach.reacher import reacher
from budge.stats.counts import LAWS, PROOFS, Counts
from budge.targets import Target

__all__ = ["Question", "Settler", "UnansweredError", "settlers_of"]

MOST_LOST = 8  # questions without an answer after which a proof is given up: one that is missing already leaves nothing to prove but a way
LARGEST = 2**62  # sets beyond this are not counted in 64 bits: only the share is kept
Ask = Callable[[Any, npt.NDArray[Any]], Answers]  # an `Asker`, or what asks it


class UnansweredError(Exception):
    """The model gives no answer to the questions of a proof."""


class Question:
    """Asks the model which coded points of a row attain the target (with `miss`: miss it); `lost` tells whether one of them has no answer.

    A point without an answer neither attains the target nor misses it: whoever asks must not conclude anything from it.
    """

    def __init__(self, settler: Settler, source: TableSource, row: int, ask: Ask, before: Any, *, miss: bool = False) -> None:
        self.settler, self.source, self.row, self.ask, self.before, self.miss = settler, source, row, ask, before, miss
        self.unanswered = 0

    @property
    def lost(self) -> bool:
        """Whether some point has no answer."""
        return self.unanswered > 0

    def __call__(self, points: FloatArray) -> BoolArray:
        """Return which points attain the target; raise an `UnansweredError` where questions go unanswered again and again."""
        table = self.source.written(np.full(len(points), self.row), points[:, self.settler.moved])
        found = self.ask(table, np.repeat(np.asarray([self.before]), len(points)))
        self.unanswered += not found.good.all()
        if self.unanswered >= MOST_LOST:
            raise UnansweredError
        return np.asarray(found.good & (found.hit != self.miss))


@dataclass(frozen=True)
class Settler:
    """Proves about rows of a table, with one model and one target; without a structure every proof stays open."""

    im: InteractionModel
    target: Target
    reading: Reading | None = None
    structure: Structure | None = None
    seconds: float | None = None
    _made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    @property
    def prover(self) -> Prover:
        """What proves, made once per process."""
        if "prover" not in self._made:
            assert self.structure is not None
            self._made["prover"] = Prover(self.structure, self.im, seconds=self.seconds)
        made: Prover = self._made["prover"]
        return made

    def settle(self, source: TableSource, ask: Ask, before: npt.NDArray[Any], counts: Counts, asked: BoolArray) -> dict[int, FloatArray]:
        """Write proofs into the counts of a block, one for rows that are alike; return the points found for rows without a hit.

        A row none of whose points attains the target, or all of whose points do, has the law `proved` afterwards.
        """
        drawn = counts.is_law("sample", "weighted", "sequential") & asked
        none, every = drawn & (counts.hits == 0), drawn & (counts.hits == counts.n) & (counts.unresolved == 0)
        known: dict[tuple[bytes, Any, bool], Proof] = self._made.setdefault("known", {})  # also from earlier blocks
        found: dict[int, FloatArray] = {}
        rows = np.flatnonzero(none | every).tolist()
        starts = self.starts(source, rows)
        for row in rows:
            began, miss = time.process_time(), bool(every[row])
            proof = Proof("unresolved", reason="model")
            if row in starts:
                key = (starts[row].tobytes(), np.asarray(before[row]).item(), miss)
                try:
                    proof = known[key] if key in known else self._prove(source, row, starts[row], ask, before[row], miss)
                    if proof.reason != "answers are missing":  # which they may not be when the same is asked again
                        known[key] = proof
                except UnreadableError:
                    pass
            counts.seconds[row] = time.process_time() - began
            if proof.status == "impossible":
                counts.law[row], counts.hit_mass[row], counts.lost_mass[row] = LAWS.index("proved"), float(miss), 0.0
                counts.proof[row] = PROOFS.index("certain" if miss else "impossible")
            elif proof.status == "unresolved":
                counts.proof[row] = PROOFS.index(proof.reason)
            else:
                counts.proof[row] = PROOFS.index("possible")
                if proof.point is not None and not miss:
                    found[row] = proof.point[self.moved]
                    if not self._drawn(found[row]):  # feasible, but nothing that the interaction model draws
                        del found[row]
                        counts.proof[row] = PROOFS.index("constraint")
        return found

    def _drawn(self, values: FloatArray) -> bool:
        """Return whether every value is one to which its feature's distribution gives weight, where that lists values."""
        for j, value in zip(reacher(self.im).moved, values):
            feature = self.im.features[j]
            if feature.distribution is not None and feature.distribution.bounded and not np.isnan(value):
                known, weights = feature.distribution.table(feature.levels)
                if not np.isclose(known[weights > 0], value, rtol=1e-9, atol=1e-9).any():
                    return False
        return True

    def count(self, source: TableSource, ask: Ask, before: npt.NDArray[Any], counts: Counts, asked: BoolArray) -> BoolArray:
        """Write the shares of rows into the counts that follow from the structure without listing or drawing; return which rows have one."""
        done = np.zeros(len(asked), dtype=bool)
        known: dict[tuple[bytes, Any], tuple[Share | None, bool]] = {}  # with whether answers are missing
        for row, start in self.starts(source, np.flatnonzero(asked).tolist()).items():
            began = time.process_time()
            assert self.structure is not None
            assert self.reading is not None
            key = (start.tobytes(), np.asarray(before[row]).item())
            try:
                if key not in known:
                    goal = goal_of(self.structure.answer, self.reading, self.target, before[row])
                    known[key] = self._share(start, goal, Question(self, source, row, ask, before[row]))
                share, lost = known[key]
                if share is not None and share.hits is None and share.low == share.high in (0.0, 1.0):
                    # no mass is not yet no point: only a proof tells them apart
                    proof = self._prove(source, row, start, ask, before[row], share.low == 1.0)
                    share, lost = share if proof.status == "impossible" else None, proof.reason == "answers are missing"
            except UnreadableError:
                share, lost = None, False
            if share is None:
                counts.proof[row] = PROOFS.index("answers are missing" if lost else "")
                continue
            done[row], counts.seconds[row], counts.proof[row] = True, time.process_time() - began, PROOFS.index("counted")
            counts.law[row], counts.hit_mass[row], counts.lost_mass[row] = LAWS.index("proved"), share.low, share.high - share.low
            if share.size is not None and share.hits is not None and share.size < LARGEST:
                counts.n[row], counts.hits[row] = share.size, share.hits
            counts.asked[row] += share.asked
        return done

    def starts(self, source: TableSource, rows: list[int]) -> dict[int, FloatArray]:
        """Return rows as codes, all at once, because a table of one row costs as much; a row that cannot be coded is left out."""
        if self.structure is None or not rows:
            return {}
        try:
            return dict(zip(rows, codes_of(self.structure.columns, source.frame.iloc[rows])))
        except UnreadableError:
            half = len(rows) // 2
            return {**self.starts(source, rows[:half]), **self.starts(source, rows[half:])} if half else {}

    @property
    def moved(self) -> list[int]:
        """Columns of the structure that hold the features that can move, in the order of these."""
        if "moved" not in self._made:
            assert self.structure is not None
            place = {column.name: j for j, column in enumerate(self.structure.columns)}
            self._made["moved"] = [place[self.im.features[j].name] for j in reacher(self.im).moved]
        made: list[int] = self._made["moved"]
        return made

    def _prove(self, source: TableSource, row: int, start: FloatArray, ask: Ask, before: Any, miss: bool) -> Proof:
        assert self.structure is not None
        assert self.reading is not None
        try:
            goal = goal_of(self.structure.answer, self.reading, self.target, before, miss=miss)
        except UnreadableError:
            return Proof("unresolved", reason="target")
        question, open_ = Question(self, source, row, ask, before, miss=miss), Proof("unresolved", reason="answers are missing")
        try:
            proof = self.prover.prove(start, goal, question)
        except UnansweredError:
            return open_
        return open_ if question.lost and proof.status != "possible" else proof

    def _share(self, start: FloatArray, goal: Goal, question: Question) -> tuple[Share | None, bool]:
        """Return the share of points that attain a goal, and whether it is not known because answers are missing."""
        assert self.structure is not None
        try:
            share = exact_share(self.structure, self.im, start, goal, question)
        except UnansweredError:
            return None, True
        return None if question.lost else share, question.lost


def settlers_of(predictors: Mapping[str, Predictor], source: Source, im: Any, design: Design) -> tuple[dict[str, Settler], tuple[Problem, ...]]:
    """Return what proves about each model, and a note for each model whose structure cannot be read."""
    if not isinstance(source, TableSource):
        return {}, (Problem("prove", "inputs that are no table can be drawn, and nothing can be proved about them", severity="warning"),)
    columns = columns_of(source.frame, im.features, [effect.feature for effect in im.effects])
    found, notes = {}, []
    for name, predictor in predictors.items():
        found[name] = Settler(im, design.target, seconds=design.prove_seconds)
        try:
            if not isinstance(predictor, Adapted):
                raise UnreadableError("what it is made of is not at hand")
            structure = read(predictor, source.frame, columns)
            found[name] = Settler(im, design.target, predictor.reading, structure, design.prove_seconds)
        except UnreadableError as error:
            what = f"its structure cannot be read ({error}): people whose points were not all listed and who have no hit stay open"
            notes.append(Problem(name, what, severity="warning"))
    return found, tuple(notes)
