"""Exact shares equal enumeration, stay within what draws show, and brackets hold the exact value."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta, binom, irwinhall

import budge
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot
from budge.distributions import Distribution
from budge.proof import Additive, Answer, Column, Trees, cell_shares
from budge.proof import exact as exact_module
from budge.proof import grid as grid_module
from budge.proof import sums as sums_module
from budge.proof.exact import Share, exact_share
from budge.proof.goals import Condition
from budge.proof.grid import Grid, Smooth, uniform_tail
from budge.proof.laws import Interval, Listed, Run
from budge.proof.sums import Halves, Progression, Sums, dot

ONE = np.ones(1)


def goals(cut, width):
    """A few shapes of goals on one score."""
    up, down = Condition(ONE, cut), Condition(-ONE, -cut)
    return [
        ((up,),),
        ((down,),),
        ((Condition(ONE, cut - width), Condition(-ONE, -cut)),),
        ((Condition(ONE, cut + width),), (Condition(-ONE, -(cut - width)),)),
    ]


def attains(goal, scores):
    """The model's own answer: closed at low ends, open at high ends."""
    found = np.zeros(len(scores), dtype=bool)
    for alternative in goal:
        good = np.ones(len(scores), dtype=bool)
        for c in alternative:
            reached = scores @ c.weights
            good &= reached >= c.bound if c.weights[np.flatnonzero(c.weights)[0]] > 0 else reached > c.bound
        found |= good
    return found


class Model:
    """A model that adds up in another order than the structure, and counts what it is asked."""

    def __init__(self, structure, goal):
        self.structure, self.goal, self.asked, self.points = structure, goal, 0, []

    def __call__(self, points):
        self.asked += len(points)
        self.points.append(points)
        s = self.structure
        if isinstance(s, Trees):
            return attains(self.goal, s.scores(points))
        total = np.zeros((len(points), len(s.const)))
        for j in reversed(range(len(s.columns))):
            total += s.added(s.columns[j].name, points[:, j])
        return attains(self.goal, total + s.const)


def random_case(rng, whole):
    """A small interaction model with coupled parts, an additive score over it, and a start."""
    features, constraints, start = [], [], {}
    for i in range(rng.integers(1, 4)):
        kind = rng.choice(["binary", "integer", "category"])
        if kind == "integer":
            low = int(rng.integers(-3, 3))
            features.append(budge.Feature(f"f{i}", "integer", bounds=(low, low + int(rng.integers(1, 6))), direction=rng.choice([None, "increase"])))
            start[f"f{i}"] = low + int(rng.integers(0, 2))
        elif kind == "category":
            levels = tuple("abcde"[: rng.integers(2, 6)])
            features.append(budge.Feature(f"f{i}", "category", levels=levels))
            start[f"f{i}"] = levels[rng.integers(len(levels))]
        else:
            features.append(budge.Feature(f"f{i}", "binary", actionable=bool(rng.random() < 0.8)))
            start[f"f{i}"] = int(rng.integers(2))
    coupled = rng.choice(["", "one_hot", "linear", "if_then", "link"], size=2, replace=False)
    for kind in coupled:
        if kind == "one_hot":
            features += [budge.Feature(f"h{i}", "binary") for i in range(3)]
            start |= {"h0": 1, "h1": 0, "h2": 0}
            constraints.append(OneHot(["h0", "h1", "h2"]))
        elif kind == "linear":
            features += [budge.Feature(f"l{i}", "integer", bounds=(0, 4)) for i in range(3)]
            start |= {"l0": 1, "l1": 0, "l2": 1}
            constraints.append(LinearConstraint({"l0": 1, "l1": 2, "l2": 1}, "<=", 5))
        elif kind == "if_then":
            features += [budge.Feature("p", "binary"), budge.Feature("q", "integer", bounds=(0, 3))]
            start |= {"p": 0, "q": 1}
            constraints.append(IfThen("p == 1", "q >= 2"))
        elif kind == "link":
            features += [budge.Feature("s", "integer", bounds=(0, 4)), budge.Feature("t", "integer", bounds=(0, 9), actionable=False)]
            start |= {"s": 1, "t": 2}
            constraints.append(DirectionalLinkage("s", {"t": 2}))
    features.append(budge.Feature("idle", "integer", bounds=(0, int(rng.integers(1, 5)))))
    start["idle"] = 0
    im = budge.InteractionModel(features, constraints)

    def number(*shape):
        return rng.integers(-3, 4, shape).astype(float) if whole else np.round(rng.normal(0, 1, shape), 2) * (1 + (rng.random() < 0.5) / 3)

    slopes, steps, tables = {}, {}, {}
    for f in features:
        if f.name == "idle":
            continue
        if f.levels is not None:
            tables[f.name] = number(len(f.levels), 1)
        elif rng.random() < 0.25:
            cuts = np.unique(rng.integers(-2, 5, 2) + rng.choice([0.0, 0.5]))
            steps[f.name] = (cuts, number(len(cuts) + 1, 1))
        else:
            slopes[f.name] = number(1)
    columns = tuple(Column(f.name, f.levels, f.discrete and f.levels is None) for f in features)
    structure = Additive((*columns, Column("other")), Answer("binary", (0, 1)), number(1), slopes=slopes | {"other": number(1)}, steps=steps, tables=tables)
    row = np.append([start[f.name] if f.levels is None else f.levels.index(start[f.name]) for f in features], 2.0).astype(float)
    return im, start, structure, row


def listed(im, start, row):
    found = im.enumerate(start, on_invalid="keep")
    return np.hstack([found.values, np.full((len(found.values), 1), row[-1])]), found.weights


@pytest.mark.parametrize("small", [False, True], ids=["as it is", "small halves"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "real"])
def test_shares_equal_enumeration(whole, small, monkeypatch):
    """200 random specs, four goals each: equal as fractions, ties included."""
    if small:
        monkeypatch.setattr(sums_module, "MOST_SUMS", 60)
        monkeypatch.setattr(grid_module, "BINS", 1 << 12)
        monkeypatch.setattr(exact_module, "MOST_RUN", 1)
        monkeypatch.setattr(cell_shares, "MOST_RUN", 1)
    rng = np.random.default_rng(1 + whole)
    methods, ties = set(), 0
    for _ in range(200):
        im, start, structure, row = random_case(rng, whole)
        points, _ = listed(im, start, row)
        scores = structure.scores(points)[:, 0]
        cut = float(rng.choice(scores)) if rng.random() < 0.6 else float(rng.normal(scores.mean(), scores.std() + 0.1))
        for goal in goals(cut, float(rng.choice([0.0, 1.0, 2.0]) + (0.0 if whole else 0.3))):
            model = Model(structure, goal)
            share = exact_share(structure, im, row, goal, model)
            assert share is not None
            if share.hits is None:
                assert share.method == "grid"
                assert small
                truth = float(Model(structure, goal)(points).mean())
                assert share.low <= truth <= share.high
                methods.add("grid")
                continue
            assert share.size == len(points)
            assert Fraction(share.hits, share.size) == Fraction(int(Model(structure, goal)(points).sum()), len(points))
            assert share.low == share.high == float(Fraction(share.hits, share.size))
            assert share.asked == model.asked
            for asked in model.points if len(points) < 300 else ():  # only what can be reached is asked
                assert {tuple(p) for p in asked.tolist()} <= {tuple(p) for p in points.tolist()}
            methods.add(share.method)
            ties += model.asked > 0
    assert methods >= ({"meet", "closed form", "grid"} if small else {"list", "closed form"})
    assert ties > 100


def test_goals_of_several_scores_are_listed():
    rng = np.random.default_rng(5)
    for _ in range(40):
        im, start, structure, row = random_case(rng, True)
        more = {name: rng.integers(-2, 3, (*np.shape(v)[:-1], 3)).astype(float) for name, v in (structure.slopes | structure.tables).items()}
        structure = Additive(
            structure.columns, Answer("argmax", (0, 1, 2)), np.zeros(3), slopes={k: more[k] for k in structure.slopes},
            steps={k: (c, rng.integers(-2, 3, (len(v), 3)).astype(float)) for k, (c, v) in structure.steps.items()},
            tables={k: more[k] for k in structure.tables},
        )  # fmt: skip
        goal = ((Condition(np.array([1.0, -1, 0]), 0.0), Condition(np.array([1.0, 0, -1]), 0.0)),)
        points, _ = listed(im, start, row)
        share = exact_share(structure, im, row, goal, Model(structure, goal))
        assert share.hits == Model(structure, goal)(points).sum()
        assert share.size == len(points)


def binaries(n, weights, cut):
    features = [budge.Feature(f"b{i}", "binary") for i in range(n)]
    slopes = {f.name: np.array([w]) for f, w in zip(features, weights)}
    structure = Additive(tuple(Column(f.name, whole=True) for f in features), Answer("binary", (0, 1)), np.zeros(1), slopes=slopes)
    return structure, budge.InteractionModel(features), np.zeros(n), ((Condition(ONE, cut),),)


def test_counts_beyond_machine_integers_are_exact():
    """100 equal binaries: more than half of them on; the tie (50 of 100) is asked of the model by a few of its points."""
    structure, im, start, goal = binaries(100, np.ones(100), 50.0)
    model = Model(structure, goal)
    share = exact_share(structure, im, start, goal, model)
    assert (share.hits, share.size) == (sum(math.comb(100, k) for k in range(50, 101)), 2**100)
    assert 0 < model.asked <= 64
    structure, im, start, goal = binaries(130, np.r_[np.ones(60), np.zeros(70)], 30.5)
    share = exact_share(structure, im, start, goal, Model(structure, goal))
    assert (share.hits, share.size) == (sum(math.comb(60, k) for k in range(31, 61)) * 2**70, 2**130)
    assert share.asked == 0


def test_too_many_ties_of_inexact_sums_leave_a_bracket():
    structure, im, start, goal = binaries(30, np.full(30, 0.1), 1.5)
    share = exact_share(structure, im, start, goal, lambda points: pytest.fail("too many to ask"))
    assert share.hits is None
    assert not share.exact
    assert share.high - share.low == pytest.approx(math.comb(30, 15) / 2**30, rel=1e-12)
    assert share.low == pytest.approx(binom.sf(15, 30, 0.5), rel=1e-12)


def test_points_with_one_sum_and_two_answers_leave_a_bracket():
    structure, im, start, goal = binaries(40, np.ones(40), 20.0)
    share = exact_share(structure, im, start, goal, lambda points: points[:, 0] > 0)
    assert share.low < share.high
    assert share.hits is None


def test_one_configuration_and_settled_goals():
    features = [budge.Feature("a", "integer", bounds=(0, 9), actionable=False), budge.Feature("b", "integer", bounds=(0, 9))]
    structure = Additive((Column("a"), Column("b")), Answer("binary", (0, 1)), np.zeros(1), slopes={"a": ONE, "b": ONE})
    im = budge.InteractionModel([features[0]])
    still = Additive((Column("a"),), Answer("binary", (0, 1)), np.zeros(1), slopes={"a": ONE})
    for cut, asked, hits in ((2.0, False, 1), (3.0, True, 1), (4.0, False, 0)):
        goal = ((Condition(ONE, cut),),)
        model = Model(still, goal)
        assert exact_share(still, im, np.array([3.0]), goal, model).hits == hits
        assert bool(model.asked) == asked
    im = budge.InteractionModel(features)
    for goal, hits in (((), 0), (((),), 10), (((Condition(ONE, -1.0),),), 10), (((Condition(ONE, 13.0),),), 0)):
        share = exact_share(structure, im, np.array([3.0, 1.0]), goal, Model(structure, goal))
        assert (share.hits, share.size, share.exact) == (hits, 10, True)


def test_what_cannot_be_computed_is_none():
    feature = budge.Feature("a", "integer", bounds=(0, 9))
    structure = Additive((Column("a"), Column("r"), Column("q")), Answer("binary", (0, 1)), np.zeros(1), slopes={"a": ONE, "r": ONE, "q": ONE})
    reals = [budge.Feature("r", "real", bounds=(0, 1)), budge.Feature("q", "real", bounds=(0, 1))]
    goal = ((Condition(ONE, 3.0),),)
    tied = budge.InteractionModel([feature, *reals], [LinearConstraint({"r": 1, "q": 1}, "<=", 1)])
    assert exact_share(structure, tied, np.zeros(3), goal, Model(structure, goal)) is None
    empty = budge.InteractionModel([feature], [LinearConstraint({"a": 1}, ">=", 20)])
    assert exact_share(structure, empty, np.zeros(3), goal, Model(structure, goal)) is None
    idle = Additive((Column("a"), Column("r"), Column("q")), Answer("binary", (0, 1)), np.zeros(1), slopes={"a": ONE})
    share = exact_share(idle, tied, np.zeros(3), goal, Model(idle, goal))  # what the model does not read may be tied as it likes
    assert (share.low, share.high, share.size) == (0.7, 0.7, None)
    missing = Additive((Column("a"),), Answer("binary", (0, 1)), np.zeros(1), slopes={"a": ONE})
    assert exact_share(missing, budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), missing="fixed")]), np.array([np.nan]), goal, None) is None


def test_effects_on_what_is_read_are_refused():
    features = [budge.Feature("a", "integer", bounds=(0, 9)), budge.Feature("e", "real", actionable=False)]
    im = budge.InteractionModel(features, effects=[budge.Effect("e", "normal(action.a, 1)")])
    goal = ((Condition(ONE, 3.5),),)
    for read, known in (({"a": ONE, "e": ONE}, False), ({"a": ONE}, True)):
        structure = Additive((Column("a", whole=True), Column("e")), Answer("binary", (0, 1)), np.zeros(1), slopes=read)
        share = exact_share(structure, im, np.zeros(2), goal, Model(structure, goal))
        assert (share is not None) == known
        if share is not None:
            assert (share.low, share.high, share.size) == (0.6, 0.6, None)


@pytest.mark.parametrize("seed", range(6))
def test_large_sets_agree_with_draws(seed):
    """100,000 draws each, seed fixed: an exact share outside their Clopper–Pearson interval at 1 - 1e-6 has a chance of 6e-6 over all six."""
    rng = np.random.default_rng(seed)
    features = [budge.Feature(f"c{i}", "category", levels=tuple("abcdefgh")) for i in range(5 if seed % 3 == 1 else 8)]
    features += [budge.Feature(f"i{i}", "integer", bounds=(0, 40)) for i in range(1 if seed % 3 == 1 else 3)]
    features += [budge.Feature(f"h{i}", "binary") for i in range(5)]
    if seed % 3 == 1:
        features.append(budge.Feature("wide", "integer", bounds=(-(10**9), 10**9)))
    if seed % 3 == 2:
        features += [budge.Feature("r", "real", bounds=(-1, 2)), budge.Feature("log", "real", bounds=(0.5, 20), distribution=Distribution("log"))]
    im = budge.InteractionModel(features, [OneHot([f"h{i}" for i in range(5)])])
    columns = tuple(Column(f.name, f.levels, f.discrete and f.levels is None) for f in features)
    tables = {f.name: rng.normal(0, 1, (8, 1)) for f in features if f.levels}
    scale = {"i": 0.05, "w": 1e-9, "r": 1.0, "l": 0.2, "h": 1.0}
    slopes = {f.name: rng.normal(0, 1, 1) * scale[f.name[0]] for f in features if not f.levels}
    structure = Additive(columns, Answer("binary", (0, 1)), np.zeros(1), slopes=slopes, tables=tables)
    start = {f.name: 0 if f.levels is None else "a" for f in features} | {"h0": 1, "log": 1.0}
    start = {k: v for k, v in start.items() if k in {f.name for f in features}}
    row = np.array([0.0 if f.levels else float(start[f.name]) for f in features])
    drawn = structure.scores(im.sample(start, 100_000, seed=seed).values)[:, 0]
    cut = float(np.quantile(drawn[:1000], 0.8))
    goal = ((Condition(ONE, cut),),)
    share = exact_share(structure, im, row, goal, Model(structure, goal))
    assert share.method == ("meet", "closed form", "grid")[seed % 3]
    assert share.high - share.low <= (0.0 if seed % 3 < 2 else 1e-4)
    low, high = clopper_pearson(int((drawn >= cut).sum()), len(drawn), 1e-6)
    assert low <= share.high
    assert share.low <= high


def clopper_pearson(hits, n, alpha):
    return beta.ppf(alpha / 2, hits, n - hits + 1), beta.ppf(1 - alpha / 2, hits + 1, n - hits)


def test_weights_equal_enumeration():
    rng = np.random.default_rng(3)
    for _ in range(60):
        im, start, structure, row = random_case(rng, bool(rng.integers(2)))
        features = []
        for f in im.features:
            if f.levels is not None and rng.random() < 0.7:
                f = f.but(distribution=Distribution("weights", f.levels, tuple(float(w) for w in rng.integers(1, 9, len(f.levels)))))
            elif f.type == "integer" and f.name.startswith("f") and rng.random() < 0.7:
                f = f.but(distribution=Distribution("weights", tuple(range(-3, 9)), tuple(float(w) for w in rng.random(12))))
            features.append(f)
        im = budge.InteractionModel(features, im.constraints)
        points, weights = listed(im, start, row)
        cut = float(rng.choice(structure.scores(points)[:, 0]))
        for goal in goals(cut, 1.0):
            share = exact_share(structure, im, row, goal, Model(structure, goal))
            hit = Model(structure, goal)(points)
            truth = hit.mean() if weights is None else math.fsum(weights[hit])
            assert share.low - 1e-15 <= truth <= share.high + 1e-15
            assert share.high - share.low <= 2.001e-12
            assert (share.hits is None) == (weights is not None and 0 < truth < 1) or truth in (0.0, 1.0)


# -- the pieces ----------------------------------------------------------------------------------------------------------


def test_products_of_large_counts_are_exact():
    rng = np.random.default_rng(0)
    for top in (10, 2**31, 2**61):
        a, b = rng.integers(0, top, 1000), rng.integers(0, top, 1000)
        assert dot(a, b) == sum(x * y for x, y in zip(a.tolist(), b.tolist()))
        assert dot(a.astype(object), b) == dot(a, b)


def test_halves_count_and_find_every_sum():
    rng = np.random.default_rng(2)
    for _ in range(60):
        parts = [Sums.of(rng.integers(-3, 4, rng.integers(1, 6)).astype(float)) for _ in range(rng.integers(1, 6))]
        halves = Halves.of(parts)
        sums, counts = np.zeros(1), np.ones(1, dtype=int)
        for p in parts:
            sums, counts = np.add.outer(sums, p.values).ravel(), np.multiply.outer(counts, p.filled).ravel()
        for cut in (-2.0, 0.0, 0.5, 3.0):
            assert halves.least(cut) == counts[sums >= cut].sum()
            places = halves.between(cut, cut + 1.5, 10**6)
            assert halves.weigh(places).sum() == counts[(sums >= cut) & (sums < cut + 1.5)].sum()
            sides = [halves.choices(side, places[side]) for side in range(3)]
            for i in range(len(places[0])):
                total = 0.0
                for owner, chosen in sides:
                    mine = np.flatnonzero(owner == i)
                    ways = {tuple(c[k] for c in chosen.values()) for k in mine}
                    assert len(ways) == len(mine)  # every way once
                    total += sum(parts[j].values[c[mine[0]]] for j, c in chosen.items())
                assert cut <= total < cut + 1.5


def test_the_grid_holds_the_exact_value():
    """120 random sums that halves count exactly, on coarse grids: the bracket is never off, and gets narrow."""
    rng = np.random.default_rng(7)
    for i in range(120):
        parts = []
        for _ in range(rng.integers(2, 6)):
            values = rng.normal(0, 1, rng.integers(2, 9)) if i % 2 else rng.integers(0, 9, rng.integers(2, 9)) * 0.5
            parts.append(Sums.of(values - values.min()))
        halves = Halves.of(parts)
        cut = float(rng.uniform(0, sum(p.values[-1] for p in parts)))
        truth = halves.least(cut) / halves.total
        for bins in (128, 4096, 1 << 16):
            grid = Grid.of(parts, [], [], bins=bins)
            low, high = (grid.share([(cut, math.inf)], certain) for certain in (True, False))
            assert low <= truth <= high
            band = halves.least(cut - grid.spread * grid.step) - halves.least(cut + (grid.spread + 1) * grid.step)
            assert high - low <= band / halves.total + 2 * grid.off + 1e-12


def test_the_grid_of_runs_and_reals_holds_the_exact_value():
    rng = np.random.default_rng(8)
    for _ in range(40):
        run = Progression(float(rng.uniform(0.01, 2)), int(rng.integers(2, 400)))
        part = Sums.of(np.abs(rng.normal(0, 2, 5)))
        part = Sums(part.values - part.values[0], part.counts)
        cut = float(rng.uniform(0, run.step * run.size))
        truth = Halves.of([part], run).least(cut) / (5 * run.size)
        assert truth == pytest.approx(np.mean(np.add.outer(part.values, run.step * np.arange(run.size)) >= cut), abs=0.0)
        grid = Grid.of([part], [run], [], bins=2048)
        assert grid.share([(cut, math.inf)], True) <= truth <= grid.share([(cut, math.inf)], False)
    for m in (1, 2, 3, 5):
        for cut in np.linspace(0.05, m - 0.05, 7):
            grid = Grid.of([], [], [Smooth(1.0)] * m)
            low, high = (grid.share([(cut, math.inf)], certain) for certain in (True, False))
            assert low <= 1 - irwinhall.cdf(cut, m) <= high
            assert high - low < 1e-4
    for falling in (False, True):
        grid = Grid.of([], [], [Smooth(9.0, 1.0, 10.0, falling)])
        for cut in (0.5, 4.0, 8.9):
            truth = math.log(10 / (1 + cut)) / math.log(10) if not falling else math.log(10 - cut) / math.log(10)
            assert grid.share([(cut, math.inf)], True) <= truth <= grid.share([(cut, math.inf)], False)


def test_the_closed_form_of_uniforms_is_rigorous():
    """Bounds hold the value that rational arithmetic gives; ill-conditioned widths give wide bounds, not wrong ones."""
    rng = np.random.default_rng(4)
    for i in range(60):
        widths = rng.uniform(0.1, 2, rng.integers(1, 9)) * (10.0 ** rng.uniform(-5, 0, 1) if i % 3 == 0 else 1.0)
        if i % 4 == 3:
            widths[0] *= 1e-6
        cuts = rng.uniform(-0.1, 1.1, 5) * widths.sum()
        low, high = uniform_tail(widths, cuts)
        exact = [Fraction(float(w)) for w in widths]
        m = len(exact)
        for cut, a, b in zip(cuts, low, high):
            total = Fraction(0)
            for corner in range(2**m):
                at = Fraction(float(cut)) - sum(w for j, w in enumerate(exact) if corner >> j & 1)
                total += (-1) ** corner.bit_count() * max(at, Fraction(0)) ** m
            truth = 1 - total / (math.factorial(m) * math.prod(exact))
            assert a <= truth <= b
            if m <= 4 and i % 4 != 3:
                assert b - a < 1e-10


def test_cells_of_runs_intervals_and_lists():
    found = cell_shares.in_cells(Run(0, -2.0, 8), np.array([-3.0, 0.0, 0.5, 2.5, 99.0]))
    assert (found.values[:, 0].tolist(), found.counts.tolist()) == ([0.0, 2.0, 5.0], [3, 2, 3])
    found = cell_shares.in_cells(Interval(0, 0.0, 4.0), np.array([-1.0, 0.0, 1.0, 4.0]))
    assert (found.values[:, 0].tolist(), found.counts.tolist()) == ([1.0, 4.0], [0.25, 0.75])
    found = cell_shares.in_cells(Interval(0, 1.0, 100.0, log=True), np.array([10.0]))
    assert found.counts.tolist() == pytest.approx([0.5, 0.5], abs=1e-15)
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [2.0, 0.0]])
    found = cell_shares.in_cells(Listed((0, 1), rows, np.ones(4, dtype=np.int64)), [np.array([1.0]), None])
    assert sorted(zip(found.values.tolist(), found.counts.tolist())) == [([0.0, 1.0], 2), ([2.0, 0.0], 1), ([2.0, 1.0], 1)]


# -- trees ---------------------------------------------------------------------------------------------------------------


def random_trees(rng, columns, number=6, depth=3):
    """Trees with random cuts, levels and leaves."""
    column, cut, left, right, value, lefts, roots = [], [], [], [], [], {}, []

    def grow(level):
        at = len(column)
        for store, entry in ((column, -1), (cut, np.nan), (left, 0), (right, 0), (value, 0.0)):
            store.append(entry)
        if level == depth or rng.random() < 0.15:
            value[at] = float(rng.integers(-4, 5)) / 4
            return at
        j = int(rng.integers(len(columns)))
        column[at] = j
        if columns[j].levels is not None:
            lefts[at] = rng.random(len(columns[j].levels)) < 0.5
        else:
            cut[at] = float(rng.integers(-3, 6)) + rng.choice([0.0, 0.5])
        left[at] = grow(level + 1)
        right[at] = grow(level + 1)
        return at

    roots = [grow(0) for _ in range(number)]
    n = len(column)
    return Trees(
        columns, Answer("binary", (0, 1)), np.zeros(1), np.array(roots), np.array(column), np.array(cut), np.zeros(n, dtype=bool), np.array(left),
        np.array(right), np.array(value)[:, None], lefts,
    )  # fmt: skip


def test_trees_equal_enumeration():
    """150 random specs and trees: equal as fractions, ties included; the cells are fewer than the points."""
    rng = np.random.default_rng(6)
    ties = 0
    for _ in range(150):
        im, start, additive, row = random_case(rng, True)
        structure = random_trees(rng, additive.columns)
        points, _ = listed(im, start, row)
        scores = structure.scores(points)[:, 0]
        for goal in goals(float(rng.choice(scores)), 0.5):
            model = Model(structure, goal)
            share = exact_share(structure, im, row, goal, model)
            assert share.hits == Model(structure, goal)(points).sum()
            assert share.size == len(points)
            assert share.method == "cells"
            assert model.asked <= len(points)
            ties += model.asked > 0
    assert ties > 100


def test_trees_that_other_columns_cut_off_add_no_cells(monkeypatch):
    """A cut on w that only rows with f <= 0 pass does not count for a person with f = 1."""
    monkeypatch.setattr(cell_shares, "MOST_CELLS", 2)
    structure = Trees(
        (Column("f"), Column("w", whole=True)), Answer("binary", (0, 1)), np.zeros(1), np.array([0]), np.array([0, 1, 1, 1, -1, -1, -1, -1, -1]),
        np.array([0.0, 5.5, 3.0, 1.5, 0, 0, 0, 0, 0]), np.zeros(9, dtype=bool), np.array([1, 3, 4, 6, 0, 0, 0, 0, 0]), np.array([2, 8, 5, 7, 0, 0, 0, 0, 0]),
        np.array([0.0, 0, 0, 0, -1, 1, 1, -1, 1])[:, None],
    )  # fmt: skip
    im = budge.InteractionModel([budge.Feature("w", "integer", bounds=(0, 9))])
    goal = ((Condition(ONE, 0.0),),)
    share = exact_share(structure, im, np.array([1.0, 0.0]), goal, Model(structure, goal))
    assert (share.hits, share.size) == (6, 10)
    assert exact_share(structure, im, np.array([0.0, 0.0]), goal, Model(structure, goal)) is None


def test_trees_over_wide_numbers_and_reals():
    rng = np.random.default_rng(9)
    features = [budge.Feature(f"w{i}", "integer", bounds=(-(10**6), 10**7)) for i in range(4)]
    im = budge.InteractionModel(features)
    structure = random_trees(rng, tuple(Column(f.name, whole=True) for f in features), 8)
    goal = ((Condition(ONE, float(np.median(structure.scores(rng.integers(-3, 6, (500, 4)).astype(float))[:, 0]))),),)
    share = exact_share(structure, im, np.zeros(4), goal, Model(structure, goal))
    assert share.size == 11000001**4 > 2**63
    edges = np.unique(structure.cut[~np.isnan(structure.cut)])  # brute force over whole-number cells
    ends = np.unique(np.floor(edges))
    reps, counts = np.append(ends, 10**7), np.diff(np.concatenate([[-(10**6) - 1], ends, [10**7]])).astype(int)
    grid = np.stack(np.meshgrid(*[reps] * 4, indexing="ij"), axis=-1).reshape(-1, 4)
    hit = np.flatnonzero(Model(structure, goal)(grid))
    truth = sum(math.prod(int(counts[(k // len(reps) ** p) % len(reps)]) for p in range(4)) for k in hit.tolist())
    assert share.hits == truth
    reals = budge.InteractionModel([budge.Feature(f"w{i}", "real", bounds=(-3, 6)) for i in range(4)])
    share = exact_share(structure, reals, np.zeros(4), goal, Model(structure, goal))
    assert share.method == "cells"
    assert share.high - share.low <= 2.001e-12
    drawn = Model(structure, goal)(reals.sample(dict.fromkeys(("w0", "w1", "w2", "w3"), 0.0), 100_000).values)
    low, high = clopper_pearson(int(drawn.sum()), 100_000, 1e-6)  # a false alarm in a million
    assert low <= share.high
    assert share.low <= high


def test_a_share_states_whether_it_is_exact():
    assert Share(0.5, 0.5, "list", 1, 2).exact
    assert not Share(0.4, 0.5, "grid").exact
