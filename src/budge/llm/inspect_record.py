"""The record of one draw in the metadata of an Inspect sample. Nothing here imports Inspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from budge.errors import DataError
from budge.llm.prompts import Prompt
from budge.reach.streams import generator
from budge.stored import COUNT, Rule, check_shape

__all__ = ["BETWEEN", "KEY", "Record", "as_prompt", "digest_of_sample", "label_of", "rewrite_stream", "system_of", "texts_of"]

KEY = "budge"  #: the key of the record in a sample's metadata
BETWEEN = "~"  #: between prompt, interaction and draw in the id of a sample that is one draw

_TEXT = Rule("a text that is not empty", lambda value: isinstance(value, str) and value != "")
_SHAPE = {
    "prompt": _TEXT, "digest": str, "interaction": _TEXT, "draw": COUNT, "seed": int, "original": str, "expected": str, "unchanged": bool,
    "order?": Rule("nothing, or a list of places", lambda value: value is None or (isinstance(value, list) and all(map(COUNT.holds, value)))),
}  # fmt: skip


@dataclass(frozen=True)
class Record:
    """What is written per draw: enough to make the rewrite again, and to test without a second file.

    `digest` is of the prompt before the rewrite, with its options and its target. `order` is there where options moved: position i of the
    new options holds option ``order[i]`` of the old ones.
    """

    prompt: str
    digest: str
    interaction: str
    draw: int
    seed: int
    original: str
    expected: str
    unchanged: bool
    order: Sequence[int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the record as it is stored."""
        return asdict(self)

    @classmethod
    def of(cls, metadata: Mapping[str, Any] | None) -> Record | None:
        """Return the record in a sample's metadata, or None where there is none.

        Raises
        ------
        DataError
            There is one that this version cannot read: without it the draw would count as one of the prompt as it stands.
        """
        found = (metadata or {}).get(KEY)
        if not isinstance(found, Mapping) or not {"interaction", "draw"} <= set(found):
            return None
        try:
            check_shape(dict(found), _SHAPE)
        except ValueError as error:
            raise DataError(f"is no record of a draw: {error}", where=f"metadata.{KEY}", remedy="is the log damaged, or of another version?") from None
        return cls(**found)


def texts_of(given: Any, target: Any) -> tuple[str, str]:
    """Return the user's last text of a sample's input, and its target with several answers separated by ``|``."""
    if not isinstance(given, str):
        users = [message for message in given if message.role == "user"] or list(given)
        given = str(users[-1].text) if users else ""
    return given, target if isinstance(target, str) else "|".join(map(str, target))


def system_of(messages: Any) -> str:
    """Return the system message of a sample's input or of messages."""
    return "" if isinstance(messages, str) else "\n\n".join(str(message.text) for message in messages if message.role == "system")


def as_prompt(sample: Any, name: str) -> Prompt:
    """Return a sample of a dataset as a prompt: the user's last text, its options, its target, its system message."""
    text, expected = texts_of(sample.input, sample.target)
    return Prompt(name, text, expected=expected, system=system_of(sample.input), options=tuple(sample.choices or ()))


def digest_of_sample(sample: Any) -> str:
    """Return a digest of a prompt as it stands: all its messages, its options in order, and its target."""
    messages = [sample.input] if isinstance(sample.input, str) else [f"{m.role}: {m.text}" for m in sample.input]
    target = [sample.target] if isinstance(sample.target, str) else list(sample.target)
    body = b""
    for part in (messages, list(sample.choices or ()), target):
        coded = [str(text).encode("utf-8", "surrogatepass") for text in part]
        body += len(coded).to_bytes(4, "little") + b"".join(len(text).to_bytes(8, "little") + text for text in coded)
    return blake2b(body, digest_size=12).hexdigest()


def rewrite_stream(seed: int, digest: str, interaction: str, draw: int) -> np.random.Generator:
    """Return the generator of one rewrite. It depends on these four values alone: not on the sample's id, the order, or the attempt."""
    content = f"{digest}|{len(interaction)}:{interaction}|{draw}".encode("utf-8", "surrogatepass")
    return generator(seed, int.from_bytes(blake2b(content, digest_size=16).digest(), "little"), "llm rewrite")


def label_of(solver: str | None, arguments: Mapping[str, Any] | None) -> str:
    """Return the interaction's name where the log's solver is `budge/rewrite`, otherwise an empty text."""
    text = str((arguments or {}).get("interaction", "")) if solver == "budge/rewrite" else ""
    if not text:
        return ""
    from budge.llm.interactions.registry import as_interaction

    return as_interaction(text).name
