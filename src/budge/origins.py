"""Tables come back as they came: a caller of polars or Arrow gets, and her model is asked with, polars or Arrow.

Inside the library there are pandas tables alone. Where one came from is noted on the table itself, a note that rows and columns
taken from it keep.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["as_it_came", "from_native", "keep_origin"]

_NOTE = "budge.origin"
_BACK = {"polars": "to_polars", "pyarrow": "to_arrow"}


def from_native(X: Any) -> pd.DataFrame:
    """A table of another library as a pandas table that knows where it came from; TypeError if it is no table."""
    import narwhals as nw

    given = nw.from_native(X, eager_only=True)
    frame: pd.DataFrame = given.to_pandas()
    origin = str(given.implementation)
    if origin in _BACK:
        frame.attrs[_NOTE] = (origin, dict(zip(X.schema.names, X.schema.types)) if origin == "pyarrow" else dict(X.schema))
    return frame


def keep_origin(frame: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """The frame, noted to come from where the other one came from."""
    if _NOTE in like.attrs:
        frame.attrs[_NOTE] = like.attrs[_NOTE]
    return frame


def as_it_came(frame: Any) -> Any:
    """A table in the library that it came from, with the types that it had there; anything else as it is.

    A column of whole numbers that was declared real and moved stays a column of floats.

    Examples
    --------
    >>> as_it_came(pd.DataFrame({"age": [30]})).shape
    (1, 1)
    """
    note = frame.attrs.get(_NOTE) if isinstance(frame, pd.DataFrame) else None
    if note is None:
        return frame
    import narwhals as nw

    origin, types = note
    plain = frame.reset_index(drop=True)
    plain.attrs = {}  # the note is for us alone
    table = nw.from_native(plain)
    floats = {name for name in table.columns if table[name].dtype.is_float()}
    back = getattr(table, _BACK[origin])()
    return _polars(back, types, floats) if origin == "polars" else _arrow(back, types, floats)


def _polars(back: Any, types: dict[str, Any], floats: set[str]) -> Any:
    now = back.schema
    return back.cast({n: t for n, t in types.items() if n in now and now[n] != t and (n not in floats or t.is_float())})


def _arrow(back: Any, types: dict[str, Any], floats: set[str]) -> Any:
    import pyarrow as pa

    fields = [
        pa.field(f.name, types[f.name] if f.name in types and (f.name not in floats or pa.types.is_floating(types[f.name])) else f.type)
        for f in back.schema
    ]
    return back.replace_schema_metadata(None).cast(pa.schema(fields))
