"""What a loader returns: features, outcome, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

__all__ = ["Dataset"]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and outcome of a data set, with its origin.

    Attributes
    ----------
    name : str
        The name under which `budge.datasets.load` knows it.
    X : pandas.DataFrame
        One row a person, one column a feature.
    y : pandas.Series
        The outcome, aligned with ``X``; what 1 means is in the description.
    description, source, licence : str
        What the rows are, where they come from, and under which terms.

    Examples
    --------
    >>> from budge.datasets import lending
    >>> print(lending(n=100, seed=0))
    lending: 100 rows, 7 features, share of 1 in 'repaid' ...
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    description: str
    source: str
    licence: str

    def __post_init__(self) -> None:
        assert self.X.index.equals(self.y.index), "features and outcome have different rows"

    def __str__(self) -> str:
        rows, features = self.X.shape
        return f"{self.name}: {rows} rows, {features} features, share of 1 in {self.y.name!r} {float(self.y.mean()):.3f}"

    def __repr__(self) -> str:
        return f"<Dataset {self}>"

    def __len__(self) -> int:
        return len(self.X)
