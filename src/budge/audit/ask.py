"""Where a model under audit is asked: what comes back is checked every time against what the model is known to answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.sources import Chunk, stack
from budge.errors import BudgeError, IncompleteError, InputError, ModelError, Problem
from budge.models import Predictor, Resolved, as_predictor, check_contract
from budge.models.contained import contained, reason
from budge.models.contract import differ
from budge.models.predictor import MAX_CALLS
from budge.models.reading import UnfitError, as_array, kind_of, list_classes, same_label, show_label
from budge.models.resolve import resolve
from budge.targets import Labels, Target
from budge.targets.outputs import kinds_of

if TYPE_CHECKING:
    from budge.audit.design import Design
    from budge.audit.result import Audit
    from budge.stats.counts import Counts

__all__ = [
    "Answers", "Asker", "DriftError", "Few", "RawPredictor", "answers_digest", "answers_of", "ask_again", "ask_starts", "asking", "points_at", "points_of",
    "predictors_of", "turned", "wavering",
]  # fmt: skip

BoolArray = npt.NDArray[np.bool_]
TEXTS, NUMBERS = 64, 512  # rows of a table that are compared before and after a question: those of its texts, of its numbers
AGAIN = 1000  # starts that are asked again at the end
SIZES = (1, 2, 3, 4, 5, 8, 10, 16, 33)  # rows of tables in which a point is asked about whose answer may hang on the size of a table
MOST_WAVERING = 10  # points that are asked about so; more are taken for drift
FEW = 8  # points of a block that are asked about again at its end


class DriftError(ModelError):
    """A model answers otherwise now than it did: which of its answers are in a journal is not known."""


@dataclass(frozen=True)
class RawPredictor:
    """Calls ``model.predict(batch)`` or ``model(batch)`` and expects one output per input."""

    model: Any
    name: str
    classes: tuple[Any, ...] | None = None
    columns: tuple[str, ...] | None = None
    bounds: tuple[float, float] | None = None

    @classmethod
    def of(cls, model: Any) -> RawPredictor:
        """Return the predictor of a function or of anything with predict."""
        if not callable(getattr(model, "predict", None)) and not callable(model):
            raise ModelError("has no predict and cannot be called", where="model", got=type(model).__name__)
        known = getattr(model, "classes_", None)
        classes = None if known is None else tuple(np.asarray(known).tolist())
        return cls(model, getattr(model, "__name__", type(model).__name__), classes)

    @property
    def output(self) -> Any:
        """Not known: the target reads what comes."""
        return "label"

    def predict(self, frame: Any) -> Any:
        """Return one output per input; an input that has none is an error."""
        try:
            outputs, missing = self._read(frame)
            if missing is not None:
                what = f"{int(missing.sum())} of {len(frame)} outputs are None or NaN, the first at input {int(np.flatnonzero(missing)[0])}"
                raise ModelError(what, where=self.name, remedy="leave out the inputs that have no answer as they are")
            return outputs
        except (ModelError, MemoryError):
            raise
        except Exception as error:
            raise ModelError(f"predicting raised {reason(error)}", where=self.name) from error

    def predict_resolved(self, frame: Any, *, max_calls: int = MAX_CALLS) -> Resolved:
        """Return outputs; those of inputs on which the model raises, masked ones, None and NaN are unresolved."""
        return resolve(self._read, frame, batch_rows=max(1, len(frame)), max_calls=max_calls, label=True)

    def _read(self, frame: Any) -> tuple[npt.NDArray[Any], BoolArray | None]:
        with contained(self.name):
            ask = self.model.predict if callable(getattr(self.model, "predict", None)) else self.model
            outputs = as_array(ask(frame), len(frame) + 1)
            if outputs.shape != (len(frame),):
                raise UnfitError(f"one output per input is expected, {len(frame)} in all", where=self.name, got=f"shape {outputs.shape}")
            missing = np.asarray(pd.isna(outputs))
            return outputs.copy(), missing if missing.any() else None

    def digest(self) -> str | None:
        """Not known."""
        return None

    def describe(self) -> str:
        """Return one English sentence."""
        return f"{self.name} predicts one output per input."


@contextmanager
def asking(name: str, *, whole: bool = False) -> Iterator[None]:
    """Run code of a model: whatever it raises becomes a `ModelError`; MemoryError passes, unless `whole` (a smaller block would not help)."""
    try:
        with contained(name):
            yield
    except Exception as error:
        if isinstance(error, BudgeError) or (isinstance(error, MemoryError) and not whole):
            raise
        raise ModelError(f"predicting raised {reason(error)}", where=name) from error


def _whole(name: str, outputs: Any, n: int) -> npt.NDArray[Any]:
    """Return a copy of the outputs about all rows: what a model returned may be its own memory, or the caller's."""
    found = np.array(outputs)
    if found.shape != (n,):
        raise ModelError(f"one output per row is expected, {n} in all", where=name, got=f"shape {found.shape}")
    return found


@dataclass(frozen=True)
class Answers:
    """The answers about some points: outputs, which points have one, which attain the target, and why others have none."""

    outputs: npt.NDArray[Any]
    good: BoolArray
    hit: BoolArray
    causes: tuple[str, ...] = ()
    failures: int = 0  # calls that failed
    down: bool = False  # the model failed on everything, so that points were left out without a call

    @classmethod
    def none(cls, n: int) -> Answers:
        """Return no answer about any of `n` points."""
        return cls(np.full(n, None, dtype=object), np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), down=True)


@dataclass(frozen=True)
class Asker:
    """A model, the target, and what the model answered about the rows as they are."""

    name: str
    predictor: Predictor
    target: Target
    kinds: frozenset[str]  # of the answers about the starts: number, str, bool
    whole: bool  # no answer about the starts was a fraction
    shared: bool = False  # other models are asked about the same tables: every cell is compared before and after, not some rows

    @classmethod
    def of(cls, name: str, predictor: Predictor, target: Target, before: npt.NDArray[Any], *, shared: bool = False) -> Asker:
        """Return the asker of a model whose answers about the starts are known."""
        whole = before.dtype.kind != "f" or bool((before == np.floor(before)).all())
        if isinstance(predictor, RawPredictor):  # labels or scores: a score may be whole at each start
            whole = isinstance(target, Labels) and before.dtype.kind != "f"
        return cls(name, predictor, target, frozenset(kinds_of(before)), whole, shared)

    def with_kinds(self, other: Asker) -> Asker:
        """Return the asker that expects what either has seen: these are some people of a larger audit."""
        return replace(self, kinds=self.kinds | other.kinds, whole=self.whole and other.whole)

    def fresh(self) -> Asker:
        """Return the asker that takes no answer from a cache: what is asked again shows whether the model still answers as it did."""
        return replace(self, predictor=_fresh(self.predictor))

    def __call__(self, rows: Any, before: npt.NDArray[Any]) -> Answers:
        """Ask about points; `before` is the answer about the start of each."""
        print_before = _fingerprint(rows, self.shared)
        with asking(self.name):
            found = self.predictor.predict_resolved(rows)
            raw, resolved = found
            outputs, good = np.asarray(raw), np.asarray(resolved, dtype=bool)
        if _fingerprint(rows, self.shared) != print_before:
            raise self._error("predicting changes the table that it is given", remedy="copy the table inside the model")
        if outputs.shape != (len(rows),) or good.shape != (len(rows),):
            raise self._error(f"one output per row is expected, {len(rows)} in all", got=f"shape {outputs.shape}")
        if good.any():
            self._check(outputs if good.all() else outputs[good])
        hit = self.hits(outputs, good, before)
        return Answers(outputs, good, hit, tuple(getattr(found, "errors", ())), getattr(found, "failures", 0), getattr(found, "down", False))

    def hits(self, outputs: npt.NDArray[Any], good: BoolArray, before: npt.NDArray[Any]) -> BoolArray:
        """Return which points attain the target; those without an answer do not."""
        hit = np.zeros(len(outputs), dtype=bool)
        if good.any():
            answered = outputs if good.all() else outputs[good]
            if answered.dtype == object and len(kinds_of(answered)) == 1:
                answered = np.array(answered.tolist())
            hit[good] = np.asarray(self.target.hits(answered, before if good.all() else before[good]), dtype=bool)
        return hit

    def _check(self, outputs: npt.NDArray[Any]) -> None:
        """Raise an error where answers are not of the kind that the model gave about the starts."""
        if not kinds_of(outputs) <= self.kinds:
            kinds = ", ".join(sorted(self.kinds))
            raise self._error(f"the answers about points are of another kind than those about people as they are ({kinds})", got=outputs[:3].tolist())
        known = None if isinstance(self.predictor, RawPredictor) else self.predictor.classes
        if self.predictor.output == "score":
            bounds = self.predictor.bounds
            if bounds and (outputs.min() < bounds[0] - 1e-6 or outputs.max() > bounds[1] + 1e-6):
                raise self._error(f"scores leave {bounds}", got=(float(outputs.min()), float(outputs.max())), remedy="use output='score'")
            return
        if self.whole and outputs.dtype.kind in "fO" and not any(_fraction(c) for c in known or ()):
            shares = [v for v in pd.unique(outputs).tolist() if _fraction(v)]
            if shares:
                raise self._error("shares where labels are expected", got=shares[:3], remedy="give a threshold")
        if known is not None:
            strange = [v for v in pd.unique(outputs).tolist() if not any(same_label(v, c) for c in known)]
            if strange:
                raise self._error(f"the model answers {show_label(strange[0])}, which is none of its classes", remedy=f"its classes are {list_classes(known)}")

    def _error(self, what: str, **more: Any) -> ModelError:
        return ModelError(what, where=self.name, **more)


@dataclass(frozen=True)
class Few:
    """A few points that a model was asked about: asked about again later, they show whether it still answers as it did."""

    points: Any
    before: npt.NDArray[Any]
    first: Answers

    @classmethod
    def of(cls, rows: Any, before: npt.NDArray[Any], found: Answers) -> Few:
        """Return some of the points of a question, copied: the memory of a question is used again."""
        at = np.unique(np.linspace(0, len(before) - 1, FEW).astype(np.intp))
        points = rows.iloc[at].reset_index(drop=True) if hasattr(rows, "iloc") else rows[at] if isinstance(rows, np.ndarray) else [rows[i] for i in at.tolist()]
        return cls(points, before[at], Answers(found.outputs[at], found.good[at], found.hit[at]))

    @classmethod
    def join(cls, several: Sequence[Few]) -> Few:
        """Return the points of several questions, all of them tables with the same columns."""
        if len(several) == 1:
            return several[0]
        first = [few.first for few in several]
        points = pd.concat([few.points for few in several], ignore_index=True)
        good, hit = np.concatenate([found.good for found in first]), np.concatenate([found.hit for found in first])
        return cls(points, np.concatenate([few.before for few in several]), Answers(np.full(len(good), None, dtype=object), good, hit))

    def drift(self, ask: Asker) -> tuple[Problem, ...]:
        """Ask again, and return a problem where answers are others."""
        now = ask.fresh()(self.points, self.before)
        others = np.flatnonzero(self.first.good & now.good & (self.first.hit != now.hit))
        if 0 < len(others) <= MOST_WAVERING and isinstance(self.points, pd.DataFrame):
            others = others[~wavering(ask, self.points.iloc[others], self.before[others])]
        return turned(ask.name, len(others), len(self.before))


def turned(name: str, other: int, points: int) -> tuple[Problem, ...]:
    """Return a problem where so many of some points got another answer when they were asked about again."""
    what = f"the model answers otherwise than at the start: {other} of {points} points got another answer when they were asked about again"
    return (Problem(name, what, remedy="fix its seed and its version; check='warn' keeps the result with a note"),) if other else ()


def wavering(ask: Asker, points: pd.DataFrame, before: npt.NDArray[Any]) -> BoolArray:
    """Return which points attain the target in tables of some sizes and miss it in others, each size the same each time.

    This is rounding at the cut of a model that sums in another order for other sizes, and no drift.
    """
    found = np.zeros(len(points), dtype=bool)
    rows = np.repeat(0, sum(SIZES))
    for k in range(len(points)):
        one, own = points.iloc[[k]], before[[k]]
        seen = [np.concatenate([ask.fresh()(one.iloc[rows[:n]].reset_index(drop=True), own[rows[:n]]).hit for n in SIZES]) for _ in range(2)]
        found[k] = np.array_equal(seen[0], seen[1]) and seen[0].any() and not seen[0].all()
    return found


def _fresh(predictor: Predictor) -> Predictor:
    fresh = getattr(predictor, "fresh", None)
    return predictor if fresh is None else fresh()


def _fraction(label: object) -> bool:
    return isinstance(label, float) and not label.is_integer() and np.isfinite(label)


def _fingerprint(rows: Any, every: bool) -> Any:
    """Return something that differs where a table was changed: `every` row of it or some, numbers by their bits and other cells as texts."""
    if isinstance(rows, np.ndarray):
        few = rows if every else rows[:: max(1, len(rows) // (NUMBERS if rows.dtype.kind in "biuf" else TEXTS))]
        return rows.shape, few.tobytes() if rows.dtype.kind in "biuf" else few.tolist()
    if not isinstance(rows, pd.DataFrame):
        return None
    kinds = list(rows.dtypes)
    plain = [isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds]
    numbers, texts = (rows if every else rows.iloc[:: max(1, len(rows) // most)] for most in (NUMBERS, TEXTS))
    cells: list[Any]
    if all(plain) and len(set(kinds)) == 1:  # of several types, a joint array may hold objects, whose bytes are addresses
        cells = [numbers.to_numpy().tobytes()]
    else:
        cells = [
            numbers.iloc[:, j].to_numpy().tobytes() if own else tuple(map(str, texts.iloc[:, j].to_numpy(dtype=object))) for j, own in enumerate(plain)
        ]
    return tuple(rows.columns), len(rows), kinds, cells


def predictors_of(model: Any, *, table: bool) -> dict[str, Predictor]:
    """Return one model, or several by name, each as a predictor; `table`: the inputs are rows of a table."""
    named = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not named:
        raise ModelError("no model is given", where="model", got={})
    return {str(name): m if isinstance(m, Predictor) else as_predictor(m) if table else RawPredictor.of(m) for name, m in named.items()}


def ask_starts(
    predictors: Mapping[str, Predictor], starts: Any, target: Target, *, seed: int, table: bool, check: bool, whole: bool = True
) -> tuple[dict[str, npt.NDArray[Any]], tuple[Problem, ...]]:
    """Return what every model answers about the rows as they are, and what was noted; problems of all models are raised together.

    `whole`: these are all rows, not a part that is set aside where there is no memory for it.
    """
    found: list[Problem] = []
    before: dict[str, npt.NDArray[Any]] = {}
    for name, predictor in predictors.items():
        try:
            with asking(name, whole=whole):
                problems = list(target.check(predictor)) if table else []
                if check and table:
                    problems += check_contract(predictor, starts, seed=seed)
                prefix = f"{name}: " if len(predictors) > 1 else ""
                found += [Problem(f"{prefix}{p.where}", p.what, p.got, p.remedy, p.severity) for p in problems]
                if not any(p.severity == "error" for p in problems):
                    own = starts.copy() if isinstance(starts, pd.DataFrame | np.ndarray) else starts  # a model may change what it is given
                    before[name] = _whole(name, predictor.predict(own), len(starts))
        except ModelError as error:
            found += error.problems
    ModelError.raise_if(found)
    return before, tuple(p for p in found if p.severity == "warning")


def ask_again(predictors: Mapping[str, Predictor], starts: Any, before: Mapping[str, npt.NDArray[Any]]) -> tuple[list[Problem], list[Problem]]:
    """Ask about the starts once more, after everything else: a model that has drifted, is random, or depends on what it was asked is found.

    Returns a problem for each model that answers otherwise, and one for each that does not answer.
    """
    n = len(starts)
    some = np.unique(np.linspace(0, n - 1, min(AGAIN, n)).astype(np.intp)) if n else np.zeros(0, np.intp)
    rows: Any = starts.iloc[some] if hasattr(starts, "iloc") else starts[some] if isinstance(starts, np.ndarray) else [starts[i] for i in some.tolist()]
    others, silent = [], []
    for name, predictor in predictors.items():
        if not n:
            continue
        try:
            with asking(name, whole=True):
                now = _whole(name, _fresh(predictor).predict(rows), len(rows))
        except (ModelError, IncompleteError) as error:
            what = f"the model does not answer about people as they are any more: {error}"
            silent.append(Problem(name, what, remedy="mend the model; with a journal, the same call asks again"))
            continue
        other = int(np.asarray(differ(before[name][some], now)).sum())
        if other:
            what = f"the model answers otherwise than at the start: {other:,} of {len(some):,} people as they are got another answer at the end"
            others.append(Problem(name, what, remedy="fix its seed and its version; check='warn' keeps the result with a note"))
    return others, silent


def answers_digest(outputs: npt.NDArray[Any]) -> str | None:
    """Return a digest of labels about the starts, part of a run's identity, so that a journal never mixes two models.

    None for fractions: their last bits depend on the process and the size of a batch, so a journal keeps them, and `differ` compares them.
    """
    if outputs.dtype.kind == "f":
        return None
    codes, labels = pd.factorize(outputs)
    return blake2b(codes.tobytes() + repr([(kind_of(v), str(v)) for v in labels]).encode(), digest_size=8).hexdigest()


def points_of(audit: Audit, label: Any, model: str | None = None, *, most: int | None = None) -> Chunk:
    """Return the points of a person that the counts rest on: all where they were listed, else the draws that were used (the first `most`).

    Where points were counted from the model's structure and none was drawn, these are as many draws as the design plans.
    """
    name = audit._named(model)
    rows, at = audit.rows[name], audit._at(label, name)
    source, n = audit._context().source, points_at(rows.counts, at, audit.design)
    if not n:
        raise InputError("there are no reachable points", where="label", got=f"{label}: status {rows.counts.words('status')[at]}")
    place = int(rows.place[at])
    if rows.counts.is_law("exact")[at]:
        return next(iter(source.exact([place])))
    return _joined(list(source.draws([place], n if most is None else min(n, most), audit.design)))


def points_at(counts: Counts, at: int, design: Design) -> int:
    """Return how many points `points_of` gives: those that count, or the planned draws where a proof has counted without any."""
    return design.draws if counts.words("proof")[at] == "counted" else int(counts.n[at])


def _joined(chunks: list[Chunk]) -> Chunk:
    if len(chunks) == 1:
        return chunks[0]
    moved = None if chunks[0].moved is None else np.concatenate([c.moved for c in chunks if c.moved is not None], axis=1)
    weights = None if chunks[0].weights is None else np.concatenate([c.weights for c in chunks if c.weights is not None])
    return Chunk(chunks[0].people, np.array([sum(int(c.counts[0]) for c in chunks)]), stack([c.rows for c in chunks]), moved, weights, chunks[0].tops)


def answers_of(audit: Audit, label: Any, model: str | None, chunk: Chunk) -> Answers:
    """Return what the model answers about these points of a person."""
    name = audit._named(model)
    rows, at = audit.rows[name], audit._at(label, name)
    ask = Asker.of(name, audit._context().predictors[name], audit.design.target, rows.prediction)
    return ask(chunk.rows, np.repeat(rows.prediction[[at]], int(chunk.counts.sum())))
