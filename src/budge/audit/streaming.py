"""The run over a stream of people: parts are worked on anywhere, each becomes files and a line of the journal, and a run goes on with any engine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from budge.audit.ask import DriftError
from budge.audit.design import Design, Execution
from budge.audit.engines import run_blocks
from budge.audit.failing import Streak, accepted, aside, check_answered, set_aside, unanswered, with_result
from budge.audit.loading import NOTE, PARTS, piece_files
from budge.audit.pieces import PieceWork, Share
from budge.audit.probe import PROBE, another_run, differing_probe, probe_of, same_probe
from budge.audit.resuming import DOUBT, doubt, doubting, doubts, in_doubt, shuffled
from budge.audit.run import Prepared, drafted, info_of, nobody_left, prepare
from budge.audit.storage import RECORD, tidy
from budge.audit.streamed import MOST_PIECE, PieceRows, StreamedAudit, file_digest
from budge.errors import DesignError, IncompleteError, InputError, ModelError, OutputExistsError, Problem, StorageError, nearest
from budge.files import make_folder, write_whole
from budge.interaction import InteractionModel
from budge.journal import NAME as JOURNAL
from budge.journal import Journal
from budge.models.contract import differ
from budge.people import Part, People
from budge.progress import watched
from budge.stats.counts import PROOFS
from budge.stored import COUNT, check_shape, read_bytes, reading
from budge.wording import Wording, check_names

__all__ = ["attach", "prepare_stream", "replay_stream", "run_stream"]

FIRST = 1000  # people who are asked about before parts are given out
AGAIN = 3  # finished parts about whose people the models are asked again when a run goes on; the people of all of them are compared
IDENTITY = (
    "version", "streams", "design", "spec_digest", "model_digests", "addresses", "population", "people", "people_digest", "parts", "first_people",
    "answers_digests",
)  # fmt: skip


_ANSWERED = {"file": str, "answers": str | None, "already": COUNT, "points": COUNT, "unresolved": COUNT, "unsettled": COUNT, "causes": [str], str: Any}
_PIECE = {"data": str, "notes": [NOTE], "models": {str: _ANSWERED}, "silent": [str], "down": COUNT, "blocks": COUNT}


def run_stream(model: Any, X: Any, im: Any, design: Design, execution: Execution) -> StreamedAudit:
    """Return the result of the design for a stream of people."""
    with watched(execution.progress, "people") as noted:
        return _run_stream(model, X, im, design, replace(execution, progress=noted))


def _run_stream(model: Any, X: Any, im: Any, design: Design, execution: Execution) -> StreamedAudit:
    if not isinstance(im, InteractionModel):
        raise InputError("a stream of people needs an interaction model over a table", where="im", got=type(im).__name__)
    if not isinstance(design.population, str):
        raise DesignError("a stream takes a condition, not a mask", where="population", remedy="write a condition on the columns, or filter the people")
    people = People.of(X)
    if execution.check:
        check_names(Wording.of(execution.wording), im, people.columns)
    held = tempfile.TemporaryDirectory(prefix="budge-run-") if execution.journal is None else None
    folder = Path(held.name if held is not None else execution.journal).resolve()  # type: ignore[arg-type]
    if people.place is not None and folder.is_relative_to(Path(people.place).resolve()):
        raise InputError("the run would stand among the people", where="journal", got=str(folder), remedy="choose a folder beside that of the people")
    if (folder / RECORD).exists() and not (folder / JOURNAL).exists() and not execution.overwrite:
        raise OutputExistsError("holds a finished run", where=str(folder), remedy="choose another folder, or overwrite it")
    work, info, made = prepare_stream(people, model, im, design, execution)
    with Journal.open(folder, {key: info[key] for key in IDENTITY}, overwrite=execution.overwrite) as log:
        done, open_, doubted = _finished(log, folder, work, people, info)
        lost, ended, fresh = None, None, len(done) < len(people.parts)
        try:
            with doubting(log):
                ended = _run(log, folder, work, people, done, open_, execution)
        except (IncompleteError, ModelError) as error:
            lost = error
        done = {**open_, **done}
        result = _result(folder, work, people, info, (*drafted(im), *made.notes, *doubted), done, held)
        gone = [part for k, part in enumerate(people.parts) if k not in done]
        if isinstance(lost, ModelError):
            raise with_result(lost, result)
        if lost is None and ended is not None and (gone or not _answers_still(folder, work, people, done)):
            lost = ended
        if lost is not None:
            raise _given_up(lost, gone, people, result)
        noted = len(result.notes)
        with doubting(log):
            result = _confirmed(folder, work, people, done, result, execution, made if fresh else None)
        doubt(log, result.notes[noted:])
        points = sum(m for m, _ in _points(result).values()), sum(lost for _, lost in _points(result).values())
        check_answered(points, result.design, [c for found in result.info["causes"].values() for c in found], result)
        result = accepted(result)
        if not log.complete or not (folder / RECORD).exists():
            result.write_record()
        if execution.finish is not None:
            result = execution.finish(result)
        if not log.complete:
            tidy(folder)
            log.finish()
    return result


def _answers_still(folder: Path, work: PieceWork, people: People, done: Mapping[int, Mapping[str, Any]]) -> bool:
    """Return whether the models answer about people who have all answers, of the part that has most of them."""
    best = max(done, key=lambda k: sum(own["points"] - own["unresolved"] for own in done[k]["models"].values()))
    try:
        return work.still(people.parts[best], _content(folder, work, best, done[best]))
    except (IncompleteError, MemoryError):
        return False


def _confirmed(
    folder: Path, work: PieceWork, people: People, done: Mapping[int, Mapping[str, Any]], result: StreamedAudit, execution: Execution, made: Prepared | None
) -> StreamedAudit:  # fmt: skip
    """Return the result if the models answer at the end as they did at the start; an error with it otherwise, or notes.

    `made` is what was asked about the first people, if anything was asked since.
    """
    silent = [Problem(f"part {k}", cause, remedy="mend the model; with a journal, the same call asks again") for k in done for cause in done[k]["silent"]]
    other = None
    if not silent and made is not None and execution.check:
        try:
            probed = same_probe(result.info["probe"], probe_of(made, result.info))
            if not probed or (len(done) > 1 and not work.same(people.parts[0], done[0], _content(folder, work, 0, done[0]))):
                again = "the first part" if probed else "a few points"
                what = f"the model answers otherwise than at the start: {again}, asked about again at the end, gave other answers"
                other = Problem("model", what, remedy="fix its seed and its version; check='warn' keeps the result with a note")
        except IncompleteError as error:
            silent = list(error.problems)
    if other is not None and execution.check != "warn":
        raise with_result(DriftError(other), result)
    if silent and execution.check != "warn":
        raise with_result(IncompleteError(silent), result)
    return replace(result, notes=(*result.notes, *(replace(p, severity="warning") for p in (*silent, *([other] if other else [])))))


def prepare_stream(
    people: People, model: Any, im: InteractionModel, design: Design, execution: Execution
) -> tuple[PieceWork, dict[str, Any], Prepared]:
    """Check models and design on the first people; return the work, what is known of the run, and the audit of these people."""
    first = people.read(people.parts[0]).iloc[:FIRST]
    for column, _ in design.groups:
        if column not in first.columns:
            raise InputError("no such column", where="groups", got=column, remedy=nearest(column, map(str, first.columns)))
    made = prepare(model, people.for_model(first), im, replace(design, groups=()), check=bool(execution.check))
    asked = replace(made.design, groups=design.groups, family=1)
    how = Execution(block_people=execution.block_people, check=execution.check)
    work = PieceWork(replace(people, parts=(), keep=None), made.predictors, im, asked, made.askers, how)
    if asked.rule is not None and asked.adjust in ("holm", "bonferroni"):  # the level at which a rule stops depends on the number of people
        parts = list(enumerate(people.parts))
        try:
            found = [counts for _, counts in run_blocks(work.asked, parts, n_jobs=execution.n_jobs, engine=execution.engine)]
        except IncompleteError as error:
            raise _given_up(error, [people.parts[k] for k in getattr(error, "lost", ())], people, None) from error
        work = replace(work, design=asked.but(family=max(1, *(sum(c[name] for c in found) for name in made.predictors))))
    info = info_of(made, execution)
    info |= {
        "probe": probe_of(made, info) if execution.check else None,
        "design": work.design.to_dict(), "people": len(people), "people_digest": people.digest, "parts": [part.rows for part in people.parts],
        "first_people": made.source.digest(), "labels": None if people.labelled or people.id is not None else list(people.start),
    }  # fmt: skip
    return work, info, made


def _given_up(error: IncompleteError, parts: list[Part], people: People, result: Any) -> IncompleteError:
    """Return the error with the people of parts that were given up."""
    return set_aside(error, *_gone(parts, people), result)


def _gone(parts: list[Part], people: People) -> tuple[list[str], int, int]:
    """Return the places of people in some parts, how many they are, and of how many."""
    return [f"positions {part.first:,} to {part.first + part.rows - 1:,}" for part in parts], sum(part.rows for part in parts), len(people)


def _points(result: StreamedAudit) -> dict[str, tuple[int, int]]:
    """Return for each model the number of points, and of those without an answer."""
    return {name: (result.tally(name).total("n"), result.tally(name).total("unresolved")) for name in result.models}


def _content(folder: Path, work: PieceWork, number: int, record: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a part, by model."""
    digests = [record["models"][name]["file"] for name in work.predictors]
    return {name: read_bytes(path, MOST_PIECE) for name, path in zip(work.predictors, _files_of(folder, number, digests))}


def _finished(
    log: Journal, folder: Path, work: PieceWork, people: People, info: Mapping[str, Any]
) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]], tuple[Problem, ...]]:
    """Return the records of parts that are finished: their files are whole, and every point has an answer or the run is complete.

    And those of parts in which points have no answer, or a model did not answer about people as they are at the end: these are worked on again. And what
    was noted of models that answered otherwise under way.
    """
    done: dict[int, dict[str, Any]] = {}
    records = log.done()
    notes = doubts(log, records.pop(DOUBT, None))
    probe = records.pop(PROBE, None)
    for key, record in sorted(records.items()):
        with reading(log.path, f"the journal of the run is damaged: {key}"):
            check_shape(record, _PIECE)
            if not (key[7:].isdecimal() and int(key[7:]) < len(people.parts) and set(record["models"]) == set(work.predictors)):
                raise ValueError("it is about other parts or models")
        done[int(key[7:])] = record  # a later attempt takes the place of an earlier one
    for number, record in list(done.items()):
        files = _files_of(folder, number, [record["models"][name]["file"] for name in work.predictors])
        whole = all(file_digest(path) == digest for path, digest in files.items())
        if not whole and log.complete:
            where, remedy = str(next(iter(files))), "make the run again, in another folder"
            raise StorageError("was changed or lost after it was written", where=where, remedy=remedy)
        if not whole:
            del done[number]
    another = in_doubt(notes, work.execution.check)
    if another is None and work.execution.check:
        another = _another(log, folder, work, people, info, probe, done)
    if another is not None:
        if not log.overwrite:
            raise InputError(replace(another, where=str(log.path)))
        log.restart()
        done, probe, notes = {}, None, ()
    if work.execution.check and probe is None and info["probe"] is not None and not log.complete:
        log.write({PROBE: dict(info["probe"])})
    open_ = {number: record for number, record in done.items() if record["silent"] or any(own["unsettled"] for own in record["models"].values())}
    return (done, {}, notes) if log.complete else ({number: record for number, record in done.items() if number not in open_}, open_, notes)


def _another(
    log: Journal, folder: Path, work: PieceWork, people: People, info: Mapping[str, Any], probe: Mapping[str, Any] | None, done: Mapping[int, dict[str, Any]],
) -> Problem | None:  # fmt: skip
    """Return a problem where finished parts are those of another run: of other people, or of models that answer otherwise."""
    problem = differing_probe(log, probe, info["probe"])
    asked = {*sorted(done)[:: max(1, -(-len(done) // AGAIN))], *(number for number, record in done.items() if record["silent"])}
    for number in sorted(done) if problem is None else ():
        if not work.same(people.parts[number], done[number], _content(folder, work, number, done[number]) if number in asked else None):
            return replace(another_run("people of a finished part, or a model's answers about them, are not what they were"), got=f"part {number}")
    return problem


def _run(
    log: Journal, folder: Path, work: PieceWork, people: People, done: dict[int, dict[str, Any]], open_: Mapping[int, Mapping[str, Any]], execution: Execution,
) -> IncompleteError | None:  # fmt: skip
    """Work on the parts that are left; each becomes files first, and a line of the journal then. Return an error where the models are down."""
    attempt = log.attempt
    fresh, again = np.array([k for k in range(len(people.parts)) if k not in done and k not in open_], np.intp), np.array(sorted(open_), np.intp)
    total, ready = len(people), sum(people.parts[k].rows for k in done)
    progress = execution.progress
    assert callable(progress)
    progress(ready, total)
    here, inside = execution.n_jobs == 1 and execution.engine in (None, "serial"), 0

    def told(more: int) -> None:
        nonlocal inside
        inside += more
        progress(min(ready + inside, total), total)

    make_folder(folder / PARTS)
    streak, work = Streak(work.design), replace(work, told=told if here else None)
    for numbers in (shuffled(fresh, attempt) if len(again) else fresh, shuffled(again, attempt)):  # parts that were not asked about yet come first
        left = _Shares([(int(k), people.parts[k], open_.get(int(k))) for k in numbers], folder, work, attempt)
        for _, piece in run_blocks(work, left, n_jobs=execution.n_jobs, engine=execution.engine):
            digests = [piece.record["models"][name]["file"] for name in work.predictors]
            for path, name in zip(_files_of(folder, piece.number, digests), work.predictors):
                write_whole(path, piece.files[name], remedy="make room, or choose another folder; what was finished is kept")
            log.write({f"{attempt:06d}:{piece.number:012d}": dict(piece.record)})
            done[piece.number] = dict(piece.record)
            ready, inside = ready + people.parts[piece.number].rows, 0
            progress(ready, total)
            down, blocks = piece.record["down"], piece.record["blocks"]
            streak.blocks = down + (streak.blocks if down == blocks else 0)
            if streak.ended:
                return streak.error([cause for own in piece.record["models"].values() for cause in own["causes"]])
    return None


class _Shares(Sequence[Share]):
    """The parts that are given out; the files of an earlier attempt are read when one is."""

    def __init__(self, parts: list[tuple[int, Part, Mapping[str, Any] | None]], folder: Path, work: PieceWork, attempt: int):
        self.parts, self.folder, self.work, self.attempt = parts, folder, work, attempt

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, at: Any) -> Any:
        number, part, record = self.parts[at]
        if record is None:
            return Share(number, part, self.attempt, {}, {})
        causes = {name: tuple(own["causes"]) for name, own in record["models"].items()}
        return Share(number, part, self.attempt, _content(self.folder, self.work, number, record), causes)


def _files_of(folder: Path, number: int, digests: list[str]) -> dict[Path, str]:
    """Return the files of a part, each with its digest."""
    return dict(zip(piece_files(folder, {"pieces": [{"number": number, "files": digests}]}), digests))


def _result(
    folder: Path, work: PieceWork, people: People, info: Mapping[str, Any], notes: tuple[Problem, ...], done: Mapping[int, Mapping[str, Any]], held: Any
) -> StreamedAudit:
    """Return the result of the parts that are done."""
    order = sorted(done)
    names = tuple(work.predictors)
    each = (*notes, *(Problem(**note) for k in order for note in done[k]["notes"]))
    said = tuple({str(note): note for note in each}.values())  # a part notes what is noted of the whole, too
    causes = {name: list(dict.fromkeys(c for k in order for c in done[k]["models"][name]["causes"]))[:3] for name in names}
    seen = blake2b("".join(done[k]["data"] for k in order).encode(), digest_size=16)
    more = {
        "already": {name: sum(done[k]["models"][name]["already"] for k in order) for name in names}, "causes": causes, "data_digest": seen.hexdigest(),
        "pieces": [
            {"number": k, "first": people.parts[k].first, "rows": people.parts[k].rows, "files": [done[k]["models"][n]["file"] for n in names]} for k in order
        ],
        "twins": None,
    }  # fmt: skip
    found = StreamedAudit(PieceRows(folder, {**info, **more}), work.design, {**info, **more}, said, stream=people, work=work, held=held)
    left = {name: sum(done[k]["models"][name]["people"] for k in order) for name in names}
    nobody = [note for name in names for note in nobody_left(work.design, left[name], found.info["people"], name)]
    gone = aside(*_gone([part for k, part in enumerate(people.parts) if k not in done], people))
    tallies = {name: found.tally(name) for name in names}
    proofs = {name: t.number(t.counts.proof == PROOFS.index("answers are missing")) for name, t in tallies.items()}
    found = replace(found, notes=(*gone, *found.notes, *nobody, *unanswered(_points(found), causes, proofs)), kept=found.kept)
    shared = [t.units.people - t.units.units for t in tallies.values()]
    return replace(found, info={**found.info, "twins": max(shared)}, kept=found.kept)


def attach(audit: StreamedAudit, model: Any, X: Any, im: Any = None) -> StreamedAudit:
    """Return a loaded run with its models and people at hand; others are an error."""
    people = People.of(X)
    spec = im if im is not None else InteractionModel.from_spec(audit.info["spec"])
    named = model if isinstance(model, Mapping) else {audit.models[0]: model}
    work, info, _ = prepare_stream(people, named, spec, audit.design, Execution())
    for key in ("spec_digest", "people_digest", "parts", "first_people", "model_digests", "answers_digests", "probe"):
        same = same_probe(audit.info[key], info[key]) if key == "probe" else audit.info[key] == info[key]
        if not same:
            raise InputError(f"the {key.replace('_', ' ')} differs", where="attached", got=info[key], remedy=f"the run had {audit.info[key]}")
    part = people.parts[audit.rows.numbers[0]]
    scores = [name for name in audit.models if audit.info["answers_digests"][name] is None]  # they have no digest
    before = work.prepared(part)[0].before if scores else {}
    for name in scores:
        rows = audit.rows.piece(name, audit.rows.numbers[0])
        if differ(rows.prediction, before[name][rows.place - part.first]).any():
            raise InputError("the answers about people differ", where="attached", got=name, remedy="give the model of the run")
    return replace(audit, stream=people, work=replace(work, design=audit.design))


def replay_stream(audit: StreamedAudit, target: Any = None) -> StreamedAudit:
    """Run the same audit again and compare every piece."""
    if audit.work is None or audit.stream is None:
        raise InputError("a loaded run has no model and no people at hand", where="replay", remedy="pass model and X")
    design = audit.design if target is None else audit.design.but(target=target)
    found = run_stream(dict(audit.work.predictors), audit.stream, audit.work.im, design, Execution())
    now = {piece["number"]: piece["files"] for piece in found.info["pieces"]}
    for piece in audit.info["pieces"]:
        if piece["files"] != now.get(piece["number"]):
            raise InputError("counts differ", where="replay", got=f"part {piece['number']}", remedy="the model answers otherwise, or a library has changed")
    return found
