"""Hit-and-run, walked by the package and by budge: the same law, the same draws for the same stream, and a check that can fail."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from reach_kit import FloatArray, ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint
from budge.errors import DrawError
from budge.reach import polytopewalks, walks
from budge.reach.polytope import Polytope

D = 6
SIMPLEX = Polytope.make(np.ones((1, D)), np.ones(1), low=np.zeros(D), high=np.ones(D))
NAMES = [f"r{i}" for i in range(8)]


def budget() -> InteractionModel:
    """A polytope in 8 dimensions, afresh: a model keeps what it has prepared."""
    return InteractionModel([Feature(n, "real", bounds=(0, 1)) for n in NAMES], [LinearConstraint(dict.fromkeys(NAMES, 1.0), "<=", 1)])


@pytest.fixture(params=["budge", "polytopewalk"])
def who(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "polytopewalk":
        pytest.importorskip("polytopewalk", reason="the extra polytope is not installed")
    monkeypatch.setattr(polytopewalks, "installed", lambda: request.param == "polytopewalk")
    return str(request.param)


def drawn(n: int, seed: int = 1) -> FloatArray:
    """Points of the simplex by chains, where it would be drawn by rejection."""
    y = walks.walk(np.random.default_rng(seed), SIMPLEX.A, SIMPLEX.b, walks.mixing_of(SIMPLEX.A, SIMPLEX.b), n)
    return np.asarray(SIMPLEX.base + y @ SIMPLEX.basis.T)


def test_chains_have_the_law_of_the_polytope(who: str) -> None:
    """Coordinates are Beta(1, d), their sum Beta(d, 1): 7 tests, a false alarm of 7 in 10,000. Not one point is outside."""
    u = drawn(800)
    assert walks.mixing_of(SIMPLEX.A, SIMPLEX.b).walker == who == walks.walker()
    assert u.min() >= 0
    assert u.sum(axis=1).max() <= 1
    for column in u.T:
        assert ks(column, stats.beta(1, D).cdf) > 1e-4
    assert ks(u.sum(axis=1), stats.beta(D, 1).cdf) > 1e-4
    lagged = [np.corrcoef(column[1:], column[:-1])[0, 1] * np.sqrt(len(u)) for column in u.T]
    assert np.abs(lagged).max() < 4.2  # one chain a draw: neighbours are independent


def test_the_package_budge_and_exact_draws_have_one_law() -> None:
    """Two-sample tests of 6 coordinates and a slanted one, three pairs: a false alarm of 21 in 10,000."""
    pytest.importorskip("polytopewalk", reason="the extra polytope is not installed")
    exact = SIMPLEX.draw(np.random.default_rng(5), 4000)
    assert SIMPLEX.exact
    groups = [exact]
    for there in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(polytopewalks, "installed", lambda there=there: there)
            groups.append(drawn(800, seed=2))
    slant = np.arange(1.0, D + 1)
    for i, a in enumerate(groups):
        for b in groups[:i]:
            for way in (*np.eye(D), slant):
                assert stats.ks_2samp(a @ way, b @ way).pvalue > 1e-4


def test_draws_by_chains_depend_on_the_person_alone(who: str) -> None:
    im = budget()
    X = pd.DataFrame([{n: 0.1 * (i == j) for j, n in enumerate(NAMES)} for i in range(3)])
    alone = np.concatenate([im.sample(X.iloc[[i]], 5, seed=6).values for i in range(3)])
    for block_rows in (1, 10**6):
        found = np.concatenate([b.values for b in im.sample_many(X, 5, seed=6, block_rows=block_rows)])
        np.testing.assert_array_equal(found, alone)
    walks._measured.cache_clear()  # as in another process
    again = budget().sample_many(X.iloc[::-1], 5, seed=6)
    np.testing.assert_array_equal(np.concatenate([b.values for b in again]).reshape(3, 5, 8)[::-1].reshape(15, 8), alone)
    assert not np.array_equal(alone, np.concatenate([im.sample(X.iloc[[i]], 5, seed=7).values for i in range(3)]))
    assert len(np.unique(alone, axis=0)) == 15


def test_people_whose_polytopes_are_alike_share_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polytopewalks, "installed", lambda: False)
    walks._measured.cache_clear()
    im = budget()
    for i in range(4):
        im.sample(dict.fromkeys(NAMES, 0.01 * i), 2, seed=1)
    assert walks._measured.cache_info().misses == 1


@pytest.mark.parametrize("broken", ["stands still", "leaves", "too short"])
def test_a_package_that_does_not_mix_is_an_error_not_a_sample(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: chains that stay where they start, that end outside, that stop after a few steps."""
    monkeypatch.setattr(polytopewalks, "installed", lambda: True)

    def ends(A: FloatArray, b: FloatArray, starts: FloatArray, steps: int, seeds: FloatArray) -> FloatArray:
        if broken == "leaves":
            return starts + 100.0
        if broken == "too short":
            return walks.own_walk(np.random.default_rng(0), A, b, starts, np.eye(A.shape[1]), 2)
        return starts

    monkeypatch.setattr(polytopewalks, "last_states", ends)
    walks._measured.cache_clear()
    with pytest.raises(DrawError, match=r"polytopewalk has not mixed .*standard errors.*uninstall polytopewalk"):
        walks.mixing_of(SIMPLEX.A, SIMPLEX.b)
    walks._measured.cache_clear()


def test_without_the_package_budge_walks() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name: None)
        patch.setattr(polytopewalks, "find_spec", lambda name: None)
        polytopewalks.installed.cache_clear()
        assert walks.walker() == "budge"
    polytopewalks.installed.cache_clear()
