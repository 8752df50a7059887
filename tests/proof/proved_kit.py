"""What the tests of proved rows share: a score that is a sum over columns, and people of whom each has another kind of proof."""

from __future__ import annotations

import numpy as np
import pandas as pd

import budge


class Card:
    """A scorecard that attains 1 where the sum of its columns is at least the cut."""

    classes_ = (0, 1)

    def __init__(self, cut: float, slopes: tuple[float, ...] = ()) -> None:
        self.cut, self.slopes = cut, slopes

    def predict(self, table):
        return (table @ np.array(self.slopes or (1.0,) * table.shape[1]) >= self.cut).astype(int).to_numpy()

    def structure(self, columns):
        answer = budge.proof.Answer("binary", (0, 1), cut=self.cut, strict=False, link=None)
        slopes = {c.name: np.full(1, s) for c, s in zip(columns, self.slopes or (1.0,) * len(columns))}
        return budge.proof.Additive(tuple(columns), answer, np.zeros(1), slopes=slopes)


def between_ends(share: float = 0.5) -> tuple[Card, budge.InteractionModel, pd.DataFrame]:
    """Return a model and a person whose responsiveness is proved to lie between two ends, near a share: its sums are too many to list."""
    im, x = wide("abcdefghi", 1000)
    slopes = tuple(float(np.sqrt(2 + k)) for k in range(9))
    spread = float(np.sqrt(np.sum(np.square(slopes)) / 12)) * 1000
    return Card(sum(slopes) * 500 + spread * (0.5 - share) * 2.5, slopes), im, x


def wide(names: str = "ab", top: int = 100_000, kind: str = "integer", **more) -> tuple[budge.InteractionModel, pd.DataFrame]:
    im = budge.InteractionModel([budge.Feature(name, kind, bounds=(0, top), **more) for name in names])
    return im, pd.DataFrame({name: [0.0 if kind == "real" else 0] for name in names})
