"""The same audit on real local clusters: the table is the same to the bit."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import budge
from budge.datasets import lending, spec_path
from budge.datasets.scorecard import Scorecard


def run(**how: Any) -> pd.DataFrame:
    data = lending(n=160, seed=3)
    model = Scorecard.fit(data.X.iloc[:140], data.y.iloc[:140])
    im = budge.InteractionModel.from_file(spec_path("lending"))
    execution = budge.Execution(block_people=4, **how)
    return budge.audit(model, data.X.iloc[140:], im, target=1, n=40, seed=5, execution=execution).table


@pytest.fixture(scope="module")
def alone() -> pd.DataFrame:
    return run()


def test_a_dask_cluster_gives_the_same_table(alone: pd.DataFrame, dask_client: Any) -> None:
    pd.testing.assert_frame_equal(run(engine=dask_client), alone, check_exact=True)


def test_a_ray_cluster_gives_the_same_table(alone: pd.DataFrame, ray_cluster: Any) -> None:
    pd.testing.assert_frame_equal(run(engine=ray_cluster), alone, check_exact=True)


def test_two_processes_give_the_same_table(alone: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(run(n_jobs=2), alone, check_exact=True)
