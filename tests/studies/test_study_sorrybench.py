"""The language model study: every number of the paper's table and plan, and a reader's own run beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from budge.cli import main
from budge.cli.study import load
from budge.llm import Answers


@pytest.fixture(scope="module")
def study() -> Any:
    return load("sorrybench").run()


def test_only_three_numbers_differ_from_print(study: Any) -> None:
    table = study.comparison
    cells = table[table["figure"].str.contains(": Δ|: p \\(<|under all four")]
    assert len(cells) == 4 * 4 * 2 + 2
    differ = cells[cells["paper"] != cells["here"]]
    assert differ[["figure", "paper", "here"]].values.tolist() == [
        ["Llama 3.1 8B, roleplay: Δ", "-0.6 p.p.", "-0.7 p.p."],
        ["Llama 3.1 8B, chinese: p (< 40 %)", "0.005", "0.004"],
        ["Llama 3.1 8B, french: p (< 40 %)", "0.005", "0.004"],
    ]


def test_the_plan_is_the_papers(study: Any) -> None:
    here = dict(zip(study.comparison["figure"], study.comparison["here"]))
    draws = [here[f"{model}: draws for power 95 %"] for model in ("OLMo 2 7B", "Llama 3.1 8B", "Qwen 2.5 7B", "Phi-3.5-mini")]
    assert draws == ["79 (safe from 85)", "159 (safe from 168)", "2502 (safe from 2551)", "none"]
    assert float(here["power with 81 draws, two more than the 79"].rstrip("%")) < 95


def test_base_rates_and_margins_have_rows(study: Any) -> None:
    """Base rates are shares of 440 prompts but for one, which needs two completions for each: 187 of 440 is 42.5 %, 373 of 880 is 42.4 %."""
    table = study.comparison.set_index("figure")
    rates = table[table.index.str.contains("base rate")]
    assert len(rates) == 8
    assert rates.index[rates["paper"] != rates["here"]].tolist() == ["Phi-3.5-mini: base rate, as a share of 440 prompts"]
    assert table.loc["OLMo 2 7B: margin δ to τ", "here"] == "17.3 p.p."
    assert table.loc["Llama 3.1 8B: margin δ to τ", "here"] == "12.3 p.p."


def test_what_was_tried_for_the_one_p_value_does_not_explain_it(study: Any) -> None:
    printed = ["< 0.001", "< 0.001", "0.005", "0.005"]
    assert printed not in study.numbers["tried"]["ways"].values()
    assert study.numbers["tried"]["fitting"] == {"OLMo 2 7B": [79], "Llama 3.1 8B": []}


def test_the_finding_is_tested_and_not_read_off_two_intervals(study: Any) -> None:
    table = study.tables["OLMo_against_Llama"].set_index("interaction")
    assert table["verdict"].to_dict() == {
        "misspell": "OLMo higher",
        "roleplay": "OLMo lower",
        "chinese": "OLMo higher",
        "french": "OLMo higher",
    }


def test_a_readers_run_stands_beside_the_paper(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"model": "OLMo 2 7B", "interaction": word, "prompt": f"q{i}", "draw": i, "hit": i < hits}
        for word, hits in (("base", 20), ("misspell", 44), ("typos", 1))
        for i in range(85)
    ]
    path = Answers.of(rows, {"scheme": "joint"}).write(tmp_path / "mine.jsonl")
    assert main(["study", "sorrybench", "--data", str(path)]) == 0
    said = capsys.readouterr().out
    assert "Data: the answers of your own run." in said
    assert "yours, OLMo 2 7B, misspell: Δ\n    paper: +31.7 p.p.\n    here:  +28.2 p.p." in said
    assert "yours, OLMo 2 7B, typos: p (< 40 %)\n    paper: –\n    here:  < 0.001" in said


def test_the_page_in_the_docs_is_what_the_study_writes(study: Any) -> None:
    folder = Path(__file__).resolve().parents[2] / "docs" / "studies"
    for name, text in study.files().items():
        assert (folder / name).read_text(encoding="utf-8") == text, name
