"""A part as its fibre sees it: what the configuration tells as columns, what is open as forms in coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import numpy.typing as npt

from budge.expressions import All, Formula, Linear, Row, Some, Var
from budge.parts import Part
from budge.reach.cells import Cell, boxes, resolve
from budge.reach.core import Core, change_interval, has_gaps, is_computed
from budge.reach.forms import limits
from budge.reach.shapes import Coordinate

__all__ = ["View"]

FloatArray = npt.NDArray[np.float64]


@dataclass
class View:
    """Every variable as a known column or as a form in the coordinates."""

    part: Part
    x: Mapping[str, float]
    core: Core
    real: Sequence[str]
    known: dict[Var, FloatArray | float] = field(default_factory=dict)
    symbols: dict[Var, Linear] = field(default_factory=dict)
    coordinates: list[Coordinate] = field(default_factory=list)
    links: list[Formula] = field(default_factory=list)  # what linkages demand of the coordinates
    stops: dict[str, tuple[float, float]] = field(default_factory=dict)  # computed targets that stop at a bound

    @classmethod
    def of(
        cls, part: Part, x: Mapping[str, float], core: Core, real: Sequence[str], counted: Sequence[str], climbing: Sequence[str] = ()
    ) -> View:
        view = cls(part, x, core, real)
        for name in part.order:
            if name in climbing:  # goes with its source
                continue
            if name in core.change:
                view._add_known(name)
            elif name not in part.links:
                view._add_free(name, name in counted)
            elif _is_told(part, name) or (name in real and is_computed(part, name, x)):
                view._add_told(name)
            else:
                view._add_open(name, name in counted)
            if name not in core.change:
                view.symbols["value", name] = view.symbols["change", name] + x[name]
        return view

    def has_room(self, cell: Cell) -> bool:
        """Whether the cell leaves a box open to some configuration."""
        low = np.stack([c.low for c in self.coordinates], axis=1)
        high = np.stack([c.high for c in self.coordinates], axis=1)
        _, _, exists, _ = boxes(cell, [c.name for c in self.coordinates], low, high, [c.whole for c in self.coordinates])
        return bool(exists.any())

    def _add_known(self, name: str) -> None:
        core = self.core
        self.known["action", name], self.known["change", name] = core.action[name], core.change[name]
        self.known["value", name] = self.x[name] + core.change[name]
        if any(link.source in self.real for link in self.part.links.get(name, ())):
            self.links.append(resolve(_open_rows(self.part, name, self.x), self.known, self.symbols))

    def _coordinate(self, name: str, low: FloatArray | float, high: FloatArray | float, whole: bool = False) -> Linear:
        m = self.core.size
        ends = [np.array(np.broadcast_to(end, (m,)), dtype=float) for end in (low, high)]
        self.coordinates.append(Coordinate(name, ends[0], ends[1], whole))
        return Linear({("coordinate", name): 1.0}, 0.0)

    def _add_free(self, name: str, whole: bool) -> None:
        own = self._coordinate(name, *limits(self.part.by_name[name], self.x[name]), whole)
        self.symbols["action", name] = self.symbols["change", name] = own

    def _add_told(self, name: str) -> None:
        """The change is the own action plus what is induced, stopped at a bound where the policy says so."""
        part, x = self.part, self.x
        feature, links = part.by_name[name], part.links[name]
        down, up = limits(feature, x[name])
        action = self._coordinate(name, down, up) if up > down else Linear({}, 0.0)
        change = action
        for link in links:
            source = self.symbols.get(("action", link.source), self.known.get(("action", link.source), 0.0))
            change = change + (source if isinstance(source, Linear) else Linear({}, source)) * float(link.targets[name])
        if np.isnan(x[name]):  # a missing value stays missing, and has no bounds to pass
            self.symbols["action", name] = self.symbols["change", name] = Linear({}, 0.0)
            return
        floor, ceiling = (float(bound) - x[name] for bound in feature.reach(x[name]))
        if links[0].on_exceed == "reject":
            self.links += [Row(change - ceiling, "<="), Row(floor - change, "<=")]
        elif links[0].on_exceed == "clip":
            self.stops[name] = (floor, ceiling)
        self.symbols["action", name], self.symbols["change", name] = action, change

    def _add_open(self, name: str, whole: bool) -> None:
        """The change itself is the coordinate: nobody reads the own action."""
        part, x = self.part, self.x
        self.symbols["change", name] = self._coordinate(name, *change_interval(part, name, x, self.core.action, self.real), whole)
        if not part.by_name[name].actionable:
            self.symbols["action", name] = Linear({}, 0.0)
        if any(link.source in self.real for link in part.links[name]):
            self.links.append(resolve(_open_rows(part, name, x), self.known, self.symbols))


def _is_told(part: Part, name: str) -> bool:
    return all(link.relation == "==" and link.on_exceed != "clip" for link in part.links[name])


def _open_rows(part: Part, name: str, x: Mapping[str, float]) -> Formula:
    """The interval of a linked target's change as rows, its own action anywhere within its moves."""
    feature, links = part.by_name[name], part.links[name]
    down, up = limits(feature, x[name])
    floor, ceiling = (float(b) - x[name] for b in feature.reach(x[name]))
    moved = Linear({("change", name): 1.0}, 0.0)
    options: list[Formula] = []
    spans = [(own, own) for own in np.arange(down, up + 1.0).tolist()] if has_gaps(part, name, x) else [(down, up)]
    for (down, up), *branches in product(spans, *(link.branches(name, x) for link in links)):
        low, high = Linear({}, down), Linear({}, up)
        guards: list[Formula] = []
        for guard, least, most in branches:
            guards += guard
            low, high = low + least, high + most
        between: Formula = All((Row(low - moved, "<="), Row(moved - high, "<=")))
        if links[0].on_exceed == "clip" and not np.isnan(x[name]):
            at_top = All((Row(moved - ceiling, "=="), Row(moved - high, "<=")))
            at_bottom = All((Row(moved - floor, "=="), Row(low - moved, "<=")))
            between = Some((between, at_top, at_bottom))
        options.append(All((*guards, between)))
    return options[0] if len(options) == 1 else Some(tuple(options))
