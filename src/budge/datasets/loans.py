"""A synthetic lending data set that needs no file: raw columns, one of them a category, and who repaid."""

from __future__ import annotations

import numpy as np
import pandas as pd

from budge.datasets.dataset import Dataset
from budge.datasets.sizes import rows_and_generator

__all__ = ["lending"]

HOUSING = ("rent", "own", "free")


def lending(n: int = 1000, seed: int = 0) -> Dataset:
    """Synthetic applicants for a loan: seven raw columns, and whether they ``repaid``.

    Income rises with age, wealth with income, ownership with both; the rules of the spec that goes with it
    (``spec_path("lending")``) hold in every row. Repayment depends in part on age and dependants, which nobody can
    change to their advantage, and in part on savings and address, which anybody can arrange: a model fitted to it
    shows people whom no action can help, and people whom a small one can.

    Examples
    --------
    >>> data = lending(n=4, seed=0)
    >>> list(data.X.columns)
    ['age', 'income', 'n_dependents', 'mortgage', 'years_at_address', 'savings', 'housing']
    >>> str(data.X["housing"].dtype)
    'category'
    """
    n, rng = rows_and_generator(n, seed)
    age = np.clip(np.rint(18 + rng.gamma(2.6, 9.0, n)), 18, 90).astype(np.int64)
    career = np.exp(-(((age - 47) / 26.0) ** 2))  # earnings peak in the late forties
    income = np.round(np.clip(np.exp(rng.normal(9.75, 0.45, n)) * (0.55 + 0.9 * career), 6000, 200000), 2)
    dependents = np.minimum(rng.poisson(0.25 + 1.3 * np.exp(-(((age - 41) / 12.0) ** 2))), 10).astype(np.int64)
    standing = (age - 35) / 15 + np.log(income / 17000) * 1.4
    owner = rng.random(n) < 1 / (1 + np.exp(-(standing - 0.2)))
    free = ~owner & (rng.random(n) < np.where(age < 27, 0.45, 0.12))
    housing = np.where(owner, "own", np.where(free, "free", "rent"))
    mortgage = (owner & (rng.random(n) < np.where(age < 55, 0.7, 0.25))).astype(np.int64)
    years = np.minimum(np.rint(rng.gamma(1.3, np.where(owner, 6.0, 2.6) * (0.3 + age / 55))), np.minimum(age - 17, 60)).astype(
        np.int64
    )
    share = rng.beta(1.2, np.where(owner, 3.0, 5.0))
    savings = np.minimum(np.floor(0.5 * income * share), 50000).astype(np.int64)
    logit = (
        -1.6
        + 1.5 * np.tanh((age - 34) / 9)  # the young are refused by default
        + 0.9 * np.log(income / 15000)
        - 0.55 * dependents
        + 1.1 * np.sqrt(savings / 1000)
        + 0.12 * np.minimum(years, 12)
        + 0.5 * owner
    )
    repaid = rng.random(n) < 1 / (1 + np.exp(-logit))
    X = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "n_dependents": dependents,
            "mortgage": mortgage,
            "years_at_address": years,
            "savings": savings,
            "housing": pd.Categorical(housing, categories=list(HOUSING)),
        }
    )
    return Dataset(
        "lending",
        X,
        pd.Series(repaid.astype("int64"), name="repaid"),
        "Synthetic applicants for a loan; 1 has repaid it",
        "simulated by budge",
        "MIT",
    )
