"""The command line on a terminal and off it: colours, progress, tables, quiet, records, one-line errors, names as text."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import typer.main

from budge import progress
from budge.cli import COMMANDS, app, main
from budge.cli import terminal as shown
from budge.progress import Pace

CALL = "import sys; from budge.cli import main; sys.exit(main())"
ESCAPE = "\x1b["


def on_terminal(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run on a pseudo-terminal: exit code, and everything that it showed."""
    pty = pytest.importorskip("pty", reason="pseudo-terminals need a POSIX system")
    master, slave = pty.openpty()
    setting = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    setting |= {"TERM": "xterm-256color", "COLUMNS": "110", "LINES": "40", **(env or {})}
    child = subprocess.Popen([sys.executable, "-c", CALL, *arguments], stdin=slave, stdout=slave, stderr=slave, env=setting)
    os.close(slave)
    text = b""
    while True:
        try:
            some = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not some:
            break
        text += some
    os.close(master)
    return child.wait(), text.decode()


def off_terminal(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", CALL, *arguments], capture_output=True, text=True, env={**os.environ, **(env or {})}, check=False
    )


def every_command() -> dict[str, typer.main.click.Command]:
    for name in COMMANDS:
        if name not in {command.name for command in app.registered_commands}:
            importlib.import_module(f"budge.cli.{name}").register(app)
    found: dict[str, typer.main.click.Command] = {}
    groups = [("", typer.main.get_command(app))]
    while groups:
        path, group = groups.pop()
        for name, command in group.commands.items():  # type: ignore[attr-defined]
            if hasattr(command, "commands"):
                groups.append((f"{path}{name} ", command))
            else:
                found[f"{path}{name}"] = command
    return found


def test_every_command_has_json_and_quiet() -> None:
    commands = every_command()
    assert set(commands) >= {"demo", "init", "check", "plan", "sample", "audit", "sensitivity", "ablate", "select", "study"}
    for name, command in commands.items():
        options = {word for parameter in command.params for word in parameter.opts}
        assert {"--json", "--quiet", "-q"} <= options, name
        assert command.help, name


# -- colours and progress -----------------------------------------------------------------------------------------------


def test_colours_and_a_bar_on_a_terminal() -> None:
    code, text = on_terminal("demo", "--people", "120")
    assert code == 0
    assert f"{ESCAPE}31m█" in text
    assert f"{ESCAPE}1mAlmost no way" in text


def test_none_where_none_are_wanted() -> None:
    code, text = on_terminal("demo", "--people", "20", env={"NO_COLOR": "1"})
    assert code == 0
    assert "almost no" in text
    assert "\x1b" not in text
    code, text = on_terminal("demo", "--people", "20", env={"TERM": "dumb"})
    assert code == 0
    assert "\x1b" not in text


@pytest.mark.parametrize("env", [{}, {"FORCE_COLOR": "1"}], ids=["plain", "forced"])
def test_no_escape_off_a_terminal(env: dict[str, str]) -> None:
    done = off_terminal("demo", "--people", "20", env=env)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert "almost no" in done.stdout
    assert done.stderr == ""  # too short for a line of progress


def test_errors_are_red_on_a_terminal_only() -> None:
    code, text = on_terminal("check", "nowhere.yaml")
    assert code == 3
    assert text.startswith(f"{ESCAPE}1;31mbudge:{ESCAPE}0m ")
    code, text = on_terminal("recourse", "--nobody", env={"COLUMNS": "40", "NO_COLOR": "1"})
    assert code == 2
    assert [len(line) <= 40 for line in text.splitlines()] == [True] * len(text.splitlines())
    assert " ".join(text.split()).endswith("see budge recourse --help")  # no word is broken
    done = off_terminal("check", "nowhere.yaml")
    assert done.returncode == 3
    assert done.stderr.startswith("budge: ")
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_lines_of_progress_off_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with shown.progress_bar("people", quiet=False) as update:
        assert update is not None
        for done in (0, 400, 1000):
            update(done, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("0 of 1,000 people")
    assert re.fullmatch(r"400 of 1,000 people: [\d,.e+]+ people/s, \d+ s left", lines[1])
    assert len(lines) == 2  # the end needs no line
    with shown.progress_bar("people", quiet=True) as update:
        assert update is None
    monkeypatch.setattr(progress, "EVERY", 1e9)
    with shown.progress_bar("people", quiet=False) as update:
        update(400, 1000)
    assert capsys.readouterr().err == ""


def test_pace_counts_what_was_done_here() -> None:
    """A run that resumes at 900 of 1,000 has not done 900 in the first second."""
    now = [100.0]
    pace = Pace("people", lambda: now[0])
    assert str(pace) == ""
    pace.see(900, 1000)
    assert pace.rate is None
    now[0] += 10
    pace.see(920, 1000)
    assert pace.rate == 2.0
    assert str(pace) == "2 people/s, 40 s left"
    now[0] += 4990
    pace.see(921, 1000)
    assert str(pace) == "0.0042 people/s, 5 h 13 min left"
    pace.see(1000, 1000)
    assert str(pace).endswith("0 s left")
    pace.see(5900, 0)
    assert str(pace) == "1 people/s"  # nobody knows how many there are


# -- quiet, records, errors --------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "im.yaml").write_text(
        "budge: 1\nfeatures:\n  a: {type: integer, bounds: [0, 9]}\n  b: {type: integer, bounds: [0, 3]}\n"
    )
    (tmp_path / "x.csv").write_text("a,b\n1,0\n5,2\n")
    return {"im": str(tmp_path / "im.yaml"), "x": str(tmp_path / "x.csv"), "out": str(tmp_path / "p.csv")}


def test_quiet_says_nothing_or_only_the_answer(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in [
        (["check", files["im"], "-q"], ""),
        (["check", files["im"], files["x"], "--quiet"], ""),
        (["init", files["x"], "-o", files["im"] + ".yaml", "-q"], ""),
        (["plan", "-t", "0.4", "--rate", "0.227", "-q"], "79\n"),
        (["sample", files["im"], files["x"], "-o", files["out"], "-q"], ""),
    ]:
        assert main(arguments) == 0
        told = capsys.readouterr()
        assert (told.out, told.err) == (said, "")
    assert main(["init", files["x"], "-q"]) == 0
    assert capsys.readouterr().out.startswith(("#", "budge"))


MISTAKES = [
    ["audit", "{im}", "{x}", "--target", "1"],
    ["audit", "{im}", "{x}", "--target", "1", "--model", "nowhere.onnx"],
    ["sample", "{im}", "{x}", "-o", "{out}", "--drop", "zz"],
    ["sample", "{im}", "{x}", "-o", "{out}", "-n", "2", "--method", "sample"],
    ["check", "nowhere.yaml"],
    ["check", "{im}", "nowhere.csv"],
    ["check"],
    ["init", "nowhere.csv"],
    ["plan", "--alpha", "7"],
    ["plan", "--figure", "x.gif"],
    ["study", "germany"],
    ["audit", "{im}", "{x}"],
    ["audit", "{im}", "{x}", "--tagret", "1"],
    ["audti"],
]


def test_several_mistakes_are_one_list(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", files["im"], files["x"], "--target", "1", "--model", "m.onnx", "--drop", "bb"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "budge: 2 problems:"
    assert told[1:] == ["  1. --drop: no such column (got 'bb'); did you mean 'b'?", "  2. m.onnx: there is no such model file; check the path"]
    assert main(["audit"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "budge: 3 problems:"
    assert told[1:] == ["  1. Missing argument 'spec'", "  2. Missing argument 'DATA'", "  3. Missing option '--target'; see budge audit --help"]


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_a_mistake_is_one_line_with_a_remedy_or_a_record(
    arguments: list[str], files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [word.format(**files) for word in arguments]
    code = main(given)
    told = capsys.readouterr()
    assert code in (2, 3)
    assert told.out == ""
    assert told.err.startswith("budge: ")
    assert told.err.count("\n") == 1, told.err
    assert re.search(r"; \S|\?$|: known", told.err.strip()), f"no remedy: {told.err}"
    assert main([*given, "--json"]) == code
    told = capsys.readouterr()
    record = json.loads(told.out)
    assert told.err == ""
    assert record["error"]
    assert all(problem["what"] for problem in record["problems"])
    assert any(problem.get("remedy") for problem in record["problems"])


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    told = capsys.readouterr()
    assert "Commands" in told.out + told.err


def test_a_reader_who_has_had_enough() -> None:
    if not Path("/bin/sh").exists():
        pytest.skip("needs a shell")
    done = subprocess.run(
        ["/bin/sh", "-c", f'"{sys.executable}" -c "{CALL}" plan --json | head -c 1'], capture_output=True, text=True, check=False
    )
    assert "Traceback" not in done.stderr


# -- names ---------------------------------------------------------------------------------------------------------------

EVIL = "\x1b]0;owned\x07\x1b[2Jinc\x9bome\u202e"


def test_names_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = {"budge": 1, "name": EVIL, "features": {EVIL: {"type": "integer", "bounds": [0, 9]}, "b": {"type": "binary"}}}
    spec["constraints"] = [{"if_then": {"if": "b == 1", "then": "b == 1", "name": EVIL}}]
    path = tmp_path / "im.json"
    path.write_text(json.dumps(spec))
    data = tmp_path / "x.csv"
    pd.DataFrame({EVIL: [1, 20], "b": [0, 1]}).to_csv(data, index=False)
    seen = ""
    for arguments in (
        ["check", str(path)],
        ["check", str(path), "--json"],
        ["check", str(path), str(data)],
        ["check", str(path), str(data), "--json"],
        ["sample", str(path), str(data), "-o", str(tmp_path / "p.csv")],
        ["init", str(data)],
        ["audit", str(path), str(data), "--target", EVIL, "--model", EVIL],
        ["study", EVIL],
        [EVIL],
    ):
        main(arguments)
        told = capsys.readouterr()
        seen += told.out + told.err
    assert not [c for c in seen if not c.isprintable() and c != "\n"]
    assert "\\x1b[2J" in seen  # shown, not obeyed


def test_tables_show_names_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    table = pd.DataFrame(
        {
            "[red]name[/]": ["[bold]x[/bold]", EVIL, "two\nlines"],
            "rho": [0.5, float("nan"), 1e-9],
            "verdict": ["below", "above", None],
        }
    )
    shown.show_table(pd.concat([table] * 6), most=3)
    text = capsys.readouterr().out
    assert "[bold]x[/bold]" in text
    assert "[red]name[/]" in text
    assert "two\\nlines" in text
    assert "–" in text
    assert "and 15 more" in text
    assert not [c for c in text if not c.isprintable() and c != "\n"]


# -- outputs that take no more, narrow terminals -------------------------------------------------------------------------


def test_a_closed_pipe_is_no_failed_gate() -> None:
    child = subprocess.Popen([sys.executable, "-c", CALL, "plan", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(), said) == (3, "")


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_is_one_line(more: list[str]) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with full.open("w") as out:
        done = subprocess.run([sys.executable, "-c", CALL, "plan", *more], stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("budge: standard output: ")
    assert done.stderr.count("\n") == 1


# -- people by name, several models ---------------------------------------------------------------------------------------


@pytest.fixture
def loans(tmp_path: Path) -> Path:
    skops = pytest.importorskip("skops.io", reason="skops is in the `models` extra")
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    people = pd.DataFrame({"name": [f"p{i}" for i in range(12)], "a": [i % 10 for i in range(12)], "b": [i % 4 for i in range(12)], "sex": ["f", "m"] * 6})
    people.to_csv(tmp_path / "people.csv", index=False)
    (tmp_path / "im.yaml").write_text(
        "budge: 1\nfeatures:\n  a: {type: integer, bounds: [0, 9], max_increase: 2}\n  b: {type: integer, bounds: [0, 3]}\n"
    )
    for name, y in (("one", people["a"] > 5), ("two", people["b"] > 1)):
        skops.dump(linear.LogisticRegression().fit(people[["a", "b"]], y.astype(int)), tmp_path / f"{name}.skops")
    return tmp_path


def test_people_have_their_names_and_models_theirs(loans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import budge

    base = ["audit", str(loans / "im.yaml"), str(loans / "people.csv"), "--target", "1", "--id", "name", "--drop", "sex"]
    both = ["--model", f"one={loans / 'one.skops'}", "--model", f"two={loans / 'two.skops'}"]
    assert main([*base, *both, "-o", str(loans / "run"), "--by", "sex"]) == 0
    told = capsys.readouterr().out
    assert "By sex, one\n" in told
    assert "By sex, two\n" in told
    assert told.count("difference of") == 2
    run = budge.Audit.load(loans / "run")
    assert run.models == ("one", "two")
    people = pd.read_csv(loans / "people.csv").set_index("name").drop(columns="sex")
    direct = budge.audit({n: str(loans / f"{n}.skops") for n in ("one", "two")}, people, budge.InteractionModel.from_file(loans / "im.yaml"), target=1)
    pd.testing.assert_frame_equal(run.table[["model", "rho", "verdict"]], direct.table[["model", "rho", "verdict"]], check_names=False, check_index_type=False)
    data = ["--data", str(loans / "people.csv"), "--id", "name"]
    assert main(["report", str(loans / "run"), *data, "--by", "sex", "-q"]) == 2
    assert "--drop" in capsys.readouterr().err
    assert main(["report", str(loans / "run"), *data, "--drop", "sex", "--by", "sex", *both, "-q"]) == 0
    assert "p11" in (loans / "run" / "report.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*base, "--model", str(loans / "one.skops"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert list(record["info"]["models"]) == ["model"]
    assert record["table"][3]["person"] == "p3"
    assert record["no_way"] == {"model": record["summary"]["model"]["no_way"]}
    assert record["gates"] == []
    assert main(["serve", str(loans / "run"), *data, *both, "-q", "--no-open"]) == 2
    assert "--drop" in capsys.readouterr().err


@pytest.mark.parametrize(("column", "said"), [("sex", "2 names occur more than once"), ("nmae", "did you mean 'name'?"), ("gap", "1 person has no name")])
def test_names_that_name_nobody(loans: Path, capsys: pytest.CaptureFixture[str], column: str, said: str) -> None:
    people = pd.read_csv(loans / "people.csv")
    people["gap"] = [None, *range(11)]
    people.to_csv(loans / "people.csv", index=False)
    given = ["audit", str(loans / "im.yaml"), str(loans / "people.csv"), "--target", "1", "--id", column, "--model", str(loans / "one.skops")]
    assert main(given) == 2
    assert said in capsys.readouterr().err


def test_remedies_are_for_the_shell(loans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(loans / "nope")]) == 3
    assert "budge audit SPEC PEOPLE" in capsys.readouterr().err
    given = ["audit", str(loans / "im.yaml"), str(loans / "people.csv"), "--target", "1"]
    assert main(given) == 2
    told = capsys.readouterr().err
    assert "--model MODEL or --predictions FILE" in told
    assert "got" not in told
    import pickle

    (loans / "m.pkl").write_bytes(pickle.dumps({}))
    assert main([*given, "--model", str(loans / "m.pkl")]) == 2
    assert "--trust all" in capsys.readouterr().err


def test_a_width_that_differs_names_drop() -> None:
    from budge.errors import ModelError
    from budge.models.rows import match_columns

    with pytest.raises(ModelError, match="leave 2 out with --drop COLUMN"):
        match_columns(pd.DataFrame({"a": [1], "b": [2], "c": [3]}), None, width=1)
    with pytest.raises(ModelError, match=r"in the order of training$"):
        match_columns(pd.DataFrame({"a": [1]}), None, width=2)


def test_the_demo_replaces_its_report_if_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "demo.html"
    page.write_text("old")
    assert main(["demo", "--people", "20", "-q", "--report", str(page)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert page.read_text() == "old"
    assert main(["demo", "--people", "20", "-q", "--report", str(page), "--overwrite"]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
