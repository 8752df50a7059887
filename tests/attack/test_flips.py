"""Every stored file with bytes flipped, cut off, swapped or zeroed: reading it is an error of budge, or gives exactly what was written."""

from __future__ import annotations

import json
import resource
import shutil
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import runs_kit as kit
from isolated import MEGABYTES, SECONDS, attempt

import budge
from budge.errors import BudgeError
from budge.journal import Journal

IDENTITY = {"seed": 7}
BLOCKS = 6


def flipped(data: bytes, rng: np.random.Generator) -> bytes:
    """Return the content with one damage of some kind."""
    found, size = bytearray(data), len(data)
    at, length = int(rng.integers(size)), int(rng.choice([1, 4, 64, 512, 4096]))
    match rng.choice(["flip", "flip", "several", "cut", "swap", "zero", "insert", "drop"]):
        case "flip":
            found[at] ^= 1 << int(rng.integers(8))
        case "several":
            for k in rng.integers(size, size=int(rng.integers(2, 17))).tolist():
                found[k] = int(rng.integers(256))
        case "cut":
            del found[at:]
        case "swap":
            other = int(rng.integers(size))
            one, two = bytes(found[at : at + length]), bytes(found[other : other + length])
            if len(one) == len(two):
                found[at : at + length], found[other : other + length] = two, one
        case "zero":
            start = at // length * length
            found[start : start + length] = bytes(len(found[start : start + length]))
        case "insert":
            found[at:at] = rng.bytes(length)
        case "drop":
            del found[at : at + length]
    return bytes(found)


# -- files, and what is read from them ----------------------------------------------------------------------------------


def read_run(folder: Path) -> str:
    """Return everything of a run: the record, the arrays, what is shown."""
    found = budge.Audit.load(folder)
    told = {"info": dict(found.info), "design": found.design.to_dict(), "notes": [str(n) for n in found.notes], "moved": found.moved}
    columns = {name: rows.counts.to_dict() for name, rows in found.rows.items()}
    return json.dumps([told, columns, found.whole().table.to_csv(), str(found)], default=str)


def read_journal(folder: Path) -> str:
    with Journal.open(folder, IDENTITY) as journal:
        return json.dumps([journal.done(), journal.complete])


def read_cache(folder: Path) -> str:
    return json.dumps(kit.show_cache(str(folder)))


def read_llm(folder: Path) -> str:
    found = budge.llm.load(folder)
    return json.dumps([found.table.to_csv(), found.info], default=str)


def read_log(folder: Path) -> str:
    found = budge.llm.read_log(next(p for p in folder.iterdir() if p.name.startswith("log.")))
    return json.dumps([found.table.to_csv(), found.info], default=str)


def make_logged(folder: Path) -> None:
    """A journal whose last blocks are in the log beside it, of which a part was folded in: as a kill leaves it."""
    work = folder.with_name("work")
    with Journal.open(work, IDENTITY) as journal:
        journal._connection.execute("PRAGMA wal_autocheckpoint = 0")
        for k in range(BLOCKS):
            journal.write({f"{k}-{i}": {"rho": k / 7, "text": "x" * 300, "person": i} for i in range(20)})
            if k == BLOCKS // 2:
                journal._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        folder.mkdir(parents=True)
        for name in ("journal.sqlite", "journal.sqlite-wal"):
            shutil.copy(work / name, folder / name)


def make_log(folder: Path, format: str) -> None:
    """A log of Inspect, made by its own mock model."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.model._model_output import ModelUsage
    from inspect_ai.scorer import match

    outputs = [ModelOutput.from_content("mockllm/model", "yes" if i % 2 else "no") for i in range(12)]
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    task = Task(dataset=MemoryDataset([Sample(id=f"q{i}", input=f"Question {i}?", target="yes") for i in range(4)]), scorer=match(), name="questions")
    model = get_model("mockllm/model", custom_outputs=outputs)
    log = eval(task, model=model, log_dir=str(folder / "logs"), log_format=format, display="none", max_samples=1, max_tasks=1)[0]
    assert log.status == "success", log.error
    shutil.move(str(log.location).removeprefix("file://"), folder / f"log.{format}")
    shutil.rmtree(folder / "logs")


FILES: dict[str, tuple[Callable[[Path], None], str, Callable[[Path], str]]] = {
    "record of a run": (kit.make_table, "audit.json", read_run),
    "counts of a run": (kit.make_weighted, "counts.npz", read_run),
    "record of a stream": (kit.make_stream, "audit.json", read_run),
    "part of a stream": (kit.make_stream, "parts/000001-0.parquet", read_run),
    "journal": (make_logged, "journal.sqlite", read_journal),
    "log of a journal": (make_logged, "journal.sqlite-wal", read_journal),
    "cache of answers": (kit.make_cache, "answers.sqlite", read_cache),
    "record of answers": (kit.make_llm, "run.json", read_llm),
    "answers": (kit.make_llm, "answers.jsonl", read_llm),
    "Inspect log, packed": (lambda folder: make_log(folder, "eval"), "log.eval", read_log),
    "Inspect log, JSON": (lambda folder: make_log(folder, "json"), "log.json", read_log),
}


def known(name: str, folder: Path, read: Callable[[Path], str]) -> Callable[[str], bool]:
    """Return which contents are right, besides an error."""
    content = read(folder)
    if name == "Inspect log, JSON":  # a text of another program, without a checksum: another letter is another text
        return lambda found: True
    if name == "cache of answers":  # what is not found is asked again
        answers = json.loads(content).items()
        return lambda found: json.loads(found).items() <= answers
    if name in ("journal", "log of a journal"):  # blocks that a kill may have cost, the last ones first
        whole, _ = json.loads(content)
        states = [json.dumps([{key: record for key, record in whole.items() if int(key[0]) < k}, False]) for k in range(BLOCKS + 1)]
        return states.__contains__
    return lambda found: found == content


def damage(name: str, folder: str, place: str, cases: int, seed: int) -> list[str]:
    """Read damaged copies; return what is not as it should be."""
    _, file, read = FILES[name]
    rng, wrong, work = np.random.default_rng([seed, len(name)]), [], Path(place)
    originals = {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}
    shutil.copytree(folder, work / "honest")
    right = known(name, work / "honest", read)
    damaged = kit.at(Path(folder), file).relative_to(folder)
    data = originals[damaged]
    for case in range(cases):
        here, bad = work / "copy", flipped(data, rng)
        shutil.rmtree(here, ignore_errors=True)
        for path, content in originals.items():
            (here / path).parent.mkdir(parents=True, exist_ok=True)
            (here / path).write_bytes(bad if path == damaged else content)
        began = time.process_time()
        try:
            content = read(here)
            if not right(content):
                wrong.append(f"case {case}: other content")
        except BudgeError:
            pass
        except Exception:
            wrong.append(f"case {case}: {traceback.format_exc(limit=-3)}")
        if time.process_time() - began > SECONDS:
            wrong.append(f"case {case}: {time.process_time() - began:.1f} s")
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 > MEGABYTES + (200 if "Inspect" in name else 0):  # Inspect itself takes some 150
        wrong.append(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    return wrong[:20]


def check(name: str, tmp_path: Path, cases: int, seed: int) -> None:
    if "Inspect" in name:
        pytest.importorskip("inspect_ai", reason="logs of Inspect need inspect-ai (extra `llm`)")
    folder = tmp_path / "made" / "run"
    folder.parent.mkdir()
    FILES[name][0](folder)
    (tmp_path / "work").mkdir()
    outcome = attempt(damage, name, str(folder), str(tmp_path / "work"), cases, seed, hung=1800)
    assert outcome.kind == "done", str(outcome)
    assert not outcome.value, "\n".join(outcome.value)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_an_error_or_the_same(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, 25 if "Inspect" in name else 60, seed=1)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", FILES)
def test_ten_thousand_damaged_files_are_errors_or_the_same(name: str, seed: int, tmp_path: Path) -> None:
    check(name, tmp_path, 1000, seed=100 + seed)
