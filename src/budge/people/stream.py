"""What every kind of stream gives: how each part is read, and what is known of the whole without reading all of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import pandas as pd

from budge.tables import package

__all__ = ["Part", "Reader", "Stream", "arrow"]


class Reader(Protocol):
    """Reads the people of a part, labels included where the data has them; or one column, from which labels come."""

    def read(self) -> pd.DataFrame: ...
    def labels(self, name: str) -> pd.Series: ...


@dataclass(frozen=True)
class Part:
    """Some people who follow each other: the position of the first, their number, and how they are read."""

    first: int
    rows: int
    reader: Reader = field(repr=False)


@dataclass(frozen=True)
class Stream:
    """Parts in order, and the columns, the digest and the labels of the whole.

    The digest is of what is known without reading all people: of Parquet files their sizes and their statistics by column.
    `labelled` tells whether what is read has labels of its own, and `index` the column from which they come. Where there are none, the first label and the
    step are `start`. `place` is the folder that was given, and `keep` lives as long as the people do: a folder of tables that came once.
    """

    parts: tuple[Part, ...] = field(repr=False)
    columns: tuple[str, ...]
    digest: str
    labelled: bool = False
    index: str | None = None
    start: tuple[int, int] = (0, 1)
    place: str | None = None
    keep: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def numbered(cls, readers: Iterable[tuple[int, Reader]], columns: Iterable[str], digest: str, **more: Any) -> Stream:
        """Return the stream of readers, each with the number of its people."""
        parts, first = [], 0
        for rows, reader in readers:
            if rows:
                parts.append(Part(first, rows, reader))
                first += rows
        return cls(tuple(parts), tuple(map(str, columns)), digest, **more)


def arrow(name: str) -> Any:
    """Return a module of pyarrow."""
    return package(f"pyarrow.{name}", "streams of people need pyarrow", "parquet")
