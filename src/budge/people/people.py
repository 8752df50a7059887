"""People who are read part by part: a stream, whom its labels name, and which of its columns are for the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import DataError, InputError, nearest
from budge.frames import check_labels
from budge.people.parquet import of_dataset
from budge.people.stream import Part, Stream
from budge.people.tables import of_dask, of_files, of_path, of_tables
from budge.tables import How

__all__ = ["PART", "People", "is_stream"]

PART = 100_000  # people of a part, at most
MOST_LABELS = 10**8  # people whose labels are compared with each other


@dataclass(frozen=True)
class People(Stream):
    """People who are read part by part.

    Parameters
    ----------
    parts, columns, digest, labelled, index, start, place, keep
        As of a `Stream`.
    id
        The column that labels people; it is not given to the model. Unless given, the labels are those that the data has, or positions.
    drop
        Further columns that are not given to the model.

    Examples
    --------
    >>> import pandas as pd
    >>> people = People.of(iter([pd.DataFrame({"age": [30, 40]}), pd.DataFrame({"age": [50]})]))
    >>> len(people), [people.read(part)["age"].tolist() for part in people.parts]
    (3, [[30, 40, 50]])
    """

    id: str | None = None
    drop: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, X: Any, *, id: str | None = None, drop: Iterable[str] = (), part: int = PART, read: Mapping[str, str | bool | Sequence[str] | None] | None = None
    ) -> People:
        """Return the people of a path, a pattern of paths, a `pyarrow.dataset`, a Dask DataFrame, or an iterator of tables.

        Parameters
        ----------
        X
            A folder, file or pattern (``"people/*.parquet"``) of Parquet files, a file or an address that `budge.read_table` reads, several paths, a data set,
            a Dask DataFrame, or an iterator. Plain text and Parquet are read in parts, other files as a whole.
        id, drop
            The column that labels people, and columns that are not for the model.
        part
            People of a part, at most.
        read
            Choices about the reading of a file, as of `budge.read_table`: ``{"separator": ";"}``.
        """
        if isinstance(X, People):
            if id is not None or drop or part != PART or read:
                raise InputError("these people have their options already", where="X", got="People", remedy="give what they were made from")
            return X
        found = _stream_of(X, part, id, How.of(read or {}))
        if not found.parts:
            raise DataError("there are no people", where="X", got=str(X) if isinstance(X, str | Path) else type(X).__name__)
        gone = [c for c in (*([] if id is None else [id]), *drop) if c not in found.columns]
        if gone:
            raise InputError("no such column", where="X", got=gone[0], remedy=nearest(gone[0], found.columns))
        people = cls(**{f.name: getattr(found, f.name) for f in fields(Stream)}, id=id, drop=tuple(drop))
        people._check_labels()
        return people

    def _check_labels(self) -> None:
        """Raise an error where two people have one label: they could not be told apart. Of more than 10^8 people this is not looked at."""
        name = self.id if self.id is not None else self.index
        if name is None or len(self) > MOST_LABELS:
            return
        hashed = np.concatenate([pd.util.hash_pandas_object(part.reader.labels(name), index=False).to_numpy() for part in self.parts])
        order = np.argsort(hashed, kind="stable")
        for k in np.flatnonzero(hashed[order][1:] == hashed[order][:-1]).tolist():
            one, two = (self._label(name, int(order[at])) for at in (k, k + 1))
            if one == two:  # not only their hashes
                raise DataError("a label stands for two people", where="X", got=one, remedy="give a column in which all people differ, or none")

    def _label(self, name: str, position: int) -> Any:
        part = self.parts[self.part_of(position)]
        return part.reader.labels(name).iloc[position - part.first]

    def __len__(self) -> int:
        return self.parts[-1].first + self.parts[-1].rows if self.parts else 0

    def read(self, part: Part) -> pd.DataFrame:
        """Return the people of a part with all their columns, labelled."""
        frame = part.reader.read()
        if len(frame) != part.rows:
            raise DataError(f"{part.rows:,} people were there, {len(frame):,} are", where="X", remedy="the data has changed since: start again")
        if self.id is not None:
            frame = frame.set_index(self.id)
        elif not self.labelled:
            first, step = self.start
            frame.index = pd.RangeIndex(first + step * part.first, first + step * (part.first + part.rows), step)
        check_labels(frame.index)
        return frame

    def for_model(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns that the model is given."""
        return frame.drop(columns=list(self.drop)) if self.drop else frame

    def part_of(self, position: int) -> int:
        """Return the number of the part in which a person stands."""
        return int(np.searchsorted(self._firsts, position, side="right")) - 1

    @cached_property
    def _firsts(self) -> list[int]:
        return [part.first for part in self.parts]


def is_stream(X: Any) -> bool:
    """Return whether people come as a stream: not as a table in memory."""
    return isinstance(X, People | str | Path | Iterator) or _is_dataset(X) or _is_dask(X)


def _stream_of(X: Any, part: int, label: str | None, how: How) -> Stream:
    if isinstance(part, bool) or not isinstance(part, int | np.integer) or part < 1:
        raise InputError("must be a whole number of at least 1", where="part", got=part)
    if isinstance(X, str | Path):
        return of_path(X, int(part), how, label)
    if isinstance(X, list | tuple) and X and all(isinstance(p, str | Path) for p in X):
        return of_files([str(p) for p in X], int(part), how, label=label)
    if _is_dataset(X):
        return of_dataset(X, int(part))
    if _is_dask(X):
        return of_dask(X)
    if isinstance(X, Iterator):
        return of_tables(X, int(part))
    remedy = "give a path, a pyarrow.dataset, a Dask DataFrame or an iterator of tables"
    raise InputError("is no stream of people", where="X", got=type(X).__name__, remedy=remedy)


def _is_dataset(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "get_fragments")


def _is_dask(X: Any) -> bool:
    return type(X).__module__.startswith("dask") and hasattr(X, "map_partitions")
