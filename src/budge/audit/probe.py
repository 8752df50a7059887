"""Answers about a few reachable points, which tell a model, a target or interactions that are code, and so have no digest, from other code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from budge.audit.ask import Answers
from budge.audit.sources import choose
from budge.errors import Problem
from budge.journal import Journal
from budge.progress import Portion
from budge.stored import check_shape, reading

if TYPE_CHECKING:
    from budge.audit.run import Prepared

__all__ = ["PROBE", "another_run", "differing_counts", "differing_probe", "probe_of", "same_probe"]

PROBE = "probe"  # its key in a journal
PEOPLE, POINTS = 8, 16  # who are asked about, and points of each


def another_run(what: str) -> Problem:
    """Return the problem of a journal that belongs to another run."""
    return Problem("journal", f"this is another run: {what}", remedy="choose another folder, or overwrite it")


def differing_probe(log: Journal, known: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> Problem | None:
    """Return a problem where the probe that a journal holds, if it holds one, is another one."""
    if known is None:
        return None
    with reading(log.path, "the journal of the run is damaged"):
        check_shape(known, {"points": str, "hits": {str: [int]}})
    return None if same_probe(known, now) else another_run("the model, the target or the interactions are code that behaves otherwise now")


def differing_counts(other: str | None) -> Problem | None:
    """Return a problem where somebody was found whose counts are others when they are counted again."""
    what = "the model, the target or the interactions are code that answers otherwise about points of people who are finished"
    return None if other is None else replace(another_run(what), got=other)


def probe_of(made: Prepared, info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what is answered about a few reachable points; None where everything has a digest."""
    code = [*info["model_digests"].values(), info["spec"], None if "function" in info["design"]["target"] else ""]
    if None not in code or not len(made.todo):
        return None
    places = made.todo[np.unique(np.linspace(0, len(made.todo) - 1, PEOPLE).astype(np.intp))]
    some = made.source.take(places)
    some.portion = Portion(some.portion.most, steady=True)  # the digest depends on the borders of chunks
    listed, drawn, _ = choose(some, made.design)
    large = listed & (some.size > made.design.exact_limit)  # counted from a model's structure, perhaps, and too many to list
    listed, drawn = listed & ~large, drawn | large
    digest, seen = blake2b(digest_size=8), dict[str, list[int]]()
    for chunk in (*some.exact(np.flatnonzero(listed)), *some.draws(np.flatnonzero(drawn), POINTS, made.design)):
        few = np.flatnonzero(np.arange(len(chunk.owner)) - chunk.starts[chunk.owner] < POINTS)
        who = chunk.people[chunk.owner[few]]
        points = some.points(who, chunk, few)
        digest.update(repr(points).encode() if chunk.moved is None else np.ascontiguousarray(chunk.moved[:, few]).tobytes())
        for name, ask in made.askers.items():
            try:
                found = ask(points, made.before[name][places][who])
            except MemoryError:
                found = Answers.none(len(few))
            seen.setdefault(name, []).extend(np.where(found.good, found.hit, -1).astype(int).tolist())  # -1: no answer, now or then
    return {"points": digest.hexdigest(), "hits": seen}


def same_probe(known: Mapping[str, Any] | None, now: Mapping[str, Any] | None) -> bool:
    """Return whether two probes agree, as far as both have answers."""
    if known is None or now is None:
        return known == now
    pairs = [(known["hits"].get(name, ()), hits) for name, hits in now["hits"].items()]
    agree = all(len(one) == len(two) and all(a == b or -1 in (a, b) for a, b in zip(one, two)) for one, two in pairs)
    return bool(known["points"] == now["points"] and agree)
