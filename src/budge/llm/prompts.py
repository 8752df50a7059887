"""Prompts as inputs: what is asked, its category, and what a matching answer would be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from budge.errors import DataError, InputError, Problem, nearest

__all__ = ["Prompt", "Prompts"]

#: How many identifiers a message lists before it only counts the rest.
LISTED = 8
#: Columns that may hold each field, the first that is there wins.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "prompt", "question", "instruction", "input"),
    "id": ("id", "prompt_id", "question_id"),
    "category": ("category", "topic", "subject"),
    "expected": ("expected", "answer", "label", "target"),
}


@dataclass(frozen=True)
class Prompt:
    """One prompt of a benchmark.

    `expected` may hold several accepted answers, separated by ``|``.

    Examples
    --------
    >>> Prompt("q1", "What is the capital of France?", category="geography", expected="Paris").id
    'q1'
    """

    id: str
    text: str
    category: str = ""
    expected: str = ""

    def __post_init__(self) -> None:
        wrong = [
            Problem(f"prompt {self.id!r}.{name}", "must be text", getattr(self, name))
            for name in ("id", "text", "category", "expected")
            if not isinstance(getattr(self, name), str)
        ]
        if not wrong and not self.id.strip():
            wrong.append(Problem("prompt", "has an empty identifier", self.text[:60]))
        if not wrong and not self.text.strip():
            wrong.append(Problem(f"prompt {self.id!r}", "has an empty text", self.text))
        DataError.raise_if(wrong)


@dataclass(frozen=True)
class Prompts(Sequence[Prompt]):
    """The prompts of a benchmark, in order; identifiers are distinct.

    Examples
    --------
    >>> prompts = Prompts.of(["Name a colour.", "Name a river."])
    >>> [p.id for p in prompts], prompts.subset(ids=["p2"])[0].text
    (['p1', 'p2'], 'Name a river.')
    """

    items: tuple[Prompt, ...]

    def __post_init__(self) -> None:
        repeated = [str(i) for i, count in Counter(p.id for p in self.items).items() if count > 1]
        if repeated:
            raise DataError("identifiers are repeated", where="prompts", got=listed(repeated), remedy="give each prompt its own")

    @classmethod
    def of(
        cls,
        items: Iterable[str | Prompt | Mapping[str, Any]] | pd.DataFrame,
        *,
        columns: Mapping[str, str] | None = None,
        repeated: Literal["error", "drop", "keep"] = "error",
    ) -> Prompts:
        """From texts, prompts, records or a table.

        Parameters
        ----------
        items
            Texts get the identifiers p1, p2, …; records and tables have a text and may have id, category and expected.
        columns
            Which column holds which field, such as ``{"text": "forbidden_prompt"}``, where the names differ.
        repeated
            What to do with a text that occurs twice: prompts with the same text are one input, counted twice.

        Raises
        ------
        DataError
            With all problems at once.

        Examples
        --------
        >>> Prompts.of([{"id": "a", "prompt": "Hello?", "category": "greeting"}]).categories
        ('greeting',)
        """
        if isinstance(items, str | bytes):
            raise DataError("one text is no list of prompts", where="prompts", got=items, remedy=f"write Prompts.of([{items!r}])")
        if isinstance(items, pd.DataFrame):
            table = items.astype(object)
            records: list[Any] = table.where(table.notna(), None).to_dict("records")
            if not records:
                _places(list(map(str, items.columns)), columns, [])
        else:
            records = list(items)
        return cls(_distinct(_prompts(records, columns), repeated))

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: str = "auto",
        columns: Mapping[str, str] | None = None,
        style: str = "base",
        repeated: Literal["error", "drop", "keep"] = "error",
    ) -> Prompts:
        """From a file: CSV, JSON Lines, JSON, or plain text with a prompt a line; a copy of SORRY-Bench or StrongREJECT.

        Parameters
        ----------
        path
            The file; for SORRY-Bench the folder that holds ``question.jsonl`` will do.
        format
            ``csv``, ``jsonl``, ``json``, ``txt``, ``sorry-bench`` or ``strongreject``; ``auto`` goes by the name and the fields.
        style
            Of SORRY-Bench: which `prompt_style` to take.
        """
        from budge.llm.prompt_files import read_records

        records, known = read_records(Path(path), format, style=style)
        try:
            return cls.of(records, columns=columns or known, repeated=repeated)
        except DataError as error:
            raise error.at(str(path)) from None

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self.items)

    @overload
    def __getitem__(self, at: int) -> Prompt: ...
    @overload
    def __getitem__(self, at: slice) -> Prompts: ...
    def __getitem__(self, at: int | slice) -> Prompt | Prompts:
        return Prompts(self.items[at]) if isinstance(at, slice) else self.items[at]

    @property
    def ids(self) -> tuple[str, ...]:
        """The identifiers, in order."""
        return tuple(p.id for p in self.items)

    @property
    def categories(self) -> tuple[str, ...]:
        """The distinct categories, in the order in which they first occur."""
        return tuple(dict.fromkeys(p.category for p in self.items))

    @property
    def digest(self) -> str:
        """A digest of all that is here, order included: two runs with the same digest had the same prompts."""
        body = json.dumps([asdict(p) for p in self.items], ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return blake2b(body.encode(), digest_size=16).hexdigest()

    def subset(
        self,
        *,
        category: str | Iterable[str] | None = None,
        ids: Iterable[str] | None = None,
        n: int | None = None,
        seed: int = 0,
    ) -> Prompts:
        """Some of the prompts, in the same order: of some categories, with some identifiers, and n of those at random.

        The n are drawn uniformly without replacement.
        """
        chosen = list(self.items)
        if category is not None:
            wanted = [category] if isinstance(category, str) else list(category)
            self._known(wanted, self.categories, "category")
            chosen = [p for p in chosen if p.category in set(wanted)]
        if ids is not None:
            named = [ids] if isinstance(ids, str) else list(ids)
            self._known(named, self.ids, "ids")
            chosen = [p for p in chosen if p.id in set(named)]
        if n is not None:
            if isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= len(chosen):
                raise InputError(f"must be between 1 and the {len(chosen)} prompts there are", where="n", got=n)
            order = np.random.default_rng(seed).permutation(len(chosen))[:n]
            chosen = [chosen[i] for i in sorted(order)]
        return Prompts(tuple(chosen))

    @staticmethod
    def _known(wanted: Sequence[str], known: Sequence[str], where: str) -> None:
        InputError.raise_if(
            Problem(f"subset.{where}", "is not among the prompts", w, nearest(w, known)) for w in wanted if w not in set(known)
        )

    def to_frame(self) -> pd.DataFrame:
        """One row a prompt."""
        return pd.DataFrame([asdict(p) for p in self.items], columns=["id", "text", "category", "expected"])


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _prompts(records: Sequence[Any], columns: Mapping[str, str] | None) -> list[Prompt]:
    problems: list[Problem] = []
    found: list[Prompt] = []
    if not records:
        problems.append(Problem("prompts", "there is none", 0, "give at least one"))
    places: dict[str, str] | None = None
    for number, record in enumerate(records, 1):
        if isinstance(record, Prompt):
            found.append(record)
            continue
        if isinstance(record, Mapping):
            if places is None:
                keys = dict.fromkeys(str(k) for r in records if isinstance(r, Mapping) for k in r)
                places = _places(list(keys), columns, problems)
            if "text" not in places:
                break
            record = {name: record.get(place) for name, place in places.items()}
        elif isinstance(record, str):
            record = {"text": record}
        else:
            problems.append(Problem(f"prompt {number}", "is no text, record or prompt", record))
            continue
        _add(record, number, found, problems)
    counts = Counter(p.id for p in found)
    if any(count > 1 for count in counts.values()):
        repeated = [i for i, count in counts.items() if count > 1]
        problems.append(Problem("id", "identifiers are repeated", listed(repeated), "give each prompt its own"))
    DataError.raise_if(problems)
    return found


def _add(record: Mapping[str, Any], number: int, found: list[Prompt], problems: list[Problem]) -> None:
    name = record.get("id")
    who = f"p{number}" if name is None or str(name).strip() == "" else _plain(name)
    text = record.get("text")
    if text is None or (isinstance(text, str) and not text.strip()):
        problems.append(Problem(f"prompt {number} ({who})", "has an empty text", text, "write it or leave the prompt out"))
    elif not isinstance(text, str):
        problems.append(Problem(f"prompt {number} ({who})", "the text must be text", text))
    else:
        rest = {key: "" if record.get(key) is None else _plain(record[key]) for key in ("category", "expected")}
        found.append(Prompt(who, text, **rest))


def _plain(value: Any) -> str:
    """Identifiers and labels come as numbers too: 7 and 7.0 are both "7"."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return str(value)


def _places(keys: list[str], columns: Mapping[str, str] | None, problems: list[Problem]) -> dict[str, str]:
    """Which column holds which field."""
    given = dict(columns or {})
    places: dict[str, str] = {}
    for name, column in given.items():
        if name not in ALIASES:
            problems.append(Problem("columns", "no such field of a prompt", name, nearest(name, ALIASES)))
        elif column not in keys:
            problems.append(Problem("columns", f"there is no column for {name}", column, nearest(column, keys)))
        else:
            places[name] = column
    for name, aliases in ALIASES.items():
        if name not in given:
            there = [alias for alias in aliases if alias in keys and alias not in places.values()]
            if there:
                places[name] = there[0]
    if "text" not in places and "text" not in given:
        remedy = f"{nearest('text', keys)}; or columns={{'text': …}}"
        problems.append(Problem("columns", f"no column holds the prompts (one of {', '.join(ALIASES['text'])})", keys, remedy))
    return places


def _distinct(prompts: Sequence[Prompt], repeated: str) -> tuple[Prompt, ...]:
    if repeated not in ("error", "drop", "keep"):
        raise InputError("no such way", where="repeated", got=repeated, remedy=nearest(repeated, ("error", "drop", "keep")))
    first: dict[str, Prompt] = {}
    twins = [f"{first[p.text].id} = {p.id}" for p in prompts if first.setdefault(p.text, p) is not p]
    if twins and repeated == "error":
        what = "the same text occurs more than once: one input would be counted several times"
        raise DataError(what, where="prompts", got=listed(twins), remedy='repeated="drop" keeps the first, "keep" keeps all')
    return tuple(first.values()) if repeated == "drop" else tuple(prompts)
