"""Progress moves while the work goes on, changes no number, and is silent where nobody looks."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budge
from budge import progress as shown
from budge.datasets import lending, spec_path
from budge.datasets.scorecard import Scorecard
from budge.progress import MOMENT, Pace, Portion, share_of, watched
from budge.stress import ablate, select, sensitivity


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_moves_every_second_also_while_nothing_arrives() -> None:
    clock = Clock()
    pace = Pace("people", clock)
    written: list[str] = []
    line = shown._Line(pace, written.append, lambda: 80)
    for k in range(8):
        if k == 3:
            pace.see(100, 1000)
        if k == 5:
            pace.see(300, 1000)
        clock.now += 1
        line.look()
        assert len(written) == k + 1, "a second in which nothing moved"
    assert "300 of 1,000" in written[-1]
    assert "left" in written[-1]
    line.clear()
    assert written[-1].strip() == ""


def test_the_time_left_is_counted_down() -> None:
    clock = Clock()
    pace = Pace("people", clock)
    pace.see(0, 100)
    clock.now = 10
    pace.see(20, 100)
    assert pace.left == 40
    clock.now = 15
    assert pace.left == 35
    assert all(len(pace.line(width)) <= width for width in (5, 20, 40, 60, 80))


def spent(portion: Portion, clock: Clock, rows: int, each: float, call: float = 0.0) -> tuple[float, float]:
    """Work through rows portion by portion: the longest portion after the first, and the time in all."""
    longest = 0.0
    for k in range(10**6):
        some = min(portion.rows, rows)
        with portion.taking(some):
            clock.now += call + each * some
        longest = max(longest, call + each * some) if k else 0.0
        rows -= some
        if not rows:
            break
    return longest, clock.now


@pytest.mark.parametrize("each", [1e-7, 2e-5, 1e-4, 1e-3])
def test_a_slow_model_is_asked_about_fewer_rows_at_a_time(each: float) -> None:
    clock = Clock()
    longest, _ = spent(Portion(100_000, clock), clock, 1_000_000, each)
    assert longest <= 2 * MOMENT


@pytest.mark.parametrize(("call", "each"), [(0.05, 1e-7), (1.0, 1e-7), (5.0, 1e-7), (5.0, 2e-5)])
def test_smaller_portions_cost_no_time(call: float, each: float) -> None:
    """A model that takes as long for one row as for many gets as many as before, after few trials."""
    clock = Clock()
    _, took = spent(Portion(100_000, clock), clock, 5_000_000, each, call)
    assert took <= 5_000_000 * each + 54 * call


PEOPLE = lending(n=400, seed=1).X
IM = budge.InteractionModel.from_file(spec_path("lending"))
_PAST = lending(n=300, seed=0)
CARD = Scorecard.fit(_PAST.X, _PAST.y)


def test_an_audit_of_a_mixed_spec_moves_every_second_and_no_number_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, moved = Clock(), list[tuple[float, int]]()
    monkeypatch.setattr(Portion.__init__, "__defaults__", (clock,))

    def slow(table: pd.DataFrame) -> Any:
        clock.now += 1e-4 * len(table)
        return CARD.predict(table)

    found = budge.audit(slow, PEOPLE, IM, target=1, population="all", progress=lambda done, total: moved.append((clock.now, done)))
    gaps = [b[0] - a[0] for a, b in pairwise(moved[:-1])]
    assert clock.now > 10
    assert max(gaps) <= 1.0
    assert [done for _, done in moved] == sorted(done for _, done in moved)
    monkeypatch.undo()
    plain = budge.audit(CARD.predict, PEOPLE, IM, target=1, population="all", progress=False)
    pd.testing.assert_frame_equal(found.table, plain.table)


@pytest.mark.parametrize("wish", [{"sequential": True}, {"method": "sample"}, {"threshold": 0.0}], ids=str)
def test_portions_change_no_number(wish: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    plain = budge.audit(CARD, PEOPLE, IM, target=1, **wish).table
    monkeypatch.setattr(Portion, "FIRST", 300)
    monkeypatch.setattr(Portion, "took", lambda self, rows, seconds: None)
    pd.testing.assert_frame_equal(budge.audit(CARD, PEOPLE, IM, target=1, **wish).table, plain)


Stress = Callable[[Callable[[int, int], None]], Any]
STRESS: dict[str, Stress] = {
    "ablate": lambda note: ablate(CARD, PEOPLE, IM, target=1, progress=note),
    "sensitivity": lambda note: sensitivity(CARD, PEOPLE, {"a": IM, "b": IM.without_effects()}, target=1, progress=note),
    "select": lambda note: select({"card": CARD}, PEOPLE, IM, accuracy={"card": 0.8}, target=1, limit=0.99, progress=note),
    "prove": lambda note: budge.prove(CARD, PEOPLE.iloc[:150], IM, target=1, progress=note),
}


@pytest.mark.parametrize("name", STRESS)
def test_stress_tests_move_to_their_end(name: str) -> None:
    moved: list[tuple[int, int]] = []
    STRESS[name](lambda done, total: moved.append((done, total)))
    shares = [done / total for done, total in moved if total]
    assert len({round(share, 2) for share in shares}) >= 3, "it shows nothing but the beginning and the end"
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_python_shows_a_line_on_a_terminal_by_default_and_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown, "MOMENT", 0.0)
    for wish, stream, seen in [(None, Terminal(), True), (True, Terminal(), True), (False, Terminal(), False), (None, io.StringIO(), False)]:
        monkeypatch.setattr(sys, "stderr", stream)
        with watched(wish, "people") as note:
            note(3, 10)
            if seen:
                for _ in range(10_000):
                    if "3 of 10" in stream.getvalue():
                        break
                    shown.time.sleep(0.001)
        assert ("3 of 10" in stream.getvalue()) is seen
        assert "\x1b" not in stream.getvalue()
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with shown.silent(), watched(None, "people") as note:
        note(3, 10)
    assert stream.getvalue() == ""


CELL = """
import time
from pathlib import Path
import budge, budge.progress
from budge.datasets import lending, spec_path
from budge.datasets.scorecard import Scorecard

gate, past = Path({gate!r}), lending(n=300, seed=0)
card = Scorecard.fit(past.X, past.y)

def waiting(table):
    while not gate.exists():
        time.sleep(0.02)
    return card.predict(table)

def audited(n_jobs):
    im = budge.InteractionModel.from_file(spec_path("lending"))
    print("rows", len(budge.audit(waiting, lending(n=60, seed=1).X, im, target=1, population="all", n_jobs=n_jobs).table))

def watched():
    with budge.progress.watched(None, "people") as note:
        note(3, 10)
        waiting(lending(n=5, seed=1).X)
    print("rows", 10)
"""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    pytest.importorskip("ipykernel", reason="a notebook's kernel needs ipykernel")
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize(("call", "contains"), [("audited(1)", "people"), ("audited(2)", "people"), ("watched()", "3 of 10")])
def test_a_notebook_shows_one_line_that_moves_while_a_model_takes_its_time(call: str, contains: str, kernel: Any, tmp_path: Path) -> None:
    """The model answers only after the line has changed three times: a line that does not move ends in a time-out."""
    gate, texts, shown_once, printed = tmp_path / "gate", list[str](), 0, ""
    request = kernel.execute(CELL.format(gate=str(gate)) + call)
    while True:
        message = kernel.get_iopub_msg(timeout=120)
        kind, content = message["msg_type"], message["content"]
        assert kind != "error", content
        if kind in ("display_data", "update_display_data"):
            shown_once += kind == "display_data"
            texts.append(content["data"]["text/plain"])
            if len(set(texts)) >= 3:
                gate.touch()
        elif kind == "stream":
            printed += content["text"]
        elif kind == "status" and content["execution_state"] == "idle" and message["parent_header"].get("msg_id") == request:
            break
    assert shown_once == 1
    assert all(contains in text for text in texts[:-1])
    assert texts[-1] == ""
    assert "rows" in printed


def test_short_work_shows_nothing_in_a_notebook(kernel: Any, tmp_path: Path) -> None:
    (tmp_path / "gate").touch()
    request = kernel.execute(CELL.format(gate=str(tmp_path / "gate")) + "watched()")
    seen = list[str]()
    while True:
        message = kernel.get_iopub_msg(timeout=120)
        seen.append(message["msg_type"])
        if seen[-1] == "status" and message["content"]["execution_state"] == "idle" and message["parent_header"].get("msg_id") == request:
            break
    assert "display_data" not in seen
    assert "stream" in seen


def test_stages_make_up_the_whole() -> None:
    seen: list[float] = []
    for k in range(3):
        note = share_of(lambda done, total: seen.append(done / total), k, 1, 3)
        note(0, 5)
        note(5, 5)
    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_what_is_no_progress_is_refused() -> None:
    with pytest.raises(budge.errors.BudgeError, match="progress"):
        ablate(CARD, PEOPLE, IM, target=1, progress=3)  # type: ignore[arg-type]
