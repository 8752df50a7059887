"""The main job: models, people, an interaction model and a target go in; a table of verdicts with guarantees comes out."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

import budge
from budge.audit.blocks import Block, Record, Work
from budge.audit.design import EXACT_LIMIT, Design, make_design
from budge.audit.result import Audit, Context
from budge.audit.sources import DrawerSource, Source, TableSource
from budge.errors import IncompleteError, InputError, ModelError, Problem
from budge.frames import table
from budge.interaction import InteractionModel
from budge.models import Predictor, as_predictor, check_contract
from budge.reach.draw import invalid_error
from budge.reach.status import broken_people

__all__ = ["audit", "make_source"]

BLOCK_ROWS = 100_000
Progress = Callable[[int, int], None]


def audit(
    model: Any,
    X: Any,
    im: Any,
    *,
    target: Any,
    threshold: float = 0.1,
    alpha: float = 0.05,
    claim: Literal["below", "above"] = "below",
    n: int | None = None,
    width: float | None = None,
    margin: float | None = None,
    power: float = 0.95,
    seed: int = 0,
    population: Any = "all",
    method: Literal["auto", "exact", "sample"] = "auto",
    exact_limit: int = EXACT_LIMIT,
    sequential: bool = False,
    proposal: Mapping[str, Any] | None = None,
    adjust: Literal["bh", "holm", "bonferroni", "none"] = "bh",
    how_much: bool = False,
    harm: Literal["below", "above"] | None = None,
    on_invalid: Literal["error", "skip", "keep"] = "error",
    max_unresolved: float = 1.0,
    check: bool = True,
    n_jobs: int = 1,
    engine: Any = None,
    block_people: int | None = None,
    journal: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    purpose: str = "draw",
    testing: bool = True,
) -> Audit:
    """Audit how predictions respond: for every person, how often an interaction attains the target.

    Parameters
    ----------
    model
        Anything that predicts (see `budge.models.as_predictor`), or a mapping of names to such: then each person's points
        are drawn once and every model is asked.
    X
        The people: a table; or inputs of any kind where `im` only draws.
    im
        An `InteractionModel`, or anything with ``draw(x, n, rng)``.
    target
        A label, labels, or a target of `budge.targets`.
    threshold, alpha, claim
        The claim "ρ is below (above) the threshold" is made with error at most alpha for a person.
    n, width, margin, power
        At most one of the first three; the default is the n that finds, with the power, those who are below the threshold by
        half of it.
    population
        ``all``, ``outside`` (only those not yet in the target), a query over the table's columns, or a mask.
    method, exact_limit
        ``auto``: computed exactly where no effect acts and at most `exact_limit` points are reachable, drawn otherwise.
    sequential
        Stop for each person as soon as the verdict is certain (SPRT at the same alpha and power).
    proposal
        Distributions to draw from instead of uniformly; results are weighted.
    adjust
        How `p_adjusted` accounts for the number of people.
    how_much
        Also keep the quantiles of the change of a numeric output.
    harm
        Which verdict is harm; the library does not guess.
    on_invalid
        What to do with people who break the interaction model before they move.
    max_unresolved
        The largest share of unanswered draws that is accepted.
    check
        Ask a few rows again first: is the model random, does it change its input, does it depend on the batch?
    n_jobs, engine, block_people
        Where the work is done; the result is the same to the bit.
    journal, overwrite
        A folder in which finished people are kept as the work goes on; the same call resumes.
    progress
        Called with (people done, people in all).
    purpose
        Names the stream of draws: another purpose, other draws from the same seed.
    testing
        False: no claim is wanted, so that an n too small to reject anything is accepted.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9)), budge.Feature("age", "integer", actionable=False)])
    >>> X = pd.DataFrame({"income": [1, 2], "age": [20, 70]})
    >>> result = budge.audit(lambda t: (t["income"] > 4) & (t["age"] < 60), X, im, target=True, threshold=0.1)
    >>> result.table[["rho", "verdict"]].values.tolist()
    [[0.5, 'above'], [0.0, 'below']]
    """
    source = make_source(im, X, on_invalid)
    named = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not named:
        raise ModelError("no model is given", where="model", got={})
    predictors = {str(name): _predictor(m, source) for name, m in named.items()}
    classes = next((p.classes for p in predictors.values() if p.classes is not None and p.output == "label"), None)
    design = make_design(
        target, classes=classes, threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin, power=power, seed=seed,
        purpose=purpose, method=method, exact_limit=exact_limit, adjust=adjust, on_invalid=on_invalid, sequential=sequential,
        proposal=proposal, how_much=how_much, max_unresolved=max_unresolved, testing=testing,
    )  # fmt: skip
    before, notes = _before(predictors, design, source, check)
    asked = {name: _population(population, source, before[name], design) for name in predictors}
    info = _info(source, predictors, design, im, harm, population)
    records = _records(
        source, predictors, design, before, asked, info, n_jobs=n_jobs, engine=engine, block_people=block_people, journal=journal,
        overwrite=overwrite, progress=progress,
    )  # fmt: skip
    result = Audit.of(records, before, source, design, info, Context(predictors, X, im, source), notes)
    _complete(result, design)
    return result


def make_source(im: Any, X: Any, on_invalid: str) -> Source:
    """The people and what they can reach, read and checked."""
    if not isinstance(im, InteractionModel):
        if not callable(getattr(im, "draw", None)):
            raise InputError("is neither an interaction model nor has it draw(x, n, rng)", where="im", got=type(im).__name__)
        return DrawerSource.of(im, X)
    frame = table(X)
    values = im.coding.encode(frame)
    invalid = np.zeros(len(frame), dtype=bool)
    if on_invalid != "keep":
        broken = broken_people(im, values)
        for _, who in broken:
            invalid |= who
        if invalid.any() and on_invalid == "error":
            raise invalid_error(broken, frame)
    return TableSource(im, frame, values, invalid)


def _predictor(model: Any, source: Source) -> Predictor:
    if isinstance(source, DrawerSource) and not isinstance(model, Predictor):
        from budge.audit.raw import RawPredictor

        return RawPredictor.of(model)
    return as_predictor(model)


def _before(
    predictors: Mapping[str, Predictor], design: Design, source: Source, check: bool
) -> tuple[dict[str, npt.NDArray[Any]], tuple[Problem, ...]]:
    """What every model says of the people as they are; problems of models are raised together."""
    found: list[Problem] = []
    before: dict[str, npt.NDArray[Any]] = {}
    starts = source.starts()
    for name, predictor in predictors.items():
        try:
            problems: list[Problem] = []
            if isinstance(source, TableSource):
                problems += design.target.check(predictor)
            if check and isinstance(source, TableSource):
                problems += check_contract(predictor, starts, seed=design.seed)
            found += [
                Problem(f"{name}: {p.where}" if len(predictors) > 1 else p.where, p.what, p.got, p.remedy, p.severity)
                for p in problems
            ]
            if not any(p.severity == "error" for p in problems):
                before[name] = np.asarray(predictor.predict(starts))
        except ModelError as error:
            found += error.problems
    ModelError.raise_if(found)
    return before, tuple(p for p in found if p.severity == "warning")


def _population(population: Any, source: Source, before: npt.NDArray[Any], design: Design) -> npt.NDArray[np.bool_]:
    if isinstance(population, str):
        if population == "all":
            return np.ones(len(source), dtype=bool)
        if population == "outside":
            return np.asarray(~design.target.hits(before, before), dtype=bool)
        if not isinstance(source, TableSource):
            raise InputError("a query needs a table", where="population", got=population)
        try:
            mask = source.frame.eval(population, engine="python")
        except Exception as error:
            raise InputError(
                f"the query fails: {error}",
                where="population",
                got=population,
                remedy="write e.g. 'age < 30', or all, or outside",
            ) from None
    else:
        mask = population
    chosen = np.asarray(mask)
    if chosen.shape != (len(source),) or chosen.dtype != bool:
        raise InputError(
            f"must choose among {len(source)} people by true and false",
            where="population",
            got=f"{chosen.dtype} of shape {chosen.shape}",
        )
    return chosen


def _records(
    source: Source, predictors: Mapping[str, Predictor], design: Design, before: Mapping[str, Any],
    asked: Mapping[str, npt.NDArray[np.bool_]], info: Mapping[str, Any], *, n_jobs: int, engine: Any, block_people: int | None,
    journal: str | Path | None, overwrite: bool, progress: Progress | None,
) -> dict[int, dict[str, Record]]:  # fmt: skip
    """Everybody's records: from the journal where they are kept, from the blocks otherwise."""
    from budge.audit.engines import run_blocks
    from budge.audit.journal import Journal

    people = block_people or max(1, BLOCK_ROWS // design.n)
    todo = np.flatnonzero(np.any(list(asked.values()), axis=0))
    records: dict[int, dict[str, Record]] = {}
    log = None
    if journal is not None:
        identity = {k: info[k] for k in ("version", "design", "spec_digest", "data_digest", "model_digests", "population")}
        log = Journal.open(Path(journal), identity, overwrite=overwrite)
    try:
        if log is not None:
            records = {int(key): value for key, value in log.done().items()}
        left = [int(i) for i in todo if int(i) not in records]
        blocks = [_block(source, before, asked, run) for run in _runs(left, people)]
        done = len(records)
        if progress is not None:
            progress(done, len(todo))
        for _, found in run_blocks(Work(dict(predictors), design), blocks, n_jobs=n_jobs, engine=engine):
            if log is not None:
                log.write({str(i): record for i, record in found.items()})
            records |= found
            done += len(found)
            if progress is not None:
                progress(done, len(todo))
        if log is not None:
            log.finish()
    finally:
        if log is not None:
            log.close()
    return records


def _runs(people: Sequence[int], most: int) -> list[tuple[int, int]]:
    """Neighbours in the table, at most so many at once, as (first, past the last)."""
    runs: list[tuple[int, int]] = []
    for i in people:
        if runs and runs[-1][1] == i and i - runs[-1][0] < most:
            runs[-1] = (runs[-1][0], i + 1)
        else:
            runs.append((i, i + 1))
    return runs


def _block(source: Source, before: Mapping[str, Any], asked: Mapping[str, npt.NDArray[np.bool_]], run: tuple[int, int]) -> Block:
    first, past = run
    return Block(
        first,
        source.slice(first, past),
        {name: values[first:past] for name, values in before.items()},
        {name: mask[first:past] for name, mask in asked.items()},
    )


def _info(
    source: Source, predictors: Mapping[str, Predictor], design: Design, im: Any, harm: str | None, population: Any
) -> dict[str, Any]:
    """What it takes to understand and repeat the run."""
    keys = source.keys()
    data = blake2b(b"".join(k.to_bytes(16, "little") for k in keys), digest_size=16)
    if isinstance(source, TableSource):
        data.update(pd.util.hash_pandas_object(source.frame, index=True).to_numpy().tobytes())
    spec: Any = None
    digest = getattr(im, "digest", None)
    if isinstance(im, InteractionModel):
        try:
            spec = im.to_spec()
        except InputError:
            spec = None
    chosen = population if isinstance(population, str) else blake2b(np.asarray(population).tobytes(), digest_size=8).hexdigest()
    return {
        "version": budge.__version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "design": design.record(),
        "target": design.target.describe(),
        "population": chosen,
        "harm": harm,
        "name": getattr(im, "name", "") or type(im).__name__,
        "measure": getattr(im, "measure", None),
        "spec": spec,
        "spec_digest": digest if isinstance(digest, str) else None,
        "data_digest": data.hexdigest(),
        "people": len(source),
        "twins": len(keys) - len(set(keys)),
        "models": {name: p.describe() for name, p in predictors.items()},
        "model_digests": {name: p.digest() for name, p in predictors.items()},
    }


def _complete(result: Audit, design: Design) -> None:
    """More unanswered draws than accepted end the audit as incomplete, with the result attached."""
    drawn, lost = int(result.table["n"].sum()), int(result.table["unresolved"].sum())
    if drawn and lost / drawn > design.max_unresolved:
        error = IncompleteError(
            f"{lost:,} of {drawn:,} draws have no answer",
            where="max_unresolved",
            got=design.max_unresolved,
            remedy="see result.table['unresolved']; mend the model or accept more",
        )
        error.result = result  # type: ignore[attr-defined]
        raise error
