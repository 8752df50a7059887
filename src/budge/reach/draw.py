"""Draws and enumerations from the outside: one person, or a stream of people in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from budge.errors import DesignError, InvalidStartError, Problem, ReachError, TooLargeError
from budge.frames import one_row, table
from budge.reach.downstream import add_effects
from budge.reach.proposal import Proposal
from budge.reach.reacher import Block, Reacher, reacher
from budge.reach.results import PartDiagnostics, ReachableSample, ReachableSet, SampleBlock
from budge.reach.status import broken_at, broken_people
from budge.reach.streams import Stream, check_seed, keys_of

if TYPE_CHECKING:
    from budge.interaction import InteractionModel

__all__ = ["enumerate_points", "sample_blocks", "sample_points", "set_size"]

FloatArray = npt.NDArray[np.float64]
OnInvalid = Literal["error", "skip", "keep"]
AT_ONCE = 1024


def set_size(model: InteractionModel, x: Any) -> int | None:
    """How many points are reachable from x; None where they cannot be listed (continuous features, effects)."""
    maker = reacher(model)
    return maker.block(model.coding.encode(one_row(x, maker.names))).size(0)


def enumerate_points(model: InteractionModel, x: Any, *, limit: int = 1_000_000, on_invalid: OnInvalid = "error") -> ReachableSet:
    """Every reachable point of one person, once."""
    maker = reacher(model)
    frame, row, problems = _start(model, x, on_invalid)
    if problems and on_invalid == "skip":
        return ReachableSet(model, np.zeros((0, len(row))), frame, "invalid_start", (), problems)
    if model.effects:
        raise ReachError("stochastic effects cannot be enumerated", got=[e.feature for e in model.effects], remedy="draw a sample instead")
    block = _not_empty(maker, row)
    if block.endless[0]:
        endless = [f.name for f, j in zip(maker.free, maker.free_columns) if np.ptp(f.moves(row[j])) > 0]
        endless += [f.name for part in maker.parts if maker.alone(part, row).endless for f in part.features if f.type == "real"]
        raise ReachError("continuous features cannot be enumerated", got=endless, remedy="draw a sample instead")
    size, how = block.size(0), block.diagnostics(0)
    if size is None:
        unknown = next(part for part in how if part.configurations is None)
        raise TooLargeError(
            f"a part has too many configurations to list{unknown.note and ': '}{unknown.note}",
            where=f"part {', '.join(unknown.names)}",
            got=f"limit {limit:,}",
            remedy="draw a sample instead",
        )
    if size > limit:
        parts = " × ".join(f"{p.configurations:,}" for p in how if (p.configurations or 1) > 1)
        raise TooLargeError(f"{size:,} points are reachable ({parts})", got=f"limit {limit:,}", remedy="raise the limit, or draw a sample")
    moved, _, weights = block.listed(np.zeros(1, dtype=np.intp))
    points = np.tile(row, (size, 1))
    points[:, maker.moved] = moved.T
    return ReachableSet(model, points, frame, block.status[0], how, problems, weights)


def sample_points(
    model: InteractionModel, x: Any, n: int, *, seed: int = 0, purpose: str = "draw", method: str = "auto", proposal: Any = None,
    on_invalid: OnInvalid = "error",
) -> ReachableSample:  # fmt: skip
    """n independent draws for one person."""
    n, seed = _check_n(n), check_seed(seed)
    maker = reacher(model)
    frame, row, problems = _start(model, x, on_invalid)
    if problems and on_invalid == "skip":
        return ReachableSample(model, np.zeros((0, len(row))), frame, "invalid_start", (), problems, seed=seed, measure=model.measure)
    stream, out, weights = Stream(keys_of(maker.names, row[None, :], seed, purpose)), np.tile(row, (n, 1)), np.ones(n)
    if method == "milp":
        moved, effects, how = _by_milp(maker, row, stream, n)
        out[:, maker.moved] = moved.T
        return ReachableSample(model, out, frame, "ok", how, problems, seed=seed, measure="volume", weights=weights, effects=effects)
    if method != "auto":
        raise DesignError("unknown method", where="method", got=method, remedy="use auto or milp")
    block, weigh = _not_empty(maker, row), None
    if proposal is not None:
        block, weigh = Proposal.of(model, proposal).applied(block)
    moved, effects = block.draw(stream, 0, n)
    out[:, maker.moved] = moved.T
    if weigh is not None:
        weights = weigh(out, effects)
    return ReachableSample(
        model, out, frame, block.status[0], block.diagnostics(0), problems, seed=seed, measure=model.measure, weights=weights, effects=effects
    )


def _start(model: InteractionModel, x: Any, on_invalid: OnInvalid) -> tuple[Any, FloatArray, tuple[Problem, ...]]:
    """Return one person's row as a table and as numbers, and what it breaks before any move."""
    _check_policy(on_invalid)
    frame = one_row(x, [f.name for f in model.features])
    row = model.coding.encode(frame)[0]
    problems = broken_at(model, dict(zip((f.name for f in model.features), row.tolist())))
    if problems and on_invalid == "error":
        raise InvalidStartError(problems)
    return frame, row, problems


def _not_empty(maker: Reacher, row: FloatArray) -> Block:
    """Prepare one person, or raise the error where nothing is feasible."""
    block = maker.block(row[None, :])
    if block.empty[0]:
        raise maker.empty_error(row)
    return block


def _by_milp(maker: Reacher, row: FloatArray, stream: Stream, n: int) -> tuple[FloatArray, dict[str, FloatArray], tuple[PartDiagnostics, ...]]:
    """The paper's Algorithm 1: propose from the box, ask the solver. Kept as an oracle and a baseline."""
    from budge.program.paper import rejection_sample

    rng = np.random.Generator(np.random.Philox(key=stream.keys[0]))
    moved = np.repeat(row[maker.moved, None], n, axis=1)
    parts = [part for part in maker.model.parts if any(f.actionable for f in part.features)]
    for part in parts:
        drawn = rejection_sample(part, {name: row[maker.position[name]] for name in part.names}, n, rng)
        for name, change in drawn.items():
            if maker.spot[maker.position[name]] >= 0:
                moved[maker.spot[maker.position[name]]] += change
    maker.settle(moved, row[None, :], n)
    effects = add_effects(Block(maker, row[None, :], ()), moved, stream, 0, n)
    return moved, effects, tuple(PartDiagnostics(part.names, "milp", None) for part in parts)


def sample_blocks(
    model: InteractionModel, X: Any, n: int, *, seed: int = 0, purpose: str = "draw", block_rows: int = 65_536, on_invalid: OnInvalid = "error"
) -> Iterator[SampleBlock]:
    """The draws of many people, block by block; a person's draws are the same whatever the block."""
    n, seed = _check_n(n), check_seed(seed)
    _check_policy(on_invalid)
    if isinstance(block_rows, bool) or not isinstance(block_rows, int) or block_rows < 1:
        raise DesignError("must be a whole number, 1 or more", where="block_rows", got=block_rows)
    frame = table(X)
    values = model.coding.encode(frame)
    maker = reacher(model)
    invalid = np.zeros(len(frame), dtype=bool)
    if on_invalid != "keep":
        broken = broken_people(model, values)
        for _, who in broken:
            invalid |= who
        if invalid.any() and on_invalid == "error":
            raise invalid_error(broken, frame)
    return _stream(maker, frame, values, invalid, n, seed, purpose, max(1, block_rows // n))


def invalid_error(broken: list[tuple[str, npt.NDArray[np.bool_]]], frame: Any) -> InvalidStartError:
    """Who breaks what, one problem for each constraint."""
    return InvalidStartError(
        [
            Problem(
                f"row {frame.index[int(np.flatnonzero(who)[0])]}",
                f"breaks {label} before any move" + (f" (and {int(who.sum()) - 1} more rows)" if who.sum() > 1 else ""),
                remedy="mend the spec or the rows, or set on_invalid to skip or keep",
            )
            for label, who in broken
        ]
    )


def _stream(
    maker: Reacher, frame: Any, values: FloatArray, invalid: npt.NDArray[np.bool_], n: int, seed: int, purpose: str, people: int
) -> Iterator[SampleBlock]:
    together = people * max(1, AT_ONCE // people)  # people who are prepared together; so many are drawn at a time
    for begin in range(0, len(values), together):
        valid = begin + np.flatnonzero(~invalid[begin : begin + together])
        ready = maker.block(values[valid])
        for start in range(begin, min(begin + together, len(values)), people):
            rows = values[start : start + people]
            here = np.flatnonzero((valid >= start) & (valid < start + people))
            block, places = ready.take(here), valid[here] - start
            status = np.full(len(rows), "invalid_start", dtype=object)
            status[places] = block.status
            able = np.flatnonzero(~block.empty)
            drawn = places[able]
            moved, _ = block.take(able).draw(Stream(keys_of(maker.names, rows[drawn], seed, purpose)), 0, n)
            yield SampleBlock(maker.model, frame.iloc[start : start + people], drawn + start, drawn, tuple(status), n, rows[drawn], moved)


def _check_policy(on_invalid: object) -> None:
    if on_invalid not in ("error", "skip", "keep"):
        raise DesignError("must be error, skip or keep", where="on_invalid", got=on_invalid)


def _check_n(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise DesignError("the number of draws is a whole number, 1 or more", where="n", got=n)
    return int(n)
