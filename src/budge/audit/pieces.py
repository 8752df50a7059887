"""One part of a stream of people: read where it is worked on, audited like any table, and returned as Parquet files, one per model."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from budge.audit.ask import Asker, DriftError, answers_digest
from budge.audit.counting import Counted
from budge.audit.design import Design, Execution
from budge.audit.failing import Streak
from budge.audit.resuming import answers_still, blocks_of, latest, missed, recounted, shuffled, unsettled, without
from budge.audit.rows import Context, Rows
from budge.audit.run import Blocks, Prepared, drifted, labelled, prepare, rows_of
from budge.audit.sources import FloatArray, TableSource, make_source
from budge.errors import DataError, IncompleteError, ModelError
from budge.footers import check_contents, check_texts, footer_of, groups_of
from budge.models import Predictor
from budge.models.contained import reason
from budge.models.contract import differ
from budge.people import Part, People
from budge.stats.claims import EXACTNESS, EXTREMES, VERDICTS, Claims, claim
from budge.stats.counts import LAWS, PROOFS, STATUSES, Counts
from budge.stats.weights import Heavy

__all__ = ["Piece", "PieceWork", "read_labels", "read_rows", "written_rows"]

#: Columns that are written as words, and their words.
WORDS = {"status": STATUSES, "method": LAWS, "proof": PROOFS, "verdict": VERDICTS, "exactness": EXACTNESS, "extreme": EXTREMES}
CLAIMED = ("rho", "low", "high", "lower", "upper")  # for readers other than budge, which makes claims from the counts again
COUNTED = ("n", "hits", "unresolved", "hit_mass", "lost_mass", "asked", "witness", "approximate")
RAGGED, EACH = ("weight", "hits", "lost"), ("top", "n", "effective")  # of `Heavy`: several per row, one per row
#: The types of columns in a file.
_LISTS, _WORDS = "large_list<element: {}>", ("dictionary<values=string, indices=int8, ordered=0>", "dictionary<values=string, indices=int32, ordered=0>")
KINDS = {
    **dict.fromkeys(("place", "unit", "n", "hits", "unresolved", "asked"), ("int64",)), "witness": ("int32",), "approximate": ("bool",),
    **dict.fromkeys(("hit_mass", "lost_mass", *CLAIMED, "p_value", *(f"heavy.{name}" for name in EACH)), ("double",)),
    **dict.fromkeys(("reached", "heavy.weight"), (_LISTS.format("double"),)), **dict.fromkeys(("heavy.hits", "heavy.lost"), (_LISTS.format("int64"),)),
    **dict.fromkeys(WORDS, _WORDS),
}  # fmt: skip
UNREAD = (*CLAIMED, "p_value", "verdict", "exactness", "extreme")
MOST_COLUMNS = 1000


@dataclass(frozen=True)
class Share:
    """A part that is given out, with the files and the reasons that an earlier attempt has left, if it left points without an answer."""

    number: int
    part: Part
    attempt: int
    files: Mapping[str, bytes]
    causes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Piece:
    """What comes back from one part: a file per model, and what a journal notes of it."""

    number: int
    files: Mapping[str, bytes]
    record: Mapping[str, Any]


@dataclass(frozen=True)
class PieceWork:
    """Audits one part after the other; sent to each worker once."""

    people: People  # without its parts
    predictors: Mapping[str, Predictor]
    im: Any
    design: Design
    askers: Mapping[str, Asker]  # of the first people: what kinds of answers there are
    execution: Execution
    told: Callable[[int], None] | None = None  # where somebody waits for a part in the same process

    def prepared(self, part: Part) -> tuple[Prepared, pd.DataFrame]:
        """Return the audit of a part, ready to be counted, and the people with all their columns."""
        everything = self.people.read(part)
        plain = replace(self.design, groups=())
        try:
            return prepare(self.predictors, self.people.for_model(everything), self.im, plain, check=False, like=self.askers), everything
        except ModelError as error:  # the first people were answered about: what is done is kept
            raise IncompleteError(error.problems) from error

    def context(self, part: Part) -> Context:
        """Return the models and the people of a part, for questions about single people."""
        everything = self.people.read(part)
        return Context(self.predictors, everything, self.im, make_source(self.im, self.people.for_model(everything), self.design.on_invalid))

    def __call__(self, share: Share) -> Piece:
        """Return the piece of a part; people whose points all have answers in the files of an earlier attempt are not asked about again."""
        part = share.part
        made, everything = self.prepared(part)
        seen = [replace(block, causes=share.causes) for block in _blocks(share.files, part)]
        known, again = np.concatenate([np.zeros(0, np.intp), *(block.people for block in seen)]), unsettled(seen)
        left = np.concatenate([made.todo[~np.isin(made.todo, known)], shuffled(again, share.attempt)])
        work, streak, blocks = replace(made.work, check=bool(self.execution.check)), Streak(self.design), 0
        for second in (False, True):  # as in `run_audit`
            before = len(seen)
            for block in Blocks(made, left, self.execution, self.told):
                seen.append(work(block))
                if self.execution.check != "warn":
                    DriftError.raise_if(seen[-1].drift)
                work, blocks = replace(work, down=seen[-1].down if streak.add(seen[-1], ends=False) else frozenset()), blocks + 1
            left = missed(seen[before:])
            if second or work.down or not len(left):
                break
        done, silent = latest(seen, len(made.source)), list[str]()
        notes = tuple(dict.fromkeys(replace(p, severity="warning") for block in done for p in block.drift))
        try:
            notes += drifted(made.predictors, made.source.starts(), made.before, self.execution.check, None) if not work.down else ()
        except IncompleteError as error:
            silent = [str(error)]
        rows, causes = rows_of(made, done)
        files, record = {}, {}
        for name, own in rows.items():
            groups = {c: labelled(everything[c].iloc[own.place], dict(words)) for c, words in self.design.groups}
            own = replace(own, place=own.place + part.first, units=_keys(made.source, own.place), groups=pd.DataFrame(groups, index=own.index))
            files[name] = written_rows(own, claim(own.counts, self.design), self.design)
            hits = np.asarray(self.design.target.hits(made.before[name], made.before[name]))
            record[name] = {
                "people": len(own.counts), "already": int(hits.sum()), "points": int(own.counts.n.sum()), "unresolved": int(own.counts.unresolved.sum()),
                "unsettled": int(own.counts.unsettled.sum()),
                "answers": answers_digest(made.before[name]), "causes": causes[name], "file": blake2b(files[name], digest_size=16).hexdigest(),
            }  # fmt: skip
        more = {"data": made.source.digest(), "notes": [p.to_dict() for p in (*made.notes, *notes)], "down": streak.blocks, "blocks": blocks}
        return Piece(share.number, files, {"models": record, "silent": silent, **more})

    def same(self, part: Part, record: Mapping[str, Any], files: Mapping[str, bytes] | None) -> bool:
        """Return whether a part has the people that a record notes; with its files, whether the models answer about them as noted, too."""
        if files is None:
            return bool(self.context(part).source.digest() == record["data"])
        try:
            made, _ = self.prepared(part)
        except MemoryError as error:
            raise IncompleteError(f"there is no memory to ask about people again: {reason(error)}", where="model", remedy="make room") from error
        answers, blocks = {name: answers_digest(before) for name, before in made.before.items()}, _blocks(files, part)
        if made.source.digest() != record["data"] or answers != {name: own["answers"] for name, own in record["models"].items()}:
            return False
        for name, content in files.items():  # scores have no digest
            own = read_rows(content)
            place = own.place - part.first
            if answers[name] is None and (not np.isin(made.asked[name].nonzero()[0], place).all() or differ(own.prediction, made.before[name][place]).any()):
                return False
        return recounted(made, without(blocks, unsettled(blocks))) is None

    def still(self, part: Part, files: Mapping[str, bytes]) -> bool:
        """Return whether the models answer about people of a part who have all answers."""
        return answers_still(self.prepared(part)[0], _blocks(files, part))

    def asked(self, numbered: tuple[int, Part]) -> dict[str, int]:
        """Return how many people of a part each model's audit is about."""
        made, _ = self.prepared(numbered[1])
        return {name: int(mask.sum()) for name, mask in made.asked.items()}


def _blocks(files: Mapping[str, bytes], part: Part) -> list[Counted]:
    return blocks_of({name: read_rows(content) for name, content in files.items()}, part.first)


def _keys(source: Any, place: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return a number per row that is equal for equal content, in every part alike."""
    assert isinstance(source, TableSource)
    names = [f.name for f in source.model.features]
    found = np.zeros(len(place), np.uint64)
    for j in sorted(range(len(names)), key=lambda j: names[j]):
        bits = np.where(np.isnan(column := source.values[place, j]), np.nan, column + 0.0).view(np.uint64)
        found = (found ^ bits) * np.uint64(0x9E3779B97F4A7C15)
        found ^= found >> np.uint64(32)
    return found.view(np.int64)


# -- files --------------------------------------------------------------------------------------------------------------


def written_rows(rows: Rows, claims: Claims, design: Design) -> bytes:
    """Return the rows of one model as a Parquet file: the columns of the audit's table, and what the counts hold besides."""
    import pyarrow as pa
    from pyarrow import parquet

    counts = rows.counts
    codes = {
        "status": counts.status, "method": counts.law, "proof": counts.proof, "verdict": claims.verdict_code, "exactness": claims.exactness_code,
        "extreme": claims.extreme_code,
    }  # fmt: skip
    try:
        columns: dict[str, Any] = {"person": pa.array(rows.index), "place": rows.place, "prediction": pa.array(rows.prediction)}
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"labels or answers of several types, or beyond 64 bits, cannot be kept: {error}", where="X") from None
    columns |= {name: pa.DictionaryArray.from_arrays(pa.array(code), list(WORDS[name])) for name, code in codes.items()}
    columns |= {name: getattr(counts, name) for name in COUNTED} | {name: getattr(claims, name) for name in CLAIMED}
    columns |= {"p_value": claims.p_value(design.claim), "unit": rows.units}
    columns |= {f"group.{c}": _group(rows.groups[c]) for c in rows.groups.columns}
    if counts.reached.shape[1]:
        columns["reached"] = _lists(counts.reached.ravel(), np.where(counts.witness >= 0, counts.reached.shape[1], 0))
    heavy, weighted = counts.heavy, counts.is_law("weighted")
    if weighted.any():
        each = np.zeros(len(counts), np.int64)
        each[weighted] = np.bincount(heavy.row, minlength=len(heavy.n))
        columns |= {f"heavy.{name}": _lists(getattr(heavy, name), each) for name in RAGGED}
        for name in EACH:
            columns[f"heavy.{name}"] = np.zeros(len(counts))
            columns[f"heavy.{name}"][weighted] = getattr(heavy, name)
    sink = io.BytesIO()
    named = {} if rows.index.name is None else {"person": str(rows.index.name)}
    parquet.write_table(pa.table(columns).replace_schema_metadata(named), sink, compression="zstd")
    return sink.getvalue()


def _group(values: pd.Series) -> Any:
    """Return a column of groups; names of several types become texts."""
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError):
        return pa.array(values.map(str, na_action="ignore"), from_pandas=True)


def _lists(values: npt.NDArray[Any], counts: npt.NDArray[np.int64]) -> Any:
    import pyarrow as pa

    return pa.LargeListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64()), pa.array(values))


def read_labels(data: bytes) -> pd.Index:
    """Return the labels of the rows in a file."""
    found: pd.Index = pd.Index(_opened(data).read(columns=["person"]).column("person").to_pandas().array)
    return found


def _opened(data: bytes) -> Any:
    """Return a Parquet file whose columns are those of rows, and whose footer states no more of them than its size allows; or raise a `ValueError`."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(pa.BufferReader(data), thrift_string_size_limit=len(data), thrift_container_size_limit=len(data))
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None
    many, schema = file.metadata.num_rows, file.schema_arrow
    if len(schema) > MOST_COLUMNS:
        raise ValueError("it has too many columns")
    groups = groups_of(footer_of(io.BytesIO(data)))
    columns = [column for group in groups for column in group.columns]
    check_contents(io.BytesIO(data), groups)
    check_texts(io.BytesIO(data), groups)
    # Equal values are written once with their number, so that few bytes may stand for many rows; places differ, and take a byte each at least.
    if not 0 <= many <= 4 * len(data) or many != sum(group.rows for group in groups):
        raise ValueError(f"it states {many:,} rows in {len(data):,} bytes")
    if max([column.values for column in columns], default=0) > 100 * len(data):
        raise ValueError("a column states more values than a file of this size has")
    for field in schema:
        kind = field.type.value_type if pa.types.is_large_list(field.type) else field.type
        if pa.types.is_nested(kind):
            raise ValueError(f"the column {field.name!r} holds {field.type}")
    for name, kinds in KINDS.items():
        if name in schema.names and str(schema.field(name).type) not in kinds:
            raise ValueError(f"the column {name!r} holds {schema.field(name).type}")
    return file


def read_rows(data: bytes) -> Rows:
    """Return the rows of one model from their file."""
    import pyarrow as pa

    try:
        file = _opened(data)
        table = file.read(columns=[name for name in file.schema_arrow.names if name not in UNREAD])
    except (pa.ArrowException, OSError) as error:
        raise ValueError(str(error)) from None

    def column(which: str) -> npt.NDArray[Any]:
        found = table.column(which)
        if found.null_count:
            raise ValueError(f"{which!r} has missing values")
        return found.to_numpy()  # type: ignore[no-any-return]

    def flat(which: str) -> npt.NDArray[Any]:
        return table.column(which).combine_chunks().flatten().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]

    law, blank = _codes(table.column("method"), LAWS), Counts.blank(0)
    counted = {which: column(which).astype(getattr(blank, which).dtype, copy=False) for which in COUNTED}
    found = int((counted["witness"] >= 0).sum())
    reached: FloatArray = flat("reached").reshape(found, -1) if "reached" in table.column_names and found else np.zeros((found, 0))
    heavy, weighted = Heavy.join([]), law == LAWS.index("weighted")
    if weighted.any():
        sizes = table.column("heavy.weight").combine_chunks().value_lengths().to_numpy(zero_copy_only=False)[weighted]
        ragged = {which: flat(f"heavy.{which}") for which in RAGGED}
        heavy = Heavy(row=np.repeat(np.arange(len(sizes)), sizes), **ragged, **{which: column(f"heavy.{which}")[weighted] for which in EACH})
    status, proof = _codes(table.column("status"), STATUSES), _codes(table.column("proof"), PROOFS)
    seconds = np.zeros(len(law), np.float32)  # CPU time is not kept: files of equal runs are equal
    counts = Counts(**counted, status=status, law=law, proof=proof, seconds=seconds, reached=reached, heavy=heavy)
    named = (table.schema.metadata or {}).get(b"person")
    index = pd.Index(table.column("person").to_pandas().array, name=None if named is None else named.decode())
    grouped = [c for c in table.column_names if c.startswith("group.")]
    groups = table.select(grouped).rename_columns([c.removeprefix("group.") for c in grouped]).to_pandas().set_axis(index)
    return Rows(index, column("place"), column("prediction"), column("unit"), counts, groups)


def _codes(column: Any, names: tuple[str, ...]) -> npt.NDArray[np.int8]:
    """Return a column of words as codes."""
    whole = column.combine_chunks()
    code = np.array([names.index(word) for word in whole.dictionary.to_pylist()], dtype=np.int8)
    found: npt.NDArray[np.int8] = code[whole.indices.to_numpy()]
    return found
