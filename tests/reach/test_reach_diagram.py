"""The counting diagram against brute force, closed forms and the laws of its draws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from reach_kit import law_p_value
from scipy import stats

from budge.reach import states
from budge.reach.diagram import LARGEST, Counts, Diagram, Level, Sum, Table, Variable
from budge.reach.states import TooManyStatesError, build
from budge.reach.streams import Stream, below_large

RELATIONS: dict[str, Callable[[Any, Any], Any]] = {"<=": np.less_equal, "==": np.equal, ">=": np.greater_equal, "!=": np.not_equal}
Rows = list[tuple[dict[str, int], str, int]]


def integers(m: int, low: int, high: int, cuts: Sequence[int] | None = None, name: str = "k") -> list[Variable]:
    return [Variable.interval(f"{name}{i:03d}", low, high, cuts) for i in range(m)]


def linear(variables: Sequence[Variable], coefficients: dict[str, int] | Sequence[int], relation: str, constant: int) -> Sum:
    if not isinstance(coefficients, dict):
        coefficients = dict(zip((v.name for v in variables), coefficients))
    by_name = {v.name: v for v in variables}
    slopes = {n: c for n, c in coefficients.items() if (by_name[n].size > 1).any()}
    return Sum({n: c * by_name[n].low for n, c in coefficients.items()}, relation, constant, slopes)


def total(variables: Sequence[Variable], relation: str, constant: int) -> Sum:
    return linear(variables, [1] * len(variables), relation, constant)


def span(v: Variable) -> range:
    return range(int(v.low[0]), int(v.low[-1] + v.size[-1]))


def class_of(v: Variable, values: Any) -> Any:
    return np.searchsorted(v.low, values, side="right") - 1


def random_case(rng: np.random.Generator) -> tuple[list[Variable], Rows, list[Table]]:
    """A few variables, some in classes of several values, under rows of any relation and rules over one to three of them."""
    variables = []
    for i in range(int(rng.integers(1, 6))):
        low = int(rng.integers(-4, 3))
        high = low + int(rng.integers(0, 9))
        cuts = [None, [], sorted({int(c) for c in rng.integers(low, high + 1, 2)})][int(rng.integers(3))]
        v = Variable.interval(f"v{rng.integers(100)}_{i}", low, high, cuts)
        if cuts is None and rng.random() < 0.2:
            v = Variable(v.name, v.low, v.size, tuple(int(w) for w in rng.integers(1, 5, len(v.low))))
        variables.append(v)
    m = len(variables)
    rows: Rows = []
    for _ in range(int(rng.integers(0, 4))):
        chosen = [variables[i] for i in rng.permutation(m)[: rng.integers(1, m + 1)]]
        coefficients = {v.name: int(rng.choice([-6, -3, -2, -1, 1, 2, 3, 5, 10])) for v in chosen}
        middle = sum(c * int(rng.choice(span(v))) for v, c in zip(chosen, coefficients.values()))
        rows.append((coefficients, str(rng.choice(["<=", "==", ">=", "!="], p=[0.4, 0.25, 0.25, 0.1])), middle))
    tables = []
    for _ in range(int(rng.integers(0, 4))):
        chosen = [variables[i] for i in rng.permutation(m)[: rng.integers(1, min(m, 3) + 1)]]
        tables.append(Table(tuple(v.name for v in chosen), rng.random([len(v.low) for v in chosen]) < 0.7))
    return variables, rows, tables


def solutions(variables: Sequence[Variable], rows: Rows, tables: Sequence[Table]) -> tuple[np.ndarray, np.ndarray]:
    """Every point by brute force, one row each, and its weight."""
    points = np.array(list(itertools.product(*map(span, variables))))
    column = {v.name: points[:, i] for i, v in enumerate(variables)}
    by_name = {v.name: v for v in variables}
    good = np.ones(len(points), dtype=bool)
    for coefficients, relation, constant in rows:
        good &= RELATIONS[relation](sum(c * column[n] for n, c in coefficients.items()), constant)
    for t in tables:
        good &= t.truth[tuple(class_of(by_name[n], column[n]) for n in t.scope)]
    weight = np.ones(len(points), dtype=np.int64)
    for v in variables:
        if v.weight is not None:
            weight *= np.array(v.weight)[class_of(v, column[v.name])]
    return points[good], weight[good]


def made(variables: Sequence[Variable], rows: Rows, tables: Sequence[Table]) -> Diagram:
    return build(variables, [linear(variables, *row) for row in rows], tables)


def check(seed: int) -> bool:
    """Compare count, weight and list of one random case with brute force; return whether it has a point."""
    case = random_case(np.random.default_rng(seed))
    want, weight = solutions(*case)
    d = made(*case)
    assert d.points.total == len(want)
    assert d.mass.total == weight.sum()
    got = d.points.unrank(np.arange(d.points.total)).T
    np.testing.assert_array_equal(np.unique(got, axis=0).reshape(want.shape), want)
    return len(want) > 0


def test_counts_and_lists_of_random_cases_are_those_of_brute_force() -> None:
    assert sum(check(seed) for seed in range(1200)) > 800


@pytest.mark.heavy
def test_counts_and_lists_of_20000_random_cases_are_those_of_brute_force() -> None:
    assert sum(check(seed) for seed in range(10_000, 30_000)) > 10_000


def test_the_order_of_declaration_changes_nothing() -> None:
    for seed in range(300):
        variables, rows, tables = random_case(np.random.default_rng(seed))
        rng = np.random.default_rng(seed)
        a = made(variables, rows, tables)
        order = rng.permutation(len(variables))
        mixed = [variables[i] for i in order]
        b = made(mixed, [rows[i] for i in rng.permutation(len(rows))], [tables[i] for i in rng.permutation(len(tables))])
        assert a.mass.total == b.mass.total
        if a.mass.total:
            numbers = rng.integers(0, a.mass.total, 20)
            np.testing.assert_array_equal(a.mass.unrank(numbers)[order], b.mass.unrank(numbers))


# -- planted mistakes -------------------------------------------------------------------------------------------------------


def int64_only(level: Level, count: Any, factor: Any) -> Any:
    """Counts that overflow."""
    each = count.astype(np.int64)[level.to] if factor is None else count.astype(np.int64)[level.to] * factor.astype(np.int64)[level.label]
    return np.array([each[a:b].sum() for a, b in itertools.pairwise(level.start)], dtype=np.int64)


def cut_too_low(self: Any, left: Any, level: int) -> Any:
    least, most, _ = self.rest[level]
    return np.minimum(left, most - 1) if self.relation == "<=" else left, (left >= least) & ((self.relation != "==") | (left <= most))


def no_class_sizes(level: Level, count: Any, factor: Any) -> Any:
    return int64_only(level, count, None)


@pytest.mark.parametrize(("place", "name", "mistake"), [
    (states._Residual, "normal", cut_too_low),
    (Counts, "_sums", staticmethod(no_class_sizes)),
])  # fmt: skip
def test_a_planted_mistake_is_caught(place: Any, name: str, mistake: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, name, mistake)
    with pytest.raises((AssertionError, IndexError)):
        list(map(check, range(200)))


def test_a_planted_int64_product_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counts, "_sums", staticmethod(int64_only))
    with pytest.raises(AssertionError):
        test_counts_of_large_cases_are_those_of_closed_forms("200 binaries, at most 60")


# -- closed forms -----------------------------------------------------------------------------------------------------------


def ways(highs: Sequence[int], coefficients: Sequence[int], relation: str, constant: int) -> int:
    """Points of one row over 0..high by prefix sums over Python integers."""
    f = [1 if s == 0 or relation == "<=" else 0 for s in range(constant + 1)]
    for a, high in zip(coefficients, highs):
        g = [0] * (constant + 1)
        for s in range(constant + 1):
            g[s] = f[s] + (g[s - a] if s >= a else 0) - (f[s - a * (high + 1)] if s >= a * (high + 1) else 0)
        f = g
    return f[constant]


def fibonacci(n: int) -> int:
    a, b = 1, 1
    for _ in range(n):
        a, b = b, a + b
    return b


def large(name: str) -> tuple[list[Variable], list[Sum], list[Table], int]:
    bits = integers(200, 0, 1, name="b")
    prices = [(7 * i) % 23 + 3 for i in range(40)]
    apart, unlike = np.array([[1, 1], [1, 0]], dtype=bool), ~np.eye(10, dtype=bool)
    match name:
        case "at most 4 of 100":
            return bits[:100], [total(bits[:100], "<=", 4)], [], sum(math.comb(100, k) for k in range(5))
        case "exactly 5 of 60":
            return bits[:60], [total(bits[:60], "==", 5)], [], math.comb(60, 5)
        case "knapsack of 40":
            return bits[:40], [linear(bits[:40], prices, "<=", 120)], [], ways([1] * 40, prices, "<=", 120)
        case "6 percents":
            v = integers(6, 0, 100, [])
            return v, [total(v, "==", 100)], [], math.comb(105, 5)
        case "200 binaries, at most 60":
            return bits, [total(bits, "<=", 60)], [], sum(math.comb(200, k) for k in range(61))
        case "12 integers with a sum":
            v = integers(12, 0, 1000, [])
            return v, [total(v, "==", 1200)], [], ways([1000] * 12, [1] * 12, "==", 1200)
        case "4 amounts in cents":
            v = integers(4, 0, 100_000, [])
            return v, [total(v, "==", 100_000)], [], math.comb(100_003, 3)
        case "4 amounts up to 10^9":
            v = integers(4, 0, 10**9, [])
            return v, [total(v, "<=", 10**9)], [], math.comb(10**9 + 4, 4)
        case "3x + 5y + 7z = 30000":
            v = integers(3, 0, 10_000, [])
            return v, [linear(v, [3, 5, 7], "==", 30_000)], [], ways([10_000] * 3, [3, 5, 7], "==", 30_000)
        case "path of 40":
            names = [v.name for v in bits[:40]]
            return bits[:40], [], [Table(pair, apart) for pair in itertools.pairwise(names)], fibonacci(40)
        case "all different, 10":
            v = integers(10, 0, 9)
            return v, [], [Table((a.name, b.name), unlike) for a, b in itertools.combinations(v, 2)], math.factorial(10)
        case "2,500 binaries":
            v = integers(2500, 0, 1, name="b")
            return v, [], [], 2**2500
    raise KeyError(name)


LARGE = ["at most 4 of 100", "exactly 5 of 60", "knapsack of 40", "6 percents", "200 binaries, at most 60", "12 integers with a sum",
         "4 amounts in cents", "4 amounts up to 10^9", "3x + 5y + 7z = 30000", "path of 40", "all different, 10", "2,500 binaries"]  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_counts_of_large_cases_are_those_of_closed_forms(name: str) -> None:
    variables, sums, tables, want = large(name)
    assert build(variables, sums, tables).points.total == want


@pytest.mark.parametrize("name", LARGE)
def test_every_number_has_a_point_of_its_own(name: str) -> None:
    """First, last and some numbers between: distinct points that satisfy all."""
    variables, sums, tables, want = large(name)
    numbers = sorted({0, 1, want // 3, want // 2, want - 2, want - 1})
    points = build(variables, sums, tables).points.unrank(np.array(numbers, dtype=object if want > LARGEST else np.int64))
    assert len(np.unique(points.T, axis=0)) == len(numbers)
    value = {v.name: row for v, row in zip(variables, points)}
    for v in variables:
        assert (span(v)[0] <= value[v.name]).all()
        assert (value[v.name] <= span(v)[-1]).all()
    for s in sums:
        lowest = {v.name: int(v.low[0]) for v in variables}
        left = sum(int(t[0]) + (s.slopes.get(n) or int(t[-1] - t[0])) * (value[n] - lowest[n]) for n, t in s.terms.items())
        assert RELATIONS[s.relation](left, s.constant).all()
    for t in tables:
        assert t.truth[tuple(value[n] - span(variables[0])[0] for n in t.scope)].all()


# -- draws ------------------------------------------------------------------------------------------------------------------


def drawn_by_number(counts: Counts, n: int) -> np.ndarray:
    stream = Stream(np.array([[7, 7]], dtype=np.uint64))
    return counts.unrank(below_large(stream.words(0, n, 1)[0, :, 0], counts.total, stream, 0, 1)).T


def small(name: str) -> tuple[list[Variable], Rows, list[Table]]:
    bits, thirteen = integers(10, 0, 1), integers(3, 0, 13, [])
    four = integers(4, 1, 4)
    match name:
        case "knapsack":
            return bits, [({v.name: (7 * i) % 23 + 3 for i, v in enumerate(bits)}, "<=", 50)], []
        case "equality in bits":
            return thirteen, [({"k000": 3, "k001": 5, "k002": 7}, "==", 60)], []
        case "two rows of mixed signs in bits":
            return thirteen, [({"k000": 2, "k001": -3, "k002": 1}, "<=", 4), ({"k000": 1, "k001": 1, "k002": 1}, ">=", 29)], []
        case "a row with !=":
            return thirteen, [(dict.fromkeys(("k000", "k001", "k002"), 1), "!=", 12), (dict.fromkeys(("k000", "k001", "k002"), 1), "<=", 12)], []
        case "all different with a row":
            unlike = ~np.eye(4, dtype=bool)
            return four, [({"k000": 1, "k001": 1}, "<=", 6)], [Table((a.name, b.name), unlike) for a, b in itertools.combinations(four, 2)]
        case "a rule over three":
            cube = np.random.default_rng(3).random((6, 6, 6)) < 0.4
            v = integers(3, 0, 5)
            return v, [(dict.fromkeys((x.name for x in v), 1), "<=", 9)], [Table(tuple(x.name for x in v), cube)]
        case "weights":
            v = [Variable(f"w{i}", np.arange(5), np.ones(5, dtype=np.int64), (1, 2, 3, 4, 5)) for i in range(3)]
            return v, [({"w0": 1, "w1": 1, "w2": 1}, "<=", 6)], []
        case "wide classes":
            v = [Variable.interval("a", 0, 29, [10, 20]), Variable.interval("b", 0, 14, [5])]
            return v, [], [Table(("a", "b"), np.array([[1, 0], [1, 1], [0, 1]], dtype=bool))]
    raise KeyError(name)


SMALL = ["knapsack", "equality in bits", "two rows of mixed signs in bits", "a row with !=", "all different with a row", "a rule over three",
         "weights", "wide classes"]  # fmt: skip


@pytest.mark.parametrize("name", SMALL)
def test_draws_follow_the_weights_of_all_points(name: str) -> None:
    """False alarm: 8 in 100,000 for all."""
    case = small(name)
    counts = made(*case).mass
    points, weight = solutions(*case)
    drawn = counts.unrank(np.random.default_rng(5).integers(0, counts.total, 40_000)).T
    assert law_p_value(points.astype(float), drawn.astype(float), weight / weight.sum()) > 1e-5


def test_draws_beyond_64_bits_have_the_right_marginals() -> None:
    """Amounts up to 10^9 with a sum of at most 10^9: each share is Beta(1, 4). False alarm: 2 in 100,000."""
    variables, sums, tables, _ = large("4 amounts up to 10^9")
    drawn = drawn_by_number(build(variables, sums, tables).mass, 20_000)
    assert (drawn.sum(axis=1) <= 10**9).all()
    for column in (drawn[:, 0], drawn[:, 3]):
        assert stats.kstest(column / 1e9, stats.beta(1, 4).cdf).pvalue > 1e-5


def test_the_number_of_ones_of_200_binaries_has_its_law() -> None:
    """False alarm: 1 in 100,000."""
    variables, sums, tables, want = large("200 binaries, at most 60")
    ones = drawn_by_number(build(variables, sums, tables).mass, 20_000).sum(axis=1)
    law = np.array([math.comb(200, k) / want for k in range(61)])
    assert law_p_value(np.arange(61.0)[:, None], ones[:, None].astype(float), law) > 1e-5


def test_a_draw_depends_on_its_own_words_only() -> None:
    variables, sums, tables, _ = large("200 binaries, at most 60")
    counts = build(variables, sums, tables).mass
    np.testing.assert_array_equal(drawn_by_number(counts, 100)[:10], drawn_by_number(counts, 10))


# -- edges ------------------------------------------------------------------------------------------------------------------


def test_nothing_is_feasible() -> None:
    v = integers(3, 0, 9)
    for sums, tables in [
        ([total(v, ">=", 28)], []),
        ([total(v, "==", 5), total(v, "!=", 5)], []),
        ([linear(v, [2, 2, 2], "==", 7)], []),
        ([], [Table(("k001",), np.zeros(10, dtype=bool))]),
        ([], [Table(("k000", "k001"), np.zeros((10, 10), dtype=bool))]),
        ([], [Table(("k000", "k001", "k002"), np.zeros((10, 10, 10), dtype=bool))]),
    ]:
        assert build(v, sums, tables).points.total == 0


def test_no_variable_one_class_and_variables_that_nothing_reads() -> None:
    assert build([], []).points.total == 1
    assert build([], [Sum({}, "<=", -1)]).points.total == 0
    one = Variable.interval("one", 7, 7)
    wide = Variable.interval("wide", -5, 10**12, [])
    d = build([wide, one], [])
    assert d.points.total == 10**12 + 6
    assert d.points.unrank([0, 10**12 + 5]).tolist() == [[-5, 10**12], [7, 7]]
    assert build([wide, one], [linear([one], [3], "==", 21)]).points.total == 10**12 + 6


def test_too_many_states_is_said_early() -> None:
    v = integers(40, 0, 1)
    rng = np.random.default_rng(0)
    with pytest.raises(TooManyStatesError):
        build(v, [linear(v, [int(c) for c in rng.integers(1, 10**6, 40)], "<=", 8_000_000)])
    with pytest.raises(TooManyStatesError, match="2\\^62"):
        build(v, [linear(v, [2**61] * 40, "<=", 2**61)])


def test_numbers_up_to_the_limit_of_int64_are_exact() -> None:
    v = integers(2, 0, 2**30, [])
    big = 2**29
    d = build(v, [linear(v, [big, big], "<=", big * 2**30)])
    assert d.points.total == math.comb(2**30 + 2, 2)
