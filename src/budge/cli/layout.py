"""Text that fits a terminal: sentences are wrapped between words, tables lose whole columns, and only their last column is wrapped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.cells import cell_len

from budge.errors import printable

__all__ = ["Column", "bars", "cell", "column", "figure", "glued", "interval_of", "tabulate", "wrap"]

NB = "\u00a0"  # where a line must not be broken; printed as a space
LEAST = 16  # cells of a last column that is wrapped
MINUS = "−"
_MARK = re.compile(r"(\d+\.|[-•]) ")  # of an item: what follows hangs below its text
_TIES = (
    (re.compile(r"(?<=\d) (?=%)"), NB), (re.compile(r" ([→=≤≥<>]) "), rf"{NB}\1{NB}"), (re.compile(r"(?<=\bρ) (?=below|above|is\b)"), NB),
)  # fmt: skip


def glued(text: str) -> str:
    """Return the text with ties where a line must not be broken: before a percent sign, around an arrow."""
    for pattern, tie in _TIES:
        text = pattern.sub(tie, text)
    return text


def wrap(text: str, width: int, *, indent: int = 0) -> list[str]:
    """Return lines of at most so many cells, broken between words; only a word that is longer than a line is broken.

    Examples
    --------
    >>> wrap("38 of 164 people (23.2 %) have no way", 22)
    ['38 of 164 people', '(23.2 %) have no way']
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        own = len(paragraph) - len(paragraph.lstrip(" ")) + indent
        mark = _MARK.match(paragraph.strip(" "))
        hang = len(mark[0]) if mark else 0
        line, empty = " " * own, True
        for word in glued(paragraph.strip(" ")).split(" "):
            for piece in _pieces(word, max(width - own - hang, 1)):
                if empty or cell_len(line) + 1 + cell_len(piece) <= width:
                    line = line + piece if empty else f"{line} {piece}"
                else:
                    lines.append(line)
                    line = " " * (own + hang) + piece
                empty = False
        lines.append(line.rstrip(" "))
    return [line.replace(NB, " ") for line in lines]


def _pieces(word: str, room: int) -> list[str]:
    """Return a word in pieces that fit: at ties first, anywhere where there are none."""
    if cell_len(word) <= room:
        return [word]
    found = [""]
    for letter in word:
        if found[-1] and cell_len(found[-1]) + cell_len(letter) > room:
            head, tie, tail = found[-1].rpartition(NB)
            found[-1:] = [head, tail + letter] if tie and head and tail else [found[-1], letter]
        else:
            found[-1] += letter
    return found


def figure(value: float, digits: int = 3) -> str:
    """Return a number for a column: fixed decimals, a half rounded up as in reports, thousands apart, a minus that is one."""
    if value != value:
        return "–"
    text = f"{abs(value) * (1 + 1e-12):,.{digits}f}"
    return f"{MINUS}{text}" if value < 0 and float(text.replace(",", "")) else text


def cell(value: Any) -> str:
    """Return a value as the cell of a table: a missing one as a dash, a whole number with thousands apart, others to three figures."""
    if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float | np.floating) and value != value):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}".replace("-", MINUS)
    if isinstance(value, float | np.floating):
        from budge.report.people import number

        return number(value)
    return printable(str(value)).replace("\n", "\\n")


@dataclass(frozen=True)
class Column:
    """One column of a table; the larger `spare`, the earlier it is left out where there is no room. Those of 0 stay."""

    name: str
    cells: Sequence[str]
    right: bool = False
    spare: int = 0

    @property
    def wide(self) -> int:
        """Cells of the widest entry."""
        return max(map(cell_len, (self.name, *self.cells)))


def column(name: str, values: Sequence[Any], *, digits: int | None = None, spare: int = 0) -> Column:
    """Return a column of values: numbers to the right, with fixed decimals if so many are given."""
    numbers = all(isinstance(v, int | float | np.number) and not isinstance(v, bool | np.bool_) for v in values if v is not None and v is not pd.NA)
    shown = [figure(float(v), digits) if digits is not None and isinstance(v, float | np.floating) else cell(v) for v in values]
    return Column(name, shown, right=numbers and len(shown) > 0, spare=spare)


def interval_of(low: Sequence[float], high: Sequence[float], alpha: float, *, name: str = "", spare: int = 0) -> Column:
    """Return a column of intervals, with the level as its name unless another is given."""
    from budge.report.words import percent

    ends = ["–" if a != a or b != b else "exact" if a == b else f"{figure(a)} to {figure(b)}" for a, b in zip(low, high)]
    return Column(name or f"{percent(1 - alpha)} interval", ends, right=True, spare=spare)


def tabulate(columns: Sequence[Column], width: int, *, indent: int = 2) -> list[str]:
    """Return the lines of a table that fits: columns are left out by their `spare`, texts are wrapped last."""
    kept = list(columns)
    room = width - indent

    def needed(some: Sequence[Column]) -> int:
        last = some[-1]
        return sum(c.wide + 2 for c in some[:-1]) + (last.wide if last.right else min(last.wide, max(LEAST, cell_len(last.name), _longest(last))))

    while len(kept) > 1 and needed(kept) > room and any(c.spare for c in kept):
        kept.remove(max(kept, key=lambda c: c.spare))
    wide = [c.wide for c in kept]
    if needed(kept) <= room and not kept[-1].right:
        wide[-1] = min(wide[-1], room - sum(w + 2 for w in wide[:-1]))
    words = [max(cell_len(word) for text in (c.name, *c.cells) for word in glued(text).split(" ")) for c in kept]
    while sum(wide) + 2 * (len(wide) - 1) > room and max(wide) > 1:  # labels of any length: the widest text gives way, where it can between words
        loose = [k for k, c in enumerate(kept) if not c.right and wide[k] > 1] or [k for k in range(len(kept)) if wide[k] > 1]
        wide[max(loose, key=lambda k: (wide[k] > words[k], wide[k]))] -= 1
    lines = []
    for row in zip(*((c.name, *c.cells) for c in kept)):
        parts = [wrap(text, w) or [""] for text, w in zip(row, wide)]
        for k in range(max(map(len, parts))):
            texts = [part[k] if k < len(part) else "" for part in parts]
            filled = [_filled(text, w, c.right) for text, w, c in zip(texts, wide, kept)]
            lines.append((" " * indent + "  ".join(filled)).rstrip())
    return lines


def _longest(last: Column) -> int:
    """Return the cells of the longest word of a column, but no more than half a narrow terminal."""
    return min(max((cell_len(word) for text in last.cells for word in glued(text).split(" ")), default=0), 30)


def _filled(text: str, wide: int, right: bool) -> str:
    gap = " " * max(wide - cell_len(text), 0)
    return gap + text if right else text + gap


def bars(rows: Sequence[tuple[str, int, str]], width: int, *, indent: int = 2) -> list[tuple[str, str]]:
    """Return lines of (name, count, per cent) and a bar for each, as long as its share of the largest; one cell at least where there is anybody."""
    names, counts, shares = (max((cell_len(text) for text in texts), default=0) for texts in zip(*((n, f"{c:,}", s) for n, c, s in rows)))
    room = max(min(width - indent - names - counts - shares - 6, 60), 4)
    most = max((count for _, count, _ in rows), default=0)
    found = []
    for name, count, share in rows:
        head = " " * indent + "  ".join([_filled(name, names, False), _filled(f"{count:,}", counts, True), _filled(share, shares, True)])
        found.append((head, "█" * (max(1, round(room * count / most)) if count else 0)))
    return found
