"""``budge llm``: plan, run, test, import; exit codes, resuming, keys."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai", reason="inspect-ai is in the `llm` extra")
pytest.importorskip("openai", reason="openai is in the `llm` extra")

from llm_run_kit import KEY, answer, completion, fake_server, truth

from budge.cli import main

PROMPTS = "id,text,category,expected\n" + "".join(
    f"q{i},{text},{'a' if i % 2 else 'b'},yes\n" for i, text in enumerate(["Is water wet?", "Is fire cold?", "Is snow white?", "Do cats bark?"])
)  # fmt: skip


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    (tmp_path / "prompts.csv").write_text(PROMPTS)
    return str(tmp_path / "prompts.csv")


def told(fake: Any, prompts: str, *more: str) -> list[str]:
    given = [
        "llm",
        "run",
        prompts,
        "--model",
        "fake",
        "--base-url",
        fake.url,
        "--judge",
        "contains(yes)",
        "--interact",
        "typos(most=2)",
    ]
    return [*given, "--interact", "loud = case(upper)", *more]


def test_the_papers_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["llm", "plan", "--rate", "OLMo=0.227", "--rate", "Llama=0.277", "--threshold", "0.4", "--interactions", "4"]) == 0
    )
    said = capsys.readouterr().out
    assert "first 79" in said
    assert "first 159" in said
    assert main(["llm", "plan", "--rate", "0.227", "--use", "first", "--price", "0.01", "--no-base", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["table"][0]["n"] == record["calls"] == 79
    assert record["table"][0]["cost"] == pytest.approx(0.79)
    assert main(["llm", "plan", "--rate", "OLMo=22%"]) == 2
    assert "--rate" in capsys.readouterr().err


def test_run_then_test(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    with fake_server() as fake:
        command = told(fake, prompts, "-n", "20", "-o", out)
        assert main([*command, "--max-calls", "25"]) == 4
        said = capsys.readouterr()
        assert "25 of 60 draws" in said.out
        assert "incomplete" in said.err
        assert len(fake.asked) == 25
        assert main([*command, "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert (record["answered"], record["asked_now"], record["calls"]) == (60, 35, 60)
        assert len(fake.asked) == 60
        assert main([*command, "--quiet"]) == 0
        assert capsys.readouterr().out == ""
        assert len(fake.asked) == 60
        assert main([*command[:-1], out, "--seed", "1"]) == 2
        assert "seed was 0, now it is 1" in capsys.readouterr().err
    assert main(["llm", "test", out, "--over", "these", "--threshold", "0.7"]) == 0
    said = capsys.readouterr().out
    assert "Δ loud" in said
    assert "fake" in said
    assert (
        main(["llm", "test", out, "--over", "these", "-t", "0.7", "--by", "category", "--json", "--fail-if", "count(n > 5) > 0"])
        == 1
    )
    record = json.loads(capsys.readouterr().out)
    assert {row["interaction"] for row in record["table"]} == {"typos", "loud"}
    assert len(record["by_category"]) == 4
    assert record["gates"][0]["failed"]
    assert main(["llm", "test", out, "--over", "these", "--latex"]) == 0
    assert capsys.readouterr().out.startswith("\\begin{tabular}")
    assert main(["llm", "test", out]) == 2  # over what? there is no default
    assert "--over" in capsys.readouterr().err
    assert main(["llm", "test", str(tmp_path / "nowhere"), "--over", "these"]) == 3
    assert "no answers here" in capsys.readouterr().err


def test_stopping_early_says_what_it_saves(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "run")
    with fake_server() as fake:
        command = told(fake, prompts, "-n", "60", "-o", out, "--sequential", "anytime", "--threshold", "0.8")
        assert main(command) == 0
        said = capsys.readouterr().out
        assert len(fake.asked) < 100
    assert f"{180 - len(fake.asked)} draws saved" in said
    assert "of 60 saved" in said
    assert main(["llm", "test", out, "--over", "these", "-t", "0.8"]) == 0
    assert "looked at while they came" in capsys.readouterr().out
    with fake_server() as fake:
        assert main(told(fake, prompts, "--sequential", "sprt")) == 2
        assert "--rate" in capsys.readouterr().err
        assert main(told(fake, prompts, "--sequential", "anytime")) == 2
        assert main(told(fake, prompts, "-n", "9", "--sequential", "anyhow")) == 2
        assert "anytime" in capsys.readouterr().err


def test_keys_come_from_the_environment_and_are_not_shown(
    prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int, body: Any, handler: Any) -> None:
        answer(handler, 401, json.dumps({"error": {"message": f"wrong key: {handler.headers['Authorization']}"}}).encode())

    with fake_server(refuse) as fake:
        command = told(fake, prompts, "-n", "3", "-o", str(tmp_path / "run"), "--key-variable", "MY_KEY")
        assert main(command) == 2
        assert "MY_KEY" in capsys.readouterr().err
        monkeypatch.setenv("MY_KEY", KEY)
        assert main(command) == 2
        said = capsys.readouterr()
        assert fake.asked[0].headers["authorization"].endswith(KEY)
    assert "401" in said.err
    assert "wrong key" in said.err
    assert KEY not in said.err + said.out


def test_prices_and_caps_on_cost(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server() as fake:
        command = told(fake, prompts, "-n", "10", "-o", str(tmp_path / "run"), "--max-tokens", "8")
        assert main([*command, "--max-cost", "0.0001"]) == 2
        assert "prices" in capsys.readouterr().err
        assert main([*command, "--max-cost", "0.001", "--price", "fake=2,10", "--json"]) == 4
        record = json.loads(capsys.readouterr().out)
        assert 0 < record["cost"] <= 0.001
        assert main([*command, "--max-cost", "1", "--price", "2,10", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cost"] == pytest.approx(30 * 70e-6)
        assert main([*command, "--price", "cheap"]) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--model", "gpt"], "provider"),
        ([], "no model is given"),
        (["--model", "mockllm/m", "--interact", "mispell()"], "misspell"),
        (["--model", "mockllm/m", "--judge", "nothing()"], "nothing"),
        (["--gguf", "nowhere.gguf"], "nowhere.gguf"),
    ],
)
def test_what_cannot_be_run(more: list[str], words: str, prompts: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm", "run", prompts, "--judge", "contains(yes)", "-n", "2", *more]) in (2, 3)
    assert words in capsys.readouterr().err


def test_prompts_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm", "run", "fatcs", "--judge", "contains(a)", "--model", "mockllm/m", "-n", "1"]) in (2, 3)
    assert "fatcs" in capsys.readouterr().err


def test_control_c_leaves_a_run_that_goes_on(prompts: str, tmp_path: Path) -> None:
    def slow(number: int, body: Any, handler: Any) -> bytes:
        time.sleep(0.05)
        return completion(truth(body))

    with fake_server(slow) as fake:
        command = told(fake, prompts, "-n", "40", "-o", str(tmp_path / "run"), "--concurrency", "2")
        script = "import sys; from budge.cli import main; sys.exit(main())"
        child = subprocess.Popen(
            [sys.executable, "-c", script, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        until = time.monotonic() + 120
        while len(fake.asked) < 10 and child.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=60)
        assert child.returncode == 130, said
        assert "interrupted; what was answered is in" in said
        assert "Traceback" not in said
        first = len(fake.asked)
        assert main([*command, "--quiet"]) == 0
        assert len(fake.asked) <= 120 + 2
        assert first < 120


def test_logs_of_other_runs_can_be_tested(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our own runs keep Inspect's logs: they come back in through the same door as anybody's."""
    with fake_server() as fake:
        base = [
            "llm",
            "run",
            prompts,
            "--model",
            "fake",
            "--base-url",
            fake.url,
            "--judge",
            "contains(yes)",
            "-n",
            "12",
            "--quiet",
        ]
        assert main([*base, "-o", str(tmp_path / "one")]) == 0
        assert main([*base, "-o", str(tmp_path / "two"), "--seed", "8"]) == 0
    one, two = (str(next((tmp_path / name / "logs").glob("*.eval"))) for name in ("one", "two"))
    assert main(["llm", "import", f"base={one}", f"later={two}", "-o", str(tmp_path / "both")]) == 0
    assert main(["llm", "import", one, "-o", str(tmp_path / "both")]) == 2
    capsys.readouterr()
    assert main(["llm", "test", str(tmp_path / "both"), "--over", "these", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["table"]
    assert [row["interaction"] for row in rows] == ["later"]
    assert rows[0]["n"] == 12
