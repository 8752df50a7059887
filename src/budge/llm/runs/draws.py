"""Which draws a run makes, from which streams, and where a rule stops: fixed before anything is asked, whatever the order of asking.

Two schemes. `joint`: n times a prompt drawn uniformly with replacement, a rewrite of it, a completion; then the hits are independent
with the mean over these prompts. `per_prompt`: m draws for each prompt. All models and interactions share the prompts of a joint
draw, and all models its rewrite, so that they can be compared in pairs.

A stopping rule is applied draw by draw in this order, so that the verdict and the table depend neither on how many calls are under way nor on
what was answered first. An unresolved draw counts against the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budge.llm.prompts import Prompt
from budge.reach.streams import generator
from budge.stats import StoppingRule

__all__ = ["Draw", "Stop", "decode_seed", "draws_of", "ended_by_cap", "needed", "rewrite_stream", "stop_of"]


@dataclass(frozen=True)
class Draw:
    """One completion to be asked for: a prompt, an interaction, a model and the number of the draw."""

    model: str
    interaction: str
    prompt: Prompt
    index: int

    @property
    def key(self) -> str:
        """Its name in the journal; the parts are kept apart whatever they hold."""
        return f"{len(self.model)}:{self.model}|{self.rewrite_key}"

    @property
    def rewrite_key(self) -> str:
        """The same without the model: models share rewrites."""
        return f"{len(self.interaction)}:{self.interaction}|{len(self.prompt.id)}:{self.prompt.id}|{self.index:08d}"


def draws_of(
    model: str, interaction: str, prompts: Sequence[Prompt], *, n: int | None, per_prompt: int | None, seed: int
) -> Iterator[Draw]:
    """The draws of one model under one interaction, in order."""
    if per_prompt is not None:
        for prompt in prompts:
            for index in range(per_prompt):
                yield Draw(model, interaction, prompt, index)
        return
    assert n is not None
    ordered = sorted(prompts, key=lambda prompt: (prompt.text, prompt.id))  # so that the order of a file does not matter
    for index in range(n):
        chosen = int(generator(seed, index, "llm prompt").integers(len(ordered)))
        yield Draw(model, interaction, ordered[chosen], index)


def rewrite_stream(seed: int, draw: Draw) -> np.random.Generator:
    """The generator of the rewrite: keyed by seed, prompt text, interaction and draw."""
    return generator(seed, _content(draw), "llm rewrite")


def decode_seed(seed: int, draw: Draw, purpose: str = "llm decode") -> int:
    """The seed sent with a call, for servers that take one: another one for each draw, so that no repeat is an echo."""
    return int(generator(seed, _content(draw), purpose).integers(1, 2**31 - 1))


def _content(draw: Draw) -> int:
    parts = [draw.prompt.text.encode("utf-8", "surrogatepass"), draw.interaction.encode("utf-8", "surrogatepass")]
    text = b"".join(len(part).to_bytes(8, "little") + part for part in (*parts, str(draw.index).encode()))
    return int.from_bytes(blake2b(text, digest_size=16).digest(), "little")


@dataclass(frozen=True)
class Stop:
    """Where a rule stopped for one model under one interaction."""

    model: str
    interaction: str
    verdict: str
    draws: int
    hits: int
    unresolved: int
    asked: int
    fixed: int
    capped: bool = False  # no verdict, and more draws could have brought one

    @property
    def saved(self) -> int:
        """Draws saved against the fixed design."""
        return self.fixed - self.asked

    def __str__(self) -> str:
        return (
            f"{self.model} under {self.interaction}: {self.verdict} after {self.draws} draws ({self.saved} of {self.fixed} saved)"
        )

    def to_dict(self) -> dict[str, Any]:
        """The record of the stop."""
        names = ("model", "interaction", "verdict", "draws", "hits", "unresolved", "asked", "saved", "fixed", "capped")
        return {name: getattr(self, name) for name in names}


def _surprises(hits: Sequence[bool | None], claim: str) -> NDArray[np.int64]:
    """1 for each draw that speaks against the claim; an unresolved one does."""
    return np.array([hit is None or bool(hit) == (claim == "below") for hit in hits], dtype=np.int64)


def stop_of(rule: StoppingRule, hits: Sequence[bool | None]) -> tuple[str, int]:
    """The verdict and the number of draws after which the rule stops; ``("continue", n)`` if it does not within these."""
    j = np.cumsum(_surprises(hits[: rule.max_n], rule.claim))
    t = np.arange(1, len(j) + 1)
    shown = j <= rule.accept[t]
    stops = np.flatnonzero(shown | (j >= rule.give_up[t]) | (t == rule.max_n))
    if not len(stops):
        return "continue", len(hits)
    return (rule.claim if shown[stops[0]] else "inconclusive"), int(stops[0]) + 1


def ended_by_cap(rule: StoppingRule, hits: Sequence[bool | None]) -> bool:
    """Return whether a run without a verdict ended for its cap alone: at it, or past the last count that could still be shown within it."""
    surprises = int(_surprises(hits, rule.claim).sum())
    return len(hits) == rule.max_n or surprises > int(rule.accept.max())


def needed(rule: StoppingRule, hits: Sequence[bool | None]) -> int:
    """The fewest further draws that could end it: to ask for so many at once wastes none."""
    t, j = len(hits), int(_surprises(hits, rule.claim).sum())
    more = np.arange(1, rule.max_n - t + 1)
    ends = np.flatnonzero((j <= rule.accept[t + more]) | (j + more >= rule.give_up[t + more]))
    return int(more[ends[0]]) if len(ends) else max(rule.max_n - t, 0)
