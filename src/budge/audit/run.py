"""The steps of an audit: people and models are read and checked, blocks are counted, counts are gathered."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import budge
from budge.audit.ask import Asker, answers_digest, ask_again, ask_starts, predictors_of
from budge.audit.conditions import where_true
from budge.audit.counting import Block, Counted, Work
from budge.audit.design import Design, Execution, population_name
from budge.audit.engines import run_blocks
from budge.audit.result import Audit, Context, Rows
from budge.audit.sources import BoolArray, IntArray, Source, TableSource, choose, make_source
from budge.errors import DesignError, IncompleteError, InputError, ModelError, Problem, nearest
from budge.interaction import InteractionModel
from budge.journal import Journal
from budge.models import Predictor
from budge.people import is_stream
from budge.stats.counts import Counts

__all__ = [
    "OTHER_CODE", "PROBE", "Blocks", "Prepared", "answered", "check_answered", "chosen_people", "drifted", "finished", "info_of", "labelled", "prepare",
    "probe_of", "result_of", "rows_of", "run_audit", "same_probe", "set_aside",
]  # fmt: skip

PROBED = 16  # people whose sizes tell how many fit into a block; points per person that tell code from other code
PROBE = "probe"  # the key of these in a journal
OTHER_CODE = "this is another run: the model, the target or the interactions are code that behaves otherwise now"
MOST_PEOPLE = 32_768  # of a block
MOST_PROVED = 64  # the same where something is proved about each
LARGER = 4  # questions per block, where a block need not be kept or sent: people are prepared, and witnesses asked about, together
IDENTITY = ("version", "streams", "design", "spec_digest", "data_digest", "model_digests", "answers_digests", "population")
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

    def rows_each(self) -> float:
        """Return about how many points a person has, from a few of them."""
        if not len(self.todo) or self.design.method == "sample":
            return float(self.design.draws)
        some = self.source.take(self.todo[np.unique(np.linspace(0, len(self.todo) - 1, PROBED).astype(np.intp))])
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
        before, notes = ask_starts(predictors, source.starts(), design.target, seed=design.seed, table=table, check=check)
    made = Prepared(source, predictors, design, X, im, before, notes, like)
    made.check_draws()
    return made


def run_audit(model: Any, X: Any, im: Any, design: Design, execution: Execution) -> Audit:
    """Return the result of the design for these people and models."""
    if is_stream(X):
        from budge.audit.streamed import run_stream

        return run_stream(model, X, im, design, execution)
    made = prepare(model, X, im, design, check=bool(execution.check))
    info = info_of(made)
    log = None
    if execution.journal is not None:
        log = Journal.open(Path(execution.journal), {key: info[key] for key in IDENTITY}, overwrite=execution.overwrite)
    try:
        records = {} if log is None else log.done()
        probe = records.pop(PROBE, None)
        if log is not None and execution.check:
            _check_code(log, probe, made, info)
        done = _latest([_reread(record) for record in records.values()], len(made.source), again=log is not None and not log.complete)
        known = np.concatenate([part.people for part in done]) if done else np.zeros(0, np.intp)
        progress, attempt, ready = execution.progress or (lambda done, total: None), 1 if log is None else log.attempt, len(known)
        progress(ready, len(made.todo))

        def told(people: int) -> None:
            nonlocal ready
            ready += people
            progress(ready, len(made.todo))

        blocks = Blocks(made, made.todo[~np.isin(made.todo, known)], execution, told)
        try:
            for _, found in run_blocks(made.work, blocks, n_jobs=execution.n_jobs, engine=execution.engine):
                if log is not None:
                    log.write({f"{attempt:06d}:{int(found.people[0]):012d}": _record(found)})
                done.append(found)
                told(sum(len(part.people) for part in done) - ready)
        except IncompleteError as error:
            gone = np.concatenate([blocks.pieces[position] for position in error.lost])  # type: ignore[attr-defined]
            raise set_aside(error, made.source.labels[gone].tolist(), len(gone), len(made.todo), result_of(made, info, done)) from error
        result = finished(made, result_of(made, info, done), execution.check)
        if log is not None and not log.complete:
            log.finish()
    finally:
        if log is not None:
            log.close()
    return result


def set_aside(error: IncompleteError, labels: Sequence[Any], gone: int, people: int, result: Any) -> IncompleteError:
    """Return the error with the people whose blocks were given up, and the result of the others."""
    named = ", ".join(map(str, labels[:10])) + (", …" if len(labels) > 10 else "")
    problem = error.problems[0]
    found = IncompleteError([replace(problem, what=f"{gone:,} of {people:,} people were set aside ({named}); {problem.what}")])
    found.result = result  # type: ignore[attr-defined]
    return found


def _check_code(log: Journal, known: Mapping[str, Any] | None, made: Prepared, info: Mapping[str, Any]) -> None:
    """Compare answers about a few reachable points with those of the journal, where a model, the target or the interactions are code without a digest."""
    now = probe_of(made, info)
    if now is None:
        return
    if known is None:
        if not log.complete:
            log.write({PROBE: now})
    elif not same_probe(known, now):
        raise InputError(OTHER_CODE, where=str(log.path), remedy="choose another folder, or overwrite it")


def probe_of(made: Prepared, info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is answered about a few reachable points; None where everything has a digest."""
    code = [*info["model_digests"].values(), info["spec"], None if "function" in info["design"]["target"] else ""]
    if None not in code or not len(made.todo):
        return None
    places = made.todo[np.unique(np.linspace(0, len(made.todo) - 1, 8).astype(np.intp))]
    some = made.source.take(places)
    listed, drawn, _ = choose(some, made.design)
    digest, seen = blake2b(digest_size=8), dict[str, list[int]]()
    for chunk in (*some.exact(np.flatnonzero(listed)), *some.draws(np.flatnonzero(drawn), PROBED, made.design)):
        few = np.flatnonzero(np.arange(len(chunk.owner)) - chunk.starts[chunk.owner] < PROBED)
        who = chunk.people[chunk.owner[few]]
        points = some.points(who, chunk, few)
        digest.update(repr(points).encode() if chunk.moved is None else np.ascontiguousarray(chunk.moved[:, few]).tobytes())
        for name, ask in made.askers.items():
            found = ask(points, made.before[name][places][who])
            seen.setdefault(name, []).extend(np.where(found.good, found.hit, -1).astype(int).tolist())  # -1: no answer, now or then
    return {"points": digest.hexdigest(), "hits": seen}


def same_probe(known: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> bool:
    """Return whether two probes agree, as far as both have answers."""
    if known is None or now is None:
        return known == now
    pairs = [(known["hits"].get(name, ()), hits) for name, hits in now["hits"].items()]
    agree = all(len(one) == len(two) and all(a == b or -1 in (a, b) for a, b in zip(one, two)) for one, two in pairs)
    return bool(known["points"] == now["points"] and agree)


class Blocks(Sequence[Block]):
    """The blocks of an audit, made when they are asked for."""

    def __init__(self, made: Prepared, left: IntArray, execution: Execution, told: Callable[[int], None] | None):
        here = execution.n_jobs == 1 and execution.engine is None and execution.journal is None  # nobody waits for a block to be finished
        larger = LARGER if here and execution.block_people is None else 1
        each = min(MOST_PEOPLE, larger * execution.people(max(1, round(made.rows_each())))) if len(left) else 1
        if execution.block_people is None and execution.n_jobs != 1:
            each = max(1, min(each, -(-len(left) // 16)))  # enough blocks to go round
        if execution.block_people is None and made.design.prove:
            each, here = min(each, MOST_PROVED), False
        self.made, self.pieces, self.told = made, [left[at : at + each] for at in range(0, len(left), each)], told if here else None

    def __len__(self) -> int:
        return len(self.pieces)

    def __getitem__(self, at: Any) -> Any:
        return self.made.block(self.pieces[at], self.told)


def result_of(made: Prepared, info: Mapping[str, Any], done: Sequence[Counted]) -> Audit:
    """Return the result of the blocks that are done."""
    rows, causes = rows_of(made, done)
    return Audit(rows, made.design, {**info, "causes": causes}, made.notes, Context(made.predictors, made.X, made.im, made.source))


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


def finished(made: Prepared, result: Audit, check: bool | str) -> Audit:
    """Return the result if the model is still the one that was asked at the start and enough points have an answer; an error with it otherwise."""
    result = replace(result, notes=(*result.notes, *drifted(made.predictors, made.source.starts(), made.before, check, result)))
    causes = [cause for found in result.info["causes"].values() for cause in found]
    check_answered(answered([rows.counts for rows in result.rows.values()]), made.design, causes, result)
    return result


def drifted(predictors: Mapping[str, Predictor], starts: Any, before: Arrays, check: bool | str, result: Any) -> tuple[Problem, ...]:
    """Ask about the people again: raise an error, with the result attached, where a model answers otherwise; with ``"warn"``, return notes."""
    problems = ask_again(predictors, starts, before) if check else []
    if problems and check != "warn":
        error = ModelError(problems)
        error.result = result  # type: ignore[attr-defined]
        raise error
    return tuple(replace(p, severity="warning") for p in problems)


def answered(counts: Sequence[Counts]) -> tuple[int, int]:
    """Return the number of points, and of those without an answer."""
    return sum(int(c.n.sum()) for c in counts), sum(int(c.unresolved.sum()) for c in counts)


def check_answered(points: tuple[int, int], design: Design, causes: Sequence[str], result: Any) -> None:
    """Raise an error, with the result attached, where more points have no answer than the design accepts."""
    many, lost = points
    if many and lost / many > design.max_unresolved:
        error = IncompleteError(
            f"{lost:,} of {many:,} points have no answer" + (f"; the first reason: {causes[0]}" if causes else ""),
            where="max_unresolved", got=design.max_unresolved, remedy="see the column unresolved of result.table; mend the model or accept more",
        )  # fmt: skip
        error.result = result  # type: ignore[attr-defined]
        raise error


def chosen_people(design: Design, source: Source, before: npt.NDArray[Any]) -> BoolArray:
    """Return whom the audit of one model is about."""
    population = design.population
    if isinstance(population, str):
        if population == "all":
            return np.ones(len(source), dtype=bool)
        if population == "outside":
            return np.asarray(~design.target.hits(before, before), dtype=bool)
        if not isinstance(source, TableSource):
            raise InputError("a condition needs a table", where="population", got=population)
        return where_true(population, source.frame, where="population")
    if isinstance(population, pd.Series) and not population.index.equals(source.labels):
        if not source.labels.isin(population.index).all():
            raise InputError("has other labels than the people", where="population", got=population.index[0], remedy="give it the index of the people")
        population = population.loc[source.labels]
    chosen = np.asarray(population)
    if chosen.shape != (len(source),) or chosen.dtype != bool:
        what = f"must choose among {len(source)} people by true and false"
        raise InputError(what, where="population", got=f"{chosen.dtype} of shape {chosen.shape}")
    return chosen


def info_of(made: Prepared) -> dict[str, Any]:
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
        "streams": 2,  # other draws from the same seed than before
        "design": design.to_dict(),
        "target": design.target.describe(),
        "population": population_name(design.population),
        "already": {name: int(np.asarray(design.target.hits(outputs, outputs)).sum()) for name, outputs in made.before.items()},
        "harm": design.harm,
        "name": getattr(im, "name", "") or type(im).__name__,
        "measure": getattr(im, "measure", None),
        "spec": spec,
        "spec_digest": digest if isinstance(digest, str) else None,
        "data_digest": source.digest(),
        "people": len(source),
        "twins": len(source) - 1 - int(source.units.max(initial=-1)),
        "models": {name: p.describe() for name, p in made.predictors.items()},
        "model_digests": {name: p.digest() for name, p in made.predictors.items()},
        "answers_digests": {name: answers_digest(outputs) for name, outputs in made.before.items()},
    }


# -- the journal's record of a block ------------------------------------------------------------------------------------


def _record(found: Counted) -> dict[str, Any]:
    return {
        "people": found.people.tolist(),
        "asked": {name: mask.tolist() for name, mask in found.asked.items()},
        "counts": {name: counts.to_dict() for name, counts in found.counts.items()},
        "causes": {name: list(causes) for name, causes in found.causes.items()},
    }


def _reread(record: Mapping[str, Any]) -> Counted:
    """Return a block of the journal."""
    people = np.array(record["people"], dtype=np.intp)
    asked = {name: np.array(mask, dtype=bool) for name, mask in record["asked"].items()}
    counts = {name: Counts.from_dict(columns) for name, columns in record["counts"].items()}
    return Counted(people, counts, asked, {name: tuple(causes) for name, causes in record["causes"].items()})


def _latest(blocks: Sequence[Counted], size: int, *, again: bool) -> list[Counted]:
    """Return what the blocks of a journal, in the order of its attempts, hold for each person last.

    People who had points without an answer were asked again by a later attempt, and both records are kept. With `again`, those who still have such
    points are left out: they are asked once more.
    """
    newer, found = np.zeros(size, dtype=bool), []
    for block in reversed(blocks):
        keep = ~newer[block.people]
        newer[block.people] = True
        if again:
            for name, counts in block.counts.items():
                keep[np.flatnonzero(block.asked[name])[counts.unresolved > 0]] = False
        found.append(block if keep.all() else _kept(block, keep))
    return found[::-1]


def _kept(block: Counted, keep: BoolArray) -> Counted:
    """Return some people of a block, with the reasons that may still apply to them."""
    counts = {name: found.take(keep[block.asked[name]]) for name, found in block.counts.items()}
    causes = {name: why if counts[name].unresolved.any() else () for name, why in block.causes.items()}
    return Counted(block.people[keep], counts, {name: mask[keep] for name, mask in block.asked.items()}, causes)
