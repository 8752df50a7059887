"""Small edits at places of a text: how many, where and which, with the law of a draw in one place.

A kind of edit names its **sites**: disjoint places of the text that are not protected, each with the options that may stand there
instead, and their probabilities. Then one law holds for all kinds:

    every site is edited with probability `rate`, independently, given that at least `least` and at most `most` sites are;
    an edited site takes one of its options by their probabilities.

At least one is edited unless told otherwise, since a rewrite that changes nothing is no rewrite.

So of the sets of sites of one size all are equally likely, and `least = most = k` draws k sites uniformly. A text with fewer
than `least` sites has all of them edited. Constraints hold by construction: a protected place is no site.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, combinations, product
from math import comb, exp, lgamma, log
from typing import ClassVar

import numpy as np

from budge.errors import Problem, SpecError
from budge.llm.interactions.base import LISTABLE, Interaction
from budge.llm.interactions.checks import as_texts, count_problems, rate_problems
from budge.llm.interactions.spans import USUALLY_KEPT, Kept, keep_problems, kept_sentence
from budge.llm.prompts import Prompt

__all__ = ["Edits", "Site", "number_law"]


@dataclass(frozen=True)
class Site:
    """A place that may be edited: what may stand there instead, and how likely each is. None is what stands there now."""

    start: int
    end: int
    options: tuple[tuple[str, float], ...]

    @classmethod
    def uniform(cls, start: int, end: int, options: Sequence[str]) -> Site:
        """Every option as likely as the others."""
        return cls(start, end, tuple((option, 1 / len(options)) for option in options))


@dataclass(frozen=True)
class Edits(Interaction):
    """Edits at a few places of a text, drawn by the law of this module."""

    #: Whether another set of edits always makes another text: then rewrites can be counted without listing them.
    injective: ClassVar[bool] = False
    #: What one edit is, for sentences: ("word", "is misspelt").
    unit: ClassVar[tuple[str, str]] = ("place", "is changed")

    rate: float = field(default=0.1, kw_only=True)
    least: int = field(default=1, kw_only=True)
    most: int | None = field(default=None, kw_only=True)
    keep: tuple[str, ...] = field(default=USUALLY_KEPT, kw_only=True)
    keep_words: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keep", as_texts(() if self.keep is None else self.keep))
        object.__setattr__(self, "keep_words", as_texts(() if self.keep_words is None else self.keep_words))
        here = self.kind
        problems = rate_problems(f"{here}.rate", self.rate) + count_problems(f"{here}.least", self.least)
        problems += count_problems(f"{here}.most", self.most, none=True) + keep_problems(here, self.keep, self.keep_words)
        if not problems and self.most is not None and self.least > self.most:
            problems.append(Problem(f"{here}.least", f"is above most = {self.most}", self.least, "make least smaller"))
        if not problems and self.rate == 0 and self.least > 0:
            problems.append(Problem(f"{here}.rate", f"at rate 0 nothing is edited, but least is {self.least}", self.rate, "least=0 allows it"))
        SpecError.raise_if(problems + self._problems())

    def _problems(self) -> list[Problem]:
        return []

    @abstractmethod
    def sites(self, text: str, kept: Kept) -> list[Site]:
        """The places that may be edited: disjoint, in order, none protected."""

    def places(self, prompt: Prompt | str) -> list[Site]:
        """The sites of a prompt."""
        text = prompt if isinstance(prompt, str) else prompt.text
        return self.sites(text, Kept(text, self.keep, self.keep_words))

    def rewrite(self, prompt: Prompt, rng: np.random.Generator) -> str:
        """One draw by the law of this module."""
        return self._drawn(prompt.text, self.places(prompt), rng)

    def draw(self, x: str | Prompt, n: int, rng: np.random.Generator) -> list[str]:
        """n rewrites of a text; its sites are found once."""
        text = x if isinstance(x, str) else x.text
        sites = self.places(text)
        return [self._drawn(text, sites, rng) for _ in range(n)]

    def _drawn(self, text: str, sites: Sequence[Site], rng: np.random.Generator) -> str:
        if not sites:
            return text
        numbers, chances = zip(*number_law(len(sites), self.rate, self.least, self.most))
        m = numbers[_inverse(chances, rng.random())]
        chosen = sorted(rng.choice(len(sites), size=m, replace=False).tolist())
        options = [sites[i].options[_inverse([p for _, p in sites[i].options], rng.random())][0] for i in chosen]
        return _edited(text, [sites[i] for i in chosen], options)

    def outcomes(self, prompt: Prompt) -> Iterator[tuple[str, float]]:
        """Every set of sites with every choice of options."""
        sites = self.places(prompt)
        for m, chance in number_law(len(sites), self.rate, self.least, self.most):
            each = chance / comb(len(sites), m)
            for chosen in combinations(sites, m):
                for options in product(*(site.options for site in chosen)):
                    probability = each
                    for _, p in options:
                        probability *= p
                    yield _edited(prompt.text, chosen, [text for text, _ in options]), probability

    def reachable(self, prompt: Prompt) -> int | None:
        """How many distinct rewrites there are, the text as it stands included where nothing need be edited."""
        sites = self.places(prompt)
        ways = [1]  # ways[m]: choices of m sites with their options
        for site in sites:
            k = len(site.options)
            ways = [a + k * b for a, b in zip([*ways, 0], [0, *ways])]
        total = sum(ways[m] for m, _ in number_law(len(sites), self.rate, self.least, self.most))
        if self.injective:
            return total
        return super().reachable(prompt) if total <= 10 * LISTABLE else None

    def describe(self) -> str:
        """One English sentence."""
        unit, verb = self.unit
        few = f"exactly {self.least} {unit}{'' if self.least == 1 else 's'} a text" if self.least == self.most else ""
        limits = [f"at least {self.least}" if self.least else "", f"at most {self.most}" if self.most is not None else ""]
        bounds = few or " and ".join(part for part in limits if part)
        if few:
            start = f"{few[0].upper()}{few[1:]} {verb}" if self.least == 1 else f"{few[0].upper()}{few[1:]} {_plural(verb)}"
        else:
            start = f"Each {unit} {verb} with probability {self.rate:g}" + (f" ({bounds} a text)" if bounds else "")
        return f"{start}{self._how()}{kept_sentence(self.keep, self.keep_words)}."

    def _how(self) -> str:
        return ""


def _plural(verb: str) -> str:
    return "are" + verb.removeprefix("is")


def _edited(text: str, sites: Sequence[Site], options: Sequence[str]) -> str:
    """The text with these options at these sites, which are in order."""
    parts, at = [], 0
    for site, option in zip(sites, options):
        parts += [text[at : site.start], option]
        at = site.end
    return "".join([*parts, text[at:]])


def number_law(sites: int, rate: float, least: int = 0, most: int | None = None) -> list[tuple[int, float]]:
    """The number of edits and its probability: binomial, given that it is neither below `least` nor above `most`.

    Where there are fewer sites than `least`, all are edited. At rate 1 as many are as may be.

    Examples
    --------
    >>> number_law(3, 0.5, least=1, most=2)
    [(1, 0.5), (2, 0.5)]
    """
    low, high = min(least, sites), sites if most is None else min(most, sites)
    if rate <= 0 or low == high:
        return [(low, 1.0)]
    if rate >= 1:
        return [(high, 1.0)]
    odds = log(rate) - log(1 - rate)
    logs = [lgamma(sites + 1) - lgamma(m + 1) - lgamma(sites - m + 1) + m * odds for m in range(low, high + 1)]
    top = max(logs)
    weights = [exp(value - top) for value in logs]
    total = sum(weights)
    return [(m, w / total) for m, w in zip(range(low, high + 1), weights)]


def _inverse(chances: Sequence[float], u: float) -> int:
    """The index at which the running sum passes u: rounding at the end falls on the last."""
    return min(bisect_right(list(accumulate(chances)), u), len(chances) - 1)
