"""Words in a figure: cleaned, measured, cut and broken into lines without asking a font."""

from __future__ import annotations

import unicodedata

from budge.errors import printable

__all__ = ["clean", "shortened", "text_width", "wrapped"]


def clean(words: object) -> str:
    """One line of text: control characters shown, not obeyed."""
    return printable(str(words).replace("\n", " ").replace("\t", " "))


def text_width(words: str, size: int = 11) -> float:
    """About how wide a text is, in pixels: on the wide side, for fonts differ.

    Examples
    --------
    >>> text_width("abc") < text_width("abcd") < text_width("漢字漢字")
    True
    """
    units = 0.0
    for c in words:
        if unicodedata.combining(c):
            continue
        units += (
            1.0
            if unicodedata.east_asian_width(c) in "WF"
            else 0.34
            if c in "iljtf.,:;'|!()[] "
            else 0.82
            if c in "mwMW@%"
            else 0.72
            if c.isupper()
            else 0.6
        )
    return units * size


def shortened(words: str, room: float, size: int = 11, *, middle: bool = False) -> str:
    """Return the text, cut with … where it is wider than the room: at its end, or in its middle.

    Examples
    --------
    >>> shortened("a very long name of a constraint", 60), shortened("a very long name = 1", 60, middle=True)
    ('a very lo…', 'a ve…= 1')
    """
    if text_width(words, size) <= room:
        return words
    room -= text_width("…", size)
    first = _fitting(words, room / 2 if middle else room, size)
    last = _fitting(words[::-1], room / 2, size)[::-1] if middle else ""
    return f"{first.rstrip()}…{last.lstrip()}"


def _fitting(words: str, room: float, size: int) -> str:
    """Return as much of the text's beginning as fits the room."""
    used = 0.0
    for k, c in enumerate(words):
        used += text_width(c, size)
        if used > room:
            return words[:k]
    return words


def wrapped(words: str, room: float, size: int = 11) -> list[str]:
    """The text in lines that fit the room; a word that is too long by itself is cut."""
    lines = [""]
    for word in clean(words).split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return [shortened(line, room, size) for line in lines]
