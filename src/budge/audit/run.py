"""The steps of an audit: people and models are read and checked, blocks are counted, counts are gathered."""

from __future__ import annotations

import logging
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import budge
from budge.audit.ask import Asker, DriftError, answers_digest, ask_again, ask_starts, predictors_of
from budge.audit.conditions import where_true
from budge.audit.counting import Block, Counted, Remembered, Work
from budge.audit.design import Design, Execution, population_name
from budge.audit.engines import run_blocks
from budge.audit.failing import Streak, accepted, answered, aside, check_answered, set_aside, unanswered, with_result
from budge.audit.result import Audit
from budge.audit.resuming import (
    answers_still,
    doubt,
    doubting,
    latest,
    missed,
    record_of,
    recounted,
    resumed,
    shuffled,
    unsettled,
)
from budge.audit.rows import Context, Rows
from budge.audit.sources import BoolArray, IntArray, Source, TableSource, choose, make_source
from budge.errors import DesignError, IncompleteError, InputError, ModelError, Problem, nearest
from budge.interaction import InteractionModel
from budge.journal import Journal
from budge.models import Predictor
from budge.models.contained import kept_seeds
from budge.models.digests import packages_of
from budge.people import is_stream
from budge.progress import watched
from budge.stats.counts import PROOFS, Counts
from budge.wording import Wording, check_names

__all__ = [
    "Blocks", "Prepared", "chosen_people", "drafted", "drifted", "finished", "info_of", "labelled", "nobody_left", "prepare", "result_of",
    "rows_of", "run_audit", "warn", "warn_of",
]  # fmt: skip

SIZED = 16  # people whose sizes tell how many fit into a block
MOST_PEOPLE = 32_768  # of a block
MOST_PROVED = 64  # the same where something is proved about each
LARGER = 4  # questions per block, where a block need not be kept or sent: people are prepared, and witnesses asked about, together
IDENTITY = ("version", "streams", "design", "spec_digest", "data_digest", "model_digests", "addresses", "answers_digests", "population")
Arrays = Mapping[str, npt.NDArray[Any]]


class Prepared:
    """An audit that is ready to be counted, block by block."""

    def __init__(
        self, source: Source, predictors: Mapping[str, Predictor], design: Design, X: Any, im: Any, before: Arrays, notes: tuple[Problem, ...],
        like: Mapping[str, Asker] | None = None,
    ):  # fmt: skip
        self.source, self.predictors, self.X, self.im, self.before, self.notes = source, dict(predictors), X, im, before, notes
        self.asked = {name: chosen_people(design, source, before[name]) for name in predictors}
        if design.rule is not None and like is None:
            design = design.but(family=max(1, *(int(mask.sum()) for mask in self.asked.values())))
        self.design = design
        askers = {name: Asker.of(name, p, design.target, before[name], shared=len(predictors) > 1) for name, p in predictors.items()}
        self.askers = askers if like is None else {name: own.with_kinds(like[name]) for name, own in askers.items()}
        self.settlers: dict[str, Any] = {}
        if design.prove:
            from budge.audit.proving import settlers_of

            self.settlers, more = settlers_of(predictors, source, im, design)
            if not self.settlers:  # results state no more than was tried
                self.design = design.but(prove=False)
            self.notes = (*notes, *more)
        self.todo: IntArray = np.flatnonzero(np.any(list(self.asked.values()), axis=0))

    @property
    def work(self) -> Work:
        """What is done with each block."""
        return Work(self.askers, self.design, self.settlers)

    def block(self, people: Any, told: Callable[[int], None] | None = None) -> Block:
        """Return the block of some people, by position."""
        some = np.asarray(people, dtype=np.intp)
        before = {name: values[some] for name, values in self.before.items()}
        return Block(some, self.source.take(some), before, {name: mask[some] for name, mask in self.asked.items()}, told)

    def answered(self, before: Arrays) -> Prepared:
        """Return the same audit with other answers about the people as they are."""
        same = prepare(self.predictors, self.X, self.im, self.design, before=before)
        same.notes = self.notes
        return same

    def rows_each(self) -> float:
        """Return about how many points a person has, from a few of them."""
        if len(self.todo) > 1 and isinstance(self.source, TableSource) and self.design.proposal is None:  # what cannot be drawn is refused at the first person
            first = self.source.take(self.todo[:1])
            for _ in first.draws(np.flatnonzero(choose(first, self.design)[1]), 1, self.design):
                break
        if len(self.todo) < 2 or self.design.method == "sample":
            return float(self.design.draws)
        some = self.source.take(self.todo[np.unique(np.linspace(0, len(self.todo) - 1, SIZED).astype(np.intp))])
        listed, drawn, _ = choose(some, self.design)
        return float(np.mean(np.where(listed, some.size, np.where(drawn, self.design.draws, 1.0))))

    def check_draws(self) -> None:
        """Raise an error where somebody has to be drawn and the number of draws cannot show the claim."""
        try:
            if self.design.proposal is None:
                self.design.check_draws()
        except DesignError:
            if choose(self.source.take(self.todo), self.design)[1].any():
                raise


def prepare(
    model: Any, X: Any, im: Any, design: Design, *, check: bool = True, before: Arrays | None = None, like: Mapping[str, Asker] | None = None
) -> Prepared:
    """Read people and models, ask about the people as they are (unless `before` is given), and check the design against them.

    `like` tells what other people of the same audit were answered, where these are a part of them.
    """
    source = make_source(im, X, design.on_invalid)
    table = isinstance(source, TableSource)
    predictors = predictors_of(model, table=table)
    design = design.aimed(next((p.classes for p in predictors.values() if p.classes is not None and p.output == "label"), None))
    for column, _ in design.groups:
        known = source.frame.columns if isinstance(source, TableSource) else ()
        if column not in known:
            raise InputError("no such column", where="groups", got=column, remedy=nearest(column, map(str, known)))
    if design.proposal is not None and not table:
        raise DesignError("a proposal needs an interaction model over a table", where="proposal", got=type(im).__name__)
    notes: tuple[Problem, ...] = ()
    if before is None:
        before, notes = ask_starts(predictors, source.starts(), design.target, seed=design.seed, table=table, check=check, whole=like is None)
    made = Prepared(source, predictors, design, X, im, before, notes, like)
    made.check_draws()
    return made


@kept_seeds()
def run_audit(model: Any, X: Any, im: Any, design: Design, execution: Execution, memory: dict[str, Remembered] | None = None) -> Audit:
    """Return the result of the design for these people and models.

    `memory` takes answers from an audit of another target of the same people to the next: a stream of people, and workers, do without it.
    """
    if is_stream(X):
        from budge.audit.streaming import run_stream

        return run_stream(model, X, im, design, execution)
    if execution.check:  # the page, which does not check, takes rules away that may have a label
        known = X.columns if isinstance(X, pd.DataFrame) and any(labels for _, labels in design.groups) else X  # the design's labels take the place of values
        check_names(Wording.of(execution.wording), im, known if isinstance(X, pd.DataFrame) else None)
    with watched(execution.progress, "people") as noted:
        return _run_audit(model, X, im, design, replace(execution, progress=noted), memory)


def _run_audit(model: Any, X: Any, im: Any, design: Design, execution: Execution, memory: dict[str, Remembered] | None) -> Audit:
    made = prepare(model, X, im, design, check=bool(execution.check))
    nobody = (note for name, mask in made.asked.items() for note in nobody_left(made.design, int(mask.sum()), len(mask), name))
    made.notes = (*drafted(im), *made.notes, *nobody)
    info, log = info_of(made, execution), None
    if execution.journal is not None:  # how many people there are to test follows from the answers about them, which the journal compares
        known = {**info, "design": made.design.but(family=1).to_dict()}
        log = Journal.open(Path(execution.journal), {key: known[key] for key in IDENTITY}, overwrite=execution.overwrite)
    try:
        seen = list[Counted]()
        if log is not None:
            made, seen = resumed(log, made, info, execution.check)
            info = info_of(made, execution)
        with doubting(log):
            result = _counted(made, info, seen, log, execution, memory)
        if execution.finish is not None:
            result = execution.finish(result)
        if log is not None and not log.complete:
            log.finish()
    finally:
        if log is not None:
            log.close()
    return result


def _counted(
    made: Prepared, info: Mapping[str, Any], seen: list[Counted], log: Journal | None, execution: Execution, memory: dict[str, Remembered] | None
) -> Audit:
    """Return the result after asking about all people of whom `seen`, which grows, does not hold all answers."""
    again = unsettled(seen) if log is not None and not log.complete else np.zeros(0, np.intp)
    ready = np.isin(made.todo, _people(seen)) & ~np.isin(made.todo, again)
    attempt, told_of = 1 if log is None else log.attempt, int(ready.sum())
    progress = execution.progress
    assert callable(progress)
    progress(told_of, len(made.todo))

    def told(people: int) -> None:
        nonlocal told_of
        told_of += people
        progress(told_of, len(made.todo))

    left = made.todo[~ready & ~np.isin(made.todo, again)]
    left = shuffled(left, attempt) if len(again) else left
    own = {}
    if memory is not None and execution.n_jobs == 1 and execution.engine in (None, "serial"):
        own = {name: memory.setdefault(name, Remembered(made.before[name])) for name in made.predictors}
    work, several, streak = replace(made.work, check=bool(execution.check), memory=own), False, Streak(made.design)
    for second in (False, True):  # people whom a model that was down for a while, or an earlier attempt, left without an answer have a second turn
        blocks, before, streak = Blocks(made, left, execution, told), len(seen), Streak(made.design) if streak.ended else streak
        several = several or len(blocks) > 1
        try:
            for _, found in run_blocks(work, blocks, n_jobs=execution.n_jobs, engine=execution.engine):
                seen.append(found)
                if execution.check != "warn":
                    DriftError.raise_if(found.drift)
                if log is not None:
                    log.write({f"{attempt:06d}:{int(found.people[0]):012d}": record_of(found)})
                doubt(log, found.drift)
                ready |= np.isin(made.todo, found.people)
                told(int(ready.sum()) - told_of)
                streak.add(found)
        except IncompleteError as error:
            gone = made.todo[~np.isin(made.todo, _people(seen))]
            enough = not len(gone) and streak.ended and (not second or answers_still(made, latest(seen, len(made.source))))
            if not enough:  # else all people were asked about, and the design tells whether those who have no answer are too many
                raise set_aside(error, made.source.labels[gone].tolist(), len(gone), len(made.todo), result_of(made, info, seen)) from error
        except ModelError as error:
            with_result(error, result_of(made, info, seen))
            raise
        left, attempt = np.union1d(again, missed(seen[before:])), attempt + 1
        left = shuffled(left, attempt) if len(again) else left
        if second or not len(left):
            break
    result = result_of(made, info, seen)
    try:
        other = recounted(made, seen[:1]) if execution.check and several and not streak.ended else None
    except IncompleteError as error:
        with_result(error, result)
        raise
    checked = finished(made, result, execution.check, other)
    doubt(log, checked.notes[len(result.notes) :])
    return checked


def _people(blocks: Sequence[Counted]) -> IntArray:
    return np.concatenate([np.zeros(0, np.intp), *(block.people for block in blocks)])


class Blocks(Sequence[Block]):
    """The blocks of an audit, made when they are asked for."""

    def __init__(self, made: Prepared, left: IntArray, execution: Execution, told: Callable[[int], None] | None):
        here = execution.n_jobs == 1 and execution.engine is None
        larger = LARGER if here and execution.journal is None and execution.block_people is None else 1  # nobody waits for a block to be finished
        each = min(MOST_PEOPLE, larger * execution.people(max(1, round(made.rows_each())))) if len(left) else 1
        if execution.block_people is None and execution.n_jobs != 1:
            each = max(1, min(each, -(-len(left) // 16)))  # enough blocks to go round
        if execution.block_people is None and made.design.prove:
            each, here = min(each, MOST_PROVED), False
        self.made, self.pieces, self.told = made, [np.sort(left[at : at + each]) for at in range(0, len(left), each)], told if here else None

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, at: Any) -> Any:
        return self.made.block(self.pieces[at], self.told)


def result_of(made: Prepared, info: Mapping[str, Any], done: Sequence[Counted]) -> Audit:
    """Return the result of the blocks that are done, for each person that of the best attempt."""
    done = latest(done, len(made.source))
    rows, causes = rows_of(made, done)
    proofs = {name: int((own.counts.proof == PROOFS.index("answers are missing")).sum()) for name, own in rows.items()}
    lost = unanswered({name: answered([own.counts]) for name, own in rows.items()}, causes, proofs)
    notes = tuple(dict.fromkeys(replace(p, severity="warning") for part in done for p in part.drift))
    gone = made.todo[~np.isin(made.todo, _people(done))]
    notes = (*aside(made.source.labels[gone].tolist(), len(gone), len(made.todo)), *made.notes, *lost, *notes)
    return Audit(rows, made.design, {**info, "causes": causes}, notes, Context(made.predictors, made.X, made.im, made.source))


def rows_of(made: Prepared, done: Sequence[Counted]) -> tuple[dict[str, Rows], dict[str, list[str]]]:
    """Return the rows of each model in the blocks that are done, and why points have no answer."""
    rows, causes = {}, {}
    for name in made.predictors:
        place = np.concatenate([part.people[part.asked[name]] for part in done]) if done else np.zeros(0, np.intp)
        order = np.argsort(place, kind="stable")
        counts = Counts.join([part.counts[name] for part in done])
        if (order[1:] < order[:-1]).any():
            counts, place = counts.take(order), place[order]
        index, units = made.source.labels, made.source.units
        if len(place) < len(index):
            index, units = index[place], units[place]
        prediction = np.asarray(made.before[name])[place]  # a copy: what a model returned may be its own memory, or the caller's
        frame = made.source.frame if isinstance(made.source, TableSource) else pd.DataFrame(index=made.source.labels)
        groups = pd.DataFrame({c: labelled(frame[c].iloc[place], dict(labels)) for c, labels in made.design.groups}, index=index)
        rows[name] = Rows(index, place, prediction, units, counts, groups)
        causes[name] = list(dict.fromkeys(cause for part in done for cause in part.causes.get(name, ())))[:3]
    return rows, causes


def labelled(values: pd.Series, labels: Mapping[Any, str]) -> pd.Series:
    """Return groups by their labels."""
    return values.map(lambda v: labels.get(v, labels.get(str(v), v))) if labels else values


def finished(made: Prepared, result: Audit, check: bool | str, other: str | None = None) -> Audit:
    """Return the result if the model is still the one that was asked at the start and enough points have an answer; an error with it otherwise.

    `other` names somebody of the first block whose counts were others at the end.
    """
    result = replace(result, notes=(*result.notes, *drifted(made.predictors, made.source.starts(), made.before, check, result, other)))
    causes = [cause for found in result.info["causes"].values() for cause in found]
    check_answered(answered([rows.counts for rows in result.rows.values()]), made.design, causes, result)
    return accepted(result)


def drifted(
    predictors: Mapping[str, Predictor], starts: Any, before: Arrays, check: bool | str, result: Any, other: str | None = None
) -> tuple[Problem, ...]:
    """Ask about the people again: raise an error, with the result attached, where a model answers otherwise or not at all; with ``"warn"``, return notes."""
    problems, silent = ask_again(predictors, starts, before) if check else ([], [])
    if other is not None:
        what = "the model answers otherwise than at the start: points of the first block, counted again at the end, gave other counts"
        problems.append(Problem("model", what, got=other, remedy="fix its seed and its version; check='warn' keeps the result with a note"))
    if problems and check != "warn":
        raise with_result(DriftError(problems), result)
    if silent and check != "warn":
        raise with_result(IncompleteError(silent), result)
    return tuple(replace(p, severity="warning") for p in (*problems, *silent))


def chosen_people(design: Design, source: Source, before: npt.NDArray[Any]) -> BoolArray:
    """Return whom the audit of one model is about; in a condition, texts are compared with the levels that the interaction model declares."""
    population = design.population
    if isinstance(population, str):
        if population == "all":
            return np.ones(len(source), dtype=bool)
        if population == "outside":
            return np.asarray(~design.target.hits(before, before), dtype=bool)
        if not isinstance(source, TableSource):
            raise InputError("a condition needs a table", where="population", got=population)
        texts = [f for f in source.model.features if f.levels and isinstance(f.levels[0], str)]
        words = {f.name: tuple(dict.fromkeys([*(f.levels or ()), *source.frame[f.name].dropna().unique()])) for f in texts}
        return where_true(population, source.frame, where="population", words=words)
    if isinstance(population, pd.Series) and not population.index.equals(source.labels):
        if not source.labels.isin(population.index).all():
            raise InputError("has other labels than the people", where="population", got=population.index[0], remedy="give it the index of the people")
        population = population.loc[source.labels]
    chosen = np.asarray(population)
    if chosen.shape != (len(source),) or chosen.dtype != bool:
        what = f"must choose among {len(source)} people by true and false"
        raise InputError(what, where="population", got=f"{chosen.dtype} of shape {chosen.shape}")
    return chosen


def nobody_left(design: Design, chosen: int, people: int, name: str = "model") -> tuple[Problem, ...]:
    """Return a note where a population leaves nobody: ``not lower`` and ``not different`` hold for all people as they are, no row meets a condition."""
    if chosen or not people or not isinstance(design.population, str):
        return ()
    if design.population != "outside":
        what, remedy = f"nobody is audited: no row meets {design.population}", "look at its words and numbers"
    else:
        what = f"nobody is audited: the output of {name} {design.target.describe()} for all {people:,} people as they are"
        remedy = "population='all' (--population all) audits all of them"
    return (Problem("population", what, remedy=remedy, severity="warning"),)


def drafted(im: Any) -> tuple[Problem, ...]:
    """Return a note where the interaction model is a draft that nobody has confirmed."""
    return tuple(note for note in getattr(im, "warnings", ()) if note.where == "draft")


def warn_of(notes: Iterable[Problem]) -> None:
    """Log that nobody is left to audit, and that the interaction model is a draft."""
    notes = list(notes)
    warn(note for note in notes if note.where == "population")
    warn((note for note in notes if note.where == "draft"), "budge.drafts")


def warn(notes: Iterable[Problem], log: str = __name__) -> None:
    """Log the first of these notes, once for a whole analysis."""
    for note in list(notes)[:1]:
        logging.getLogger(log).warning("%s", note)


def info_of(made: Prepared, execution: Execution | None = None) -> dict[str, Any]:
    """Return what it takes to understand and repeat the run."""
    source, design, im = made.source, made.design, made.im
    digest = getattr(im, "digest", None)
    spec: Any = None
    if isinstance(im, InteractionModel):
        try:
            spec = im.to_spec()
        except InputError:
            spec = None
    return {
        "version": budge.__version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "packages": packages_of(made.predictors.values()),
        "streams": 2,  # other draws from the same seed than before
        "design": design.to_dict(),
        "target": design.target.describe(),
        "population": population_name(design.population),
        "already": {name: int(np.asarray(design.target.hits(outputs, outputs)).sum()) for name, outputs in made.before.items()},
        "harm": design.harm,
        "name": str(getattr(im, "name", type(im).__name__) or ""),
        "wording": Wording.of(None if execution is None else execution.wording).to_dict(),
        "measure": getattr(im, "measure", None),
        "spec": spec,
        "spec_digest": digest if isinstance(digest, str) else None,
        "data_digest": source.digest(),
        "people": len(source),
        "twins": len(source) - 1 - int(source.units.max(initial=-1)),
        "models": {name: p.describe() for name, p in made.predictors.items()},
        "model_digests": {name: p.digest() for name, p in made.predictors.items()},
        "addresses": {name: getattr(p, "address", None) for name, p in made.predictors.items()},
        "answers_digests": {name: answers_digest(outputs) for name, outputs in made.before.items()},
    }
