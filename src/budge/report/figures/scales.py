"""Round numbers for axes, and the words that go with them."""

from __future__ import annotations

from math import ceil, floor, isfinite, log10

__all__ = ["SHARES", "room", "round_ticks", "share_names"]

#: Where an axis of shares is marked.
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def share_names(values: tuple[float, ...] = SHARES) -> list[str]:
    """Shares in percent.

    Examples
    --------
    >>> share_names((0.0, 0.125, 1.0))
    ['0 %', '12.5 %', '100 %']
    """
    return [f"{100 * v:.4g} %" for v in values]


def round_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers within a range, at most so many; for a range of no width the number itself.

    Examples
    --------
    >>> round_ticks(-0.013, 0.42)
    [0.0, 0.1, 0.2, 0.3, 0.4]
    >>> round_ticks(1, 97)
    [20.0, 40.0, 60.0, 80.0]
    >>> round_ticks(3, 3)
    [3]
    """
    if not (isfinite(low) and isfinite(high)) or high - low <= 1e-9 * max(abs(low), abs(high)):
        return [low]
    least = (high - low) / most
    size = 10.0 ** floor(log10(least))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= least * (1 - 1e-9))
    digits = max(0, 2 - floor(log10(step)))
    return [round(k * step, digits) + 0.0 for k in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def room(low: float, high: float, share: float = 0.05) -> tuple[float, float]:
    """A range with a little room at both ends; never without width."""
    more = (high - low) * share or abs(low) * share or share
    return low - more, high + more
