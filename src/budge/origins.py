"""Tables come back as they came: a caller with polars or Arrow gets polars or Arrow back, and the model is given the same kind.

Inside the library there are pandas tables alone. Where one came from is noted on the table itself, a note that rows and columns
taken from it keep.
"""

from __future__ import annotations

from collections.abc import Collection
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


def keep_origin(frame: pd.DataFrame, like: pd.DataFrame, *, but: Collection[str] = ()) -> pd.DataFrame:
    """The frame, noted to come from where the other one came from; some columns have another type now."""
    if _NOTE in like.attrs:
        origin, types = like.attrs[_NOTE]
        frame.attrs[_NOTE] = (origin, {name: kind for name, kind in types.items() if name not in but})
    return frame


def as_it_came(frame: Any) -> Any:
    """A table in the library that it came from, with the types that it had there; anything else as it is.

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
    types = {name: kind for name, kind in types.items() if name in frame.columns}
    plain = frame.reset_index(drop=True)
    plain.attrs = {}  # the note is for us alone
    back = getattr(nw.from_native(plain), _BACK[origin])()
    if origin == "polars":
        return back.cast(types)
    import pyarrow as pa

    fields = [pa.field(field.name, types.get(field.name, field.type)) for field in back.schema]
    return back.replace_schema_metadata(None).cast(pa.schema(fields))
