"""Forged runs: digests are right and content is hostile. Each is refused in words and within limits, or shows what the honest run shows."""

from __future__ import annotations

import resource
import shutil
import time
import traceback
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import pytest
import runs_kit as kit
from forgeries import BOMB, FORGED, HUGE, STREAM, TABLE
from isolated import MEGABYTES, SECONDS, attempt

import budge
from budge.errors import BudgeError, StorageError


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of an honest run of a kind."""
    made: dict[str, Path] = {}

    def of(kind: str) -> Path:
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp(kind) / "run"
            kit.KINDS[kind](made[kind])
        return made[kind]

    return of


def copied(folder: Path, place: Path) -> Path:
    shutil.copytree(folder, place)
    return place


def test_there_are_more_than_a_hundred_forgeries_of_every_kind_of_folder() -> None:
    assert len(FORGED) >= 200
    assert {kind for kind, _ in FORGED} == set(kit.KINDS)


@pytest.mark.parametrize(("kind", "name"), FORGED, ids=[f"{kind}: {name}" for kind, name in FORGED])
def test_a_forged_run_is_refused_within_limits_or_shows_nothing_else(honest: Callable[[str], Path], tmp_path: Path, kind: str, name: str) -> None:
    folder = copied(honest(kind), tmp_path / "run")
    FORGED[kind, name](folder)
    outcome = attempt(kit.SHOW[kind], str(folder))
    assert outcome.safe, str(outcome)
    assert outcome.kind == "refused", str(outcome)
    if kind != "llm":  # a table of answers may be anybody's, and what is wrong in it is an error of data
        assert outcome.said.startswith("StorageError"), outcome.said
        assert str(folder) in outcome.said
    mine = tmp_path / "mine"
    assert not mine.exists() or mine.read_text() == "mine"


def test_honest_runs_of_every_kind_are_read(honest: Callable[[str], Path]) -> None:
    for kind, show in kit.SHOW.items():
        assert show(str(honest(kind)))


#: What was seen of people: numbers by group follow from it.
SEEN = ("columns.model.groups.home.values.",)
WRONG = [None, "x", -1, HUGE, 0.5, [], {}, True]
#: Places of a record that describe the run in words or digests, and that no number follows from.
TOLD = (
    "info.version", "info.when", "info.python", "info.numpy", "info.pandas", "info.streams", "info.name", "info.measure", "info.spec", "info.data_digest",
    "info.models", "info.model_digests", "info.answers_digests", "info.probe", "info.people", "info.twins", "info.already", "info.first_people", "info.labels",
    "info.causes", "info.addresses", "notes", "moved", "index_name", "columns.model.index",
)  # fmt: skip


def show_every(folder: str, expected: dict[str, Any], cases: list[tuple[str, int]]) -> list[str]:
    """Forge one place after the other; return what is not as it should be."""
    place, wrong = Path(folder), []
    sealed = (place / "audit.json").read_bytes()
    for path, which in cases:
        record = kit.record_of(place)
        try:
            at, last = kit.parent(record, path)
            if repr(at[last]) == repr(WRONG[which]):
                continue
            at[last] = copy(WRONG[which])  # a seal writes into the files of a record
            kit.seal(place, record, arrays=path != "files")
        except (KeyError, TypeError, IndexError):
            continue
        began = time.process_time()
        try:
            shown = kit.show_run(folder)
            if not path.startswith(SEEN) and (shown["numbers"] != expected["numbers"] or not path.startswith(TOLD)):
                wrong.append(f"{path} = {WRONG[which]!r}: read")
        except StorageError:
            pass
        except BudgeError as error:
            wrong.append(f"{path} = {WRONG[which]!r}: {type(error).__name__}: {error}")
        except Exception:
            wrong.append(f"{path} = {WRONG[which]!r}: {traceback.format_exc(limit=-2)}")
        finally:
            (place / "audit.json").write_bytes(sealed)
        if time.process_time() - began > SECONDS:
            wrong.append(f"{path} = {WRONG[which]!r}: took {time.process_time() - began:.1f} s")
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 > MEGABYTES:
        wrong.append("too much memory")
    return wrong


@pytest.mark.parametrize("kind", ["table", "stream"])
def test_every_place_of_a_record_may_hold_anything(honest: Callable[[str], Path], tmp_path: Path, kind: str, request: pytest.FixtureRequest) -> None:
    folder = copied(honest(kind), tmp_path / "run")
    paths = [p for p in kit.leaves(kit.record_of(folder)) if not p.startswith("info.spec.")]
    heavy = "heavy" in request.config.getoption("-m").replace("not heavy", "")
    cases = [(path, k) for i, path in enumerate(paths) for k in range(len(WRONG)) if heavy or (i + k) % 4 == 0]
    assert len(cases) > 150
    outcome = attempt(show_every, str(folder), kit.show_run(str(folder)), cases, hung=600)
    assert outcome.kind == "done", str(outcome)
    assert not outcome.value, "\n".join(outcome.value)


CLI = ("alpha of 2", "deep lists", "more hits than points", BOMB, "a pipe for counts", "another version", "100 MB of blanks")


@pytest.mark.parametrize("command", [["report"], ["gate", "--fail-if", "share(no_way) > 0"]], ids=["report", "gate"])
def test_commands_refuse_forged_runs_in_one_message(honest: Any, tmp_path: Path, command: list[str], capsys: Any) -> None:
    from budge.cli import main

    for k, name in enumerate(CLI):
        folder = copied(honest("table"), tmp_path / f"{k}")
        TABLE[name](folder)
        before = sorted(folder.iterdir())
        code = main([command[0], str(folder), *command[1:]])
        told = capsys.readouterr()
        assert code == 3, (name, told)
        assert str(folder) in told.err.replace("\n", "")
        assert "Traceback" not in told.err
        assert sorted(folder.iterdir()) == before


def test_a_part_that_cannot_be_read_is_named_as_it_is(honest: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied(honest("stream"), tmp_path / "run")
    STREAM["hits beyond points in a part"](folder)
    with pytest.raises(StorageError, match=r"000000-0-[0-9a-f]{16}\.parquet: cannot be read: the counts contradict") as error:
        str(budge.Audit.load(folder))
    assert "temporary" not in str(error.value)
