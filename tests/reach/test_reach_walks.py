"""Hit-and-run: its law, that a draw depends on its own words alone, and a check of its length that can fail."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from reach_kit import FloatArray, ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import Rule
from budge.errors import DrawError
from budge.reach import walks
from budge.reach.accept import fixed_words
from budge.reach.hull import Hull

D = 6
NAMES = [f"r{i}" for i in range(7)]


def simplex() -> Hull:
    found = Hull.make(np.ones((1, D)), np.ones(1), np.zeros((0, D)), np.zeros(0), low=np.zeros(D), high=np.ones(D))
    assert found is not None
    return found


def ladder() -> InteractionModel:
    """A polytope in 7 dimensions that only chains draw, afresh: a model keeps what it has prepared."""
    rules = [Rule(f"{a} <= {b}") for a, b in [*itertools.pairwise(NAMES), (NAMES[0], NAMES[-1])]]  # the last one follows, and makes it no chain
    return InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in NAMES], rules)


def drawn(draws: FloatArray) -> FloatArray:
    """Points of the simplex by chains, where it would be drawn exactly."""
    hull = simplex()
    y = walks.walk(hull.A, hull.b, walks.mixing_of(hull.A, hull.b), draws, fixed_words("test of chains"))
    return np.asarray(hull.base + y @ hull.basis.T)


def test_chains_have_the_law_of_the_polytope() -> None:
    """Coordinates are Beta(1, d), their sum Beta(d, 1): 7 tests, a false alarm of 7 in 10,000. Not one point is outside."""
    u = drawn(np.arange(2000))
    assert u.min() >= -1e-12
    assert u.sum(axis=1).max() <= 1 + 1e-12
    for column in u.T:
        assert ks(column, stats.beta(1, D).cdf) > 1e-4
    assert ks(u.sum(axis=1), stats.beta(D, 1).cdf) > 1e-4
    lagged = [np.corrcoef(column[1:], column[:-1])[0, 1] * np.sqrt(len(u)) for column in u.T]
    assert np.abs(lagged).max() < 4.2  # one chain per draw: neighbours are independent


def test_a_chain_depends_on_the_number_of_its_draw_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drawn(np.arange(40))
    np.testing.assert_allclose(drawn(np.arange(10)), whole[:10], rtol=0, atol=1e-12)
    np.testing.assert_allclose(drawn(np.array([31, 7])), whole[[31, 7]], rtol=0, atol=1e-12)
    monkeypatch.setattr(walks, "AT_ONCE", 1)  # one chain at a time
    np.testing.assert_allclose(drawn(np.arange(5)), whole[:5], rtol=0, atol=1e-12)


def test_draws_by_chains_depend_on_the_person_alone() -> None:
    im = ladder()
    X = pd.DataFrame([dict.fromkeys(NAMES, 0.5 + 0.01 * i) for i in range(3)])
    alone = np.concatenate([im.sample(X.iloc[[i]], 5, seed=6).values for i in range(3)])
    for block_rows in (1, 10**6):
        found = np.concatenate([b.values for b in im.sample_many(X, 5, seed=6, block_rows=block_rows)])
        np.testing.assert_array_equal(found, alone)
    walks._measured.cache_clear()  # as in another process
    again = ladder().sample_many(X.iloc[::-1], 5, seed=6)
    np.testing.assert_array_equal(np.concatenate([b.values for b in again]).reshape(3, 5, 7)[::-1].reshape(15, 7), alone)
    assert not np.array_equal(alone, np.concatenate([im.sample(X.iloc[[i]], 5, seed=7).values for i in range(3)]))
    assert len(np.unique(alone, axis=0)) == 15


def test_people_whose_polytopes_are_alike_share_what_was_measured() -> None:
    walks._measured.cache_clear()
    im = ladder()
    for i in range(4):
        im.sample(dict.fromkeys(NAMES, 0.01 * i), 2, seed=1)
    assert walks._measured.cache_info().misses == 1


def test_a_chain_that_is_too_short_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a length of 2 steps. It is seen to be too short, and made longer; where that is not allowed it is an error."""
    hull = simplex()
    good = walks.mixing_of(hull.A, hull.b)
    assert walks.gap_at(hull.A, hull.b, good.shape, good.steps) < walks.FAR
    assert walks.gap_at(hull.A, hull.b, good.shape, 2) > 2 * walks.FAR
    monkeypatch.setattr(walks, "_enough", lambda A, b, shape: 2)
    walks._measured.cache_clear()
    planted = walks.mixing_of(hull.A, hull.b)
    assert planted.steps >= 16
    assert planted.gap < walks.FAR
    assert "steps per draw, chains from the middle and from corners within" in str(planted)
    monkeypatch.setattr(walks, "LONGEST", 1)
    walks._measured.cache_clear()
    with pytest.raises(DrawError, match="has not mixed"):
        walks.mixing_of(hull.A, hull.b)
    walks._measured.cache_clear()
