"""A disk that is full or broken at any instant costs nothing that was there, leaves nothing behind, and the same call completes once it is mended."""

from __future__ import annotations

import errno
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from faults import Storage, failing

import budge
from budge import Audit, Design, Execution, Feature, InteractionModel
from budge.audit.export import write_points
from budge.cli import main
from budge.errors import StorageError
from budge.models.cache import AnswerCache

IM = InteractionModel([Feature("a", "integer", bounds=(0, 9), max_increase=3), Feature("b", "real", actionable=False)])
X = pd.DataFrame({"a": np.arange(12) % 10, "b": np.linspace(0, 1, 12)})


def score(table: pd.DataFrame) -> Any:
    return (table["a"] + 5 * table["b"] > 8).astype(int).to_numpy()


def other(table: pd.DataFrame) -> Any:
    return 1 - score(table)


def audited(model: Any = score, **how: Any) -> Audit:
    return budge.audit(model, X, IM, target=1, execution=Execution(block_people=4, **how))


def streamed(folder: Path, model: Any = score, **how: Any) -> Audit:
    from budge.people import People

    people = People.of(folder.parent / "people.parquet", part=5)
    return budge.audit(model, people, IM, target=1, execution=Execution(journal=folder, **how))


# Each action is (prepare, act, read): `read` returns what a reader sees, and raises where nothing can be read.


def table_of(place: Path) -> str:
    return Audit.load(place).table.to_csv()


def old_run(place: Path) -> None:
    audited(other).save(place)


def people(place: Path) -> None:
    if importlib.util.find_spec("pyarrow") is not None:
        X.to_parquet(place.parent / "people.parquet", index=False)
    X.to_csv(place.parent / "people.csv", index=False)


def nothing(place: Path) -> None:
    pass


def journaled(place: Path) -> None:
    audited(journal=place)


def answered(place: Path) -> None:
    cache = AnswerCache(place)
    for k in range(3):
        cache.put({f"k{k}": k})


def report(place: Path) -> None:
    audited().to_html(place, overwrite=True, title="t")


def pages(place: Path) -> str:
    return place.read_text(encoding="utf-8").partition("<main")[2][:4000] or "empty"


def export(ending: str) -> Callable[[Path], None]:
    def act(place: Path) -> None:
        write_points(IM, X, Design(target=1), place.with_suffix(ending), overwrite=True)

    return act


def exported(ending: str) -> Callable[[Path], str]:
    return lambda place: str((pd.read_csv if ending == ".csv" else pd.read_parquet)(place.with_suffix(ending)).to_csv())


def init(place: Path) -> None:
    code = main(["init", str(place.parent / "people.csv"), "-o", str(place.with_suffix(".yaml")), "--overwrite", "--quiet"])
    if code == 3:
        raise StorageError("exit code 3")
    assert code == 0


def figure(place: Path) -> None:
    audited().plot("verdicts", by=X["a"] > 4).save(place.with_suffix(".svg"), overwrite=True)


def asked(place: Path, word: str = "yes", **more: Any) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
    from llm_run_kit import Says

    from budge import llm
    from budge.llm.answers import Answers
    from budge.llm.runs.folder import save

    rows = [{"model": "m", "interaction": "base", "prompt": f"p{i}", "category": "", "draw": 0, "hit": word == "yes", "answer": word} for i in range(4)]
    save(Answers.of(rows, {"scheme": "per_prompt", "judge": Says(word).name}), place)
    assert len(llm.load(place).table) == 4


def loaded(place: Path) -> str:
    from budge import llm

    return str(llm.load(place).table.to_csv())


Act = Callable[[Path], Any]
ACTIONS: dict[str, tuple[Act, Act, Act]] = {
    "save": (nothing, lambda p: audited().save(p), table_of),
    "save over another run": (old_run, lambda p: audited().save(p, overwrite=True), table_of),
    "save over a stream": (lambda p: streamed(p, other), lambda p: audited().save(p, overwrite=True), table_of),
    "journaled audit": (nothing, journaled, lambda p: audited(journal=p).table.to_csv()),
    "journaled audit over another": (
        lambda p: audited(other, journal=p), lambda p: audited(journal=p, overwrite=True), lambda p: audited(other, journal=p).table.to_csv(),
    ),
    "streamed audit": (nothing, streamed, table_of),
    "streamed audit over another": (lambda p: streamed(p, other), lambda p: streamed(p, overwrite=True), table_of),
    "copy of a stream": (lambda p: streamed(p.with_name("from")), lambda p: Audit.load(p.with_name("from")).save(p, overwrite=True), table_of),
    "answer cache": (nothing, answered, lambda p: str(sorted(AnswerCache(p).get(["k0", "k1", "k2"]).items()))),
    "answers of a language model": (lambda p: asked(p, "no"), asked, loaded),
    "report": (nothing, report, pages),
    "export to CSV": (nothing, export(".csv"), exported(".csv")),
    "export to Parquet": (nothing, export(".parquet"), exported(".parquet")),
    "figure": (nothing, figure, lambda p: p.with_suffix(".svg").read_text()),
    "init": (nothing, init, lambda p: p.with_suffix(".yaml").read_text()),
}  # fmt: skip
QUICK = {"save over another run": 1, "journaled audit over another": 1, "streamed audit over another": 7, "answers of a language model": 1, "init": 1}
"""Actions of every run, and how many calls there are from one that fails to the next."""


def seen(read: Act, place: Path) -> str | None:
    """Return what a reader sees; None where there is nothing."""
    try:
        return str(read(place))
    except (OSError, budge.BudgeError):
        return None


def names(place: Path) -> set[str]:
    return {str(path.relative_to(place.parent)) for path in place.parent.rglob("*") if not path.name.startswith(("journal.", "place-", "people."))}


def hidden(place: Path) -> set[str]:
    return {name for name in names(place) if Path(name).name.startswith(".")}


def attack(tmp_path: Path, action: str, code: int, lasting: bool, step: int) -> int:
    prepare, act, read = ACTIONS[action]
    whole = tmp_path / "whole" / "place"
    whole.parent.mkdir()
    people(whole)
    prepare(whole)
    before = seen(read, whole) if not action.startswith("journaled") else None
    act(whole)
    after = seen(read, whole) if not action.endswith("audit over another") or "stream" in action else audited(journal=whole).table.to_csv()
    listed = names(whole)
    assert after is not None
    assert not hidden(whole)
    k = 0
    while True:
        k += step
        place = tmp_path / str(k) / "place"
        place.parent.mkdir()
        people(place)
        prepare(place)
        there = names(place)
        with failing(Storage(k, code, lasting=lasting)) as storage:
            try:
                act(place)
                error = None
            except Exception as caught:
                error = caught
        if not storage.failed:
            assert error is None
            return k
        label = f"{action}, call {k}: {storage.failed}, {os.strerror(code)}"
        if error is not None:
            assert isinstance(error, StorageError), f"{label}: {error!r}"
            assert error.exit_code == 3
            assert not hidden(place), label
            if action == "answer cache":
                assert seen(read, place) in [str([(f"k{i}", i) for i in range(many)]) for many in range(4)], label
            elif "journaled" not in action:
                assert seen(read, place) in (before, after), label
            if not action.startswith(("journaled", "streamed", "answer cache")):
                assert names(place) in (there, listed), label
            act(place)  # mended: the same call completes
        found = audited(journal=place).table.to_csv() if "journaled" in action else seen(read, place)
        assert found == after, label
        assert names(place) == listed, label


CODES = {"full": (errno.ENOSPC, True), "broken": (errno.EIO, False)}


@pytest.mark.parametrize("fault", CODES)
@pytest.mark.parametrize("action", QUICK)
def test_a_failed_call_is_a_storage_error_and_costs_nothing(tmp_path: Path, action: str, fault: str) -> None:
    assert attack(tmp_path, action, *CODES[fault], step=QUICK[action]) > 3


@pytest.mark.heavy
@pytest.mark.parametrize("fault", CODES)
@pytest.mark.parametrize("action", [name for name in ACTIONS if QUICK.get(name) != 1])
def test_every_failed_call_is_a_storage_error_and_costs_nothing(tmp_path: Path, action: str, fault: str) -> None:
    assert attack(tmp_path, action, *CODES[fault], step=1) > 3


def run_llm(url: str, folder: Path, *, n: int = 4, **more: Any) -> Any:
    sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
    from llm_run_kit import PROMPTS, QUICK, Says

    from budge import llm

    return llm.run(llm.ChatModel("fake", url), PROMPTS, judge=Says(), n=n, seed=5, patience=QUICK, concurrency=1, folder=folder, **more)


@pytest.mark.heavy
@pytest.mark.parametrize("fault", CODES)
def test_a_run_with_a_language_model_survives_every_failed_call(tmp_path: Path, fault: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "llm"))
    pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
    from llm_run_kit import fake_server

    from budge import llm

    code, lasting = CODES[fault]
    with fake_server() as fake:
        whole = run_llm(fake.url, tmp_path / "whole").answers.table.to_csv()
        old = run_llm(fake.url, tmp_path / "old", n=3).answers.table.to_csv()
        for k in range(1, 200):
            folder = tmp_path / str(k)
            run_llm(fake.url, folder, n=3)
            with failing(Storage(k, code, lasting=lasting, under=str(folder))) as storage:  # Inspect has files of its own elsewhere
                try:
                    run_llm(fake.url, folder, overwrite=True)
                    error = None
                except StorageError as caught:
                    error = caught
            if not storage.failed:
                break
            assert llm.load(folder).table.to_csv() in ((old, whole) if error is not None else (whole,)), (k, storage.failed)
            asked = len(fake.asked)
            assert run_llm(fake.url, folder, overwrite=True).answers.table.to_csv() == whole, (k, storage.failed)
            assert len(fake.asked) - asked <= 4
            assert llm.load(folder).table.to_csv() == whole
        assert k > 10


FULL = """
import sys; sys.path.insert(0, {here!r})
from pathlib import Path
import test_disk as t
from budge.errors import StorageError
place = Path({place!r})
try:
    t.ACTIONS[{action!r}][1](place)
except StorageError as error:
    print(error); sys.exit(3)
"""


@pytest.mark.heavy
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounts a file system")
@pytest.mark.parametrize("action", ["save over another run", "journaled audit over another", "streamed audit over another", "report", "export to CSV"])
def test_a_file_system_that_is_really_full(tmp_path: Path, action: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        prepare, act, read = ACTIONS[action]
        place = disk / "place"
        people(place)
        people(tmp_path / "place")
        prepare(place)
        before = seen(read, place)
        act(tmp_path / "place") if "over" not in action else (prepare(tmp_path / "place"), act(tmp_path / "place"))
        for left in range(0, 400_000, 16_384):  # bytes that are free
            filler = disk / "filler"
            filler.unlink(missing_ok=True)
            free = os.statvfs(disk)
            filler.write_bytes(bytes(max(0, free.f_bavail * free.f_frsize - left)))
            script = FULL.format(here=str(Path(__file__).parent), place=str(place), action=action)
            found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
            assert found.returncode in (0, 3), found.stderr
            if found.returncode == 0:
                break
            assert not hidden(place), found.stdout
            if "journaled" not in action:
                assert seen(read, place) == before, found.stdout
        filler.unlink()
        act(place)
        if "journaled" not in action:
            assert seen(read, place) == seen(read, tmp_path / "place")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
