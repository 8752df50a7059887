"""Selection under gaming: the front, fresh draws for the certificate, and what the convex relaxation hides."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from budge import Design, Execution, Feature, InteractionModel, constraints
from budge import audit as run_audit
from budge.errors import DesignError, InputError, ModelError
from budge.stress import convex, select
from budge.stress.selecting import gaming, pareto

IM = InteractionModel(
    [Feature("posts", "integer", bounds=(0, 9)), Feature("verified", "binary"), Feature("age", "integer", actionable=False)],
    [constraints.IfThen("posts >= 8", "verified == 1", name="rule")],
)
X = pd.DataFrame({"posts": [0, 1, 2, 3], "verified": [0, 0, 0, 0], "age": [1, 2, 3, 9]})
MODELS = {
    "gameable": lambda t: (t["posts"] > 4).astype(int),
    "exact": lambda t: ((t["verified"] == 1) & (t["posts"] == 4)).astype(int),
    "safe": lambda t: (t["age"] > 5).astype(int),
}
ACCURACY = {"gameable": 0.9, "exact": 0.8, "safe": 0.7}


def test_the_most_accurate_model_within_the_limit_is_chosen() -> None:
    found = select(MODELS, X, IM, accuracy=ACCURACY, target=1, threshold=0.05, limit=0.1)
    table = found.table.set_index("model")
    assert found.chosen == "safe"
    assert found.ok
    assert table["gaming"].tolist() == [1.0, 1.0, 0.0]
    assert table["people"].tolist() == [4, 4, 3]
    assert table["front"].tolist() == [True, False, True]
    assert "Certified: at most 0 % of 3 people" in str(found)  # all points were listed
    drawn = select(MODELS, X, IM, accuracy=ACCURACY, target=1, threshold=0.05, limit=0.1, design=Design(method="sample", threshold=0.05))
    assert "Certified on fresh draws: at most 0 % of 3 people" in str(drawn)


def test_more_draws_are_advised_only_where_they_can_help() -> None:
    """All points are listed and every model is gamed: no number of draws changes that."""
    gamed = {name: model for name, model in MODELS.items() if name != "safe"}
    found = select(gamed, X, IM, accuracy={name: ACCURACY[name] for name in gamed}, target=1, threshold=0.05, limit=0.1)
    assert found.chosen is None
    assert "within 10 %." in str(found)
    assert "more draws" not in str(found)


def test_the_convex_relaxation_under_reports() -> None:
    """A target that needs whole values is never met by real ones: convex reports no gaming at all."""
    found = select(MODELS, X, IM, accuracy=ACCURACY, target=1, compare={"convex": convex(IM)})
    table = found.table.set_index("model")
    assert table.loc["exact", "gaming (convex)"] == 0.0
    assert table.loc["exact", "gaming"] == 1.0
    assert found.reported == {"convex": "exact"}
    assert "reported gaming 0 %" in str(found)


def test_choosing_and_certifying_on_the_same_draws_is_refused() -> None:
    with pytest.raises(DesignError, match="same draws is selection"):
        select(MODELS, X, IM, accuracy=ACCURACY, target=1, choose="draw", certify="draw")
    with pytest.raises(InputError, match="accuracy is not given"):
        select(MODELS, X, IM, accuracy={"safe": 1.0}, target=1)


def test_fresh_draws_undo_the_luck_of_the_chosen() -> None:
    """Twenty models that are all just past the limit: the luckiest is chosen at times, and hardly ever certified."""
    people, copies = 40, 20
    frame = pd.DataFrame({"dial": np.full(people, 0.5), "who": np.arange(people)})
    im = InteractionModel([Feature("dial", "real", bounds=(0, 1)), Feature("who", "integer", actionable=False)])
    rng = np.random.default_rng(1)
    starts = rng.random(copies) * 0.8

    def made(start: float) -> object:
        return lambda t: ((t["dial"] > start) & (t["dial"] < start + 0.1)).astype(int)

    models = {str(k): made(s) for k, s in enumerate(starts)}
    certified = 0
    for seed in range(10):
        found = select(
            models, frame, im, accuracy=dict.fromkeys(models, 0.5), target=1, threshold=0.1, limit=0.9, n=60, population="all", seed=seed,
            execution=Execution(check=False),
        )  # fmt: skip
        certified += found.ok
    # Everybody is at the threshold, so the true share is 1 and a certificate is false: at 0.05, more than 4 of 10 happens once in 10^3.
    assert certified <= 4


def test_pareto_keeps_what_nobody_beats() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, c = rng.integers(0, 4, 6), rng.integers(0, 4, 6)
        beaten = [any((a[j] >= a[i]) and (c[j] <= c[i]) and (a[j] > a[i] or c[j] < c[i]) for j in range(6)) for i in range(6)]
        assert pareto(a, c).tolist() == [not b for b in beaten]


def test_convex_keeps_what_is_linear() -> None:
    im = InteractionModel(
        [
            *(Feature(n, "binary") for n in ("a", "b", "c", "d")),
            Feature("x", "integer", bounds=(0, 5), direction="increase"),
            Feature("y", "integer", bounds=(0, 9)),
        ],
        [
            constraints.OneHot(("a", "b")), constraints.Thermometer(("c", "d"), direction="increase"),
            constraints.DirectionalLinkage("x", {"y": 1}), constraints.Rule("x <= y + 5"), constraints.Rule("x == 1 or y == 2"),
        ],
    )  # fmt: skip
    loose = convex(im)
    assert all(f.type == "real" for f in loose.features)
    assert sorted(c.kind for c in loose.constraints) == ["directional_linkage", "linear", "linear", "linear", "rule"]
    start = {"a": 1, "b": 0, "c": 0, "d": 0, "x": 1, "y": 2}
    inside = im.enumerate(start).points
    assert loose.feasible(start, inside - pd.Series(start)).all()


def test_a_threshold_of_zero_is_taken_as_it_is() -> None:
    found = select(MODELS, X, IM, accuracy=ACCURACY, target=1, threshold=0)
    assert found.info["threshold"] == 0
    assert (found.table["gaming"] == 1).all()  # nobody has a responsiveness below 0
    assert found.chosen is None


def test_gaming_counts_people_of_whom_nothing_is_known_against_the_model() -> None:
    """One person can do nothing at all, one has points without an answer, one cannot reach the target, one can."""
    im = InteractionModel(
        [Feature("a", "integer", bounds=(0, 9), direction="increase"), Feature("b", "integer", actionable=False)],
        [constraints.Rule("action.a >= 1", name="must move")],
    )
    frame = pd.DataFrame({"a": [9, 0, 0, 0], "b": [0, 1, 2, 3]})

    def model(t: pd.DataFrame) -> np.ndarray:
        answer = ((t["b"] == 3) & (t["a"] > 4)).to_numpy().astype(object)
        answer = np.array([int(v) for v in answer], dtype=object)
        answer[((t["b"] == 1) & (t["a"] > 0)).to_numpy()] = None
        return answer

    result = run_audit(model, frame, im, design=Design(target=1, threshold=0.05, max_unresolved=1.0))
    assert result.table["status"].tolist() == ["empty", "ok", "ok", "ok"]
    assert gaming(result, "model") == (4, 0.5, 0.5)
    skipped = run_audit(model, frame.assign(a=[9, 0, 10, 0]), im, design=Design(target=1, max_unresolved=1.0, on_invalid="skip"))
    assert gaming(skipped, "model")[0] == 3  # who breaks the spec is not asked about


def test_a_model_that_drifts_after_it_was_chosen_is_not_certified() -> None:
    class Drifting:
        asked = 0

        def __call__(self, t: pd.DataFrame) -> np.ndarray:
            self.asked += len(t)
            return (t["age"] > 5).to_numpy().astype(int) | (self.asked > 100)

    with pytest.raises(ModelError, match="answers otherwise"):
        select({"drifting": Drifting()}, X, IM, accuracy={"drifting": 1.0}, target=1)
