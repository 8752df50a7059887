"""The power curve: as numbers, as lines for a terminal, and as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from budge.errors import DesignError
from budge.stats._checks import Floats, Record, asked, counts, fraction
from budge.stats.planning import PowerPlan, rate_at, samples_for_power
from budge.stats.power import power as exact_power

if TYPE_CHECKING:
    from budge.report.figures import Figure

__all__ = ["PowerCurve", "power_curve"]

_BLOCKS = " ▁▂▃▄▅▆▇█"


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
        test = f"rho {sign} {self.plan.threshold:g} if rho is {self.plan.rate:g}, alpha {self.plan.alpha:g}"
        return f"{test}: first {self.plan.first}, stable {self.plan.stable}"

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
