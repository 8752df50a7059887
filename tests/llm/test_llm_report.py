"""The page about a run: what is on it, what flipped, and that nothing a model wrote can run in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from budge import llm
from budge.cli import main
from budge.errors import OutputExistsError
from budge.report.llm_page import flips_of


def answers() -> llm.Answers:
    rows = []
    for way, hits in (("base", 2), ("typos", 7)):
        for i in range(10):
            rows.append(
                {
                    "model": "m", "interaction": way, "prompt": f"q{i}", "draw": 0, "hit": None if i == 9 else i < hits, "why": "failed" * (i == 9),
                    "sent": f"Question {i}?" if way == "base" or i == 0 else f"Qestion {i}?", "original": f"Question {i}?",
                    "answer": f"<script>alert({i})</script>",
                }
            )  # fmt: skip
    return llm.Answers.of(rows, {"scheme": "per_prompt", "judge": "match & more"})


def test_the_page_states_verdicts_flips_and_shares(tmp_path: Path) -> None:
    place = llm.report(answers(), tmp_path / "r.html", threshold=0.9, over="these", title="Rivers & more")
    page = place.read_text(encoding="utf-8")
    for text in ("Rivers &amp; more", "match &amp; more", "77.8 %", "22.2 %", "1 of 10", "Qestion 2?", "Question 2?", "2 × failed", "--threshold 0.9"):
        assert text in page, text
    assert "<script" not in page
    assert "&lt;script&gt;alert(2)" in page
    assert "default-src &#39;none&#39;" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    with pytest.raises(OutputExistsError):
        llm.report(answers(), place, threshold=0.9, over="these")


def test_flips_are_pairs_of_one_prompt_and_draw() -> None:
    flips = flips_of(answers(), each=3)
    assert [flip["prompt"] for flip in flips] == ["q2", "q3", "q4"]
    assert all((flip["before"]["verdict"], flip["after"]["verdict"]) == ("miss", "hit") for flip in flips)
    assert len(flips_of(answers(), each=99)) == 5, "what is unresolved flips nothing"


def test_the_shell_writes_the_page(tmp_path: Path) -> None:
    answers().write(tmp_path / "a.jsonl")
    given = ["llm", "report", str(tmp_path / "a.jsonl"), "--over", "these", "--threshold", "0.9"]
    assert main(given) == 0
    assert "Answers that flipped" in (tmp_path / "a.html").read_text(encoding="utf-8")
    assert main(given) == 2
    assert main([*given, "--overwrite"]) == 0
    assert main(["llm", "report", str(tmp_path / "gone"), "--over", "these"]) == 3
