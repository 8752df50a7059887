"""What a rewrite must leave alone: code, numbers, addresses, quotations, and words that the caller names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from budge.errors import Problem, nearest

__all__ = ["KEEPABLE", "USUALLY_KEPT", "Kept", "keep_problems", "kept_sentence", "lost"]

#: Fenced and inline code; any word with a digit in it, with its sign, currency and separators; web and mail addresses; quotations.
_PATTERNS = {
    "code": r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`",
    "urls": r"(?:https?|ftp)://[^\s<>\"'`]+|(?<![\w.])www\.[^\s<>\"'`]+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+",
    "numbers": r"(?<!\w)[-+±$€£¥]?\w*\d(?:\w|[.,:/'’-](?=\d))*[%‰°]?",
    "quotes": r"\"[^\"\n]+\"|“[^”\n]+”|«[^»\n]+»",
}
KEEPABLE = tuple(_PATTERNS)
USUALLY_KEPT = ("code", "urls", "numbers")


@lru_cache(maxsize=256)
def _pattern(keep: tuple[str, ...], words: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    named = [(name, re.compile(_PATTERNS[name], re.S)) for name in keep]
    if words:
        longest = sorted(words, key=len, reverse=True)
        body = "|".join(re.escape(word) for word in longest)
        named.append(("words", re.compile(rf"(?<!\w)(?:{body})(?!\w)", re.I)))
    return tuple(named)


class Kept:
    """Which characters of a text are protected.

    Examples
    --------
    >>> kept = Kept("Add 12 to `x`, please.", ("code", "numbers"), ("please",))
    >>> kept.texts
    ['12', '`x`', 'please']
    >>> kept.free(0, 3), kept.free(4, 6), kept.borders(3, 4)
    (True, False, True)
    """

    def __init__(self, text: str, keep: Sequence[str] = USUALLY_KEPT, words: Sequence[str] = ()):
        self._mask = bytearray(len(text) + 2)  # one more on each side, so that borders need no care
        self.spans: list[tuple[int, int]] = []
        for _, pattern in _pattern(tuple(keep), tuple(words)):
            for match in pattern.finditer(text):
                start, end = match.span()
                self._mask[start + 1 : end + 1] = b"\x01" * (end - start)
                self.spans.append((start, end))
        self.spans.sort()
        self.texts = [text[start:end] for start, end in self.spans]

    def free(self, start: int, end: int) -> bool:
        """No character from start to end is protected."""
        return not any(self._mask[start + 1 : end + 1])

    def borders(self, start: int, end: int) -> bool:
        """A protected character stands right before start or at end."""
        return bool(self._mask[start] or self._mask[end + 1])


def lost(before: str, after: str, keep: Sequence[str], words: Sequence[str] = ()) -> list[str]:
    """What had to be kept in a text and is not in its rewrite; each as often as it stood there.

    Examples
    --------
    >>> lost("Add 12 and 12.", "Please add 12.", ("numbers",))
    ['12']
    """
    gone: list[str] = []
    for name, pattern in _pattern(tuple(keep), tuple(words)):
        there, here = (_counted(pattern.findall(text), fold=name == "words") for text in (before, after))
        gone += list((there - here).elements())
    return gone


def _counted(found: Iterable[str], *, fold: bool) -> Counter[str]:
    return Counter(text.casefold() if fold else text for text in found)


def keep_problems(where: str, keep: object, words: object) -> list[Problem]:
    """Whether both are lists of texts, and of known names."""
    problems: list[Problem] = []
    if not isinstance(keep, tuple):
        problems.append(Problem(f"{where}.keep", "must be a list of names", keep, f"of {', '.join(KEEPABLE)}"))
    else:
        problems += [
            Problem(f"{where}.keep", "no such thing to keep", k, nearest(k, KEEPABLE)) for k in keep if k not in KEEPABLE
        ]
    if not isinstance(words, tuple) or not all(isinstance(word, str) and word.strip() for word in words):
        problems.append(Problem(f"{where}.keep_words", "must be a list of words", words))
    return problems


def kept_sentence(keep: Sequence[str], words: Sequence[str]) -> str:
    """What is left alone, as the end of a sentence."""
    shown = [{"urls": "URLs", "quotes": "quotations"}.get(name, name) for name in keep]
    if words:
        shown.append(
            "the word"
            + ("s " if len(words) > 1 else " ")
            + ", ".join(repr(w) for w in words[:5])
            + (", …" if len(words) > 5 else "")
        )
    if not shown:
        return ""
    return f"; {', '.join(shown[:-1])}{' and ' if len(shown) > 1 else ''}{shown[-1]} {'is' if shown == ['code'] else 'are'} left alone"
