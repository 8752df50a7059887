"""A scorer for scikit-learn: how people respond under a model, in `cross_validate` and `GridSearchCV`. scikit-learn itself is not imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from budge.audit import audit
from budge.errors import DataError, InputError, nearest

if TYPE_CHECKING:
    from budge.audit.design import Design
    from budge.audit.result import Audit
    from budge.interaction import InteractionModel
    from budge.models.choose import Wanted
    from budge.targets import Target

__all__ = ["Measure", "ResponsivenessScorer", "responsiveness_scorer"]

Measure = Literal["below", "above", "no_way", "mean_rho"]
LESS_IS_BETTER = ("below", "no_way")


@dataclass(frozen=True)
class ResponsivenessScorer:
    """A scorer, as scikit-learn calls it: ``scorer(estimator, X, y)`` returns one number, of which more is better. See `responsiveness_scorer`."""

    im: InteractionModel
    design: Design
    measure: Measure | Callable[[Audit], float]
    sign: Literal[1, -1]
    output: Wanted = "auto"
    cutoff: float | None = None

    def __call__(self, estimator: Any, X: Any, y: object = None) -> float:
        """Audit a fitted estimator on these people, and return the measure with its sign."""
        from budge.models import as_predictor

        if not hasattr(X, "columns"):
            remedy = "give X as a table, such as a pandas DataFrame; a pipeline may make an array of it behind its first step"
            raise DataError("the people have no names of columns, which the interaction model needs", where="X", got=type(X).__name__, remedy=remedy)
        found = audit(as_predictor(estimator, output=self.output, threshold=self.cutoff), X, self.im, design=self.design, progress=False)
        return self.sign * (float(self.measure(found)) if callable(self.measure) else _measured(found, self.measure))


def responsiveness_scorer(
    im: InteractionModel,
    *,
    target: Target | str | int | float | None = None,
    measure: Measure | Callable[[Audit], float] = "below",
    threshold: float | None = None,
    greater_is_better: bool | None = None,
    output: Wanted = "auto",
    cutoff: float | None = None,
    design: Design | None = None,
) -> ResponsivenessScorer:
    """Return a scorer for ``scoring=`` of scikit-learn.

    Parameters
    ----------
    im
        The interaction model.
    target, threshold, design
        The question, as in `budge.audit`; the rest of it is a `budge.Design`.
    measure
        ``below`` or ``above``: the share of the people in the fold whose verdict says so; ``no_way``: of those who are known to have no way at
        all; ``mean_rho``: the mean responsiveness of the people who are audited; or a function of the `Audit`.
        Shares are of all people in the fold, so that models
        that give the target to more people compare with others: who has the target already counts as neither below nor without a way.
    greater_is_better
        False returns the number with a minus, as scikit-learn's ``neg_...`` scorers do. By default False of ``below`` and ``no_way``, and True of the others.
    output, cutoff
        What is read from the estimator, as `output` and `threshold` of `budge.models.as_predictor`.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=2)])
    >>> scorer = responsiveness_scorer(im, target=True, measure="no_way")
    >>> class Rule:
    ...     def predict(self, table):
    ...         return table["income"] > 4
    >>> scorer(Rule(), pd.DataFrame({"income": [0, 1, 4, 9]}))
    -0.5
    """
    from budge.audit.design import designed, given

    if not callable(measure) and measure not in get_args(Measure):
        remedy = f"{nearest(measure, get_args(Measure))}, or a function of the audit"
        raise InputError("no such measure", where="measure", got=measure, remedy=remedy)
    question = designed(design, given(target=target, threshold=threshold))
    if question.target is None:
        raise InputError("no target is given", where="target", remedy="give a label, or a target of budge.targets")
    better = measure not in LESS_IS_BETTER if greater_is_better is None else greater_is_better
    return ResponsivenessScorer(im, question, measure, 1 if better else -1, output, cutoff)


def _measured(found: Audit, measure: Measure) -> float:
    """Return a measure of an audit; NaN where a mean is not known, since people without an answer may lie anywhere."""
    summary = found.summary()
    if measure == "mean_rho":
        return float("nan") if summary.mean_rho is None else summary.mean_rho
    word = "none" if measure == "below" and found.design.threshold == 0 else measure
    return (summary.no_way if measure == "no_way" else summary.verdicts.get(word, 0)) / summary.given
