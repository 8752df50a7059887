"""Clusters of two workers on this machine, shared by the tests of a module."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def dask_client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="dask[distributed] is in the `dask` extra")
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="ray is in the `ray` extra")
    path = os.pathsep.join([str(HERE), *sys.path])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", _node_ip_address="127.0.0.1")
    yield ray
    ray.shutdown()


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Any:
    """An engine by name: a cluster that runs for the clusters."""
    return {"dask": lambda: request.getfixturevalue("dask_client"), "ray": lambda: request.getfixturevalue("ray_cluster")}.get(
        request.param, lambda: request.param
    )()
