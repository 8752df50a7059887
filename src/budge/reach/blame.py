"""Who is to blame where nothing is feasible: a minimal set of constraints that clash."""

from __future__ import annotations

from collections.abc import Mapping

from budge.constraints import Constraint
from budge.errors import DrawError, SolverError
from budge.parts import Part
from budge.reach.forms import forms_of
from budge.reach.prepare import prepare

__all__ = ["blame"]


def blame(part: Part, x: Mapping[str, float]) -> tuple[str, ...]:
    """Constraints (and limits of features) that clash at x, none of which can be left out.

    The solver tells where all is linear; elsewhere it would have to search, and the part is listed again without one
    constraint after the other.
    """
    from budge.program.clash import clash

    if all(forms_of(part).formula(c, x) is not None for c in part.constraints):
        try:
            found = clash(part, x)
        except SolverError:
            found = ()
        if found:
            return found
    return _by_listing(part, x)


def _by_listing(part: Part, x: Mapping[str, float]) -> tuple[str, ...]:
    kept: list[Constraint] = [*part.linkages, *part.constraints]
    for constraint in tuple(kept):
        fewer = [c for c in kept if c is not constraint]
        if _empty(part, fewer, x):
            kept = fewer
    return tuple(c.label for c in kept)


def _empty(part: Part, kept: list[Constraint], x: Mapping[str, float]) -> bool:
    ids = {id(c) for c in kept}
    links = {name: tuple(link for link in linked if id(link) in ids) for name, linked in part.links.items()}
    rest = Part(part.features, tuple(c for c in part.constraints if id(c) in ids), {n: found for n, found in links.items() if found})
    try:
        return bool(prepare(rest, x)[0][1].empty[0])
    except DrawError:
        return False  # not proved
