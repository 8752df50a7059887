"""``budge llm``: plan, run, test, import; exit codes, resuming, keys."""

from __future__ import annotations

import json
import os
import re
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

from budge import llm
from budge.cli import main
from budge.llm.runs.chat_models import settings
from budge.llm.runs.configured import configured

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
        assert said.err.count("raise --max-calls") == 1
        assert "incomplete" not in said.out
        assert "the same call" not in said.err
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
        (["--model", "mockllm/m", "--interact", "typos(2)"], "typos.rate"),
        (["--model", "mockllm/m", "--interact", "base = case(upper)"], "the name base is reserved"),
        (["--model", "mockllm/m", "--per-prompt", "2"], "--per-prompt"),
        ([], "no model is given"),
        (["--model", "mockllm/m", "--interact", "mispell()"], "misspell"),
        (["--model", "mockllm/m", "--judge", "nothing()"], "nothing"),
        (["--gguf", "nowhere.gguf"], "nowhere.gguf"),
    ],
)
def test_what_cannot_be_run(more: list[str], words: str, prompts: str, capsys: pytest.CaptureFixture[str]) -> None:
    judge = [] if "--judge" in more else ["--judge", "contains(yes)"]
    assert main(["llm", "run", prompts, *judge, "-n", "2", *more]) in (2, 3)
    assert words in capsys.readouterr().err


def test_prompts_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["llm", "run", "fatcs", "--judge", "contains(a)", "--model", "mockllm/m", "-n", "1"]) in (2, 3)
    assert "did you mean the built-in facts?" in capsys.readouterr().err


def test_a_bare_name_of_a_helper_is_a_model_at_the_address(prompts: str, capsys: pytest.CaptureFixture[str]) -> None:
    def behave(number: int, body: Any, handler: Any) -> bytes:
        return completion("1" if body["model"].startswith("judge") else f"Well, {body['seed']}")

    with fake_server(behave) as fake:
        command = [
            "llm",
            "run",
            prompts,
            "--model",
            "fake",
            "--base-url",
            fake.url,
            "-n",
            "2",
            "--no-base",
            "--interact",
            "paraphrase()",
        ]
        assert main([*command, "--judge", "model_judge()", "--judge-model", "judge-1", "--rewriter", "fake", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["unresolved"] == 0
        assert {seen.body["model"] for seen in fake.asked} == {"fake", "judge-1"}
        assert main([*command, "--judge", "model_judge(judge-2)", "--rewriter", "fake", "--quiet"]) == 0
        assert "judge-2" in {seen.body["model"] for seen in fake.asked}
        assert main([*command, "--judge", "model_judge()", "--rewriter", "fake"]) == 2
        assert "--judge-model" in capsys.readouterr().err


def test_a_run_without_any_answer_says_so(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def behave(number: int, body: Any, handler: Any) -> None:
        answer(handler, 200, b"<html>login first</html>", "text/html")

    with fake_server(behave) as fake:
        assert main([*told(fake, prompts, "-n", "1", "--no-base", "--retries", "1")]) == 0
        said = capsys.readouterr()
    assert "0 of 2 draws resolved by 2 calls; 2 unresolved: 2 × the answer is no" in said.out
    assert "every answer is unresolved: 2 × " in said.err
    assert "login first" in said.err
    assert main([*told(fake, prompts, "-n", "1", "--retries", "1", "-o", str(tmp_path / "run"))]) == 4  # nobody listens there now
    said = capsys.readouterr()
    assert f"the connection to {fake.url}" in said.err
    assert "is the server running?" in said.err
    assert "Next:" not in said.out


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


def asked(fake: Any, prompts: str, out: Path, *more: str) -> None:
    given = ["llm", "run", prompts, "--base-url", fake.url, "--judge", "contains(yes)", "-n", "30", "--quiet", "-o", str(out)]
    assert main([*given, "--interact", "loud = case(upper)", *more]) == 0


def test_a_log_of_our_own_points_to_the_run(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its samples are draws, not prompts, and it does not know how the run was stopped."""
    with fake_server() as fake:
        asked(fake, prompts, tmp_path / "one", "--model", "fake")
    log = next((tmp_path / "one" / "logs").glob("*.eval"))
    assert main(["llm", "import", str(log), "-o", str(tmp_path / "again")]) == 2
    said = capsys.readouterr().err
    assert f"budge llm test {tmp_path / 'one'}" in said
    assert not (tmp_path / "again").exists()
    assert main(["llm", "test", str(tmp_path / "one"), "--over", "these"]) == 0


def test_models_are_compared(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def other(number: int, body: Any, handler: Any) -> bytes:
        loud = body["messages"][-1]["content"].isupper()
        return completion("yes" if loud == (body["model"] == "b") else "no")

    one, two = tmp_path / "one", tmp_path / "two"
    with fake_server(other) as fake:
        asked(fake, prompts, one, "--model", "a")
        asked(fake, prompts, two, "--model", "b")
    capsys.readouterr()
    assert main(["llm", "compare", str(one), str(two), "--over", "these"]) == 0
    said = capsys.readouterr().out
    assert "base: a is higher than b (adjusted p = " in said
    assert "loud overturns the ranking of the base: b is lower there and higher here" in said
    assert main(["llm", "compare", str(one), str(two), "--over", "these", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in record["table"]] == ["higher", "lower"]
    assert [row["overturned"] for row in record["rankings"]] == [True]
    assert main(["llm", "compare", str(one), "--over", "these"]) == 2
    assert "two models" in capsys.readouterr().err


def answers_file(folder: Path, hits: list[bool | None], **more: Any) -> str:
    rows = [{"model": "m", "interaction": "base", "prompt": f"q{i}", "hit": h, **more} for i, h in enumerate(hits)]
    return str(llm.Answers.of(rows, {"scheme": "per_prompt"}).write(folder / "answers.jsonl"))


@pytest.mark.parametrize("width", [60, 80])
def test_a_table_by_category_names_the_category_and_breaks_no_name(
    width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [
        {"model": model, "interaction": word, "prompt": f"q{i}", "category": "ab"[i % 2], "hit": i % 4 == 0}
        for model in ("OLMo-2-1124-7B-Instruct", "Llama-3.1-8B") for word in ("base", "role play: a security researcher") for i in range(8)
    ]  # fmt: skip
    file = str(llm.Answers.of(rows, {"scheme": "per_prompt"}).write(tmp_path / "answers.jsonl"))
    assert main(["llm", "test", file, "--over", "these", "--by", "category"]) == 0
    lines = capsys.readouterr().out.split("\n")
    for model in ("OLMo-2-1124-7B-Instruct", "Llama-3.1-8B"):
        at = lines.index(f"By category, {model}:")
        assert lines[at + 1].split() == ["category", "interaction", *lines[at + 1].split()[2:]]
        told = [line.split() for line in lines[at + 2 : at + 9] if line[2:3] in ("a", "b")]
        assert [row[0] for row in told[:2]] == ["a", "b"]
        assert {"0.500", "0.000"} & set(told[0])
    assert max(map(len, lines)) <= width
    assert "inconclusive" in " ".join(lines)
    assert main(["llm", "compare", file, "--over", "these", "--pairs"]) == 0
    text = capsys.readouterr().out
    assert "Rate of OLMo-2-1124-7B-Instruct minus that of Llama-3.1-8B:" in " ".join(text.split())
    assert re.search(r"^  base +0\.000 +inconclusive", text, re.M)
    assert max(map(len, text.split("\n"))) <= width


def test_labels_correct_for_the_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["llm", "test", answers_file(tmp_path, [True] * 10 + [False] * 90), "--over", "these", "--json", "--labelled"]
    assert main([*given, "185,15,6,194"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert counts["info"]["labelled"]["base"]["false_alarms"] == 6
    pairs = ["1,1"] * 185 + ["true,false"] * 14 + ["1,"] + ["0,1"] * 6 + ["False,0"] * 194
    (tmp_path / "labels.csv").write_text("person,judge\n" + "\n".join(pairs) + "\n")
    assert main([*given, str(tmp_path / "labels.csv")]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["info"]["labelled"]["base"] == {**counts["info"]["labelled"]["base"], "missed": 14, "unresolved_hits": 1}
    direct = llm.test(llm.load(given[2]), threshold=0.4, over="these", labelled=llm.Labelled(185, 15, 6, 194))
    assert counts["table"][0]["rate"] == direct.table["rate"][0] != 0.1
    for wrong in ("185,15,6", "nowhere.csv", "a,b,c,d"):
        assert main([*given, wrong]) == 2
    (tmp_path / "labels.csv").write_text("person,judge\nperhaps,1\n")
    assert main([*given, str(tmp_path / "labels.csv")]) == 2


def test_what_is_unresolved_is_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = answers_file(tmp_path, [True] * 4 + [False] + [None] * 3, category="a long name of a category")
    assert main(["llm", "test", file, "--over", "these", "--by", "category"]) == 0
    said = capsys.readouterr().out
    assert "80.0 %†" in said
    assert "† among resolved answers" in said
    assert "rate (resolved)" in said
    assert "a long name of a category" in said
    assert "inconclusive" in said.split("By category")[1]


def test_samples_with_two_filters_come_in_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"doc_id": i, "doc": {}, "resps": [["x"]], "filtered_resps": ["x"], "filter": name, "metrics": ["exact_match"], "exact_match": value}
        for name, value in (("strict", 0.0), ("loose", 1.0)) for i in range(5)
    ]  # fmt: skip
    log, out = tmp_path / "samples_t.txt", tmp_path / "out"
    log.write_text("\n".join(map(json.dumps, lines)))
    given = ["llm", "import", str(log), "-o", str(out)]
    for more, words in (([], "--format"), (["--format", "lm-eval"], "--model"), (["--model", "m"], "--filter strict")):
        given += more
        assert main(given) == 2
        assert words in capsys.readouterr().err
    assert main([*given, "--filter", "loose", "--values", "1=perhaps"]) == 2
    assert main([*given, "--filter", "loose"]) == 0
    assert llm.load(out).table["hit"].tolist() == [True] * 5
    assert main([*given, "--filter", "loose", "--values", "1=miss,0=hit", "--overwrite"]) == 0
    assert llm.load(out).table["hit"].tolist() == [False] * 5


def test_settings_of_the_model_are_given_on_the_shell(prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server() as fake:
        given = ["llm", "run", prompts, "--model", "fake", "--base-url", fake.url, "--judge", "contains(yes)", "-n", "2", "-q"]
        more = ["--system", "Be brief.", "--top-p", "0.5", "--reasoning-effort", "low", "--model-arg", "emulate_tools=false"]
        assert main([*given, *more, "-o", str(tmp_path / "run")]) == 0
        body = fake.asked[0].body
        assert [message["role"] for message in body["messages"]] == ["system", "user"]
        assert body["messages"][0]["content"] == "Be brief."
        assert body["top_p"] == 0.5
        asked = len(fake.asked)
        for wrong in (["--top-p", "2"], ["--model-arg", "x"], ["--model-arg", "timeout=33"], ["--reasoning-effort", "immense"]):
            assert main([*given, *wrong, "-o", str(tmp_path / "other")]) == 2
        assert len(fake.asked) == asked
    assert not (tmp_path / "other").exists()
    assert set(llm.load(tmp_path / "run").models) == {"fake"}


@pytest.mark.parametrize("option", ["system", "top-p", "reasoning-effort", "model-arg"])
def test_other_settings_of_the_model_are_another_run(option: str, prompts: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"system": ["Be brief.", "Be long."], "top-p": ["0.5", "0.6"], "reasoning-effort": ["low", "high"], "model-arg": ["stream=false", "stream=true"]}
    first, second = ([f"--{option}", value] for value in values[option])
    with fake_server() as fake:
        given = ["llm", "run", prompts, "--model", "fake", "--base-url", fake.url, "--judge", "contains(yes)", "-n", "2", "-q", "-o", str(tmp_path / "run")]
        assert main([*given, *first]) == 0
        asked = len(fake.asked)
        for other in (second, []):
            assert main([*given, *other]) == 2
            assert {"top-p": "top_p", "reasoning-effort": "reasoning_effort", "model-arg": "stream"}.get(option, option) in capsys.readouterr().err
        assert main([*given, *first]) == 0
        assert len(fake.asked) == asked


def test_a_judge_that_is_a_model_of_the_run_is_asked_without_its_system_message(prompts: str, tmp_path: Path) -> None:
    with fake_server() as fake:
        given = ["llm", "run", prompts, "--model", "fake", "--base-url", fake.url, "--judge", "model_judge()", "--judge-model", "fake", "-n", "1", "--no-base"]
        main([*given, "--interact", "case(upper)", "--system", "Be brief.", "-q", "-o", str(tmp_path / "run")])
        roles = [[message["role"] for message in call.body["messages"]] for call in fake.asked]
    assert sorted(roles) == [["system", "user"], ["user"]]


def test_settings_of_a_local_model_are_the_same_run_at_another_port() -> None:
    one, two = (configured(llm.ChatModel("m", f"http://127.0.0.1:{port}/v1", place="m.gguf", version="1"), top_p=0.5) for port in (8001, 8002))
    assert settings(one, own=True, base_url=None) == settings(two, own=True, base_url=None) == {"address": "m.gguf", "version": "1", "top_p": "0.5"}


def test_prompts_of_a_table_with_choices_about_its_reading(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text(PROMPTS.replace(",", "|").partition("\n")[2])
    with fake_server() as fake:
        command = told(fake, str(path), "-n", "4")
        assert main([*command, "--read", "names=id,text,category,expected", "--read", "header=no"]) == 0
        assert "vertical bars separate cells; otherwise: --read separator=comma" in capsys.readouterr().err
        assert main([*command, "--read", "sheet=asked"]) == 2
