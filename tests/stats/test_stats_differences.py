"""Differences: coverage by enumeration, p-values that agree with intervals, missing answers, and draws saved.

Everything is exact: no test here has a false-alarm rate.
"""

import itertools
from math import comb

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import beta
from stat_checks import caught, pmf

from budge import stats
from budge.errors import DesignError
from budge.stats import _regions
from budge.stats._regions import CUT, LADDER, RAISED, SIZE, OrderedSamples, Pairs, TwoSamples, search

ALPHA = 0.05
RATES = np.r_[0.002, 0.01, 0.03, np.linspace(0.06, 0.94, 15), 0.97, 0.99]


@pytest.fixture(params=("ordered", "tails", "rectangle"))
def method(request, monkeypatch):
    """The methods for two samples: the region by order, the region by tails, which is that of large samples, and the rectangle."""
    if request.param == "tails":
        monkeypatch.setattr(_regions, "SIZE", 0)
    return "rectangle" if request.param == "rectangle" else "region"


def all_counts(n1, n2):
    return (part.ravel() for part in np.meshgrid(np.arange(n1 + 1), np.arange(n2 + 1), indexing="ij"))


def all_pairs(n):
    b, c = all_counts(n, n)
    return b[b + c <= n], c[b + c <= n]


def check_two_samples(bounds, sizes):
    """The probability that either end misses: at most alpha / 2, summed over all counts, on a grid of rates."""
    for n1, n2 in sizes:
        k1, k2 = all_counts(n1, n2)
        low, high = bounds(k1, n1, k2, n2)
        chances1, chances2 = np.array([pmf(n1, r) for r in RATES]), np.array([pmf(n2, r) for r in RATES])
        for (i, r1), (j, r2) in itertools.product(enumerate(RATES), enumerate(RATES)):
            chance = np.outer(chances1[i], chances2[j]).ravel()
            assert chance[low > r1 - r2].sum() <= ALPHA / 2, (n1, n2, r1, r2)
            assert chance[high < r1 - r2].sum() <= ALPHA / 2, (n1, n2, r1, r2)


def check_pairs(bounds, sizes):
    for n in sizes:
        b, c = all_pairs(n)
        low, high = bounds(b, c, n)
        ways = np.array([comb(n, i) * comb(n - i, j) for i, j in zip(b.tolist(), c.tolist())], dtype=float)
        for r1, r2 in itertools.product(np.r_[0.0, RATES], np.r_[0.0, RATES]):
            if r1 + r2 <= 1:
                chance = ways * r1**b * r2**c * (1 - r1 - r2) ** (n - b - c)
                assert chance[low > r1 - r2].sum() <= ALPHA / 2, (n, r1, r2)
                assert chance[high < r1 - r2].sum() <= ALPHA / 2, (n, r1, r2)


def test_two_samples_cover(method):
    def bounds(*counts):
        return stats.difference_bounds(*counts, method=method)

    check_two_samples(bounds, ((1, 1), (5, 5), (12, 7), (2, 40), (30, 30) if method == "region" else (20, 30)))


@pytest.mark.parametrize("method", ["region", "rectangle"])
def test_pairs_cover(method):
    check_pairs(lambda *counts: stats.paired_difference_bounds(*counts, method=method), (1, 4, 10, 20))


def test_approximations_are_caught():
    def wald(k, n, k2, n2):
        a, b = k / n, k2 / n2
        half = 1.96 * np.sqrt(a * (1 - a) / n + b * (1 - b) / n2)
        return a - b - half, a - b + half

    def wald_pairs(b, c, n):
        half = 1.96 * np.sqrt(b + c - (b - c) ** 2 / n) / n
        return (b - c) / n - half, (b - c) / n + half

    caught(check_two_samples, wald, [(12, 7)])
    caught(check_two_samples, lambda *counts: stats.difference_bounds(*counts, alpha=0.07), [(12, 7)])
    caught(check_pairs, wald_pairs, [10])
    caught(check_pairs, lambda *counts: stats.paired_difference_bounds(*counts, alpha=0.2), [20])


def test_planted_errors_of_the_order_are_caught(monkeypatch):
    sizes = [(12, 7)]
    check_two_samples(stats.difference_bounds, sizes)

    def ties_dropped(self, step):
        k1, n1, k2, n2 = self.rows.astype(int).T
        strength = _regions._strength(n1[0], n2[0], LADDER[step][1])
        return np.array([(strength > seen).sum(axis=1) for seen in strength[k1, k2]])

    def far_corner(self, cells, of, floor):
        return right(self, cells[[1, 0, 3, 2]], of, floor)  # the corner with the most evidence instead of the least

    def order_chosen_after_looking(self, cells, of, floor):
        found = []
        for _, level in LADDER[:6]:
            monkeypatch.setattr(_regions, "LADDER", ((0.0, level),))
            found.append(right(OrderedSamples(self.rows), cells, of, floor)[0])
        return (np.min(found, axis=0),) * 2

    right = OrderedSamples.p_values
    for name, wrong in (("stronger", ties_dropped), ("p_values", far_corner), ("p_values", order_chosen_after_looking)):
        with monkeypatch.context() as planted, np.errstate(invalid="ignore"):
            planted.setattr(OrderedSamples, name, wrong)
            caught(check_two_samples, stats.difference_bounds, sizes)
        monkeypatch.undo()


def agree(found, alpha):
    assert ((found.p_value < alpha) == ((found.low > 0) | (found.high < 0))).all()
    assert ((found.p_greater < alpha / 2) == (found.low > 0)).all()
    assert ((found.p_less < alpha / 2) == (found.high < 0)).all()
    assert (found.low <= found.estimate + 1e-12).all()
    assert (found.estimate <= found.high + 1e-12).all()


def test_p_value_and_interval_agree_on_all_counts(method):
    columns = [np.stack([*all_counts(n, n), np.full((n + 1) ** 2, n)]) for n in range(1, 13)]
    k1, k2, n = np.concatenate(columns, axis=1)
    apart = k1 + k2 <= n
    for alpha in (0.05, 0.2):
        found = stats.difference(k1, n, k2, n, alpha=alpha, method=method)
        agree(found, alpha)
        assert (found.low > 0).any()
        agree(stats.paired_difference(k1[apart], k2[apart], n[apart], alpha=alpha, method=method), alpha)


def test_p_values_do_not_depend_on_the_level_of_the_interval(method):
    """The bound decides within the gap that the search leaves; outside of it the p-value stands by itself."""
    for k1, k2 in ((8, 2), (12, 1), (5, 4), (20, 3)):
        p = [stats.difference(k1, 20, k2, 20, alpha=a, method=method).p_greater for a in (0.001, 0.01, 0.05, 0.2)]
        assert max(p) <= min(p) * 1.006


def test_one_p_value_agrees_with_the_intervals_at_every_level():
    for counts in ((9, 20, 3, 20), (5, 12, 1, 30), (0, 9, 3, 7), (20, 20, 2, 20)):
        p = stats.difference(*counts).p_value
        for alpha in np.geomspace(1e-7, 0.99, 40):
            low, high = stats.difference_bounds(*counts, alpha=alpha)
            assert (p < alpha) == (low > 0 or high < 0) or p == pytest.approx(alpha, rel=0.006)


def test_the_contradiction_is_gone():
    """An exact test at p = 0.03 beside an interval from -6.7 to 34.9 points: now one region gives both, and little more than the approximate width."""
    german = stats.difference(29, 99, 9, 65)
    assert (round(100 * german.low, 1), round(100 * german.high, 1), round(german.p_value, 3)) == (2.1, 27.7, 0.025)
    rows = [(k1, n, k2, n) for n in (40, 60) for k1 in range(0, n + 1, 9) for k2 in range(0, n + 1, 13)]
    found = stats.difference(*np.array(rows).T)
    agree(found, 0.05)
    assert (found.low > 0).sum() > (stats.difference(*np.array(rows).T, method="rectangle").low > 0).sum()


def test_pairs_at_zero_are_mcnemars_test():
    for b, c, n in ((12, 2, 100), (43, 18, 440), (9, 1, 30), (20, 6, 200)):
        exact = sum(comb(b + c, i) for i in range(b, b + c + 1)) / 2 ** (b + c)
        found = stats.paired_difference(b, c, n)
        assert exact / 0.95 * (1 - 1e-9) <= found.p_greater <= exact / 0.95 * 1.02
    assert stats.paired_difference(0, 0, 50).p_value == 1.0


def test_symmetry_and_monotonicity(method):
    n1, n2 = 9, 14
    k1, k2 = all_counts(n1, n2)
    low, high = (part.reshape(n1 + 1, n2 + 1) for part in stats.difference_bounds(k1, n1, k2, n2, method=method))
    other_low, other_high = (part.reshape(n1 + 1, n2 + 1) for part in stats.difference_bounds(k2, n2, k1, n1, method=method))
    assert (low == -other_high).all()
    assert (high == -other_low).all()
    slack = 0.004  # the search ends this close to the extreme
    for part in (low, high):
        assert (np.diff(part, axis=0) >= -slack).all()
        assert (np.diff(part, axis=1) <= slack).all()
    b, c = all_pairs(12)
    low, high = stats.paired_difference_bounds(b, c, 12, method=method)
    mirrored = stats.paired_difference_bounds(c, b, 12, method=method)
    assert (low == -mirrored[1]).all()
    assert (high == -mirrored[0]).all()
    narrow, wide = (stats.paired_difference_bounds(b, c, 12, alpha=a, method=method) for a in (0.1, 0.02))
    assert (wide[0] <= narrow[0] + slack).all()


def test_every_filling_of_missing_answers(method):
    slack = 0.004
    for k1, u1, k2, u2 in ((3, 2, 1, 3), (0, 4, 0, 0), (9, 3, 2, 2)):
        found = stats.difference(k1, 15, k2, 12, unresolved=u1, unresolved2=u2, method=method)
        i, j = all_counts(u1, u2)
        filled = stats.difference(k1 + i, 15, k2 + j, 12, method=method)
        assert (found.low <= filled.low + slack).all()
        assert (filled.high <= found.high + slack).all()
        assert (found.p_greater >= filled.p_greater * 0.99).all()
        assert (found.p_less >= filled.p_less * 0.99).all()
    for b, c, u in ((6, 1, 3), (0, 0, 4), (2, 2, 5), (10, 0, 1)):
        found = stats.paired_difference(b, c, 16, unresolved=u, method=method)
        i, j = all_pairs(u)
        filled = stats.paired_difference(b + i, c + j, 16, method=method)
        assert (found.low <= filled.low + slack).all()
        assert (filled.high <= found.high + slack).all()
        assert (found.p_greater >= filled.p_greater * 0.99).all()


def test_draws_saved_against_the_rectangle():
    def ratio(bounds, *counts):
        wide, narrow = (np.diff(bounds(*counts, method=method))[0] for method in ("rectangle", "region"))
        return (wide / narrow) ** 2

    assert ratio(stats.difference_bounds, 45, 100, 20, 100) == pytest.approx(2.6, abs=0.05)
    assert ratio(stats.difference_bounds, 1500, 10_000, 1000, 10_000) == pytest.approx(2.45, abs=0.05)
    assert ratio(stats.paired_difference_bounds, 12, 2, 100) == pytest.approx(1.49, abs=0.04)
    assert ratio(stats.paired_difference_bounds, 300, 200, 10_000) == pytest.approx(2.37, abs=0.05)
    assert ratio(stats.difference_bounds, 0, 321, 0, 321) < 1  # the declared exception


def by_definition(n1, n2, points):
    """P-values of ordered counts from their definition, for all counts (axes 0 and 1) at pairs of rates (axis 2): sums over all counts, no cells."""
    k1, k2 = np.arange(n1 + 1), np.arange(n2 + 1)
    chances = np.einsum("ri,rj->rij", *(np.array([pmf(n, r) for r in rates]) for n, rates in zip((n1, n2), points)))
    found, top = np.zeros((n1 + 1, n2 + 1, len(chances))), 1.0
    for bottom, level in LADDER:
        low = np.nan_to_num(beta.ppf(level, k1, n1 - k1 + 1), nan=0.0)
        high = np.nan_to_num(beta.isf(level, k2 + 1, n2 - k2), nan=1.0)
        order = np.round(k1[:, None] / n1 - k2 / n2 - np.hypot((k1 / n1 - low)[:, None], high - k2 / n2), 12)
        order = np.array([[order[: i + 1, j:].max() for j in k2] for i in k1])
        for i, j in itertools.product(k1, k2):
            p = chances[:, order >= order[i][j]].sum(axis=1)
            found[i, j] = np.maximum(found[i, j], np.where(p >= bottom, np.minimum(p, top), 0.0))
        top = bottom
    return found


@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (6, 4)])
def test_ordered_counts_by_definition(sizes):
    n1, n2 = sizes
    rates = np.linspace(0.004, 0.996, 125)
    x, y = (part.ravel() for part in np.meshgrid(rates, rates, indexing="ij"))
    expected = by_definition(n1, n2, (x, y)).reshape(-1, x.size)
    k1, k2 = all_counts(n1, n2)
    found = stats.difference(k1, n1, k2, n2)
    for low, p_greater, p in zip(found.low, found.p_greater, expected):
        inside = (x - y)[p >= ALPHA / 2].min(initial=1.0)
        assert inside - 0.02 <= low <= inside
        most = p[x - y <= 1e-12].max()
        assert most * (1 - 1e-12) <= p_greater <= most * 1.1 or p_greater == np.nextafter(ALPHA / 2, 0)


def test_hits_and_misses_may_be_exchanged():
    for n in (30, 77, 150):  # the order has no difference in the last bit either, and is monotone
        for _, level in LADDER:
            strength = _regions._strength(n, n, level)
            assert (strength == strength[::-1, ::-1].T).all()
            assert (np.diff(strength, axis=0) >= 0).all()
            assert (np.diff(strength, axis=1) <= 0).all()
    for n1, n2 in ((8, 8), (5, 11)):
        k1, k2 = all_counts(n1, n2)
        hits, misses = stats.difference(k1, n1, k2, n2), stats.difference(n2 - k2, n2, n1 - k1, n1)
        assert (hits.low == misses.low).all()
        assert (hits.p_greater == misses.p_greater).all()


def test_ordered_counts_are_sharper_than_tails_and_near_the_approximation(monkeypatch):
    def wilson(k, n, z=1.959964):
        middle, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * np.sqrt(k * (n - k) / n + z * z / 4)
        return middle - half, middle + half

    k1, n1, k2, n2 = np.array([(29, 99, 9, 65), (45, 100, 20, 100), (0, 50, 0, 50), (2, 3, 40, 90), (5, 12, 1, 30), (110, 150, 90, 150)]).T
    low, high = stats.difference_bounds(k1, n1, k2, n2)
    monkeypatch.setattr(_regions, "SIZE", 0)
    tails = stats.difference_bounds(k1, n1, k2, n2)
    assert (low > tails[0]).all()
    assert (high < tails[1]).all()
    (l1, u1), (l2, u2) = wilson(k1, n1), wilson(k2, n2)
    newcombe = k1 / n1 - k2 / n2 - np.hypot(k1 / n1 - l1, u2 - k2 / n2), k1 / n1 - k2 / n2 + np.hypot(u1 - k1 / n1, k2 / n2 - l2)
    many = n1 + n2 > 60
    assert np.abs(low - newcombe[0])[many & (n1 > 3)].max() < 0.02
    assert np.abs(high - newcombe[1])[many & (n1 > 3)].max() < 0.02


def test_the_method_depends_on_the_sizes_alone():
    half = SIZE // 2
    for n1, n2, kind in ((half, half, OrderedSamples), (half, half + 1, TwoSamples)):
        k1 = np.array([0, half // 2])
        rows = np.stack(np.broadcast_arrays(k1, n1, 3, n2), axis=1).astype(float)
        expected = _regions._search(kind(rows), 0.025)
        assert stats.difference_bounds(k1, n1, 3, n2)[0] == pytest.approx(expected, abs=1e-3)


def combined_tail(angle, s, nodes=32, panels=16):
    """P(cos max(Z1, -CUT) + sin max(Z2, -CUT) >= s) for independent normal Z1, Z2, by Gauss-Legendre quadrature over Z1."""
    c, d = np.cos(angle), np.sin(angle)
    top = (s + d * CUT) / c  # from here on, Z1 alone is enough
    start = np.minimum(np.maximum(-CUT, top - 38 * d / c), top)  # before it, Z2 would have to exceed 38

    def second(first):
        need = (s - c * first) / d
        return np.where(need <= -CUT, 1.0, ndtr(-need))

    total = ndtr(-top) + ndtr(-CUT) * second(np.full_like(s, -CUT))
    half = (top - start) / panels / 2
    for i, (x, w) in itertools.product(range(panels), zip(*np.polynomial.legendre.leggauss(nodes))):
        z = start + half * (2 * i + 1 + x)
        total = total + w * half * np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * second(z)
    return np.where(top <= -CUT, 1.0, total)


def test_the_cut_raises_the_tail_of_combined_scores_by_less_than_the_allowance():
    angle, s = (part.ravel() for part in np.meshgrid(np.linspace(1e-4, np.pi / 4, 120), np.linspace(0, 9, 120)))
    raised = combined_tail(angle, s) / ndtr(-s)
    assert 1.008 < raised.max() <= RAISED
    assert raised.min() > 0.9999  # the cut only ever raises it
    x = (np.arange(4000) + 0.5) / 4000
    z = np.maximum(ndtri(x), -CUT)
    for a, at in ((0.3, 1.7), (0.7, 2.2)):
        need = (at - np.cos(a) * z) / np.sin(a)
        direct = np.where(need <= -CUT, 1.0, ndtr(-need)).mean()
        assert combined_tail(np.array(a), np.array(at)) == pytest.approx(direct, rel=1e-3)


@pytest.mark.parametrize(
    "problem",
    [
        OrderedSamples(np.array([[9, 20, 3, 20], [0, 20, 0, 20], [20, 20, 0, 20]], float)),
        TwoSamples(np.array([[9, 20, 3, 20], [0, 30, 0, 30], [1, 50, 0, 40], [20, 20, 0, 20]], float)),
        Pairs(np.array([[6, 7, 7, 30], [0, 0, 0, 30], [6, 7, 10, 30], [2, 6, 6, 20]], float)),
    ],
)
def test_the_search_ends_at_the_extremes_and_never_past_them(problem, monkeypatch):
    """Against all points of a fine grid: the bound is no higher than the least difference, the p-value no smaller than the largest."""
    if not isinstance(problem, OrderedSamples):
        monkeypatch.setattr(_regions, "SIZE", 0)
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, 401), np.linspace(0, 1, 401), indexing="ij"))
    points = np.stack([x, x, y, y])  # cells without extent
    at = problem.differences(points)[0]
    for i, (low, strict, p_value) in enumerate(zip(search(problem, 0.1), search(problem, 0.01), search(problem, None))):
        p = problem.p_values(points, np.full(x.size, i), np.zeros(len(problem.rows)))[1]
        for found, a in ((low, 0.1), (strict, 0.01)):
            assert at[p >= a].min() - 0.01 <= found <= at[p >= a].min()
        assert p[at <= 0].max() * (1 - 1e-12) <= p_value <= p[at <= 0].max() * 1.02


def test_shapes_and_refusals():
    assert stats.difference([1, 2], 10, [3, 4], 10).low.shape == (2,)
    assert stats.difference([[1], [2]], 10, [3, 4], 10).p_value.shape == (2, 2)
    assert isinstance(stats.difference(1, 10, 3, 10).low, float)
    assert "2 differences" in str(stats.difference([1, 2], 10, [3, 4], 10))
    assert set(stats.paired_difference(1, 2, 9).to_dict()) >= {"low", "high", "p_value", "method"}
    assert stats.difference_bounds(45, 100, 20, 100) == tuple(stats.difference(45, 100, 20, 100))
    assert stats.paired_difference_bounds(12, 2, 100) == tuple(stats.paired_difference(12, 2, 100))
    assert np.isnan(stats.difference(45, 100, 20, 100, p_values=False).p_value)
    repeated = stats.difference(np.repeat([45, 20], 50_000), 100, np.repeat([20, 45], 50_000), 100)
    assert repeated.low[0] == -repeated.high[-1]
    with pytest.raises(DesignError, match="more disagreements"):
        stats.paired_difference(30, 30, 50)
    with pytest.raises(DesignError, match="more disagreements"):
        stats.paired_difference(3, 3, 10, unresolved=5)
    with pytest.raises(DesignError, match="more hits and unresolved"):
        stats.difference(3, 10, 3, 10, unresolved2=8)
