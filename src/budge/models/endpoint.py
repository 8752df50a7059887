"""Endpoint: a model behind an address, asked in batches of JSON; retried, cached, resumable."""

from __future__ import annotations

import copy
import json
import math
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from budge.errors import IncompleteError, ModelError
from budge.models.cache import AnswerCache
from budge.models.choose import Wanted, check_batch_rows, choose_reading
from budge.models.digests import sha256
from budge.models.keys import point_keys
from budge.models.predictor import MAX_CALLS
from budge.models.reading import Ask, Reading, as_array, list_classes, plain
from budge.models.resolve import KEPT_REASONS, Resolved, all_or_raise
from budge.models.rows import Array, Rows, match_columns
from budge.models.transport import MAX_BYTES, GaveUpError, Transport

__all__ = ["ENDPOINT_ROWS", "Endpoint", "is_url"]

#: Rows a request.
ENDPOINT_ROWS = 256


def is_url(value: object) -> bool:
    """Whether a value is the address of an endpoint."""
    return isinstance(value, str) and value.lower().startswith(("http://", "https://"))


class _Calls:
    """How many requests this process has made; shared by copies of an endpoint."""

    def __init__(self) -> None:
        self.made = 0
        self._lock = threading.Lock()

    def take(self, limit: int | None) -> None:
        with self._lock:
            if limit is not None and self.made >= limit:
                raise _CapError
            self.made += 1

    def __reduce__(self) -> tuple[type[_Calls], tuple[()]]:
        return (_Calls, ())


@dataclass(frozen=True, kw_only=True, eq=False)
class Endpoint:
    """A model behind an address; a `Predictor`.

    Each distinct row is asked once. ``{"instances": [{column: value}, …]}`` is posted (or MLflow's ``dataframe_split``), and
    ``{"predictions": [...]}`` or a bare list is read.

    Parameters
    ----------
    url
        An ``http`` or ``https`` address.
    columns
        Which columns to send; all by default.
    output, threshold, classes, of
        As in `as_predictor`.
    headers
        Sent with each request; never shown, logged or cached.
    format, field_name
        The form of the request; the field of the answer that holds the predictions.
    timeout, max_attempts, first_wait, max_wait
        See `Transport`.
    max_calls
        Requests that this process may make in all, retries included; then the work stops, and what was answered is in the cache.
    cache
        An SQLite file for the answers: a second run asks only what is not in it.
    version
        Part of the cache's key: change it when the model behind the address changes.

    Examples
    --------
    >>> print(Endpoint(url="https://model.example/v1?key=secret", headers={"Authorization": "Bearer abcdef"}).describe())
    https://model.example/v1 answers labels over HTTP.
    """

    url: str = field(repr=False)
    columns: tuple[str, ...] | None = None
    output: Any = "auto"
    threshold: float | None = None
    classes: Any = None
    of: object = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    format: Literal["instances", "dataframe_split"] = "instances"
    field_name: str = "predictions"
    batch_rows: int = ENDPOINT_ROWS
    timeout: float = 30.0
    max_attempts: int = 6
    first_wait: float = 0.5
    max_wait: float = 60.0
    max_calls: int | None = None
    cache: str | Path | None = None
    version: str = ""
    reading: Reading = field(init=False)
    calls: _Calls = field(default_factory=_Calls, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise ModelError("an http or https address is expected", where="url", got=parts.scheme or self.url)
        if self.format not in ("instances", "dataframe_split"):
            raise ModelError(
                "unknown form of the request", where="format", got=self.format, remedy="instances or dataframe_split"
            )
        check_batch_rows(self.batch_rows)
        wanted: Wanted = self.output
        classes: Iterable[object] | None = self.classes
        asks: tuple[Ask, ...] = ("label", "score", "probability")
        reading = choose_reading(self.name, asks, None, output=wanted, threshold=self.threshold, classes=classes, of=self.of)
        columns = None if self.columns is None else tuple(self.columns)
        settled = {"reading": reading, "output": reading.output, "classes": reading.classes, "columns": columns}
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    @property
    def _transport(self) -> Transport:
        waits = {"first_wait": self.first_wait, "max_wait": self.max_wait}
        return Transport(url=self.url, headers=self.headers, timeout=self.timeout, max_attempts=self.max_attempts, **waits)

    @property
    def name(self) -> str:
        """The address, without what may be secret."""
        return Transport(url=self.url).shown

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Where its scores lie, if that is known."""
        return self.reading.bounds

    def predict(self, frame: Rows) -> Array:
        """One output a row; raises if a row gets none."""
        return all_or_raise(self.predict_resolved(frame), self.name)

    def predict_resolved(self, frame: Rows, *, max_calls: int = MAX_CALLS) -> Resolved:
        """Outputs, and which rows have one.

        Raises
        ------
        ModelError
            If the endpoint refuses (400, 401, 403, 404 and their like).
        IncompleteError
            If `Endpoint.max_calls` is reached, or three batches in a row got no answer; the cache keeps what was answered.
        """
        rows = match_columns(frame, self.columns)
        space = sha256(self.url.encode(), self.format.encode(), self.field_name.encode(), self.version.encode())
        keys = [f"{space[:16]}:{key}" for key in point_keys(rows)]
        first: dict[str, int] = {}
        for i, key in enumerate(keys):
            first.setdefault(key, i)
        store = None if self.cache is None else AnswerCache(Path(self.cache))
        known = {} if store is None else store.get(list(first))
        reasons: dict[str, None] = {}
        asked = [key for key in first if key not in known]
        lost = failures = 0
        for start in range(0, len(asked), self.batch_rows):
            some = asked[start : start + self.batch_rows]
            try:
                answers = self._ask(rows, [first[key] for key in some])
                lost = 0
            except GaveUpError as error:
                reasons[str(error)] = None
                lost, failures = lost + 1, failures + 1
                if lost == 3:
                    raise self._incomplete(f"three batches in a row got no answer: {error}", len(asked) - start) from error
                continue
            except _UnreadableError as error:
                reasons[str(error)] = None
                failures += 1
                continue
            except _CapError as error:
                raise self._incomplete(f"the cap of {self.max_calls} calls is reached", len(asked) - start) from error
            got = {key: answer for key, answer in zip(some, answers) if not _void(answer)}
            if len(got) < len(some):
                reasons["the endpoint answered null for a row"] = None
            known.update(got)
            if store is not None and got:
                store.put(got)
        return replace(self._read([known.get(key) for key in keys], tuple(reasons)[:KEPT_REASONS]), failures=failures)

    def digest(self) -> None:
        """What stands behind an address cannot be seen."""

    @property
    def address(self) -> str:
        """Where and how the endpoint is asked, without what may be secret: part of the identity of a run, since there is no digest."""
        return " ".join([self._transport.shown, self.format, self.field_name, self.version, repr(self.reading), repr(self.columns)])

    def describe(self) -> str:
        """One English sentence."""
        says = "scores" if self.output == "score" else f"the labels {list_classes(self.classes)}" if self.classes else "labels"
        return f"{self.name} answers {says} over HTTP."

    def fresh(self) -> Endpoint:
        """The same endpoint, asked anew: without a cache."""
        same = copy.copy(self)
        object.__setattr__(same, "cache", None)
        return same

    def _ask(self, rows: Rows, places: list[int]) -> list[object]:
        some = rows.iloc[places] if isinstance(rows, pd.DataFrame) else rows[places]
        transport = self._transport
        body = transport.post(_dump(self._payload(some)), before=lambda: self.calls.take(self.max_calls)).body
        raw = transport.redact(body[:500].decode("utf-8", "replace"))
        if len(body) > MAX_BYTES:
            raise _UnreadableError(f"the answer is longer than {MAX_BYTES >> 20} MB: {raw}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise _UnreadableError(f"the answer is not JSON: {raw!r}") from error
        found = answer.get(self.field_name) if isinstance(answer, dict) else answer
        if not isinstance(found, list) or (isinstance(answer, dict) and answer.get("error")):
            raise _UnreadableError(f"the answer holds no list {self.field_name!r}: {raw!r}")
        if len(found) != len(places):
            raise _UnreadableError(f"{len(places)} rows were asked and {len(found)} answered: {raw!r}")
        return found

    def _payload(self, rows: Rows) -> dict[str, object]:
        if not isinstance(rows, pd.DataFrame):
            return {"instances": rows.tolist()}
        names = [str(name) for name in rows.columns]
        records = [[_json(value) for value in row] for row in zip(*(rows.iloc[:, j].tolist() for j in range(rows.shape[1])))]
        if self.format == "dataframe_split":
            return {"dataframe_split": {"columns": names, "data": records}}
        return {"instances": [dict(zip(names, record)) for record in records]}

    def _read(self, answers: list[object], reasons: tuple[str, ...]) -> Resolved:
        resolved = np.array([not _void(answer) for answer in answers], dtype=bool)
        score = self.output == "score"
        if not resolved.any():
            return Resolved(np.full(len(answers), np.nan if score else None), resolved, reasons)
        there = [answer for answer, is_there in zip(answers, resolved) if is_there]
        outputs, _ = self.reading.read(as_array(there), len(there))
        if resolved.all():
            return Resolved(outputs, resolved, reasons)
        whole: Array = np.full(len(answers), np.nan if score else None, dtype=np.float64 if score else object)
        whole[resolved] = outputs if score else as_array(outputs.tolist())
        return Resolved(whole, resolved, reasons)

    def _incomplete(self, what: str, left: int) -> IncompleteError:
        remedy = "run it again: the cache has what was answered" if self.cache else "give cache=<file>, and a further run resumes"
        return IncompleteError(f"{what}; {left} distinct rows are not answered", where=self.name, remedy=remedy)


class _UnreadableError(Exception):
    """The endpoint answered something that is no prediction."""


class _CapError(Exception):
    """No further request may be made."""


def _dump(payload: object) -> bytes:
    try:
        return json.dumps(payload, allow_nan=False).encode()
    except ValueError as error:
        raise ModelError("JSON has no infinities", where="input", remedy="audit finite values only") from error


def _void(answer: object) -> bool:
    if isinstance(answer, list):
        return any(_void(item) for item in answer)
    return answer is None or (isinstance(answer, float) and math.isnan(answer))


def _json(value: object) -> object:
    """A value as JSON has it; missing values of every kind become null."""
    value = plain(value)
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if isinstance(value, bool | int | float | str) else str(value)
