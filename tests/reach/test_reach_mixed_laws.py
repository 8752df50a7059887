"""Draws of mixed parts against plain rejection that is written down a second time (`reach_mixed`), over thousands of random models.

Of every model: chi-square on the discrete configurations; Kolmogorov-Smirnov on every feature, on two random combinations of all, and on one real within
the configuration that comes most often. The p-values of one model are joined by Bonferroni. What is below `SCREEN` is drawn again under another seed, ten
times as much, and only the second p-value counts, so that a model is called wrong by chance with a probability of `SCREEN` times `WRONG`: 2 in 10^10,
2 in a million over 10^4 models. Small errors that many models share are seen by the number of models below 0.01, in all and in each family: a false alarm
of 7 in 10,000 for one run. In all: less than 1 in 1,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from reach_kit import FloatArray
from reach_mixed import FAMILIES, Law, NothingError, Oracle, TooRareError, chain, edge, law, small
from scipy import stats
from scipy.special import kolmogorov

from budge.errors import DrawError, EmptyError

SCREEN, WRONG = 1e-3, 2e-7
CROWD = 1e-4  # of each count of models below 0.01


def two_samples(a: FloatArray, b: FloatArray) -> float:
    """Two-sample Kolmogorov-Smirnov p-value by its limit, which is on the safe side; ties make it safer."""
    both = np.concatenate([a, b])
    both = np.unique(np.round(both, 7), return_inverse=True)[1]
    size = int(both.max()) + 1
    gap = np.cumsum(np.bincount(both[: len(a)], minlength=size) / len(a) - np.bincount(both[len(a) :], minlength=size) / len(b))
    return float(kolmogorov(np.abs(gap).max() * np.sqrt(len(a) * len(b) / (len(a) + len(b)))))


def in_cells(configurations: FloatArray, shares: FloatArray, drawn: FloatArray, rng: np.random.Generator) -> float:
    """Chi-square p-value of configurations against their probabilities, thrown together at random where they are many; 0 where a draw is none of them."""
    known, which = np.unique(np.vstack([configurations, drawn]).round(7), axis=0, return_inverse=True)
    which = which.ravel()
    if len(known) > len(configurations):
        return 0.0
    place = np.empty(len(known), dtype=np.intp)
    place[which[: len(configurations)]] = np.arange(len(configurations))
    return _chi_square(place[which[len(configurations) :]], shares, rng)


def _chi_square(drawn: np.ndarray, shares: FloatArray, rng: np.random.Generator) -> float:
    """Configurations that come at least 12 times stand alone, the rest are thrown into cells."""
    n = len(drawn)
    cell = np.arange(len(shares))
    rare = np.flatnonzero(shares * n < 12)
    if len(rare):
        cells = int(max(1, min(shares[rare].sum() * n // 15, 25)))
        order = rare[np.argsort(-shares[rare] + 1e-9 * rng.random(len(rare)))]
        cell[order] = len(shares) + np.arange(len(rare)) % cells
    expected = np.bincount(cell, shares * n)
    counts = np.bincount(cell[drawn], minlength=len(expected))[expected > 0].astype(float)
    expected = expected[expected > 0]
    few = expected < 8
    if few.any():
        counts, expected = np.r_[counts[~few], counts[few].sum()], np.r_[expected[~few], expected[few].sum()]
    return 1.0 if len(expected) < 2 else float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(expected) - 1))


def p_values(one: Law, drawn: FloatArray, want: FloatArray, rng: np.random.Generator) -> dict[str, float]:
    """Every p-value of one model, by what it is about."""
    found = {}
    listed = one.discrete
    if one.shares is not None:
        found["configurations"] = in_cells(*one.shares(), drawn[:, listed], rng)
    spread = want.std(axis=0)
    for j, f in enumerate(one.im.features):
        if spread[j] > 1e-9 or np.ptp(drawn[:, j]) > 1e-9:
            found[f.name] = two_samples(drawn[:, j], want[:, j])
    moving = np.flatnonzero(spread > 1e-9)
    for i in range(2):
        way = rng.normal(size=len(moving)) / spread[moving]
        if len(moving) > 1:
            found[f"combination {i}"] = two_samples(drawn[:, moving] @ way, want[:, moving] @ way)
    real = [j for j in moving if j not in listed]
    if listed and real:
        _, which, counts = np.unique(want[:, listed].round(7), axis=0, return_inverse=True, return_counts=True)
        often = want[np.flatnonzero(which.ravel() == counts.argmax())]
        mine = drawn[(np.abs(drawn[:, listed] - often[0, listed]) < 1e-7).all(axis=1)]
        if len(mine) >= 40 and len(often) >= 40:
            way = rng.normal(size=len(real)) / spread[real]
            found["within"] = two_samples(mine[:, real] @ way, often[:, real] @ way)
    return found


@dataclass
class Found:
    """What a run over many models has seen."""

    kinds: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    p: list[tuple[str, int, float]] = field(default_factory=list)  # family, number, the model's p-value
    tests: int = 0
    chains: int = 0
    again: int = 0
    empty: int = 0
    wrong: list[str] = field(default_factory=list)


def compared(one: Law, n: int, seed: int, rng: np.random.Generator) -> tuple[dict[str, float], bool]:
    """Draw and compare; the p-values, and whether the sample is exact. A draw outside the action set fails at once."""
    want = one.reference(6 * n, rng)
    sample = one.im.sample(one.x, n, seed=seed, on_invalid="keep")  # the reference has found a point: never empty
    drawn = sample.values
    if not one.noise:
        start = np.array(list(one.im.start(one.x).values()))
        assert one.im.feasible(one.x, drawn - start).all(), "a draw that is not feasible"
        assert one.im.feasible(one.x, want[:50] - start).all(), "the reference and the definition disagree"
    oracle = getattr(one.reference, "__self__", None)
    if isinstance(oracle, Oracle) and one.shares is not None:
        known = len(oracle.feasible())
        oracle.more(drawn)
        if len(oracle.feasible()) > known:
            want = one.reference(6 * n, rng)
    return p_values(one, drawn, want, rng), sample.exact


def drawn_again(one: Law, n: int, seed: int, rng: np.random.Generator) -> dict[str, float]:
    """Draw ten times as much and compare, or as much as rejection can follow."""
    for more in (10, 3):
        try:
            return compared(one, more * n, seed, rng)[0]
        except TooRareError:
            continue
    return compared(one, n, seed, rng)[0]


def run(laws: Iterable[tuple[int, Law]], n: int = 300, key: int = 0) -> Found:
    """Compare model by model."""
    seen = Found()
    for number, one in laws:
        rng = np.random.default_rng([key, number, 1])
        try:
            p, exact = compared(one, n, number, rng)
        except TooRareError:
            seen.skipped["too rare"] += 1
            continue
        except NothingError:
            try:  # nothing by rejection: nothing here either, or points too thin for it
                one.im.sample(one.x, 20, seed=1, on_invalid="keep")
                seen.skipped["thin"] += 1
            except EmptyError:
                seen.empty += 1
            except DrawError:
                seen.skipped["given up"] += 1
            continue
        except DrawError as error:
            seen.skipped[str(error).split(": ", 1)[-1].split(";")[0][:70]] += 1
            continue
        except (AssertionError, EmptyError) as error:
            seen.wrong.append(f"{one.family} {number} {one.about}: {type(error).__name__}: {str(error)[:200]}")
            continue
        seen.kinds.update([one.family, *one.about["kinds"]])
        seen.chains += not exact
        seen.tests += len(p)
        if not p:
            continue
        least = min(1.0, min(p.values()) * len(p))
        seen.p.append((one.family, number, least))
        if least < SCREEN:
            seen.again += 1
            second = drawn_again(one, n, number + 10**6, np.random.default_rng([key, number, 2]))
            worst = min(second, key=lambda name: second[name])
            if second[worst] * len(second) < WRONG:
                seen.wrong.append(f"{one.family} {number} {one.about}: {worst} {second[worst]:.2g} (first {min(p, key=lambda k: p[k])} {min(p.values()):.2g})")
    return seen


def crowded(seen: Found) -> list[str]:
    """Families in which more models are below 0.01 than chance explains."""
    found = []
    for family in ("", *FAMILIES):
        mine = [p for name, _, p in seen.p if name.startswith(family)]
        low = sum(p < 0.01 for p in mine)
        if mine and stats.binom.sf(low - 1, len(mine), 0.01) < CROWD:
            found.append(f"{family or 'all'}: {low} of {len(mine)} below 0.01")
    return found


def checked(seen: Found, models: int) -> None:
    assert not seen.wrong, "\n".join(seen.wrong)
    assert not crowded(seen)
    assert sum(seen.skipped.values()) < 0.1 * models, seen.skipped
    assert set(FAMILIES) <= set(seen.kinds)


def test_draws_of_150_random_mixed_models_have_the_law_of_plain_rejection() -> None:
    checked(run((i, law(i, 61)) for i in range(150)), 150)


@pytest.mark.heavy
def test_draws_of_10_000_random_mixed_models_have_the_law_of_plain_rejection() -> None:
    seen = run((i, law(i, 62)) for i in range(10_000))
    print(f"{len(seen.p)} models, {seen.tests} tests, smallest {min(p for *_, p in seen.p):.2g}, {seen.chains} not exact, {seen.again} drawn again,")
    print(f"{seen.empty} empty, skipped {dict(seen.skipped)}, {dict(seen.kinds)}")
    checked(seen, 10_000)
    assert seen.chains >= 50


# -- planted errors: the same comparison must see each of them ------------------------------------------------------------


def of_kind(make: Callable[[np.random.Generator], Law], models: int, wanted: Callable[[Law], bool] = lambda one: True) -> list[tuple[int, Law]]:
    """Return so many models of one family, afresh: a model keeps what it has prepared."""
    found: list[tuple[int, Law]] = []
    number = 0
    while len(found) < models:
        one = make(np.random.default_rng([77, number]))
        if wanted(one):
            found.append((number, one))
        number += 1
    return found


def short_chains(patch: pytest.MonkeyPatch) -> list[tuple[int, Law]]:
    """Chains of 3 steps instead of what was measured."""
    from budge.reach import hull

    measured = hull.mixing_of
    patch.setattr(hull, "mixing_of", lambda A, b: replace(measured(A, b), steps=3))
    return of_kind(chain, 2, lambda one: one.about["kinds"] == ["ladder"])


def equal_cells(patch: pytest.MonkeyPatch) -> list[tuple[int, Law]]:
    """Cells that come equally often, whatever their volume."""
    from budge.reach.fibres import Fibres

    def ends(self: Fibres) -> FloatArray:
        there = np.array(self.there, dtype=float)
        return np.cumsum(there / np.maximum(there.sum(axis=0), 1.0), axis=0)

    patch.setattr(Fibres, "_cell_ends", property(ends))
    return of_kind(small, 12, lambda one: "either" in one.about["kinds"] and one.im.measure == "configuration")


def closed_boundaries(patch: pytest.MonkeyPatch) -> list[tuple[int, Law]]:
    """Strict rows that leave nothing out."""
    from budge.reach.fibres import Fibres

    patch.setattr(Fibres, "_blocked", lambda self, row, box, joints, joined, exists: np.zeros(len(exists), dtype=bool))
    return of_kind(edge, 40)


def flat_logs(patch: pytest.MonkeyPatch) -> list[tuple[int, Law]]:
    """Log densities drawn uniformly."""
    from budge.reach import fibres, piece

    def between(low: FloatArray, high: FloatArray, uniform: FloatArray, log_from: FloatArray | None = None) -> FloatArray:
        return low + (high - low) * uniform

    patch.setattr(fibres, "between", between)
    patch.setattr(piece, "between", between)
    return of_kind(small, 12, lambda one: any(f.distribution is not None and f.type == "real" for f in one.im.features))


@pytest.mark.parametrize("planted", [short_chains, equal_cells, closed_boundaries, flat_logs])
def test_a_planted_error_is_caught(planted: Callable[[pytest.MonkeyPatch], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = run(planted(monkeypatch))
    assert seen.wrong
