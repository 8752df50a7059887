"""Which figure: the kinds that a result offers, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from budge.audit.result import Audit
from budge.errors import InputError, nearest
from budge.report.figures.cdf import cdf
from budge.report.figures.drawing import Figure
from budge.report.figures.person import person
from budge.report.figures.planning import how_much
from budge.report.figures.verdicts import verdicts
from budge.report.figures.words import clean

__all__ = ["audit_figure", "chosen"]


def chosen(kind: str, offered: Mapping[str, Callable[..., Figure]]) -> Callable[..., Figure]:
    """The function of a kind; an unknown one is an error that names the nearest."""
    if kind not in offered:
        raise InputError("no such figure", where="kind", got=kind, remedy=nearest(kind, offered))
    return offered[kind]


def audit_figure(audit: Audit, kind: str, *, by: Any, label: Any, model: str | None, most: int) -> Figure:
    """The figure of an audit; what a kind does not take is an error, not ignored."""
    draw = chosen(kind, {"cdf": cdf, "verdicts": verdicts, "person": person, "how_much": how_much})
    if by is not None and kind != "verdicts":
        raise InputError(f"the figure {kind!r} has no groups", where="by", got=by, remedy="use kind='verdicts'")
    if (label is None) == (kind in ("person", "how_much")):
        what, remedy = ("needs a person", "give the label of one") if label is None else ("is of everybody", "use kind='person'")
        raise InputError(f"the figure {kind!r} {what}", where="label", got=label, remedy=remedy)
    if kind == "cdf":
        if model is not None:
            raise InputError("the figure 'cdf' shows every model", where="model", got=model, remedy="leave it out")
        return draw(audit)
    if kind == "verdicts":
        return draw(audit, by, model=model)
    if kind == "how_much":
        return draw(audit.how_much(label, model=model), whom=f"Person {clean(label)}")
    return draw(audit, label, model=model, most=most)
