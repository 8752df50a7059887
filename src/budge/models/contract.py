"""What a model must keep to, so that an audit of it means something; found by asking a few rows again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from budge.errors import BudgeError, IncompleteError, ModelError, Problem
from budge.models.predictor import Predictor
from budge.models.reading import list_classes, same_label, show_label
from budge.models.rows import Array, Rows, count

__all__ = ["check_contract", "differ"]

#: Scores of one row that differ by less than this, relatively, are one score: sums in another order, not another answer.
TOLERANCE = {2: 1e-2, 4: 1e-5, 8: 1e-9}
#: Rows asked one by one: one of each of two answers, and another.
ALONE = 3


def check_contract(predictor: Predictor, frame: Rows, *, seed: int = 0, rows: int = 32) -> list[Problem]:
    """Ask a few rows again and say what is wrong.

    Parameters
    ----------
    predictor
        The model.
    frame
        Rows to choose from.
    seed
        Which rows are chosen.
    rows
        How many.

    Returns
    -------
    list of Problem
        ``error``: an audit would be wrong. ``warning``: some rows get no answer, and will be unresolved.

    Examples
    --------
    >>> from budge.models import as_predictor
    >>> table = pd.DataFrame({"income": [500, 3000, 2000]})
    >>> for problem in check_contract(as_predictor(lambda t: t["income"] / 4000), table):
    ...     print(problem)
    <lambda>: probabilities where labels are expected (got [0.125, 0.75, 0.5]); give threshold=0.5, or output='probability'
    """
    few = _choose(frame, seed, rows)
    fresh: Callable[[], Predictor] | None = getattr(predictor, "fresh", None)
    asked = predictor if fresh is None else fresh()
    given = few.copy()
    try:
        first = asked.predict(given)
    except IncompleteError:
        raise
    except BudgeError as error:
        return _unanswered(asked, few, error)
    changed = _changed(few, given)
    problems = [] if changed is None else [changed]
    problems += _shape(asked, first, count(few))
    if problems:
        return problems
    problems = _labels(asked, first) if asked.output == "label" else _scores(asked, first)
    problems += _repeat(asked, few, first)
    return problems


def _choose(frame: Rows, seed: int, rows: int) -> Rows:
    n = count(frame)
    rng = np.random.default_rng(np.random.SeedSequence([seed, 0xC0117AC7]))
    chosen = np.sort(rng.choice(n, size=min(rows, n), replace=False))
    return frame.iloc[chosen].copy() if isinstance(frame, pd.DataFrame) else frame[chosen].copy()


def _unanswered(predictor: Predictor, few: Rows, error: BudgeError) -> list[Problem]:
    """All rows fail: an error. Some do: a warning, for they will be unresolved."""
    try:
        _, resolved = predictor.predict_resolved(few.copy(), max_calls=4 * count(few))
    except ModelError as whole:
        return list(whole.problems)
    if not resolved.any() or resolved.all():
        return list(error.problems)
    what = f"{int((~resolved).sum())} of {count(few)} rows get no answer, and will be unresolved: {error.problems[0].what}"
    return [Problem(predictor.name, what, severity="warning")]


def _changed(before: Rows, after: Rows) -> Problem | None:
    if isinstance(before, pd.DataFrame) and isinstance(after, pd.DataFrame):
        names = [] if list(before.columns) != list(after.columns) else [str(c) for c in before if not before[c].equals(after[c])]
        same = list(before.columns) == list(after.columns) and not names and before.index.equals(after.index)
    else:
        names, same = [], bool(np.array_equal(before, after, equal_nan=before.dtype.kind == "f"))
    if same:
        return None
    what, remedy = "predicting changes the table that it is given", "copy the table inside the model"
    return Problem("model", what, got=names or "columns or rows", remedy=remedy)


def _shape(predictor: Predictor, outputs: Array, n: int) -> list[Problem]:
    """For predictors of other people's making; ours have checked."""
    if not isinstance(outputs, np.ndarray) or outputs.shape != (n,):
        got = getattr(outputs, "shape", type(outputs).__name__)
        return [Problem(predictor.name, f"one output a row is expected, an array of shape ({n},)", got=got)]
    if pd.isna(outputs).any():
        what = f"{int(pd.isna(outputs).sum())} of {n} outputs are None or NaN"
        return [Problem(predictor.name, what, remedy="say so through predict_resolved()")]
    return []


def _labels(predictor: Predictor, outputs: Array) -> list[Problem]:
    classes = predictor.classes
    fractions = outputs.dtype.kind == "f" and bool((outputs != np.floor(outputs)).any())
    if fractions and not any(isinstance(c, float) and c % 1 for c in classes or ()):
        if outputs.min() >= 0 and outputs.max() <= 1:
            what, remedy = "probabilities where labels are expected", "give threshold=0.5, or output='probability'"
        else:
            what, remedy = "scores where labels are expected", "give output='score', or a threshold=..."
        return [Problem(predictor.name, what, got=[float(v) for v in outputs[:3]], remedy=remedy)]
    if classes is None:
        return []
    unknown = [value for value in outputs.tolist() if not any(same_label(value, known) for known in classes)]
    if not unknown:
        return []
    what = f"the model answers {show_label(unknown[0])}, which is none of its classes"
    return [Problem(predictor.name, what, remedy=f"its classes are {list_classes(classes)}")]


def _scores(predictor: Predictor, outputs: Array) -> list[Problem]:
    if outputs.dtype.kind not in "biuf":
        return [
            Problem(predictor.name, "scores must be numbers", got=outputs[:3].tolist(), remedy="use output='label' for labels")
        ]
    if predictor.bounds and (outputs.min() < predictor.bounds[0] - 1e-6 or outputs.max() > predictor.bounds[1] + 1e-6):
        got = (float(outputs.min()), float(outputs.max()))
        return [Problem(predictor.name, f"scores leave {predictor.bounds}", got=got, remedy="use output='score'")]
    return []


def _repeat(predictor: Predictor, few: Rows, first: Array) -> list[Problem]:
    """The same rows again, in another order, alone, under other labels: an answer depends on its row and on nothing else."""
    n = count(few)
    try:
        backwards = predictor.predict(_taken(few, np.arange(n)[::-1]))[::-1]
        others = int(differ(first, predictor.predict(few.copy())).sum()) if differ(first, backwards).any() else 0
        if others:
            what = f"the model is random: asked twice, {others} of {n} rows got another answer"
            return [Problem(predictor.name, what, remedy="fix its seed, or make the noise an effect of the interaction model")]
        places = _places(first)
        alone = [predictor.predict(_taken(few, [i])) for i in places]
        moved = int(differ(first, backwards).sum())
        lonely = sum(int(differ(first[[i]], answer).sum()) for i, answer in zip(places, alone))
        if not moved and not lonely:
            return []
        named = int(differ(first, predictor.predict(few.set_axis(range(1, n + 1)))).sum()) if isinstance(few, pd.DataFrame) else 0
    except BudgeError as error:
        return [Problem(predictor.name, f"the same rows, asked again or in another batch, fail: {error}")]
    if named:
        what = f"an answer depends on the index of the table: {named} of {n} rows differ under other labels"
        return [Problem(predictor.name, what, remedy="predict from the columns alone; reachable points are numbered from 0")]
    what = f"{lonely} of {len(places)} rows differ when asked alone, {moved} of {n} in another order"
    what = f"an answer depends on the other rows of its batch: {what}"
    return [Problem(predictor.name, what, remedy="normalise with statistics of the training data, not of the batch")]


def _taken(rows: Rows, places: Any) -> Rows:
    """Return some rows, copied, numbered from 0 as the tables of reachable points are."""
    taken: Rows = rows.iloc[places].reset_index(drop=True) if isinstance(rows, pd.DataFrame) else rows[places].copy()
    return taken


def _places(outputs: Array) -> list[int]:
    """Rows to ask alone: of every answer first, since a model that leans on its batch may give all lonely rows the same one."""
    values = outputs.tolist()
    first = [i for i, value in enumerate(values) if not any(same_label(value, other) for other in values[:i])]
    rest = [i for i in range(len(values)) if i not in first]
    return sorted((first[: ALONE - 1] + rest + first[ALONE - 1 :])[:ALONE])


def differ(a: Array, b: Array) -> Any:
    """Return which answers differ; scores that differ in rounding only are the same."""
    if a.shape != b.shape:
        return np.ones(len(a), dtype=bool)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        tolerance = TOLERANCE.get(min(a.dtype.itemsize, b.dtype.itemsize), 1e-9)
        return ~np.isclose(a, b, rtol=tolerance, atol=tolerance * 1e-3)
    if a.dtype.kind == "O" or b.dtype.kind == "O":
        return np.array([not same_label(x, y) for x, y in zip(a.tolist(), b.tolist())], dtype=bool)
    return np.asarray(a != b) if a.dtype.kind == b.dtype.kind else np.ones(len(a), dtype=bool)
