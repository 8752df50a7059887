"""Totals of absolute moves: closed forms, exact volumes, plain rejection; through rules, with bounds that cut, other rows, and whole numbers.

A single check has a false alarm of 1 in 100,000 (``ALPHA``) for a fixed seed; there are about 130 of them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from reach_kit import FloatArray, ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint, Rule
from budge.errors import EmptyError
from budge.expressions import parse
from budge.reach.accept import fixed_words
from budge.reach.room import Rooms

ALPHA = 1e-5


def room(low: Any, high: Any, slope: Any, limit: float, bend: Any, at: Any) -> Rooms:
    low, high, slope, bend, at = (np.asarray(part, dtype=float)[None] for part in (low, high, slope, bend, at))
    return Rooms(low, high, slope, np.array([float(limit)]), bend=bend, at=at)


def drawn(rooms: Rooms, n: int, *name: object) -> FloatArray:
    return rooms.draw(np.zeros(n, dtype=np.int64), np.arange(n), fixed_words("totals", *name))


def by_signs(rooms: Rooms) -> float:
    """The volume as a sum over the choices of signs: boxes cut by a plain row."""
    total = 0.0
    low, high, slope, bend, at = rooms.low[0], rooms.high[0], rooms.slope[0], rooms.bend[0], rooms.at[0]
    for signs in product((1.0, -1.0), repeat=len(low)):
        sign = np.array(signs)
        a, b = np.where(sign > 0, np.maximum(low, at), low), np.where(sign > 0, high, np.minimum(high, at))
        a, b = np.where(bend > 0, a, low), np.where(bend > 0, b, high)
        if (b > a).all() and (sign[bend == 0] > 0).all():
            plain = Rooms(a[None], b[None], (slope + sign * bend)[None], rooms.limit + float((sign * bend) @ at))
            total += float(np.exp(plain.log_volumes[0]))
    return total


# -- rooms ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 9, 20, 50])
def test_a_total_without_bounds_that_cut_is_signs_and_spacings(d: int) -> None:
    """c·|y| / b is Beta(1, d), the total Beta(d, 1), signs are fair and independent of it. 5 checks each."""
    rng = np.random.default_rng(d)
    c, at, limit = rng.uniform(0.5, 3, d), rng.normal(size=d), 2.5
    rooms = room(at - limit / c - 1, at + limit / c + 1, np.zeros(d), limit, c, at)
    assert rooms._plain[0]
    assert rooms.log_volumes[0] == pytest.approx(d * math.log(2 * limit) - math.lgamma(d + 1) - np.log(c).sum(), abs=1e-9)
    y = drawn(rooms, 20_000, d) - at
    size = np.abs(y) * c / limit
    assert ks(size[:, 0], stats.beta(1, d).cdf) > ALPHA
    assert ks(size.sum(axis=1), stats.beta(d, 1).cdf) > ALPHA
    up = (y > 0).sum(axis=0)
    assert stats.binomtest(int(up[0]), len(y), 0.5).pvalue > ALPHA
    assert stats.chisquare(np.bincount((y[:, 0] > 0) * 2 + (y[:, 1] > 0), minlength=4)).pvalue > ALPHA
    assert stats.ks_2samp(size[y[:, 0] > 0, 1], size[y[:, 0] < 0, 1]).pvalue > ALPHA


def test_volumes_and_draws_agree_with_signs_one_by_one_and_plain_rejection() -> None:
    """Random totals over 2 to 5 reals: unequal factors, slopes beside them, places outside the box, ways that cost nothing. 2 checks each."""
    rng = np.random.default_rng(11)
    found = []
    for i in range(40):
        d = int(rng.integers(2, 6))
        low = rng.normal(size=d) * 3
        high = low + rng.exponential(size=d) * 3
        at = low + (high - low) * rng.uniform(-0.3, 1.3, d)
        bend = rng.choice([0.5, 1.0, 1.0, 2.0, 0.0], d)
        slope = bend * rng.choice([0.0, 0.0, 0.5, -0.8, 1.0, -1.0], d) + (bend == 0) * rng.choice([-1.0, 1.5], d)
        inside = low + (high - low) * rng.random((400_000, d))
        totals = inside @ slope + np.abs(inside - at) @ bend
        if np.ptp(totals) < 1e-6:
            continue  # all ways cost nothing
        limit = float(np.round(np.quantile(totals[:1000], rng.uniform(0.05, 0.9)) + 0.01 * np.ptp(totals), 6))
        rooms = room(low, high, slope, limit, bend, at)
        kept = inside[totals <= limit]
        assert rooms.dimensions[0] == d
        assert np.exp(rooms.log_volumes[0]) == pytest.approx(by_signs(rooms), rel=1e-6)
        assert np.exp(rooms.log_volumes[0]) == pytest.approx(len(kept) / len(inside) * (high - low).prod(), rel=0.05)
        mine = drawn(rooms, 3000, "random", i)
        assert ((mine >= low) & (mine <= high)).all()
        assert (mine @ slope + np.abs(mine - at) @ bend <= limit + 1e-9 * max(1, abs(limit))).all()
        for way in (np.eye(d)[0], rng.normal(size=d) / (high - low)):
            found.append(stats.ks_2samp(mine @ way, kept[:20_000] @ way).pvalue)
    assert min(found) > 1e-6
    assert stats.kstest(found[::2], "uniform").pvalue > 1e-3


def test_30_reals_whose_bounds_cut_have_the_marginal_that_their_volumes_give() -> None:
    """Bounds from -0.5 to 1 around the start: one coordinate's density is the volume of the 29 others at what it leaves."""
    d, limit = 30, Fraction(9)

    def volume(count: int, rest: Fraction) -> Fraction:
        """Inclusion and exclusion by how many are cut above and below: each factor is (2 - z^a - z^b)."""
        total = Fraction(0)
        for above in range(count + 1):
            for below in range(count - above + 1):
                left = rest - above - Fraction(below, 2)
                if left > 0:
                    ways = math.comb(count, above) * math.comb(count - above, below)
                    total += (-1) ** (above + below) * ways * 2 ** (count - above - below) * left**count
        return total / math.factorial(count)

    rooms = room(np.full(d, -0.5), np.ones(d), np.zeros(d), float(limit), np.ones(d), np.zeros(d))
    assert rooms.log_volumes[0] == pytest.approx(math.log(volume(d, limit)), abs=1e-9)
    y = drawn(rooms, 10_000, "cut")
    grid = [Fraction(k, 40) for k in range(-20, 41)]
    heights = np.array([float(volume(d - 1, limit - abs(t))) for t in grid])
    cdf = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    assert ks(y[:, 4], lambda v: np.interp(v, [float(t) for t in grid], cdf / cdf[-1])) > ALPHA
    assert np.abs(y).sum(axis=1).max() <= 9 * (1 + 1e-12)


def test_what_a_total_leaves_may_be_a_point_all_of_the_box_or_nothing() -> None:
    point = room([-1, -1], [1, 1], [0, 0], 0.0, [1, 2], [0.25, 0.5])
    assert point.dimensions[0] == 0
    assert (drawn(point, 3) == [0.25, 0.5]).all()
    assert point.value(0, np.array([1.0, 1.0])) == 0.75
    whole = room([-1, -1], [1, 2], [0, 0], 9.0, [1, 1], [0, 0])
    assert whole.log_volumes[0] == pytest.approx(math.log(6))
    assert ks((drawn(whole, 5000, "whole")[:, 1] + 1) / 3, "uniform") > ALPHA
    assert room([-1, 1], [1, 2], [0, 0], 0.5, [1, 1], [0, 0]).empty[0]
    free = room([-1, -1], [1, 1], [0.5, 0], 0.0, [0.5, 1], [0, 0])  # what decreases costs nothing
    assert free.dimensions[0] == 1
    assert free.value(0, np.array([0.0, 1.0])) == 0
    assert free.value(0, np.array([1.0, 0.0])) is None
    y = drawn(free, 5000, "free")
    assert ks(y[:, 0] + 1, "uniform") > ALPHA
    assert (y[:, 1] == 0).all()


def test_many_totals_at_once_are_each_drawn_as_if_alone() -> None:
    limits, at = np.array([0.0, 0.2, 1.0, 1.7, 3.0, 9.0]), np.linspace(-0.4, 1.4, 6)
    parts = [np.zeros((6, 3)), np.tile([0.5, 1.0, 2.0], (6, 1)), np.zeros((6, 3))]
    many = Rooms(*parts, limits, bend=np.ones((6, 3)), at=np.tile(at[:, None], (1, 3)))
    which = np.flatnonzero(~many.empty)[np.arange(600) % int((~many.empty).sum())]
    y = many.draw(which, np.arange(600), fixed_words("several"))
    for i in np.unique(which):
        alone = room(np.zeros(3), [0.5, 1.0, 2.0], np.zeros(3), limits[i], np.ones(3), np.full(3, at[i]))
        mine = np.flatnonzero(which == i)
        np.testing.assert_array_equal(alone.draw(np.zeros(len(mine), dtype=np.int64), mine, fixed_words("several")), y[mine])


# -- rules ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "is_total"),
    [
        ("abs(a) + 2 * abs(b - 1) <= 5", True),
        ("5 > abs(a) / 2 + max(b, 0)", True),
        ("-abs(a) - abs(b) >= -5", True),
        ("abs(a) - abs(b) <= 5", False),
        ("abs(a) + abs(b) >= 5", False),
        ("abs(a) + abs(b) == 5", False),
        ("1 <= abs(a) + abs(b) <= 5", False),
        ("abs(a * b) + abs(b) <= 5", False),
        ("a + b <= 5", False),
    ],
)
def test_a_total_is_read_from_a_comparison(text: str, is_total: bool) -> None:
    found = parse(text).total({})
    assert (found is not None) == is_total
    if found is not None:
        rng = np.random.default_rng(1)
        env = {("value", name): rng.normal(size=1000) * 4 for name in "ab"}
        mine = found.linear.evaluate(env) + sum(np.abs(part.evaluate(env)) for part in found.parts) <= 0
        np.testing.assert_array_equal(mine, parse(text).evaluate(env))


def moves(d: int, limit: float, **more: Any) -> tuple[InteractionModel, dict[str, float]]:
    names = [f"r{i:02d}" for i in range(d)]
    features = [Feature(n, "real", bounds=(-10, 10), **(more if i == 0 else {})) for i, n in enumerate(names)]
    text = " + ".join(f"{1 + i % 3} * abs(action.{n})" for i, n in enumerate(names))
    return InteractionModel(features, [Rule(f"{text} <= {limit}")]), {n: 0.1 * i for i, n in enumerate(names)}


@pytest.mark.parametrize("d", [2, 9, 20, 50])
def test_a_total_of_absolute_moves_over_any_number_of_reals_is_drawn_exactly(d: int) -> None:
    """The first may only increase, which takes one of its signs away. 3 checks each."""
    im, x = moves(d, 2.0, direction="increase")
    sample = im.sample(x, 5000, seed=d)
    assert sample.exact
    change = sample.values - np.array(list(x.values()))
    assert im.feasible(x, change).all()
    assert (change[:, 0] >= 0).all()
    weights = 1 + np.arange(d) % 3
    assert ks(change[:, 0] / 2, stats.beta(1, d).cdf) > ALPHA
    assert ks(np.abs(change[:, 1]) * weights[1] / 2, stats.beta(1, d).cdf) > ALPHA
    assert ks((np.abs(change) @ weights) / 2, stats.beta(d, 1).cdf) > ALPHA
    np.testing.assert_array_equal(im.sample(x, 100, seed=d).values, sample.values[:100])


def test_people_in_a_block_draw_what_they_draw_alone() -> None:
    im, x = moves(9, 3.0)
    rng = np.random.default_rng(0)
    people = [{name: float(rng.uniform(-9.9, 9.9)) for name in x} for _ in range(40)]  # bounds cut for some
    together = np.concatenate([sample.values for sample in im.sample_many(pd.DataFrame(people), 20, seed=3)])
    alone = np.concatenate([im.sample(person, 20, seed=3).values for person in people])
    np.testing.assert_array_equal(together.reshape(alone.shape), alone)


def test_a_total_beside_another_row_has_the_law_of_proposals_from_the_total_alone() -> None:
    """9 reals: too many signs for rows. The reference draws signs and spacings, and keeps what the other row allows. 3 checks."""
    im, x = moves(9, 2.0)
    names = list(x)
    other = LinearConstraint({names[0]: 1.0, names[4]: -2.0, names[8]: 1.0}, "<=", 0.05 + x[names[0]] - 2 * x[names[4]] + x[names[8]])
    both = InteractionModel(im.features, [*im.constraints, other])
    sample = both.sample(x, 4000, seed=5)
    assert sample.exact
    change = sample.values - np.array(list(x.values()))
    assert both.feasible(x, change).all()
    rng = np.random.default_rng(2)
    v = rng.dirichlet(np.ones(10), 60_000)[:, :9] * 2.0 * rng.choice([-1, 1], (60_000, 9)) / (1 + np.arange(9) % 3)
    kept = v[v[:, 0] - 2 * v[:, 4] + v[:, 8] <= 0.05]
    for way in (np.eye(9)[0], np.eye(9)[4], np.ones(9)):
        assert stats.ks_2samp(change @ way, kept @ way).pvalue > ALPHA


def test_a_total_that_nothing_can_keep_is_empty_and_a_strict_one_leaves_its_boundary_out() -> None:
    features = [Feature(n, "real", bounds=(0, 1)) for n in "abcdefghi"]
    text = " + ".join(f"abs({n} + 1)" for n in "abcdefghi")
    x = dict.fromkeys("abcdefghi", 0.0)
    assert InteractionModel(features, [Rule(f"{text} <= 9")]).enumerate(x).size == 1
    for rule in (f"{text} < 9", f"{text} <= 8.9"):
        with pytest.raises(EmptyError):
            InteractionModel(features, [Rule(rule)]).sample(x, 1, on_invalid="keep")


def test_configurations_are_weighed_by_the_volume_that_a_total_leaves() -> None:
    """Under measure: volume, k sets the limit 1 + k over 8 reals: volumes go as (1 + k)^8. 1 check."""
    names = list("abcdefgh")
    features = [*(Feature(n, "real", bounds=(-9, 9)) for n in names), Feature("k", "integer", bounds=(0, 2))]
    im = InteractionModel(features, [Rule(" + ".join(f"abs({n})" for n in names) + " <= 4 + k")]).with_measure("volume")
    sample = im.sample(dict.fromkeys(names, 0.0) | {"k": 0}, 5000, seed=1)
    assert sample.exact
    shares = np.array([4.0, 5.0, 6.0]) ** 8
    assert stats.chisquare(np.bincount(sample.points["k"].astype(int), minlength=3), 5000 * shares / shares.sum()).pvalue > ALPHA


@pytest.mark.parametrize("high", [3, 1000])
def test_a_total_over_many_whole_numbers_is_drawn_exactly(high: int) -> None:
    """12 whole numbers, at most 5 steps in all: how many of them move is counted by hand. 2 checks each."""
    names = [f"k{i:02d}" for i in range(12)]
    im = InteractionModel([Feature(n, "integer", bounds=(-high, high)) for n in names], [Rule(" + ".join(f"abs(action.{n})" for n in names) + " <= 5")])
    sample = im.sample(dict.fromkeys(names, 0), 5000, seed=4)
    assert sample.exact
    sizes = np.zeros(6, dtype=object)
    sizes[0] = 1
    for _ in names:  # one factor 1 + 2 z + 2 z^2 + ... each
        sizes = np.array([sum(sizes[t - s] * (2 if s else 1) for s in range(min(t, high) + 1)) for t in range(6)], dtype=object)
    seen = np.bincount(np.abs(sample.values).sum(axis=1).astype(int), minlength=6)
    expected = 5000 * sizes.astype(float) / float(sizes.sum())
    assert stats.chisquare([seen[:3].sum(), *seen[3:]], [expected[:3].sum(), *expected[3:]]).pvalue > ALPHA
    nonzero = sample.values[:, 3][sample.values[:, 3] != 0]
    assert stats.binomtest(int((nonzero > 0).sum()), len(nonzero), 0.5).pvalue > ALPHA
