"""Drawings with matplotlib (extra `plot`), for papers and notebooks. The only module that imports it."""

from __future__ import annotations

from typing import Any

from budge.errors import MissingDependencyError
from budge.report.figures.colours import PALETTE
from budge.report.figures.drawing import Area, Bar, Figure, Line, Panels, Point, Text
from budge.report.figures.words import clean, shortened

__all__ = ["draw", "draw_panels", "picture"]

_DPI = 100
_POINTS = 72 / _DPI  # a pixel of the drawing, in points
_DASHES = {"solid": "-", "dashed": "--", "dotted": ":", "dashdot": "-."}
_ANCHOR = {"start": "left", "middle": "center", "end": "right"}


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
        import matplotlib.lines
        import matplotlib.patches
        import matplotlib.transforms
    except ImportError as error:
        raise MissingDependencyError(
            "drawing this way needs matplotlib", where="figure", remedy="pip install 'budge[plot]', or save as .svg"
        ) from error
    return matplotlib


def _ink(name: str | None) -> str:
    return "none" if name is None else PALETTE[name][0]


def picture(drawing: Figure | Panels) -> Any:
    """A matplotlib figure that belongs to no window: nothing is left open."""
    return (draw_panels(drawing)[0] if isinstance(drawing, Panels) else draw(drawing)).figure


def draw_panels(panels: Panels) -> list[Any]:
    """Return the axes of every figure, on one canvas."""
    mpl = _matplotlib()
    canvas = mpl.figure.Figure(figsize=(panels.width / _DPI, panels.height / _DPI), dpi=_DPI)
    places = zip(panels.figures, panels.corners())
    return [draw(figure, _room(canvas, figure, x, y, panels.width, panels.height)) for figure, (x, y) in places]


def _room(canvas: Any, figure: Figure, x: float, y: float, width: float, height: float) -> Any:
    """Axes where the plane of the drawing lies."""
    wide = figure.width - figure.left - figure.right
    return canvas.add_axes(
        ((x + figure.left) / width, 1 - (y + figure.top + figure.tall) / height, wide / width, figure.tall / height)
    )


def draw(figure: Figure, ax: Any = None) -> Any:
    """The axes with everything on them, in the figure's own numbers."""
    mpl = _matplotlib()
    if ax is None:
        canvas = mpl.figure.Figure(figsize=(figure.width / _DPI, figure.height / _DPI), dpi=_DPI)
        ax = _room(canvas, figure, 0, 0, figure.width, figure.height)
    if figure.log_x:
        ax.set_xscale("log")
        ax.minorticks_off()
    ax.set_xlim(*figure.x)
    ax.set_ylim(*figure.y)
    for mark in figure.marks:
        _draw(mark, ax, mpl)
    _ticks(figure, ax)
    _words(figure, ax, mpl)
    _legend(figure, ax, mpl)
    return ax


def _draw(mark: Any, ax: Any, mpl: Any) -> None:
    if isinstance(mark, Line):
        xs, ys = [p[0] for p in mark.points], [p[1] for p in mark.points]
        ax.plot(
            xs, ys, color=_ink(mark.colour), linewidth=mark.width * _POINTS * 1.2, linestyle=_DASHES[mark.dash], clip_on=False
        )
    elif isinstance(mark, Bar):
        ax.add_patch(
            mpl.patches.Rectangle(
                (min(mark.x0, mark.x1), min(mark.y0, mark.y1)), abs(mark.x1 - mark.x0), abs(mark.y1 - mark.y0), facecolor=_ink(mark.fill),
                edgecolor=_ink(mark.outline), linestyle=_DASHES[mark.dash], linewidth=0.8 if mark.outline else 0, alpha=0.35 if mark.soft else 1,
            )
        )  # fmt: skip
    elif isinstance(mark, Area):
        ax.add_patch(mpl.patches.Polygon(mark.points, facecolor=_ink(mark.colour), linewidth=0, alpha=0.35 if mark.soft else 1))
    elif isinstance(mark, Point):
        ax.plot(
            [mark.x], [mark.y], linestyle="none", marker="D" if mark.shape == "diamond" else "o", clip_on=False,
            markersize=2 * mark.size * _POINTS * (0.72 if mark.shape == "diamond" else 1), markeredgecolor=_ink(mark.colour),
            markerfacecolor=_ink("paper" if mark.hollow else mark.colour), zorder=3,
        )  # fmt: skip
    elif isinstance(mark, Text):
        ax.annotate(
            clean(mark.words), (mark.x, mark.y), xytext=(mark.right * _POINTS, -mark.down * _POINTS), textcoords="offset points",
            ha=_ANCHOR[mark.anchor], va="center", fontsize=mark.size * _POINTS, color=_ink(mark.colour), parse_math=False,
            fontweight="bold" if mark.bold else "normal", annotation_clip=False,
        )  # fmt: skip


def _ticks(figure: Figure, ax: Any) -> None:
    for axis in ("x", "y"):
        values = [v for ticks in figure.ticks if ticks.axis == axis for v in ticks.values]
        names = [n for ticks in figure.ticks if ticks.axis == axis for n in ticks.names]
        side = ax.xaxis if axis == "x" else ax.yaxis
        side.set_ticks(values, labels=names, fontsize=11 * _POINTS, parse_math=False)
        side.set_tick_params(length=0)
        if any(ticks.grid for ticks in figure.ticks if ticks.axis == axis):
            side.grid(True, color=_ink("faint"), linewidth=0.7)
    ax.set_axisbelow(True)
    for name, spine in ax.spines.items():
        spine.set_visible(figure.frame and name == "bottom")
        spine.set_color(_ink("muted"))


def _corner(ax: Any, mpl: Any, up: float) -> Any:
    """Pixels of the drawing (over _DPI), counted from the upper (1) or lower (0) left corner of the axes, whatever their size."""
    return ax.figure.dpi_scale_trans + mpl.transforms.ScaledTranslation(0, up, ax.transAxes)


def _words(figure: Figure, ax: Any, mpl: Any) -> None:
    """Title, labels and note, placed by pixels of the drawing."""
    small = 11 * _POINTS
    above, below = _corner(ax, mpl, 1), _corner(ax, mpl, 0)

    def put(transform: Any, x: float, y: float, words: str, **look: Any) -> None:
        ax.text((x - figure.left) / _DPI, -y / _DPI, words, transform=transform, parse_math=False, **look)

    for k, line in enumerate(figure.title_lines):
        put(above, 12, 20 + 18 * k - figure.top, line, fontsize=14 * _POINTS * 0.92, fontweight="bold")
    foot = 22 if any(t.axis == "x" for t in figure.ticks) else 4
    if figure.x_label:
        ax.set_xlabel(clean(figure.x_label), fontsize=small, parse_math=False)
        foot += 20
    if figure.y_label:
        ax.set_ylabel(clean(figure.y_label), fontsize=small, parse_math=False)
    for k, line in enumerate(figure.note_lines):
        put(below, 12, foot + 13 + 15 * k, line, fontsize=small, color=_ink("muted"))


def _legend(figure: Figure, ax: Any, mpl: Any) -> None:
    """Entries where the drawing has them; by hand, for matplotlib's own would typeset dollars and drop leading underscores."""
    above = _corner(ax, mpl, 1)
    y = 22 + 18.0 * len(figure.title_lines) - figure.top

    def inches(px: float) -> float:
        return (px - figure.left) / _DPI

    for row in figure.legend_rows():
        for i, k, x in row:
            legend = figure.legends[i]
            colour, middle = _ink(legend.colours[k]), -(y - 4) / _DPI
            look: dict[str, Any] = {"transform": above, "clip_on": False}
            if legend.kind == "line":
                dash = _DASHES[legend.dashes[k]] if k < len(legend.dashes) else "-"
                ends = [inches(x), inches(x + 20)]
                ax.add_artist(mpl.lines.Line2D(ends, [middle, middle], color=colour, linestyle=dash, **look))
            elif legend.kind == "bar":
                ax.add_artist(
                    mpl.patches.Rectangle((inches(x + 6), -(y + 1) / _DPI), 13 / _DPI, 11 / _DPI, facecolor=colour, **look)
                )
            else:
                marker = "o" if legend.kind == "point" else "D"
                ax.add_artist(mpl.lines.Line2D([inches(x + 12)], [middle], color=colour, marker=marker, markersize=6, **look))
            ax.text(
                inches(x + 26),
                -y / _DPI,
                shortened(legend.names[k], 260),
                transform=above,
                fontsize=11 * _POINTS,
                parse_math=False,
            )
        y += 18
