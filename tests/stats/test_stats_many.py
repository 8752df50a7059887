"""Many tests at once: adjusted p-values and families of interaction models."""

import numpy as np
import pytest
from stat_checks import allowed, caught

from budge import stats

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


@pytest.mark.parametrize("method", ["bh", "by", "holm", "bonferroni"])
def test_an_adjusted_p_value_is_never_below_the_p_value(method: str) -> None:
    rng = np.random.default_rng(0)
    for size in rng.integers(2, 12, 500).tolist():
        p = np.repeat(rng.random(), size)
        assert (stats.adjust(p, method) >= p).all()
