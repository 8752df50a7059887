"""A part as its open coordinates see it: what the configuration tells as columns, what is open as forms in coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints.links import target_rows
from budge.expressions import Formula, Linear, Row, Some, Var
from budge.reach.cells import Coordinate, resolve
from budge.reach.core import Core, change_interval, has_gaps, is_computed
from budge.reach.forms import ApartError

__all__ = ["View"]

FloatArray = npt.NDArray[np.float64]


@dataclass
class View:
    """Every variable as a known column or as a form in the coordinates."""

    core: Core
    real: Sequence[str]
    clauses: bool = False
    known: dict[Var, FloatArray | float] = field(default_factory=dict)
    symbols: dict[Var, Linear] = field(default_factory=dict)
    coordinates: list[Coordinate] = field(default_factory=list)
    links: list[Formula] = field(default_factory=list)  # what linkages demand of the coordinates
    stops: dict[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)  # computed targets that stop at a bound

    @classmethod
    def of(cls, core: Core, real: Sequence[str], wide: Sequence[str], clauses: bool = False) -> View:
        """Return the view of the configurations, with these real and wide whole features open.

        With `clauses`, linkages are conditions that all hold, not cases, and a target that stops at a bound is a coordinate.
        """
        view, part, starts = cls(core, real, clauses), core.starts.part, core.starts
        for name in part.order:
            if name in core.change:
                view._add_known(name)
            elif name not in part.links:
                own = view._coordinate(name, core.each(starts.down[name]), core.each(starts.up[name]), name in wide)
                view.symbols["action", name] = view.symbols["change", name] = own
            elif part.adds_up(name) or (not clauses and name in real and is_computed(starts, name)):
                view._add_told(name)
            else:
                view._add_open(name, name in wide)
            if name not in core.change:
                view.symbols["value", name] = view.symbols["change", name] + core.x[name]
        return view

    @property
    def x(self) -> Mapping[str, FloatArray]:
        """Where the person of each row stands."""
        return self.core.x

    def _add_known(self, name: str) -> None:
        core = self.core
        self.known["action", name], self.known["change", name] = core.action[name], core.change[name]
        self.known["value", name] = self.x[name] + core.change[name]
        if any(link.source in self.real for link in core.starts.part.links.get(name, ())):
            self.links.append(resolve(self._open_rows(name), self.known, self.symbols))

    def _coordinate(self, name: str, low: FloatArray, high: FloatArray, whole: bool = False) -> Linear:
        self.coordinates.append(Coordinate(name, np.array(low, dtype=float), np.array(high, dtype=float), whole))
        return Linear({("coordinate", name): 1.0}, 0.0)

    def _add_told(self, name: str) -> None:
        """The change is the own action plus what is induced, stopped at a bound where the policy says so."""
        core, starts = self.core, self.core.starts
        links = starts.part.links[name]
        if name in starts.gone:  # a missing value stays missing, and has no bounds to pass
            self.symbols["action", name] = self.symbols["change", name] = Linear({}, 0.0)
            return
        moves = name not in starts.still
        action = self._coordinate(name, core.each(starts.down[name]), core.each(starts.up[name])) if moves else Linear({}, 0.0)
        change = action
        for link in links:
            source = self.symbols.get(("action", link.source), self.known.get(("action", link.source), 0.0))
            change = change + (source if isinstance(source, Linear) else Linear({}, source)) * float(link.targets[name])
        floor, ceiling = (core.each(end) for end in starts.reach(starts.part.by_name[name]))
        if links[0].on_exceed == "reject":
            self.links += [Row(change - ceiling, "<="), Row(Linear({}, floor) - change, "<=")]
        elif links[0].on_exceed == "clip":
            self.stops[name] = (floor, ceiling)
        self.symbols["action", name], self.symbols["change", name] = action, change

    def _add_open(self, name: str, whole: bool) -> None:
        """The change itself is the coordinate: nobody reads the own action."""
        part = self.core.starts.part
        self.symbols["change", name] = self._coordinate(name, *change_interval(self.core, name, self.real), whole)
        if not part.by_name[name].actionable:
            self.symbols["action", name] = Linear({}, 0.0)
        if any(link.source in self.real for link in part.links[name]):
            self.links.append(resolve(self._open_rows(name), self.known, self.symbols))

    def _open_rows(self, name: str) -> Formula:
        """Return the interval of a linked target's change as rows, its own action anywhere within its moves."""
        core, starts, part = self.core, self.core.starts, self.core.starts.part
        spans: list[tuple[Any, Any]] = [(core.each(starts.down[name]), core.each(starts.up[name]))]
        if has_gaps(starts, name):
            if len(starts) > 1:
                raise ApartError
            spans = [(own, own) for own in np.arange(starts.down[name][0], starts.up[name][0] + 1.0).tolist()]
        links = sorted(part.links[name], key=lambda link: link.key)
        options = [target_rows(part.by_name[name], links, self.x, (Linear({}, low), Linear({}, high)), self.clauses) for low, high in spans]
        return options[0] if len(options) == 1 else Some(tuple(options))

    def reach_listed(self, name: str) -> None:
        """Let a coordinate be the change of its feature, which is listed, where it was the own action of a linked target."""
        forms = {("coordinate", c.name): Linear.of(("coordinate", c.name)) for c in self.coordinates}
        own = forms["coordinate", name]
        forms["coordinate", name] = own - (self.symbols["change", name] - own)
        self.symbols = {var: sum((forms[c] * slope for c, slope in form.terms.items()), start=Linear({}, form.const)) for var, form in self.symbols.items()}
        self.links = [resolve(link, {}, forms) for link in self.links]
