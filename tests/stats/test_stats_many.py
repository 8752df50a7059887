"""Many tests at once: adjusted p-values, families of interaction models, shares and groups."""

import functools
import itertools

import numpy as np
import pytest
from stat_checks import allowed, caught

from budge import stats
from budge.errors import DesignError

FAMILIES = 100_000
N, TAU, ALPHA = 200, 0.1, 0.05


def families(rates, families=FAMILIES, seed=2):
    """P-values of the exact test for many simulated families, one column for each rate."""
    table = stats.p_value(np.arange(N + 1), N, TAU)
    return table[np.random.default_rng(seed).binomial(N, rates, (families, len(rates)))]


MIXED = np.array([TAU] * 12 + [0.0, 0.02])  # twelve nulls at their worst, two claims that are true
NULLS = np.array([TAU] * 8)


def check_fwer(adjust, rates, seed=2):
    """Any false claim in a family: at most alpha; false alarm below 3e-7."""
    p = families(rates, seed=seed)
    false = (adjust(p)[:, rates >= TAU] < ALPHA).any(axis=1).mean()
    assert false <= allowed(ALPHA, FAMILIES)


def check_fdr(adjust, rates, seed=3):
    """The expected share of false claims: at most alpha; a share has at most the spread of a coin with its mean."""
    p = families(rates, seed=seed)
    made = adjust(p) < ALPHA
    false = (made[:, rates >= TAU].sum(axis=1) / np.maximum(made.sum(axis=1), 1)).mean()
    assert false <= allowed(ALPHA, FAMILIES)


@pytest.mark.parametrize("rates", [MIXED, NULLS], ids=["mixed", "all null"])
def test_family_wise_error_over_a_hundred_thousand_families(rates):
    check_fwer(lambda p: stats.adjust(p, "holm"), rates)
    check_fwer(lambda p: stats.adjust(p, "bonferroni"), rates)
    caught(check_fwer, lambda p: stats.adjust(p, "none"), rates)


@pytest.mark.parametrize("rates", [MIXED, NULLS], ids=["mixed", "all null"])
def test_false_discovery_rate_over_a_hundred_thousand_families(rates):
    check_fdr(lambda p: stats.adjust(p, "bh"), rates)
    check_fdr(lambda p: stats.adjust(p, "by"), rates)
    caught(check_fdr, lambda p: stats.adjust(p, "none"), rates)
    if rates is MIXED:
        caught(check_fwer, lambda p: stats.adjust(p, "bh") * 0.7, rates)


def test_adjustments_agree_with_their_definitions():
    rng = np.random.default_rng(0)
    for p in (rng.random(7), np.array([0.01, 0.01, 0.04, 0.9]), np.array([0.2])):
        m = p.size
        rank = np.argsort(np.argsort(p, kind="stable"), kind="stable")
        ordered = np.sort(p)
        holm = [min(1, max((m - j) * ordered[j] for j in range(r + 1))) for r in rank]
        bh = [min(1, min(m / (j + 1) * ordered[j] for j in range(r, m))) for r in rank]
        assert stats.adjust(p, "holm") == pytest.approx(holm, rel=1e-14)
        assert stats.adjust(p, "bh") == pytest.approx(bh, rel=1e-14)
        assert stats.adjust(p, "bonferroni") == pytest.approx(np.minimum(1, m * p), rel=1e-14)
        assert stats.adjust(p).tolist() == stats.adjust(p, "bh").tolist()
    table = rng.random((5, 4))
    assert (stats.adjust(table, "holm")[2] == stats.adjust(table[2], "holm")).all()


def check_family(verdict, rates, seed=4):
    """A false verdict over the family: at most alpha; false alarm below 3e-7."""
    assert verdict(families(rates, seed=seed)).rejected.mean() <= allowed(ALPHA, FAMILIES)


def test_flag_and_certify_keep_their_error():
    check_family(stats.flag, np.array([TAU] * 5))  # no member is below: any flag is false
    caught(
        check_family, lambda p: stats.certify(p.min(axis=1, keepdims=True)), np.array([TAU] * 5)
    )  # the minimum of raw p-values
    check_family(stats.certify, np.array([0.0, 0.0, TAU]))  # one member is not below: any certificate is false
    caught(check_family, stats.flag, np.array([0.0, 0.0, TAU]))
    one = stats.certify([0.01, 0.02])
    assert (one.p_value, one.rejected) == (0.02, True)
    assert stats.flag([0.02, 0.02, 0.02]).p_value == pytest.approx(0.06)
    assert stats.flag([[0.01, 0.5], [0.2, 0.5]]).rejected.tolist() == [True, False]
    # Holm's smallest adjusted p-value is Bonferroni's: the verdict is the same.
    p = np.random.default_rng(0).random((50, 6)) ** 3
    assert stats.flag(p, method="holm").p_value == pytest.approx(stats.flag(p, method="bonferroni").p_value)


def people(truly, m, rng, runs):
    """Hits of m people in each run: `truly` of them below the threshold (some barely), the others at it or above."""
    rates = np.concatenate([np.resize([0.0, 0.01, 0.05, 0.099], truly), np.resize([TAU, TAU, 0.2, 0.9], m - truly)])
    return rng.binomial(N, rates, (runs, m))


BELOW, ABOVE = stats.p_value(np.arange(N + 1), N, TAU), stats.p_value(np.arange(N + 1), N, TAU, "above")


def counted(k):
    """The bug: as if verdicts were the truth."""
    return counted_once(int((BELOW[k] < ALPHA).sum()), k.size)


@functools.cache
def counted_once(made, m):
    return tuple(stats.interval(made, m))


def shares(over, level=ALPHA):
    """The interval as a function of hits; it depends on the two numbers of claims alone, so it is computed once for each."""

    @functools.cache
    def once(made, against, m):
        p = np.where(np.arange(m) < made, 0.0, 1.0)
        q = np.where(np.arange(m) < against, 0.0, 1.0)
        return tuple(stats.share_from_p_values(p, q, over=over, level=level))

    return lambda k: once(int((BELOW[k] < level).sum()), int((ABOVE[k] < level).sum()), k.size)


def check_share(interval, runs=3000, m=200):
    """The share among these people is covered; false alarm below 3e-7 for each setting."""
    rng = np.random.default_rng(6)
    for truly in (0, 20, 120, 200):
        hits = people(truly, m, rng, runs)
        missed = np.mean([not low <= truly / m <= high for low, high in map(interval, hits)])
        assert missed <= allowed(ALPHA, runs), truly


def test_the_share_of_people_is_covered():
    check_share(shares("these"))

    caught(check_share, counted, runs=500)


def test_the_share_in_the_population_is_covered():
    def check(interval, runs=3000, m=150, others=(TAU, 0.5)):
        rng = np.random.default_rng(7)
        for true in (0.05, 0.5, 0.95):
            rates = np.where(rng.random((runs, m)) < true, rng.choice([0.0, 0.01], (runs, m)), rng.choice(others, (runs, m)))
            hits = rng.binomial(N, rates)
            missed = np.mean([not low <= true <= high for low, high in map(interval, hits)])
            assert missed <= allowed(ALPHA, runs)

    check(shares("population"))
    check(shares("population", 0.001), others=(0.5, 0.9))
    caught(check, counted, runs=2000)
    caught(check, shares("these", 0.001), runs=500, others=(0.5, 0.9))  # the other reading is too narrow


def test_share_is_tight_where_verdicts_are_clear():
    found = stats.share([0] * 600 + [100] * 400, 200, 0.1, level=0.001)
    assert found.low >= 0.59
    assert found.high <= 0.61
    assert found.estimate == 0.6
    dependent = stats.share([0] * 600 + [100] * 400, 200, 0.1, independent=False)
    assert (dependent.low, dependent.high) == (0.6, 0.6)
    with pytest.raises(DesignError, match="independent"):
        stats.share([0, 1], 100, 0.1, independent=False, over="population")
    assert "people are below the threshold" in str(found)
    assert found.to_dict()["claimed"] == 600


def test_group_intervals_cover_together():
    def check(intervals, runs=4000):
        rng = np.random.default_rng(9)
        rates = {"a": 0.05, "b": 0.3, "c": 0.31, "d": 0.9}
        missed = 0
        for _ in range(runs):
            counts = {name: (int(rng.binomial(40, rate)), 40) for name, rate in rates.items()}
            found = intervals(counts)
            missed += any(not found[name].low <= rate <= found[name].high for name, rate in rates.items())
        assert missed / runs <= allowed(ALPHA, runs)

    together = [stats.group_intervals({"a": (k, 40), "b": (0, 40), "c": (0, 40), "d": (0, 40)})["a"] for k in range(41)]
    alone = [stats.interval(k, 40) for k in range(41)]
    check(lambda counts: {name: together[k] for name, (k, _) in counts.items()})
    caught(check, lambda counts: {name: alone[k] for name, (k, _) in counts.items()})


def test_group_differences():
    report = stats.compare_groups({"f": (10, 100), "m": (45, 100), "x": (12, 100)})
    assert list(report.differences) == list(itertools.combinations("fmx", 2))
    assert report.differences["f", "m"].high < 0 < report.differences["f", "x"].high
    assert report.differences["f", "m"].p_less < 0.001
    one = stats.compare_groups({"f": (10, 100), "m": (45, 100), "x": (12, 100)}, reference="m")
    assert list(one.differences) == [("f", "m"), ("x", "m")]
    with pytest.raises(DesignError, match="reference"):
        stats.compare_groups({"f": (10, 100)}, reference="g")
    assert len(report.to_dict()["differences"]) == 3
    assert "f - m" in str(report)
