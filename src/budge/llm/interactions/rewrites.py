"""Rewrites that were made before: a file of paraphrases or translations. SORRY-Bench's own mutations load this way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from budge.errors import DataError, EmptyError, InputError, Problem, SpecError, nearest
from budge.llm.interactions.base import Interaction
from budge.llm.prompt_files import read_records
from budge.llm.prompts import Prompt, Prompts, listed, text_id

__all__ = ["Rewrites", "rewrites"]

_FIELDS = {"id": ("id", "prompt_id", "question_id"), "text": ("rewrite", "text", "prompt", "question")}
_ORIGINAL = ("original", "original_prompt", "source")
_POSITION = re.compile(r"p\d+")


@dataclass(frozen=True)
class Rewrites(Interaction):
    """For each prompt, by its identifier, the rewrites that it has; each is as likely as the others."""

    kind: ClassVar[str] = "rewrites"

    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    originals: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    missing: str = field(default="error", kw_only=True)
    path: str = field(default="", kw_only=True)
    style: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        problems: list[Problem] = []
        try:
            object.__setattr__(self, "texts", tuple((str(i), tuple(dict.fromkeys(t))) for i, t in self.texts))
        except (TypeError, ValueError):
            problems.append(Problem("rewrites.texts", "must be identifiers with their texts", self.texts))
        object.__setattr__(self, "originals", tuple((str(i), str(text)) for i, text in self.originals))
        if not problems and not self.texts:
            problems.append(Problem("rewrites.texts", "there is none", 0))
        if self.missing not in ("error", "skip"):
            problems.append(Problem("rewrites.missing", "no such way", self.missing, nearest(self.missing, ("error", "skip"))))
        if not problems:
            problems += [
                Problem(f"rewrites of {i}", "a rewrite is empty", list(t))
                for i, t in self.texts
                if not t or not all(isinstance(text, str) and text.strip() for text in t)
            ]
            if len({i for i, _ in self.texts}) < len(self.texts):
                problems.append(Problem("rewrites.texts", "an identifier is repeated", len(self.texts)))
        SpecError.raise_if(problems)

    @cached_property
    def _by_id(self) -> dict[str, tuple[str, ...]]:
        return dict(self.texts)

    @property
    def name(self) -> str:
        """The label, or the style, or the name of the file."""
        return self.label or self.style or (Path(self.path).stem if self.path else self.kind)

    @property
    def language(self) -> str:
        """The language of SORRY-Bench's translations, by its code; empty where it is not known."""
        return self.style.removeprefix("translate-").partition("-")[0] if self.style.startswith("translate-") else ""

    def _outside(self) -> tuple[str, ...]:
        return ("path", "style", "missing", "originals")

    @property
    def digest(self) -> str:
        """A digest of the rewrites."""
        return blake2b(repr(self.texts).encode(), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """The record: the file and a digest of what it held, or the rewrites themselves where there is no file."""
        record = super().to_dict()
        return record if not self.path else {k: v for k, v in record.items() if k not in ("texts", "originals")} | {"digest": self.digest}

    @classmethod
    def from_record(cls, given: Mapping[str, Any]) -> Rewrites:
        """Read the file again; that it holds the same is checked."""
        rest = {k: v for k, v in given.items() if k not in ("digest", "texts", "originals")}
        unknown = [k for k in rest if k not in ("path", "style", "missing", "label")]
        SpecError.raise_if(
            Problem(f"rewrites.{k}", "no such argument", rest[k], nearest(k, ("path", "style", "missing"))) for k in unknown
        )
        if "texts" in given:
            return cls(given["texts"], originals=given.get("originals", ()), **rest)
        made = rewrites(**{"path": "", **rest})
        if "digest" in given and made.digest != given["digest"]:
            what = "the file does not hold what it held when the record was written"
            raise DataError(what, where=str(given.get("path")), got=made.digest, remedy=f"the record has {given['digest']}")
        return made

    def check(self, prompts: Prompts) -> Prompts:
        """Return those that have a rewrite; the others are an error, or left out with ``missing="skip"``. So is a rewrite of another text."""
        known = dict(self.originals)
        other = [p.id for p in prompts if p.id in self._by_id and known.get(p.id, p.text).strip() != p.text.strip()]
        if other:
            remedy = "mend the column original, or the identifiers: a rewrite belongs to a text"
            raise DataError(f"{len(other)} of {len(prompts)} prompts have a rewrite of another text", where=self.name, got=listed(other), remedy=remedy)
        lacking = [p.id for p in prompts if not self._found(p)]
        if lacking and self.missing == "error":
            what = f"{len(lacking)} of {len(prompts)} prompts have no rewrite"
            remedy = 'add them, or missing="skip" leaves those prompts out'
            if all(_POSITION.fullmatch(i) for i in self._by_id):
                remedy = "p1, p2, … are positions, which name no text: give each rewrite its original (a column original)"
            raise DataError(what, where=self.name, got=listed(lacking), remedy=remedy)
        if len(lacking) == len(prompts):
            remedy = "identifiers must be those of the prompts; or give each rewrite its original (a column original)"
            raise DataError("no prompt has a rewrite", where=self.name, got=listed(lacking), remedy=remedy)
        return Prompts(tuple(p for p in prompts if self._found(p)))

    def _found(self, prompt: Prompt) -> tuple[str, ...]:
        """Return the rewrites under the prompt's identifier, or under its text; none where there are none."""
        return self._by_id.get(prompt.id) or self._by_id.get(text_id(prompt.text)) or self._by_id.get(prompt.text, ())

    def _of(self, prompt: Prompt) -> tuple[str, ...]:
        texts = self._found(prompt)
        if not texts:
            raise EmptyError(
                "has no rewrite", where=f"{self.name}, prompt {prompt.id}", remedy="check(prompts) tells which have none"
            )
        return texts

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """One of the prompt's rewrites, uniformly."""
        texts = self._of(prompt)
        return texts[int(rng.integers(len(texts)))]

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """The prompt's rewrites."""
        texts = self._of(prompt)
        return ((text, 1 / len(texts)) for text in texts)

    def describe(self) -> str:
        """One English sentence."""
        count = sum(len(t) for _, t in self.texts)
        return f"The prompt is replaced by one of its rewrites in {self.path or 'a list'} ({count} for {len(self.texts)} prompts), each as likely."


def rewrites(
    path: str | Path | Mapping[str, str | Sequence[str]],
    *,
    style: str = "",
    missing: Literal["error", "skip"] = "error",
    label: str = "",
) -> Rewrites:
    """Rewrites from a file, or from a mapping of identifiers to texts; of several for one prompt, one is drawn uniformly.

    Parameters
    ----------
    path
        CSV, JSON Lines or JSON with ``rewrite`` and the prompt's own identifier (``id``), its text (``original``), or both, which are
        then compared; one or several rows per prompt. Or a file of SORRY-Bench's mutations, or its folder, with a style. Or a mapping of
        identifiers or texts of prompts to rewrites.
    style
        Of SORRY-Bench: the mutation, such as ``misspellings``, ``role_play`` or ``translate-fr``.
    missing
        What to do with a prompt that has no rewrite: an error that lists them, or leave it out.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> french = rewrites({"q1": ["Où est Lima ?", "Lima, c'est où ?"]}, label="french")
    >>> french.reachable(Prompt("q1", "Where is Lima?"))
    2
    """
    if isinstance(path, Mapping):
        pairs = tuple((str(i), (t,) if isinstance(t, str) else tuple(t)) for i, t in path.items())
        return Rewrites(pairs, missing=missing, style=style, label=label)
    if not isinstance(path, str | Path) or not str(path):
        raise InputError("a file or a mapping of identifiers to texts is wanted", where="rewrites", got=path)
    place = Path(path)
    records, known = read_records(place, style=style)
    texts, originals = _grouped(records, known, str(place))
    return Rewrites(texts, originals=originals, missing=missing, path=str(place), style=style, label=label)


def _grouped(
    records: Sequence[Any], known: Mapping[str, str] | None, where: str
) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[tuple[str, str], ...]]:
    """Return the rewrites by identifier, and the originals where the file has them."""
    keys = list(dict.fromkeys(str(k) for r in records if isinstance(r, Mapping) for k in r))
    problems: list[Problem] = []
    places: dict[str, str] = dict(known or {})
    for name, aliases in _FIELDS.items():
        there = [alias for alias in aliases if alias in keys]
        if name not in places and there:
            places[name] = there[0]
        elif name not in places and not (name == "id" and any(alias in keys for alias in _ORIGINAL)):
            problems.append(
                Problem("columns", f"no column holds the {name} (one of {', '.join(aliases)})", keys, nearest(aliases[0], keys))
            )
    original = next((alias for alias in _ORIGINAL if alias in keys), "")
    found: dict[str, list[str]] = {}
    originals: dict[str, str] = {}
    for number, record in enumerate(records if not problems else (), 1):
        before = record.get(original) if isinstance(record, Mapping) else None
        who = record.get(places.get("id", "")) if isinstance(record, Mapping) else None
        if (who is None or not str(who).strip()) and isinstance(before, str) and before.strip():
            who = text_id(before)
        text = record.get(places["text"]) if isinstance(record, Mapping) else None
        texts: list[Any] = text if isinstance(text, list) else [text]
        if who is None or not str(who).strip():
            problems.append(Problem(f"record {number}", "has no identifier and no original", record))
        elif not texts or not all(isinstance(t, str) and t.strip() for t in texts):
            problems.append(Problem(f"record {number} ({who})", "a rewrite is empty or no text", text))
        else:
            found.setdefault(str(who), []).extend(texts)
            if isinstance(before, str) and before.strip() and originals.setdefault(str(who), before) != before:
                problems.append(Problem(f"record {number} ({who})", "has another original than an earlier record", before))
    if not problems and not found:
        problems.append(Problem("", "holds no rewrite"))
    if problems:
        raise DataError(problems).at(where)
    return tuple((i, tuple(t)) for i, t in found.items()), tuple(originals.items())
