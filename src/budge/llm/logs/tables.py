"""Tables of anybody's own (Parquet, CSV, JSON lines): one row per draw, with a prompt and a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from budge.errors import DataError, InputError, nearest
from budge.llm.answer_files import read_frame
from budge.llm.logs.rows import Log, LogRow, digest_of

__all__ = ["FIELDS", "read_table"]

#: What a column may hold, with the names by which it is found.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompt", "prompt_id", "id", "sample_id", "question_id"), "model": ("model", "model_name"), "interaction": ("interaction", "variant"),
    "draw": ("draw",), "sent": ("sent",), "answer": ("answer", "response", "output", "completion"), "original": ("original",),
    "expected": ("expected", "target"), "category": ("category",),
}  # fmt: skip


def read_table(place: Path, *, model: str | None, score: str | None, columns: Mapping[str, str] | None) -> Log:
    """Return the draws of a table. `columns` tells which column holds which field where the names differ."""
    frame = read_frame(place)
    names = [str(name) for name in frame.columns]
    given = dict(columns or {})
    for key, column in given.items():
        if key not in FIELDS:
            raise InputError("no such field of a draw", where="columns", got=key, remedy=nearest(key, FIELDS))
        if column not in names:
            raise InputError(f"there is no column for {key}", where=str(place), got=column, remedy=nearest(column, names))
    place_of = {key: given.get(key) or next((name for name in also if name in names), None) for key, also in FIELDS.items()}
    if place_of["prompt"] is None:
        raise InputError("no column identifies the prompts", where=str(place), got=names, remedy='columns={"prompt": "…"}, on the shell --columns prompt=…')
    scored = [name for name in (("hit", "score") if score is None else (score,)) if name in names]
    if not scored:
        raise InputError("no such column of scores", where=str(place), got=score, remedy=f"score=, on the shell --score: one of {', '.join(names)}")
    if place_of["model"] is None and model is None:
        raise InputError("the table does not say which model answered", where="model", remedy='name it: model="…", on the shell --model')
    cells = {key: [None] * len(frame) if name is None else _values(frame[name].tolist()) for key, name in place_of.items()}
    scores = _values(frame[scored[0]].tolist())
    seen: Counter[tuple[str, str, str]] = Counter()
    rows = []
    for i in range(len(frame)):
        text = {key: "" if values[i] is None else str(values[i]) for key, values in cells.items()}
        who = (text["model"] or model or "", text["interaction"], text["prompt"])
        draw = seen[who] if place_of["draw"] is None else _draw(cells["draw"][i], f"{place}, row {i + 1}")
        seen[who] += 1
        rows.append(
            LogRow(
                prompt=text["prompt"], model=who[0], interaction=text["interaction"], draw=draw, category=text["category"],
                scores={} if scores[i] is None else {scored[0]: scores[i]}, sent=text["sent"], answer=text["answer"], original=text["original"],
                expected=text["expected"], digest=digest_of(text["original"]) if text["original"] else "",
                fields={name: frame[name].iloc[i] for name in names},
            )
        )  # fmt: skip
    return Log(rows=rows, source=place.name)


def _draw(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not float(value).is_integer() or value < 0:
        raise DataError("is no number of a draw", where=where, got=value, remedy="number the draws of a prompt from 0")
    return int(value)


def _values(values: list[object]) -> list[object]:
    """Return Python's own values, None where a cell is empty."""
    return [None if value is None or value != value else value for value in values]
