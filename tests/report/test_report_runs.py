"""What results say of runs that did not finish, lack answers, or stopped early: who is counted where, what an interval is, what to do next."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import Page, approve, audited, generous, loans, unanswered

import budge
from budge import Feature, InteractionModel
from budge.cli.answers import show_run
from budge.errors import IncompleteError
from budge.report.answer import told_of
from budge.report.compared import compared
from budge.report.document import render
from budge.wording import Wording


def text_of(audit: budge.Audit) -> str:
    return " ".join(Page(render(audit)).text.split())


def printed(audit: budge.Audit, capsys: Any, *groups: str) -> str:
    capsys.readouterr()
    show_run(audit, groups, "run")
    return str(capsys.readouterr().out)


def unfinished(models: Any, **options: Any) -> budge.Audit:
    """Return what is left of an audit whose models fail from some call on."""
    X, im = loans()
    calls = dict.fromkeys(models, 0)

    def failing(name: str) -> Any:
        def model(table: pd.DataFrame) -> np.ndarray:
            calls[name] += 1
            if calls[name] > 6:
                raise RuntimeError("down")
            return np.asarray(models[name](table))

        return model

    execution = budge.Execution(block_people=3, check="warn")
    with pytest.raises(IncompleteError) as caught:
        budge.audit({name: failing(name) for name in models}, X, im, target=1, execution=execution, **options)
    return caught.value.result  # type: ignore[attr-defined, no-any-return]


def never(table: pd.DataFrame) -> np.ndarray:
    return np.zeros(len(table), dtype=int)


@pytest.mark.parametrize("population", ["outside", "all"])
def test_people_who_were_set_aside_do_not_have_the_target(population: str) -> None:
    audit = unfinished({"never": never, "strict": approve}, population=population)
    found = compared(audit, Wording())
    assert found is not None
    (pair,) = found["pairs"]
    judged, everybody = len(audit.of_model("never")), audit.info["people"]
    assert 0 < judged < everybody
    by_never = dict(zip(pair["names"], pair["sums"]))
    assert by_never["not judged"] == everybody - judged
    assert by_never.get("has it now", 0) == 0
    by_strict = dict(zip(pair["names"], np.sum(pair["counts"], axis=0).tolist()))
    away = "has it now, or was set aside" if population == "outside" else "not judged"
    assert by_strict[away] == everybody - len(audit.of_model("strict"))
    assert f"{everybody - judged} more were set aside, since the run did not finish." in told_of(audit, "never", Wording()).left_out
    already = audit.info["already"]["strict"] if population == "outside" else 0
    gone = everybody - already - len(audit.of_model("strict"))
    assert f"{gone} more were set aside" in told_of(audit, "strict", Wording()).left_out


def test_nobody_is_set_aside_in_a_run_that_finished() -> None:
    X, im = loans()
    for options in ({}, {"population": "all"}, {"population": np.arange(len(X)) < 9}):
        audit = budge.audit({"strict": approve, "kind": generous}, X, im, target=1, **options)
        assert "set aside" not in text_of(audit)


def test_a_figure_is_about_those_whose_responsiveness_is_known() -> None:
    audit = unanswered()
    rho = audit.table["rho"]
    assert rho.isna().any()
    assert rho.notna().any()
    figure = audit.plot()
    assert f"The ρ of {int(rho.isna().sum())} more is not known, and the figure is not about them." in figure.note
    assert "of those with a ρ have it below" in figure.about


def test_groups_with_one_name_keep_their_own_interval(capsys: Any) -> None:
    X, im = loans()
    people = X.assign(size=np.where(np.arange(len(X)) < 5, 0.12341, 0.12342))  # both are 0.1234 in print
    for options in ({}, {"method": "sample", "n": 50}):
        audit = budge.audit(approve, people, im, target=1, population="all", groups="size", **options)
        lines = [line for line in printed(audit, capsys, "size").split("\n") if line.startswith("  0.1234")]
        assert len(lines) == 2
        assert lines[0].split(")")[1].split("%")[:2] != lines[1].split(")")[1].split("%")[:2]


def test_ends_that_are_known_have_no_level(capsys: Any) -> None:
    text = printed(unanswered(), capsys, "home")
    assert "ends" in text
    assert "95 %" not in text
    assert "are decided" not in " ".join(text.split())  # every point is listed: more draws decide nobody
    assert "95 % interval" in printed(audited(groups="home"), capsys, "home")  # of a larger population


@pytest.mark.parametrize("claim", ["below", "above"])
def test_where_missing_answers_leave_people_open_the_rest_were_found(claim: str) -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9)), Feature("kind", "integer", bounds=(0, 2), actionable=False)])
    X = pd.DataFrame({"x": 0, "kind": [0, 1, 2, 2]})

    def model(table: pd.DataFrame) -> Any:
        hit = np.where(table["kind"] == 0, table["x"] > 8, table["kind"] == 1) & (table["x"] > 0)
        return np.where((table["kind"] == 2) & (table["x"] > 0), np.nan, hit.astype(float))

    design, checks = budge.Design(max_unresolved=1.0, threshold=0.3, claim=claim), budge.Execution(check=False)
    audit = budge.audit(model, X, im, target=1.0, design=design, execution=checks)
    known = budge.audit(model, X[:2], im, target=1.0, design=design, execution=checks)
    words = "more than 30 % of their points at" if claim == "above" else "almost no way to"
    assert told_of(audit, "model", Wording()).headline.startswith(f"1 of 4 people was found to have {words}")
    assert told_of(known, "model", Wording()).headline.startswith(f"1 of 2 people has {words}")


def test_ends_of_a_share_that_are_one_number_are_stated_once(capsys: Any) -> None:
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9)), Feature("ok", "binary", actionable=False)])
    X = pd.DataFrame({"x": 0, "ok": [0, 0, 1] * 4})
    sure = budge.audit(lambda t: ((t["x"] > 1) & (t["ok"] == 1)).astype(int), X, im, target=1, method="sample", n=300, groups="ok")
    text = printed(sure, capsys, "ok")
    assert "100.0 %" in text
    assert not re.search(r"(\d+\.\d %) to \1", text)
    assert "% to " in printed(audited(method="sample", n=60, groups="home"), capsys, "home")


def test_draws_of_a_chain_have_no_level(capsys: Any) -> None:
    sure = audited(method="sample", n=60, groups="home")
    rows = {name: replace(own, counts=replace(own.counts, approximate=np.ones(len(own.index), bool))) for name, own in sure.rows.items()}
    assert "95 % interval" in printed(sure, capsys, "home")
    rough = printed(replace(sure, rows=rows), capsys, "home")
    assert "95 % interval" not in rough
    assert "95 % confidence" not in rough


def test_more_draws_are_advised_only_where_they_decide_more(capsys: Any) -> None:
    """A rule that ended the draws of a person ends them at the same place, whatever the largest number of draws."""
    im = InteractionModel([Feature("x", "real", bounds=(0, 1)), Feature("y", "real", bounds=(0, 1))], name="square")
    X = pd.DataFrame({"x": np.linspace(0, 0.3, 8), "y": 0.1})

    def corner(table: pd.DataFrame, cut: float = 1.5) -> np.ndarray:
        return (table["x"] + table["y"] > cut).to_numpy().astype(int)

    few, many = (budge.audit(corner, X, im, target=1, sequential=True, n=n) for n in (1000, 4000))
    assert (few.table["verdict"] == "inconclusive").all()
    assert (few.table["n"] < 1000).all()
    assert (few.table["n"] == many.table["n"]).all()
    assert "are decided" not in " ".join(printed(few, capsys).split())
    assert "Draw more points" not in text_of(few)
    stopped = budge.audit(lambda t: corner(t, 1.67), X, im, target=1, sequential=True, n=70)
    for short in (stopped, budge.audit(corner, X, im, target=1, n=40)):
        assert "more people are decided" in " ".join(printed(short, capsys).split())
        assert "Draw more points" in text_of(short)
