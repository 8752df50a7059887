"""The spec as text, exports, saved runs and the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

from web_kit import MODELS, Page, truth_of, world

import budge
from budge.cli import main
from budge.errors import BudgeError
from budge.spec import parse, to_text
from budge.web import from_run, make_app


@pytest.fixture(scope="module")
def page() -> Page:
    X, im = world()
    return Page(make_app(MODELS, X, im, target=1, population="all", text="# the author's own words\n" + to_text(im)))


def test_problems_have_their_lines_and_remedies(page: Page) -> None:
    text = page.post("spec/text", state=page.post("start")["state"])["text"]
    assert text.startswith("# the author's own words")
    bad = text.replace("type: integer", "type: integr", 1).replace("direction: increase", "direction: upwards", 1)
    found = page.post("spec/check", text=bad)
    assert not found["ok"]
    for problem in found["problems"]:
        word = {"features.age.type": "integr", "features.years.direction": "upwards"}[problem["where"]]
        assert word in bad.split("\n")[problem["line"] - 1]
    assert found["problems"][0]["remedy"] == "did you mean 'integer'?"


@pytest.mark.parametrize(
    "text",
    ["", "   ", "[", "budge: 1\nfeatures: *alias\n", "!!python/object/apply:os.system [ls]", "budge: 2\n", "a: " + "[" * 200, "\x00", "\x85"],
)  # fmt: skip
def test_bad_specs_are_problems_and_never_code(page: Page, text: str) -> None:
    found = page.post("spec/check", text=text, deep=True)
    assert not found["ok"]
    assert found["problems"][0]["what"]
    assert page.problems("spec/apply", text=text)


def test_a_spec_without_the_people_s_columns_is_a_problem(page: Page) -> None:
    found = page.post("spec/check", text="budge: 1\nfeatures:\n  income: {type: integer, bounds: [0, 9]}\n")
    assert not found["ok"]
    assert "missing" in found["problems"][0]["what"]


def test_applied_and_exported_specs_are_equal(page: Page) -> None:
    X, im = world()
    start = page.post("start")["state"]
    text = to_text(im.freeze("balance"))
    base = page.post("spec/apply", text=text)["base"]
    state = {**start, "base": base, "off": [0], "features": {"years": {"max_increase": 5}}}
    exported = page.post("spec/text", state=state)["text"]
    edited = im.freeze("balance").without("ageing")
    edited = budge.InteractionModel(
        [f.but(max_increase=5) if f.name == "years" else f for f in edited.features], edited.constraints, name=edited.name
    )
    assert parse(exported, "yaml") == edited
    truth = truth_of(MODELS, X, edited, target=1).summary("strict")
    assert page.look(state)["everybody"][-1]["models"]["strict"]["mean_rho"] == truth.mean_rho


def test_the_deep_check_is_the_library_s(page: Page) -> None:
    from budge.spec import check

    X, im = world()
    found = page.post("spec/check", text=to_text(im), deep=True)
    assert found["report"]["sentences"] == str(check(im, X)).split("\n")
    tight = to_text(im).replace("bounds: [0, 4]", "bounds: [0, 2]")
    found = page.post("spec/check", text=tight, deep=True)
    assert found["ok"]
    assert not found["report"]["ok"]
    assert any("break the spec" in s for s in found["report"]["sentences"])


def test_json_and_toml_are_read_too(page: Page) -> None:
    _, im = world()
    keys = {page.post("spec/check", text=to_text(im, kind), kind=kind)["key"] for kind in ("yaml", "json", "toml")}  # type: ignore[arg-type]
    assert len(keys) == 1
    assert None not in keys
    assert page.problems("spec/apply", text="{}", kind="pickle")


def test_the_report_is_the_edited_model_s(page: Page) -> None:
    start = page.post("start")["state"]
    answer = page.ask("report", state={**start, "off": [1]})
    assert answer.status_code == 200, answer.text
    assert answer.text.lower().startswith("<!doctype html>")
    _, im = world()
    assert im.without("savings").digest in answer.text
    assert "Edited on the page: constraint &#39;savings&#39; off." in answer.text
    assert "These are not the verdicts of the audit that was planned." in answer.text


def test_exports_say_what_was_edited_and_claim_no_earlier_declaration() -> None:
    X, im = world()
    page = Page(make_app({"strict": MODELS["strict"]}, X, im, target=1, population="all", harm="below", text="# the author's own words\n" + to_text(im)))
    start = page.post("start")["state"]
    served = page.ask("report", state=start).text
    assert "It was declared before" in served
    assert "Edited on the page" not in served
    assert page.post("spec/text", state=start, export=True)["text"].startswith("# the author's own words")
    higher = {**start, "threshold": 0.5}
    edited = page.ask("report", state=higher).text
    assert "It was declared before" not in edited
    assert "<title>Responsiveness: loans (edited on the page: τ 0.1 → 0.5)</title>" in edited
    assert not any("Declared as harm" in s for s in page.look(higher)["everybody"][-1]["models"]["strict"]["sentences"])
    assert page.post("spec/text", state=higher, export=True)["text"] == page.post("spec/text", state=start)["text"]
    both = {**higher, "off": [2], "features": {"years": {"max_increase": 4}}}
    assert "Edited on the page: constraint &#39;owners pay&#39; off; &#39;years&#39;: max_increase 2 → 4; τ 0.1 → 0.5." in page.ask("report", state=both).text
    exported = parse(page.post("spec/text", state=both, export=True)["text"], "yaml")
    assert exported.name == "loans (edited)"
    text = "# mine\n" + to_text(im.freeze("balance"))
    other = {**start, "base": page.post("spec/apply", text=text)["base"]}
    exported_text = page.post("spec/text", state=other, export=True)["text"]
    assert exported_text.startswith("# mine\n")
    assert (parse(exported_text, "yaml").name, parse(exported_text, "yaml").digest) == ("loans (edited)", im.freeze("balance").digest)
    assert "Edited on the page: another text of the spec." in page.ask("report", state=other).text


@pytest.mark.parametrize("wish", [{"figure": "partition"}, {"figure": "person", "person": 3}, {"figure": "verdicts", "by": "home"}])
def test_figures_are_the_library_s(page: Page, wish: dict[str, Any]) -> None:
    from budge.report import figures

    X, im = world()
    start = page.post("start")["state"]
    found = page.post("figure", state=start, model="strict", **wish)["svg"]
    result = truth_of(MODELS, X, im, target=1)
    truth = {
        "partition": lambda: figures.partition(im),
        "person": lambda: figures.person(truth_of(MODELS, X.iloc[[3]], im, target=1), X.index[3], model="strict"),
        "verdicts": lambda: figures.verdicts(result, by="home", model="strict"),
    }[wish["figure"]]()
    assert found == truth.svg()
    assert page.problems("figure", state=start, model="nobody", **wish)


# -- saved runs ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    X, im = world()
    truth_of(MODELS, X, im, target=1).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_alone_can_be_read(run: Path) -> None:
    X, im = world()
    saved = budge.Audit.load(run)
    page = Page(make_app(from_run(saved)))
    start = page.post("start")
    assert not start["live"]
    found = page.look(start["state"], person=2)
    row = saved.of_model("strict").iloc[2]
    assert found["person"][0]["models"]["strict"]["rho"] == row["rho"]
    assert found["everybody"][0]["models"]["strict"]["verdicts"] == dict(saved.summary("strict").verdicts)
    rows = page.post("people", state=start["state"], model="kind", limit=100)["rows"]
    assert [r["rho"] for r in rows] == saved.of_model("kind")["rho"].tolist()
    assert page.post("spec/text", state=start["state"])["text"] == to_text(im)
    live = truth_of(MODELS, X, im, target=1)
    seen = 0
    for place, label in enumerate(X.index):
        witness = page.look(start["state"], person=place)["person"][0]["witness"]
        for model in MODELS:
            change = [tuple(map(str, row)) for row in live.change(label, model=model).itertuples(index=False, name=None)]
            told = [(w["feature"], str(w["from"]), str(w["to"])) for w in witness.get(model, [])]
            assert told == change
            seen += len(told)
    assert seen > 0


def test_a_run_with_its_people_goes_on_where_it_ended(run: Path) -> None:
    X, im = world()
    saved = budge.Audit.load(run)
    with pytest.raises(BudgeError, match="data digest differs"):
        from_run(saved, MODELS, X.iloc[:-1])
    with pytest.raises(BudgeError, match="takes its models and its people"):
        from_run(saved, MODELS)
    question = from_run(saved, MODELS, X)
    page = Page(make_app(question))
    start = page.post("start")["state"]
    assert page.look(start)["everybody"][-1]["models"]["strict"]["mean_rho"] == saved.summary("strict").mean_rho
    edited = page.look({**start, "off": [1]})["everybody"][-1]["models"]["strict"]
    assert edited["mean_rho"] == truth_of(MODELS, X, im.without(1), target=1).summary("strict").mean_rho
    assert edited["before"]["mean_rho"] == saved.summary("strict").mean_rho


# -- the command --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "give a saved run, or --spec, --data, --model, --target"),
        (["--spec", "a.yaml"], "--data, --model, --target"),
        (["nowhere"], "there is no saved run here"),
        (["--demo", "--spec", "a.yaml"], "the demo brings its own"),
        (["run", "--spec", "a.yaml"], "a run has its own spec"),
        (["--demo", "--port", "99999"], "a port lies between"),
    ],
)
def test_the_command_says_what_is_missing(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-open", *arguments]) in (2, 3)
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(how: signal.Signals) -> None:
    command = [sys.executable, "-c", "import sys; from budge.cli import main; sys.exit(main())", "serve", "--demo", "--no-open", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}) as server:
        assert server.stdout is not None
        lines = []
        while (line := server.stdout.readline()) and line.rstrip() != "}":
            lines.append(line)
        address = json.loads("".join(lines) + "}")
        try:
            assert address["address"] == f"http://127.0.0.1:{address['port']}/#token={address['token']}"
            wish = urllib.request.Request(
                f"http://127.0.0.1:{address['port']}/api/start", b"{}",
                {"Content-Type": "application/json", "X-Budge-Token": address["token"]},
            )  # fmt: skip
            with urllib.request.urlopen(wish, timeout=20) as answer:
                assert json.load(answer)["models"][0]["name"] == "scorecard"
        finally:
            server.send_signal(how)
        _, errors = server.communicate(timeout=30)
    assert server.returncode in ((0, 130) if how is signal.SIGINT else (0, 143, -15))
    assert "Traceback" not in errors
