"""Options that do not vanish: one that is typed twice is an error, a project file is the same as typing, and errors name options."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import budge
from budge import Feature
from budge.cli import app, main
from budge.cli.project import KEYS, read_project
from budge.cli.shell_words import in_shell_words
from budge.errors import DesignError, InputError, ModelError

main(["--version"])  # registers all commands
GROUP = typer.main.get_command(app)


def commands(group: Any = GROUP, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Return all commands with the words that call them."""
    found = []
    for name, command in group.commands.items():
        found += commands(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]
    return found


SINGLE = [
    pytest.param(path, max(p.opts, key=len), p.is_flag, id=" ".join([*path, max(p.opts, key=len)]))
    for path, command in commands() for p in command.params if p.param_type_name == "option" and not p.multiple
]  # fmt: skip


@pytest.mark.parametrize(("path", "option", "flag"), SINGLE)
def test_a_single_option_is_given_once(path: tuple[str, ...], option: str, flag: bool, capsys: pytest.CaptureFixture[str]) -> None:
    once = [option] if flag else [option, "1"]
    assert main([*path, *once, *once]) == 2
    told = "".join(capsys.readouterr())
    assert "is given more than once" in told
    assert option in told


def test_there_are_commands_and_options_to_try() -> None:
    assert len({param.values[0] for param in SINGLE}) >= 20
    assert len(SINGLE) > 250


def test_options_that_repeat_do() -> None:
    several = {(path[-1], p.name) for path, command in commands() for p in command.params if p.param_type_name == "option" and p.multiple}
    assert {("audit", "by"), ("audit", "drop"), ("audit", "model"), ("audit", "fail_if"), ("gate", "fail_if"), ("compare", "fail_if")} <= several


# -- the project file -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    xgboost = pytest.importorskip("xgboost", reason="a model file")
    folder = tmp_path_factory.mktemp("project")
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"income": rng.integers(0, 10, 60), "age": rng.integers(18, 70, 60)})
    xgboost.XGBClassifier(n_estimators=5, max_depth=2).fit(X, (X["income"] > 5).astype(int)).save_model(folder / "loan.json")
    people = X.assign(who=[f"p{i}" for i in range(60)], sex=rng.choice(["f", "m"], 60), paid=rng.integers(0, 2, 60))
    people.to_csv(folder / "people.csv", index=False)
    still = Feature("age", "integer", bounds=(18, 99), actionable=False)
    budge.InteractionModel([Feature("income", "integer", bounds=(0, 9), max_increase=4), still], name="loans").to_file(folder / "loans.yaml")
    return folder


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "population": st.sampled_from(["all", "outside", "age < 40"]), "threshold": st.sampled_from([0.1, 0.3]), "alpha": st.sampled_from([0.05, 0.01]),
        "claim": st.sampled_from(["below", "above"]), "by": st.sampled_from([["sex"], ["sex", "age"]]), "harm": st.sampled_from(["below", "above"]),
        "seed": st.integers(0, 3), "people-name": st.just("refused applicants"), "group-label": st.just(["sex:f=women"]), "target-name": st.just("approval"),
        "purpose": st.sampled_from(["-x", "a = b", "with 'quotes'"]),
    },
)  # fmt: skip


def typed(options: dict[str, Any]) -> list[str]:
    """Return options as they are typed."""
    return [f"--{key}={value}" for key, values in options.items() for value in (values if isinstance(values, list) else [values])]


def written(options: dict[str, Any]) -> str:
    """Return options as lines of a project file."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(options=OPTIONS, in_file=st.sets(st.sampled_from(KEYS)), elsewhere=st.booleans())
def test_options_of_a_file_are_options_that_are_typed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, options: dict[str, Any], in_file: set[str], elsewhere: bool
) -> None:
    """Whatever stands in the file and whatever is typed: the run is the same, and so is the command that it records."""
    place = tmp_path_factory.mktemp("runs")
    common = {"model": "loan.json", "target": 1, "id": "who", "drop": ["sex", "paid"]}
    if set(options.get("by", ())) & {"sex"}:
        common["drop"] = ["paid", "sex"]
    every = common | options
    paths = {key: str(project / value) if key == "model" else value for key, value in every.items()}
    assert main(["audit", str(project / "loans.yaml"), str(project / "people.csv"), *typed(paths), "-q", "-o", str(place / "typed")]) == 0
    (project / "budge.toml").write_text(written({"spec": "loans.yaml", "data": "people.csv"} | {k: v for k, v in every.items() if k in in_file}))
    rest = {key: value for key, value in paths.items() if key not in in_file}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place if elsewhere else project)
        more = ["--project", str(project / "budge.toml")] if elsewhere else []
        assert main(["audit", *more, *typed(rest), "-q", "-o", str(place / "file")]) == 0
        one, two = (budge.Audit.load(place / name) for name in ("typed", "file"))
        pd.testing.assert_frame_equal(one.table, two.table)
        assert one.design == two.design
        differ = {"when", "command"}
        assert {k: v for k, v in one.info.items() if k not in differ} == {k: v for k, v in two.info.items() if k not in differ}
        (project / "budge.toml").unlink()
        again = shlex.split(two.info["command"])[1:]
        if elsewhere:
            at = again.index("--project")
            del again[at : at + 2]
        assert main([*again, "--overwrite"]) == 0  # the recorded command needs no file
    pd.testing.assert_frame_equal(budge.Audit.load(place / "file").table, one.table)


def test_commands_are_short(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(project)
    lines = {"spec": "loans.yaml", "data": "people.csv", "model": {"one": "loan.json"}, "target": 1, "id": "who", "drop": ["sex", "paid"], "run": "run"}
    text = written({k: v for k, v in lines.items() if k != "model"}) + '[model]\none = "loan.json"\n'
    (project / "budge.toml").write_text(text)
    try:
        assert main(["audit", "--by", "sex"]) == 0
        assert "From budge.toml: spec, data, target, model, run, drop, id." in " ".join(capsys.readouterr().err.split())
        for command in (["show"], ["gate", "--fail-if", "count(sex == 'f') > 99"], ["export", "--csv"], ["report"], ["check"], ["prove"]):
            assert main([*command, "-q"]) == 0, command
        assert main(["recourse", "--person", str(budge.Audit.load("run").table.index[0]), "-q"]) == 0
        assert main(["audit", "-q"]) == 2  # the run stands there
        assert main(["audit", "-q", "--target", "0", "-o", str(tmp_path / "other")]) == 0  # what is typed wins
        assert budge.Audit.load(tmp_path / "other").info["target"] == "is 0"
        assert list(budge.Audit.load("run").models) == ["one"]
        (project / "budge.toml").write_text(written({"by": ["age"], "data": "nothing.csv", "read": ["header=no"]}) + text.replace('data = "people.csv"\n', ""))
        assert main(["audit", "loans.yaml", "people.csv", "-q", "--by", "sex", "--drop", "paid", "--drop", "sex", "-o", str(tmp_path / "third")]) == 0
        assert [column for column, _ in budge.Audit.load(tmp_path / "third").design.groups] == ["sex"]  # a list that is typed takes the place of the file's
    finally:
        (project / "budge.toml").unlink()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("targt = 1\ndatta = 'x'", "did you mean 'target'"), ("trust = true", "--trust on the shell"), ("model = 'os:system'", "no code and no address"),
        ("model = 'http://example.org/model'", "no code and no address"), ("model = 'nothing.json'", "model files"), ("overwrite = true", "on the shell"),
        ("model = ['a=os:system']", "no code"), ("data = 'postgresql://host/db'", "no address"), ("run = '../elsewhere'", "inside the project's folder"),
        ("run = '/tmp/elsewhere'", "inside the project's folder"), ("threshold = [0.1, 0.2]", "one text or number"), ("by = []", "list of texts"),
        ("target = 1979-05-27", "list of texts"), ("x = ", "cannot be read as TOML"), ("a = " + "[" * 5000, "cannot be read as TOML"),
        ("harm = true", "one text or number"),
    ],
)  # fmt: skip
def test_a_project_file_that_is_wrong_or_names_code_is_refused(tmp_path: Path, text: str, what: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "budge.toml").write_text(text)
    with pytest.raises(InputError, match=what):
        read_project(tmp_path / "budge.toml")
    monkeypatch.chdir(tmp_path)
    assert main(["audit"]) == 2
    assert "budge.toml" in capsys.readouterr().err


def test_code_with_the_name_of_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "os:system").write_text("")
    (tmp_path / "budge.toml").write_text("model = 'os:system'")
    with pytest.raises(InputError, match="no code"):
        read_project(tmp_path / "budge.toml")


@pytest.mark.parametrize("model", ["http://127.0.0.1/predict", "a=http://127.0.0.1/predict"])
def test_an_address_that_is_the_path_of_a_file_is_refused(tmp_path: Path, model: str) -> None:
    (tmp_path / "http:/127.0.0.1").mkdir(parents=True)
    (tmp_path / "http:/127.0.0.1/predict").write_text("")
    (tmp_path / "budge.toml").write_text(f"model = {model!r}")
    with pytest.raises(InputError, match="no address"):
        read_project(tmp_path / "budge.toml")


def test_all_problems_of_a_project_file_at_once(tmp_path: Path) -> None:
    (tmp_path / "budge.toml").write_text("targt = 1\ndatta = 'x'\nby = []")
    with pytest.raises(InputError) as caught:
        read_project(tmp_path / "budge.toml")
    assert len(caught.value.problems) == 3


def test_a_spec_of_that_name_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    budge.InteractionModel([Feature("income", "integer", bounds=(0, 9))]).to_file(tmp_path / "budge.toml")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "budge.toml", "-q"]) == 0
    assert main(["check", "--project", "budge.toml"]) == 2
    assert "is a spec" in capsys.readouterr().err


# -- errors on the shell --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (DesignError("too few", where="n", remedy="draw 29 or more, or leave n out"), "-n: too few; give -n 29 or more, or leave -n out"),
        (InputError("x", where="fail-if", remedy="give groups=[...]"), "--fail-if: x; give --by COLUMN"),
        (InputError("x", where="population, column 3", remedy="population='all' (--population all)"), "--population, column 3: x; --population all"),
        (ModelError("x", where="threshold", remedy="use output='label' or threshold=..."), "--cutoff: x; use --output label or --cutoff NUMBER"),
        (ModelError("x", where="a.pkl", remedy="or trust=True (--trust all), if you trust it"), "a.pkl: x; or --trust all, if you trust it"),
        (InputError("x", where="max_unresolved", remedy="choose another name, or overwrite it"), "--max-unresolved: x; choose another name, or --overwrite"),
        (InputError("x", where="model.json", remedy="write a == 'b' or c=3"), "model.json: x; write a == 'b' or c=3"),
        (ModelError("x", where="m", remedy="predict_resolved() gives the others"), "m: x; mend the model, so that it answers about every row"),
        (InputError("x", where="encoding", remedy="give utf-8"), "--read encoding: x; give utf-8"),
        (InputError("x", where="a.csv", remedy="or header=no, name one: sheet=…"), "a.csv: x; or --read header=no, name one: --read sheet=…"),
        (InputError("x", where="sqlite:///a.db", remedy="write ?table=NAME at its end"), "sqlite:///a.db: x; write ?table=NAME at its end"),
    ],
)  # fmt: skip
def test_remedies_are_options_on_the_shell(error: Any, told: str) -> None:
    assert str(in_shell_words(error)[0]) == told


def test_errors_of_a_new_user(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(project)
    people = pd.read_csv("people.csv").rename(columns={"paid": "paid-back"})
    people.to_csv(tmp_path / "people.csv", index=False)
    base = ["audit", "loans.yaml", str(tmp_path / "people.csv"), "--model", "loan.json", "--target", "1", "--drop", "sex", "--drop", "paid-back", "--id", "who"]
    asked = {
        ("--fail-if", "share(paid-back == 1) > 0.1"): "write the name in backticks: `paid-back`",
        ("--fail-if", "share(sex == f) > 0.1"): "a level of sex stands in quotes: 'f'",
        ("--fail-if", "share(verdict == below) > 0.1"): "a level of verdict stands in quotes: 'below'",
        ("--fail-if", "gap_low > 0.1"): "give --by COLUMN",
        ("--fail-if", "share(age > 30) > 10%"): "column 19: a percentage is no number (got '10%'); write 0.1",
        ("--fail-if", "share(sex == 1k) > 0.1"): "this is not a number (got '1k'); write it in digits, such as 12, 0.5 or 1e6; put a level in quotes",
        ("--n", "100"): "a short option has one hyphen: -n",
        ("--claim", "lower"): "Invalid value for '--claim': 'lower' is not one of 'below', 'above'",
        ("--population", "agee < 30"): "--population: no such column (got 'agee'); did you mean 'age'?",
    }  # fmt: skip
    for words, told in asked.items():
        assert main([*base, *words, "-o", str(tmp_path / "run")]) == 2
        assert told in capsys.readouterr().err, words
        assert not (tmp_path / "run").exists()  # before any work
    capsys.readouterr()
    for wrong, told in (("laon.json", "did you mean 'loan.json'?"), ("zzzzzzz.onnx", "check the path")):
        assert main([wrong if word == "loan.json" else word for word in base]) == 3
        err = capsys.readouterr().err
        assert told in err
        assert "people.csv" not in err  # near names only
    assert main(["audit", "loans.yaml", "poeple.csv", *base[3:]]) == 3
    assert "did you mean 'people.csv'?" in capsys.readouterr().err
    for words, told in {
        ("check", "people.csv", "loans.yaml"): "people.csv: a spec file ends in .yaml, .yml, .json or .toml (got '.csv'); give the spec before the data",
        ("init", "people.csv", "-o", str(tmp_path / "x.yaml"), "--outcome", "payd"): "--outcome: no such column (got 'payd'); did you mean 'paid'?",
        ("report", str(tmp_path)): "there is no saved run here; make one with budge audit SPEC PEOPLE",
    }.items():
        assert main(list(words)) in (2, 3)
        assert told in capsys.readouterr().err, words


def test_all_problems_of_a_command_at_once(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.chdir(project)
    base = ["--model", "loan.json", "--target", "1", "--id", "who", "--drop", "sex", "--drop", "paid"]
    audit = ["audit", "loans.yaml", "people.csv", *base]
    assert main([*audit, "--by", "sex", "-q", "-o", str(tmp_path / "run")]) == 0
    wrong_files = ["laons.yaml", "peeple.csv", "--model", "laon.json", "--target", "1"]
    near = ["'loans.yaml'", "'people.csv'", "'loan.json'"]
    gates = ["--fail-if", "gap_low(sexx) > 0", "--fail-if", "shar(no_way) > 0", "--fail-if", "share(verdict == below) > 0"]
    commands = {
        ("audit", *wrong_files, "--seed", "-1", "--alpha", "2"): [*near, "--seed", "--alpha"],
        ("prove", *wrong_files): near,
        ("recourse", *wrong_files, "--person", "1"): near,
        ("ablate", wrong_files[0], "--data", *wrong_files[1:]): near,
        ("sensitivity", wrong_files[0], "--data", *wrong_files[1:]): near,
        ("sample", *wrong_files[:2], "--alpha", "2", "-o", "points.csv"): [*near[:2], "--alpha"],
        (*audit[:-6], "--id", "woh", "--drop", "sx", "--drop", "pad"): ["did you mean 'who'", "did you mean 'sex'", "did you mean 'paid'"],
        (*audit, "--by", "ages", *gates): ["did you mean 'age'", "did you mean 'share'", "stands in quotes: 'below'", "no groups are declared"],
        ("gate", str(tmp_path / "run"), *gates): ["did you mean 'sex'", "did you mean 'share'", "stands in quotes: 'below'"],
        ("compare", str(tmp_path / "run"), str(tmp_path / "run"), "--fail-if", "count(frst == 'above') > 0", "--fail-if", "diff > 0"): ["'first'", "diff"],
    }
    for words, told in commands.items():
        assert main(list(words)) in (2, 3), words
        err = capsys.readouterr().err
        assert f"budge: {len(told)} problems:" in err, err
        assert not [text for text in told if text not in err], err


def test_all_values_of_the_wrong_kind_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of a project file, and arguments that are missing; one alone is told as before."""
    monkeypatch.chdir(tmp_path)
    Path("budge.toml").write_text('claim = "belo"\nthreshold = "x"\nharm = "much"\n')
    assert main(["audit", "-n", "many"]) == 2
    told = capsys.readouterr().err
    assert "7 problems" in told
    assert all(word in told for word in ("'spec'", "'DATA'", "--target", "--claim", "--threshold", "--harm", "'-n'", "see budge audit --help"))
    assert main(["plan", "--alpha", "y", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"] == "UsageError"
    assert main(["plan", "--alpha", "y", "--power", "z"]) == 2
    told = capsys.readouterr().err
    assert "'--alpha'" in told
    assert "'--power'" in told
    assert main(["audit", "--claim", "belo", "--seed", "x", "--help"]) == 0


def test_a_level_that_nobody_can_have_is_no_population(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = project / "levels.yaml"
    spec.write_text("budge: 1\nfeatures:\n  sex: {type: category, levels: [f, m, x]}\n")
    base = ["audit", str(spec), str(project / "people.csv"), "--model", "os:getcwd", "--target", "1", "--drop", "paid", "--id", "who", "--drop", "age"]
    (project / "levels.py").write_text("def score(table):\n    return (table['sex'] == 'x') * 1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        patch.syspath_prepend(str(project))
        names = [c for c in pd.read_csv("people.csv") if c not in ("sex", "paid", "who", "age")]
        base = [*(word if word != "os:getcwd" else "levels:score" for word in base), *(word for name in names for word in ("--drop", name))]
        assert main([*base, "--population", "sex == 'feminine'"]) == 2
        assert "sex has no such level (got 'feminine')" in capsys.readouterr().err
        assert main([*base, "--population", "sex == 'x'"]) == 0  # nobody is x, and somebody could be


# -- the page -------------------------------------------------------------------------------------------------------------

PAGES = Path(__file__).parents[2] / "docs" / "how-to"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize(("page", "least"), [("runs.md", 13), ("models-on-the-shell.md", 8)])
def test_the_commands_of_the_page_run(page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("xgboost", reason="a model file")
    pytest.importorskip("pyarrow", reason="an export to Parquet")
    pytest.importorskip("skops.io", reason="a model file")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for kind, text in BLOCK.findall((PAGES / page).read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, page, "exec"), namespace)
            continue
        for line in text.splitlines():
            code = re.search(r"exit code (\d)", line)
            assert main(shlex.split(line, comments=True)[1:]) == (int(code[1]) if code else 0), (line, capsys.readouterr())
            ran += 1
    assert ran >= least
