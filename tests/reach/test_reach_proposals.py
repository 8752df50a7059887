"""Importance proposals: exact weights, unbiased estimates, and a refusal where no weight could help.

Each check has a false alarm of 1 in 10,000, for a fixed seed.
"""

from __future__ import annotations

import numpy as np
import pytest
from reach_kit import law_p_value, random_cases

from budge import Effect, Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, OneHot, Rule
from budge.distributions import Distribution
from budge.errors import DesignError

IM = InteractionModel(
    [
        Feature("n", "integer", bounds=(0, 5)),
        Feature("flag", "binary"),
        Feature("home", "category", levels=("rent", "own", "free"), distribution=Distribution.from_spec({"weights": {"rent": 1, "own": 2, "free": 1}})),
        Feature("r", "real", bounds=(0, 1)),
    ],
    [IfThen("flag == 1", "n >= 2")],
)
X = {"n": 1, "flag": 0, "home": "rent", "r": 0.5}
PROPOSAL = {"n": {"weights": {0: 1, 1: 1, 2: 1, 3: 4, 4: 8, 5: 16}}, "home": {"weights": {"rent": 1, "own": 1, "free": 5}}}


def exact(model: InteractionModel, x: dict[str, object], f) -> float:  # type: ignore[no-untyped-def]
    every = model.enumerate(x)
    law = np.full(every.size, 1 / every.size) if every.weights is None else every.weights
    return float(np.sum(law * f(every.points)))


def z(values: np.ndarray, truth: float) -> float:
    return float((values.mean() - truth) / (values.std() / np.sqrt(len(values))))


def test_weights_have_mean_one_and_weighted_estimates_are_unbiased() -> None:
    sample = IM.sample(X, 40_000, seed=3, proposal=PROPOSAL)
    assert abs(z(sample.weights, 1.0)) < 3.9
    assert sample.weights.std() > 0.5
    discrete = InteractionModel([f for f in IM.features if f.name != "r"], IM.constraints)
    x = {k: v for k, v in X.items() if k != "r"}

    def rare(points):  # type: ignore[no-untyped-def]
        return ((points["n"] >= 4) & (points["home"] == "free")).to_numpy().astype(float)

    truth = exact(discrete, x, rare)
    hits = rare(sample.points)
    assert abs(z(sample.weights * hits, truth)) < 3.9
    assert hits.mean() > 2 * truth  # it is drawn more often, which is what a proposal is for
    plain = rare(IM.sample(X, 40_000, seed=3).points)
    assert (sample.weights * hits).std() < plain.std()


def test_without_a_proposal_every_weight_is_one() -> None:
    assert (IM.sample(X, 100, seed=3).weights == 1).all()


def test_the_points_follow_the_proposal_itself() -> None:
    discrete = InteractionModel([Feature("n", "integer", bounds=(0, 3)), Feature("b", "binary")], [Rule("n + b <= 3")])
    x = {"n": 0, "b": 0}
    every = discrete.enumerate(x)
    q = np.array([1, 2, 3, 4])[every.points["n"]] * 1.0
    sample = discrete.sample(x, 20_000, seed=2, proposal={"n": {"weights": {0: 1, 1: 2, 2: 3, 3: 4}}})
    assert law_p_value(every.values, sample.values, q / q.sum()) > 1e-4
    np.testing.assert_allclose(sample.weights, (q.sum() / len(q) / (sample.values[:, 0] + 1)))


def test_weights_are_unbiased_on_random_models() -> None:
    """The share of each level of the proposed feature, over all models that have two points or more; 5 in 10,000."""
    scores = []
    for i, (im, x) in enumerate(random_cases(300, 11)[:150]):
        f = next((f for f in im.features if f.discrete and f.actionable and x[f.name] is not None and f.distribution is None), None)
        if f is None or im.broken(x):
            continue
        try:
            every = im.enumerate(x)
        except Exception:
            continue
        if not 2 <= every.size <= 500:
            continue
        weights = {v: 1.0 + k for k, v in enumerate(f.levels if f.levels is not None else range(-8, 12))}
        sample = im.sample(x, 3000, seed=i, proposal={f.name: {"weights": weights}})
        j = [g.name for g in im.features].index(f.name)
        value = every.values[0, j]
        law = np.full(every.size, 1 / every.size) if every.weights is None else every.weights
        truth = law[every.values[:, j] == value].sum()
        got = sample.weights * (sample.values[:, j] == value)
        if 0.02 < truth < 0.98:
            scores.append(z(got, truth))
    assert len(scores) > 30
    assert np.abs(scores).max() < 4.4
    assert abs(np.mean(scores)) * np.sqrt(len(scores)) < 3.9


def test_effects_are_taken_off_before_a_draw_is_weighed() -> None:
    im = InteractionModel(
        [Feature("n", "integer", bounds=(0, 3)), Feature("t", "integer", bounds=(0, 9), actionable=False)],
        [DirectionalLinkage("n", {"t": 1})],
        effects=[Effect("t", add="integers(0, 3)", clip=(0, 9))],
    )
    sample = im.sample({"n": 0, "t": 1}, 20_000, seed=2, proposal={"n": {"weights": {0: 1, 1: 1, 2: 1, 3: 7}}})
    assert abs(z(sample.weights, 1.0)) < 3.9
    np.testing.assert_allclose(sample.weights, np.where(sample.values[:, 0] == 3, 10 / 4 / 7, 10 / 4))


def test_a_feasible_action_that_is_never_proposed_is_refused() -> None:
    with pytest.raises(DesignError, match=r"never draws a feasible action.*'n': 2"):
        IM.sample(X, 10, proposal={"n": {"weights": {0: 1, 1: 1, 3: 1, 4: 1, 5: 1}}})
    only_up = InteractionModel([Feature("n", "integer", bounds=(0, 5), direction="increase")])
    assert only_up.sample({"n": 4}, 10, proposal={"n": {"weights": {4: 1, 5: 2}}}).n == 10  # 0 to 3 are not feasible anyway


def test_an_action_that_the_model_itself_never_draws_needs_no_proposal() -> None:
    law = Distribution.from_spec({"weights": {0: 0, 1: 1, 2: 1}})
    im = InteractionModel([Feature("n", "integer", bounds=(0, 2), distribution=law)])
    sample = im.sample({"n": 0}, 1000, seed=1, proposal={"n": {"weights": {1: 1, 2: 3}}})
    assert set(sample.values[:, 0]) == {1.0, 2.0}
    assert abs(z(sample.weights, 1.0)) < 3.9


@pytest.mark.parametrize(
    ("proposal", "message"),
    [
        ({"nn": {"weights": {0: 1}}}, "no such feature.*did you mean 'n'"),
        ({"r": {"empirical": [0.5]}}, "can be listed"),
        ({"n": "poisson"}, "unknown distribution"),
        ({"n": {"weights": {0: -1}}}, "not negative"),
    ],
)
def test_a_proposal_that_makes_no_sense_is_refused(proposal: object, message: str) -> None:
    with pytest.raises(DesignError, match=message):
        IM.sample(X, 10, proposal=proposal)


def test_a_proposal_needs_a_part_that_is_counted() -> None:
    im = InteractionModel([Feature("flag", "binary"), Feature("r", "real", bounds=(0, 1))], [IfThen("flag == 1", "r >= 0.5")])
    with pytest.raises(DesignError, match="counted"):
        im.sample({"flag": 0, "r": 0.5}, 5, proposal={"flag": {"weights": {0: 1, 1: 2}}})
    group = InteractionModel([Feature(f"d{i}", "binary") for i in range(3)], [OneHot(("d0", "d1", "d2"))])
    sample = group.sample({"d0": 1, "d1": 0, "d2": 0}, 5000, seed=1, proposal={"d2": {"weights": {0: 1, 1: 4}}})
    assert abs(z(sample.weights, 1.0)) < 3.9
