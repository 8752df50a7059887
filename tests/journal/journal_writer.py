"""Writers that are killed: each a process of its own, forked before it opens anything, killed at a random instant.

Run as ``journal_writer.py folder kills seed``; the last line says what was found: first by writers that each make a journal
in a new folder and are killed early, then by writers that all go on with one journal.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from functools import cache
from pathlib import Path

from budge.journal import Journal

IDENTITY = {"seed": 7, "alpha": 0.05, "spec": "a3f1"}
BLOCK = 25


def record(block: int, row: int) -> dict[str, object]:
    """Pure: what any writer would write for this row; large enough that a block takes several pages."""
    rng = random.Random(1000 * block + row)
    return {"rho": rng.random(), "low": float("nan"), "points": [rng.random() for _ in range(20)], "block": block}


@cache
def block_of(number: int) -> dict[str, dict[str, object]]:
    return {f"{number:05d}/{row:02d}": record(number, row) for row in range(BLOCK)}


def write_forever(folder: Path) -> None:
    with Journal.open(folder, IDENTITY) as journal:
        number = len(journal) // BLOCK
        while True:
            journal.write(block_of(number))
            number += 1


def killed_after(folder: Path, seconds: float) -> None:
    child = os.fork()
    if child == 0:
        try:
            write_forever(folder)
        finally:
            os._exit(1)  # only by an error: the writer does not end by itself
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, status


def found(folder: Path) -> int:
    """How many blocks the journal holds, all of them whole and as written."""
    with Journal.open(folder, IDENTITY) as journal:
        done = journal.done()
        assert journal.keys() == done.keys()
        assert not journal.complete
    assert len(done) % BLOCK == 0, f"{len(done)} records: a block is not whole"
    blocks = len(done) // BLOCK
    for number in range(blocks):
        for key, want in block_of(number).items():
            assert repr(done[key]) == repr({k: want[k] for k in sorted(want)}), key  # repr: NaN is equal to itself
    return blocks


def main(folder: Path, kills: int, seed: int) -> None:
    rng = random.Random(seed)
    counts: dict[str, list[int]] = {"create": [], "resume": []}
    for kill in range(kills):
        place = folder / f"new-{kill}"
        killed_after(place, rng.uniform(0.0, 0.03))
        counts["create"].append(found(place))
    for _ in range(kills):
        killed_after(folder / "one", rng.uniform(0.0, 0.12))
        counts["resume"].append(found(folder / "one"))
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
