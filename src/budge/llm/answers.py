"""Judged draws: one row for each completion, wherever it came from (a run of ours, an Inspect log, another harness).

An answer is a hit, no hit, or unresolved (`None`): a time-out, an empty text, a judge that said neither. Unresolved answers stay in the
table, because dropping them would claim that answers go missing at random.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import DataError, Problem, nearest

__all__ = ["BASE", "COLUMNS", "Answers"]

#: The name of "no interaction": the prompt as it stands.
BASE = "base"

#: One row a draw. `hit` is True, False or None (unresolved; then `why` says so and `answer` keeps what came back).
COLUMNS = ("model", "interaction", "prompt", "category", "draw", "hit", "why", "sent", "answer")
#: Texts that a table may have besides: what the judge wrote, the prompt before any rewrite, its expected answer, a digest of the prompt, and why there
#: is no answer to judge.
MORE = ("judge_text", "original", "expected", "digest", "lost")
NEEDED = ("model", "interaction", "prompt", "hit")
KEY = ["model", "interaction", "prompt", "draw"]
#: What two runs must share if their draws are to be counted together, where both of them say it.
SHARED = ("scheme", "judge", "sequential")
_SHOWN = 5  # problems of one kind that a message lists


@dataclass(frozen=True)
class Answers:
    """All draws of a run or of several; `info` says how they were made (`scheme`: "joint" or "per_prompt", seed, digests).

    Examples
    --------
    >>> rows = [{"model": "m", "interaction": "base", "prompt": "q1", "hit": True}, {"model": "m", "interaction": "base", "prompt": "q2", "hit": None}]
    >>> Answers.of(rows).counts()[["n", "hits", "unresolved"]].values.tolist()
    [[2, 1, 1]]
    """

    table: pd.DataFrame
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _checked(self.table))
        object.__setattr__(self, "info", dict(self.info))

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]] | pd.DataFrame, info: Mapping[str, Any] | None = None) -> Answers:
        """From records, or a table, with (at least) a model, an interaction, a prompt and a hit."""
        if isinstance(rows, pd.DataFrame):
            return cls(rows, dict(info or {}))
        records = list(rows)
        for i, row in enumerate(records):
            if not isinstance(row, Mapping):
                raise DataError(
                    "a row is a record", where=f"rows[{i}]", got=row, remedy='{"model": "m", "interaction": "base", "prompt": "q1", "hit": True}'
                )
        names = [*COLUMNS, *dict.fromkeys(str(key) for row in records for key in row if key not in COLUMNS)]
        given = [name for name in names if any(name in row for row in records)] if records else list(COLUMNS)
        columns = {name: pd.Series([row.get(name) for row in records], dtype=object) for name in given}
        return cls(pd.DataFrame(columns), dict(info or {}))

    @classmethod
    def concat(cls, parts: Sequence[Answers]) -> Answers:
        """Several runs as one; runs that were made in different ways, or that hold the same draw, are refused."""
        if not parts:
            raise DataError("no runs to put together", where="parts", got=[], remedy="give at least one")
        info: dict[str, Any] = {}
        whole = all(part.info.get("complete", True) for part in parts)
        for key in dict.fromkeys(key for part in parts for key in part.info):
            values = [part.info.get(key) for part in parts if key in part.info or key == "sequential"]
            rules = [_rule(value) if key == "sequential" else value for value in values]
            if all(value == values[0] for value in values[1:]):
                info[key] = values[0]
            elif key == "complete":
                info[key] = all(values)
            elif key == "sequential" and all(rule == rules[0] for rule in rules[1:]):
                info[key] = rules[0]
            elif key in ("n", "per_prompt") and not whole:
                raise DataError(
                    "a run is incomplete, and the runs differ in how many draws they planned",
                    where=f"info.{key}",
                    got=values,
                    remedy="finish the run first",
                )
            elif key in SHARED or (key == "prompts" and info.get("scheme", "joint") == "joint"):
                raise DataError(
                    f"the runs differ in {key!r}, so their draws cannot be counted together",
                    where=f"info.{key}",
                    got=values,
                    remedy="test them one by one",
                )
            else:
                info[key] = values
        return cls(pd.concat([part.table for part in parts], ignore_index=True), info)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def models(self) -> tuple[str, ...]:
        """The models, in order of appearance."""
        return tuple(dict.fromkeys(self.table["model"]))

    @property
    def interactions(self) -> tuple[str, ...]:
        """The interactions, in order of appearance; the base among them if it was asked."""
        return tuple(dict.fromkeys(self.table["interaction"]))

    def only(self, *, model: str | None = None, interaction: str | None = None) -> Answers:
        """The answers of one model, of one interaction, or of both."""
        rows = self.table
        for column, wanted, known in (("model", model, self.models), ("interaction", interaction, self.interactions)):
            if wanted is not None:
                if wanted not in known:
                    raise DataError(
                        f"no such {column} among the answers", where=column, got=wanted, remedy=nearest(wanted, known)
                    )
                rows = rows[rows[column] == wanted]
        return Answers(rows, self.info)

    def counts(self, by: Sequence[str] = ()) -> pd.DataFrame:
        """Draws, hits and unresolved answers for each model and interaction, and further for each category or prompt."""
        known = ("category", "prompt")
        by = (by,) if isinstance(by, str) else tuple(by)
        for name in by:
            if name not in known:
                raise DataError("answers are counted by category or prompt", where="by", got=name, remedy=nearest(name, known))
        keys = ["model", "interaction", *by]
        hit = self.table["hit"].to_numpy(dtype=object)
        marks = pd.DataFrame(
            {
                **{key: self.table[key].to_numpy() for key in keys},
                "n": 1,
                "hits": [value is True for value in hit],
                "unresolved": [value is None for value in hit],
            }
        )
        return marks.groupby(keys, sort=False)[["n", "hits", "unresolved"]].sum().astype("int64").reset_index()

    def remarks(self) -> list[str]:
        """Return phrases that count answers cut off by their token limit, and rewrites that changed nothing; none where there are none."""
        found, many = [], len(self)
        cut = sum(marked(self.table, "cut"))
        if cut:
            found.append(f"{cut:,} of {many:,} answers were cut off by the token limit (--max-tokens, max_tokens=)")
        same = pd.Series(marked(self.table, "unchanged"), index=self.table.index)
        for word, part in same.groupby(self.table["interaction"], sort=False):
            if part.any():
                found.append(f"{word} left {int(part.sum()):,} of {len(part):,} prompts unchanged")
        return found

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write to CSV, JSON lines or Parquet, by the end of the name; whole or not at all."""
        from budge.llm.answer_files import write_answers

        return write_answers(self, path, overwrite=overwrite)

    @classmethod
    def read(cls, path: str | Path) -> Answers:
        """Read what `write` wrote, or a table of your own with these columns."""
        from budge.llm.answer_files import read_answers

        return read_answers(path)

    def __str__(self) -> str:
        lost = int(sum(value is None for value in self.table["hit"]))
        models, ways = len(self.models), len(self.interactions)
        return (
            f"{len(self):,} answers of {models} model{'s' * (models != 1)} under {ways} interaction{'s' * (ways != 1)} "
            f"to {self.table['prompt'].nunique():,} prompts; {lost:,} unresolved"
        )


def _checked(table: pd.DataFrame) -> pd.DataFrame:
    """The table in the order of `COLUMNS`, texts as texts, hits as True, False or None; every problem is raised at once."""
    if not isinstance(table, pd.DataFrame):
        raise DataError("answers are a table", got=type(table).__name__, remedy="pass a DataFrame, or use Answers.of(rows)")
    absent = [name for name in NEEDED if name not in table.columns]
    if absent:
        raise DataError(
            [
                Problem(f"column {name}", "is missing from the answers", remedy=nearest(name, map(str, table.columns)))
                for name in absent
            ]
        )
    found: list[Problem] = []
    ready: dict[str, Any] = {}
    for name in ("model", "interaction", "prompt"):
        ready[name] = [str(value) if _there(value) else "" for value in table[name]]
        blank = [i for i, value in enumerate(ready[name]) if not value]
        if blank:
            found.append(Problem(f"column {name}", f"is empty in {len(blank)} rows, first in row {blank[0]}", remedy="name it"))
    ready["hit"] = _hits(table["hit"], found)
    if "draw" in table.columns:
        ready["draw"] = _whole(table["draw"], found)
    else:
        ready["draw"] = pd.DataFrame({k: ready[k] for k in KEY[:3]}).groupby(KEY[:3], sort=False).cumcount().tolist()
    for name in ("category", "why", "sent", "answer"):
        values = table[name] if name in table.columns else [""] * len(table)
        ready[name] = [str(value) if _there(value) else "" for value in values]
    for name in ("model", "interaction", "prompt", "category"):
        halves = [value for value in dict.fromkeys(ready[name]) if _half(value)]
        if halves:
            found.append(Problem(f"column {name}", "holds half a character, which no name does", halves[:_SHOWN], "name it in whole characters"))
    more = {name: [str(value) if _there(value) else "" for value in table[name]] for name in MORE if name in table.columns}
    found += _other_texts(ready["prompt"], more.get("digest", ()))
    DataError.raise_if(found)
    # Texts stay Python's: what a model answers may hold half a character, which other kinds of text refuse.
    ordered = {name: pd.Series(ready[name], dtype=None if name == "draw" else object) for name in COLUMNS}
    rest = [name for name in table.columns if name not in COLUMNS]
    ordered |= {str(name): pd.Series(more[name], dtype=object) if name in more else table[name].reset_index(drop=True) for name in rest}
    made = pd.DataFrame(ordered)
    if not len(made):
        made["draw"] = made["draw"].astype("int64")
    twice = made.duplicated(KEY)
    if twice.any():
        first = made.loc[twice, KEY].iloc[0].tolist()
        raise DataError(
            f"{int(twice.sum())} draws are there twice: a repeat is not a new draw",
            where="model, interaction, prompt, draw",
            got=first,
            remedy="leave out the copies, or number the draws of a prompt from 0",
        )
    return made


def marked(table: pd.DataFrame, column: str) -> list[bool]:
    """Return which rows have a mark, however a file spelt it; none without such a column."""
    return [str(value).lower() in ("true", "1") for value in table[column]] if column in table.columns else [False] * len(table)


def _other_texts(prompts: Sequence[str], digests: Sequence[str]) -> list[Problem]:
    """Return a problem where one identifier stands for prompts with different texts: those are draws of unrelated benchmarks."""
    first: dict[str, str] = {}
    wrong = list(dict.fromkeys(p for p, digest in zip(prompts, digests) if digest and first.setdefault(p, digest) != digest))
    remedy = 'test unrelated benchmarks apart; logs of rewritten copies are matched by their identifiers with match="ids", on the shell --match ids'
    what = f"{len(wrong)} of {len(set(prompts))} identifiers stand for different prompts in these answers"
    return [Problem("column prompt", what, wrong[:_SHOWN], remedy)] if wrong else []


def _rule(value: Any) -> Any:
    """The rule by which a run stopped, without where it did."""
    return {k: v for k, v in value.items() if k != "stops"} if isinstance(value, Mapping) else value


def _half(text: str) -> bool:
    """Return whether a text has a surrogate without its pair."""
    return not text.isascii() and text.encode("utf-8", "ignore") != text.encode("utf-8", "surrogatepass")


def _there(value: Any) -> bool:
    return value is not None and value is not pd.NA and not (isinstance(value, float) and math.isnan(value))


def _hits(values: pd.Series, found: list[Problem]) -> list[bool | None]:
    """True, False or None; 0 and 1 count as such; anything else is named, never guessed."""
    ready: list[bool | None] = []
    wrong: list[tuple[int, Any]] = []
    for i, value in enumerate(values):
        if not _there(value):
            ready.append(None)
        elif isinstance(value, bool | np.bool_) or (isinstance(value, int | float | np.number) and value in (0, 1)):
            ready.append(bool(value))
        else:
            ready.append(None)
            wrong.append((i, value))
    found += [
        Problem(
            f"column hit, row {i}",
            "is neither a hit nor a miss",
            got=value,
            remedy="True, False, or nothing where it is unresolved",
        )
        for i, value in wrong[:_SHOWN]
    ]
    if len(wrong) > _SHOWN:
        found.append(Problem("column hit", f"{len(wrong) - _SHOWN} further rows are neither hit nor miss"))
    return ready


def _whole(values: pd.Series, found: list[Problem]) -> list[int]:
    ready: list[int] = []
    for i, value in enumerate(values):
        good = (
            isinstance(value, int | float | np.number)
            and not isinstance(value, bool)
            and _there(value)
            and float(value).is_integer()
        )
        if good and value >= 0:
            ready.append(int(value))
        else:
            ready.append(-1)
            if len(found) < 2 * _SHOWN:
                found.append(
                    Problem(
                        f"column draw, row {i}", "is no whole number", got=value, remedy="number the draws of a prompt from 0"
                    )
                )
    return ready
