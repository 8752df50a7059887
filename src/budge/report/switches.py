"""What a reader can switch off inside a report, and from which draws each combination is answered.

The file carries draws of a few *banks*. A bank is the interaction model with some switches off, and of each of its points it is
known which of the *masks* (more switches that are off in it) the point breaks. With a set of switches off, responsiveness is the
share of hits among the points of a bank that break none of the masks that are on.

When is that right? A draw is a configuration, uniformly, and then a point of what the configuration leaves open. To keep those
draws that satisfy one more constraint gives the law of the model with that constraint if

- the constraint reads no continuous feature that can move: configurations drop out, what the others leave open stays as it was;
- or nothing else than continuous features can move in its part: there is one configuration, and a uniform draw from its fibre
  stays uniform where it is cut;
- or the measure is ``volume``, which is uniform over the whole set.

Anything else (a budget over whole and real features; a linkage, which changes how its targets move) gets banks of its own. So does
whatever keeps too few draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.constraints import Constraint, DirectionalLinkage, Switch
from budge.interaction import InteractionModel
from budge.parts import Part
from budge.stress import default_relaxations
from budge.stress.relaxations import Relaxation

__all__ = ["Bank", "Board", "Toggle", "breaks", "find_bank", "part_key"]

MOST_FORKS = 3  # constraints that are switched in every combination, with a bank for each
MOST_MASKS = 20  # bits of a mask
MOST_APART = 40  # switches with a bank of their own


@dataclass(frozen=True)
class Toggle:
    """One thing that can be switched off: a constraint, an immutability, a direction, step limits."""

    name: str
    kind: str
    says: str  # what holds while it is on
    relaxation: Relaxation
    scope: tuple[str, ...]
    how: str  # mask, fork or apart
    why: str = ""  # where it is not a mask: why it needs draws of its own
    within: int | None = None  # the switch without which this one says nothing


@dataclass(frozen=True)
class Bank:
    """Draws of the model with `off` and all `masks` switched off."""

    off: tuple[int, ...]
    masks: tuple[int, ...]


@dataclass(frozen=True)
class Board:
    """All switches of an interaction model, and the banks that answer for them."""

    im: InteractionModel
    toggles: tuple[Toggle, ...]
    left_out: tuple[str, ...] = ()
    _made: dict[frozenset[int], InteractionModel] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, im: InteractionModel, X: Any = None) -> Board:
        """From everything that an ablation would relax."""
        found, left_out = default_relaxations(im, X)
        gone = list(left_out)
        toggles: list[Toggle] = []
        forks = masks = apart = 0
        for r in found:
            constraint, scope, says, within = _about(im, r, toggles)
            why = _apart(im, r, constraint, scope)
            how = "mask" if not why else "apart"
            if how == "mask" and masks == MOST_MASKS:
                how, why = "apart", f"the file carries {MOST_MASKS} switches on the same draws, and this one is past them"
            if within is not None:
                how, why = "apart", "it is a part of another switch"
            if how == "apart" and r.kind == "constraint" and forks < MOST_FORKS:
                how = "fork"
            if how == "apart" and apart == MOST_APART:
                gone.append(f"{r.name}: the file carries {MOST_APART} switches with draws of their own, and this one is past them")
                continue
            forks, masks, apart = forks + (how == "fork"), masks + (how == "mask"), apart + (how == "apart")
            toggles.append(Toggle(r.name, r.kind, says, r, scope, how, why, within))
        return cls(im, tuple(toggles), tuple(gone))

    def which(self, how: str) -> tuple[int, ...]:
        """The switches of one sort, by number."""
        return tuple(i for i, t in enumerate(self.toggles) if t.how == how)

    @cached_property
    def banks(self) -> tuple[Bank, ...]:
        """Every combination of the forks, and each switch with draws of its own; the masks are off in all."""
        masks, forks = self.which("mask"), self.which("fork")
        chosen = [Bank(some, masks) for size in range(len(forks) + 1) for some in combinations(forks, size)]
        chosen += [Bank((t,), tuple(m for m in masks if m != self.toggles[t].within)) for t in self.which("apart")]
        return tuple(bank for bank in chosen if bank.off or bank.masks)

    def model(self, off: Iterable[int]) -> InteractionModel:
        """The interaction model with these switches off."""
        key = frozenset(off)
        if key not in self._made:
            made = self.im
            for i in sorted(key):
                made = self.toggles[i].relaxation.edit(made)
            self._made[key] = made
        return self._made[key]

    def moved(self, toggle: int, how: str, why: str) -> Board:
        """The same board with one switch handled another way."""
        changed = tuple(replace(t, how=how, why=why) if i == toggle else t for i, t in enumerate(self.toggles))
        return Board(self.im, changed, self.left_out, self._made)

    def checks(self, bank: Bank) -> tuple[InteractionModel, dict[int, tuple[Part, ...]]]:
        """The bank's model, and for each mask the parts that decide whether a point breaks it."""
        relaxed = self.model((*bank.off, *bank.masks))
        known = set(map(part_key, relaxed.parts))
        deciding = {}
        for t in bank.masks:
            stricter = self.model({*bank.off, *bank.masks} - {t})
            deciding[t] = tuple(part for part in stricter.parts if part_key(part) not in known)
        return relaxed, deciding


def breaks(parts: Iterable[Part], place: dict[str, int], row: npt.NDArray[np.float64], changes: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which changes from this start the parts do not allow, by the definition."""
    good = np.ones(len(changes), dtype=bool)
    for part in parts:
        x = {name: float(row[place[name]]) for name in part.names}
        moved = {name: changes[:, place[name]] for name in part.names}
        good &= np.broadcast_to(part.feasible(x, moved), good.shape)
    return ~good


def part_key(part: Part) -> str:
    """Two parts with one key decide alike."""
    links = {name: tuple(map(str, found)) for name, found in part.links.items()}
    return f"{part.features!r}{part.constraints!r}{links!r}"


def _about(im: InteractionModel, r: Relaxation, before: list[Toggle]) -> tuple[Constraint | None, tuple[str, ...], str, int | None]:
    """The constraint that the relaxation drops, the features that it is about, a sentence, and the switch that it is a part of."""
    relaxed = r.model(im)
    left, gone = list(relaxed.constraints), []
    for c in im.constraints:  # of twins one goes
        if c in left:
            left.remove(c)
        else:
            gone.append(c)
    changed = tuple(a.name for a, b in zip(im.features, relaxed.features) if a != b)
    if r.kind == "constraint" and gone:
        return gone[0], gone[0].scope, gone[0].describe(), None
    if gone:  # a freer one of the same kind took its place
        outer = next((i for i, t in enumerate(before) if t.kind == "constraint" and t.scope == gone[0].scope and t.relaxation.name.startswith("drop")), None)
        return gone[0], gone[0].scope, f"{', '.join(gone[0].scope)} only {getattr(gone[0], 'direction', None) or 'move'}.", outer
    names = ", ".join(changed)
    first = im.by_name[changed[0]]
    if r.kind == "immutability":
        says = f"{names} cannot be changed directly."
    elif r.kind == "direction":
        says = f"{names} can only {first.direction}."
    else:
        steps = [f"{way} by at most {_number(size)}" for way, size in (("increase", first.max_increase), ("decrease", first.max_decrease)) if size is not None]
        says = f"{names} can {' and '.join(steps)}."
    return None, changed, says, None


def _apart(im: InteractionModel, r: Relaxation, constraint: Constraint | None, scope: tuple[str, ...]) -> str:
    """Why the relaxation cannot be answered by keeping some draws; nothing where it can."""
    if isinstance(constraint, DirectionalLinkage):
        return "a linkage changes how its targets move"
    relaxed = r.model(im)
    if any(a.bounds != b.bounds for a, b in zip(im.features, relaxed.features)):
        return "without it the bounds come from the data"
    part = next(p for p in im.parts if scope[0] in p.names)
    vague = [n for n in part.names if part.split(n) in ("open", "guess")]
    read = set(scope) if constraint is None else {n for layer, n in constraint.reads if layer == "action"}
    if read & set(vague):
        return "the own action behind a change is not told by the change"
    if r.kind == "immutability" and any(n in part.links and any(link.relation != "==" or link.on_exceed == "clip" for link in part.links[n]) for n in scope):
        return "the own action behind a change is not told by the change"
    if r.kind == "immutability":
        return "what cannot be changed keeps too few of the draws in which it moves"
    touched = [n for n in scope if im.by_name[n].type == "real"]
    whole = [f.name for f in part.features if f.discrete]  # another switch may free it
    if not touched or im.measure == "volume":
        return ""
    if isinstance(constraint, Switch) or whole or getattr(constraint, "relation", None) == "==":
        return "it cuts what a configuration leaves open to continuous features, and that changes how configurations weigh"
    return ""


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"


def find_bank(board: Board, off: Iterable[int]) -> int | None:
    """The bank that answers where these switches are off; the page in the file decides in the same way."""
    asked = {t for t in off if board.toggles[t].within not in set(off) or board.toggles[t].within is None}
    for b, bank in enumerate(board.banks):
        if set(bank.off) <= asked and asked - set(bank.off) <= set(bank.masks):
            return b
    return None
