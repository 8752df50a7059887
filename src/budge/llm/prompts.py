"""Prompts as inputs: what is asked, its category, and what a matching answer would be."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd

from budge.errors import DataError, InputError, Problem, nearest

if TYPE_CHECKING:
    from budge.llm.prompt_files import Choices

__all__ = ["Prompt", "Prompts"]

#: How many identifiers a message lists before it only counts the rest.
LISTED = 8
#: Columns that may hold each field, the first that is there wins.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "prompt", "question", "instruction", "input"),
    "id": ("id", "prompt_id", "question_id"),
    "category": ("category", "topic", "subject"),
    "expected": ("expected", "answer", "label", "target"),
    "system": ("system", "system_prompt"),
    "options": ("options", "choices"),
    "passages": ("passages", "contexts", "documents"),
}
#: Fields that hold several texts; in a CSV file they are separated by ``|``.
LISTS = ("options", "passages")


@dataclass(frozen=True)
class Prompt:
    """One prompt of a benchmark.

    `expected` may hold several accepted answers, separated by ``|``. `passages` stand before the text in what is sent, `options` after it with
    letters, and `system` is the system message. The expected answer of a prompt with options may be a letter.

    Examples
    --------
    >>> Prompt("q1", "What is the capital of France?", category="geography", expected="Paris").id
    'q1'
    >>> print(Prompt("q2", "Which is a river?", expected="B", options=("Paris", "Seine")).asked)
    Which is a river?
    <BLANKLINE>
    A) Paris
    B) Seine
    """

    id: str
    text: str
    category: str = ""
    expected: str = ""
    system: str = ""
    options: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = [
            Problem(f"prompt {self.id!r}.{name}", "must be text", getattr(self, name))
            for name in ("id", "text", "category", "expected", "system")
            if not isinstance(getattr(self, name), str)
        ]
        for name in LISTS:
            value = getattr(self, name)
            texts = tuple(value) if isinstance(value, list | tuple) else value
            object.__setattr__(self, name, texts)
            if not isinstance(texts, tuple) or not all(isinstance(text, str) and text.strip() for text in texts):
                wrong.append(Problem(f"prompt {self.id!r}.{name}", "must be a list of texts", value))
            elif name == "options" and not (len(texts) != 1 and len(texts) <= 26):
                wrong.append(Problem(f"prompt {self.id!r}.options", "must be 2 to 26, or none", len(texts)))
        if not wrong and not self.id.strip():
            wrong.append(Problem("prompt", "has an empty identifier", self.text[:60]))
        if not wrong and not self.text.strip():
            wrong.append(Problem(f"prompt {self.id!r}", "has an empty text", self.text))
        DataError.raise_if(wrong)

    @property
    def asked(self) -> str:
        """The user's message: passages, text and lettered options; the text alone where there is nothing else."""
        options = "\n".join(f"{chr(65 + i)}) {option}" for i, option in enumerate(self.options))
        return "\n\n".join([*self.passages, self.text, *([options] if options else [])])

    def to_dict(self) -> dict[str, Any]:
        """The fields; those that few prompts have are left out where they are empty."""
        return {key: value for key, value in asdict(self).items() if value or key not in ("system", *LISTS)}


@dataclass(frozen=True)
class Prompts(Sequence[Prompt]):
    """The prompts of a benchmark, in order; identifiers are distinct.

    Examples
    --------
    >>> prompts = Prompts.of(["Name a colour.", "Name a river."])
    >>> [p.id for p in prompts], prompts.subset(ids=["t-7c026d0b"])[0].text
    (['t-6f5002aa', 't-7c026d0b'], 'Name a river.')
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
            Records and tables have a text and may have id, category, expected, options, passages and a system message. A dataset of Inspect is
            taken too. A prompt without an id is identified by a digest of its text, so that it has the same identifier wherever it stands.
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
        read: Choices | None = None,
    ) -> Prompts:
        """From a table of any kind, JSON Lines, JSON, or plain text with a prompt a line; a copy of SORRY-Bench or StrongREJECT.

        Parameters
        ----------
        path
            The file, or the address of a database; for SORRY-Bench the folder that holds ``question.jsonl`` will do.
        format
            ``csv`` (a table of any kind), ``jsonl``, ``json``, ``txt``, ``sorry-bench`` or ``strongreject``; ``auto`` goes by the name and the fields.
        style
            Of SORRY-Bench: which `prompt_style` to take.
        read
            How a table is read where that is not left to be noticed: choices of `budge.read_table`, such as ``{"sheet": "asked"}``. All cells
            of text are kept as they stand.
        """
        from budge.llm.prompt_files import read_records
        from budge.tables import masked

        records, known = read_records(path, format, style=style, read=read)
        try:
            return cls.of(records, columns=columns or known, repeated=repeated)
        except DataError as error:
            raise error.at(masked(str(path))) from None

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
        body = json.dumps([p.to_dict() for p in self.items], ensure_ascii=True, separators=(",", ":"), sort_keys=True)
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
        records = [p.to_dict() for p in self.items]
        more = [name for name in ("system", *LISTS) if any(name in record for record in records)]
        return pd.DataFrame(records, columns=["id", "text", "category", "expected", *more])


def listed(names: Sequence[str], most: int = LISTED) -> str:
    """Some names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def text_id(text: str) -> str:
    """Return the identifier of a prompt that has none of its own."""
    return f"t-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def _free_id(text: Any, found: Sequence[Prompt]) -> str:
    """Return the identifier of a prompt that has none of its own: with a number where the same text was there before."""
    who = text_id(text) if isinstance(text, str) else ""
    twins = sum(prompt.text == text for prompt in found) if who in {prompt.id for prompt in found} else 0
    return f"{who}-{twins + 1}" if twins else who


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
        if hasattr(record, "input") and hasattr(record, "target") and hasattr(record, "choices"):
            _add_sample(record, number, found, problems)
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
    name, text = record.get("id"), record.get("text")
    who = _plain(name) if name is not None and str(name).strip() else _free_id(text, found)
    if text is None or (isinstance(text, str) and not text.strip()):
        problems.append(Problem(f"prompt {number}", "has an empty text", text, "write it or leave the prompt out"))
    elif not isinstance(text, str):
        problems.append(Problem(f"prompt {number}", "the text must be text", text))
    else:
        rest: dict[str, Any] = {key: "" if record.get(key) is None else _plain(record[key]) for key in ("category", "expected", "system")}
        rest |= {key: _several(record.get(key)) for key in LISTS}
        try:
            found.append(Prompt(who, text, **rest))
        except DataError as error:
            problems += error.problems


def _add_sample(sample: Any, number: int, found: list[Prompt], problems: list[Problem]) -> None:
    """Add a sample of an Inspect dataset; one with turns that are no prompt is refused, since they would be lost."""
    from budge.llm.inspect_record import as_prompt

    name = f"{number}" if sample.id is None else str(sample.id)
    roles = [] if isinstance(sample.input, str) else [message.role for message in sample.input]
    if [role for role in roles if role != "system"] not in ([], ["user"]):
        remedy = "run the task itself: inspect eval budge/under -T task=…"
        problems.append(Problem(f"sample {name}", "has several turns, and a prompt has one", roles, remedy))
        return
    try:
        prompt = as_prompt(sample, name)
        who = _free_id(prompt.text, found) if sample.id is None else name
        found.append(replace(prompt, id=who, category=str((sample.metadata or {}).get("category", ""))))
    except DataError as error:
        problems += error.problems


def _several(value: Any) -> Any:
    """Return a field with several texts as a tuple: a list as it is, a text cut at ``|``."""
    if value is None or value == "":
        return ()
    return tuple(part.strip() for part in value.split("|")) if isinstance(value, str) else value


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
