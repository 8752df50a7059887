"""How much a score changes: exactly where every point was listed, and never for class labels."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import budge
from budge import Feature, InteractionModel
from budge.errors import InputError
from budge.stats.quantiles import how_much, how_much_exactly

X = pd.DataFrame({"a": [1, 4], "b": [0, 1]}, index=["anna", "ben"])
IM = InteractionModel([Feature("a", "integer", bounds=(0, 6), direction="increase"), Feature("b", "binary")])


def score(t: pd.DataFrame) -> np.ndarray:
    return (0.3 * t["a"] + 0.7 * t["b"] ** 2).to_numpy(dtype=float)


def test_a_listed_person_has_exact_quantiles() -> None:
    result = budge.audit(budge.models.as_predictor(score, output="score"), X, IM, target="higher", seed=1)
    found = result.how_much("anna")
    moved = np.sort([0.3 * a + 0.7 * b - 0.3 for a, b in itertools.product(range(1, 7), (0, 1))])
    assert found.exact
    assert found.n == len(moved) == 12
    for q, row in found.quantiles.items():
        assert row.low == row.estimate == row.high == pytest.approx(np.quantile(moved, q, method="inverted_cdf"))
    assert found.mean is not None
    assert found.mean.low == found.mean.high == pytest.approx(moved.mean())
    assert "over all 12 reachable points, exactly" in str(found)
    assert "between" not in str(found)
    figure = result.plot("how_much", label="anna")
    assert figure.title == "Person anna: how much the output changes, over all 12 reachable points"
    assert figure.note == "Exact: every point was listed."
    assert "between" not in figure.about
    drawn = budge.audit(budge.models.as_predictor(score, output="score"), X, IM, target="higher", method="sample", n=200).how_much("anna")
    assert not drawn.exact
    assert "draws" in str(drawn)
    assert any(row.low < row.high for row in drawn.quantiles.values())


@pytest.mark.parametrize("model", [lambda t: (t["a"] > 3).astype(int), lambda t: np.where(t["a"] > 3, "yes", "no")])
def test_labels_have_no_distance(model: object) -> None:
    result = budge.audit(model, X, IM, target=model(X.tail(1))[X.index[1]] if hasattr(model(X), "loc") else "yes")  # type: ignore[operator]
    with pytest.raises(InputError, match="class labels") as caught:
        result.how_much("anna")
    assert "output='score'" in str(caught.value)
    with pytest.raises(InputError, match="class labels"):
        result.plot("how_much", label="anna")


def test_weights_and_missing_answers() -> None:
    found = how_much_exactly([3.0, 1.0, 2.0], weights=[0.5, 0.2, 0.3], quantiles=(0.2, 0.5, 0.51))
    assert [row.estimate for row in found.quantiles.values()] == [1.0, 2.0, 3.0]
    assert found.mean is not None
    assert found.mean.estimate == pytest.approx(2.3)
    rng = np.random.default_rng(5)
    known = rng.integers(-3, 4, 7).astype(float)
    gaps = how_much_exactly(known, unresolved=0.3, lost=3, quantiles=(0.2, 0.5, 0.9))
    for q, row in gaps.quantiles.items():
        ends = [np.quantile(np.append(known, [fill] * 3), q, method="inverted_cdf") for fill in (-1e9, 1e9)]
        assert row.low == (ends[0] if ends[0] > -1e9 else -np.inf)
        assert row.high == (ends[1] if ends[1] < 1e9 else np.inf)
    assert gaps.mean is None
    assert "3 have no answer" in str(gaps)


def test_draws_without_an_answer_widen_every_quantile() -> None:
    """The interval is the widest over fillings far away; with none missing it is the plain one."""
    rng = np.random.default_rng(6)
    values = rng.normal(0, 1, 90)
    for lost in (0, 1, 7):
        found = how_much(values, unresolved=lost)
        assert (found.n, found.unresolved) == (90 + lost, lost)
        plain = [how_much(np.append(values, [fill] * lost)) for fill in (-1e9, 1e9)]
        for q, row in found.quantiles.items():
            low, high = plain[0].quantiles[q].low, plain[1].quantiles[q].high
            assert row.low == (low if low > -1e9 else -np.inf)
            assert row.high == (high if high < 1e9 else np.inf)
            assert row.estimate == how_much(values).quantiles[q].estimate
    assert "no answer" in str(found)
    mean = how_much(values, unresolved=1, value_range=(-9, 9)).mean
    assert mean is not None
    assert mean.low <= how_much(values, value_range=(-9, 9)).mean.low


def test_a_drawn_person_whose_score_is_missing_at_times() -> None:
    im = InteractionModel([Feature("a", "real", bounds=(0, 1))])

    def gaps(t: pd.DataFrame) -> np.ndarray:
        return np.where(t["a"] > 0.95, np.nan, t["a"]).astype(float)

    model = budge.models.as_predictor(gaps, output="score")
    result = budge.audit(model, pd.DataFrame({"a": [0.5, 0.2]}), im, target="higher", n=400, seed=1, design=budge.Design(max_unresolved=1.0))
    found = result.how_much(1)
    assert found.unresolved == result.table["unresolved"][1] > 0
    for q, row in found.quantiles.items():
        assert row.low <= q - 0.2 <= row.high
    weighted = budge.audit(
        budge.models.as_predictor(score, output="score"), X, IM, target="higher", method="sample", n=60, proposal={"b": {"weights": {0: 1, 1: 2}}}
    )
    with pytest.raises(InputError, match="weighted draws"):
        weighted.how_much("anna")
