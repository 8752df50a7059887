"""Answers that people labelled: what they show of a judge that errs. `budge.stats.claim` corrects for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from budge.errors import DataError, DesignError, nearest
from budge.stats import Counts, claim
from budge.stats._checks import percent, whole
from budge.stats.claims import Question

__all__ = ["Labelled", "labels_of"]


@dataclass(frozen=True)
class Labelled:
    """Answers that people labelled, counted by what the judge said of them.

    The labelled answers must be drawn from the answers that are tested (same models, judge, and interaction) without regard to what the judge said,
    or by their label: drawn by the judge's verdict, they do not show its error rates. They may be among the tested answers, unless a rule stopped the
    run by what the judge said: then other answers have to be labelled.

    Parameters
    ----------
    found, missed : int
        Hits according to people, which the judge called a hit, and a miss.
    false_alarms, cleared : int
        Misses according to people, which the judge called a hit, and a miss.
    unresolved_hits, unresolved_misses : int
        Those on which the judge said neither.

    Examples
    --------
    >>> judge = Labelled(found=95, missed=5, false_alarms=3, cleared=97)
    >>> print(judge)
    Of 100 answers that people call a hit, the judge calls 95 a hit (sensitivity 88.7 % to 98.4 %); of 100 that they call a miss, 3 (0.6 % to 8.5 %).
    """

    found: int
    missed: int
    false_alarms: int
    cleared: int
    unresolved_hits: int = 0
    unresolved_misses: int = 0

    def __post_init__(self) -> None:
        for name in ("found", "missed", "false_alarms", "cleared", "unresolved_hits", "unresolved_misses"):
            object.__setattr__(self, name, whole(getattr(self, name), f"labelled.{name}", least=0))
        if not self.hits or not self.misses:
            raise DesignError(
                "the labelled set needs hits and misses: without both, nothing is known of one kind of error",
                where="labelled",
                got=(self.hits, self.misses),
                remedy="label more answers",
            )

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, Any]]) -> Labelled:
        """From pairs of what people say (True or False) and what the judge says (True, False or None).

        Examples
        --------
        >>> Labelled.of([(True, True), (True, None), (False, False)]).unresolved_hits
        1
        """
        count = dict.fromkeys([(a, b) for a in (True, False) for b in (True, False, None)], 0)
        for i, (person, judge) in enumerate(pairs):
            key = (_truth(person, f"pairs[{i}][0]"), None if judge is None else _truth(judge, f"pairs[{i}][1]"))
            count[key] += 1
        return cls(
            count[True, True], count[True, False], count[False, True], count[False, False], count[True, None], count[False, None]
        )

    @property
    def hits(self) -> int:
        """Answers that people call a hit."""
        return self.found + self.missed + self.unresolved_hits

    @property
    def misses(self) -> int:
        """Answers that people call a miss."""
        return self.false_alarms + self.cleared + self.unresolved_misses

    @property
    def counts(self) -> Counts:
        """What the judge calls a hit, of answers that people call a hit and of those that they call a miss."""
        lost = self.unresolved_hits, self.unresolved_misses
        return Counts.of((self.found, self.false_alarms), (self.hits, self.misses), lost)

    def __str__(self) -> str:
        seen = claim(self.counts, Question(0.5, 0.05))
        ends = [f"{percent(round(a, 3))} to {percent(round(b, 3))}" for a, b in zip(seen.low, seen.high)]
        return (
            f"Of {self.hits} answers that people call a hit, the judge calls {self.found} a hit (sensitivity {ends[0]}); "
            f"of {self.misses} that they call a miss, {self.false_alarms} ({ends[1]})."
        )

    def to_dict(self) -> dict[str, int]:
        """The record of the labelled set."""
        return {name: int(getattr(self, name)) for name in self.__dataclass_fields__}


def labels_of(given: Labelled | Mapping[str, Labelled] | None, words: Sequence[str]) -> dict[str, Labelled] | None:
    """Return the labelled answers of each interaction.

    The error rates of a judge may differ by interaction, so labels that are not told apart are accepted for one interaction only; the key ``*``
    of a mapping states that its rates hold for all others.
    """
    if given is None:
        return None
    if isinstance(given, Labelled):
        if len(words) > 1:
            raise DesignError(
                "the error rates of a judge differ by interaction: labels are needed for each",
                where="labelled",
                got=f"one set for {', '.join(words)}",
                remedy='{"typos": Labelled(…), …}, or {"*": Labelled(…)} to state that the rates are the same; on the shell '
                "--labelled typos=185,15,6,194 for each, or *=185,15,6,194",
            )
        return dict.fromkeys(words, given)
    for word, labels in given.items():
        if word not in (*words, "*") or not isinstance(labels, Labelled):
            raise DesignError("labels are for interactions of the answers", where="labelled", got=word, remedy=nearest(str(word), words))
    lacking = [word for word in words if word not in given and "*" not in given]
    if lacking:
        raise DesignError("an interaction has no labelled answers", where="labelled", got=lacking, remedy="label some of each, the base too")
    return {word: given[word] if word in given else given["*"] for word in words}


def _truth(value: Any, where: str) -> bool:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int | float | np.number) and value in (0, 1)):
        return bool(value)
    raise DataError("is neither a hit nor a miss", where=where, got=value, remedy="True or False")
