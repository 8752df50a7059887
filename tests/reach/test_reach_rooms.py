"""Boxes cut by rows: closed forms, exact volumes, other samplers; and that a draw depends on its own words alone.

A single check has a false alarm of 1 in 100,000 (``ALPHA``) for a fixed seed; there are fewer than 150 of them, and two tests of all p-values of
a loop together at 1 in 1,000: the whole file has a false alarm below 4 in 1,000.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from reach_kit import FloatArray, Polytope, ks
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import LinearConstraint
from budge.errors import DrawError
from budge.reach import accept
from budge.reach.accept import Words, first_accepted, fixed_words
from budge.reach.hull import Hull
from budge.reach.polytope import Polytopes
from budge.reach.room import Rooms
from budge.reach.streams import unit
from budge.reach.tilted import Axis, Side, Tilted, tilted

ALPHA = 1e-5
NONE = np.zeros(0)


def room(low: FloatArray, high: FloatArray, slope: FloatArray, limit: float, equal: bool = False) -> Rooms:
    rows = [np.asarray(part, dtype=float)[None] for part in (low, high, slope)]
    return Rooms(*rows, np.array([float(limit)]), equal)


def box(d: int, side: float, limit: float, equal: bool = False) -> Rooms:
    return room(np.zeros(d), np.full(d, side), np.ones(d), limit, equal)


def drawn(rooms: Rooms, n: int, *name: object) -> FloatArray:
    return rooms.draw(np.zeros(n, dtype=np.int64), np.arange(n), fixed_words("rooms", *name))


def volume(sides: list[Fraction], rest: Fraction, power: int) -> Fraction:
    """Inclusion and exclusion over every set of sides, without merging: for few sides, or equal ones by binomials."""
    if len(set(sides)) == 1:
        d = len(sides)
        terms = [(-1) ** k * math.comb(d, k) * max(rest - k * sides[0], Fraction(0)) ** power for k in range(d + 1)]
    else:
        terms = []
        for chosen in product((0, 1), repeat=len(sides)):
            left = rest - sum((s for s, c in zip(sides, chosen) if c), Fraction(0))
            terms.append((-1) ** sum(chosen) * max(left, Fraction(0)) ** power)
    return sum(terms, Fraction(0)) / math.factorial(power)


# -- laws -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 5, 7, 10, 20, 30])
@pytest.mark.parametrize("equal", [True, False])
def test_shares_and_budgets_have_beta_marginals(d: int, equal: bool) -> None:
    """Shares of 1 are Beta(1, d - 1); what is at most 1 in all is Beta(1, d), its sum Beta(d, 1). 3 checks each."""
    y = drawn(box(d, 1.0, 1.0, equal), 20_000, d, equal)
    b = d - 1 if equal else d
    assert ks(y[:, 0], stats.beta(1, b).cdf) > ALPHA
    if b > d // 2:
        assert ks(y[:, : d // 2 + 1].sum(axis=1), stats.beta(d // 2 + 1, b - d // 2).cdf) > ALPHA
    if equal:
        np.testing.assert_allclose(y.sum(axis=1), 1.0, rtol=1e-12)
    else:
        assert ks(y.sum(axis=1), stats.beta(d, 1).cdf) > ALPHA


SIDES = [Fraction(s, 10) for s in (3, 5, 5, 8, 11)]


@pytest.mark.parametrize("limit", [Fraction(4, 10), Fraction(9, 10), Fraction(16, 10), Fraction(25, 10), Fraction(31, 10)])
@pytest.mark.parametrize("equal", [True, False])
def test_a_cut_simplex_has_the_marginals_that_its_volumes_give(limit: Fraction, equal: bool) -> None:
    """F(t) is the volume with the side cut to t over the whole volume, in fractions. 2 checks each."""
    d = len(SIDES)
    rooms = room(np.zeros(d), np.array([float(s) for s in SIDES]), np.ones(d), float(limit), equal)
    y = drawn(rooms, 20_000, "cut", limit, equal)
    power = d - equal
    whole = volume(SIDES, limit, power)
    np.testing.assert_allclose(np.exp(rooms.log_volumes[0]), float(whole) * (math.sqrt(d) if equal else 1.0), rtol=1e-12)
    for j in (0, 4):
        grid = np.linspace(0, float(SIDES[j]), 201)
        cdf = [float(volume([Fraction(str(t)) if i == j else s for i, s in enumerate(SIDES)], limit, power) / whole) for t in grid]
        assert ks(y[:, j], lambda v, grid=grid, cdf=cdf: np.interp(v, grid, cdf)) > ALPHA


@pytest.mark.parametrize(("d", "side", "limit", "equal"), [(20, "0.1", "1", True), (30, "1", "9", False), (30, "1", "21", True), (12, "1", "11.5", False)])
def test_many_equal_sides_have_the_marginals_that_their_volumes_give(d: int, side: str, limit: str, equal: bool) -> None:
    """The same for 12 to 30 dimensions; one coordinate's density is the volume of the others at what it leaves."""
    s, c = Fraction(side), Fraction(limit)
    y = drawn(box(d, float(s), float(c), equal), 10_000, "many", d)
    grid = [s * k / 400 for k in range(401)]
    heights = np.array([float(volume([s] * (d - 1), c - t, d - 1 - equal)) if c > t else 0.0 for t in grid])
    cdf = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2)])
    assert ks(y[:, 3], lambda v: np.interp(v, [float(t) for t in grid], cdf / cdf[-1])) > ALPHA
    assert (y >= 0).all()
    assert (y <= float(s)).all()
    if equal:
        np.testing.assert_allclose(y.sum(axis=1), float(c), rtol=1e-12)
    else:
        assert y.sum(axis=1).max() <= float(c) * (1 + 1e-12)


def test_the_sum_of_uniforms_has_the_volume_of_irwin_and_hall() -> None:
    for d in (3, 8, 20, 50):
        for c in (0.3 * d, 0.5 * d, 0.9 * d):
            exact = volume([Fraction(1)] * d, Fraction(str(c)), d)
            assert box(d, 1.0, c).log_volumes[0] == pytest.approx(math.log(exact), abs=1e-9)
    assert box(10, 1.0, 5.0).log_volumes[0] == pytest.approx(math.log(0.5))
    assert math.isnan(room(np.zeros(40), 1 + np.sqrt(np.arange(40.0)), np.ones(40), 60.0).log_volumes[0])  # too many sums: not measured


def random_rows(rng: np.random.Generator, d: int, rows: int = 1) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """A box, slopes of both signs, and limits that a point inside the box leaves a little room."""
    low = rng.normal(size=d) * 10
    high = low + rng.exponential(size=d) * 10.0 ** rng.integers(-1, 3, d)
    slope = rng.choice([-3.0, -1.0, 0.5, 1.0, 2.0], (rows, d))
    inside = low + (high - low) * rng.random(d)
    return low, high, slope, slope @ inside


def test_rooms_agree_with_triangulations_in_volume_and_law() -> None:
    """Random rows over random boxes of 2 to 4 reals: one direction each, all p-values together at 1 in 1,000."""
    rng = np.random.default_rng(3)
    found = []
    for i in range(60):
        d, equal = int(rng.integers(2, 5)), bool(i % 2)
        low, high, slope, limit = random_rows(rng, d)
        rooms = room(low, high, slope[0], float(limit[0]), equal)
        rows = (slope, limit, slope[:0], NONE) if not equal else (slope[:0], NONE, slope, limit)
        hull = Hull.make(*rows, low=low, high=high)
        assert hull is not None
        assert rooms.dimensions[0] == hull.dimension == d - equal
        assert rooms.log_volumes[0] == pytest.approx(hull.log_volume, abs=1e-7)
        way = rng.normal(size=d) / (high - low)
        mine, theirs = drawn(rooms, 2000, "hull", i), hull.draw(np.arange(2000), fixed_words("hull", i))
        assert (mine >= low).all()
        assert (mine <= high).all()
        found.append(stats.ks_2samp(mine @ way, theirs @ way).pvalue)
    assert min(found) > 1e-6
    assert stats.kstest(found, "uniform").pvalue > 1e-3


# -- edges ----------------------------------------------------------------------------------------------------------------


def test_what_leaves_one_point_or_all_of_the_box_is_not_proposed_in_vain() -> None:
    for equal in (False, True):
        nothing_left = box(4, 1.0, 0.0, equal)
        assert nothing_left.dimensions[0] == 0
        assert nothing_left.log_volumes[0] == 0
        assert (drawn(nothing_left, 5) == 0).all()
    top = box(4, 1.0, 4.0, equal=True)
    assert top.dimensions[0] == 0
    np.testing.assert_allclose(drawn(top, 5), 1.0)
    rounded = room(np.zeros(3), np.array([0.1, 0.2, 1.0]), np.ones(3), 0.1 + 0.2 + 1.0, equal=True)
    np.testing.assert_allclose(drawn(rounded, 3), [[0.1, 0.2, 1.0]] * 3)
    whole = box(3, 1.0, 3.0)
    assert whole.log_volumes[0] == 0
    assert ks(drawn(whole, 5000, "whole")[:, 1], "uniform") > ALPHA
    nearly = box(3, 1.0, 2.9999)  # a tilt of 0
    assert nearly._tilts[0] == 0
    assert drawn(nearly, 5000).sum(axis=1).max() <= 2.9999


def test_still_coordinates_and_coordinates_outside_the_row() -> None:
    """The first cannot move, the second is in no row: it is uniform, and independent of the others."""
    rooms = room(np.array([2.0, 0, 0, 0]), np.array([2.0, 5, 1, 1]), np.array([1.0, 0, 1, -1]), 2.5)
    assert rooms.dimensions[0] == 3
    y = drawn(rooms, 10_000, "still")
    assert (y[:, 0] == 2).all()
    assert ks(y[:, 1] / 5, "uniform") > ALPHA
    assert ks(((y[:, 2] - y[:, 3] + 1) ** 2 / 2)[y[:, 2] < y[:, 3]] * 2, "uniform") > ALPHA
    assert rooms.log_volumes[0] == pytest.approx(math.log(5 * 7 / 8))
    only = room(np.zeros(3), np.array([0.0, 0.0, 1.0]), np.ones(3), 0.25, equal=True)
    np.testing.assert_allclose(drawn(only, 2), [[0, 0, 0.25]] * 2)
    assert only.dimensions[0] == 0


def test_an_empty_room_is_known_and_not_drawn() -> None:
    for rooms in (box(3, 1.0, -0.1), box(3, 1.0, 3.1, equal=True), box(3, 1.0, -0.1, equal=True)):
        assert rooms.empty[0]
        assert rooms.dimensions[0] == -1
        assert rooms.log_volumes[0] == -math.inf
    nothing = Polytope(np.ones((1, 3)), np.array([-0.1]), low=np.zeros(3), high=np.ones(3))
    assert nothing.empty
    with pytest.raises(ValueError, match="empty"):
        nothing.draw(np.arange(1))


def test_many_rooms_at_once_are_each_drawn_as_if_alone() -> None:
    limits = np.array([0.0, 0.2, 1.0, 1.7, 3.0, 9.0])
    many = Rooms(np.zeros((6, 4)), np.tile([0.5, 1.0, 1.0, 2.0], (6, 1)), np.ones((6, 4)), limits)
    which = np.arange(600) % 6
    y = many.draw(which, np.arange(600), fixed_words("several"))
    for i, limit in enumerate(limits):
        alone = room(np.zeros(4), np.array([0.5, 1.0, 1.0, 2.0]), np.ones(4), limit)
        mine = np.flatnonzero(which == i)
        np.testing.assert_array_equal(alone.draw(np.zeros(100, dtype=np.int64), mine, fixed_words("several")), y[mine])


def test_what_a_row_says_of_a_form_is_known_where_it_does_not_vary() -> None:
    plane = box(3, 1.0, 1.0, equal=True)
    assert plane.value(0, np.full(3, 2.0)) == pytest.approx(2.0)
    assert plane.value(0, np.array([1.0, 1.0, 0.0])) is None
    assert box(3, 1.0, 0.0).value(0, np.array([1.0, 5.0, 2.0])) == 0.0
    assert box(3, 1.0, 1.0).value(0, np.ones(3)) is None


# -- several rows -----------------------------------------------------------------------------------------------------------


def proposals(made: Tilted) -> Any:
    def propose(_: np.ndarray, words: np.ndarray) -> tuple[FloatArray, np.ndarray]:
        values, good = made.propose(words)
        return np.stack([values[j] for j in sorted(values)], axis=1), good

    return propose


def test_tilted_proposals_agree_with_triangulations() -> None:
    """Random rows and equalities over 3 to 5 reals: one direction each, all p-values together at 1 in 1,000."""
    rng = np.random.default_rng(4)
    found = []
    for i in range(40):
        d, rows, same = int(rng.integers(3, 6)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
        low, high, slope, limit = random_rows(rng, d, rows + same)
        hull = Hull.make(slope[same:], limit[same:], slope[:same], limit[:same], low=low, high=high)
        assert hull is not None
        if hull.dimension != d - same:
            continue
        axes = {j: Axis.span(float(low[j]), float(high[j])) for j in range(d)}
        rows = [Side({j: axes[j].term(c) for j, c in enumerate(row.tolist())}, float(most)) for row, most in zip(slope, limit)]
        made = tilted(axes, rows[same:], rows[:same])
        if made.acceptance < 2.0**-11:
            continue
        assert made.log_volume(dict.fromkeys(range(d), 1.0)) == pytest.approx(hull.log_volume, abs=0.35)  # an estimate from 256 hits
        mine = first_accepted(np.arange(1500), fixed_words("tilted", i), made.width, proposals(made), d).points
        assert (mine @ slope[same:].T <= limit[same:] + 1e-7 * np.abs(slope).max() * np.abs(high).max()).all()
        way = rng.normal(size=d) / (high - low)
        found.append(stats.ks_2samp(mine @ way, hull.draw(np.arange(1500), fixed_words("hull", i)) @ way).pvalue)
    assert len(found) > 25
    assert min(found) > 1e-6
    assert stats.kstest(found, "uniform").pvalue > 1e-3


def test_two_rows_over_12_reals_have_the_law_of_plain_rejection() -> None:
    """Box rejection accepts a few per cent here. 3 checks."""
    rng = np.random.default_rng(6)
    A, b = np.array([[1.0] * 12, [(-1.0) ** j * (1 + j % 3) for j in range(12)]]), np.array([5.2, 1.0])
    made = Polytope(A, b, low=np.zeros(12), high=np.ones(12))
    hull = made.shapes[0].hull(0)
    assert hull.method == "tilted"
    assert hull.is_exact(weighed=False)
    assert not hull.is_exact(weighed=True)
    mine = made.draw(np.arange(5000))
    tried = rng.random((400_000, 12))
    theirs = tried[(tried @ A.T <= b).all(axis=1)]
    assert made.log_volume == pytest.approx(math.log(len(theirs) / len(tried)), abs=0.3)
    for way in (np.eye(12)[0], A[0], A[1]):
        assert stats.ks_2samp(mine @ way, theirs[:20_000] @ way).pvalue > ALPHA


def test_a_polytope_falls_into_pieces_that_share_no_row() -> None:
    """Two budgets over four reals each and a real with a bound of its own: two rooms and an interval, the volume of each known."""
    A = np.zeros((3, 9))
    A[0, :4], A[1, 4:8], A[2, 8] = 1.0, 1.0, 1.0
    made = Polytope(A, np.array([1.0, 2.0, 0.25]), low=np.zeros(9), high=np.ones(9))
    assert [type(shape) for shape in made.shapes] == [Rooms, Rooms]
    assert made.dimension == 9
    assert made.volume == pytest.approx(0.25 / 24 * float(volume([Fraction(1)] * 4, Fraction(2), 4)))
    y = made.draw(np.arange(5000))
    assert ks(y[:, 0], stats.beta(1, 4).cdf) > ALPHA
    assert ks(y[:, 8] * 4, "uniform") > ALPHA
    assert abs(np.corrcoef(y[:, 0], y[:, 4])[0, 1]) * math.sqrt(5000) < 4.5
    never = Polytope(np.ones((1, 3)), np.array([9.0]), low=np.zeros(3), high=np.ones(3))  # a row that cuts nothing
    assert never.volume == pytest.approx(1.0)
    assert not never.shapes


def test_a_row_over_more_than_127_reals_is_a_row() -> None:
    """How many coordinates a row has was counted in eight bits: 200 of them were none, and draws broke the row."""
    names = [f"r{i:03d}" for i in range(200)]
    im = InteractionModel([Feature(name, "real", bounds=(0, 1)) for name in names], [LinearConstraint(dict.fromkeys(names, 1.0), "<=", 60.0)])
    sample = im.sample(dict.fromkeys(names, 0.0), 200, seed=1)
    assert sample.parts[0].method == "polytope"
    total = sample.values.sum(axis=1)
    assert total.max() <= 60 * (1 + 1e-12)
    assert total.min() > 55  # nearly all of the volume is near the row


# -- many polytopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
def test_many_polytopes_with_the_same_rows_agree_with_each_by_itself(d: int) -> None:
    """Volumes to 9 digits, empty ones, flat ones; draws of some by 2 checks each, all p-values together at 1 in 1,000."""
    rng = np.random.default_rng(d)
    A = np.vstack([np.eye(d), -np.eye(d), np.ones((1, d)), np.r_[1.0, -0.5 * np.ones(d - 1)][None]])
    high, low = rng.uniform(500, 2000, (200, d)), -rng.uniform(0, 500, (200, d))
    B = np.column_stack([high, -low, 0.6 * high.sum(axis=1) * rng.choice([1.0, 1.0, 0.1], 200), 0.2 * high[:, 0]])
    B[0, 2 * d] = low[0].sum() - 1.0  # nothing
    B[1, 2 * d] = low[1].sum()  # a corner
    B[2, 0] = low[2, 0]  # flat: the first coordinate cannot move
    many = Polytopes(A, B)
    assert many.empty[0]
    assert many.dimensions[:3].tolist() == [-1, 0, d - 1]
    np.testing.assert_allclose(many.draw(np.array([1]), np.arange(1), fixed_words("corner"))[0], low[1])
    found = []
    for i in range(3, 60):
        hull = Hull.make(A[2 * d :], B[i, 2 * d :], np.zeros((0, d)), NONE, low=low[i], high=high[i])
        assert (hull is None) == many.empty[i]
        if hull is not None:
            assert many.log_volumes[i] == pytest.approx(hull.log_volume, abs=1e-9)
            mine = many.draw(np.full(800, i), np.arange(800), fixed_words("many", i))
            assert (mine @ A.T <= B[i] + 1e-6).all()
            theirs = hull.draw(np.arange(800), fixed_words("each", i))
            found += [stats.ks_2samp(mine @ way, theirs @ way).pvalue for way in (np.eye(d)[0], np.ones(d))]
    assert min(found) > 1e-6
    assert stats.kstest(found[::2], "uniform").pvalue > 1e-3


def test_many_polytopes_with_equalities_are_solved_out_first() -> None:
    A = np.vstack([np.eye(3), -np.eye(3)])
    B = np.array([[1.0, 1, 1, 0, 0, 0], [0.5, 0.5, 0.5, 0, 0, 0], [1.0, 1, 1, 0, 0, 0]])
    many = Polytopes(A, B, np.ones((1, 3)), np.array([[1.0], [1.0], [7.0]]))
    assert many.width == 3
    np.testing.assert_allclose(np.exp(many.log_volumes), [math.sqrt(3) / 2, math.sqrt(3) / 8, 0.0])
    assert many.empty.tolist() == [False, False, True]
    y = many.draw(np.zeros(5000, dtype=int), np.arange(5000), fixed_words("plane"))
    np.testing.assert_allclose(y.sum(axis=1), 1.0)
    assert ks(y[:, 0], stats.beta(1, 2).cdf) > ALPHA


def test_as_many_equalities_as_reals_leave_a_point() -> None:
    im = InteractionModel(
        [Feature(name, "real", bounds=(0, 10)) for name in "rs"],
        [LinearConstraint({"r": 1, "s": 1}, "==", 4), LinearConstraint({"r": 2, "s": -1}, "==", 2)],
    )
    assert im.enumerate({"r": 2.0, "s": 2.0}).values.tolist() == [[2.0, 2.0]]


# -- words --------------------------------------------------------------------------------------------------------------------


def samplers() -> dict[str, Polytope]:
    rng = np.random.default_rng(0)
    A = rng.integers(1, 10, (3, 10)).astype(float)
    ones = np.ones
    return {
        "shares": Polytope(np.zeros((0, 20)), NONE, ones((1, 20)), ones(1), low=np.zeros(20), high=ones(20)),
        "capped shares": Polytope(np.zeros((0, 20)), NONE, ones((1, 20)), ones(1), low=np.zeros(20), high=np.full(20, 0.1)),
        "50 reals": Polytope(ones((1, 50)), np.array([20.0]), low=np.zeros(50), high=ones(50)),
        "tilted": Polytope(A, np.full(3, 16.0), low=np.zeros(10), high=ones(10)),
        "triangulated": Polytope(A[:, :4], np.full(3, 6.0), low=np.zeros(4), high=ones(4)),
    }


@pytest.mark.parametrize("name", list(samplers()))
def test_the_first_100_of_200_draws_are_the_draws_of_100(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit; so is any draw by itself, and with other amounts of memory."""
    polytope = samplers()[name]
    every = polytope.draw(np.arange(200))
    np.testing.assert_array_equal(polytope.draw(np.arange(100)), every[:100])
    np.testing.assert_array_equal(polytope.draw(np.array([150, 3])), every[[150, 3]])
    for i in range(20):
        np.testing.assert_array_equal(polytope.draw(np.array([i]))[0], every[i])
    assert len(np.unique(every, axis=0)) == 200


def test_a_small_acceptance_is_cheap_and_what_is_accepted_is_the_first() -> None:
    """1 in 10,000: as many calls as the logarithm of that, and the first accepted in order of attempts."""
    calls: list[int] = []
    inner = fixed_words("rare")

    def words(draws: np.ndarray, attempt: int, width: int) -> np.ndarray:
        calls.append(len(draws))
        return inner(draws, attempt, width)

    def propose(at: np.ndarray, w: np.ndarray) -> tuple[FloatArray, np.ndarray]:
        u = unit(w)
        return u[:, 1:], u[:, 0] < 1e-4

    many = first_accepted(np.arange(50), words, 2, propose, 1)
    assert many.found.all()
    assert sum(calls) < 50 * 40
    assert many.accepted / many.proposed == pytest.approx(1e-4, rel=0.7)
    some = first_accepted(np.array([7, 49]), words, 2, propose, 1)
    np.testing.assert_array_equal(some.points, many.points[[7, 49]])
    spent = first_accepted(np.arange(5), inner, 2, lambda at, w: (unit(w)[:, 1:], np.zeros(len(w), dtype=bool)), 1, most=1000)
    assert not spent.found.any()
    assert spent.proposed == 5 * 1023
    assert np.isnan(spent.points).all()


def test_a_budget_that_is_spent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.reach import room as module

    def none(draws: np.ndarray, words: Words, width: int, propose: object, columns: int) -> accept.Accepted:
        return accept.Accepted(np.full((len(draws), columns), np.nan), np.zeros(len(draws), dtype=bool), 100, 0)

    monkeypatch.setattr(module, "first_accepted", none)
    with pytest.raises(DrawError, match=r"5 of 5 draws .* were not accepted"):
        drawn(box(3, 1.0, 1.5), 5)
