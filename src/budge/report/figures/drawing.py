"""A figure as a drawing of primitives over a plane of numbers: what is drawn, apart from how it is rendered.

The same `Figure` becomes SVG (no plotting library) or matplotlib; tests read its primitives and compare them with the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite, log
from pathlib import Path
from typing import Any, Literal

from budge.report.figures.colours import SERIES
from budge.report.figures.words import clean, shortened, text_width, wrapped

__all__ = ["Area", "Bar", "Figure", "Legend", "Line", "Mark", "Panels", "Point", "Text", "Ticks"]

Place = tuple[float, float]
Anchor = Literal["start", "middle", "end"]
LegendKind = Literal["bar", "line", "point", "diamond"]


@dataclass(frozen=True)
class Line:
    """A line through points of the plane."""

    points: tuple[Place, ...]
    colour: str
    width: float = 1.5
    dash: str = "solid"
    title: str = ""


@dataclass(frozen=True)
class Bar:
    """A rectangle with two opposite corners in the plane; `outline` draws its edge, `fill` its inside."""

    x0: float
    y0: float
    x1: float
    y1: float
    fill: str | None = "blue"
    outline: str | None = None
    dash: str = "solid"
    round: float = 0.0  # of the corners, in pixels
    soft: bool = False
    title: str = ""


@dataclass(frozen=True)
class Area:
    """A filled polygon of the plane."""

    points: tuple[Place, ...]
    colour: str
    soft: bool = False
    title: str = ""


@dataclass(frozen=True)
class Point:
    """A point of the plane."""

    x: float
    y: float
    colour: str
    shape: str = "circle"  # or diamond
    hollow: bool = False
    size: float = 5.0  # half its width, in pixels
    title: str = ""


@dataclass(frozen=True)
class Text:
    """Words at a point of the plane, moved by so many pixels right and down."""

    x: float
    y: float
    words: str
    anchor: Anchor = "start"
    size: int = 11
    colour: str = "ink"
    right: float = 0.0
    down: float = 0.0
    bold: bool = False
    title: str = ""  # the words in full, where they were cut


@dataclass(frozen=True)
class Ticks:
    """Numbers or names along an axis; `titles` are the names in full, where they were cut."""

    axis: Literal["x", "y"]
    values: tuple[float, ...]
    names: tuple[str, ...]
    grid: bool = True
    titles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Legend:
    """Names with their colours: swatches, lines, points or diamonds."""

    names: tuple[str, ...]
    colours: tuple[str, ...]
    kind: LegendKind = "bar"
    dashes: tuple[str, ...] = ()


Mark = Line | Bar | Area | Point | Text


@dataclass(repr=False)
class Figure:
    """A figure: a plane of numbers, what lies on it, and the words around it.

    Every text is escaped when it is rendered, and control characters are shown, not obeyed.

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
    about: str = ""  # the gist of the numbers, for those who do not see the figure
    note: str = ""  # shown below: what the intervals mean, what was left out
    x_label: str = ""
    y_label: str = ""
    width: int = 640
    tall: int = 280  # of the plane, in pixels; the words around it come on top
    left: int = 76
    right: int = 24
    log_x: bool = False
    frame: bool = True  # whether the plane has axes
    marks: list[Mark] = field(default_factory=list)
    ticks: list[Ticks] = field(default_factory=list)
    legends: list[Legend] = field(default_factory=list)

    # -- what is drawn --------------------------------------------------------------------------------------------

    def line(
        self, points: Iterable[Place], *, colour: str = SERIES[0], width: float = 1.5, dash: str = "solid", title: str = ""
    ) -> None:
        """A line; points that are not finite are left out."""
        kept = tuple((float(x), float(y)) for x, y in points if isfinite(x) and isfinite(y))
        self.marks.append(Line(kept, colour, width, dash, title))

    def bar(self, low: float, high: float, *, at: float, thick: float, colour: str = SERIES[0], title: str = "") -> None:
        """A bar lying from low to high."""
        self.marks.append(Bar(min(low, high), at - thick / 2, max(low, high), at + thick / 2, colour, title=title))

    def column(self, low: float, high: float, *, at: float, thick: float, colour: str = SERIES[0], title: str = "") -> None:
        """A bar standing from low to high."""
        self.marks.append(Bar(at - thick / 2, min(low, high), at + thick / 2, max(low, high), colour, title=title))

    def interval(
        self, low: float, high: float, *, at: float, cap: float = 0.18, colour: str = "ink", over: bool = False, title: str = ""
    ) -> None:
        """A lying interval with caps; an end that is not finite runs to the edge of the plane, without a cap.

        `over` a bar it gets a rim of the paper's colour, so that it is seen on any.
        """
        ends = [end if isfinite(end) else edge for end, edge in zip((low, high), self.x)]
        if over:
            self.line([(ends[0], at), (ends[1], at)], colour="paper", width=3.4)
        self.line([(ends[0], at), (ends[1], at)], colour=colour, width=1.6, title=title)
        for end in (low, high):
            if isfinite(end):
                self.line([(end, at - cap), (end, at + cap)], colour=colour, width=1.6)

    def point(
        self, x: float, y: float, *, colour: str = SERIES[0], shape: str = "circle", hollow: bool = False, size: float = 5.0, title: str = ""
    ) -> None:  # fmt: skip
        """A point."""
        self.marks.append(Point(float(x), float(y), colour, shape, hollow, size, title))

    def text(
        self, x: float, y: float, words: object, *, anchor: Anchor = "start", size: int = 11, colour: str = "ink", right: float = 0.0,
        down: float = 0.0, bold: bool = False, title: str = "",
    ) -> None:  # fmt: skip
        """Words at a point."""
        self.marks.append(Text(float(x), float(y), str(words), anchor, size, colour, right, down, bold, title))

    def tick(
        self, axis: Literal["x", "y"], values: Sequence[float], names: Sequence[object] | None = None, *, grid: bool = True
    ) -> None:
        """Numbers along an axis, or names in their place; long names of a y-axis are cut to the room at the left."""
        words = [f"{v:,.10g}" for v in values] if names is None else [clean(name) for name in names]
        room = self.left - 14 - (18 if self.y_label else 0)
        shown = [shortened(word, room) if axis == "y" else word for word in words]
        self.ticks.append(Ticks(axis, tuple(map(float, values)), tuple(shown), grid, tuple(words)))

    def legend(
        self, names: Sequence[object], colours: Sequence[str], *, kind: LegendKind = "bar", dashes: Sequence[str] = ()
    ) -> None:
        """Names with their colours, in rows under the title."""
        self.legends.append(Legend(tuple(map(clean, names)), tuple(colours), kind, tuple(dashes)))

    # -- where it lies --------------------------------------------------------------------------------------------

    @property
    def title_lines(self) -> list[str]:
        """The title, broken to the width."""
        return wrapped(self.title, self.width - 24, size=14)

    @property
    def note_lines(self) -> list[str]:
        """The note, broken to the width."""
        return wrapped(self.note, self.width - 24) if self.note else []

    def legend_rows(self) -> list[list[tuple[int, int, float]]]:
        """Entries as (legend, entry, x in pixels), row by row."""
        rows: list[list[tuple[int, int, float]]] = [[]]
        x = 12.0
        for i, legend in enumerate(self.legends):
            for k, name in enumerate(legend.names):
                wide = 24 + text_width(shortened(name, 260)) + 18
                if rows[-1] and x + wide > self.width - 6:
                    rows.append([])
                    x = 12.0
                rows[-1].append((i, k, x))
                x += wide
        return rows if rows[0] else []

    @property
    def top(self) -> float:
        """Pixels above the plane: title and legend."""
        return 14 + 18 * len(self.title_lines) + 18 * len(self.legend_rows()) + (18 if self.frame else 2)

    @property
    def bottom(self) -> float:
        """Pixels below the plane: ticks, label and note."""
        ticks = 22 if any(t.axis == "x" for t in self.ticks) else 4
        return ticks + (20 if self.x_label else 0) + 15 * len(self.note_lines) + 8

    @property
    def height(self) -> float:
        """Of the whole figure, in pixels."""
        return self.top + self.tall + self.bottom

    def at(self, x: float, y: float) -> Place:
        """Where a point of the plane lies in the picture."""
        return self.placing()(x, y)

    def placing(self) -> Callable[[float, float], Place]:
        """`at`, for many points: the room that words take is measured once."""
        (x0, x1), (y0, y1) = self.x, self.y
        top, wide = self.top, self.width - self.left - self.right
        scale: Callable[[float], float] = log if self.log_x else float
        start, span, rise = scale(x0), (scale(x1) - scale(x0)) or 1.0, (y1 - y0) or 1.0

        def place(x: float, y: float) -> Place:
            return self.left + (scale(x) - start) / span * wide, top + (1 - (y - y0) / rise) * self.tall

        return place

    # -- how it is shown ------------------------------------------------------------------------------------------

    def svg(self, *, standalone: bool = True) -> str:
        """As SVG: a file with a white background, or an element for a page that may be light or dark."""
        from budge.report.figures.svg import render

        return render(self, standalone=standalone)

    def to_matplotlib(self, ax: Any = None) -> Any:
        """Draw with matplotlib (extra `plot`), on new axes or on those given; the axes."""
        from budge.report.figures.mpl import draw

        return draw(self, ax)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write to a file, whole or not at all: .svg, or .png and .pdf through matplotlib."""
        from budge.report.figures.saving import save

        return save(self, path, overwrite=overwrite)

    def __str__(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {clean(self.title)}>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg(standalone=False)


@dataclass(repr=False)
class Panels:
    """Figures as one: side by side, or one below the other (`down`), which narrow pages do not shrink."""

    title: str
    figures: tuple[Figure, ...]
    about: str = ""
    down: bool = False

    @property
    def width(self) -> int:
        """Of all of them, in pixels."""
        return (max if self.down else sum)(figure.width for figure in self.figures) if self.figures else 0

    @property
    def height(self) -> float:
        """Of all of them, in pixels."""
        return (sum if self.down else max)(figure.height for figure in self.figures) if self.figures else 0

    def corners(self) -> list[Place]:
        """Return where the upper left corner of each figure lies."""
        return [
            (0, sum(f.height for f in self.figures[:k])) if self.down else (sum(f.width for f in self.figures[:k]), 0)
            for k in range(len(self.figures))
        ]

    def svg(self, *, standalone: bool = True) -> str:
        """As SVG."""
        from budge.report.figures.svg import render_panels

        return render_panels(self, standalone=standalone)

    def to_matplotlib(self) -> Any:
        """Draw with matplotlib; the array of axes."""
        from budge.report.figures.mpl import draw_panels

        return draw_panels(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write to a file, whole or not at all."""
        from budge.report.figures.saving import save

        return save(self, path, overwrite=overwrite)

    def __str__(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {clean(self.title)}>"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg(standalone=False)
