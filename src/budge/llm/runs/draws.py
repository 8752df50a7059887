"""Which draws a run makes, and from which streams: fixed before anything is asked, whatever the order of asking.

Two schemes. `joint`: n times a prompt drawn uniformly with replacement, a rewrite of it, a completion; then the hits are independent
with the mean over these prompts. `per_prompt`: m draws for each prompt. All models and interactions share the prompts of a joint
draw, and all models its rewrite, so that they can be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from budge.llm.prompts import Prompt
from budge.reach.streams import generator

__all__ = ["Draw", "decode_seed", "draws_of", "rewrite_stream"]


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
