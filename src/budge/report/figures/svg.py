"""Drawings as SVG. Every text is escaped, there are no scripts and no ids, and colours are classes that a page may restyle."""

from __future__ import annotations

from functools import singledispatch
from html import escape

from budge.report.figures.colours import PALETTE
from budge.report.figures.drawing import Area, Bar, Figure, Line, Mark, Panels, Point, Text, Ticks
from budge.report.figures.words import clean, shortened

__all__ = ["render", "render_panels"]

_DASHES = {"dashed": "6 4", "dotted": "1.5 3.5", "dashdot": "8 3 2 3"}
#: Ink follows the page's text colour where no style sheet says otherwise.
_INHERITED = {"ink": 1.0, "muted": 0.7, "faint": 0.18, "wash": 0.05}


class _Pen:
    """How colours and numbers are written: as fixed values in a file, as classes in a page."""

    def __init__(self, figure: Figure, *, standalone: bool) -> None:
        self.figure, self.standalone = figure, standalone
        self.place = figure.placing()  # a point of the plane in the picture

    def colour(self, kind: str, name: str | None) -> str:
        """The attributes of a fill or stroke."""
        if name is None:
            return f'{kind}="none"'
        if self.standalone:
            return f'{kind}="{PALETTE[name][0]}"'
        style = f'class="{kind[0]}-{name}" '
        if name == "paper":
            return f'{style}{kind}="none"'
        if name in _INHERITED:
            faded = _INHERITED[name]
            return f'{style}{kind}="currentColor"' + (f' {kind}-opacity="{faded:g}"' if faded < 1 else "")
        return f'{style}{kind}="{PALETTE[name][0]}"'

    def both(self, fill: str | None, stroke: str | None) -> str:
        """Fill and stroke with one class attribute."""
        parts = [self.colour("fill", fill), self.colour("stroke", stroke)]
        names = [part.split('"')[1] for part in parts if part.startswith("class=")]
        plain = [part.split('" ', 1)[1] if part.startswith("class=") else part for part in parts]
        return (f'class="{" ".join(names)}" ' if names else "") + " ".join(plain)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _title(words: str) -> str:
    return f"<title>{escape(clean(words))}</title>" if words else ""


def _stroke(width: float, dash: str) -> str:
    return f'stroke-width="{width:g}"' + (f' stroke-dasharray="{_DASHES[dash]}"' if dash in _DASHES else "")


def _words(
    pen: _Pen,
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: int = 11,
    colour: str = "ink",
    extra: str = "",
    title: str = "",
) -> str:
    more = f" {extra}" if extra else ""
    side = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{side} font-size="{size:d}" {pen.colour("fill", colour)}{more}>{_title(title)}{escape(clean(words))}</text>'


@singledispatch
def _drawn(mark: Mark, pen: _Pen) -> str:
    raise AssertionError(mark)


@_drawn.register
def _(mark: Line, pen: _Pen) -> str:
    places: list[str] = []
    for x, y in mark.points:
        here = "{},{}".format(*map(_n, pen.place(x, y)))
        if not places or places[-1] != here:  # closer than a tenth of a pixel
            places.append(here)
    attributes = f"{pen.both(None, mark.colour)} {_stroke(mark.width, mark.dash)}"
    return f'<polyline {attributes} points="{" ".join(places)}">{_title(mark.title)}</polyline>'


@_drawn.register
def _(mark: Bar, pen: _Pen) -> str:
    (xa, ya), (xb, yb) = pen.place(mark.x0, mark.y0), pen.place(mark.x1, mark.y1)
    x, y, wide, high = min(xa, xb), min(ya, yb), abs(xb - xa), abs(yb - ya)
    round_ = f' rx="{mark.round:g}"' if mark.round else ""
    soft = ' opacity="0.35"' if mark.soft else ""
    edge = f" {_stroke(1, mark.dash)}" if mark.outline else ""
    size = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(wide, 0.5))}" height="{_n(max(high, 0.5))}"'
    return f"<rect {size}{round_}{soft} {pen.both(mark.fill, mark.outline)}{edge}>{_title(mark.title)}</rect>"


@_drawn.register
def _(mark: Area, pen: _Pen) -> str:
    places = " ".join("{},{}".format(*map(_n, pen.place(x, y))) for x, y in mark.points)
    soft = ' opacity="0.35"' if mark.soft else ""
    return f'<polygon {pen.colour("fill", mark.colour)}{soft} points="{places}">{_title(mark.title)}</polygon>'


@_drawn.register
def _(mark: Point, pen: _Pen) -> str:
    x, y = pen.place(mark.x, mark.y)
    look = pen.both("paper" if mark.hollow else mark.colour, mark.colour) + (' stroke-width="1.5"' if mark.hollow else "")
    r = mark.size
    if mark.shape == "diamond":
        corners = " ".join(f"{_n(x + a * r)},{_n(y + b * r)}" for a, b in ((0, -1), (1, 0), (0, 1), (-1, 0)))
        return f'<polygon {look} points="{corners}">{_title(mark.title)}</polygon>'
    return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{r:g}" {look}>{_title(mark.title)}</circle>'


@_drawn.register
def _(mark: Text, pen: _Pen) -> str:
    x, y = pen.place(mark.x, mark.y)
    return _words(
        pen, x + mark.right, y + mark.down + 0.36 * mark.size, mark.words, anchor=mark.anchor, size=mark.size, colour=mark.colour,
        extra='font-weight="bold"' if mark.bold else "", title=mark.title,
    )  # fmt: skip


def _ticks(ticks: Ticks, pen: _Pen) -> tuple[list[str], list[str]]:
    """Grid lines (below everything) and names."""
    figure, grid, names = pen.figure, [], []
    for value, name, full in zip(ticks.values, ticks.names, ticks.titles or ticks.names):
        if ticks.axis == "x":
            (a, b), (c, d) = pen.place(value, figure.y[0]), pen.place(value, figure.y[1])
            names.append(_words(pen, a, max(b, d) + 16, name, anchor="middle", colour="muted"))
        else:
            (a, b), (c, d) = pen.place(figure.x[0], value), pen.place(figure.x[1], value)
            names.append(
                _words(
                    pen,
                    a - 7,
                    b + 4,
                    name,
                    anchor="end",
                    colour="muted" if ticks.grid else "ink",
                    title=full if full != name else "",
                )
            )
        if ticks.grid:
            grid.append(f'<line x1="{_n(a)}" y1="{_n(b)}" x2="{_n(c)}" y2="{_n(d)}" {pen.colour("stroke", "faint")}/>')
    return grid, names


def _legend(pen: _Pen, y: float) -> list[str]:
    figure, parts = pen.figure, []
    for row in figure.legend_rows():
        for i, k, x in row:
            legend = figure.legends[i]
            colour = legend.colours[k]
            if legend.kind == "line":
                dash = legend.dashes[k] if k < len(legend.dashes) else "solid"
                parts.append(
                    f'<line x1="{_n(x)}" y1="{_n(y - 4)}" x2="{_n(x + 20)}" y2="{_n(y - 4)}" {pen.colour("stroke", colour)} {_stroke(2.2, dash)}/>'
                )
            elif legend.kind == "diamond":
                parts.append(f'<path d="M{_n(x + 6)} {_n(y - 4)}l6 -6l6 6l-6 6z" {pen.colour("fill", colour)}/>')
            elif legend.kind == "point":
                parts.append(f'<circle cx="{_n(x + 12)}" cy="{_n(y - 4)}" r="5" {pen.colour("fill", colour)}/>')
            else:
                parts.append(f'<rect x="{_n(x + 6)}" y="{_n(y - 10)}" width="13" height="11" {pen.colour("fill", colour)}/>')
            name = shortened(legend.names[k], 260)
            parts.append(_words(pen, x + 26, y, name, title=legend.names[k] if name != legend.names[k] else ""))
        y += 18
    return parts


def _inner(figure: Figure, *, standalone: bool) -> list[str]:
    """Everything but the root element."""
    pen = _Pen(figure, standalone=standalone)
    y = 20.0
    parts = []
    for line in figure.title_lines:
        parts.append(_words(pen, 12, y, line, size=14, extra='font-weight="bold"'))
        y += 18
    parts += _legend(pen, y + 2)
    drawn = [_ticks(ticks, pen) for ticks in figure.ticks]
    parts += [line for grid, _ in drawn for line in grid]
    if figure.frame:
        (x0, y0), (x1, _) = pen.place(figure.x[0], figure.y[0]), pen.place(figure.x[1], figure.y[0])
        parts.append(f'<line x1="{_n(x0)}" y1="{_n(y0)}" x2="{_n(x1)}" y2="{_n(y0)}" {pen.colour("stroke", "muted")}/>')
    parts += [_drawn(mark, pen) for mark in figure.marks]
    parts += [name for _, names in drawn for name in names]
    foot = figure.top + figure.tall + (22 if any(t.axis == "x" for t in figure.ticks) else 4)
    if figure.x_label:
        middle = (figure.left + figure.width - figure.right) / 2
        parts.append(_words(pen, middle, foot + 13, shortened(clean(figure.x_label), figure.width - 24), anchor="middle"))
        foot += 20
    if figure.y_label:
        middle = figure.top + figure.tall / 2
        parts.append(_words(pen, 16, middle, figure.y_label, anchor="middle", extra=f'transform="rotate(-90 16 {_n(middle)})"'))
    for k, line in enumerate(figure.note_lines):
        parts.append(_words(pen, 12, foot + 13 + 15 * k, line, colour="muted"))
    return parts


def _root(title: str, about: str, width: float, height: float, inner: list[str], *, standalone: bool) -> str:
    size = f'viewBox="0 0 {_n(width)} {_n(height)}"'
    if standalone:
        size += f' width="{_n(width)}" height="{_n(height)}"'
        inner = [f'<rect width="{_n(width)}" height="{_n(height)}" fill="#ffffff"/>', *inner]
    else:
        size += f' class="budge-figure" width="{_n(width)}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="system-ui, \'Helvetica Neue\', Arial, sans-serif">'
    words = f"<title>{escape(clean(title))}</title>" + (f"<desc>{escape(clean(about))}</desc>" if about else "")
    return "\n".join([head, words, *inner, "</svg>"]) + "\n"


def render(figure: Figure, *, standalone: bool = True) -> str:
    """One figure."""
    inner = _inner(figure, standalone=standalone)
    return _root(figure.title, figure.about, figure.width, figure.height, inner, standalone=standalone)


def render_panels(panels: Panels, *, standalone: bool = True) -> str:
    """Return several figures as one drawing."""
    inner = []
    for figure, (x, y) in zip(panels.figures, panels.corners()):
        inner += [f'<g transform="translate({_n(x)} {_n(y)})">', *_inner(figure, standalone=standalone), "</g>"]
    about = panels.about or " ".join(f"{f.title}: {f.about}" for f in panels.figures if f.about)
    return _root(panels.title, about, panels.width, panels.height, inner, standalone=standalone)
