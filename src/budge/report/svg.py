"""Drawing in SVG: axes, bars, lines, points and texts. Every text is escaped; a figure is one self-contained element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import isfinite

__all__ = ["COLOURS", "Figure"]

#: Distinct for readers who do not see all colours (Okabe and Ito), strongest first.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")


@dataclass
class Figure:
    """A figure with a plane of numbers inside its margins.

    Examples
    --------
    >>> figure = Figure("Gain <by constraint>", x=(0, 1), y=(0, 2))
    >>> figure.bar(0, 0.5, at=1, thick=0.8)
    >>> "&lt;by constraint&gt;" in str(figure) and str(figure).startswith("<svg")
    True
    """

    title: str
    x: tuple[float, float]
    y: tuple[float, float]
    width: int = 640
    height: int = 360
    left: int = 70
    right: int = 20
    top: int = 36
    bottom: int = 50
    parts: list[str] = field(default_factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the plane lies in the picture."""
        (x0, x1), (y0, y1) = self.x, self.y
        across = (x - x0) / ((x1 - x0) or 1.0)
        up = (y - y0) / ((y1 - y0) or 1.0)
        return self.left + across * (self.width - self.left - self.right), self.height - self.bottom - up * (
            self.height - self.top - self.bottom
        )

    def text(self, x: float, y: float, words: object, *, anchor: str = "start", size: int = 12) -> None:
        """A text at a place of the picture."""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{escape(anchor)}" font-size="{size:d}">{escape(str(words))}</text>'
        )

    def line(
        self,
        points: Iterable[tuple[float, float]],
        *,
        colour: str = COLOURS[0],
        width: float = 1.5,
        dashed: bool = False,
        title: str = "",
    ) -> None:
        """A line through points of the plane; those that are not finite are left out."""
        drawn = " ".join("{:.2f},{:.2f}".format(*self.at(x, y)) for x, y in points if isfinite(x) and isfinite(y))
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<polyline fill="none" stroke="{escape(colour)}" stroke-width="{width:g}"{dash} points="{drawn}"><title>{escape(title)}</title></polyline>'
        )

    def bar(self, low: float, high: float, *, at: float, thick: float, colour: str = COLOURS[0], title: str = "") -> None:
        """A bar lying from low to high."""
        (x0, y0), (x1, y1) = self.at(min(low, high), at + thick / 2), self.at(max(low, high), at - thick / 2)
        self.parts.append(
            f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{max(x1 - x0, 0.5):.1f}" height="{y1 - y0:.1f}" fill="{escape(colour)}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def point(self, x: float, y: float, *, colour: str = COLOURS[0], hollow: bool = False, title: str = "") -> None:
        """A point of the plane."""
        a, b = self.at(x, y)
        fill = "white" if hollow else colour
        self.parts.append(
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5" fill="{escape(fill)}" stroke="{escape(colour)}"><title>{escape(title)}</title></circle>'
        )

    def ticks(self, values: Sequence[float], *, axis: str = "x", grid: bool = True) -> None:
        """Numbers along an axis."""
        for v in values:
            a, b = self.at(v, self.y[0]) if axis == "x" else self.at(self.x[0], v)
            c, d = self.at(v, self.y[1]) if axis == "x" else self.at(self.x[1], v)
            if grid:
                self.parts.append(f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" stroke="#ddd"/>')
            if axis == "x":
                self.text(a, b + 18, f"{v:g}", anchor="middle")
            else:
                self.text(a - 8, b + 4, f"{v:g}", anchor="end")

    def labels(self, x: str = "", y: str = "") -> None:
        """What the axes show."""
        if x:
            self.text((self.left + self.width - self.right) / 2, self.height - 10, x, anchor="middle")
        if y:
            middle = self.height / 2
            turned = f'transform="rotate(-90 16 {middle:.0f})"'
            self.parts.append(f'<text x="16" y="{middle:.0f}" text-anchor="middle" font-size="12" {turned}>{escape(y)}</text>')

    def legend(self, names: Sequence[str], colours: Sequence[str]) -> None:
        """Names with their colours, at the right."""
        for k, (name, colour) in enumerate(zip(names, colours)):
            y = self.top + 14 + 16 * k
            x = self.width - self.right - 190
            self.parts.append(f'<rect x="{x}" y="{y - 9}" width="12" height="3" fill="{escape(colour)}"/>')
            self.text(x + 18, y - 4, name if len(name) <= 30 else name[:29] + "…", size=11)

    def __str__(self) -> str:
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}" '
            f'role="img" font-family="sans-serif" font-size="12">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="{self.width}" height="{self.height}" fill="white"/>\n<text x="12" y="20">{escape(self.title)}</text>'
        )
        return "\n".join([head, *self.parts, "</svg>"]) + "\n"
