"""What the commands print: it fits every width, counts add up, words stay whole, and draws never show that there is no way."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

import budge
from budge.cli import main
from budge.cli.answers import show_run
from budge.cli.layout import NB, Column, bars, cell, column, figure, tabulate, wrap
from budge.models import as_predictor
from budge.report.answer import told_of
from budge.report.people import at_most

WIDTHS = (60, 80, 120)
LONG = "a column with a name that is far longer than anybody would want to read twice"


def fits(text: str, width: int) -> bool:
    """Whether no line is wider; the widest is in the message."""
    widest = max(text.split("\n"), key=cell_len)
    assert cell_len(widest) <= width, widest
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    return True


# -- sentences and tables -------------------------------------------------------------------------------------------------


@given(st.lists(st.text("abcä名→%= 0123", min_size=1, max_size=12), max_size=40), st.integers(20, 120))
def test_wrapping_loses_nothing_and_breaks_no_word(words: list[str], width: int) -> None:
    text = " ".join(" ".join(words).split())
    lines = wrap(text, width)
    assert " ".join(lines).split() == text.split()
    assert all(cell_len(line) <= width for line in lines)


def test_a_number_keeps_its_percent_sign_and_an_arrow_its_ends() -> None:
    text = "of these people between 12.1 % and 42.4 % have HasGuarantor: 0 → 1"
    for width in range(20, 70):
        lines = wrap(text, width)
        assert not [line for line in lines if line.startswith(("%", "→")) or line.endswith("→") or NB in line], lines


@given(
    st.lists(
        st.tuples(st.text("abc 名", min_size=1, max_size=30), st.integers(0, 10**9), st.floats(0, 1), st.text("xyz ;", max_size=200)), min_size=1, max_size=6
    ),
    st.integers(40, 120),
)
def test_tables_fit_and_cut_no_number(rows: list[tuple[str, int, float, str]], width: int) -> None:
    names, counts, shares, texts = zip(*rows)
    made = [Column("who", names), column("people", counts), column("share", shares, digits=3, spare=2), Column("what", texts)]
    lines = tabulate(made, width)
    assert all(cell_len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert all(f"{count:,}" in text for count in counts)


def test_columns_go_by_importance_and_only_the_last_is_wrapped() -> None:
    made = [
        column("person", [707, 63]), Column("group", ["women", "men"], spare=1), column("hits", [4, 6], spare=3),
        Column("least change that works", ["guarantor: no → yes; instalments at a bank: no → yes", "job: none → some"]),
    ]  # fmt: skip
    wide, narrow = tabulate(made, 100), tabulate(made, 44)
    assert "hits" in wide[0]
    assert len(wide) == 3
    assert "hits" not in narrow[0]
    assert "group" in narrow[0]
    assert len(narrow) > 3
    assert all(line.startswith(" " * 10) for line in narrow[2 : len(narrow) - 1] if "63" not in line)


def test_numbers_have_one_style() -> None:
    assert [cell(v) for v in (30000, -2, 0.123456, float("nan"), None, True)] == ["30,000", "−2", "0.123", "–", "–", "yes"]
    assert [figure(v) for v in (0.5, -0.0625, 0.0, float("nan"))] == ["0.500", "−0.063", "0.000", "–"]
    assert bars([("none", 0, "0.0 %"), ("some", 1, "0.1 %"), ("more", 1000, "99.9 %")], 60)[1][1] == "█"
    assert bars([("none", 0, "0.0 %"), ("more", 1000, "99.9 %")], 60)[0][1] == ""


# -- audits of every kind -----------------------------------------------------------------------------------------------


def scores(table: pd.DataFrame) -> Any:
    return (table["a"] * 0.1 + table["b"] * 0.05).to_numpy()


def label(table: pd.DataFrame) -> Any:
    return (scores(table) > 0.8).astype(int)


def silent(table: pd.DataFrame) -> Any:
    found = label(table).astype(object)
    found[table["b"].to_numpy() == 3] = None
    return found


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    found = pd.DataFrame({"a": rng.integers(0, 10, n), "b": rng.integers(0, 4, n), "sex": rng.integers(0, 2, n), "town": rng.choice(["x", "y", "z"], n)})
    found.index = pd.Index([f"person {k} of {LONG}" if k % 7 == 0 else f"申請者{k}" for k in range(n)], name=LONG)
    return found


def model(reals: bool = False) -> budge.InteractionModel:
    a = budge.Feature("a", "real" if reals else "integer", bounds=(0, 9), max_increase=4)
    fixed = [budge.Feature("sex", "binary", actionable=False), budge.Feature("town", "category", levels=("x", "y", "z"), actionable=False)]
    return budge.InteractionModel([a, budge.Feature("b", "integer", bounds=(0, 3)), *fixed], name="loans")


def audited(**wish: Any) -> budge.Audit:
    given_ = {"target": 1, "groups": ["sex"], "wording": WORDS, "seed": 3} | wish
    who, im = given_.pop("X", people()), given_.pop("im", model())
    return budge.audit(given_.pop("model", label), who, im, **given_)


SCORED = as_predictor(scores, output="score")
WORDS = budge.Wording(people_name="refused applicants", target_name="approval", group_labels={"sex": {"0": "women", "1": "men"}})
CASES: Mapping[str, Callable[[], budge.Audit]] = {
    "listed": audited, "drawn": lambda: audited(method="sample"), "few draws": lambda: audited(method="sample", n=29),
    "stopped": lambda: audited(method="sample", sequential=True), "reals": lambda: audited(im=model(reals=True)),
    "weighted": lambda: audited(method="sample", proposal={"b": {"weights": {0: 1, 1: 1, 2: 1, 3: 3}}}),
    "unanswered": lambda: audited(model=silent, X=people().query("b < 3"), population="all", design=budge.Design(max_unresolved=1.0)),
    "two models": lambda: audited(model={"one": label, LONG: lambda t: (scores(t) > 0.6).astype(int)}),
    "no words": lambda: audited(wording=budge.Wording()), "above": lambda: audited(claim="above", threshold=0.3), "no way": lambda: audited(threshold=0),
    "no way, drawn": lambda: audited(threshold=0, method="sample"), "two columns": lambda: audited(groups=["sex", "town"]),
    "nobody": lambda: audited(X=people()[label(people()) == 1]), "one": lambda: audited(X=people()[label(people()) == 0].iloc[:1]),
    "scores": lambda: audited(model=SCORED, target=budge.targets.interval(low=0.8)), "all": lambda: audited(population="all", threshold=0.9),
    "tied": lambda: audited(threshold=float(np.sort(audited().table["rho"].unique())[2])),
}  # fmt: skip


@cache
def made(name: str) -> budge.Audit:
    return CASES[name]()


def printed(audit: budge.Audit, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    show_run(audit, [column_ for column_, _ in audit.design.groups], "")
    return capsys.readouterr().out


BAR = re.compile(r"^  (no way at all|no hit, not proved|almost none|less than \S+|exactly \S+|undecided|more than \S+|some way) +([\d,]+) +([\d.]+) %", re.M)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_what_an_audit_prints(
    name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = made(name)
    text = printed(audit, capsys, monkeypatch, width)
    assert fits(text, width)
    assert not re.search(r"\b1 (people|points|draws|models|changes)\b", text)
    found = [(word, int(count.replace(",", "")), float(share)) for word, count, share in BAR.findall(text)]
    assert name != "tied" or "exactly" in [word.split()[0] for word, _, _ in found]
    judged = [int((audit.of_model(m)["method"] != "none").sum()) for m in audit.models]
    assert sum(count for _, count, _ in found) == sum(judged), "counts do not add up to everybody"
    for m, many in zip(audit.models, judged):
        assert not many or f"{many:,} refused applicants" in text or "One person" in text or f"{many:,} people" in text
        assert told_of(audit, m, audit.wording).judged == many


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("nobody", "one", "two models")])
def test_the_numbers_of_the_first_sentence_stand_in_the_counts(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(made(name), capsys, monkeypatch, 120)
    counts = [int(count.replace(",", "")) for _, count, _ in BAR.findall(text)]
    sums = {sum(counts[i:j]) for i in range(len(counts)) for j in range(i + 1, len(counts) + 1)}
    headline = re.sub(r"\([^)]*\)", "", re.split(r"\.\s", text)[0])
    summary = made(name).summary()
    for number in re.findall(r"\b\d[\d,]*\b", headline.replace("more than 30 %", "")):
        assert int(number.replace(",", "")) in sums | {summary.every_way, summary.open_ways}, (headline, counts)


@pytest.mark.parametrize("name", ["drawn", "few draws", "stopped", "reals", "weighted", "no way, drawn"])
def test_draws_never_show_that_there_is_no_way(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = made(name)
    text = " ".join(printed(audit, capsys, monkeypatch, 80).split())
    drawn = audit.table["method"].isin(("sample", "sequential", "weighted"))
    assert drawn.any()
    nohit = audit.table[drawn & (audit.table["hits"] == 0) & (audit.table["unresolved"] == 0)]
    if len(nohit):
        assert "no hit, not proved" in text
        about = "about " if (nohit["exactness"] == "approximate").any() else ""
        assert f"{at_most(nohit['upper'].max(), audit.design.alpha, about)}, which is no proof that there is none" in text
        assert (nohit["upper"] < nohit["high"]).all()  # else the one-sided bound cannot be told from the end of the interval
    known = audit.summary().no_way
    assert ("No way at all: " in text) is (known > 0)
    assert ("have none at all" in text or "has none at all" in text) <= (known > 0)


def test_the_harmed_come_first_and_the_least_change_is_the_least(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = audited(X=people().reset_index(drop=True), threshold=0.3)
    text = printed(audit, capsys, monkeypatch, 120)
    lines = text[text.index("Almost none:") :].split("\n")
    first = lines[2].split()
    rows = audit.table[(audit.table["verdict"] == "below") & (audit.table["extreme"] != "none")].sort_values("rho", kind="stable")
    assert first[0] == str(rows.index[0])
    assert "least change that works" in lines[1]
    plan = audit.recourse(rows.index[0])
    for feature, old, new in plan.actions[["feature", "from", "to"]].itertuples(index=False, name=None):
        assert f"{feature}: {old} → {new}" in " ".join(lines[2:6])
    assert text.index("No way at all:") < text.index("Almost none:")


def test_people_without_a_way_are_ordered_by_their_best_output(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    audit = audited(X=people().reset_index(drop=True), model=SCORED, target=budge.targets.interval(low=0.8))
    text = printed(audit, capsys, monkeypatch, 120)
    body = text[text.index("closest to approval first") :].split("\n")[2:7]
    best = [float(line.split()[-2]) for line in body if "more" not in line]
    assert best == sorted(best, reverse=True)
    assert max(best) < 0.8
    none = audit.table.index[audit.table["extreme"] == "none"]
    truth = {}
    for who in none:
        points = _points(audit, who)
        truth[who] = float(scores(points).max())
    assert best[0] == pytest.approx(max(truth.values()), abs=5e-4)


def _points(audit: budge.Audit, who: Any) -> pd.DataFrame:
    from budge.audit.ask import points_of

    found: pd.DataFrame = points_of(audit, who).rows
    return found


def test_a_stream_prints_what_a_table_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="streams of people need the `parquet` extra")
    who = people().reset_index(drop=True)
    who.to_parquet(tmp_path / "people.parquet")
    from budge.people import People

    whole = printed(audited(X=who), capsys, monkeypatch, 80)
    stream = audited(X=People.of(tmp_path / "people.parquet", part=7))
    monkeypatch.setattr(type(stream.rows), "__getitem__", lambda *_: pytest.fail("all people are in memory"))
    assert printed(stream, capsys, monkeypatch, 80) == whole


# -- commands -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def loans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    place = tmp_path_factory.mktemp("loans")
    who = people().reset_index(drop=True).rename(columns={"sex": LONG}).drop(columns="town")
    who.to_csv(place / "people.csv", index=False)
    im = {"a": {"type": "integer", "bounds": [0, 9], "max_increase": 4}, "b": {"type": "integer", "bounds": [0, 3]}}
    (place / "im.json").write_text(json.dumps({"budge": 1, "name": LONG, "features": {**im, LONG: {"type": "binary", "actionable": False}}}))
    skops.dump(linear.LogisticRegression().fit(who, who["a"] + who["b"] > 8), place / "m.skops")
    assert main(["audit", *files(place), "--target", "true", "--model", str(place / "m.skops"), "-o", str(place / "run"), "-q"]) == 0
    return place


def files(place: Path) -> list[str]:
    return [str(place / "im.json"), str(place / "people.csv")]


def commands(place: Path) -> dict[str, list[str]]:
    spec, data = files(place)
    asked = ["--target", "true", "--model", str(place / "m.skops")]
    stress = [spec, "--data", data, *asked]
    return {
        "audit": ["audit", spec, data, *asked, "--by", LONG], "drawn": ["audit", spec, data, *asked, "--method", "sample"],
        "prove": ["prove", spec, data, *asked], "recourse": ["recourse", spec, data, *asked, "--person", "3", "-k", "3"],
        "ablate": ["ablate", *stress, "--stuck", "1"], "sensitivity": ["sensitivity", *stress, "--vary", "features.a.max_increase=0,4"],
        "select": ["select", spec, "--data", data, "--target", "true", "--model", f"{place / 'm.skops'}=0.8"], "check": ["check", spec, data],
        "check spec": ["check", spec], "plan": ["plan", "--n", "400"], "sample": ["sample", spec, data, "-o", str(place / "p.csv"), "--overwrite"],
        "gate": ["gate", str(place / "run"), "--fail-if", "count(no_way) > 1000"], "demo": ["demo", "--people", "40"],
        "report": ["report", str(place / "run"), "--overwrite"], "show": ["show", str(place / "run")],
        "compare": ["compare", str(place / "run"), str(place / "run")],
        "export": ["export", str(place / "run"), "--csv", "-o", str(place / "x"), "--overwrite"],
        "init": ["init", data, "-o", str(place / "draft.yaml"), "--overwrite"], "llm plan": ["llm", "plan", "--rate", "0.05", "--prompts", "1"],
    }  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*commands(Path())])
def test_every_command_fits(loans: Path, name: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert main(commands(loans)[name]) in (0, 1)
    text = capsys.readouterr().out
    assert text.strip()
    assert fits(re.sub(r"\S*/\S*", "", text), width)  # a path is not broken
    assert not re.search(r"\b1 (people|points|draws|models|changes|plans)\b", text)


def test_an_ablation_states_of_how_many_and_why_rho_can_fall(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    tree = pytest.importorskip("sklearn.tree", reason="scikit-learn is in the `models` extra").DecisionTreeClassifier(random_state=0)
    grid = pd.DataFrame([(a, b) for a in range(10) for b in range(10)], columns=["a", "b"])
    skops.dump(tree.fit(grid, (grid["a"] >= 5) & (grid["b"] <= 2)), tmp_path / "m.skops")
    pd.DataFrame({"a": [0, 1, 4, 9], "b": [3, 9, 3, 3]}).to_csv(tmp_path / "x.csv", index=False)
    limits = {"a": {"type": "integer", "bounds": [0, 9], "max_increase": 1}, "b": {"type": "integer", "bounds": [0, 9], "max_increase": 1}}
    (tmp_path / "im.json").write_text(json.dumps({"budge": 1, "features": limits}))
    monkeypatch.setenv("COLUMNS", "120")
    model = ["--model", str(tmp_path / "m.skops"), "--trust", "sklearn.tree._tree.Tree"]
    asked = ["ablate", str(tmp_path / "im.json"), "--data", str(tmp_path / "x.csv"), *model, "--target", "true"]
    assert main(asked) == 0
    told = capsys.readouterr().out
    assert re.search(r"lift steps of a +2 of 2 ", told)
    assert re.search(r"lift steps of b +0 of 2 +−0\.\d{3}", told)
    assert "Newly able: of the 2 people with no way at all, those who have one without the rule." in told
    assert "Mean ρ can fall although nobody loses a way" in " ".join(told.split())
    assert main([*asked, "--relax", "lift steps of a"]) == 0
    assert "Mean ρ can fall" not in capsys.readouterr().out
    limits["c"] = {"type": "real", "bounds": [0, 1]}
    pd.DataFrame({"a": [0, 1], "b": [3, 9], "c": [0.5, 0.5]}).to_csv(tmp_path / "x.csv", index=False)
    (tmp_path / "im.json").write_text(json.dumps({"budge": 1, "features": limits}))
    skops.dump(tree.fit(grid.assign(c=0.5), (grid["a"] >= 5) & (grid["b"] <= 2)), tmp_path / "m.skops")
    assert main([*asked, "--relax", "lift steps of a"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"relaxation +first hit +gain", told)
    assert re.search(r"lift steps of a +2 of 2 ", told)
    assert "First hit: of the 2 people whose draws have no hit, those who have one without the rule, at a point that it forbids." in " ".join(told.split())


def test_a_saved_run_names_the_values_of_binary_features(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    im = budge.InteractionModel([budge.Feature("guarantor", "binary"), budge.Feature("years", "integer", bounds=(0, 20))])
    who = pd.DataFrame({"guarantor": [0, 0], "years": [0, 1]})
    found = budge.audit(lambda t: ((t["guarantor"] == 1) & (t["years"] == 9)).astype(int), who, im, target=1)
    found.save(tmp_path / "run")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["show", str(tmp_path / "run")]) == 0
    assert "guarantor: no → yes; years: 0 → 9" in capsys.readouterr().out


def test_a_run_can_be_repeated_from_what_was_typed(loans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = loans / "a run with 'quotes' and $signs"
    typed = [
        *commands(loans)["audit"], "--by", "a", "--group-label", f"{LONG}:1=men & \"boys\"", "--people-name", "it's them", "--fail-if", "count(no_way) > 100",
        "--alpha=0.05", "-o", str(place),
    ]  # fmt: skip
    assert main(typed) == 0
    capsys.readouterr()
    command = budge.Audit.load(place).info["command"]
    assert shlex.split(command) == ["budge", *typed]
    assert main([*shlex.split(command)[1:], "--overwrite"]) == 0


# -- help ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", WIDTHS)
def test_help_is_whole_at_every_width(width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from test_terminal import every_command

    monkeypatch.setenv("COLUMNS", str(width))
    known = every_command()
    shown: dict[str, str] = {}
    for name in ("", "llm", *known):
        assert main([*name.split(), "--help"]) == 0
        shown[name] = capsys.readouterr().out
        assert fits(shown[name], width), name
    for name, command in known.items():
        group = "llm" if name.startswith("llm ") else ""
        first = " ".join(str(command.help).split("\n\n")[0].split())
        words = first.partition(". ")[0].rstrip(".")
        assert words in " ".join(shown[group].split()), name
        text = " ".join(shown[name].split())
        for parameter in command.params:
            assert parameter.param_type_name == "argument" or all(option in text for option in parameter.opts), (name, parameter.name)
            assert " ".join((getattr(parameter, "help", None) or "").split()) in text, (name, parameter.name)
    audit = shown["audit"]
    titles = re.findall(r"^([A-Z][\w ]+):$", audit, re.M)
    assert titles == ["Arguments", "Question", "Data and model", "Draws", "Words", "Where and how", "Output", "Options"]
    assert "below|above" in audit
    assert "auto|exact|sample" in audit


def test_intervals_of_groups_whose_shares_are_known_are_those_of_a_larger_population(capsys: pytest.CaptureFixture[str]) -> None:
    im = budge.InteractionModel([budge.Feature("x", "integer", bounds=(0, 9), max_increase=2)])
    X = pd.DataFrame({"x": [1, 2, 3, 8, 1, 7], "g": list("abcabc")})
    words = "Intervals are for a population of which these people are a random sample."
    for method in ("auto", "sample"):
        audit = budge.audit(lambda t: (t["x"] > 8).astype(int), X, im, target=1, groups=["g"], method=method)
        show_run(audit, ["g"], "")
        assert (words in " ".join(capsys.readouterr().out.split())) == (method == "auto")


class Own:
    """A model that gives labels by itself and probabilities besides; `lucky` gives others than its probabilities call for."""

    def __init__(self, *, lucky: bool = False) -> None:
        self.classes_, self.lucky = np.array([0, 1]), lucky

    def predict_proba(self, table: pd.DataFrame) -> Any:
        good = scores(table) / 1.6
        return np.column_stack([1 - good, good])

    def predict(self, table: pd.DataFrame) -> Any:
        found = (self.predict_proba(table)[:, 1] > (0.7 if self.lucky else 0.5)).astype(int)
        return found


@pytest.mark.parametrize("lucky", [False, True])
def test_labels_are_ranked_by_probabilities_where_these_decide(lucky: bool) -> None:
    from budge.cli.people import chosen, closest

    tight = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 9), max_increase=1), *model().features[1:]])
    audit = audited(model=Own(lucky=lucky), im=tight, groups=())
    none = chosen(audit, "model", lambda t: t["extreme"] == "none", ["n"], rising=False, most=100)
    assert none.many > 2
    found = closest(none, most=3)
    if lucky:  # some people are beyond 0.5 and do not have the target: the distance from 0.5 tells nothing
        assert found is None
        return
    assert found is not None
    assert found[2] == 0.5
    assert found[1] == sorted(found[1], reverse=True)
    assert found[1][0] <= 0.5
