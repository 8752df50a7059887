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

import pandas as pd
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
    state = {**start, "base": base, "off": ["c0"], "features": {"years": {"max_increase": 5}}}
    exported = page.post("spec/text", state=state)["text"]
    edited = im.freeze("balance").without("ageing")
    edited = budge.InteractionModel(
        [f.but(max_increase=5) if f.name == "years" else f for f in edited.features], edited.constraints, name=edited.name
    )
    assert parse(exported, "yaml") == edited
    truth = truth_of(MODELS, X, edited, target=1).summary("strict")
    assert page.look(state)["everyone"][-1]["models"]["strict"]["mean_rho"] == truth.mean_rho
    assert [r["id"] for r in page.post("model", state=state)["model"]["rules"]] == ["c0", "o1", "c2", "d1", "s1", "c1"]


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
    bases = {page.post("spec/apply", text=to_text(im, kind), kind=kind)["base"] for kind in ("yaml", "json", "toml")}  # type: ignore[arg-type]
    assert bases == {page.post("start")["state"]["base"]}
    assert page.problems("spec/apply", text="{}", kind="pickle")


def test_the_report_is_the_edited_model_s(page: Page) -> None:
    start = page.post("start")["state"]
    text = page.post("report", state={**start, "off": ["c1"]})["text"]
    assert text.lower().startswith("<!doctype html>")
    _, im = world()
    assert im.without("savings").digest in text
    assert "Edited on the page: &#39;savings&#39; off." in text
    assert "These are not the verdicts of the audit that was planned." in text


def test_exports_say_what_was_edited_and_claim_no_earlier_declaration() -> None:
    X, im = world()
    page = Page(make_app({"strict": MODELS["strict"]}, X, im, target=1, population="all", harm="below", text="# the author's own words\n" + to_text(im)))
    start = page.post("start")["state"]
    served = page.post("report", state=start)["text"]
    assert "It was declared before" in served
    assert "Edited on the page" not in served
    assert page.post("spec/text", state=start, export=True)["text"].startswith("# the author's own words")
    higher = {**start, "threshold": 0.5}
    edited = page.post("report", state=higher)["text"]
    assert "It was declared before" not in edited
    assert "<title>Responsiveness: loans (edited on the page: τ 0.1 → 0.5)</title>" in edited
    assert not any("Declared as harm" in s for s in page.look(higher)["everyone"][-1]["models"]["strict"]["sentences"])
    assert page.post("spec/text", state=higher, export=True)["text"] == page.post("spec/text", state=start)["text"]
    both = {**higher, "off": ["c2"], "features": {"years": {"max_increase": 4}}}
    assert "Edited on the page: &#39;owners pay&#39; off; &#39;years&#39;: max_increase 2 → 4; τ 0.1 → 0.5." in page.post("report", state=both)["text"]
    exported = parse(page.post("spec/text", state=both, export=True)["text"], "yaml")
    assert exported.name == "loans (edited)"
    text = "# mine\n" + to_text(im.freeze("balance"))
    other = {**start, "base": page.post("spec/apply", text=text)["base"]}
    exported_text = page.post("spec/text", state=other, export=True)["text"]
    assert exported_text.startswith("# mine\n")
    assert (parse(exported_text, "yaml").name, parse(exported_text, "yaml").digest) == ("loans (edited)", im.freeze("balance").digest)
    assert "Edited on the page: another text of the spec." in page.post("report", state=other)["text"]


@pytest.mark.parametrize("wish", [{"figure": "partition"}, {"figure": "strip"}, {"figure": "groups", "by": "home"}])
def test_figures_are_the_library_s(page: Page, wish: dict[str, Any]) -> None:
    from budge.report import figures
    from budge.report.answer import answer
    from budge.report.who import groups_of
    from budge.wording import percent

    X, im = world()
    start = page.post("start")["state"]
    found = page.post("figure", state=start, model="strict", **wish)
    result = truth_of(MODELS, X, im, target=1)
    if wish["figure"] == "strip":
        made = answer(result, "strict", budge.Wording())
        assert (found["headline"], found["lede"], found["caption"]) == (made.headline, made.lede, made.caption)
        assert all(found["strips"][m].replace(' xmlns="http://www.w3.org/2000/svg"', "") == made.strips[m] for m in ("paper", "phone"))
    elif wish["figure"] == "groups":
        groups = groups_of(result, "home", "strict", 0.05, budge.Wording())
        assert (found["heading"], found["caption"]) == (groups.heading, groups.caption)
        assert found["strips"][""].replace(' xmlns="http://www.w3.org/2000/svg"', "") == groups.figures["phone"]
        table = result.of_model("strict")
        for name, people, harmed, share, none, mean in found["rows"]:
            own = table[(X["home"] == name.removeprefix("home = ")).to_numpy()]
            below = int((own["verdict"] == "below").sum())
            assert (people, harmed, share) == (len(own), below, percent(below / len(own)))
            assert (none, mean) == ((own["extreme"] == "none").sum(), pytest.approx(own["rho"].mean()))
        assert len(found["rows"]) == 2
        assert page.problems("figure", state=start, model="strict", figure="groups", by="nothing")
    else:
        assert found["svg"] == figures.partition(im).svg()
    assert page.problems("figure", state=start, model="nobody", **wish)
    assert page.problems("figure", state=start, figure="person")


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
    found = page.look(start["state"], who="P002")
    row = saved.of_model("strict").iloc[2]
    assert found["person"][0]["models"]["strict"]["rho"] == row["rho"]
    assert "rule" not in found
    assert found["everyone"][0]["models"]["strict"]["sentences"] == list(saved.summary("strict").sentences())
    rows = page.post("people", state=start["state"], model="kind", show="all")["rows"]
    assert {r["label"]: r["rho"] for r in rows} == saved.of_model("kind")["rho"].to_dict()
    for path in ("try", "points"):
        assert "a saved run alone has no points" in page.problems(path, state=start["state"], who="P002")[0]["what"]
    assert page.post("spec/text", state=start["state"])["text"] == to_text(im)
    live = truth_of(MODELS, X, im, target=1)
    seen = 0
    for label in X.index:
        for model in MODELS:
            least = page.look(start["state"], who=label, model=model)["person"][0]["least"]
            rows = live.change(label, model=model).itertuples(index=False, name=None)
            change = [[f, *(saved.wording.of_model(im).value(f, v) for v in ends)] for f, *ends in rows]
            told = [] if least is None else least["moves"]
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
    assert page.look(start)["everyone"][-1]["models"]["strict"]["mean_rho"] == saved.summary("strict").mean_rho
    edited = page.look({**start, "off": ["c1"]})["everyone"][-1]["models"]["strict"]
    assert edited["mean_rho"] == truth_of(MODELS, X, im.without(1), target=1).summary("strict").mean_rho
    assert edited["before"]["mean_rho"] == saved.summary("strict").mean_rho


def test_two_runs_stand_side_by_side(tmp_path: Path) -> None:
    X, im = world()
    one = truth_of(MODELS, X.iloc[:30], im, target=1)
    two = truth_of(MODELS, X.iloc[5:], im.without(1), target=1, threshold=0.2)
    for audit, name in ((one, "one"), (two, "two")):
        audit.save(tmp_path / name)
    runs = [from_run(budge.Audit.load(tmp_path / name), title=name) for name in ("one", "two")]
    page = Page(make_app(runs))
    start = page.post("start", run=1)
    assert [(r["title"].split(" · ")[0], r["saved"]) for r in start["runs"]] == [("one", True), ("two", True)]
    assert start["state"]["threshold"] == 0.2
    assert page.post("start")["run"] == 0
    found = page.post("runs", run=0, other=1, model="strict", other_model="strict")
    a, b = (audit.of_model("strict")["rho"] for audit in (one, two))
    shared = a.index.intersection(b.index)
    assert (found["both"], found["only"]) == (25, [5, 10])
    assert {r["label"]: r["rho"] for r in found["rows"] if r["rho"][0] != r["rho"][1]} == {k: [a[k], b[k]] for k in shared if a[k] != b[k]}
    gaps = [(r["was"] == r["is"], -abs(r["rho"][1] - r["rho"][0])) for r in found["rows"]]
    assert gaps == sorted(gaps)
    assert found["changed"] == sum(r["was"] != r["is"] for r in found["rows"]) > 0
    assert found["changed"] + found["moved"] == len(found["rows"]) > found["changed"]
    assert sum(c["was"] for c in found["counts"]) == sum(c["is"] for c in found["counts"]) == 25
    assert found["differs"] == "Between them: the interaction model differs; the table of people differs; threshold 0.1 and 0.2; draws 298 and 135."
    same = page.post("runs", run=0, other=0, model="strict", other_model="strict")
    assert (same["changed"], same["differs"], same["rows"]) == (0, "Spec, people, model and design are the same.", [])
    other = page.post("runs", run=0, other=0, model="strict", other_model="kind")
    digests = one.info["model_digests"]
    assert other["differs"] == (same["differs"] if digests["strict"] == digests["kind"] else "Between them: the model differs.")
    for bad in ({"other": 7}, {"other": "1"}, {"run": -1}, {"other": True}, {"model": "nobody"}, {"other_model": 3}):
        assert page.problems("runs", **{"run": 0, "other": 1, **bad})
    live = Page(make_app(MODELS, X, im, target=1, population="all"))
    assert "only saved runs" in live.problems("runs", other=0)[0]["what"]


def test_a_run_at_the_threshold_0_can_be_read(tmp_path: Path) -> None:
    X, im = world()
    audit = truth_of(MODELS["strict"], X, im.freeze("balance", "home"), target=1, threshold=0.0)
    audit.save(tmp_path / "run")
    page = Page(make_app(from_run(budge.Audit.load(tmp_path / "run"))))
    start = page.post("start")["state"]
    found = page.post("people", state=start)
    assert (found["show"], found["counts"]["none"]) == ("none", int((audit.table["verdict"] == "none").sum()))
    assert page.look(start, who=found["rows"][0]["label"])["person"][0]["say"][-1] == "All points were listed: this is a proof."


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
        (["--demo", "--group-label", "x"], "--group-label"),
    ],
)
def test_the_command_says_what_is_missing(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--no-open", *arguments]) in (2, 3)
    assert words in capsys.readouterr().err


def test_a_folder_of_runs_is_served_run_by_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import budge.web.server

    X, im = world()
    for name in ("b", "a"):
        truth_of(MODELS["strict"], X, im, target=1, wording={"people_name": "applicants"}).save(tmp_path / "runs" / name)
    found: list[Any] = []
    monkeypatch.setattr(budge.web.server, "serve", lambda questions, **_: found.extend(questions))
    assert main(["serve", "--no-open", str(tmp_path / "runs"), "--target-name", "approval"]) == 0
    assert [(q.title, q.live, q.wording.people_name, q.wording.target_name) for q in found] == [(n, False, "applicants", "approval") for n in ("a", "b")]
    found.clear()
    assert main(["serve", "--no-open", str(tmp_path / "runs" / "b"), str(tmp_path / "runs" / "a")]) == 0
    assert [q.title for q in found] == ["b", "a"]
    monkeypatch.setattr("budge.cli.serve.MOST_RUNS", 1)
    assert main(["serve", "--no-open", str(tmp_path / "runs")]) == 2
    assert "at most 1 runs" in capsys.readouterr().err


def test_of_several_runs_those_of_other_models_are_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With --data and --model the run that they belong to can be explored, and another beside it can be read."""
    import budge.web.server

    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    who = pd.DataFrame({"income": range(30), "debt": [k % 7 for k in range(30)]})
    who.to_csv(tmp_path / "people.csv", index=False)
    im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 40), max_increase=6), budge.Feature("debt", "integer", bounds=(0, 9))])
    (tmp_path / "im.yaml").write_text(to_text(im), encoding="utf-8")
    for name, wanted in (("a", who["income"] > 20), ("b", who["income"] > 9)):
        skops.dump(linear.LogisticRegression().fit(who, wanted.astype(int)), tmp_path / f"{name}.skops")
        asked = [str(tmp_path / "im.yaml"), str(tmp_path / "people.csv"), "--target", "1", "--model", str(tmp_path / f"{name}.skops")]
        assert main(["audit", *asked, "-o", str(tmp_path / "runs" / name), "-q"]) == 0
    found: list[Any] = []
    monkeypatch.setattr(budge.web.server, "serve", lambda questions, **_: found.extend(questions))
    options = ["--no-open", "--data", str(tmp_path / "people.csv"), "--model", str(tmp_path / "a.skops")]
    assert main(["serve", str(tmp_path / "runs"), *options]) == 0
    assert [(q.title, q.live) for q in found] == [("a", True), ("b", False)]
    start = Page(make_app(found)).post("start", run=1)
    assert not start["live"]
    assert start["asked"].endswith("a saved run, to be read")
    assert main(["serve", str(tmp_path / "runs" / "b"), *options]) == 2  # alone, a run of another model is an error
    assert "the model digests differs from the run's" in capsys.readouterr().err


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
                assert json.load(answer)["models"][0] == "scorecard"
        finally:
            server.send_signal(how)
        _, errors = server.communicate(timeout=30)
    assert server.returncode in ((0, 130) if how is signal.SIGINT else (0, 143, -15))
    assert "Traceback" not in errors
