"""The power curve: as numbers, as lines for a terminal, and as an SVG figure that needs no plotting library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from budge.errors import DesignError
from budge.stats._checks import Claim, Floats, claim_of, counts, fraction, plain
from budge.stats.planning import PowerPlan, rate_at, samples_for_power
from budge.stats.power import power as exact_power

__all__ = ["PowerCurve", "power_curve"]

_BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class PowerCurve:
    """The exact power for a range of sample sizes."""

    n: Floats
    power: Floats
    plan: PowerPlan

    def text(self, width: int = 60, height: int = 8) -> str:
        """The curve in block characters; each column shows the lowest power of the sizes that it stands for."""
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

    def svg(self, width: int = 640, height: int = 360) -> str:
        """The curve as a self-contained SVG document, with the target and both sample sizes marked."""
        left, right, top, bottom = 64, 20, 44, 48
        n0, n1 = float(self.n[0]), float(max(self.n[-1], self.n[0] + 1))

        def at(n: float, p: float) -> tuple[float, float]:
            return left + (n - n0) / (n1 - n0) * (width - left - right), height - bottom - p * (height - top - bottom)

        keep = np.unique(np.linspace(0, self.n.size - 1, min(self.n.size, 2000)).astype(int))
        points = " ".join("{:.2f},{:.2f}".format(*at(n, p)) for n, p in zip(self.n[keep].tolist(), self.power[keep].tolist()))
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
            ' role="img" font-family="sans-serif" font-size="12">',
            f"<title>Power by number of draws</title><desc>{escape(str(self.plan))}</desc>",
            f'<rect width="{width}" height="{height}" fill="white"/>',
            f'<text x="{left}" y="20">{escape(self._caption())}</text>',
        ]
        for p in (0, 0.25, 0.5, 0.75, 1):
            x, y = at(n0, p)
            parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{p:g}</text>')
        for n in np.unique(np.round(np.linspace(n0, n1, 5))).tolist():
            x, y = at(n, 0)
            parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{n:g}</text>')
        x, y = at(n0, self.plan.power)
        parts.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{width - right}" y2="{y:.1f}" stroke="#b33" stroke-dasharray="5 4"/>')
        parts.append(f'<polyline fill="none" stroke="#246" stroke-width="1.5" points="{points}"/>')
        for n, name in ((self.plan.first, "first"), (self.plan.stable, "stable")):
            if n0 <= n <= n1:
                x, y = at(
                    n, float(exact_power(n, self.plan.threshold, self.plan.rate, alpha=self.plan.alpha, claim=self.plan.claim))
                )
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="#246"><title>{name}: {n} draws</title></circle>')
        middle = (left + width - right) / 2
        parts.append(f'<text x="{middle:.0f}" y="{height - 10}" text-anchor="middle">draws</text>')
        parts.append(
            f'<text x="16" y="{height // 2}" text-anchor="middle" transform="rotate(-90 16 {height // 2})">power</text></svg>'
        )
        return "\n".join(parts) + "\n"

    def _caption(self) -> str:
        sign = "<" if self.plan.claim == "below" else ">"
        test = f"rho {sign} {self.plan.threshold:g} if rho is {self.plan.rate:g}, alpha {self.plan.alpha:g}"
        return f"{test}: first {self.plan.first}, stable {self.plan.stable}"

    def __str__(self) -> str:
        return f"{self._caption()}\n{self.text()}"

    def to_dict(self) -> dict[str, Any]:
        """The record of the curve."""
        return {"plan": self.plan.to_dict(), "n": plain(self.n.astype(np.int64)), "power": plain(self.power)}


def power_curve(
    n: object = None,
    *,
    threshold: object = 0.1,
    rate: object = None,
    margin: object = None,
    alpha: object = 0.05,
    power: object = 0.95,
    claim: str = "below",
) -> PowerCurve:
    """The exact power at each number of draws; up to a quarter past the stable one unless `n` is given.

    Examples
    --------
    >>> curve = power_curve(threshold=0.4, rate=0.227)
    >>> curve.plan.stable, round(float(curve.power[curve.n == 79][0]), 4)
    (85, 0.9574)
    """
    tau, level, target = fraction(threshold, "threshold"), fraction(alpha, "alpha"), fraction(power, "power")
    side: Claim = claim_of(claim)
    at = rate_at(tau, rate, margin, side)
    plan = samples_for_power(tau, at, alpha=level, power=target, claim=side)
    if n is None:
        last = plan.stable + plan.stable // 4 + 1
        sizes = np.unique(np.round(np.linspace(1, last, min(last, 4000))))
    else:
        sizes = np.atleast_1d(counts(n, "n", least=1)).ravel()
        if not sizes.size:
            raise DesignError("no sample sizes", where="n", got=n, remedy="give at least one")
    return PowerCurve(sizes, np.atleast_1d(exact_power(sizes, tau, at, alpha=level, claim=side)), plan)
