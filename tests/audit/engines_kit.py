"""Work for the tests of engines: in a module of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from budge.errors import ModelError


def draws(block: int) -> float:
    """Pure: the sum of some draws that depend on the block alone."""
    return float(np.random.default_rng((7, block)).normal(size=100).sum())


@dataclass(frozen=True)
class Deadly:
    """Draws, and kills its worker on some blocks: so many times each, counted in files; -1: always."""

    folder: Path
    blocks: tuple[int, ...]
    times: int = 1

    def __call__(self, block: int) -> tuple[float, int]:
        count = self.folder / f"tries-{block}"
        with count.open("a") as file:
            file.write("x")
        if block in self.blocks and (self.times < 0 or count.stat().st_size <= self.times):
            os.kill(os.getpid(), signal.SIGKILL)
        return draws(block), os.getpid()


def tries(folder: Path) -> dict[int, int]:
    return {int(path.name.removeprefix("tries-")): path.stat().st_size for path in folder.glob("tries-*")}


def judged(block: int) -> int:
    if block == 5:
        raise ModelError("the model answers with 3 values", where="model", got=[1, 2], remedy="answer with as many as there are rows")
    return block


class OddError(Exception):
    """Cannot be pickled: it holds something that belongs to its process."""

    def __init__(self, text: str):
        super().__init__(text)
        self.lock = threading.Lock()


def odd(block: int) -> int:
    raise OddError(f"{block} and {block}")


def threads_inside(block: int) -> tuple[str | None, int]:
    import threadpoolctl

    np.ones((4, 4)) @ np.ones((4, 4))
    return os.environ.get("OMP_NUM_THREADS"), max((lib["num_threads"] for lib in threadpoolctl.threadpool_info()), default=1)


def pid_of(block: Any) -> int:
    return os.getpid()


@dataclass(frozen=True)
class Slow:
    """Writes its process and its block down, then takes its time."""

    folder: Path
    seconds: float

    def __call__(self, block: int) -> int:
        (self.folder / f"pid-{os.getpid()}").touch()
        (self.folder / f"block-{block}").touch()
        time.sleep(self.seconds)
        return block
