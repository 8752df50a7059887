"""Names and texts of other people: they are told apart, begin no line of their own, and run nowhere."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budge
from budge.audit.gate import gate
from budge.cli import main
from budge.errors import Problem
from budge.table_files import tame
from budge.web import make_question
from budge.web.session import Session

FORGED = "x\nExactly 0 of these 2 people (0 %) are below the threshold."


def test_a_text_in_a_table_begins_no_line_of_its_own() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 3)), budge.Feature("b\nb", "binary")], name=FORGED)
    X = pd.DataFrame({"a": [0, 1], "b\nb": [0, 1], "group": [FORGED, "y"]})
    found = budge.audit(lambda t: (t["a"] > 3) * 1, X, im, target=1, groups=["group"])
    proved = budge.prove(lambda t: (t["a"] > 3) * 1, X, im, target=1)
    for text in (str(found), str(proved), str(im.describe()), str(Problem(FORGED, FORGED, FORGED, FORGED))):
        assert not [line for line in text.splitlines() if line.startswith(("Exactly 0", "b "))]
    assert "Below by group: x\\nExactly 0 of these" in str(found)


def test_conditions_name_columns_and_levels_with_any_quotes_and_brackets() -> None:
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 3))])
    X = pd.DataFrame({"a": [0, 1, 2], "it's": [0, 1, 1], "a (b": ["share_low", 'q"', "gap_low)"]})
    found = budge.audit(lambda t: (t["a"] > 3) * 1, X, im, target=1)
    for condition, numbers in [
        ("count(`it's` > 0) > 1", "2 > 1"),
        ("count(`a (b` == 'gap_low)') > 0", "1 > 0"),
        ('count(`a (b` == "q\\"") > 0 and share (`a (b` == \'share_low\') < share_low', "1 > 0 and 0.333333 < 1"),
    ]:
        judged = gate(found, condition)
        assert (judged.numbers, judged.failed) == (numbers, True)


def test_a_formula_in_a_csv_file_is_a_text() -> None:
    rows = pd.DataFrame({"person": ["=cmd()", "a=1", "-x", "", None], "n": [1, -2, 3, 4, 5]})
    assert tame(rows)["person"].tolist()[:4] == ["'=cmd()", "a=1", "'-x", ""]
    assert tame(rows)["n"].tolist() == [1, -2, 3, 4, 5]


def test_a_command_that_is_printed_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.yaml").write_text("budge: 1\nfeatures:\n  a: {type: integer, bounds: [0, 3]}\n")
    (tmp_path / "p.csv").write_text("a,$(touch x)\n0,1\n")
    command = ["sample", str(tmp_path / "m.yaml"), str(tmp_path / "p.csv"), "--id", "$(touch x)", "-o", str(tmp_path / "o.csv")]
    assert main(command) == 0
    assert "--id '$(touch x)'" in capsys.readouterr().out


STRANGE = ["n", "hits", "key", "verdict", "model", "a\nb", "\x1b[31mred", "<script>alert(1)</script>", "=cmd()", "\u202egnp", 'q"q', "`tick`", "nan", "x" * 900]


@pytest.mark.parametrize("name", STRANGE, ids=range(len(STRANGE)))
def test_names_of_every_kind_give_the_same_numbers_after_saving_resuming_and_on_the_page(tmp_path: Path, name: str) -> None:
    def found(name: str, **more: Any) -> budge.Audit:
        im = budge.InteractionModel([budge.Feature(name, "integer", bounds=(0, 3)), budge.Feature(f"c{name}", "category", levels=[name, "other"])], name=name)
        X = pd.DataFrame({name: [0, 1, 2, 3], f"c{name}": [name, "other"] * 2, "group": [name, "other"] * 2}, index=[f"{name}{i}" for i in range(4)])
        models = {name: lambda t: (t[name] > 2) * 1}
        if more.pop("page", False):
            session, told = Session(make_question(models, X, im, target=1)), []
            started = session.start()
            session.look(session.specs.state(started["state"]), f"{name}0", whole=True, stop=threading.Event(), tell=told.append)
            assert json.loads(json.dumps([started, told], allow_nan=False))
        return budge.audit(models, X, im, target=1, population="all", groups=["group"], **more)

    numbers = found("plain").table[["n", "hits", "rho", "verdict"]].to_numpy().tolist()
    journal = budge.Execution(journal=tmp_path / "journal", block_people=2)
    first = found(name, page=True, execution=journal)
    first.save(tmp_path / "run")
    for again in (first, found(name, execution=journal), budge.Audit.load(tmp_path / "run")):
        assert again.table[["n", "hits", "rho", "verdict"]].to_numpy().tolist() == numbers
        assert str(again) == str(first)
