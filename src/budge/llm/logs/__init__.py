"""Logs of earlier runs become answers, so that they can be tested without a single new call: one file a format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from budge.errors import DataError, InputError, StorageError, nearest
from budge.llm.answers import BASE, Answers

__all__ = ["FORMATS", "read_log", "read_logs"]

FORMATS = ("inspect", "lm-eval")


def read_log(
    path: str | Path,
    *,
    interaction: str = BASE,
    model: str | None = None,
    score: str | None = None,
    values: Mapping[Any, bool] | None = None,
    category: str | None = None,
    filter: str | None = None,
    format: str | None = None,
) -> Answers:
    """The answers in a log of Inspect (`.eval` or `.json`) or in a file of samples of lm-evaluation-harness (`samples_*.jsonl`).

    Parameters
    ----------
    interaction : str
        What was done to the prompts in this run.
    model : str, optional
        A name for the model; a log of Inspect has one, a file of samples needs it.
    score : str, optional
        The scorer (Inspect) or the metric (lm-evaluation-harness) that says hit or miss; needed where there are several.
    values : mapping, optional
        What counts as a hit and what as a miss. By default C, 1 and True are hits, I, 0 and False are misses. Everything else is unresolved.
    category : str, optional
        The key of the prompt's metadata (Inspect) or document (lm-evaluation-harness) that holds its category.
    filter : str, optional
        The filter of lm-evaluation-harness, where samples of several are in the file.
    format : {"inspect", "lm-eval"}, optional
        By default told from the file.
    """
    place = Path(path)
    if not place.is_file():
        what = "is a folder, not a log" if place.is_dir() else "there is no such file"
        raise StorageError(what, where=str(place), remedy="give the file of one log")
    kind = _kind(place) if format is None else format
    if kind == "inspect":
        if filter is not None:
            raise InputError("a log of Inspect has no filters", where="filter", got=filter, remedy="leave it out")
        from budge.llm.logs.inspect_log import read_inspect

        return read_inspect(place, interaction=interaction, model=model, score=score, values=values, category=category)
    if kind == "lm-eval":
        from budge.llm.logs.lm_eval import read_lm_eval

        return read_lm_eval(
            place, interaction=interaction, model=model, score=score, values=values, category=category, filter=filter
        )
    raise InputError("unknown format of a log", where="format", got=format, remedy=nearest(format, FORMATS))


def read_logs(
    paths: Mapping[str, str | Path],
    *,
    model: str | None = None,
    score: str | None = None,
    values: Mapping[Any, bool] | None = None,
    category: str | None = None,
    filter: str | None = None,
    format: str | None = None,
) -> Answers:
    """One log for each interaction, as one table: ``read_logs({"base": one, "misspell": two})``. Prompts are matched by their identifiers."""
    if not paths:
        raise DataError("no logs", where="paths", got=paths, remedy='{"base": "one.eval", "misspell": "two.eval"}')
    parts = [
        read_log(path, interaction=name, model=model, score=score, values=values, category=category, filter=filter, format=format)
        for name, path in paths.items()
    ]
    return Answers.concat(parts)


def _kind(place: Path) -> str:
    """By the end of the name; what is inside is checked by whoever reads it."""
    ends = {".eval": "inspect", ".json": "inspect", ".jsonl": "lm-eval"}
    if place.suffix.lower() not in ends:
        raise InputError(
            "a log is .eval or .json (Inspect), or .jsonl (samples of lm-evaluation-harness)",
            where=str(place),
            got=place.suffix,
            remedy='give format="inspect" or "lm-eval", on the shell --format',
        )
    return ends[place.suffix.lower()]
