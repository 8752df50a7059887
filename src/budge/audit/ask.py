"""Where a model under audit is asked: what comes back is checked every time against what the model is known to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.sources import Chunk, stack
from budge.errors import InputError, ModelError, Problem
from budge.models import Predictor, Resolved, as_predictor, check_contract
from budge.models.contract import differ
from budge.models.reading import kind_of, list_classes, same_label, show_label
from budge.targets import Target

if TYPE_CHECKING:
    from budge.audit.design import Design
    from budge.audit.result import Audit
    from budge.stats.counts import Counts

__all__ = ["Answers", "Asker", "RawPredictor", "answers_digest", "answers_of", "ask_again", "ask_starts", "points_at", "points_of", "predictors_of"]

BoolArray = npt.NDArray[np.bool_]
TEXTS, NUMBERS = 64, 512  # rows of a table that are compared before and after a question: those of its texts, of its numbers
AGAIN = 1000  # starts that are asked again at the end


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
        """Return one output per input."""
        ask = self.model.predict if callable(getattr(self.model, "predict", None)) else self.model
        answer = ask(frame)
        if isinstance(answer, np.ma.MaskedArray):
            answer = np.ma.asarray(answer.astype(object)).filled(None)
        outputs = np.asarray(answer)
        if outputs.shape != (len(frame),):
            raise ModelError(
                f"one output per input is expected, {len(frame)} in all", where=self.name, got=f"shape {outputs.shape}"
            )
        return outputs

    def predict_resolved(self, frame: Any, *, max_calls: int = 1000) -> Resolved:
        """Return outputs; masked ones, None and NaN are unresolved."""
        outputs = self.predict(frame)
        if outputs.dtype.kind == "f":
            good = ~np.isnan(outputs)
        elif outputs.dtype == object:
            good = np.array([o is not None and o == o for o in outputs], dtype=bool)
        else:
            good = np.ones(len(outputs), dtype=bool)
        return Resolved(outputs, good, ())

    def digest(self) -> str | None:
        """Not known."""
        return None

    def describe(self) -> str:
        """Return one English sentence."""
        return f"{self.name} predicts one output per input."


@dataclass(frozen=True)
class Answers:
    """The answers about some points: outputs, which points have one, which attain the target, and why others have none."""

    outputs: npt.NDArray[Any]
    good: BoolArray
    hit: BoolArray
    causes: tuple[str, ...] = ()


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
        return cls(name, predictor, target, _kinds(before), before.dtype.kind != "f" or bool((before == np.floor(before)).all()), shared)

    def with_kinds(self, other: Asker) -> Asker:
        """Return the asker that expects what either has seen: these are some people of a larger audit."""
        return replace(self, kinds=self.kinds | other.kinds, whole=False)  # somebody else may have been answered by a fraction

    def __call__(self, rows: Any, before: npt.NDArray[Any]) -> Answers:
        """Ask about points; `before` is the answer about the start of each."""
        print_before = _fingerprint(rows, self.shared)
        found = self.predictor.predict_resolved(rows)
        if _fingerprint(rows, self.shared) != print_before:
            raise self._error("predicting changes the table that it is given", remedy="copy the table inside the model")
        raw, resolved = found
        outputs, good = np.asarray(raw), np.asarray(resolved, dtype=bool)
        if outputs.shape != (len(rows),) or good.shape != (len(rows),):
            raise self._error(f"one output per row is expected, {len(rows)} in all", got=f"shape {outputs.shape}")
        hit = np.zeros(len(rows), dtype=bool)
        if good.any():
            answered = outputs if good.all() else outputs[good]
            if answered.dtype == object:  # what is left is of one kind again
                answered = np.array(answered.tolist())
            self._check(answered)
            hit[good] = np.asarray(self.target.hits(answered, before if good.all() else before[good]), dtype=bool)
        return Answers(outputs, good, hit, tuple(getattr(found, "errors", ())))

    def _check(self, outputs: npt.NDArray[Any]) -> None:
        """Raise an error where answers are not of the kind that the model gave about the starts."""
        if isinstance(self.predictor, RawPredictor):
            return
        if not _kinds(outputs) <= self.kinds:
            kinds = ", ".join(sorted(self.kinds))
            raise self._error(f"the answers about points are of another kind than those about people as they are ({kinds})", got=outputs[:3].tolist())
        if self.predictor.output == "score":
            bounds = self.predictor.bounds
            if bounds and (outputs.min() < bounds[0] - 1e-6 or outputs.max() > bounds[1] + 1e-6):
                raise self._error(f"scores leave {bounds}", got=(float(outputs.min()), float(outputs.max())), remedy="use output='score'")
            return
        if self.whole and outputs.dtype.kind == "f" and bool((outputs != np.floor(outputs)).any()):
            raise self._error("shares where labels are expected", got=outputs[outputs != np.floor(outputs)][:3].tolist(), remedy="give a threshold")
        known = self.predictor.classes
        if known is not None:
            strange = [v for v in pd.unique(outputs).tolist() if not any(same_label(v, c) for c in known)]
            if strange:
                raise self._error(f"the model answers {show_label(strange[0])}, which is none of its classes", remedy=f"its classes are {list_classes(known)}")

    def _error(self, what: str, **more: Any) -> ModelError:
        return ModelError(what, where=self.name, **more)


def _kinds(outputs: npt.NDArray[Any]) -> frozenset[str]:
    if outputs.dtype.kind in "biufUS":
        return frozenset({"bool" if outputs.dtype.kind == "b" else "number" if outputs.dtype.kind in "iuf" else "str"})
    return frozenset(kind_of(v) for v in pd.unique(outputs).tolist()[:1000])


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
    predictors: Mapping[str, Predictor], starts: Any, target: Target, *, seed: int, table: bool, check: bool
) -> tuple[dict[str, npt.NDArray[Any]], tuple[Problem, ...]]:
    """Return what every model answers about the rows as they are, and what was noted; problems of all models are raised together."""
    found: list[Problem] = []
    before: dict[str, npt.NDArray[Any]] = {}
    for name, predictor in predictors.items():
        try:
            problems = list(target.check(predictor)) if table else []
            if check and table:
                problems += check_contract(predictor, starts, seed=seed)
            prefix = f"{name}: " if len(predictors) > 1 else ""
            found += [Problem(f"{prefix}{p.where}", p.what, p.got, p.remedy, p.severity) for p in problems]
            if not any(p.severity == "error" for p in problems):
                before[name] = np.asarray(predictor.predict(starts))
        except ModelError as error:
            found += error.problems
    ModelError.raise_if(found)
    return before, tuple(p for p in found if p.severity == "warning")


def ask_again(predictors: Mapping[str, Predictor], starts: Any, before: Mapping[str, npt.NDArray[Any]]) -> list[Problem]:
    """Ask about the starts once more, after everything else: a model that has drifted, is random, or depends on what it was asked is found."""
    n = len(starts)
    some = np.unique(np.linspace(0, n - 1, min(AGAIN, n)).astype(np.intp)) if n else np.zeros(0, np.intp)
    rows: Any = starts.iloc[some] if hasattr(starts, "iloc") else starts[some] if isinstance(starts, np.ndarray) else [starts[i] for i in some.tolist()]
    problems = []
    for name, predictor in predictors.items():
        if not n:
            continue
        fresh = getattr(predictor, "fresh", None)
        try:
            now = np.asarray((predictor if fresh is None else fresh()).predict(rows))
        except ModelError as error:
            problems.append(Problem(name, f"the model does not answer about people as they are any more: {error}"))
            continue
        other = int(np.asarray(differ(before[name][some], now)).sum())
        if other:
            what = f"the model answers otherwise than at the start: {other:,} of {len(some):,} people as they are got another answer at the end"
            problems.append(Problem(name, what, remedy="fix its seed and its version; check='warn' keeps the result with a note"))
    return problems


def answers_digest(outputs: npt.NDArray[Any]) -> str:
    """Return a digest of answers about the starts: part of a run's identity, so that a journal never mixes two models."""
    if outputs.dtype.kind == "f":
        return blake2b(outputs.astype(np.float32).tobytes(), digest_size=8).hexdigest()
    codes, labels = pd.factorize(outputs)
    return blake2b(codes.tobytes() + repr([str(v) for v in labels]).encode(), digest_size=8).hexdigest()


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
