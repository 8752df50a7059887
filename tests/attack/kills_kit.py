"""Work that is killed: audits on every engine, of streams and over other runs, and runs with language models; workers import it from here."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Execution, Feature, InteractionModel
from budge.audit.cases import chosen

PEOPLE, BLOCK, DRAWS = 60, 3, 40
STILL = [Feature("rate", "real", actionable=False), Feature("who", "integer", actionable=False)]
IM = InteractionModel([Feature("dial", "real", bounds=(0, 1)), *STILL])
X = pd.DataFrame({"dial": 0.5, "rate": np.random.default_rng(0).choice([0.0, 0.05, 0.1, 0.3, 0.7], PEOPLE), "who": np.arange(PEOPLE)})
WISH: dict[str, Any] = {"target": 1, "n": DRAWS, "seed": 6, "population": "all"}
NOTED = "asked.txt"


@dataclass(frozen=True)
class Slow:
    """Hits where the dial is below the rate; takes its time, and notes about whose draws it is asked."""

    log: Path | None = None
    seconds: float = 0.0
    turned: bool = False

    def __call__(self, table: pd.DataFrame) -> Any:
        who = table["who"].to_numpy()
        many = np.unique(who)
        if self.log is not None and len(many) < len(who):  # not the people as they are
            with open(self.log, "ab", buffering=0) as file:
                file.write(("".join(f"{int(w)} " for w in many)).encode())
            time.sleep(self.seconds)
        found = (table["dial"].to_numpy() < table["rate"].to_numpy()).astype(int)
        return 1 - found if self.turned else found


def how(kind: str, folder: Path, **more: Any) -> Execution:
    engine = kind if kind in ("processes", "dask", "ray") else None
    jobs = 2 if engine else 1
    return Execution(journal=folder, block_people=BLOCK, check=False, engine=engine, n_jobs=jobs, **more)


def people(kind: str, folder: Path) -> Any:
    if kind not in ("streams", "streams over another"):
        return X
    from budge.people import People

    place = folder.parent / "people.parquet"
    if not place.exists():
        X.to_parquet(place, index=False)
    return People.of(place, part=BLOCK)


def prepared(kind: str, folder: Path) -> None:
    """Put another run into the folder, where there is to be one."""
    if "over another" in kind:
        budge.audit(Slow(turned=True), people(kind, folder), IM, **WISH, execution=how(kind, folder, finish=lambda found: kept(found, folder)))


def kept(found: Any, folder: Path) -> Any:
    found.save(folder, overwrite=True)
    return found


def work(kind: str, folder: Path, seconds: float = 0.004, url: str = "") -> str:
    """Do the work, or go on with it; return its result as text."""
    if kind == "llm":
        return asked(folder, url)
    (folder.parent / "begun").touch()
    model = Slow(folder.parent / NOTED, seconds)
    execution = how(kind, folder, overwrite="over another" in kind, finish=lambda found: kept(found, folder))
    return str(budge.audit(model, people(kind, folder), IM, **WISH, execution=execution).table.to_csv())


def truth(kind: str, folder: Path) -> str:
    return str(budge.audit(Slow(), people(kind, folder), IM, **WISH, execution=Execution(check=False)).table.to_csv())


def shown(kind: str, folder: Path) -> set[int]:
    """Return the people whose points are asked about again when the run is saved: the few whom a report shows in full."""
    if kind == "llm" or "streams" in kind:
        return set()
    found = budge.audit(Slow(), people(kind, folder), IM, **WISH, execution=Execution(check=False))
    return set(chosen(found.rows["model"].counts, found.claims("model")).values())


def asked(folder: Path, url: str) -> str:
    sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
    from llm_run_kit import PROMPTS, QUICK, Says, Shout

    from budge import llm

    folder.parent.mkdir(parents=True, exist_ok=True)
    (folder.parent / "begun").touch()
    found = llm.run(
        llm.ChatModel("fake", url), PROMPTS, {"shout": Shout()}, judge=Says(), n=24, seed=5, patience=QUICK, concurrency=3, folder=folder
    )
    return str(found.answers.table.to_csv())


def silent(*given: Any) -> None:
    """Work in a process that says nothing."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    work(*given)
