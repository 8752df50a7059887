"""The steps of an audit: people and models are read and checked, blocks are run, records are gathered."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import budge
from budge.audit.blocks import Block, Record, Work
from budge.audit.design import Design
from budge.audit.result import Audit, Context
from budge.audit.sources import DrawerSource, Source, TableSource
from budge.errors import IncompleteError, InputError, ModelError, Problem
from budge.frames import table
from budge.interaction import InteractionModel
from budge.models import Predictor, as_predictor, check_contract
from budge.reach.draw import invalid_error
from budge.reach.status import broken_people
from budge.reach.walks import walker

__all__ = ["data_digest", "make_source", "population_name", "predictors_of", "run_audit"]

MASK = "a mask: "  # a population that was given person by person, with its digest
BLOCK_ROWS = 100_000
Progress = Callable[[int, int], None]


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


def predictors_of(model: Any, source: Source) -> dict[str, Predictor]:
    """One model, or several by name, each turned into a predictor."""
    named = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not named:
        raise ModelError("no model is given", where="model", got={})
    return {str(name): _predictor(m, source) for name, m in named.items()}


def run_audit(
    source: Source, predictors: Mapping[str, Predictor], design: Design, X: Any, im: Any, *, population: Any = "all", harm: str | None = None,
    check: bool = True, n_jobs: int = 1, engine: Any = None, block_people: int | None = None, journal: str | Path | None = None,
    overwrite: bool = False, progress: Progress | None = None,
) -> Audit:  # fmt: skip
    """From people, models and a design to the result."""
    before, notes = _before(predictors, design, source, check)
    asked = {name: _population(population, source, before[name], design) for name in predictors}
    info = _info(source, predictors, design, im, harm, population)
    records = _records(
        source, predictors, design, before, asked, info, n_jobs=n_jobs, engine=engine, block_people=block_people, journal=journal,
        overwrite=overwrite, progress=progress,
    )  # fmt: skip
    result = Audit.of(records, before, source, design, info, Context(predictors, X, im, source, design.target), notes)
    _complete(result, design)
    return result


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
        identity = {k: info[k] for k in ("version", "walker", "design", "spec_digest", "data_digest", "model_digests", "population")}
        log = Journal.open(Path(journal), identity, overwrite=overwrite)
    try:
        if log is not None:
            records = {int(key): value for key, value in log.done().items()}
        left = [int(i) for i in todo if int(i) not in records]
        blocks = [_block(source, before, asked, left[at : at + people]) for at in range(0, len(left), people)]
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


def _block(source: Source, before: Mapping[str, Any], asked: Mapping[str, npt.NDArray[np.bool_]], people: Sequence[int]) -> Block:
    some = list(people)
    return Block(
        tuple(some),
        source.take(some),
        {name: values[some] for name, values in before.items()},
        {name: mask[some] for name, mask in asked.items()},
    )


def _info(
    source: Source, predictors: Mapping[str, Predictor], design: Design, im: Any, harm: str | None, population: Any
) -> dict[str, Any]:
    """What it takes to understand and repeat the run."""
    keys = source.keys()
    spec: Any = None
    digest = getattr(im, "digest", None)
    if isinstance(im, InteractionModel):
        try:
            spec = im.to_spec()
        except InputError:
            spec = None
    return {
        "version": budge.__version__,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pandas": pd.__version__,
        "walker": walker(),  # other draws from the same seed where a polytope has many dimensions
        "design": design.record(),
        "target": design.target.describe(),
        "population": population_name(population),
        "harm": harm,
        "name": getattr(im, "name", "") or type(im).__name__,
        "measure": getattr(im, "measure", None),
        "spec": spec,
        "spec_digest": digest if isinstance(digest, str) else None,
        "data_digest": data_digest(source),
        "people": len(source),
        "twins": len(keys) - len(set(keys)),
        "models": {name: p.describe() for name, p in predictors.items()},
        "model_digests": {name: p.digest() for name, p in predictors.items()},
    }


def population_name(population: Any) -> str:
    """What a record calls the chosen people: the words, or the digest of a mask."""
    if isinstance(population, str):
        return population
    return MASK + blake2b(np.asarray(population).tobytes(), digest_size=8).hexdigest()


def data_digest(source: Source) -> str:
    """A digest of the people: their content, labels and order."""
    keys = source.keys()
    found = blake2b(b"".join(k.to_bytes(16, "little") for k in keys), digest_size=16)
    if isinstance(source, TableSource):
        found.update(pd.util.hash_pandas_object(source.frame, index=True).to_numpy().tobytes())
    return found.hexdigest()


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
