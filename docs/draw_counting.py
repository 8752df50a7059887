"""Remake the two drawings of docs/explanation/reaching.md: ``python docs/draw_counting.py [folder]``.

The diagram, its counts, the walked path, the draws and the area all come from the engine; only where things stand on the page is decided here.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint
from budge.reach.large import count_part
from budge.reach.room import Rooms
from budge.reach.starts import Starts

IMAGES = Path(__file__).resolve().parent / "images"
COSTS = {"x": 3, "y": 5, "z": 7}
TOPS = {"x": 3, "y": 2, "z": 2}
LIMIT, LOW, HIGH = 17, 1, 6  # of everything; of each real
WALKED = {"x": 1, "y": 1, "z": 0}
INK, FAINT, ROUTE, FILL, CARD, EDGE = "#1f2933", "#52606d", "#b4420f", "#dbe7f3", "#fdfdfb", "#cbd2d9"
WIDTH = 350


def model() -> InteractionModel:
    """The worked example: three whole numbers and two reals under one budget."""
    features = [Feature(name, "integer", bounds=(0, top)) for name, top in TOPS.items()]
    features += [Feature(name, "real", bounds=(LOW, HIGH)) for name in "ab"]
    return InteractionModel(features, [LinearConstraint({**COSTS, "a": 1, "b": 1}, "<=", LIMIT)])


def sheet(height: int, title: str, body: list[str]) -> str:
    """Return an SVG on a light card of its own, so that it reads on a dark page as well."""
    style = f"text{{font:13px system-ui,sans-serif;fill:{INK}}} .s{{font-size:12.5px;fill:{FAINT}}} .n{{font-weight:700;font-size:15px}} .r{{fill:{ROUTE}}}"
    style += f" .h{{paint-order:stroke;stroke:{CARD};stroke-width:4px}}"
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{title}</title><style>{style}</style>",
        f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8" fill="{CARD}" stroke="{EDGE}"/>',
        *body, "</svg>", "",
    ])  # fmt: skip


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "middle") -> str:
    """Return one line of text."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{kind}">{words}</text>'


def diagram() -> str:
    """Return the counting diagram of the whole numbers, the reals projected out, with one walked path."""
    room = LIMIT - 2 * LOW  # what the reals leave at most
    whole = [Feature(name, "integer", bounds=(0, top)) for name, top in TOPS.items()]
    part = InteractionModel(whole, [LinearConstraint(COSTS, "<=", room)]).parts[0]
    counted = count_part(Starts.of(part, dict.fromkeys(COSTS, np.zeros(1))))
    levels, counts, names = counted.diagram.levels, counted.diagram.points.counts, list(counted.written.axes)
    order = [names[level.variable] for level in levels]
    every = counted.diagram.points.unrank(np.arange(counted.size)).T
    number = next(i for i, row in enumerate(every.tolist()) if dict(zip(names, row)) == WALKED)
    left = [{0: {room}}]  # what is left of the budget, by level and state
    for level, name in zip(levels, order):
        found: dict[int, set[int]] = {}
        for state, before in left[-1].items():
            for e in range(level.start[state], level.start[state + 1]):
                value = int(level.low[level.label[e]])
                found.setdefault(int(level.to[e]), set()).update(b - COSTS[name] * value for b in before)
        left.append(found)
    at: dict[tuple[int, int], tuple[float, float]] = {}
    for i, states in enumerate(left):
        ranked = sorted(states, key=lambda s: -max(states[s]))
        for j, s in enumerate(ranked):
            at[i, s] = (70 + (j + 0.5) * (WIDTH - 80) / len(ranked), 72 + 105 * i)
    lines, marks, state = [], [], 0
    for i, (level, name) in enumerate(zip(levels, order)):
        marks.append(text(14, 72 + 105 * i + 57, name, "n", "start"))
        marks.append(text(26, 72 + 105 * i + 57, f"costs {COSTS[name]}", "s", "start"))
        joined: dict[tuple[int, int], list[int]] = {}
        for s in left[i]:
            for e in range(level.start[s], level.start[s + 1]):
                joined.setdefault((s, int(level.to[e])), []).append(int(level.low[level.label[e]]))
        after = next(t for (s, t), values in joined.items() if s == state and WALKED[name] in values)
        for (s, t), values in sorted(joined.items(), key=lambda pair: pair[0] == (state, after)):
            (a, b), (c, d) = at[i, s], at[i + 1, t]
            walked = (s, t) == (state, after)
            lines.append(f'<line x1="{a:.1f}" y1="{b}" x2="{c:.1f}" y2="{d}" stroke="{ROUTE if walked else FAINT}" stroke-width="{3 if walked else 1.2}"/>')
            share = 0.5 if i != 1 else 0.3 if abs(c - a) > 120 else 0.55 if c != a else 0.4  # so that labels keep apart
            label = ", ".join(f'<tspan class="n r">{v}</tspan>' if walked and v == WALKED[name] else str(v) for v in values)
            marks.append(text(a + (c - a) * share, b + (d - b) * share + 4, label, "h"))
        state = after
    for (i, s), (x, y) in at.items():
        reached = sorted(left[i][s])
        if i < len(levels):
            marks.append(f'<circle cx="{x:.1f}" cy="{y}" r="17" fill="{FILL}" stroke="{INK}"/>')
            marks.append(text(x, y + 5, str(int(counts[i][s])), "n"))
            rest = f"{reached[0]}" if len(reached) == 1 else f"{reached[0]} to {reached[-1]}"
            marks.append(text(x + (22 if i == 0 else 0), y + (5 if i == 0 else -23), f"left: {rest}", "s h", "start" if i == 0 else "middle"))
        else:
            marks.append(f'<circle cx="{x:.1f}" cy="{y}" r="6" fill="{INK}"/>')
    walk = ", ".join(f"{name} = {WALKED[name]}" for name in order)
    combinations = math.prod(top + 1 for top in TOPS.values())
    head = [text(14, 26, f"{counted.size} of {combinations} configurations fit", "n", "start")]
    foot = [text(14, 432, f"A draw: number {number} of 0 to {counted.size - 1}", "r", "start"), text(14, 451, f"walks {walk}", "r", "start")]
    return sheet(466, "Counting diagram of three whole numbers under a budget", [*head, *lines, *marks, *foot])


def open_room() -> str:
    """Return what the walked configuration leaves to the reals, with the engine's draws in it."""
    im = model()
    sample = im.sample(dict.fromkeys(TOPS, 0) | {"a": float(LOW), "b": float(LOW)}, 3000, seed=1)
    assert sample.exact
    here = (sample.values[:, : len(TOPS)] == [WALKED[name] for name in TOPS]).all(axis=1)
    points = sample.values[here, len(TOPS) :]
    rest = LIMIT - sum(COSTS[name] * value for name, value in WALKED.items())
    room = Rooms(np.full((1, 2), float(LOW)), np.full((1, 2), float(HIGH)), np.ones((1, 2)), np.array([float(rest)]))
    area = float(np.exp(room.log_volumes[0]))

    def place(a: float, b: float) -> tuple[float, float]:
        return 46 + 40 * a, 352 - 40 * b

    corners = [(LOW, LOW), (HIGH, LOW), (HIGH, rest - HIGH), (rest - HIGH, HIGH), (LOW, HIGH)]
    outline = " ".join("{:.1f},{:.1f}".format(*place(*corner)) for corner in corners)
    (x0, y0), (x1, y1) = place(LOW, LOW), place(HIGH, HIGH)
    body = [
        text(14, 26, f"The room of {', '.join(f'{n} = {v}' for n, v in sorted(WALKED.items()))}", "n", "start"),
        f'<polygon points="{outline}" fill="{FILL}" stroke="{ROUTE}" stroke-width="2"/>',
        f'<rect x="{x0}" y="{y1}" width="{x1 - x0}" height="{y0 - y1}" fill="none" stroke="{FAINT}" stroke-dasharray="5 4"/>',
        *('<circle cx="{:.1f}" cy="{:.1f}" r="1.8" fill="{}"/>'.format(*place(*point), INK) for point in points),
    ]
    for tick in range(HIGH + 2):
        body += [text(place(tick, 0)[0], 371, str(tick), "s"), *([text(36, place(0, tick)[1] + 4, str(tick), "s")] if tick else [])]
    (ox, oy), (ax, _), (_, by) = place(0, 0), place(HIGH + 1, 0), place(0, HIGH + 1)
    body += [f'<path d="M{ox} {by} V{oy} H{ax}" fill="none" stroke="{INK}"/>', text(ax, 390, "a", "n"), text(16, by + 6, "b", "n")]
    body += [text(x1 + 2, y1 - 8, f"a + b = {rest}", "h r", "end")]
    body += [text(14, 413, f"a + b ≤ {LIMIT} − {LIMIT - rest}; a and b from {LOW} to {HIGH}", "", "start")]
    body += [text(14, 432, f"area {area:g} of {(HIGH - LOW) ** 2}, drawn uniformly:", "", "start")]
    body += [text(14, 451, f"{len(points)} of {sample.n:,} draws have this configuration", "s", "start")]
    return sheet(466, "What one configuration leaves to two reals", body)


def main(folder: Path = IMAGES) -> None:
    """Write both drawings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "counting-diagram.svg").write_text(diagram(), encoding="utf-8")
    (folder / "counting-room.svg").write_text(open_room(), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
