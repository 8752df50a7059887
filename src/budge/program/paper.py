"""The paper's sampler (Alg. 1), one program solved for each proposal: ``method="milp"``, an oracle and a baseline."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from budge.errors import DrawError, EmptyError
from budge.parts import Part
from budge.program.milp import PartProgram

__all__ = ["rejection_sample"]

FloatArray = npt.NDArray[np.float64]


def rejection_sample(
    part: Part,
    x: Mapping[str, float],
    n: int,
    rng: np.random.Generator,
    budget: int = 100_000,
    *,
    program: PartProgram | None = None,
) -> dict[str, FloatArray]:
    """Draw n changes as the paper does (Alg. 1): propose from the box, ask the solver, keep what is feasible.

    Parameters
    ----------
    part, x
        What is drawn, from where.
    n
        How many draws.
    rng
        Where randomness comes from.
    budget
        How many proposals at most; past it a `DrawError` tells the acceptance seen.
    program
        A program of this part at x, if there is one already.
    """
    program = PartProgram(part, x) if program is None else program
    kept: dict[str, FloatArray] = {name: np.zeros(n) for name in part.names}
    boxes = [(f.name, *program.box[f.name], f.discrete) for f in part.features]
    if any(low > high for _, low, high, _ in boxes):
        raise EmptyError("no action is feasible", where=f"part {', '.join(part.names)}")
    done = 0
    for tries in range(budget + 1):
        if done == n:
            return kept
        if tries == budget:
            break
        proposal = {
            name: low
            if low == high
            else float(rng.integers(int(low), int(high) + 1))
            if discrete
            else float(rng.uniform(low, high))
            for name, low, high, discrete in boxes
        }
        if program.feasible(proposal):
            for name, value in proposal.items():
                kept[name][done] = value
            done += 1
    raise DrawError(
        "the budget of proposals is spent",
        where=f"part {', '.join(part.names)}",
        got=f"{done} of {budget} accepted, {n} needed",
        remedy="raise the budget, or draw by construction (method auto)",
    )
