"""`budge plan`, the docs page and the examples in docstrings."""

import doctest
import importlib
import json
import pkgutil
import re
from pathlib import Path

import pytest

import budge.plan
import budge.stats
from budge.cli import main

DOCS = Path(__file__).parents[2] / "docs" / "statistics.md"


def test_plan_prints_sentences_and_a_curve(capsys):
    assert main(["plan", "--threshold", "0.4", "--rate", "0.227", "--n", "79", "--people", "1000"]) == 0
    out = capsys.readouterr().out
    for part in (
        "at least 6 draws",
        "79 draws show ρ < 0.4",
        "every n from 85 on has it",
        "402 draws give an interval",
        "1,000 people",
        "1.0 |",
        "at most 24 hits",
    ):
        assert part in out
    assert main(["plan", "--no-curve"]) == 0
    out = capsys.readouterr().out
    assert "at least 29 draws" in out
    assert "1.0 |" not in out


def test_plan_as_json(capsys):
    assert main(["plan", "-t", "0.4", "--margin", "0.173", "--json", "--n", "100"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["samples_for_power"]["stable"] == 85
    assert record["samples_for_width"] == 402
    assert record["given"]["critical_hits"] == budge.plan.critical_hits(100, 0.4)
    assert len(record["curve"]["n"]) == len(record["curve"]["power"])
    assert main(["plan", "-t", "0.9", "--claim", "above", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["min_samples"] == 29


def test_plan_writes_a_figure_once(tmp_path, capsys):
    figure = tmp_path / "power.svg"
    assert main(["plan", "--figure", str(figure)]) == 0
    text = figure.read_text()
    assert text.startswith("<svg")
    assert "script" not in text
    assert main(["plan", "--figure", str(figure)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main(["plan", "-t", "0.3", "--figure", str(figure), "--overwrite"]) == 0
    assert figure.read_text() != text
    assert [p.name for p in tmp_path.iterdir()] == ["power.svg"]
    assert main(["plan", "--figure", str(tmp_path / "none" / "power.svg")]) == 3
    assert main(["plan", "--figure", str(tmp_path / "power.gif")]) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--alpha", "5%"], "write 0.05"),
        (["--alpha", "5"], "strictly between 0 and 1"),
        (["--threshold", "0"], "strictly between 0 and 1"),
        (["--power", "1"], "strictly between 0 and 1"),
        (["--margin", "0.1"], "margin must be smaller"),
        (["--rate", "0.5"], "not below the threshold"),
        (["--n", "28"], "cannot reject even with no hit; needs at least 29"),
        (["--n", "0"], "at least 1"),
        (["--claim", "belov"], "is not one of 'below', 'above'"),
        (["--people", "0"], "people"),
    ],
)
def test_plan_refuses_bad_designs(arguments, message, capsys):
    assert main(["plan", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_plan_reports_errors_as_json(capsys):
    assert main(["plan", "--json", "--n", "28"]) == 2
    assert "needs at least 29" in json.loads(capsys.readouterr().out)["problems"][0]["what"]


def test_the_docs_page_runs():
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 8
    runner, parser = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS), doctest.DocTestParser()
    names: dict = {}
    for i, block in enumerate(blocks):
        example = parser.get_doctest(block, names, f"statistics.md[{i}]", str(DOCS), 0)
        assert example.examples
        runner.run(example, clear_globs=False)
        names = example.globs
    assert runner.summarize().failed == 0


MODULES = ["budge.plan", *(f"budge.stats.{info.name}" for info in pkgutil.iter_modules(budge.stats.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_public_surface_is_what_is_listed():
    for module in (budge.stats, budge.plan):
        assert sorted(module.__all__) == list(module.__all__) or sorted(module.__all__) == sorted(module.__all__, key=str)
        for name in module.__all__:
            found = getattr(module, name)
            assert found.__doc__
            if isinstance(found, type) and found not in (budge.stats.Claims, budge.stats.Counts):  # columns, not records
                assert callable(found.to_dict)
