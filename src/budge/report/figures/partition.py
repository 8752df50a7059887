"""The partition as a graph: features that a constraint or an effect ties together stand in one box."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot

from budge.constraints import Constraint, DirectionalLinkage
from budge.errors import InputError
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.report.figures.drawing import Area, Bar, Figure
from budge.report.figures.words import clean, shortened, text_width

__all__ = ["partition"]

WIDE = 876  # of the plane, in pixels
ROW, CHIP, PAD, HEAD, GAP = 26, 20, 12, 24, 14
MOST_FEATURE, MOST_TIE, BETWEEN = 190, 230, 64
_SIGN = {"increase": " ↑", "decrease": " ↓"}


@dataclass
class _Tie:
    """A constraint or an effect: what it joins, and which of these it acts on."""

    words: str
    title: str
    scope: tuple[str, ...]
    acted: tuple[str, ...] = ()
    effect: bool = False


@dataclass
class _Box:
    """A part (or the features that stand alone) with its own size."""

    title: str
    features: list[Feature]
    ties: list[_Tie] = field(default_factory=list)
    columns: int = 1
    wide: float = 0.0
    high: float = 0.0


def partition(im: InteractionModel) -> Figure:
    """Features as boxes, constraints and effects tied to what they join, part by part; those that stand alone in lists.

    Solid: actionable. Dashed: not actionable, but moved by a link or an effect. Grey: cannot move. An arrow on a feature's name is
    the direction in which it may move; an arrowhead shows what a link or an effect acts on.
    """
    if not isinstance(im, InteractionModel):
        raise InputError("an interaction model", where="partition", got=type(im).__name__)
    boxes = _boxes(im)
    places, high = _packed(boxes)
    tied = sum(1 for box in boxes if box.ties)
    figure = Figure(
        f"{clean(im.name) or 'Interaction model'}: {len(im.features)} features in {len(im.partition)} parts", x=(0.0, float(WIDE)), y=(high, 0.0),
        width=WIDE + 24, tall=int(high), left=12, right=12, frame=False, about=_gist(im, tied),
        note="Solid: actionable. Dashed: moved by a link or an effect only. Grey: cannot move. ↑ ↓: may only rise, only fall.",
    )  # fmt: skip
    figure.legend(["actionable feature", "constraint", "effect"], ["blue", "orange", "purple"])
    for box, (x, y) in zip(boxes, places):
        _draw(figure, box, x, y, im.moving)
    return figure


def _gist(im: InteractionModel, tied: int) -> str:
    lines = [f"{tied} parts hold constraints or effects."]
    for k, names in enumerate(im.partition, 1):
        if len(names) > 1:
            lines.append(f"Part {k}: {', '.join(names)}.")
    free = [f.name for part in im.parts if len(part.names) == 1 for f in part.features if f.actionable]
    return " ".join(lines) + (f" Each by itself: {', '.join(free)}." if free else "")


def _boxes(im: InteractionModel) -> list[_Box]:
    boxes: list[_Box] = []
    free: list[Feature] = []
    still: list[Feature] = []
    for k, part in enumerate(im.parts, 1):
        ties = _ties(part)
        if len(part.names) == 1 and not ties:
            feature = part.features[0]
            (free if feature.actionable else still).append(feature)
            continue
        boxes.append(_sized(_Box(f"part {k}", *_ordered(list(part.features), ties))))
    boxes.sort(key=lambda box: -box.high)
    for title, features in (("each a part by itself", free), ("cannot move", still)):
        if features:
            boxes.append(_listed(_Box(title, features)))
    return boxes


def _ties(part: Part) -> list[_Tie]:
    found = [_Tie(_said(c), clean(c.describe()), tuple(c.scope)) for c in part.constraints]
    for link in part.linkages:
        found.append(_Tie(_said(link), clean(link.describe()), tuple(link.scope), _targets(link)))
    for effect in part.effects:
        parents = tuple(sorted({name for layer, name in effect.parents if layer != "latent" and name in part.by_name}))
        shared = sorted({name for layer, name in effect.parents if layer == "latent"})
        words = clean(effect.label) + (f" ({', '.join(shared)})" if shared else "")
        found.append(
            _Tie(
                words, clean(effect.describe()), tuple(dict.fromkeys((*parents, effect.feature))), (effect.feature,), effect=True
            )
        )
    return found


def _said(constraint: Constraint) -> str:
    """Its name, or what kind it is: its lines show what it joins."""
    return clean(constraint.name or constraint.kind.replace("_", " "))


def _targets(link: DirectionalLinkage) -> tuple[str, ...]:
    return tuple(name for name in link.scope if name != link.source)


def _ordered(features: list[Feature], ties: list[_Tie]) -> tuple[list[Feature], list[_Tie]]:
    """Both columns in an order that keeps lines short: each goes to the mean place of what it is tied to, a few times over."""
    for _ in range(6):
        rank = {f.name: k for k, f in enumerate(features)}
        ties = sorted(ties, key=lambda t: sum(rank[n] for n in t.scope) / max(len(t.scope), 1))
        pull: dict[str, list[int]] = {f.name: [] for f in features}
        for seat, tie in enumerate(ties):
            for name in tie.scope:
                pull[name].append(seat)
        features = sorted(features, key=lambda f: sum(pull[f.name]) / len(pull[f.name]) if pull[f.name] else rank[f.name])
    return features, ties


def _chip(words: str, most: float) -> float:
    return min(text_width(words) + 16, most)


def _label(f: Feature) -> str:
    return clean(f.name) + _SIGN.get(f.direction or "", "")


def _sized(box: _Box) -> _Box:
    left = max(_chip(_label(f), MOST_FEATURE) for f in box.features)
    right = max((_chip(t.words, MOST_TIE) for t in box.ties), default=0.0)
    box.wide = 2 * PAD + left + (BETWEEN + right if box.ties else 0)
    box.high = HEAD + ROW * max(len(box.features), len(box.ties)) + PAD / 2
    return box


def _listed(box: _Box) -> _Box:
    """Features that stand alone, in as many columns as fit."""
    each = max(_chip(_label(f), MOST_FEATURE) for f in box.features) + 8
    box.columns = max(1, min(int((WIDE - 2 * PAD) // each), len(box.features)))
    box.wide = 2 * PAD + each * box.columns - 8
    box.high = HEAD + ROW * -(-len(box.features) // box.columns) + PAD / 2
    return box


def _packed(boxes: list[_Box]) -> tuple[list[tuple[float, float]], float]:
    """Boxes in shelves from the top, each shelf filled from the left with what still fits."""
    places: dict[int, tuple[float, float]] = {}
    left = list(range(len(boxes)))
    y = 4.0
    while left:
        x, tall = 0.0, 0.0
        for k in list(left):
            if x == 0.0 or x + boxes[k].wide <= WIDE:
                places[k] = (x, y)
                x += boxes[k].wide + GAP
                tall = max(tall, boxes[k].high)
                left.remove(k)
        y += tall + GAP
    return [places[k] for k in range(len(boxes))], y - GAP + 4


def _draw(figure: Figure, box: _Box, x: float, y: float, moving: frozenset[str]) -> None:
    figure.marks.append(Bar(x, y, x + box.wide, y + box.high, "wash", "faint", round=6))
    figure.text(x + PAD, y + 13, box.title, size=11, colour="muted")
    top = y + HEAD + ROW / 2 - 3
    if not box.ties:
        each = (box.wide - 2 * PAD + 8) / box.columns
        for k, f in enumerate(box.features):
            row, column = divmod(k, box.columns)
            _feature(figure, f, x + PAD + each * column, top + ROW * row, each - 8, moving)
        return
    left = max(_chip(_label(f), MOST_FEATURE) for f in box.features)
    right = max(_chip(t.words, MOST_TIE) for t in box.ties)
    tall = max(len(box.features), len(box.ties)) * ROW

    def level(k: int, many: int) -> float:
        return top - ROW / 2 + (k + 0.5) * tall / many

    seats = {f.name: level(k, len(box.features)) for k, f in enumerate(box.features)}
    x0, x1 = x + PAD + left, x + PAD + left + BETWEEN
    for k, tie in enumerate(box.ties):
        at, colour = level(k, len(box.ties)), "purple" if tie.effect else "orange"
        for name in tie.scope:
            title = f"{tie.words}: {name}"
            figure.line([(x1, at), (x0, seats[name])], colour=colour, width=1.3, title=title)
            if name in tie.acted:
                _arrow(figure, (x1, at), (x0, seats[name]), colour)
    for k, tie in enumerate(box.ties):
        at, colour = level(k, len(box.ties)), "purple" if tie.effect else "orange"
        figure.marks.append(Bar(x1, at - CHIP / 2, x1 + right, at + CHIP / 2, "paper", colour, round=9, title=tie.title))
        figure.text(x1 + 8, at, shortened(tie.words, right - 14), title=tie.title)
    for f in box.features:
        _feature(figure, f, x + PAD, seats[f.name], left, moving)


def _feature(figure: Figure, f: Feature, x: float, y: float, wide: float, moving: frozenset[str]) -> None:
    outline, dash, ink = (
        ("blue", "solid", "ink")
        if f.actionable
        else ("blue", "dashed", "ink")
        if f.name in moving
        else ("grey", "solid", "muted")
    )
    kind = f"{f.type}, {'actionable' if f.actionable else 'moved by a link or an effect' if f.name in moving else 'cannot move'}"
    figure.marks.append(Bar(x, y - CHIP / 2, x + wide, y + CHIP / 2, "paper", outline, dash, 3, title=f"{f.name}: {kind}"))
    words = _label(f)
    figure.text(x + 8, y, shortened(words, wide - 12), colour=ink, title=f"{f.name}: {kind}")


def _arrow(figure: Figure, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    """A head at the end of a line."""
    (a, b), (c, d) = start, end
    far = hypot(c - a, d - b) or 1.0
    u, v = (c - a) / far, (d - b) / far
    base = (c - 9 * u, d - 9 * v)
    figure.marks.append(Area((end, (base[0] - 4 * v, base[1] + 4 * u), (base[0] + 4 * v, base[1] - 4 * u)), colour))
