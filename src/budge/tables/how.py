"""What a caller can choose about the reading of a table, and what is stated about what was chosen for them."""

from __future__ import annotations

import codecs
import logging
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from budge.errors import InputError, nearest

__all__ = ["How", "Note", "state"]

_log = logging.getLogger("budge.tables")
_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " ", "whitespace": r"\s+"}
_TRUTH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_VALUES = {"missing", "text"}
_TAKEN: dict[str, set[str]] = {  # the choices that each kind of table takes
    "text": {"separator", "encoding", "decimal", "header", "names", *_VALUES}, "excel": {"sheet", "header", "names", *_VALUES},
    "json": _VALUES, "sql": {"table", "query", *_VALUES}, "parquet": set(), "feather": set(), "prompts": set(),
}  # fmt: skip
_KINDS = {
    "text": "a file of text", "excel": "an Excel file", "json": "JSON", "sql": "a database", "parquet": "a Parquet file", "feather": "a Feather file",
    "prompts": "prompts in JSON or in lines of text",
}  # fmt: skip


@dataclass(frozen=True)
class Note:
    """One thing that was noticed in a file, what was done, and the option that does otherwise."""

    what: str
    option: str = ""
    value: str = ""

    def __str__(self) -> str:
        return f"{self.what}; otherwise: {self.option}={self.value!r}" if self.option else self.what

    @property
    def shell(self) -> str:
        """The same with the option as the shell has it."""
        what = self.what.replace("names=…", "--read names=…")
        return f"{what}; otherwise: --read {shlex.quote(f'{self.option}={self.value}')}" if self.option else what


def state(name: str, notes: Iterable[Note]) -> None:
    """State what was noticed in a file: a line each in the log ``budge.tables``, which Python shows unless it is told otherwise."""
    for note in notes:
        _log.warning("%s: %s", name, note)


@dataclass(frozen=True)
class How:
    """How a table is read where that is not left to be noticed; every field is an argument of `budge.read_table`.

    Examples
    --------
    >>> How.of({"separator": "semicolon", "missing": "?", "header": "no"})
    How(separator=';', encoding=None, decimal=None, header=False, names=None, missing=('?',), text=(), member=None, sheet=None, table=None, query=None)
    """

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool | None = None
    names: tuple[str, ...] | None = None
    missing: tuple[str, ...] | None = None
    text: tuple[str, ...] | None = ()  # None: all columns
    member: str | None = None
    sheet: str | None = None
    table: str | None = None
    query: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, str | bool | Sequence[str] | None]) -> How:
        """Return the choices of a mapping, whose values are texts where they come from the shell."""
        known = [f.name for f in fields(cls)]
        found: dict[str, object] = {}
        for name, value in given.items():
            if name not in known:
                raise InputError("no such choice about the reading of a table", where="read", got=name, remedy=nearest(name, known))
            if value is None:
                continue
            if name in ("names", "missing", "text"):
                found[name] = tuple(value.split(",")) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]
            elif name == "header":
                if not isinstance(value, bool) and str(value).lower() not in _TRUTH:
                    raise InputError("must be yes or no", where="header", got=value)
                found[name] = value if isinstance(value, bool) else _TRUTH[str(value).lower()]
            else:
                found[name] = str(value)
        made = cls(**found)  # type: ignore[arg-type]
        separator = made.separator if made.separator is None else _SEPARATORS.get(made.separator.lower(), made.separator)
        made = cls(**{**found, "separator": separator})  # type: ignore[arg-type]
        made._check()
        return made

    def _check(self) -> None:
        if self.separator is not None and self.separator != r"\s+" and (len(self.separator) != 1 or self.separator in '"\r\n\0' or ord(self.separator) > 127):
            raise InputError("must be one sign, or comma, semicolon, tab, pipe, space or whitespace", where="separator", got=self.separator)
        if self.decimal is not None and (self.decimal not in (".", ",") or self.decimal == self.separator):
            raise InputError("must be a point or a comma, and not what separates cells", where="decimal", got=self.decimal)
        if self.table is not None and self.query is not None:
            raise InputError("a table and a query are given", where="query", got=self.query, remedy="leave one of them out")
        try:
            if self.encoding is not None and "a,\n".encode(self.encoding).decode(self.encoding) != "a,\n":
                raise LookupError
        except (LookupError, UnicodeError, AttributeError, TypeError):
            remedy = "give a name such as utf-8, cp1252, latin-1, utf-16, shift_jis"
            raise InputError("is no encoding of text", where="encoding", got=self.encoding, remedy=remedy) from None

    def check_kind(self, kind: str, where: str) -> None:
        """Raise an error where a choice is given that a table of this kind does not take: it would change nothing."""
        strange = [f.name for f in fields(self) if getattr(self, f.name) not in (None, ()) and f.name not in _TAKEN[kind]]
        if strange:
            taken = ", ".join(sorted(_TAKEN[kind]))
            remedy = f"{_KINDS[kind]} takes {taken}" if taken else "it states its own names and types: change the file, or write it as CSV"
            raise InputError(f"is not for {_KINDS[kind]}", where=strange[0], got=where, remedy=remedy)

    @property
    def codec(self) -> str | None:
        """The encoding by its usual name."""
        return None if self.encoding is None else codecs.lookup(self.encoding).name
