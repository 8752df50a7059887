"""How many draws: for a test to be possible, for a width, for a power; and what a given number of draws can show.

Everything is found by evaluating the exact tails, never by a normal approximation or by logarithms alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, Record, asked, counts, fraction, percent, whole
from budge.stats.power import power as exact_power
from budge.stats.power import rejecting_counts, solve_rate, surprises
from budge.stats.tails import invert_at_least, invert_at_most

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = [
    "Margin", "PowerCurve", "PowerPlan", "check_n", "detectable_margin",
    "min_samples", "power_curve", "provable_threshold", "rate_at", "samples_for_power", "samples_for_width",
]  # fmt: skip

_MOST = 20_000_000  # draws that a plan for power looks at; beyond it the margin is called too small
_RUN = 32
_BLOCKS = " ▁▂▃▄▅▆▇█"


def min_samples(threshold: object = 0.1, alpha: object = 0.05, *, claim: str = "below") -> int:
    """Return the smallest number of draws that can establish the claim at all (Rem. MinSampSize).

    For `below` that is the first n with (1 - threshold)^n < alpha: no hit in n draws. For `above`, all of n draws hit.

    Examples
    --------
    >>> min_samples(0.1, 0.05), min_samples(0.01, 0.05), min_samples(0.5, 0.25)
    (29, 299, 3)
    """
    tau, level, side = asked(threshold, alpha, claim)
    guess = math.log(level) / (math.log1p(-tau) if side == "below" else math.log(tau))
    if guess > 2**52:
        remedy = "move the threshold away from the end"
        raise DesignError("no practical number of draws can reject", where="threshold", got=threshold, remedy=remedy)
    n = max(1, int(guess) - 2)  # logs only point to the place; the tail decides
    while n > 1 and _can_reject(n - 1, tau, level, side):
        n -= 1
    while not _can_reject(n, tau, level, side):
        n += 1
    return n


def _can_reject(n: int, tau: float, alpha: float, claim: Claim) -> bool:
    return bool(surprises(np.asarray(0.0), np.asarray(float(n)), tau, claim) < alpha)


def check_n(n: object, *, threshold: object = 0.1, alpha: object = 0.05, claim: str = "below") -> int:
    """Refuse a number of draws that cannot establish the claim whatever is seen.

    Examples
    --------
    >>> check_n(29, threshold=0.1)
    29
    """
    size, least = whole(n, "n"), min_samples(threshold, alpha, claim=claim)
    if size < least:
        what = f"cannot reject even with {'no hit' if claim == 'below' else 'nothing but hits'}; needs at least {least}"
        raise DesignError(what, where="n", got=n, remedy=f"draw {least} or more")
    return size


def samples_for_width(width: object = 0.1, alpha: object = 0.05) -> int:
    """Return the smallest n whose interval is at most `width` wide, whatever is seen (Prop. Certify).

    Examples
    --------
    >>> samples_for_width(0.1, 0.05), samples_for_width(0.05, 0.05)
    (402, 1574)
    """
    length, level = fraction(width, "width"), fraction(alpha, "alpha")
    if length < 1e-6:
        raise DesignError("width is too small to be planned", where="width", got=width, remedy="ask for a width of at least 1e-6")
    high = 1
    while _worst_width(high, level) > length:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _worst_width(middle, level) <= length else (middle, high)
    return high


def _worst_width(n: int, alpha: float) -> float:
    # The widest interval is the middle one (the tests check it against all counts); small n look at every count anyway.
    k = np.arange(n + 1.0) if n <= 64 else np.array([n // 2], float)
    size = np.full_like(k, n)
    return float((invert_at_most(k, size, alpha / 2) - invert_at_least(k, size, alpha / 2)).max())


@dataclass(frozen=True)
class PowerPlan(Record):
    """How many draws give the power asked for: `first`, and `stable` from which on it holds for every larger n."""

    derived = ("n", "margin")

    first: int
    stable: int
    threshold: float
    rate: float
    alpha: float
    power: float
    claim: Claim

    @property
    def n(self) -> int:
        """The number to use: the first. n is fixed in advance, so its power is exactly that; `stable` is for an n that may grow."""
        return self.first

    @property
    def margin(self) -> float:
        """The distance between threshold and rate."""
        return abs(self.threshold - self.rate)

    def __int__(self) -> int:
        return self.first

    __index__ = __int__

    def __str__(self) -> str:
        sign = "<" if self.claim == "below" else ">"
        dips = "" if self.first == self.stable else f"; some larger n have less power, every n from {self.stable:,} on has it"
        return (
            f"{self.first:,} draws show ρ {sign} {self.threshold:g} with probability at least {percent(self.power)} "
            f"if ρ is {self.rate:g}, at alpha {self.alpha:g}{dips}"
        )

    def plot(self) -> Figure:
        """Return the power curve as a figure."""
        return power_curve(threshold=self.threshold, rate=self.rate, alpha=self.alpha, power=self.power, claim=self.claim).plot()


def samples_for_power(
    threshold: object = 0.1, rate: object = None, *, margin: object = None, alpha: object = 0.05, power: object = 0.95,
    claim: str = "below",
) -> PowerPlan:  # fmt: skip
    """Return the number of draws with which the test succeeds with the given power (Eq. PowerAnalysis).

    Parameters
    ----------
    threshold : float
        The threshold tau.
    rate : float, optional
        The responsiveness at which the power must hold; or give `margin`, its distance from the threshold.
    power : float
        The probability 1 - beta of establishing a claim that is true by the margin.

    Examples
    --------
    >>> plan = samples_for_power(threshold=0.4, rate=0.227, alpha=0.05, power=0.95)
    >>> plan.first, plan.stable
    (79, 85)
    """
    (tau, level, side), target = asked(threshold, alpha, claim), fraction(power, "power")
    at = rate_at(tau, rate, margin, side)
    least = min_samples(tau, level, claim=side)
    if at in (0, 1):  # no surprise is possible: power is 1 as soon as the test can reject
        return PowerPlan(least, least, tau, at, level, target, side)
    enough = _enough(tau, at, level, 1 - target)
    if enough > _MOST:
        what, remedy = f"more than {_MOST:,} draws: the margin is too small", "ask for a larger margin or less power"
        raise DesignError(what, where="margin", got=abs(tau - at), remedy=remedy)
    n = _undecided(least, enough, tau, at, level, target, side)
    if not n.size:  # every size that can reject at all has the power
        return PowerPlan(least, least, tau, at, level, target, side)
    reached = surprises(rejecting_counts(n, tau, level, side), n, at, side) >= target
    # What was left out fails altogether (before) or succeeds altogether (after).
    stable = int(n[0]) if reached.all() else int(n[~reached][-1]) + 1
    first = int(n[np.argmax(reached)]) if reached.any() else stable
    return PowerPlan(first, stable, tau, at, level, target, side)


def _undecided(least: int, enough: int, tau: float, at: float, alpha: float, target: float, claim: Claim) -> Floats:
    """Return the sizes whose power has to be computed one by one.

    The critical count grows with n, so over a run a..b the power is at most P(at most c(b) of a) and at least
    P(at most c(a) of b). Runs that these two bounds decide are left out: all of them fail, or all succeed.
    """
    edges = np.arange(least, enough + _RUN, _RUN, dtype=float)
    counts = rejecting_counts(edges, tau, alpha, claim)
    a, b = edges[:-1], edges[1:]
    fails = surprises(np.minimum(counts[1:], a), a, at, claim) < target
    succeeds = surprises(counts[:-1], b, at, claim) >= target
    open_ = np.flatnonzero(~(fails | succeeds))
    if not open_.size:
        return edges[:0]
    # From the first run that may succeed to the last that may fail: what lies between is looked at as well.
    first, last = int(np.argmin(fails)), int(np.flatnonzero(~succeeds)[-1])
    return np.arange(a[min(first, open_[0])], b[max(last, open_[-1])] + 1)


def rate_at(threshold: float, rate: object, margin: object, claim: Claim) -> float:
    """Return the rate that a plan aims at, given itself or as a margin from the threshold, on the claim's side of it."""
    if (rate is None) == (margin is None):
        raise DesignError("give either rate or margin", where="rate", got=(rate, margin), remedy="rate=0.05, or margin=0.05")
    room = threshold if claim == "below" else 1 - threshold
    if rate is None:
        delta = fraction(margin, "margin")
        if delta >= room:
            what = f"margin must be smaller than {'the threshold' if claim == 'below' else '1 - threshold'} = {room:g}"
            raise DesignError(what, where="margin", got=margin, remedy=f"choose it inside (0, {room:g})")
        return threshold - delta if claim == "below" else threshold + delta
    at = fraction(rate, "rate", zero=True, one=True)
    if (at >= threshold) if claim == "below" else (at <= threshold):
        what = f"rate is not {claim} the threshold {threshold:g}: the claim is false there, so no number of draws has power"
        raise DesignError(what, where="rate", got=rate, remedy=f"choose a rate {claim} {threshold:g}")
    return at


def _enough(null: float, truth: float, alpha: float, beta: float) -> int:
    """Return a number of draws from which on the power is reached for certain, by the Chernoff bound on both tails.

    For any x between truth and null, "at most n x hits" has probability at most exp(-n kl(x, null)) under the null and its
    complement at most exp(-n kl(x, truth)) under the truth. Both shrink with n, so every n past the point where they are below
    alpha and beta is good: this is what makes `stable` a proof and not a scan that was stopped somewhere.
    """

    def kl(x: float, p: float) -> float:
        return x * math.log(x / p) + (1 - x) * math.log((1 - x) / (1 - p))

    low, high = truth, null
    for _ in range(200):  # the x at which both tails need the same n
        x = (low + high) / 2
        if kl(x, null) * math.log(1 / beta) > kl(x, truth) * math.log(1 / alpha):
            low = x
        else:
            high = x
    worst = min(kl(x, null) / math.log(1 / alpha), kl(x, truth) / math.log(1 / beta))
    return _MOST + 1 if worst <= 1.0 / _MOST else math.ceil(1 / worst) + 2


@dataclass(frozen=True)
class Margin(Record):
    """The margin that a given number of draws can detect."""

    derived = ("margin",)

    n: int
    threshold: float
    rate: float
    alpha: float
    power: float
    claim: Claim

    @property
    def margin(self) -> float:
        """The smallest distance from the threshold that is detected with the power."""
        return abs(self.threshold - self.rate)

    def __float__(self) -> float:
        return self.margin

    def __str__(self) -> str:
        shown = f"ρ {self.claim} {self.threshold:g} is shown with probability {percent(self.power)} if ρ is {self.rate:.4g}"
        return f"{self.n:,} draws detect a margin of {self.margin:.4g}: {shown}"


def detectable_margin(
    n: object, *, threshold: object = 0.1, alpha: object = 0.05, power: object = 0.95, claim: str = "below"
) -> Margin:
    """Return the smallest margin that n draws detect with the given power: Eq. PowerAnalysis solved for the rate.

    Examples
    --------
    >>> print(detectable_margin(85, threshold=0.4))
    85 draws detect a margin of 0.1654: ρ below 0.4 is shown with probability 95 % if ρ is 0.2346
    """
    (tau, level, side), target = asked(threshold, alpha, claim), fraction(power, "power")
    size = check_n(n, threshold=tau, alpha=level, claim=side)
    return Margin(size, tau, solve_rate(size, tau, level, target, side), level, target, side)


def provable_threshold(n: object, *, alpha: object = 0.05) -> float:
    """Return the threshold that n draws without a hit are just short of proving: the bound 1 - alpha^(1/n).

    Examples
    --------
    >>> round(provable_threshold(30), 4)
    0.095
    """
    return float(invert_at_most(np.asarray(0.0), np.asarray(float(whole(n, "n"))), fraction(alpha, "alpha")))


@dataclass(frozen=True)
class PowerCurve(Record):
    """The exact power for a range of sample sizes."""

    n: NDArray[np.int64]
    power: Floats
    plan: PowerPlan

    def text(self, width: int = 60, height: int = 8) -> str:
        """Return the curve in block characters; each column shows the lowest power of the sizes that it stands for."""
        columns = np.array_split(self.power, min(width, self.n.size))
        lows = np.array([part.min() for part in columns])
        lines = []
        for row in range(height, 0, -1):
            filled = np.clip(np.floor((lows * height - (row - 1)) * 8), 0, 8).astype(int)
            label = {height: "1.0", 1: "0.0"}.get(row, "   ")
            lines.append(f"{label} |" + "".join(_BLOCKS[i] for i in filled))
        span = max(lows.size - len(str(int(self.n[0]))), 1)
        lines.append("    +" + "-" * lows.size)
        lines.append(f"     {int(self.n[0])}{int(self.n[-1]):>{span}}  draws")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Return the curve as a figure, with the power asked for and both sample sizes marked."""
        from budge.report.figures import power_curve as drawn

        return drawn(self)

    def svg(self) -> str:
        """Return the curve as a self-contained SVG document."""
        return self.plot().svg()

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(self._caption(), figure=self.plot)

    def _caption(self) -> str:
        sign = "<" if self.plan.claim == "below" else ">"
        test = f"ρ {sign} {self.plan.threshold:g} if ρ is {self.plan.rate:g}, alpha {self.plan.alpha:g}"
        return f"{test}: first {self.plan.first:,}, stable {self.plan.stable:,}"

    def __str__(self) -> str:
        return f"{self._caption()}\n{self.text()}"


def power_curve(
    n: object = None, *, threshold: object = 0.1, rate: object = None, margin: object = None, alpha: object = 0.05, power: object = 0.95,
    claim: str = "below",
) -> PowerCurve:  # fmt: skip
    """Return the exact power at each number of draws; up to a quarter past the stable one unless `n` is given.

    Examples
    --------
    >>> curve = power_curve(threshold=0.4, rate=0.227)
    >>> curve.plan.stable, round(float(curve.power[curve.n == 79][0]), 4)
    (85, 0.9574)
    """
    (tau, level, side), target = asked(threshold, alpha, claim), fraction(power, "power")
    at = rate_at(tau, rate, margin, side)
    plan = samples_for_power(tau, at, alpha=level, power=target, claim=side)
    if n is None:
        last = plan.stable + plan.stable // 4 + 1
        sizes = np.unique(np.round(np.linspace(1, last, min(last, 4000))))
    else:
        sizes = np.atleast_1d(counts(n, "n", least=1)).ravel()
        if not sizes.size:
            raise DesignError("no sample sizes", where="n", got=n, remedy="give at least one")
    return PowerCurve(sizes.astype(np.int64), np.atleast_1d(exact_power(sizes, tau, at, alpha=level, claim=side)), plan)
