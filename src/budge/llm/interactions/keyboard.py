"""Which letters lie beside each other on a keyboard, computed from its rows."""

from __future__ import annotations

from functools import lru_cache

__all__ = ["LAYOUTS", "neighbours"]

#: Rows of letters, and how far each is shifted to the right, in keys.
LAYOUTS: dict[str, tuple[tuple[str, float], ...]] = {
    "qwerty": (("qwertyuiop", 0.0), ("asdfghjkl", 0.25), ("zxcvbnm", 0.75)),
    "azerty": (("azertyuiop", 0.0), ("qsdfghjklm", 0.25), ("wxcvbn", 0.75)),
    "qwertz": (("qwertzuiop", 0.0), ("asdfghjkl", 0.25), ("yxcvbnm", 0.75)),
}


@lru_cache(maxsize=8)
def neighbours(layout: str = "qwerty") -> dict[str, tuple[str, ...]]:
    """For each letter those whose keys touch its own.

    Examples
    --------
    >>> neighbours()["g"]
    ('b', 'f', 'h', 't', 'v', 'y')
    """
    at = {letter: (shift + i, row) for row, (letters, shift) in enumerate(LAYOUTS[layout]) for i, letter in enumerate(letters)}
    return {
        a: tuple(
            sorted(
                b
                for b, (x, y) in at.items()
                if b != a and abs(y - at[a][1]) <= 1 and abs(x - at[a][0]) < (1.5 if y == at[a][1] else 1.0)
            )
        )
        for a in at
    }
