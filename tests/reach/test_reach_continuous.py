"""Continuous and mixed parts against closed forms: every test is a probability-integral test with a stated false alarm.

A single check has a false alarm of 1 in 10,000 (``ALPHA``), for a fixed seed; a test with k checks has k in 10,000.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from reach_kit import Polytope, flat, ks, random_cases
from scipy import stats

from budge import Feature, InteractionModel
from budge.constraints import AdditiveLinkage, DirectionalLinkage, IfThen, LinearConstraint, Predicate, Reachability, Rule, Switch
from budge.distributions import Distribution
from budge.errors import DrawError, EmptyError, ReachError
from budge.reach import piece
from budge.reach.prepare import prepare

ALPHA = 1e-4
N = 20_000


def drawn(im: InteractionModel, x: dict[str, Any], n: int = N, seed: int = 7) -> dict[str, np.ndarray]:
    """Draws by feature, all of them feasible."""
    sample = im.sample(x, n, seed=seed, on_invalid="keep")
    start = np.array(list(im.start(x).values()))
    assert im.feasible(x, sample.values - start).all()
    return dict(zip((f.name for f in im.features), sample.values.T))


def share(hits: np.ndarray, p: float) -> float:
    """Two-sided p-value of a share of hits."""
    return float(stats.binomtest(int(hits.sum()), len(hits), p).pvalue)


def real(name: str, low: float = 0.0, high: float = 1.0, **more: Any) -> Feature:
    return Feature(name, "real", bounds=(low, high), **more)


# -- boxes ------------------------------------------------------------------------------------------------------------


def test_a_lone_real_feature_is_uniform_over_its_moves() -> None:
    im = InteractionModel([real("a"), real("b", direction="increase"), real("c", max_decrease=0.1, max_increase=0.3), real("d")])
    got = drawn(im, {"a": 0.3, "b": 0.3, "c": 0.3, "d": 1.5})
    assert ks(got["a"], flat(0, 1)) > ALPHA
    assert ks(got["b"], flat(0.3, 1)) > ALPHA
    assert ks(got["c"], flat(0.2, 0.6)) > ALPHA
    assert ks(got["d"], flat(0, 1.5)) > ALPHA  # a start outside may stay or move towards the range


def test_a_missing_value_stays_missing_beside_others_that_move() -> None:
    im = InteractionModel([real("a", missing="fixed"), real("b"), Feature("c", "binary", missing="fixed")], [Rule("b <= 0.5")])
    sample = im.sample({"a": None, "b": 0.1, "c": None}, 2000, seed=3)
    assert sample.points["a"].isna().all()
    assert sample.points["c"].isna().all()
    assert ks(sample.values[:, 1], flat(0, 0.5)) > ALPHA


# -- equalities -------------------------------------------------------------------------------------------------------


def test_a_budget_equality_is_solved_for_one_coordinate() -> None:
    """Savings and checking change by 1000 in all: savings is uniform over what checking leaves it."""
    im = InteractionModel(
        [real("savings", 0, 5000), real("checking", 0, 2000)],
        [LinearConstraint({"savings": 1, "checking": 1}, "==", 1000, on="action")],
    )
    got = drawn(im, {"savings": 1000.0, "checking": 500.0})
    np.testing.assert_allclose(got["savings"] + got["checking"], 2500, atol=1e-6)
    assert ks(got["savings"], flat(500, 2500)) > ALPHA
    assert im.sample({"savings": 1000.0, "checking": 500.0}, 5).parts[0].acceptance == 1.0


def test_two_equalities_over_four_features_leave_a_plane() -> None:
    """a + b = 1 and c = d: two independent uniforms."""
    im = InteractionModel([real(n) for n in "abcd"], [Rule("a + b == 1"), Rule("c == d"), Rule("a + c <= 9")])
    got = drawn(im, {"a": 0.5, "b": 0.5, "c": 0.2, "d": 0.2})
    np.testing.assert_allclose(got["a"] + got["b"], 1, atol=1e-9)
    np.testing.assert_allclose(got["c"], got["d"], atol=1e-9)
    assert ks(got["a"], flat(0, 1)) > ALPHA
    assert ks(got["c"], flat(0, 1)) > ALPHA
    assert abs(np.corrcoef(got["a"], got["c"])[0, 1]) * math.sqrt(N) < 3.9


def test_what_leaves_one_feature_arrives_in_others() -> None:
    im = InteractionModel(
        [real("moved", 0, 3), real("a", 0, 9), real("b", 0, 9)], [AdditiveLinkage("moved", 1, {"a": 1, "b": 1})]
    )
    got = drawn(im, {"moved": 0.0, "a": 0.0, "b": 0.0})
    np.testing.assert_allclose(got["moved"], got["a"] + got["b"], atol=1e-9)
    assert ks((got["moved"] / 3) ** 2, "uniform") > ALPHA  # a triangle: more room where more is moved
    assert ks(got["a"] / got["moved"], "uniform") > ALPHA


# -- polytopes ----------------------------------------------------------------------------------------------------------


def simplex(d: int, scales: np.ndarray) -> InteractionModel:
    names = [f"r{i}" for i in range(d)]
    return InteractionModel(
        [real(n, 0, s) for n, s in zip(names, scales)],
        [LinearConstraint({n: float(1 / s) for n, s in zip(names, scales)}, "<=", 1)],
    )


@pytest.mark.parametrize("d", [2, 3, 5, 6, 8, 20])
@pytest.mark.parametrize("skewed", [False, True])
def test_a_simplex_is_drawn_exactly(d: int, skewed: bool) -> None:
    """Each coordinate has the law Beta(1, d), their sum Beta(d, 1); scales may differ by 10^6."""
    scales = 10.0 ** np.linspace(0, 6, d) if skewed else np.ones(d)
    im = simplex(d, scales)
    x = {f.name: 0.0 for f in im.features}
    sample = im.sample(x, 8000, seed=d)
    assert sample.exact
    assert "approximate" not in str(sample)
    assert im.feasible(x, sample.values).all()
    u = sample.values / scales
    for column in u.T:
        assert ks(column, stats.beta(1, d).cdf) > ALPHA
    assert ks(u.sum(axis=1), stats.beta(d, 1).cdf) > ALPHA


def ladder(d: int) -> InteractionModel:
    """r0 <= r1 <= …, and r0 <= the last, which follows: too many rows for anything but hit-and-run."""
    names = [f"r{i}" for i in range(d)]
    return InteractionModel([real(n) for n in names], [Rule(f"{a} <= {b}") for a, b in [*itertools.pairwise(names), (names[0], names[-1])]])


def test_a_ladder_in_8_dimensions_is_drawn_by_hit_and_run_and_says_so() -> None:
    """The j-th of 8 has the law Beta(j, 9 - j): 8 tests, a false alarm of 8 in 100,000."""
    d, n = 8, 3000
    im = ladder(d)
    x = {f.name: 0.5 for f in im.features}
    sample = im.sample(x, n, seed=3)
    assert not sample.exact
    assert sample.parts[0].method == "hit-and-run (approximate)"
    assert "approximate (MCMC)" in str(sample)
    assert "approximate (MCMC)" in str(sample.parts[0])
    assert "steps per draw, chains from the middle and from corners within" in str(sample.parts[0])
    assert im.feasible(x, sample.values - 0.5).all()
    for j, column in enumerate(sample.values.T, 1):
        assert ks(column, stats.beta(j, d + 1 - j).cdf) > ALPHA / 10


def test_a_polytope_that_hit_and_run_cannot_mix_is_an_error_not_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.reach import walks

    walks._measured.cache_clear()
    monkeypatch.setattr(walks, "SHORTEST", 1)
    monkeypatch.setattr(walks, "LONGEST", 2)
    im = ladder(8)
    with pytest.raises(DrawError, match="has not mixed"):
        im.sample({f.name: 0.5 for f in im.features}, 5)
    walks._measured.cache_clear()


def test_volumes_of_polytopes_are_those_of_geometry() -> None:
    for d in range(1, 6):
        found = Polytope(np.ones((1, d)), np.ones(1), low=np.zeros(d), high=np.ones(d))
        assert found.volume == pytest.approx(1 / math.factorial(d))
    plane = Polytope(np.zeros((0, 3)), np.zeros(0), np.ones((1, 3)), np.ones(1), low=np.zeros(3), high=np.ones(3))
    assert plane.dimension == 2
    assert plane.volume == pytest.approx(math.sqrt(3) / 2)
    wide = Polytope(np.array([[1.0, 1e-5]]), np.ones(1), low=np.zeros(2), high=np.array([1.0, 1e5]))
    assert wide.volume == pytest.approx(0.5e5)
    flat_one = Polytope(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, -1.0]), low=np.zeros(2), high=np.ones(2))
    assert flat_one.dimension == 1
    assert flat_one.volume == pytest.approx(math.sqrt(2))
    point = Polytope(np.array([[1.0, 1.0]]), np.zeros(1), low=np.zeros(2), high=np.ones(2))
    assert (point.dimension, point.volume) == (0, 1.0)
    assert Polytope(np.array([[1.0, 1.0]]), np.array([-0.1]), low=np.zeros(2), high=np.ones(2)).empty


@pytest.mark.parametrize(
    ("costs", "total"),
    [
        ((0.526837, 1.369955, 0.786665, 1.963299, 0.661216), 1.52064),
        ((0.734203, 1.567431, 1.766166, 1.516698, 1.053232), 1.85445),
        ((1.456131, 1.513651, 1.337418, 1.080942, 1.435854), 1.898138),
    ],
)
def test_corners_in_which_many_rows_meet_count_once(costs: tuple[float, ...], total: float) -> None:
    """A total of absolute moves in five dimensions: 16 rows meet in each of ten corners, and rounding must not make thin facets of them."""
    names = [f"y{i}" for i in range(5)]
    spent = " + ".join(f"{c} * abs(action.{n})" for c, n in zip(costs, names))
    im = InteractionModel([real(n, -9, 9) for n in names], [Rule(f"{spent} <= {total}")])
    got = drawn(im, dict.fromkeys(names, 0.0), n=3000)
    used = sum(c * np.abs(got[n]) for c, n in zip(costs, names)) / total
    assert ks(used**5, "uniform") > ALPHA
    signs = np.array(list(itertools.product([1, -1], repeat=5)))
    found = Polytope(signs * np.array(costs), np.full(32, total), low=np.full(5, -9.0), high=np.full(5, 9.0))
    assert found.volume == pytest.approx((2 * total) ** 5 / math.factorial(5) / math.prod(costs))


# -- mixed parts ----------------------------------------------------------------------------------------------------------

FLAG = [Feature("flag", "binary"), real("balance", 0, 10)]


def test_a_mixed_if_then_has_equal_configurations_or_equal_volumes() -> None:
    im = InteractionModel(FLAG, [IfThen("flag == 1", "balance >= 6")])
    x = {"flag": 0, "balance": 3.0}
    for measure, p in (("configuration", 1 / 2), ("volume", 4 / 14)):
        got = drawn(im.with_measure(measure), x)  # type: ignore[arg-type]
        on = got["flag"] == 1
        assert share(on, p) > ALPHA
        assert ks(got["balance"][on], flat(6, 10)) > ALPHA
        assert ks(got["balance"][~on], flat(0, 10)) > ALPHA


def test_a_switch_that_freezes_a_balance_is_drawn_half_the_time_or_by_volume_never() -> None:
    im = InteractionModel(FLAG, [Switch("flag == 1", ("balance",))])
    x = {"flag": 0, "balance": 2.5}
    got = drawn(im, x)
    on = got["flag"] == 1
    assert share(on, 1 / 2) > ALPHA
    assert (got["balance"][on] == 2.5).all()
    assert ks(got["balance"][~on], flat(0, 10)) > ALPHA
    assert not drawn(im.with_measure("volume"), x)["flag"].any()


def test_the_measures_are_told_apart_where_they_differ() -> None:
    one = InteractionModel(FLAG, [IfThen("flag == 1", "balance >= 6")]).parts[0]
    assert prepare(one, {"flag": 0.0, "balance": 3.0})[0][1].measures_differ[0]
    even = InteractionModel(FLAG, [IfThen("flag == 1", "balance >= 5"), IfThen("flag == 0", "balance <= 5")]).parts[0]
    assert not prepare(even, {"flag": 0.0, "balance": 3.0})[0][1].measures_differ[0]


def test_wide_numbers_are_uniform_where_whole_points_are_proposed_again() -> None:
    """By volume, what is not accepted is proposed again as a whole, wide numbers included."""
    features = [Feature("flag", "binary"), Feature("wide", "integer", bounds=(0, 1000)), real("a", 0, 2), real("b", 0, 2)]
    im = InteractionModel(features, [Rule("a * a + b * b <= 1 + flag"), Rule("wide <= 900 + 50 * flag")], measure="volume")
    got = drawn(im, {"flag": 0, "wide": 10, "a": 0.5, "b": 0.5})
    assert share(got["flag"] == 1, 2 * 951 / (2 * 951 + 901)) > ALPHA
    for flag, top in ((0, 900), (1, 950)):
        wide = got["wide"][got["flag"] == flag]
        assert stats.chisquare(np.bincount((wide * 10 // (top + 1)).astype(int)), expected(wide, top)).pvalue > ALPHA


def expected(wide: np.ndarray, top: int) -> np.ndarray:
    """How many of these fall into each of ten equal stretches, where all numbers up to the top are equally likely."""
    return np.bincount(np.arange(top + 1) * 10 // (top + 1)) * len(wide) / (top + 1)


def test_a_strict_bound_that_leaves_only_the_boundary_leaves_nothing() -> None:
    """``balance > 10`` where 10 is the bound: the flag cannot be set at all."""
    im = InteractionModel(FLAG, [IfThen("flag == 1", "balance > 10")])
    assert not drawn(im, {"flag": 0, "balance": 3.0})["flag"].any()
    must = InteractionModel(FLAG, [Switch("flag == 1", ("balance",), otherwise="any"), Rule("flag == 0 and balance == before.balance")])
    with pytest.raises(EmptyError):
        must.sample({"flag": 0, "balance": 3.0}, 5)
    edge = InteractionModel([real("a"), real("b"), Feature("flag", "binary")], [Rule("a + b <= 0 or flag == 0"), IfThen("flag == 1", "a + b > 0")])
    assert not drawn(edge, {"a": 0.0, "b": 0.0, "flag": 0}, n=500)["flag"].any()


def test_a_disjunction_over_two_reals_is_drawn_by_disjoint_cells() -> None:
    im = InteractionModel([real("a"), real("b")], [Rule("a <= 0.25 or b >= 0.75")])
    got = drawn(im, {"a": 0.1, "b": 0.1})
    area = 0.25 + 0.75 * 0.25
    assert im.sample({"a": 0.1, "b": 0.1}, 2).parts[0].acceptance == 1.0
    assert share(got["a"] <= 0.25, 0.25 / area) > ALPHA
    assert ks(got["b"][got["a"] <= 0.25], flat(0, 1)) > ALPHA
    assert ks(got["b"][got["a"] > 0.25], flat(0.75, 1)) > ALPHA
    assert ks(got["a"][got["a"] > 0.25], flat(0.25, 1)) > ALPHA


def test_a_real_feature_with_listed_values_takes_each_equally_often() -> None:
    im = InteractionModel([real("a", 0, 9), real("b")], [Reachability(("a",), ((0.5,), (2.0,), (7.25,))), Rule("a + b >= 0")])
    got = drawn(im, {"a": 2.0, "b": 0.5})
    for value in (0.5, 2.0, 7.25):
        assert share(np.isclose(got["a"], value), 1 / 3) > ALPHA
    assert ks(got["b"], flat(0, 1)) > ALPHA


# -- what is not linear -----------------------------------------------------------------------------------------------------


def test_a_product_of_two_reals_is_drawn_by_rejection() -> None:
    """a·b <= 1 on [0, 2]²: an area of 1 + ln 4."""
    im = InteractionModel([real("a", 0, 2), real("b", 0, 2)], [Rule("a * b <= 1")])
    got = drawn(im, {"a": 0.5, "b": 0.5})
    total = 1 + math.log(4)
    for name in "ab":
        assert ks(got[name], lambda v: np.where(v < 0.5, 2 * v, 1 + np.log(2 * np.maximum(v, 0.5))) / total) > ALPHA
    part = im.sample({"a": 0.5, "b": 0.5}, 1000).parts[0]
    assert part.method == "rejection"
    assert part.acceptance == pytest.approx(total / 4, abs=0.05)


def test_a_corner_is_drawn_from_the_tightest_box_not_from_the_whole() -> None:
    """A ten-millionth of the square: narrowed to a box of twice its size. The law of r given r * s >= c is known."""
    c = 1 - 1e-4
    im = InteractionModel([real("r"), real("s")], [Rule(f"r * s >= {c!r}")])
    sample = im.sample({"r": 0.5, "s": 0.5}, 4000, seed=3, on_invalid="keep")
    assert sample.parts[0].acceptance > 0.2
    r = sample.values[:, 0]
    assert r.min() >= c
    total = 1 - c + c * math.log(c)
    assert ks(r, lambda v: (v - c - c * np.log(v / c)) / total) > ALPHA


def test_a_configuration_in_which_a_curved_rule_cannot_hold_has_no_point() -> None:
    features = [Feature("c", "binary"), real("r"), real("s")]
    im = InteractionModel(features, [Rule("r * s >= 2 * c")])
    got = drawn(im, {"c": 0, "r": 0.1, "s": 0.2}, n=500)
    assert not got["c"].any()
    must = InteractionModel(features, [Rule("r * s >= 2 * c", name="curve"), Rule("c == 1", name="on")])
    with pytest.raises(EmptyError, match="curve"):
        must.sample({"c": 1, "r": 0.1, "s": 0.2}, 5, on_invalid="keep")
    then = InteractionModel(features, [IfThen("c == 1 and s >= 0", "r * s >= 2 or r * s >= 0.999")])
    got = drawn(then, {"c": 0, "r": 0.1, "s": 0.2}, n=2000)
    assert share(got["c"] == 1, 1 / 2) > ALPHA
    assert (got["r"] * got["s"])[got["c"] == 1].min() >= 0.999 - 1e-9


def test_narrowing_a_box_leaves_the_law_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random curved rules, with and without narrowing: the same configurations, the same law of every feature."""
    from budge.reach import viable

    features = [Feature("k", "integer", bounds=(0, 2)), real("r", -1, 1), real("s", 0, 2)]
    rules = ["r * s >= 0.8 * k", "r * r + s * s <= 0.3 + k", "abs(r * s) <= 0.02 + 0.1 * k", "max(r, s) * s <= 0.1 or k == 2"]
    for i, rule in enumerate(rules):
        found = []
        for often in (0.0, 2.0):  # never narrowed, always narrowed
            monkeypatch.setattr(viable, "OFTEN", often)
            found.append(drawn(InteractionModel(features, [Rule(rule)]), {"k": 0, "r": 0.0, "s": 0.0}, n=4000, seed=i + round(often)))
        for name in ("k", "r", "s"):
            assert stats.ks_2samp(found[0][name], found[1][name], method="asymp").pvalue > ALPHA


@pytest.mark.parametrize("measure", ["configuration", "volume"])
def test_cells_that_are_narrowed_are_weighed_by_what_is_left_of_them(measure: str) -> None:
    """Two cells, a curved rule that hardly anything passes: the second cell is cut to a strip, and must lose its weight with it."""
    im = InteractionModel([real("a"), real("b")], [Rule("a <= 0.5 or b <= 0.5"), Rule("a * b <= 0.004")], measure=measure)  # type: ignore[arg-type]
    got = drawn(im, {"a": 0.0, "b": 0.0})
    assert share(got["a"] > 0.5, math.log(2) / (1 + math.log(250))) > ALPHA
    assert ks(got["a"], lambda v: np.where(v < 0.004, v / 0.004, 1 + np.log(np.maximum(v, 0.004) / 0.004)) / (1 + math.log(250))) > ALPHA


def test_a_product_with_a_whole_number_is_linear_once_that_is_known() -> None:
    im = InteractionModel([Feature("k", "integer", bounds=(1, 4)), real("r", 0, 2)], [Rule("k * r <= 2")])
    got = drawn(im, {"k": 1, "r": 0.5})
    assert im.sample({"k": 1, "r": 0.5}, 2).parts[0].method == "box"
    for k in (1, 2, 3, 4):
        assert share(got["k"] == k, 1 / 4) > ALPHA
        assert ks(got["r"][got["k"] == k], flat(0, min(2, 2 / k))) > ALPHA


def test_a_predicate_over_reals_and_whole_numbers_keeps_configurations_equal_or_volumes() -> None:
    def inside(v: Any) -> Any:
        return v["r"] ** 2 <= v["k"]

    im = InteractionModel([Feature("k", "integer", bounds=(1, 4)), real("r", 0, 2)], [Predicate(("k", "r"), inside)])
    x = {"k": 1, "r": 0.5}
    roots = np.sqrt(np.arange(1, 5))
    for measure, law in (("configuration", np.full(4, 0.25)), ("volume", roots / roots.sum())):
        got = drawn(im.with_measure(measure), x)  # type: ignore[arg-type]
        for k in (1, 2, 3, 4):
            assert share(got["k"] == k, law[k - 1]) > ALPHA
            assert ks(got["r"][got["k"] == k], flat(0, roots[k - 1])) > ALPHA


def test_a_configuration_whose_only_point_fails_is_not_drawn() -> None:
    im = InteractionModel([*FLAG, real("rate")], [Switch("flag == 1", ("balance", "rate")), Rule("balance * rate <= 1")])
    got = drawn(im, {"flag": 0, "balance": 4.0, "rate": 0.9}, n=2000)  # frozen where 3.6 > 1
    assert not got["flag"].any()


def test_many_cells_are_checked_instead_and_stay_exact() -> None:
    """Nine alternatives in each of two features give 81 cells at once; the law is the same by rejection."""
    steps = " or ".join(f"{i / 10} <= NAME <= {i / 10 + 0.05}" for i in range(9))
    im = InteractionModel(
        [real("a"), real("b")], [Rule(steps.replace("NAME", "a")), Rule(steps.replace("NAME", "b")), Rule("a + b <= 2")]
    )
    got = drawn(im, {"a": 0.01, "b": 0.01})
    for name in "ab":
        assert ks(got[name] % 0.1, flat(0, 0.05)) > ALPHA
        counts = np.bincount((got[name] * 10 + 1e-9).astype(int), minlength=9)
        assert stats.chisquare(counts).pvalue > ALPHA


# -- linkages -----------------------------------------------------------------------------------------------------------------


def test_a_whole_target_linked_at_most_to_a_real_source() -> None:
    """The induced whole number is a coordinate of the configuration: 0 to 3 equally likely, the source uniform above it."""
    im = InteractionModel(
        [real("s", 0, 3), Feature("t", "integer", bounds=(0, 9), actionable=False)], [DirectionalLinkage("s", {"t": 1}, "<=")]
    )
    got = drawn(im, {"s": 0.0, "t": 2})
    for k in range(4):
        at = got["t"] == 2 + k
        assert share(at, 1 / 4) > ALPHA
        if k < 3:
            assert ks(got["s"][at], flat(k, 3)) > ALPHA
        else:
            np.testing.assert_allclose(got["s"][at], 3)


@pytest.mark.parametrize("relation", ["<=", ">="])
def test_a_real_target_linked_to_a_whole_source(relation: str) -> None:
    """At most: between 0 and half the move; at least: between that and half the furthest move, nothing for who stays."""
    im = InteractionModel(
        [Feature("s", "integer", bounds=(0, 3), direction="increase"), real("t", 0, 9, actionable=False)],
        [DirectionalLinkage("s", {"t": 0.5}, relation)],  # type: ignore[arg-type]
    )
    got = drawn(im, {"s": 0, "t": 1.0})
    for k in range(4):
        at = got["s"] == k
        assert share(at, 1 / 4) > ALPHA
        low, high = (0.0, k / 2) if relation == "<=" else (k / 2, 1.5 if k else 0.0)
        if low < high:
            assert ks(got["t"][at], flat(1 + low, 1 + high)) > ALPHA
        else:
            np.testing.assert_allclose(got["t"][at], 1 + low)


def test_a_real_target_follows_its_real_source_and_adds_its_own_action() -> None:
    im = InteractionModel([real("s", 0, 1), real("t", 0, 1)], [DirectionalLinkage("s", {"t": 2})])
    got = drawn(im, {"s": 0.0, "t": 0.5})
    assert ks(got["s"], flat(0, 1)) > ALPHA
    assert ks(got["t"] - 2 * got["s"], flat(0, 1)) > ALPHA
    kept = drawn(InteractionModel(im.features, [DirectionalLinkage("s", {"t": 2}, on_exceed="reject")]), {"s": 0.0, "t": 0.5})
    # own action in [0, 1] and own action + 2 s <= 1: a triangle in (s, t)
    assert ks(1 - (1 - 2 * kept["s"]) ** 2, "uniform") > ALPHA


def test_a_real_target_that_stops_at_its_bound_leaves_its_source_uniform() -> None:
    im = InteractionModel(
        [real("s", 0, 10), real("t", 0, 5, actionable=False)], [DirectionalLinkage("s", {"t": 1}, on_exceed="clip")]
    )
    got = drawn(im, {"s": 0.0, "t": 1.0})
    assert ks(got["s"], flat(0, 10)) > ALPHA
    np.testing.assert_allclose(got["t"], np.minimum(1 + got["s"], 5))
    read = InteractionModel(im.features, [*im.constraints, Rule("t <= 4.5 or s >= 8")])  # and a rule that reads it
    got = drawn(read, {"s": 0.0, "t": 1.0})
    assert share(got["s"] < 4, 3.5 / 5.5) > ALPHA


def test_a_whole_target_that_moves_by_itself_and_at_least_as_its_real_source_says() -> None:
    """Own steps -1 and 0, induced between s/2 and its furthest: only sources whose interval holds a whole number are left."""
    im = InteractionModel(
        [real("s", 0, 4, direction="increase"), Feature("t", "integer", bounds=(-9, 9), max_decrease=1, max_increase=0)],
        [DirectionalLinkage("s", {"t": 0.5}, ">=")],
    )
    got = drawn(im, {"s": 1.0, "t": 0})  # s/2 up to 1.5: it holds 1 while s moves by at most 2, and 0 where s stays
    assert set(got["t"]) == {-1.0, 0.0, 1.0}
    for t, high in ((0.0, 3.0), (1.0, 3.0)):
        assert ks(got["s"][got["t"] == t], flat(1, high)) > ALPHA
    assert (got["s"][got["t"] == -1] == 1).all()  # only by itself


def test_a_switch_on_the_own_action_of_a_target_that_stops_is_linear() -> None:
    im = InteractionModel(
        [Feature("flag", "binary"), real("s", 0, 10), real("t", 0, 5, actionable=False)],
        [DirectionalLinkage("s", {"t": 1}, on_exceed="clip"), Switch("flag == 1", ("s", "t"))],
    )
    sample = im.sample({"flag": 0, "s": 1.0, "t": 1.0}, 10)
    assert sample.parts[0].method == "box"


def test_a_real_target_at_most_its_real_source_fills_the_triangle() -> None:
    im = InteractionModel([real("s", -1, 1), real("t", -9, 9, actionable=False)], [DirectionalLinkage("s", {"t": 1}, "<=")])
    got = drawn(im, {"s": 0.0, "t": 0.0})
    assert ks(got["s"] ** 2, "uniform") > ALPHA
    assert share(got["s"] > 0, 1 / 2) > ALPHA
    assert ks(got["t"] / got["s"], "uniform") > ALPHA


# -- distributions --------------------------------------------------------------------------------------------------------------

LOG = Distribution("log")


def test_a_log_distribution_alone_and_restricted() -> None:
    im = InteractionModel([real("a", 1, 100, distribution=LOG), real("b", 1, 100, distribution=LOG)], [Rule("b <= 10")])
    got = drawn(im, {"a": 2.0, "b": 2.0})
    assert ks(np.log(got["a"]) / math.log(100), "uniform") > ALPHA
    assert ks(np.log(got["b"]) / math.log(10), "uniform") > ALPHA


def test_a_log_distribution_beside_a_uniform_one_under_a_budget() -> None:
    """Density 1/a on the triangle a + b <= 2 with a >= 1: the marginal of a is (2 - a)/a."""
    im = InteractionModel([real("a", 1, 2, distribution=LOG), real("b", 0, 1)], [Rule("a + b <= 2")])
    got = drawn(im, {"a": 1.0, "b": 0.5})
    total = 2 * math.log(2) - 1
    assert ks(got["a"], lambda v: (2 * np.log(v) - (v - 1)) / total) > ALPHA


def test_a_log_distribution_weighs_volumes_by_logarithms() -> None:
    im = InteractionModel([Feature("flag", "binary"), real("a", 1, 100, distribution=LOG)], [IfThen("flag == 1", "a <= 10")])
    assert share(drawn(im, {"flag": 0, "a": 2.0})["flag"] == 1, 1 / 2) > ALPHA
    assert share(drawn(im.with_measure("volume"), {"flag": 0, "a": 2.0})["flag"] == 1, 1 / 3) > ALPHA


def test_a_log_distribution_on_a_linked_target_weighs_configurations_by_logarithms() -> None:
    """The target lies between 1 and 3 where the source stays, and between 2 and 3 where it moves: densities of both must compare."""
    im = InteractionModel(
        [Feature("k", "binary"), real("t", 1, 3, distribution=LOG)], [DirectionalLinkage("k", {"t": 1}, on_exceed="reject")]
    )
    x = {"k": 0, "t": 1.0}
    for measure, p in (("configuration", 1 / 2), ("volume", math.log(3 / 2) / (math.log(3 / 2) + math.log(3)))):
        got = drawn(im.with_measure(measure), x)  # type: ignore[arg-type]
        moved = got["k"] == 1
        assert share(moved, p) > ALPHA
        assert ks(np.log(got["t"][~moved]) / math.log(3), "uniform") > ALPHA
        assert ks(np.log(got["t"][moved] / 2) / math.log(3 / 2), "uniform") > ALPHA


def test_a_log_distribution_needs_values_above_zero() -> None:
    im = InteractionModel([real("a", 1, 9, distribution=LOG)])
    with pytest.raises(DrawError, match=r"feature a: .*above 0"):  # a start below its bounds reaches down to itself
        im.sample({"a": -0.5}, 5, on_invalid="keep")
    features = [Feature("flag", "binary", actionable=False), real("a", 1, 9, distribution=LOG)]
    frozen = InteractionModel(features, [Switch("flag == 1", ("a",))])
    assert frozen.sample({"flag": 1, "a": 0.0}, 5, on_invalid="keep").values[:, 1].tolist() == [0.0] * 5


def test_an_empirical_distribution_on_a_real_feature_draws_what_is_listed() -> None:
    law = Distribution.from_spec({"empirical": [0.1, 0.3, 0.3, 5.0]})
    im = InteractionModel([Feature("a", "real", distribution=law), real("b")], [Rule("a <= 1 or b >= 2")])
    got = drawn(im, {"a": 0.2, "b": 0.5})
    assert share(np.isclose(got["a"], 0.3), 2 / 3) > ALPHA
    assert share(np.isclose(got["a"], 0.1), 1 / 3) > ALPHA
    moved = InteractionModel(  # as a linkage's target: the listed values that some own action leads to
        [Feature("s", "integer", bounds=(0, 2)), real("a", 0, 9, distribution=law, max_increase=0.5, max_decrease=0.5)],
        [DirectionalLinkage("s", {"a": 1})],
    )
    every = moved.enumerate({"s": 0, "a": 0.2})
    assert sorted((r["s"], round(r["a"], 9)) for r in every.points.to_dict("records")) == [(0, 0.1), (0, 0.3)]


def test_weights_that_leave_nothing_are_not_called_empty() -> None:
    law = Distribution.from_spec({"weights": {"own": 1}})
    im = InteractionModel([Feature("home", "category", levels=("rent", "own"), ordered=True, direction="decrease", distribution=law)])
    with pytest.raises(DrawError, match="no weight"):
        im.sample({"home": "rent"}, 5)


# -- everything at once -----------------------------------------------------------------------------------------------------------


def feasible_or_said(cases: Any, n: int = 200) -> dict[str, int]:
    seen: dict[str, int] = {}
    for im, x in cases:
        try:
            sample = im.sample(x, n, seed=1, on_invalid="keep")
        except ReachError as error:
            seen[type(error).__name__] = seen.get(type(error).__name__, 0) + 1
            continue
        start = np.array(list(im.start(x).values()))
        moved = np.where(np.isnan(start), 0.0, sample.values - start)
        good = im.feasible(x, moved)
        assert good.all(), (im, x, moved[~good][0])
        for part in sample.parts:
            seen[part.method] = seen.get(part.method, 0) + 1
    return seen


def test_no_draw_of_250_random_mixed_models_lies_outside_its_action_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece, "MOST", 2**14)
    seen = feasible_or_said(random_cases(250, 31, continuous=True))
    assert {"index", "box", "polytope", "rejection"} <= seen.keys()
    assert seen.get("DrawError", 0) <= 12  # black boxes that hardly anything passes


@pytest.mark.heavy
def test_no_draw_of_4000_random_mixed_models_lies_outside_its_action_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piece, "MOST", 2**14)
    seen = feasible_or_said(random_cases(4000, 32, continuous=True), n=500)
    assert sum(seen.values()) > 4000


def plain_rejection(im: InteractionModel, x: dict[str, float], n: int, rng: np.random.Generator) -> np.ndarray | None:
    """What `measure: volume` means: changes from the box, kept where the definition says so. None where too few pass."""
    ends = [f.moves(x[f.name]) for f in im.features]
    found: list[np.ndarray] = []
    for _ in range(4):
        columns = [
            rng.integers(int(low), int(high) + 1, 40_000).astype(float) if f.discrete else rng.uniform(low, high, 40_000)
            for f, (low, high) in zip(im.features, ends)
        ]
        change = np.stack(columns, axis=1)
        found.append(change[im.feasible(_levels(im, x), change)])
    kept = np.concatenate(found)
    return kept[:n] if len(kept) >= n else None


def _levels(im: InteractionModel, x: dict[str, float]) -> dict[str, Any]:
    return {f.name: f.levels[int(x[f.name])] if f.levels is not None else x[f.name] for f in im.features}


def test_the_volume_measure_is_plain_rejection_from_the_box_on_random_mixed_models() -> None:
    """Column by column, two samples each; false alarm 1 in 1,000 for all p-values together (KS), no p below 1e-7."""
    found = []
    rng = np.random.default_rng(5)
    for im, x in random_cases(250, 31, continuous=True):
        start = im.start(x)
        plain = all(f.distribution is None for f in im.features) and not any(part.links for part in im.parts)
        if not plain or any(math.isnan(v) for v in start.values()):
            continue
        want = plain_rejection(im, start, 2000, rng)
        if want is None:
            continue
        got = im.with_measure("volume").sample(x, 2000, seed=2, on_invalid="keep").values - np.array(list(start.values()))
        joint = rng.normal(size=len(im.features)) / np.maximum(np.abs(want).max(axis=0), 1e-9)  # one direction across them
        if np.ptp(want @ joint) > 1e-9:
            ties = rng.random((2, 2000)) * 1e-9
            found.append(stats.ks_2samp(want @ joint + ties[0], got @ joint + ties[1]).pvalue)
    assert len(found) > 40
    assert min(found) > 1e-7
    assert stats.kstest(found, "uniform").pvalue > 1e-3
