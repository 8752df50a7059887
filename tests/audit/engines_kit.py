"""Work for the tests of engines: in a module of its own, so that workers can import it."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from budge.errors import ModelError


@dataclass(frozen=True)
class Draws:
    """Pure: the sum of some draws that depend on the block alone, and who worked."""

    seed: int = 7

    def __call__(self, block: int) -> tuple[float, int]:
        return float(np.random.default_rng((self.seed, block)).normal(size=100).sum()), os.getpid()


@dataclass(frozen=True)
class Deadly:
    """Kills its worker on some blocks: so many times each, by markers in a folder; -1: always."""

    folder: Path
    blocks: tuple[int, ...]
    times: int = 1
    pause: float = 0.0

    def __call__(self, block: int) -> int:
        time.sleep(self.pause)
        with (self.folder / f"tries-{block}").open("a") as file:
            file.write("x")
        if block in self.blocks:
            tries = (self.folder / f"tries-{block}").stat().st_size
            if self.times < 0 or tries <= self.times:
                os.kill(os.getpid(), signal.SIGKILL)
        return block * block


def tries(folder: Path) -> dict[int, int]:
    return {int(path.name.removeprefix("tries-")): path.stat().st_size for path in folder.glob("tries-*")}


def judged(block: int) -> int:
    if block == 5:
        raise ModelError("the model answers with 3 values", where="model", got=[1, 2], remedy="answer with as many as there are rows")
    return block


class OddError(Exception):
    """Cannot be pickled back: its arguments are not those of its constructor."""

    def __init__(self, a: int, b: int):
        super().__init__(f"{a} and {b}")


def odd(block: int) -> int:
    raise OddError(block, block)


def threads_inside(block: int) -> tuple[str | None, int]:
    import threadpoolctl

    np.ones((4, 4)) @ np.ones((4, 4))
    return os.environ.get("OMP_NUM_THREADS"), max((lib["num_threads"] for lib in threadpoolctl.threadpool_info()), default=1)


def pid_of(block: Any) -> int:
    return os.getpid()


@dataclass(frozen=True)
class Slow:
    """Writes its process down, then takes its time."""

    folder: Path
    seconds: float

    def __call__(self, block: int) -> int:
        (self.folder / f"pid-{os.getpid()}").touch()
        time.sleep(self.seconds)
        return block
