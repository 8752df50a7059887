"""The result of an audit of a stream of people: rows stand in files, and what is asked of all people is read from these, piece by piece."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.design import Design
from budge.audit.failing import ASIDE
from budge.audit.loading import PARTS, design_of, digest_of, notes_of, piece_files
from budge.audit.pieces import PieceWork, read_labels, read_rows
from budge.audit.result import Audit
from budge.audit.rows import Context, Rows
from budge.audit.sources import make_source
from budge.audit.storage import RECORD, tidy, write_record
from budge.audit.tally import Tally, tally_pieces
from budge.errors import InputError, OutputExistsError, StorageError, nearest
from budge.files import make_folder, remove, whole_file
from budge.people import People
from budge.stats._checks import Claim
from budge.stats.counts import Counts
from budge.stored import MEGABYTE, read_bytes, reading

if TYPE_CHECKING:
    from budge.audit.recourse import Recourse
    from budge.report.figures import Figure
    from budge.stats import HowMuch

__all__ = ["PieceRows", "StreamedAudit", "file_digest", "load_stream"]

MOST_LOADED = 300_000  # people of a report, which holds all of them
MOST_PIECES, MOST_PIECE = 10**6, 1024 * MEGABYTE  # files of a model, and bytes of one


def file_digest(path: Path) -> str:
    """Return the digest of a file; nothing where there is none."""
    try:
        return digest_of(read_bytes(path, MOST_PIECE))
    except StorageError:
        return ""


class PieceRows(Mapping[str, Rows]):
    """The rows of each model, in files: one piece at a time, or all of them when they are asked for by the name of the model."""

    def __init__(self, folder: Path, info: Mapping[str, Any], design: Design | None = None):
        """Keep where the rows are; those of a loaded run are checked against its record and its design."""
        self.folder, self.models, self.design = folder, tuple(info["models"]), design
        self.stated = {int(piece["number"]): piece for piece in info["pieces"]}
        self.numbers = tuple(self.stated)
        self._files = dict(zip(((number, model) for number in self.numbers for model in self.models), piece_files(folder, info)))
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
            with self._file(model, number) as file:
                rows = read_rows(file)
                if self.design is not None:
                    piece = self.stated[number]
                    rows.check(piece["first"] + piece["rows"], self.design)
                    missing = self.design.population == "all" and len(rows.place) != piece["rows"]
                    if missing or (len(rows.place) and rows.place[0] < piece["first"]):
                        raise ValueError("rows are not those of the people of this part")
            self._last = (model, number), rows
        return self._last[1]

    @contextmanager
    def _file(self, model: str, number: int) -> Iterator[bytes]:
        """Yield the content of a file, which is the one that the record names; whatever is wrong with it is an error that names it."""
        path = self._files[number, model]
        data = read_bytes(path, MOST_PIECE, missing="is missing from the run", remedy="make the run again")
        if self.design is not None and digest_of(data) != self.stated[number]["files"][self.models.index(model)]:
            raise StorageError("was changed after it was written: its digest differs", where=str(path))
        with reading(path, "cannot be read"):
            yield data

    def labels(self, model: str, number: int) -> pd.Index:
        """Return the labels of one piece."""
        with self._file(model, number) as file:
            return read_labels(file)

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


@dataclass(frozen=True, eq=False, repr=False)
class StreamedAudit(Audit):
    """An audit whose rows stand in files, one per part and model (``parts/*.parquet`` in its folder).

    Summaries, shares, groups and single people are read piece by piece, and `tables` yields one piece after the other. `table` and `claims` load all people,
    and so do a report and figures of all people, of at most 300,000 people.
    """

    stream: People | None = field(default=None, repr=False)
    work: PieceWork | None = field(default=None, repr=False)
    held: Any = field(default=None, repr=False)  # the folder of a run that is not kept
    kept: dict[Any, Any] = field(default_factory=dict, repr=False)  # tallies, once they were made

    rows: PieceRows

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
        """Yield the audits of the parts; people are read again where the text names one of their columns. Adjusted p-values allow for all people."""
        name = self._named(model)
        needed = self.stream is not None and any(re.search(rf"\b{re.escape(c)}\b", naming) for c in self.stream.columns)
        for number, rows in self.rows.pieces(name):
            yield self._piece(name, number, rows, self._context_of(number) if needed else None)

    def tables(self, model: str | None = None) -> Iterator[pd.DataFrame]:
        """Yield the table of one model, piece by piece; adjusted p-values allow for all people."""
        name = self._named(model)
        for number, rows in self.rows.pieces(name):
            yield self._piece(name, number, rows).table

    def _adjusted(self, piece: Audit, name: str, side: Claim) -> npt.NDArray[np.float64]:
        """Return the p-values of one claim for the rows of a piece, adjusted over all people."""
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
        if place.exists() and not place.is_dir():
            raise OutputExistsError("is a file", where=str(place), remedy="choose another folder")
        if place.exists() and any(place.iterdir()) and not overwrite:
            raise OutputExistsError("exists already", where=str(place), remedy="choose another folder, or overwrite")
        if self.folder.is_relative_to(place.resolve()):
            raise InputError("the run itself stands in this folder", where="save", got=str(place), remedy="choose another folder")
        made = make_folder(place)
        try:
            make_folder(place / PARTS)
            for old, new in zip(piece_files(self.folder, self.info), piece_files(place, self.info)):
                with whole_file(new) as file, old.open("rb") as source:
                    shutil.copyfileobj(source, file)
            replace(self, rows=PieceRows(place, self.info)).write_record()
        except BaseException:
            tidy(place, made=made)
            raise
        remove(place.glob("journal.*"))  # of the run that stood there
        tidy(place)
        return place

    def attached(self, model: Any, X: Any, im: Any = None) -> StreamedAudit:
        """Return a loaded run with its models and people at hand, for questions about single people; others are an error."""
        from budge.audit.streaming import attach

        return attach(self, model, X, im)

    def replay(self, model: Any = None, X: Any = None, im: Any = None, *, target: Any = None) -> Audit:
        """Run the same audit again and check that every piece is the same."""
        from budge.audit.streaming import replay_stream

        return replay_stream(self if model is None and X is None else self.attached(model, X, im), target)

    def whole(self) -> Audit:
        """Return the same audit with all people in memory, as reports and figures of all people need it; of at most 300,000 people."""
        if self.info["people"] > MOST_LOADED:
            remedy = "print the summary, read parts/*.parquet, or audit some of the people"
            problem = f"all people are needed in memory, and these are more than {MOST_LOADED:,}"
            raise InputError(problem, where="people", got=self.info["people"], remedy=remedy)
        context = None
        if self.stream is not None and self.work is not None:
            people = pd.concat([self.stream.read(part) for part in self.stream.parts])
            source = make_source(self.work.im, self.stream.for_model(people), self.design.on_invalid)
            context = Context(self.work.predictors, people, self.work.im, source)
        return Audit({name: self.rows[name] for name in self.models}, self.design, self.info, self.notes, context)

    def to_dict(self) -> dict[str, Any]:
        """Return the record: design, digests and summaries; people stand in the files."""
        return {"info": dict(self.info), "summary": {name: self.summary(name).to_dict() for name in self.models}, "table": str(self.folder / PARTS)}

    def plot(
        self, kind: Literal["cdf", "verdicts", "person", "how_much"] = "cdf", *, by: Any = None, label: Any = None, model: str | None = None,
        most: int = 2000,
    ) -> Figure:  # fmt: skip
        """Return a figure: see `Audit.plot`. Those of all people load all people."""
        if kind in ("person", "how_much"):
            return self.piece_of(label, model).plot(kind, label=label, most=most)
        return self.whole().plot(kind, by=by, model=model)

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=next(self.tables(self.models[0]), None))


def load_stream(folder: Path, record: Mapping[str, Any]) -> StreamedAudit:
    """Return a saved run of a stream; a file that was changed since is an error that names it."""
    info = record["info"]
    names, people = tuple(info["models"]), info["people"]
    with reading(folder / RECORD):
        design = design_of(record)
        numbers = [piece["number"] for piece in info["pieces"]]
        if not names or not numbers or any(low >= high for low, high in pairwise(numbers)) or numbers[-1] >= MOST_PIECES:
            raise ValueError("info.pieces has no pieces, or some twice")
        if list(info["already"]) != list(names) or not set(info.get("causes", {})) <= set(names):
            raise ValueError("info.already or info.causes is about other models")
        if any(one["first"] + one["rows"] > two["first"] for one, two in pairwise([*info["pieces"], {"first": people}])):
            raise ValueError(f"info.pieces overlap, or have more than the {people:,} people")
        if sum(info["parts"]) != people or any(not 0 <= k < len(info["parts"]) or info["parts"][k] != p["rows"] for k, p in zip(numbers, info["pieces"])):
            raise ValueError("info.parts are other people than those of the pieces")
        if any(len(piece["files"]) != len(names) for piece in info["pieces"]):
            raise ValueError("info.pieces have other numbers of files than there are models")
        if len(numbers) < len(info["parts"]) and not any(note["where"] == ASIDE for note in record["notes"]):
            raise ValueError("info.pieces lack people, and no note states that some were set aside")
        if (folder / PARTS).is_symlink():
            raise StorageError("is a link, not a folder", where=str(folder / PARTS), remedy="put the files themselves there")
    for path, digest in zip(piece_files(folder, info), (digest for piece in info["pieces"] for digest in piece["files"])):
        if digest_of(read_bytes(path, MOST_PIECE, missing="is missing from the run")) != digest:
            raise StorageError("was changed after it was written: its digest differs", where=str(path))
    return StreamedAudit(PieceRows(folder, info, design), design, info, notes_of(record))
