"""The journal: whole blocks or none, after a kill, a fault of the disk, a flipped bit, a second process."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budge.errors import InputError, OutputExistsError, StorageError
from budge.journal import Journal
from budge.journal.records import decode, encode

HERE = Path(__file__).parent
IDENTITY = {"spec": "a3f1", "data": "77c0", "seed": 7, "n": 402, "alpha": 0.05, "target": [1], "version": "0.1"}
RECORDS: dict[str, dict[str, Any]] = {f"person-{i:03d}": {"rho": i / 7, "hits": i, "verdict": "below"} for i in range(60)}


def written(folder: Path, *, blocks: int = 3) -> Path:
    """A journal with all records, closed."""
    keys = list(RECORDS)
    with Journal.open(folder, IDENTITY) as journal:
        for number in range(blocks):
            journal.write({key: RECORDS[key] for key in keys[number::blocks]})
    return folder / "journal.sqlite"


def python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


# -- what goes in comes out ---------------------------------------------------------------------------------------------


def test_a_run_is_written_block_by_block_and_resumes(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "run", IDENTITY) as journal:
        assert (journal.done(), journal.keys(), len(journal), journal.complete) == ({}, set(), 0, False)
        journal.write({"b": {"rho": 0.5}, "a": {"rho": 0.25}})
        journal.write({})
        assert journal.keys() == {"a", "b"}
    with Journal.open(tmp_path / "run", IDENTITY) as journal:
        assert list(journal.items()) == [("a", {"rho": 0.25}), ("b", {"rho": 0.5})]
        assert journal.folder == tmp_path / "run"
        journal.write({"c": {"rho": 1.0}})
        journal.finish()
        assert journal.complete
    with Journal.open(tmp_path / "run", IDENTITY) as journal:
        assert journal.complete
        assert journal.keys() == {"a", "b", "c"}


def test_a_record_may_be_written_twice_but_not_changed(tmp_path: Path) -> None:
    with Journal.open(tmp_path, IDENTITY) as journal:
        journal.write({"a": {"rho": 0.5}})
        journal.write({"a": {"rho": 0.5}, "b": {"rho": 0.5}})
        with pytest.raises(StorageError, match="another result for 'a'"):
            journal.write({"c": {"rho": 0.5}, "a": {"rho": 0.6}})
        assert journal.done() == {"a": {"rho": 0.5}, "b": {"rho": 0.5}}  # nothing of the refused block
    with Journal.open(tmp_path, IDENTITY) as journal:
        assert len(journal) == 2


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("$float"), inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_records_come_back_to_the_bit(value: Any) -> None:
    text = encode(value)
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert repr(ordered(decode(text))) == repr(ordered(value))  # repr tells 0.0 from -0.0, and knows NaN


def ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value)}
    return [ordered(item) for item in value] if isinstance(value, list) else value


def test_floats_survive_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    floats = [*rng.integers(0, 2**64, 500, dtype=np.uint64).view(np.float64), 0.1, -0.0, 5e-324, math.inf, -math.inf, math.nan]
    with Journal.open(tmp_path, IDENTITY) as journal:
        journal.write({"a": {"values": floats, "scalar": np.float64(0.1), "count": np.int64(3), "array": np.array([1.5, np.nan])}})
    with Journal.open(tmp_path, IDENTITY) as journal:
        record = journal.done()["a"]
    assert [repr(value) for value in record["values"]] == [repr(float(value)) for value in floats]
    assert record["scalar"] == 0.1
    assert record["count"] == 3
    assert repr(record["array"]) == "[1.5, nan]"


@pytest.mark.parametrize("value", [object(), {1: 2}, b"x", {1, 2}, 1j, np.datetime64("2020-01-01")], ids=lambda value: type(value).__name__)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        encode({"a": value})


# -- which run it is ----------------------------------------------------------------------------------------------------


def test_another_run_is_refused_with_all_that_differs(tmp_path: Path) -> None:
    path = written(tmp_path)
    before = path.read_bytes()
    other = {**IDENTITY, "seed": 8, "alpha": 0.1, "model": "xgb"}
    del other["target"]
    with pytest.raises(InputError) as caught:
        Journal.open(tmp_path, other)
    text = str(caught.value)
    assert all(problem.where == str(path) for problem in caught.value.problems)
    for part in ("seed was 7, now it is 8", "alpha was 0.05, now it is 0.1", "target was [1], now it is nothing", 'model was nothing, now it is "xgb"'):
        assert part in text
    assert "spec" not in text
    assert path.read_bytes() == before


def test_tuples_and_numpy_numbers_make_no_other_run(tmp_path: Path) -> None:
    written(tmp_path)
    same = {**IDENTITY, "target": (1,), "seed": np.int64(7), "alpha": np.float64(0.05)}
    with Journal.open(tmp_path, dict(reversed(same.items()))) as journal:
        assert len(journal) == len(RECORDS)


def test_a_run_in_the_folder_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = written(tmp_path)
    with pytest.raises(OutputExistsError, match=r"journal\.sqlite"):
        Journal.open(tmp_path, IDENTITY, resume=False)
    with Journal.open(tmp_path, IDENTITY) as journal:
        assert journal.done() == RECORDS
    with Journal.open(tmp_path, {**IDENTITY, "seed": 8}, overwrite=True) as journal:
        assert journal.done() == {}
        journal.write({"z": {"rho": 0.0}})
    with Journal.open(tmp_path, IDENTITY) as journal:
        assert journal.done() == RECORDS  # until the other one is finished
    for overwrite in (False, True):
        with Journal.open(tmp_path, {**IDENTITY, "seed": 8}, overwrite=overwrite) as journal:
            assert journal.keys() == {"z"}  # goes on
    with Journal.open(tmp_path, {**IDENTITY, "seed": 8}) as journal:
        journal.finish()
        assert journal.keys() == {"z"}
    with pytest.raises(InputError, match="seed"):
        Journal.open(tmp_path, IDENTITY)
    assert sorted(p.name for p in path.parent.iterdir()) == ["journal.lock", "journal.sqlite"]


def test_the_log_of_the_replaced_run_is_not_replayed(tmp_path: Path) -> None:
    """A killed run leaves a log beside its file; what replaces the file must not inherit it."""
    python(KILLED, tmp_path / "run")
    assert (tmp_path / "run" / "journal.sqlite-wal").stat().st_size > 0
    with Journal.open(tmp_path / "run", {"seed": 8}, overwrite=True) as journal:
        assert journal.done() == {}
    with Journal.open(tmp_path / "run", {"seed": 8}) as journal:
        assert journal.done() == {}


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from budge.journal import Journal
    journal = Journal.open(Path(sys.argv[1]), {"seed": 7})
    for i in range(5):
        journal.write({f"{i}-{j}": {"rho": j / 7} for j in range(10)})
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("step", ["before the file is moved", "before its log is removed"])
def test_a_replacement_that_dies_under_way_leaves_the_old_run(tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with Journal.open(tmp_path, {"seed": 8}, overwrite=True) as journal, monkeypatch.context() as patch:
        journal.write({"z": {"rho": 0.0}})
        patch.setattr(*((os, "replace") if "moved" in step else (Path, "unlink")), die)
        with pytest.raises(KeyboardInterrupt):
            journal.finish()
    with Journal.open(tmp_path, IDENTITY) as journal:
        assert journal.done() == RECORDS
    with Journal.open(tmp_path, {"seed": 8}, overwrite=True) as journal:  # nothing is done again
        assert journal.keys() == {"z"}
        journal.finish()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["journal.lock", "journal.sqlite"]  # nothing is left behind


# -- damage -------------------------------------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def truncated_by_one_page(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 4096)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def not_a_database(path: Path) -> None:
    path.write_text("person,rho\n1,0.5\n" * 500)


def another_database(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE done (key, record, checksum)")
    connection.close()


def zero_page(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-4096:] = bytes(4096)
    path.write_bytes(data)


def edit(sql: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            assert connection.execute(sql).rowcount == 1
        connection.close()

    return change


DAMAGE: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncated, "malformed|damaged"),
    "truncated by one page": (truncated_by_one_page, "malformed|damaged"),
    "zero-length": (emptied, "0 bytes"),
    "not a database": (not_a_database, "not a database"),
    "another database": (another_database, "no journal of budge"),
    "a page of zeros": (zero_page, "damaged"),
    "a changed record": (
        edit("UPDATE done SET record = replace(record, '0.14285714285714285', '0.14285714285714286') WHERE key = 'person-001'"),
        "'person-001' does not match its checksum",
    ),
    "an exchanged key": (edit("UPDATE done SET key = 'person-999' WHERE key = 'person-001'"), "'person-999' does not match"),
    "a lost record": (edit("DELETE FROM done WHERE key = 'person-001'"), "60 records were written, 59 are there"),
    "a changed identity": (edit("UPDATE meta SET value = replace(value, '402', '403') WHERE key = 'identity'"), "'identity' does not match"),
    "a lost note": (edit("DELETE FROM meta WHERE key = 'complete'"), "'complete' is missing"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named_and_nothing_is_concluded_from_it(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path)
    change, words = DAMAGE[kind]
    before = path.read_bytes()
    change(path)
    assert path.read_bytes() != before
    after = path.read_bytes()
    with pytest.raises(StorageError, match=words) as caught:
        Journal.open(tmp_path, IDENTITY)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 3
    assert path.read_bytes() == after, "a damaged journal is evidence: it is let be"
    with Journal.open(tmp_path, IDENTITY, overwrite=True) as journal:  # the remedy that it names
        assert journal.done() == {}


def test_no_flipped_bit_gives_a_wrong_number(tmp_path: Path) -> None:
    """Either the damage is noticed or the records are the same: over 400 bits, most of them in what is used."""
    path = written(tmp_path / "run")
    good = path.read_bytes()
    rng = random.Random(11)
    used = [i for i, byte in enumerate(good) if byte]
    noticed = 0
    for _ in range(400):
        data = bytearray(good)
        data[rng.choice(used)] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
        for log in ("-wal", "-shm"):
            path.with_name(path.name + log).unlink(missing_ok=True)
        try:
            with Journal.open(path.parent, IDENTITY) as journal:
                found, complete = journal.done(), journal.complete
        except (StorageError, InputError) as error:
            noticed += str(path) in str(error)
        else:
            assert found == RECORDS
            assert not complete
    assert noticed > 300


def test_a_torn_log_loses_whole_blocks_only(tmp_path: Path) -> None:
    python(KILLED, tmp_path / "run")
    log = (tmp_path / "run" / "journal.sqlite-wal").read_bytes()
    rng = random.Random(3)
    sizes = set()
    for trial in range(25):
        place = tmp_path / str(trial)
        shutil.copytree(tmp_path / "run", place)
        (place / "journal.sqlite-shm").unlink(missing_ok=True)
        cut = rng.randrange(len(log))
        torn = bytearray(log[:cut]) if trial % 2 else bytearray(log)
        if not trial % 2:
            torn[cut] ^= 4
        (place / "journal.sqlite-wal").write_bytes(torn)
        with Journal.open(place, {"seed": 7}) as journal:
            done = journal.done()
        blocks = len(done) // 10
        assert done == {f"{i}-{j}": {"rho": j / 7} for i in range(blocks) for j in range(10)}
        sizes.add(blocks)
    assert len(sizes) > 2


# -- kills --------------------------------------------------------------------------------------------------------------


def test_a_kill_at_any_instant_leaves_whole_blocks(tmp_path: Path) -> None:
    """The script itself compares every record with what was to be written; here: nothing that was there is lost."""
    command = [sys.executable, str(HERE / "journal_writer.py"), str(tmp_path), "20", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout.splitlines()[-1])
    assert len(counts["create"]) == len(counts["resume"]) == 20
    assert counts["resume"] == sorted(counts["resume"])
    assert counts["resume"][-1] > 3


# -- two processes ------------------------------------------------------------------------------------------------------

HOLDER = """
    import sys
    from pathlib import Path
    from budge.journal import Journal
    with Journal.open(Path(sys.argv[1]), {"seed": 7}) as journal:
        journal.write({"a": {"rho": 0.5}})
        print("open", flush=True)
        sys.stdin.read()
"""


def test_a_second_process_is_refused_and_told_who_holds_the_run(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(HOLDER), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        note = json.loads((tmp_path / "journal.lock").read_text())
        assert note["pid"] == holder.pid
        assert note.keys() == {"pid", "host", "started"}
        for options in ({}, {"overwrite": True}):
            with pytest.raises(StorageError, match=f"process {holder.pid} on .*, started 2") as caught:
                Journal.open(tmp_path, {"seed": 7}, **options)
            assert str(tmp_path / "journal.lock") in str(caught.value)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert json.loads((tmp_path / "journal.lock").read_text())["pid"] == holder.pid  # stale, and no obstacle
    with Journal.open(tmp_path, {"seed": 7}) as journal:
        assert journal.done() == {"a": {"rho": 0.5}}


def test_one_process_cannot_open_a_run_twice_and_close_lets_go(tmp_path: Path) -> None:
    first = Journal.open(tmp_path, IDENTITY)
    with pytest.raises(StorageError, match=f"process {os.getpid()} "):
        Journal.open(tmp_path, IDENTITY)
    first.close()
    first.close()
    Journal.open(tmp_path, IDENTITY).close()


def test_a_refused_run_lets_go_of_the_folder(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(InputError):
        Journal.open(tmp_path, {"seed": 8})
    Journal.open(tmp_path, IDENTITY).close()


def test_a_lock_that_nobody_signed(tmp_path: Path) -> None:
    (tmp_path / "journal.lock").write_text("{half a no")
    with Journal.open(tmp_path, IDENTITY):
        (tmp_path / "journal.lock").write_text("{half a no")
        with pytest.raises(StorageError, match="not signed"):
            Journal.open(tmp_path, IDENTITY)


# -- the disk -----------------------------------------------------------------------------------------------------------

LIMITED = """
    import resource, sys
    from pathlib import Path
    from budge.journal import Journal
    from budge.errors import StorageError
    folder, limit = Path(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))  # what a full disk looks like to one process
    finished = 0
    try:
        with Journal.open(folder, {"seed": 7}) as journal:
            print("started", flush=True)
            for i in range(400):
                journal.write({f"{i}-{j}": {"points": [j / 7] * 200} for j in range(10)})
                finished += 1
    except StorageError as error:
        print(finished, error.exit_code, str(error), flush=True)
"""


def test_a_full_disk_shows_before_work_starts(tmp_path: Path) -> None:
    done = python(LIMITED, tmp_path, 20_000)
    assert "started" not in done.stdout
    assert done.stdout.startswith("0 3 "), done.stderr
    assert str(tmp_path) in done.stdout


def test_a_disk_that_fills_up_costs_the_last_block_only(tmp_path: Path) -> None:
    done = python(LIMITED, tmp_path, 600_000)
    lines = done.stdout.splitlines()
    assert lines[0] == "started", done.stderr
    finished, code, message = lines[1].split(" ", 2)
    assert int(finished) > 3
    assert code == "3"
    assert "journal.sqlite" in message
    with Journal.open(tmp_path, {"seed": 7}) as journal:
        assert journal.done() == {f"{i}-{j}": {"points": [j / 7] * 200} for i in range(int(finished)) for j in range(10)}


def test_a_read_only_folder_shows_before_work_starts() -> None:
    code = """
        import os, sys
        from pathlib import Path
        from budge.journal import Journal
        from budge.errors import StorageError
        if os.geteuid() == 0:  # permissions do not bind root: ask as somebody else
            os.setuid(65534)
        try:
            Journal.open(Path(sys.argv[1]), {"seed": 7})
        except StorageError as error:
            print(error.exit_code, error)
    """
    with tempfile.TemporaryDirectory() as parent:  # the folders of pytest are closed to somebody else
        Path(parent).chmod(0o755)
        folder = Path(parent) / "run"
        folder.mkdir(mode=0o555)
        done = python(code, folder)
        assert done.stdout.startswith("3 "), done.stderr
        assert str(folder) in done.stdout
        assert "Permission denied" in done.stdout
        assert list(folder.iterdir()) == []


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(StorageError, match="not a folder"):
        Journal.open(tmp_path / "run", IDENTITY)


def test_a_journal_that_cannot_be_written_shows_before_work_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    module = sys.modules[Journal.__module__]
    real = module.connect  # type: ignore[attr-defined]

    def read_only(path: Path) -> sqlite3.Connection:
        connection = real(path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(module, "connect", read_only)
        with pytest.raises(StorageError, match="readonly"):
            Journal.open(tmp_path, IDENTITY)
    with Journal.open(tmp_path, IDENTITY) as journal:
        assert journal.done() == RECORDS
