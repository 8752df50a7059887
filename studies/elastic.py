"""Elastic-net models by the hundred, and how many accounts can game each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from budge import stats
from budge.audit import audit
from budge.audit.design import Execution
from budge.features import Feature
from budge.interaction import InteractionModel
from budge.models import as_predictor

__all__ = ["Pool", "aucs", "audited", "ball", "counts", "fit", "gameable"]

THRESHOLD, ALPHA, SEED = 0.05, 0.05, 0
BALL = 0.1  # half the width of the perturbation check, in standard deviations
CELLS = 1_000_000


@dataclass(frozen=True)
class Pool:
    """Linear models over raw rows: *human* where ``row @ weights + intercept`` is above 0, one column per model."""

    weights: np.ndarray
    intercepts: np.ndarray
    penalties: np.ndarray  # (models, 2): lambda and the share of the l1 part

    def __len__(self) -> int:
        return len(self.intercepts)

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """Return one row per point, one column per model: all of them in one product."""
        return rows @ self.weights + self.intercepts

    def only(self, *models: int) -> Pool:
        """Return a pool of these models alone."""
        return Pool(self.weights[:, models], self.intercepts[list(models)], self.penalties[list(models)])

    @classmethod
    def of(cls, pools: Sequence[Pool]) -> Pool:
        """Return the models of several pools as one."""
        return cls(np.hstack([p.weights for p in pools]), np.concatenate([p.intercepts for p in pools]), np.vstack([p.penalties for p in pools]))

    def one(self, k: int) -> Any:
        """Return model k by itself, for `budge.audit`."""
        return as_predictor(
            lambda rows: (rows @ self.weights[:, k] + self.intercepts[k] > 0).astype(int), takes="numpy", classes=[0, 1]
        )


def fit(X: np.ndarray, y: np.ndarray, steps: int, rounds: int, only: Sequence[int] | None = None) -> Pool:
    """Return logistic regressions with elastic-net penalties on a grid, and one without: all at once, by accelerated proximal steps.

    The objective is that of ``glmnet``: mean log-loss + lambda (r |w|₁ + (1 - r) |w|²/2) on standardised columns. One at a time with
    scikit-learn's solver it is the same optimum (the tests compare), but takes far longer. `only` fits some of them, by their numbers.
    """
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale == 0] = 1.0
    Z = np.column_stack([(X - mean) / scale, np.ones(len(X))])
    largest = np.abs(Z[:, :-1].T @ (y - y.mean())).max() / len(X)
    grid = [(0.0, 1.0), *((lam, r) for lam in np.geomspace(largest, largest / 1000, steps) for r in np.linspace(0.0, 1.0, steps))]
    penalties = np.array(grid if only is None else [grid[k] for k in only])
    free = np.r_[np.ones(Z.shape[1] - 1), 0.0][:, None]  # the intercept is not penalised
    l1, l2 = free * penalties[:, 0] * penalties[:, 1], free * penalties[:, 0] * (1 - penalties[:, 1])
    step = 1.0 / (np.linalg.norm(Z, 2) ** 2 / (4 * len(Z)) + l2.max(axis=0))
    w = np.zeros((Z.shape[1], len(penalties)))
    ahead, momentum = w, 1.0
    error = np.empty((len(Z), len(penalties)))  # in place: fresh memory in each round takes longer than the arithmetic
    for _ in range(rounds):
        np.exp(np.matmul(Z, -ahead, out=error), out=error)
        np.divide(1.0, np.add(error, 1.0, out=error), out=error)
        error -= y[:, None]
        moved = ahead - step * (Z.T @ error / len(Z) + l2 * ahead)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step * l1, 0.0)
        if np.abs(new - w).max() < 1e-6:
            w = new
            break
        if ((ahead - new) * (new - w)).sum() > 0:  # overshot: start the acceleration anew
            momentum = 1.0
        later = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead, w, momentum = new + (momentum - 1) / later * (new - w), new, later
    weights = w[:-1] / scale[:, None]
    return Pool(weights, w[-1] - mean @ weights, penalties)


def ball(im: InteractionModel, X: pd.DataFrame, width: float = BALL) -> InteractionModel:
    """Return the perturbation check: every feature that people can move, by a fraction of its standard deviation, and no rules."""
    features = []
    for f in im.features:
        reach = width * float(X[f.name].std())
        free = f.name in im.moving and reach > 0
        features.append(
            Feature(f.name, "real", actionable=free, max_increase=reach if free else None, max_decrease=reach if free else None)
        )
    return InteractionModel(features, name="perturbations")


def counts(pool: Pool, X: pd.DataFrame, im: InteractionModel, n: int) -> np.ndarray:
    """Return the hits of every account (rows) and model (columns): each account's points are drawn once, for all models."""
    hits = []
    for block in im.sample_many(X, n, seed=SEED, block_rows=max(n, CELLS // len(pool))):
        human = pool.scores(block.values) > 0
        hits.append(human.reshape(-1, n, len(pool)).sum(axis=1))
    return np.concatenate(hits)


def gameable(pool: Pool, X: np.ndarray, hits: np.ndarray, n: int, target: int) -> np.ndarray:
    """Return, for each model, the share of accounts not called `target` that are shown to reach it often enough; `hits` count *human*."""
    outside = (pool.scores(X) > 0) != target
    reached = hits if target == 1 else n - hits
    shown = np.asarray(stats.p_value(np.arange(n + 1), n, THRESHOLD, claim="above")) < ALPHA
    return (shown[reached] & outside).sum(axis=0) / np.maximum(outside.sum(axis=0), 1)


def audited(models: dict[str, Any], X: pd.DataFrame, im: InteractionModel, n: int, target: int) -> dict[str, float]:
    """Return the same by the library's own audit, for the models that were chosen."""
    found = audit(
        models, X, im, target=target, threshold=THRESHOLD, alpha=ALPHA, claim="above", n=n, method="sample", seed=SEED,
        population="outside", harm="above", execution=Execution(check=False),
    )  # fmt: skip
    return {
        name: float((found.of_model(name)["verdict"] == "above").mean()) if len(found.of_model(name)) else 0.0 for name in models
    }


def aucs(scores: np.ndarray, human: np.ndarray) -> np.ndarray:
    """Return the area under the ROC curve of each column, ties counted half."""
    from scipy.stats import rankdata

    ranks = rankdata(scores.round(9), axis=0)  # rows that are the same tie on every processor
    ones, zeros = int(human.sum()), int((1 - human).sum())
    return (ranks[human == 1].sum(axis=0) - ones * (ones + 1) / 2) / (ones * zeros)
