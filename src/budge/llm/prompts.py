"""Prompts as inputs: what is asked, its category, and what a matching answer would be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

__all__ = ["Prompt", "Prompts"]


@dataclass(frozen=True)
class Prompt:
    """One prompt of a benchmark.

    Examples
    --------
    >>> Prompt("q1", "What is the capital of France?", category="geography", expected="Paris").id
    'q1'
    """

    id: str
    text: str
    category: str = ""
    expected: str = ""


@dataclass(frozen=True)
class Prompts(Sequence[Prompt]):
    """The prompts of a benchmark, in order; identifiers are distinct."""

    items: tuple[Prompt, ...]

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
