"""Points of an audit as a file, for the owner of a model, who returns predictions: nobody else has to see the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from budge.audit.design import Design
from budge.audit.sources import choose, make_source
from budge.errors import InputError, MissingDependencyError, OutputExistsError
from budge.files import whole_file
from budge.models import point_keys
from budge.progress import Portion

__all__ = ["points_to_ask", "write_points"]


def points_to_ask(im: Any, X: Any, design: Design, *, block_people: int = 64) -> Iterator[pd.DataFrame]:
    """Yield every distinct point that the audit of this design will ask about, each with its key, the people themselves included."""
    source = make_source(im, X, design.on_invalid)
    if design.rule is not None:
        raise InputError("a sequential audit decides as it goes what to ask", where="sequential", remedy="export with a fixed n")
    if "key" in source.starts().columns:
        raise InputError("is the name of the column that ties predictions to points", where="column key", remedy="rename the column, or leave it out")
    seen: set[str] = set()
    source.portion = Portion(source.portion.most, steady=True)  # so that equal calls write equal files

    def new(rows: pd.DataFrame) -> pd.DataFrame:
        keys = point_keys(rows)
        fresh = [i for i, key in enumerate(keys) if not (key in seen or seen.add(key))]  # type: ignore[func-returns-value]
        return pd.concat([pd.Series(keys[fresh], name="key"), rows.iloc[fresh].reset_index(drop=True)], axis=1)

    yield new(source.starts())
    for first in range(0, len(source), block_people):
        some = source.take(np.arange(first, min(first + block_people, len(source))))
        listed, drawn, _ = choose(some, design)
        if drawn.any():
            design.check_draws()
        for chunk in some.exact(np.flatnonzero(listed)):
            yield new(chunk.rows)
        for chunk in some.draws(np.flatnonzero(drawn), design.draws, design):
            yield new(chunk.rows)


def write_points(
    im: Any, X: Any, design: Design, path: str | Path, *, overwrite: bool = False, progress: Callable[[int], None] | None = None
) -> int:
    """Write the points to a CSV or Parquet file, whole or not at all; return how many there are."""
    place = Path(path)
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    kind = place.suffix.lower()
    if kind not in (".csv", ".parquet", ".pq"):
        raise InputError("points are written as .csv or .parquet", where=str(place), got=kind)
    total = 0
    writer = None
    with whole_file(place, overwrite=overwrite) as file:
        try:
            for part in points_to_ask(im, X, design):
                if kind == ".csv":
                    part.to_csv(file, header=not total, index=False)
                else:
                    writer = _append(part, file, writer, place)
                total += len(part)
                if progress is not None:
                    progress(total)
        finally:
            if writer is not None:
                writer.close()
    return total


def _append(part: pd.DataFrame, file: BinaryIO, writer: Any, place: Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError(
            "Parquet needs pyarrow", where=str(place), remedy="pip install 'budge[parquet]', or write .csv"
        ) from None
    rows = pa.Table.from_pandas(part, preserve_index=False)
    writer = writer or pq.ParquetWriter(file, rows.schema)
    writer.write_table(rows.cast(writer.schema))
    return writer
