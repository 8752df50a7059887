"""An audit of a stream of people: parts are worked on anywhere, their results are files, and what is asked of the whole is read from these."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design, Execution
from budge.audit.engines import run_blocks
from budge.audit.pieces import PieceWork, read_labels, read_rows
from budge.audit.result import Audit, Context, Rows
from budge.audit.run import OTHER_CODE, PROBE, check_answered, info_of, prepare, probe_of, same_probe, set_aside
from budge.audit.storage import RECORD, design_of, put_in_place, write_record
from budge.audit.tally import Tally, tally_pieces
from budge.errors import DesignError, IncompleteError, InputError, OutputExistsError, Problem, StorageError, nearest
from budge.interaction import InteractionModel
from budge.journal import NAME as JOURNAL
from budge.journal import Journal
from budge.people import Part, People
from budge.stats._checks import Claim
from budge.stats.counts import Counts

if TYPE_CHECKING:
    from budge.audit.recourse import Recourse
    from budge.report.figures import Figure
    from budge.stats import HowMuch

__all__ = ["Everybody", "StreamedAudit", "load_stream", "run_stream"]

FIRST = 1000  # people who are asked about before parts are given out
AGAIN = 3  # finished parts about whose people the models are asked again when a run goes on; the people of all of them are compared
MOST_LOADED = 300_000  # people of a report, which holds everybody
FOLDER = "parts"
IDENTITY = (
    "version", "streams", "design", "spec_digest", "model_digests", "population", "people", "people_digest", "parts", "first_people", "answers_digests",
)  # fmt: skip


def run_stream(model: Any, X: Any, im: Any, design: Design, execution: Execution) -> StreamedAudit:
    """Return the result of the design for a stream of people."""
    if not isinstance(im, InteractionModel):
        raise InputError("a stream of people needs an interaction model over a table", where="im", got=type(im).__name__)
    if not isinstance(design.population, str):
        raise DesignError("a stream takes a condition, not a mask", where="population", remedy="write a condition on the columns, or filter the people")
    people = People.of(X)
    held = tempfile.TemporaryDirectory(prefix="budge-run-") if execution.journal is None else None
    folder = Path(held.name if held is not None else execution.journal).resolve()  # type: ignore[arg-type]
    if people.place is not None and folder.is_relative_to(Path(people.place).resolve()):
        raise InputError("the run would stand among the people", where="journal", got=str(folder), remedy="choose a folder beside that of the people")
    if (folder / RECORD).exists() and not (folder / JOURNAL).exists() and not execution.overwrite:
        raise OutputExistsError("holds a finished run", where=str(folder), remedy="choose another folder, or overwrite it")
    work, info, notes = _prepared(people, model, im, design, execution)
    with Journal.open(folder, {key: info[key] for key in IDENTITY}, overwrite=execution.overwrite) as log:
        if not log.complete:
            (folder / RECORD).unlink(missing_ok=True)  # of a run that is overwritten
        done = _finished(log, folder, work, people, info)
        lost = None
        try:
            _run(log, folder, work, people, done, execution)
        except IncompleteError as error:
            lost = error
        result = _result(folder, work, people, info, notes, done, held)
        if lost is not None:
            raise _given_up(lost, [part for k, part in enumerate(people.parts) if k not in done], people, result)
        counts = [result.tally(name) for name in result.models]
        points = sum(t.total("n") for t in counts), sum(t.total("unresolved") for t in counts)
        check_answered(points, result.design, [c for found in result.info["causes"].values() for c in found], result)
        if not log.complete or not (folder / RECORD).exists():
            result.write_record()
        if not log.complete:
            log.finish()
    return result


def _prepared(people: People, model: Any, im: InteractionModel, design: Design, execution: Execution) -> tuple[PieceWork, dict[str, Any], tuple[Problem, ...]]:
    """Check models and design on the first people; return the work, what is known of the run, and notes."""
    first = people.read(people.parts[0]).iloc[:FIRST]
    for column, _ in design.groups:
        if column not in first.columns:
            raise InputError("no such column", where="groups", got=column, remedy=nearest(column, map(str, first.columns)))
    made = prepare(model, people.for_model(first), im, replace(design, groups=()), check=bool(execution.check))
    made.askers = {name: own.with_kinds(own) for name, own in made.askers.items()}  # others may be answered by fractions
    asked = replace(made.design, groups=design.groups, family=1)
    how = Execution(block_people=execution.block_people, check=execution.check)
    work = PieceWork(replace(people, parts=(), keep=None), made.predictors, im, asked, made.askers, how)
    if asked.rule is not None and asked.adjust in ("holm", "bonferroni"):  # the level at which a rule stops depends on the number of people
        parts = list(enumerate(people.parts))
        try:
            found = [counts for _, counts in run_blocks(work.asked, parts, n_jobs=execution.n_jobs, engine=execution.engine)]
        except IncompleteError as error:
            raise _given_up(error, [people.parts[k] for k in error.lost], people, None) from error  # type: ignore[attr-defined]
        work = replace(work, design=asked.but(family=max(1, *(sum(c[name] for c in found) for name in made.predictors))))
    info = info_of(made)
    info |= {
        "probe": probe_of(made, info) if execution.check else None,
        "design": work.design.to_dict(), "people": len(people), "people_digest": people.digest, "parts": [part.rows for part in people.parts],
        "first_people": made.source.digest(), "labels": None if people.labelled or people.id is not None else list(people.start),
    }  # fmt: skip
    return work, info, made.notes


def _given_up(error: IncompleteError, parts: list[Part], people: People, result: Any) -> IncompleteError:
    """Return the error with the people of parts that were given up."""
    said = [f"positions {part.first:,} to {part.first + part.rows - 1:,}" for part in parts]
    return set_aside(error, said, sum(part.rows for part in parts), len(people), result)


def _file(folder: Path, number: int, model: int) -> Path:
    return folder / FOLDER / f"{number:06d}-{model}.parquet"


def _finished(log: Journal, folder: Path, work: PieceWork, people: People, info: Mapping[str, Any]) -> dict[int, dict[str, Any]]:
    """Return the records of parts that are finished: their files are whole, and every point has an answer or the run is complete."""
    done: dict[int, dict[str, Any]] = {}
    records = log.done()
    probe = records.pop(PROBE, None)
    if probe is None and info["probe"] is not None and not log.complete:
        log.write({PROBE: info["probe"]})
    elif work.execution.check and not same_probe(probe, info["probe"]):
        raise InputError(OTHER_CODE, where=str(log.path), remedy="choose another folder, or overwrite it")
    for key, record in sorted(records.items()):
        done[int(key.partition(":")[2])] = record  # a later attempt takes the place of an earlier one
    for number, record in list(done.items()):
        whole = all(_digest(_file(folder, number, k)) == record["models"][name]["file"] for k, name in enumerate(work.predictors))
        if not whole and log.complete:
            raise StorageError("was changed or lost after it was written", where=str(_file(folder, number, 0)), remedy="make the run again, in another folder")
        if not whole or (not log.complete and any(own["unresolved"] for own in record["models"].values())):
            del done[number]
    if work.execution.check:
        asked = sorted(done)[:: max(1, -(-len(done) // AGAIN))]
        for number in sorted(done):
            if not work.same(people.parts[number], done[number], ask=number in asked):
                what = "this is another run: people of a finished part, or a model's answers about them, are not what they were"
                raise InputError(what, where=str(log.path), got=f"part {number}", remedy="choose another folder, or overwrite it")
    return done


def _run(log: Journal, folder: Path, work: PieceWork, people: People, done: dict[int, dict[str, Any]], execution: Execution) -> None:
    """Work on the parts that are left; each becomes files first, and a line of the journal then."""
    left = [(k, part) for k, part in enumerate(people.parts) if k not in done]
    total, ready = len(people), sum(people.parts[k].rows for k in done)
    progress = execution.progress or (lambda done, total: None)
    progress(ready, total)
    here, inside = execution.n_jobs == 1 and execution.engine in (None, "serial"), 0

    def told(more: int) -> None:
        nonlocal inside
        inside += more
        progress(min(ready + inside, total), total)

    (folder / FOLDER).mkdir(exist_ok=True)
    known = {_file(folder, number, k) for number in done for k in range(len(work.predictors))}
    for path in (folder / FOLDER).iterdir():
        if path not in known:  # of a run that was overwritten, or killed between a file and its line
            path.unlink()
    attempt = log.attempt
    for _, piece in run_blocks(replace(work, told=told if here else None), left, n_jobs=execution.n_jobs, engine=execution.engine):
        for k, name in enumerate(work.predictors):
            put_in_place(_file(folder, piece.number, k), piece.files[name])
        log.write({f"{attempt:06d}:{piece.number:012d}": dict(piece.record)})
        done[piece.number] = dict(piece.record)
        ready, inside = ready + people.parts[piece.number].rows, 0
        progress(ready, total)


def _digest(path: Path) -> str:
    try:
        return blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return ""


def _result(
    folder: Path, work: PieceWork, people: People, info: Mapping[str, Any], notes: tuple[Problem, ...], done: Mapping[int, Mapping[str, Any]], held: Any
) -> StreamedAudit:
    """Return the result of the parts that are done."""
    order = sorted(done)
    names = tuple(work.predictors)
    said = {repr(note): Problem(**note) for k in order for note in done[k]["notes"]}
    causes = {name: list(dict.fromkeys(c for k in order for c in done[k]["models"][name]["causes"]))[:3] for name in names}
    seen = blake2b("".join(done[k]["data"] for k in order).encode(), digest_size=16)
    more = {
        "already": {name: sum(done[k]["models"][name]["already"] for k in order) for name in names}, "causes": causes, "data_digest": seen.hexdigest(),
        "pieces": [
            {"number": k, "first": people.parts[k].first, "rows": people.parts[k].rows, "files": [done[k]["models"][n]["file"] for n in names]} for k in order
        ],
        "twins": None,
    }  # fmt: skip
    rows = Everybody(folder, names, tuple(order))
    found = StreamedAudit(rows, work.design, {**info, **more}, (*notes, *said.values()), stream=people, work=work, held=held)
    shared = [t.units.people - t.units.units for t in (found.tally(name) for name in names)]
    return replace(found, info={**found.info, "twins": max(shared)}, kept=found.kept)


class Everybody(Mapping[str, Rows]):
    """The rows of each model, in files: one piece at a time, or all of them when they are asked for by the name of the model."""

    def __init__(self, folder: Path, models: tuple[str, ...], numbers: tuple[int, ...]):
        self.folder, self.models, self.numbers = folder, models, numbers
        self._last: tuple[tuple[str, int], Rows] | None = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, model: str) -> Rows:
        return self._all[model]

    @cached_property
    def _all(self) -> dict[str, Rows]:
        return {model: _joined([self.piece(model, number) for number in self.numbers]) for model in self.models}

    def piece(self, model: str, number: int) -> Rows:
        """Return the rows of one piece."""
        if self._last is None or self._last[0] != (model, number):
            path = _file(self.folder, number, self.models.index(model))
            try:
                self._last = (model, number), read_rows(path)
            except Exception as error:
                raise StorageError(f"cannot be read: {error}", where=str(path), remedy="make the run again") from error
        return self._last[1]

    def labels(self, model: str, number: int) -> pd.Index:
        """Return the labels of one piece."""
        return read_labels(_file(self.folder, number, self.models.index(model)))

    def pieces(self, model: str) -> Iterator[tuple[int, Rows]]:
        """Yield the rows, piece by piece."""
        for number in self.numbers:
            yield number, self.piece(model, number)


def _joined(parts: list[Rows]) -> Rows:
    parts = [p for p in parts if len(p.place)] or parts[:1]  # a part in which nobody was asked about has columns of no type
    if len(parts) == 1:
        return parts[0]
    place, prediction, units = (np.concatenate([getattr(p, name) for p in parts]) for name in ("place", "prediction", "units"))
    index, groups = parts[0].index.append([p.index for p in parts[1:]]), pd.concat([p.groups for p in parts])
    return Rows(index, place, prediction, units, Counts.join([p.counts for p in parts]), groups)


@dataclass(frozen=True, eq=False)
class StreamedAudit(Audit):
    """An audit whose rows stand in files, one per part and model (``parts/*.parquet`` in its folder).

    Summaries, shares, groups and single people are read piece by piece, and `tables` yields one piece after the other. `table` and `claims` load everybody,
    and so do a report and figures of everybody, of at most 300,000 people.
    """

    stream: People | None = field(default=None, repr=False)
    work: PieceWork | None = field(default=None, repr=False)
    held: Any = field(default=None, repr=False)  # the folder of a run that is not kept
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # tallies, once they were made

    rows: Everybody

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        return self.rows.folder

    # -- the whole, piece by piece ----------------------------------------------------------------------------------------

    def tally(self, model: str | None = None) -> Tally:
        """Return how many people have the same counts."""
        name = self._named(model)
        if name not in self.kept and self.design.groups:
            self.tallies(self.design.groups[0][0], name)  # one pass for both
        elif name not in self.kept:
            self.kept[name], _ = tally_pieces((rows for _, rows in self.rows.pieces(name)), self.info["people"], self.design)
        found: Tally = self.kept[name]
        return found

    def tallies(self, group: Any, model: str | None = None) -> Mapping[Any, Tally]:
        """Return the same for every group: a column by name, or a Series."""
        name = self._named(model)
        key = (name, group) if isinstance(group, str) else None
        if key is not None and key in self.kept:
            return dict(self.kept[key])
        pieces = (rows for _, rows in self.rows.pieces(name))
        self.kept[name], found = tally_pieces(pieces, self.info["people"], self.design, lambda rows: self._groups(rows, group))
        if key is not None:
            self.kept[key] = found
        return found

    def _groups(self, rows: Rows, group: Any) -> pd.Series:
        """Return the group of each row of a piece."""
        if isinstance(group, pd.Series):
            return group.loc[rows.index]
        if not isinstance(group, str):
            raise InputError("a column or a Series is needed for a stream of people", where="by", got=type(group).__name__)
        if group in rows.groups.columns:
            return rows.groups[group]
        if self.stream is None or self.work is None:
            raise InputError("a saved run keeps the groups of its design only", where="by", got=group, remedy=nearest(group, map(str, rows.groups.columns)))
        if group not in self.stream.columns:
            raise InputError("no such column", where="by", got=group, remedy=nearest(group, self.stream.columns))
        if not len(rows.place):
            return pd.Series([], dtype=object)
        part = self.stream.parts[self.stream.part_of(int(rows.place[0]))]
        return self.stream.read(part)[group].iloc[rows.place - part.first]

    def in_memory(self, model: str | None = None, *, naming: str = "") -> Iterator[Audit]:
        """Yield the audits of the parts; people are read again where the text names one of their columns. Adjusted p-values allow for everybody."""
        name = self._named(model)
        needed = self.stream is not None and any(re.search(rf"\b{re.escape(c)}\b", naming) for c in self.stream.columns)
        for number, rows in self.rows.pieces(name):
            yield self._piece(name, number, rows, self._context_of(number) if needed else None)

    def tables(self, model: str | None = None) -> Iterator[pd.DataFrame]:
        """Yield the table of one model, piece by piece; adjusted p-values allow for everybody."""
        name = self._named(model)
        for number, rows in self.rows.pieces(name):
            yield self._piece(name, number, rows).table

    def _adjusted(self, piece: Audit, name: str, side: Claim) -> npt.NDArray[np.float64]:
        """Return the p-values of one claim for the rows of a piece, adjusted over everybody."""
        tally = self.tally(name)
        known, adjusted, p = tally.claims.p_value(side), tally.adjusted(side, self.design.adjust), piece.claims(name).p_value(side)
        order = np.argsort(known)[: int((~np.isnan(known)).sum())]
        found = np.full(len(p), np.nan)
        tested = ~np.isnan(p)
        found[tested] = adjusted[order[np.searchsorted(known[order], p[tested])]]
        return found

    def people(self, verdict: str, *, adjusted: bool = False, model: str | None = None) -> pd.DataFrame:
        """Return the people with a verdict; with `adjusted`, only those whose claim survives the adjustment for many people."""
        name, found = self._named(model), []
        for number, rows in self.rows.pieces(name):
            piece = self._piece(name, number, rows)
            chosen = piece.claims(name).named(verdict)
            if adjusted and verdict in ("below", "above"):
                p = self._adjusted(piece, name, verdict)  # type: ignore[arg-type]
                chosen &= np.isnan(p) | (p < self.design.alpha)
            found.append(piece.table[chosen])
        return pd.concat(found)

    # -- one person -------------------------------------------------------------------------------------------------------

    def piece_of(self, label: Any, model: str | None = None) -> Audit:
        """Return the audit of the part in which a person stands, in memory, with the models and people of the part where they are at hand."""
        name = self._named(model)
        place: Any = None
        if self.info["labels"] is not None and isinstance(label, int | np.integer):
            first, step = self.info["labels"]
            place = (label - first) / step
        found = []
        for piece in self.info["pieces"]:
            number, here = piece["number"], place is None or piece["first"] <= place < piece["first"] + piece["rows"]
            if here and label in self.rows.labels(name, number):
                found.append(number)
        if len(found) > 1:
            raise InputError("several parts have somebody of that label", where="label", got=label, remedy="labels must differ between people")
        if found:
            return self._piece(name, found[0], self.rows.piece(name, found[0]), self._context_of(found[0]))
        raise InputError("nobody of that label was audited", where="label", got=label, remedy="labels are those of the people's index, or positions")

    def _piece(self, name: str, number: int, rows: Rows, context: Context | None = None) -> Audit:
        first = 0 if context is None or self.stream is None else self.stream.parts[number].first
        piece = Audit({name: replace(rows, place=rows.place - first)}, self.design, self.info, self.notes, context)
        piece.table["p_adjusted"] = self._adjusted(piece, name, self.design.claim)  # the table is kept with the piece
        return piece

    def _context_of(self, number: int) -> Context | None:
        if self.stream is None or self.work is None:
            return None
        key = "context", number
        if key not in self.kept:
            self.kept["context", number] = self.work.context(self.stream.parts[number])
            for old in [k for k in self.kept if isinstance(k, tuple) and k[0] == "context" and k != key]:
                del self.kept[old]
        found: Context = self.kept[key]
        return found

    def witness(self, label: Any, *, model: str | None = None) -> Any:
        """Return a near reachable point that attains the target: see `Audit.witness`."""
        return self.piece_of(label, model).witness(label)

    def why_not(self, label: Any, *, model: str | None = None) -> str:
        """Return why a person has no witness; nothing where there is one."""
        return self.piece_of(label, model).why_not(label)

    def change(self, label: Any, *, model: str | None = None) -> pd.DataFrame:
        """Return what the witness changes: feature, from, to."""
        found = self.piece_of(label, model)
        if found.context is None and not found.why_not(label):
            raise InputError("the people and the model are not at hand", where="change", got=label, remedy="use attached(model, X) first")
        return found.change(label)

    def recourse(self, label: Any, *, model: str | None = None, k: int = 1, cost: Any = None, seconds: float | None = None) -> Recourse:
        """Return the least change that attains the target for one person: see `budge.recourse`."""
        return self.piece_of(label, model).recourse(label, k=k, cost=cost, seconds=seconds)

    def how_much(self, label: Any, *, model: str | None = None) -> HowMuch:
        """Return the distribution of the change of a score for one person."""
        return self.piece_of(label, model).how_much(label)

    # -- files ------------------------------------------------------------------------------------------------------------

    def write_record(self) -> None:
        """Write what is not in the pieces."""
        record = {"info": dict(self.info), "design": self.design.to_dict(), "notes": [p.to_dict() for p in self.notes]}
        write_record(self.folder / RECORD, record, kind="stream")

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Copy the run to another folder; in its own there is nothing left to do."""
        place = Path(folder)
        if place.resolve() == self.folder.resolve():
            self.write_record()
            return place
        if place.exists() and any(place.iterdir()) and not overwrite:
            raise OutputExistsError("exists already", where=str(place), remedy="choose another folder, or overwrite")
        if self.folder.is_relative_to(place.resolve()):
            raise InputError("the run itself stands in this folder", where="save", got=str(place), remedy="choose another folder")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=place.parent, prefix=f".{place.name}.") as half:
                shutil.copytree(self.folder / FOLDER, Path(half) / "run" / FOLDER)
                replace(self, rows=Everybody(Path(half) / "run", self.models, self.rows.numbers)).write_record()
                place.mkdir(exist_ok=True)
                for old in (place / RECORD, *place.glob("journal.*")):
                    old.unlink(missing_ok=True)
                if (place / FOLDER).exists():
                    shutil.rmtree(place / FOLDER)
                for name in (FOLDER, RECORD):  # the record, which names the others by digest, comes last
                    (Path(half) / "run" / name).rename(place / name)
        except OSError as error:
            raise StorageError(f"cannot be written: {error.strerror or error}", where=str(place), remedy="choose a folder that can be written") from error
        return place

    def attached(self, model: Any, X: Any, im: Any = None) -> StreamedAudit:
        """Return a loaded run with its models and people at hand, for questions about single people; others are an error."""
        people = People.of(X)
        spec = im if im is not None else InteractionModel.from_spec(self.info["spec"])
        named = model if isinstance(model, Mapping) else {self.models[0]: model}
        work, info, _ = _prepared(people, named, spec, self.design, Execution())
        for key in ("spec_digest", "people_digest", "parts", "first_people", "model_digests", "answers_digests"):
            if info[key] != self.info[key]:
                raise InputError(f"the {key.replace('_', ' ')} differs", where="attached", got=info[key], remedy=f"the run had {self.info[key]}")
        if not same_probe(self.info["probe"], info["probe"]):
            raise InputError(OTHER_CODE, where="attached", remedy="give the model of the run")
        return replace(self, stream=people, work=replace(work, design=self.design))

    def replay(self, model: Any = None, X: Any = None, im: Any = None, *, target: Any = None) -> Audit:
        """Run the same audit again and check that every piece is the same."""
        again = self if model is None and X is None else self.attached(model, X, im)
        if again.work is None or again.stream is None:
            raise InputError("a loaded run has no model and no people at hand", where="replay", remedy="pass model and X")
        design = self.design if target is None else self.design.but(target=target)
        found = run_stream(dict(again.work.predictors), again.stream, again.work.im, design, Execution())
        for one, two in zip(self.info["pieces"], found.info["pieces"]):
            if one["files"] != two["files"]:
                raise InputError("counts differ", where="replay", got=f"part {one['number']}", remedy="the model answers otherwise, or a library has changed")
        return found

    def whole(self) -> Audit:
        """Return the same audit with everybody in memory, as reports and figures of everybody need it; of at most 300,000 people."""
        if self.info["people"] > MOST_LOADED:
            remedy = "print the summary, read parts/*.parquet, or audit some of the people"
            raise InputError(f"everybody is needed in memory, and these are more than {MOST_LOADED:,}", where="people", got=self.info["people"], remedy=remedy)
        context = None
        if self.stream is not None and self.work is not None:
            everybody = pd.concat([self.stream.read(part) for part in self.stream.parts])
            people = replace(self.stream, parts=(), labelled=True, id=None)
            context = replace(self.work, people=people).context(Part(0, len(everybody), _Read(everybody)))
        return Audit({name: self.rows[name] for name in self.models}, self.design, self.info, self.notes, context)

    def to_dict(self) -> dict[str, Any]:
        """Return the record: design, digests and summaries; people stand in the files."""
        return {"info": dict(self.info), "summary": {name: self.summary(name).to_dict() for name in self.models}, "table": str(self.folder / FOLDER)}

    def plot(
        self, kind: Literal["cdf", "verdicts", "person", "how_much"] = "cdf", *, by: Any = None, label: Any = None, model: str | None = None,
        most: int = 2000,
    ) -> Figure:  # fmt: skip
        """Return a figure: see `Audit.plot`. Those of everybody load everybody."""
        if kind in ("person", "how_much"):
            return self.piece_of(label, model).plot(kind, label=label, most=most)
        return self.whole().plot(kind, by=by, model=model)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=next(self.tables(self.models[0]), None))


@dataclass(frozen=True)
class _Read:
    """People who were read already."""

    frame: pd.DataFrame

    def read(self) -> pd.DataFrame:
        """Return them."""
        return self.frame


def load_stream(folder: Path, record: Mapping[str, Any]) -> StreamedAudit:
    """Return a saved run of a stream; a file that was changed since is an error that names it."""
    info = record["info"]
    names = tuple(info["models"])
    for piece in info["pieces"]:
        for k in range(len(names)):
            path = _file(folder, int(piece["number"]), k)
            if not path.exists():
                raise StorageError("is missing from the run", where=str(path))
            if _digest(path) != piece["files"][k]:
                raise StorageError("was changed after it was written: its digest differs", where=str(path))
    rows = Everybody(folder, names, tuple(int(p["number"]) for p in info["pieces"]))
    return StreamedAudit(rows, design_of(record), info, tuple(Problem(**note) for note in record["notes"]))
