"""Ways to a study that is wrong without a word: each was seen, and each is refused, mended or counted now."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("inspect_ai", reason="runs need inspect-ai (extra `llm`)")
pytest.importorskip("openai", reason="runs need openai (extra `llm`)")

from llm_run_kit import KEY, PROMPTS, QUICK, Fake, Says, completion, fake_server
from refusal_examples import ANSWERED, DECLINED, HELD_OUT, HELD_OUT_ANSWERED

from budge import llm
from budge.cli import main
from budge.errors import DataError, DesignError, InputError
from budge.llm.claims.evidence import Evidence

# -- which model answered -----------------------------------------------------------------------------------------------


def ask(fake: Fake, model: Any = None, ways: Any = None, **more: Any) -> llm.Run:
    more = {"n": 3, "base": False, "judge": Says(), **more}
    return llm.run({"m": model or fake.model}, PROMPTS, ways or {"loud": llm.case("upper")}, patience=QUICK, **more)


def inspect_model(fake: Fake, **settings: Any) -> Any:
    from inspect_ai.model import GenerateConfig, get_model

    args = {name: settings.pop(name) for name in ("stream",) if name in settings}
    config = GenerateConfig(**{"system_message": "Be safe.", "top_p": 0.9, **settings})
    return get_model("openai-api/local/fake", base_url=fake.url, api_key=KEY, config=config, memoize=False, **args)


@pytest.mark.parametrize("change", [{"system_message": "Be bold."}, {"top_p": 0.1}, {"top_k": 3}, {"stop_seqs": ["."]}, {"stream": True}])
def test_another_configuration_of_an_inspect_model_is_another_run(change: dict[str, Any], tmp_path: Path) -> None:
    with fake_server() as fake:
        ask(fake, inspect_model(fake), folder=tmp_path / "run")
        size = len(fake.asked)
        assert not ask(fake, inspect_model(fake), folder=tmp_path / "run").asked
        with pytest.raises(InputError, match=f"another run: m: (model_args.)?{next(iter(change))} was"):
            ask(fake, inspect_model(fake, **change), folder=tmp_path / "run")
        assert len(fake.asked) == size


def test_another_address_is_another_run_and_no_key_is_kept(tmp_path: Path) -> None:
    with fake_server() as fake, fake_server() as other:
        ask(fake, folder=tmp_path / "run")
        with pytest.raises(InputError, match="another run: m: address was"):
            ask(other, folder=tmp_path / "run")
        assert not other.asked
        secret = llm.ChatModel("fake", fake.url.replace("//", "//name:password@"), api_key=KEY)
        made = ask(fake, secret, folder=tmp_path / "secret")
        assert "password" not in json.dumps(made.to_dict())
        assert KEY not in json.dumps(made.to_dict())


def test_another_address_is_refused_on_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.txt").write_text("Is water wet?\nIs fire cold?\n")
    given = ["llm", "run", str(tmp_path / "p.txt"), "--model", "m", "--judge", "contains(yes)", "-n", "2", "-o", str(tmp_path / "run"), "-q"]
    with fake_server() as fake, fake_server() as other:
        assert main([*given, "--base-url", fake.url]) == 0
        assert main([*given, "--base-url", other.url]) == 2
    assert "address was" in capsys.readouterr().err


def test_a_helper_at_another_address_is_another_run(tmp_path: Path) -> None:
    with fake_server() as fake, fake_server() as other:
        ways = {"said": llm.paraphrase(keep=())}
        ask(fake, ways=ways, rewriter=fake.model, folder=tmp_path / "run", n=1)
        with pytest.raises(InputError, match="another run: rewriter: address was"):
            ask(fake, ways=ways, rewriter=other.model, folder=tmp_path / "run", n=1)


# -- texts that were cut off --------------------------------------------------------------------------------------------


def cut(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
    """Every reply is longer than any limit."""
    told = json.loads(completion("Rewrite: is wat" if "other words" in body["messages"][-1]["content"] else "yes and then some"))
    told["choices"][0]["finish_reason"] = "length"
    return json.dumps(told).encode()


def test_each_role_has_its_own_limit_and_a_cut_rewrite_is_not_sent() -> None:
    with fake_server(cut) as fake:
        made = ask(
            fake, ways={"said": llm.paraphrase(keep=())}, rewriter=fake.model, judge=llm.model_judge(), judge_model=fake.model, base=True,
            max_tokens=11, rewriter_tokens=22, judge_tokens=33,
        )  # fmt: skip
    limits = {("other words" in a.text, "You compare" in a.text): a.body.get("max_tokens") or a.body.get("max_completion_tokens") for a in fake.asked}
    assert limits == {(False, False): 11, (True, False): 22, (False, True): 33}
    assert not any(a.text.startswith("Rewrite: is wat") for a in fake.asked)
    rows = made.answers.table
    said = rows[rows["interaction"] == "said"]
    assert said["hit"].isna().all()
    assert said["why"].str.contains("no rewrite: its reply was cut off").all()
    base = rows[rows["interaction"] == "base"]
    assert base["cut"].all()
    assert base["why"].str.contains("its reply was cut off at").all()


def test_the_share_of_cut_answers_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with fake_server(cut) as fake:
        made = ask(fake, folder=tmp_path / "run")
    assert "3 of 3 answers were cut off by the token limit" in str(made)
    assert "3 of 3 answers were cut off by the token limit" in str(llm.test(made, threshold=0.5, over="these"))
    assert main(["llm", "test", str(tmp_path / "run"), "--over", "these"]) == 0
    assert "3 of 3 answers were cut off" in capsys.readouterr().out
    made.answers.write(tmp_path / "a.csv")
    assert llm.Answers.read(tmp_path / "a.csv").remarks() == made.answers.remarks()


def test_a_message_quotes_the_judge_and_not_the_model() -> None:
    def behave(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
        return completion("I am torn." if "You compare" in body["messages"][-1]["content"] else "The moon is made of stone.")

    with fake_server(behave) as fake:
        made = ask(fake, judge=llm.model_judge(), judge_model=fake.model)
    assert "I am torn." in str(made)
    assert "The moon" not in str(made)
    assert set(made.answers.table["judge_text"]) == {"I am torn."}


# -- rewrites belong to texts -------------------------------------------------------------------------------------------


def test_prompts_are_identified_by_their_text_wherever_they_stand() -> None:
    one, two = llm.Prompts.of(["a?", "b?"]), llm.Prompts.of(["b?", "new?", "a?"])
    assert one.ids == (two.ids[2], two.ids[0])
    assert len(set(llm.Prompts.of(["a?", "a?"], repeated="keep").ids)) == 2


def test_a_rewrite_file_with_positions_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("id,rewrite\np1,Alpha?\np2,Beta?\n")
    with pytest.raises(DataError, match="positions, which name no text"):
        llm.rewrites(tmp_path / "r.csv").check(llm.Prompts.of(["b?", "a?"]))


def test_a_rewrite_file_may_carry_the_original(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("original,rewrite\na?,Alpha?\nb?,Beta?\n")
    way, rng = llm.rewrites(tmp_path / "r.csv"), np.random.default_rng(0)
    for prompts in (llm.Prompts.of(["b?", "a?"]), llm.Prompts.of([{"id": "x", "text": "b?"}, {"id": "y", "text": "a?"}])):
        assert [way.rewrite(prompt, rng) for prompt in way.check(prompts)] == ["Beta?", "Alpha?"]
    (tmp_path / "s.csv").write_text("id,original,rewrite\nx,a?,Alpha?\ny,b?,Beta?\n")
    swapped = llm.Prompts.of([{"id": "x", "text": "b?"}, {"id": "y", "text": "a?"}])
    with pytest.raises(DataError, match="2 of 2 prompts have a rewrite of another text"):
        llm.rewrites(tmp_path / "s.csv").check(swapped)
    again = llm.interaction_from_dict(json.loads(json.dumps(llm.rewrites(tmp_path / "s.csv").to_dict())))
    with pytest.raises(DataError, match="another text"):
        again.check(swapped)
    assert llm.rewrites({"a?": "Alpha?"}).rewrite(llm.Prompt("z", "a?"), rng) == "Alpha?"


# -- edits that change nothing ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["typos()", "misspell()", "homoglyphs()", "leet()", "mixed_case()", "whitespace()", "punctuation()"])
def test_an_edit_changes_at_least_one_thing(way: str) -> None:
    made, rng = llm.parse_interaction(way), np.random.default_rng(0)
    prompts = llm.benchmark("facts")
    assert all(made.rewrite(prompt, rng) != prompt.text for prompt in prompts if made.places(prompt))
    loose = llm.parse_interaction(way.replace("()", "(0.01, least=0)"))
    assert any(loose.rewrite(prompt, rng) == prompt.text for prompt in prompts)


def test_prompts_that_stayed_as_they_were_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = ["3 + 4 = ?", "Is water wet?"]
    with fake_server() as fake:
        made = llm.run(fake.model, prompts, ["typos()"], judge=Says(), per_prompt=2, patience=QUICK, folder=tmp_path / "run")
    assert "typos left 2 of 4 prompts unchanged" in str(made)
    assert main(["llm", "test", str(tmp_path / "run"), "--over", "these"]) == 0
    assert "Typos left 2 of 4 prompts unchanged." in capsys.readouterr().out


# -- refusals in other languages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", DECLINED)
def test_refusals_are_found_in_each_language(language: str) -> None:
    judge, prompt = llm.refusal(), llm.Prompt("a", "?")
    assert [text for text in DECLINED[language] if not judge.judge(prompt, "", text).hit] == []
    assert [text for text in ANSWERED[language] if judge.judge(prompt, "", text).hit] == []
    english = llm.refusal(languages="en")
    assert sum(bool(english.judge(prompt, "", text).hit) for text in DECLINED[language]) <= 3, "what was looked for before"


def test_the_stated_error_rates_are_those_of_the_held_out_sentences() -> None:
    judge, prompt = llm.refusal(), llm.Prompt("a", "?")
    missed = {code: sum(not judge.judge(prompt, "", text).hit for text in texts) for code, texts in HELD_OUT.items()}
    false = {code: sum(bool(judge.judge(prompt, "", text).hit) for text in texts) for code, texts in HELD_OUT_ANSWERED.items()}
    assert missed == {"en": 5, "fr": 3, "de": 5, "es": 3, "zh": 6}
    assert false == {"en": 1, "fr": 0, "de": 0, "es": 0, "zh": 0}
    assert "22 of 50 refusals" in " ".join((llm.refusal.__doc__ or "").split())


@pytest.mark.parametrize("judge", ["refusal()", "not refusal()"])
def test_a_translation_into_a_language_that_the_judge_does_not_read_is_refused(judge: str, tmp_path: Path) -> None:
    for way in (llm.translate("Italian"), llm.translate("Tamil") | llm.case("upper")):
        with fake_server() as fake, pytest.raises(InputError, match="translates into another language"):
            ask(fake, ways={"other": way}, judge=judge, rewriter=fake.model)
    with fake_server() as fake:
        assert not ask(fake, ways={"said": llm.translate("French", keep=())}, judge=judge, rewriter=fake.model, n=1).incomplete
        with pytest.raises(InputError, match="matched in en only"):
            ask(fake, ways={"said": llm.translate("French")}, judge="refusal(languages=[en])", rewriter=fake.model)


# -- comparing ----------------------------------------------------------------------------------------------------------


def several(rates: dict[str, float], seed: int = 0, n: int = 120) -> llm.Answers:
    rng = np.random.default_rng(seed)
    rows = [
        {"model": model, "interaction": way, "prompt": f"q{i}", "draw": i, "hit": bool(rng.random() < rate)}
        for model, rate in rates.items()
        for way in ("base", "typos")
        for i in range(n)
    ]
    return llm.Answers.of(rows, {"scheme": "joint"})


def test_ranks_stand_for_pairs() -> None:
    rates = {f"m{i}": 0.05 + 0.09 * i for i in range(9)}
    found = llm.compare(several(rates), over="these")
    assert len(found.table) == 72
    assert str(found).count("\n") < 6, "one line per interaction"
    assert "place by the rate of hits (1 is lowest) of 9" in str(found)
    for word, part in found.ranks.groupby("interaction"):
        places = part.set_index("model")
        for one, two, verdict in found.table.loc[found.table["interaction"] == word, ["first", "second", "verdict"]].itertuples(index=False):
            if verdict == "lower":
                assert places.loc[one, "worst"] < len(rates)
                assert places.loc[two, "best"] > 1


def test_places_hold_together() -> None:
    """The true places of models lie in all of their ranges, but for a share alpha of the studies."""
    rates = {"a": 0.1, "b": 0.3, "c": 0.35, "d": 0.6}
    wrong = 0
    for seed in range(40):
        ranks = llm.compare(several(rates, seed, 60), over="these", alpha=0.2).ranks
        truth_of = {name: i + 1 for i, name in enumerate(rates)}
        wrong += any(not row.best <= truth_of[row.model] <= row.worst for row in ranks.itertuples())
    assert wrong <= 40 * 0.2


@pytest.mark.parametrize("scheme", ["joint", "per_prompt"])
def test_p_values_and_intervals_of_pairs_agree(scheme: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(25):
        n, p, q = 60, *rng.uniform(0, 0.5, 2)
        rows = [
            {"model": m, "interaction": "base", "prompt": f"q{i}", "draw": 0 if scheme == "per_prompt" else i, "hit": bool(rng.random() < rate)}
            for m, rate in (("a", p), ("b", q))
            for i in range(n)
        ]
        table = llm.compare(llm.Answers.of(rows, {"scheme": scheme}), over="these", adjust="none").table
        row = table.iloc[0]
        assert (row["p_value"] < 0.05) == (row["low"] > 0 or row["high"] < 0)


# -- the judge's errors, by interaction ---------------------------------------------------------------------------------


def test_error_rates_of_a_judge_are_not_pooled_over_interactions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The judge misses most hits under typos: pooled labels would show a rate below the threshold that is not."""
    counts = {"m": {"base": (40, 100), "typos": (10, 100)}}
    good, poor = llm.Labelled(95, 5, 2, 98), llm.Labelled(20, 80, 2, 98)
    pooled = llm.Labelled(115, 85, 4, 196)
    with pytest.raises(DesignError, match="differ by interaction"):
        llm.from_counts(counts, threshold=0.4, over="these", labelled=pooled)
    assert llm.from_counts(counts, threshold=0.4, over="these", labelled={"*": pooled}).table["verdict"].tolist() == ["below"]
    found = llm.from_counts(counts, threshold=0.4, over="these", labelled={"base": good, "typos": poor})
    assert found.table["verdict"].tolist() == ["inconclusive"]
    assert found.table["rate"][0] == pytest.approx((0.1 - 0.02) / 0.18)
    assert found.table["base_rate"][0] == pytest.approx((0.4 - 0.02) / 0.93)
    with pytest.raises(DesignError, match="no labelled answers"):
        llm.from_counts(counts, threshold=0.4, over="these", labelled={"typos": poor})
    rows = [{"model": "m", "interaction": w, "prompt": f"q{i}", "hit": i < k} for w, k in (("base", 40), ("typos", 10)) for i in range(100)]
    llm.Answers.of(rows, {"scheme": "joint"}).write(tmp_path / "a.jsonl")
    given = ["llm", "test", str(tmp_path / "a.jsonl"), "--over", "these", "--json"]
    assert main([*given, "--labelled", "115,85,4,196"]) == 2
    assert "differ by interaction" in capsys.readouterr().out
    assert main([*given, "--labelled", "base=95,5,2,98", "--labelled", "typos=20,80,2,98"]) == 0
    assert json.loads(capsys.readouterr().out)["table"][0]["verdict"] == "inconclusive"
    pairs = [("typos", 1, 1)] * 20 + [("typos", 1, 0)] * 80 + [("typos", 0, 0)] * 98 + [("typos", 0, 1)] * 2 + [("base", 1, 1)] * 9 + [("base", 0, 0)] * 9
    (tmp_path / "l.csv").write_text("interaction,person,judge\n" + "".join(f"{a},{b},{c}\n" for a, b, c in pairs))
    assert main([*given, "--labelled", str(tmp_path / "l.csv")]) == 0
    assert json.loads(capsys.readouterr().out)["info"]["labelled"]["typos"]["missed"] == 80


# -- a finite benchmark -------------------------------------------------------------------------------------------------


def test_a_census_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prompts = [f"Is {i} even?" for i in range(60)]

    def behave(number: int, body: dict[str, Any], handler: BaseHTTPRequestHandler) -> bytes:
        text = body["messages"][-1]["content"].lower()
        return completion("yes" if int(text.split()[1]) < (23 if "IS" in body["messages"][-1]["content"] else 24) else "no")

    with fake_server(behave) as fake:
        made = llm.run(fake.model, prompts, {"loud": llm.case("upper")}, judge=Says(), census=True, patience=QUICK, folder=tmp_path / "run")
        assert {a.body["temperature"] for a in fake.asked} == {0}
        assert len(fake.asked) == 120
        with pytest.raises(DesignError, match="one rewrite per prompt"):
            llm.run(fake.model, prompts, ["typos()"], judge=Says(), census=True)
        with pytest.raises(DesignError, match="do not vary"):
            llm.run(fake.model, prompts, judge=Says(), census=True, temperature=0.5)
        with pytest.raises(DesignError, match="nothing is drawn"):
            llm.run(fake.model, prompts, judge=Says(), census=True, n=5)
    result = llm.test(made, threshold=0.4, over="these")
    row = result.table.iloc[0]
    assert (row["low"], row["high"], row["p_value"], row["verdict"], row["method"]) == (23 / 60, 23 / 60, 0, "below", "census")
    assert row["delta_low"] == row["delta_high"] == pytest.approx(-1 / 60)
    assert llm.test(made, threshold=0.38, over="these").table["verdict"].tolist() == ["inconclusive"]
    assert result.by_category()["method"].tolist() == ["census"]
    assert llm.test(made, threshold=0.4, over="population").table["verdict"].tolist() == ["inconclusive"], "a sample of the population it remains"
    assert "rates over these prompts are known" in str(result)
    assert main(["llm", "test", str(tmp_path / "run"), "--over", "these", "--threshold", "0.4"]) == 0
    assert "loud: below 40 %" in capsys.readouterr().out


def test_unanswered_prompts_leave_a_census_open() -> None:
    rows = [{"model": "m", "interaction": "loud", "prompt": f"q{i}", "hit": None if i < 6 else i < 16} for i in range(60)]
    found = Evidence.of(llm.Answers.of(rows).table, "census").claim(over="these", threshold=0.2, claim="below", alpha=0.05)
    assert (found.low, found.high) == (10 / 60, 16 / 60)
    assert found.p_value == 1


def test_the_plan_has_the_census(capsys: pytest.CaptureFixture[str]) -> None:
    plan = llm.plan_calls(0.3, threshold=0.4, interactions=2, prompts=60)
    assert plan.census == 180
    assert "A census of the 60 prompts" in str(plan)
    assert main(["llm", "plan", "--rate", "0.3", "--prompts", "60", "--interactions", "2"]) == 0
    assert "180 calls per model" in capsys.readouterr().out


