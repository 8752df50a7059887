"""The scorer for scikit-learn: its numbers are those of an audit of the fold, and it works where scikit-learn calls it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Design, Feature
from budge.errors import DataError, InputError
from budge.sklearn import responsiveness_scorer

pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")
IM = budge.InteractionModel([Feature("income", "integer", bounds=(0, 9), max_increase=3), Feature("age", "integer", actionable=False)])
RNG = np.random.default_rng(0)
X = pd.DataFrame({"income": RNG.integers(0, 10, 90), "age": RNG.integers(18, 70, 90)})
Y = (X["income"] + RNG.integers(0, 4, 90) > 6).astype(int)


class Cut:
    """Gives the target to incomes above 5."""

    def predict(self, table: pd.DataFrame) -> np.ndarray:
        return np.asarray(table["income"] > 5, dtype=int)


def test_shares_are_of_everybody_in_the_fold() -> None:
    people = pd.DataFrame({"income": [0, 1, 3, 9], "age": 20})  # two without a way, one with, one who has it
    numbers = {"below": -0.5, "no_way": -0.5, "above": 0.25, "mean_rho": 1 / 21}
    for measure, number in numbers.items():
        assert responsiveness_scorer(IM, target=1, measure=measure)(Cut(), people) == pytest.approx(number)  # type: ignore[arg-type]
    assert responsiveness_scorer(IM, target=1, measure="above", greater_is_better=False)(Cut(), people) == -0.25
    assert responsiveness_scorer(IM, target=1, measure="below", greater_is_better=True)(Cut(), people) == 0.5
    assert responsiveness_scorer(IM, target=1, measure=lambda audit: len(audit.table))(Cut(), people) == 3
    assert responsiveness_scorer(IM, target=1, threshold=0.3)(Cut(), people) == -0.75
    assert responsiveness_scorer(IM, design=Design(target=1, threshold=0.3))(Cut(), people) == -0.75
    assert responsiveness_scorer(IM, target=1, threshold=0)(Cut(), people) == -0.5  # below the threshold 0 is who has no way at all
    assert responsiveness_scorer(IM, target=1)(Cut(), people[3:]) == 0  # everybody has it
    assert np.isnan(responsiveness_scorer(IM, target=1, measure="mean_rho")(Cut(), people[3:]))


@pytest.mark.parametrize("jobs", [1, 2])
def test_cross_validation_of_a_pipeline(jobs: int) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import KFold, cross_validate
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scorer = pickle.loads(pickle.dumps(responsiveness_scorer(IM, target=1)))
    scoring = {"accuracy": "accuracy", "stuck": scorer}
    found = cross_validate(
        make_pipeline(StandardScaler(), LogisticRegression()), X, Y, cv=KFold(3), scoring=scoring, n_jobs=jobs, return_estimator=True, error_score="raise"
    )
    for (_, test), fitted, score in zip(KFold(3).split(X), found["estimator"], found["test_stuck"]):
        assert score == -(budge.audit(fitted, X.iloc[test], IM, target=1).table["verdict"] == "below").sum() / len(test)


def test_grid_search() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    scorer = responsiveness_scorer(IM, target="score >= 0.6", output="probability")
    search = GridSearchCV(LogisticRegression(), {"C": [0.001, 1]}, scoring=scorer, cv=2, error_score="raise").fit(X, Y)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() > scores.min()


def test_errors_are_clear() -> None:
    with pytest.raises(DataError, match=r"no names of columns.*ndarray.*pandas DataFrame"):
        responsiveness_scorer(IM, target=1)(Cut(), X.to_numpy())
    with pytest.raises(InputError, match="did you mean 'below'"):
        responsiveness_scorer(IM, target=1, measure="belwo")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no target is given"):
        responsiveness_scorer(IM)
