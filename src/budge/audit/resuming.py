"""Blocks of a journal: how they are written and read, and whether the models still answer as they did."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from budge.audit.ask import DriftError
from budge.audit.counting import Counted
from budge.audit.loading import NOTE
from budge.audit.probe import PROBE, another_run, differing_counts, differing_probe, probe_of
from budge.audit.rows import Rows, check_designed
from budge.audit.sources import BoolArray, IntArray
from budge.errors import IncompleteError, InputError, Problem, StorageError
from budge.journal import Journal
from budge.models.contained import reason
from budge.models.contract import differ
from budge.stats.counts import PROOFS, Counts
from budge.stored import COUNT, check_shape, reading, word

if TYPE_CHECKING:
    from budge.audit.run import Prepared

__all__ = [
    "DOUBT", "answers_still", "blocks_of", "doubt", "doubting", "doubts", "in_doubt", "latest", "missed", "record_of", "recounted", "resumed",
    "shuffled", "unsettled", "without",
]  # fmt: skip

_BLOCK = {"people": [COUNT], "asked": {str: [bool]}, "counts": {str: {"heavy": {str: list}, str: list}}, "causes": {str: [str]}}
DOUBT = "doubt"  # its key in a journal
RECOUNTED = 4  # people of finished blocks who are counted again
SCORES, MANY = "scores:", 1_000_000  # the keys of scores in a journal, and how many stand in a record at most


def doubt(log: Journal | None, problems: Sequence[Problem]) -> None:
    """Note in a journal that a model answered otherwise under way: which of the blocks hold such answers, if there are any, is not known."""
    if log is not None and problems and not log.complete and log.attempt > 1 and not {DOUBT} & log.keys():
        log.write({DOUBT: {"notes": [replace(p, severity="warning").to_dict() for p in problems]}})


@contextmanager
def doubting(log: Journal | None) -> Iterator[None]:
    """Note in a journal that a model answered otherwise, where that ends the run: the same call must not go on from such answers."""
    try:
        yield
    except DriftError as error:
        with suppress(StorageError):  # what the model did matters more
            doubt(log, error.problems)
        raise


def doubts(log: Journal, record: Mapping[str, Any] | None) -> tuple[Problem, ...]:
    """Return what was noted by `doubt`."""
    with reading(log.path, "the journal of the run is damaged"):
        if record is not None:
            check_shape(record, {"notes": [NOTE]})
        return tuple(Problem(**note) for note in record["notes"]) if record is not None else ()


def in_doubt(notes: Sequence[Problem], check: bool | str) -> Problem | None:
    """Return a problem where a journal may hold answers of two models; it is read nevertheless where no such thing is checked, or only noted."""
    if not notes or check is not True:
        return None
    return Problem("journal", f"answers in this run are in doubt, and which is not known: {notes[0].what}", remedy="choose another folder, or overwrite it")


def resumed(log: Journal, made: Prepared, info: Mapping[str, Any], check: bool | str) -> tuple[Prepared, list[Counted]]:
    """Return the audit with the scores about the starts that its journal holds, and the blocks of that journal.

    The journal of another model, another target or other interactions is an error, and so is one in doubt; where it may be overwritten, the run
    starts over.
    """
    records = log.done()
    notes = doubts(log, records.pop(DOUBT, None))
    probe, scores = records.pop(PROBE, None), {key: records.pop(key) for key in list(records) if key.startswith(SCORES)}
    same, blocks, now = made, list[Counted](), None
    before = {**made.before, **_scores_of(log, scores, made, begun=bool(records))}
    another = in_doubt(notes, check) or _answers_differ(made.before, before)
    if another is None:
        if any(not np.array_equal(before[name], made.before[name]) for name in before):
            same = made.answered(before)
        blocks = latest(_reread(log, records, same), len(same.source))
        now = probe_of(same, info) if check else None
        another = differing_probe(log, probe, now) if check else None
        if another is None and check:
            another = differing_counts(recounted(same, without(blocks, unsettled(blocks))))
    if another is not None:
        if not log.overwrite:
            raise InputError(replace(another, where=str(log.path)))
        log.restart()
        same, blocks, now, probe, scores, notes = made, [], probe_of(made, info) if check else None, None, {}, ()
    if not log.complete:
        log.write({**({} if scores else _score_records(made.before)), **({PROBE: now} if now is not None and probe is None else {})})
    same.notes = (*same.notes, *notes)
    return same, blocks


def _score_records(before: Mapping[str, npt.NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Return scores about the starts as a journal keeps them: bit by bit, so that a run that goes on uses the very same. Labels have a digest."""
    found = {}
    for name, outputs in before.items():
        if outputs.dtype.kind != "f":
            continue
        plain = outputs.astype(np.float64) if outputs.dtype.itemsize > 8 else outputs
        for at in range(0, len(plain), MANY):
            part = np.ascontiguousarray(plain[at : at + MANY])
            found[f"{SCORES}{at:012d}:{name}"] = {"type": part.dtype.str, "bits": b64encode(part.tobytes()).decode()}
    return found


def _scores_of(log: Journal, records: Mapping[str, Mapping[str, Any]], made: Prepared, *, begun: bool) -> dict[str, npt.NDArray[Any]]:
    """Return the scores about the starts that a journal holds; none where nothing was begun."""
    found: dict[str, npt.NDArray[Any]] = {}
    if not records and not begun:
        return found
    with reading(log.path, "the journal of the run is damaged: the scores of people as they are"):
        for name, outputs in made.before.items():
            if outputs.dtype.kind == "f":
                parts = [records[key] for key in sorted(records) if key.partition(":")[2].partition(":")[2] == name]
                for part in parts:
                    check_shape(part, {"type": word("<f2", "<f4", "<f8"), "bits": str})
                found[name] = np.concatenate([np.frombuffer(b64decode(part["bits"], validate=True), part["type"]) for part in parts])
                if found[name].shape != outputs.shape:
                    raise ValueError(f"{len(found[name])} for {name}, of {len(outputs)}")
    return found


def _answers_differ(now: Mapping[str, npt.NDArray[Any]], was: Mapping[str, npt.NDArray[Any]]) -> Problem | None:
    other = {name: int(np.asarray(differ(was[name], now[name])).sum()) for name in now}
    said = [f"{name} answers otherwise about {many:,} people as they are" for name, many in other.items() if many]
    return another_run(said[0]) if said else None


def record_of(found: Counted) -> dict[str, Any]:
    """Return what a journal keeps of a block."""
    return {
        "people": found.people.tolist(),
        "asked": {name: mask.tolist() for name, mask in found.asked.items()},
        "counts": {name: counts.to_dict() for name, counts in found.counts.items()},
        "causes": {name: list(causes) for name, causes in found.causes.items()},
    }


def _reread(log: Journal, records: Mapping[str, Mapping[str, Any]], made: Prepared) -> list[Counted]:
    """Return the blocks of a journal; one that is not about these people and models is an error."""
    found = []
    for key, record in records.items():
        with reading(log.path, f"the journal of the run is damaged: {key}"):
            check_shape(record, _BLOCK)
            people = np.array(record["people"], dtype=np.intp)
            asked = {name: np.array(mask, dtype=bool) for name, mask in record["asked"].items()}
            counts = {name: Counts.from_dict(columns) for name, columns in record["counts"].items()}
            if not set(made.predictors) == set(asked) == set(counts) == set(record["causes"]):
                raise ValueError("it is about other models")
            if not len(people) or people.max() >= len(made.source) or (np.diff(people) <= 0).any():
                raise ValueError("it is about other people")
            for name, own in counts.items():
                own.check()
                check_designed(own, made.design)
                if asked[name].shape != people.shape or int(asked[name].sum()) != len(own) or (asked[name] != made.asked[name][people]).any():
                    raise ValueError(f"it is about other people for {name}")
            found.append(Counted(people, counts, asked, {name: tuple(causes) for name, causes in record["causes"].items()}))
    return found


def latest(blocks: Sequence[Counted], size: int) -> list[Counted]:
    """Return for each person and model the counts of the attempt that left the least without an answer, the last among equals."""
    names = blocks[0].counts if blocks else ()
    least = {name: np.full(size, np.iinfo(np.int64).max) for name in names}
    chosen = {name: np.full(size, -1) for name in names}
    for k, block in enumerate(blocks):
        for name, counts in block.counts.items():
            place, lost = block.people[block.asked[name]], _lost(counts)
            better = lost <= least[name][place]
            least[name][place[better]], chosen[name][place[better]] = lost[better], k
    return [_kept(block, {name: chosen[name][block.people] == k for name in names}) for k, block in enumerate(blocks)]


def _lost(counts: Counts) -> npt.NDArray[np.int64]:
    """Return how much each row has lost, as a number that grows with the points without an answer; of a row that stopped, nothing, something or everything.

    Where a row stops depends on what has no answer: fewer such points may be those of an attempt that gave up early for want of answers.
    """
    some = (counts.unresolved > 0).astype(np.int64) + (counts.unresolved == counts.n)
    lost = np.where(counts.is_law("sequential"), some, counts.unresolved)
    return np.asarray(2 * lost + (counts.unsettled & (counts.unresolved == 0)), np.int64)


def unsettled(blocks: Sequence[Counted]) -> IntArray:
    """Return the people who have points without an answer, or a proof that lacks one."""
    found = [block.people[block.asked[name]][counts.unsettled] for block in blocks for name, counts in block.counts.items()]
    return np.unique(np.concatenate([np.zeros(0, np.intp), *found]))


def without(blocks: Sequence[Counted], people: IntArray) -> list[Counted]:
    """Return the blocks without some people."""
    return [_kept(block, dict.fromkeys(block.counts, ~np.isin(block.people, people))) for block in blocks]


def shuffled(people: IntArray, attempt: int) -> IntArray:
    """Return people in an order that each attempt has of its own.

    Where a model has failed, people on whom it always fails do not stand together then: it is not taken for one that fails on everything, and nobody
    is kept from being asked about in every attempt.
    """
    return np.random.default_rng(attempt).permutation(people)


def _kept(block: Counted, keep: Mapping[str, BoolArray]) -> Counted:
    """Return some people of a block, for each model its own, with the reasons that may still apply to them."""
    asked = {name: mask & keep[name] for name, mask in block.asked.items()}
    anyone = np.any(list(asked.values()), axis=0)
    counts = {name: found.take(keep[name][block.asked[name]]) for name, found in block.counts.items()}
    causes = {name: why if counts[name].unsettled.any() else () for name, why in block.causes.items()}
    return replace(block, people=block.people[anyone], counts=counts, asked={name: mask[anyone] for name, mask in asked.items()}, causes=causes)


def missed(done: Sequence[Counted]) -> IntArray:
    """Return the people whose points have no answer because a model failed on everything while they were asked about."""
    return unsettled([block for block in done if block.down])


def blocks_of(rows: Mapping[str, Rows], first: int) -> list[Counted]:
    """Return the people of a part, which begins at `first`, one block per model."""
    found = []
    for name, own in rows.items():
        counts = {other: own.counts if other == name else Counts.blank(0) for other in rows}
        asked = {other: np.full(len(own.place), other == name) for other in rows}
        found.append(Counted(own.place.astype(np.intp) - first, counts, asked, {}))
    return found


def recounted(made: Prepared, done: Sequence[Counted]) -> str | None:
    """Count a few people of finished blocks again; return one whose counts are others, if there is one."""
    some, now = _again(made, done)
    if now is None:
        return None
    for name in made.predictors:
        again = [part.counts[name].take(np.isin(part.people[part.asked[name]], some)) for part in done]
        place = np.concatenate([np.intersect1d(part.people[part.asked[name]], some) for part in done])
        was, new = Counts.join(again), now.counts[name].take(np.searchsorted(some[made.asked[name][some]], place))
        drawn = (was.unresolved == 0) & (new.unresolved == 0) & (was.proof == 0)
        other = drawn & ((was.n != new.n) | (was.hits != new.hits))
        if other.any():
            return f"{name}, person {made.source.labels[place[other][0]]}"
    return None


def answers_still(made: Prepared, done: Sequence[Counted]) -> bool:
    """Return whether the models answer about people who have all answers: a model that failed on others only is not down."""
    now = _again(made, without(done, unsettled(done)))[1]
    return now is not None and not now.down


def _again(made: Prepared, done: Sequence[Counted]) -> tuple[IntArray, Counted | None]:
    """Count a few people of finished blocks again, if there are any; sets that were counted from a model's structure may be too large to list."""
    people = np.unique(np.concatenate([np.zeros(0, np.intp), *(part.people for part in done)]))
    counted = [part.people[part.asked[name]][counts.proof == PROOFS.index("counted")] for part in done for name, counts in part.counts.items()]
    people = people[~np.isin(people, np.concatenate([np.zeros(0, np.intp), *counted]))]
    if not len(people):
        return people, None
    some = people[np.unique(np.linspace(0, len(people) - 1, RECOUNTED).astype(np.intp))]
    try:
        work = replace(made.work, settlers={}, askers={name: ask.fresh() for name, ask in made.askers.items()})
        return some, work(made.block(some))
    except MemoryError as error:
        raise IncompleteError(f"there is no memory to count people who are finished again: {reason(error)}", where="model", remedy="make room") from error
