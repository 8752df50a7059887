"""Clicking through the page in chromium: what is shown is what the library computes, and nothing leaves this machine."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("uvicorn", reason="uvicorn is in the `serve` extra")

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "web"))

from web_kit import HOSTILE, MODELS, WORDS, drawn, rich, scored, truth_of, world

import budge
from budge.models import as_predictor
from budge.report.answer import answer
from budge.spec import to_text
from budge.web import from_run, make_app, make_question
from budge.web.server import Address, _socket

TIGHT = ("balance", "home")  # without these some people have no way
PHONE = {"width": 390, "height": 844}


@contextmanager
def served(question: Any) -> Iterator[str]:
    import uvicorn

    app = make_app(question)
    with _socket(0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield str(Address(listening.getsockname()[1], app.token))
        finally:
            server.should_exit = True
            thread.join(10)


def strict_world() -> tuple[Any, budge.InteractionModel]:
    X, im = world()
    return X, im.freeze(*TIGHT)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Two models over people of whom some have no way, in the words of the user."""
    X, im = strict_world()
    text = "# own words\n" + to_text(im)
    with served(make_question(MODELS, X, im, target=1, population="all", wording=WORDS, groups=["home"], text=text)) as found:
        yield found


@pytest.fixture(scope="module")
def scores() -> Iterator[str]:
    """A model that answers scores, with a slider."""
    X, im = world()
    features = [f.but(max_increase=8) if f.name == "years" else f for f in im.features]
    wide = budge.InteractionModel(features, im.constraints, name="loans")
    with served(make_question(as_predictor(scored, output="score"), X, wide, target="score >= 8", population="all", wording=WORDS)) as found:
        yield found


Open = Callable[..., Any]


def settled(page: Any) -> None:
    page.wait_for_selector('#state[data-whole="true"]')
    page.wait_for_selector("body:not(.busy)")


def looked(page: Any, act: Callable[[], Any]) -> None:
    """Do something and wait until its look is over."""
    before = page.get_attribute("body", "data-looked") or "0"
    act()
    page.wait_for_selector(f'body:not(.busy):not([data-looked="{before}"])')
    settled(page)


@contextmanager
def page_of(open_page: Open, address: str, state: str = "", **options: Any) -> Iterator[Any]:
    """The page, settled; at its end nothing was amiss and nobody else was asked."""
    with open_page(address + (f"&{state}" if state else ""), offline=False, **options) as page:
        settled(page)
        page.wait_for_selector("#sentence", state="attached")
        yield page
        assert page.trouble == []
        origin = address.split("/#")[0]
        assert [url for url in page.asked if not url.startswith((origin + "/", f"blob:{origin}/"))] == []


def told(page: Any) -> dict[str, Any]:
    """Return the numbers of the person's sentence."""
    found = page.evaluate("({...document.getElementById('sentence').dataset})")
    return {"rho": float(found["rho"]), "n": int(found["n"]), "hits": int(found["hits"])}


def counts(page: Any) -> dict[str, int]:
    script = "Object.fromEntries([...document.querySelectorAll('#counts [data-category]')].map((n) => [n.dataset.category, n.dataset.count]))"
    return {key: int(value) for key, value in page.evaluate(script).items()}


def outcome(page: Any) -> dict[str, str]:
    return page.evaluate("({...document.getElementById('outcome').dataset})")


def choose(page: Any, act: Callable[[], Any]) -> dict[str, str]:
    """Do something that asks the model, and return its answer."""
    with page.expect_response("**/api/try"):
        act()
    page.wait_for_timeout(50)
    return outcome(page)


def name_of(page: Any) -> str:
    return page.inner_text("#person-name").removeprefix("Person ")


def test_it_opens_on_the_harmed_and_says_it_in_one_sentence(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    none = truth.index[truth["extreme"] == "none"]
    with page_of(open_page, address) as page:
        assert page.get_attribute('[data-show="none"]', "aria-pressed") == "true"
        assert page.get_attribute('[data-show="none"]', "data-count") == str(len(none))
        labels = [item.get_attribute("data-who") for item in page.locator("#list li").all()]
        assert set(labels) == set(none)
        assert name_of(page) == labels[0]
        n = int(truth.loc[labels[0], "n"])
        assert page.inner_text("#sentence") == f"None of the {n} reachable points leads to approval. All points were listed: this is a proof."
        assert "approval" in page.inner_text("#asked")
        assert "applicants" in page.inner_text("#state")
        assert ("tenants" if X.loc[labels[0], "home"] == "rent" else "owners") in page.inner_text("#person .hint >> nth=0")
        assert counts(page) == {k: int(v) for k, v in truth["verdict"].replace({"below": "x"}).value_counts().items() if k == "above"} | {
            "none": len(none), **({"below": k} if (k := int(((truth["verdict"] == "below") & (truth["extreme"] != "none")).sum())) else {})
        }  # fmt: skip


def test_chips_search_and_list(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    with page_of(open_page, address) as page:
        page.click('[data-show="above"]')
        page.wait_for_selector('[data-show="above"][aria-pressed="true"]')
        above = truth[truth["verdict"] == "above"]
        assert page.locator("#list li").count() == len(above)
        page.click('[data-show="all"]')
        page.wait_for_selector('[data-show="all"][aria-pressed="true"]')
        assert page.locator("#list li").count() == len(X)
        page.fill("#find", "age < 30 and home == 'rent'")
        page.wait_for_selector("#find-note:has-text('found')")
        assert {item.get_attribute("data-who") for item in page.locator("#list li").all()} == set(X.index[(X["age"] < 30) & (X["home"] == "rent")])
        page.fill("#find", "P007")
        page.wait_for_selector("#find-note:has-text('1 found')")
        looked(page, lambda: page.press("#find", "Enter"))
        assert name_of(page) == "P007"
        assert told(page)["rho"] == truth.loc["P007", "rho"]


def test_the_list_by_keys(open_page: Open, address: str) -> None:
    with page_of(open_page, address, "show=all") as page:
        items = page.locator("#list li")
        assert page.evaluate("[...document.querySelectorAll('#list li')].filter((n) => n.tabIndex === 0).length") == 1
        items.nth(0).focus()
        focused = "document.activeElement.dataset.who"
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == items.nth(1).get_attribute("data-who")
        page.keyboard.press("End")
        assert page.evaluate(focused) == items.nth(39).get_attribute("data-who")
        page.keyboard.press("ArrowDown")
        assert page.evaluate(focused) == items.nth(39).get_attribute("data-who")
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowDown")
        looked(page, lambda: page.keyboard.press("Enter"))
        assert name_of(page) == items.nth(1).get_attribute("data-who")
        page.focus("#view-person")
        looked(page, lambda: page.keyboard.press("]"))
        assert name_of(page) == items.nth(2).get_attribute("data-who")
        looked(page, lambda: page.keyboard.press("["))
        looked(page, lambda: page.click("#person-on"))
        looked(page, lambda: page.click("#person-back"))
        assert name_of(page) == items.nth(1).get_attribute("data-who")
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "find"
        page.focus("#view-person")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#headline")
        assert page.get_attribute("#view-everyone", "aria-selected") == "true"
        page.keyboard.press("End")
        assert page.get_attribute("#view-spec", "aria-selected") == "true"


def test_a_cell_lists_its_points_and_tries_the_best(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    who = truth.index[(truth["rho"] > 0) & (truth["rho"] < 1)][0]
    with page_of(open_page, address, f"p={who}") as page:
        assert told(page) == {"rho": truth.loc[who, "rho"], "n": truth.loc[who, "n"], "hits": truth.loc[who, "hits"]}
        seen = hits = 0
        for cell in page.locator(".mosaic [data-cell]").all():
            with page.expect_response("**/api/try"):
                cell.click()
            page.wait_for_selector(f'[data-cell="{cell.get_attribute("data-cell")}"][aria-pressed="true"]')
            own = page.evaluate("({...document.getElementById('points-note').dataset})")
            assert cell.get_attribute("aria-label").startswith(f"{own['hits']} of {own['listed']} points")
            assert page.locator("#points tbody tr").count() == min(int(own["listed"]), 12)
            assert page.locator("#points tbody tr.hit").count() == min(int(own["hits"]), 12)
            page.wait_for_selector(f"#outcome[data-state='{'yes' if int(own['hits']) else 'no'}']")
            seen, hits = seen + int(own["listed"]), hits + int(own["hits"])
        assert (seen, hits) == (truth.loc[who, "n"], truth.loc[who, "hits"])
        assert "cell=" in page.url
        page.click("#show-all")
        page.wait_for_selector("#points-note:has-text('all')")
        assert "cell=" not in page.url


def test_more_points_and_what_cannot_change(open_page: Open, scores: str) -> None:
    with page_of(open_page, scores, "p=P007") as page:
        n = told(page)["n"]
        assert page.locator("#points tbody tr").count() == 12
        page.click("#points-more")
        page.wait_for_selector("#points tbody tr:nth-child(100)")
        outputs = [float(text) for text in page.locator("#points tbody td:first-child").all_inner_texts()]
        assert outputs == sorted(outputs, reverse=True)
        assert len(outputs) == min(n, 112)
        page.click("#person details summary")
        assert "note" in page.inner_text("#person .still")


def slide(page: Any, control: str, level: str) -> None:
    script = f"() => {{ const s = document.getElementById('{control}'); s.value = {level}; s.dispatchEvent(new Event('input', {{bubbles: true}})); }}"
    page.evaluate(script)


def test_trying_a_change_asks_the_model(open_page: Open, scores: str) -> None:
    X, _ = world()
    start = X.loc["P007"]
    with page_of(open_page, scores, "p=P007") as page:
        assert outcome(page)["score"] == str(int(scored(X.loc[["P007"]])[0]))
        names = {page.inner_text(f"label[for=control-{k}], #name-{k}"): k for k in range(page.locator(".control").count())}
        slider, balance, home = (names[name] for name in ("years", "account balance", "home"))
        found = choose(page, lambda: slide(page, f"control-{slider}", "5"))
        moved = X.loc[["P007"]].assign(years=start["years"] + 5, age=start["age"] + 5)
        assert float(found["score"]) == scored(moved)[0]
        assert f"age {start['age'] + 5} (today {start['age']}, follows)" in page.inner_text("#outcome")
        assert page.inner_text(f"#control-{slider} + output") == str(start["years"] + 5)
        found = choose(page, lambda: page.locator(f"#name-{balance} + .seg label").nth(4).click())
        assert float(found["score"]) == scored(moved.assign(balance=4))[0]
        assert found["state"] == ("yes" if scored(moved.assign(balance=4))[0] >= 8 else "no")
        assert start["home"] == "own"
        found = choose(page, lambda: page.locator(f"#name-{balance} + .seg label").nth(0).click())
        assert found["state"] == "barred"
        assert "“owners pay” forbids it" in page.inner_text("#outcome")
        assert page.is_hidden(".marker")
        found = choose(page, lambda: page.locator(f"#name-{home} + .seg label").nth(0).click())
        assert float(found["score"]) == scored(moved.assign(balance=0, home="rent"))[0]
        assert page.get_attribute("#outcome", "aria-live") == "polite"
        page.locator(f"#name-{home} + .seg input >> nth=0").focus()
        choose(page, lambda: page.keyboard.press("ArrowRight"))
        assert page.evaluate("document.activeElement.value") == "1"  # the focus stays
        page.focus(f"#control-{slider}")
        choose(page, lambda: page.keyboard.press("ArrowLeft"))
        assert page.evaluate("document.activeElement.id") == f"control-{slider}"
        reloaded = outcome(page)
        page.reload()
        settled(page)
        page.wait_for_selector(f"#outcome[data-state='{reloaded['state']}']")
        assert outcome(page) == reloaded
        found = choose(page, lambda: page.click("#goal"))
        assert found["state"] == "yes"
        page.click("#today")
        page.wait_for_selector(f"#outcome[data-score='{int(scored(X.loc[['P007']])[0])}']")
        assert "at=" not in page.url


def test_reals_and_effects_can_be_tried(open_page: Open) -> None:
    X, im = drawn()
    with served(make_question(rich, X, im, target=1)) as address, page_of(open_page, address) as page:
        assert page.get_attribute('[data-show="nohit"]', "aria-pressed") == "true"
        assert page.locator('[data-show="none"]').count() == 0
        assert "No hit in 298 draws" in page.inner_text("#sentence")
        assert "no proof" in page.inner_text("#sentence")
        found = choose(page, lambda: slide(page, "control-0", "s.max"))
        assert found["state"] == "draws"
        assert "of 200 draws of what follows" in page.inner_text("#outcome")
        assert "saved" in page.inner_text("#outcome")


def test_pinning_two_people(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1).of_model("strict")
    with page_of(open_page, address, "p=P003&show=all") as page:
        with page.expect_response("**/api/look"):
            page.click("#pin-this")
        looked(page, lambda: page.click('#list [data-who="P007"]'))
        page.wait_for_selector(".pins")
        assert "Pinned: person P003" in page.inner_text(".pins")
        for who in ("P003", "P007"):
            assert f"{truth.loc[who, 'hits']} of {truth.loc[who, 'n']}" in page.inner_text(".pins")
        page.click("#differs summary")
        differ = [line.inner_text() for line in page.locator("#differs tbody th").all()]
        labels = {"balance": "account balance"}
        assert set(differ) == {labels.get(c, c) for c in X.columns if X.loc["P003", c] != X.loc["P007", c]}
        page.reload()
        settled(page)
        page.wait_for_selector(".pins")
        looked(page, lambda: page.click("#unpin"))
        assert page.locator(".pins").count() == 0
        assert "pin=" not in page.url


def test_a_rule_off_changes_the_person_and_everyone_and_back_undoes_it(open_page: Open, address: str) -> None:
    X, im = strict_world()
    before = truth_of(MODELS, X, im, target=1).of_model("strict")
    after = truth_of(MODELS, X, im.relax("years", what="steps"), target=1).of_model("strict")
    with page_of(open_page, address) as page:
        who, order = name_of(page), [item.get_attribute("data-who") for item in page.locator("#list li").all()]
        page.wait_for_selector('[data-of="s1"] .counts[data-of]:not(:empty)')
        own = page.evaluate("({...document.querySelector('[data-of=\"s1\"] .counts').dataset})")
        assert own == {
            "hits": str(after.loc[who, "hits"]), "n": str(after.loc[who, "n"]), "able": str(int((after.loc[order, "hits"] > 0).sum())), "of": str(len(order)),
        }  # fmt: skip
        looked(page, lambda: page.click('[data-rule="s1"]'))
        assert told(page)["rho"] == after.loc[who, "rho"]
        assert [item.get_attribute("data-who") for item in page.locator("#list li").all()] == order
        page.wait_for_selector("#list li:has-text('→')")
        assert counts(page).get("none", 0) == int((after["extreme"] == "none").sum())
        assert page.get_attribute('#counts [data-category="none"]', "data-was") == str(len(order))
        assert float(page.get_attribute("#state", "data-mean")) == float(after["rho"].mean())
        assert f"As declared: {before.loc[who, 'hits']} of {before.loc[who, 'n']} points" in page.inner_text("#edited")
        page.reload()
        settled(page)
        page.wait_for_selector("#edited")
        assert told(page)["rho"] == after.loc[who, "rho"]
        assert not page.is_checked('[data-rule="s1"]')
        page.wait_for_selector("#list li:has-text('→')")
        looked(page, lambda: page.click("#reset"))
        assert told(page)["rho"] == before.loc[who, "rho"]
        looked(page, page.go_back)
        assert told(page)["rho"] == after.loc[who, "rho"]
        looked(page, page.go_back)
        assert told(page)["rho"] == before.loc[who, "rho"]
        assert page.is_checked('[data-rule="s1"]')
        looked(page, page.go_forward)
        assert told(page)["rho"] == after.loc[who, "rho"]
        page.click("#rules details summary >> nth=0")
        page.focus('[data-rule="c1"]')
        looked(page, lambda: page.keyboard.press("Space"))
        assert page.evaluate("document.activeElement.dataset.rule") == "c1"  # the focus stays


def test_limits_and_the_threshold(open_page: Open, address: str) -> None:
    X, im = strict_world()
    with page_of(open_page, address, "p=P007") as page:
        before = told(page)
        page.click("#limits summary")
        box = '[data-feature="years"][data-field="max_increase"]'
        looked(page, lambda: (page.fill(box, "5"), page.press(box, "Tab")))
        wider = budge.InteractionModel([f.but(max_increase=5) if f.name == "years" else f for f in im.features], im.constraints, name=im.name)
        assert told(page)["rho"] == truth_of(MODELS["strict"], X, wider, target=1).table.loc["P007", "rho"]
        page.fill(box, "-3")
        page.press(box, "Tab")
        page.wait_for_selector("#edit-problems:not([hidden])")
        assert "a step limit cannot be negative" in page.inner_text("#edit-problems")
        assert page.input_value(box) == "5"
        looked(page, lambda: page.check('[data-feature="balance"][data-field="actionable"]'))
        freed = budge.InteractionModel([f.but(actionable=True) if f.name == "balance" else f for f in wider.features], im.constraints, name=im.name)
        assert told(page)["rho"] == truth_of(MODELS["strict"], X, freed, target=1).table.loc["P007", "rho"]
        looked(page, lambda: page.select_option('[data-feature="years"][data-field="direction"]', ""))
        looked(page, lambda: (page.fill('[data-feature="balance"][data-field="high"]', "3"), page.press('[data-feature="balance"][data-field="high"]', "Tab")))
        assert "edit=" in page.url
        looked(page, lambda: page.click("#reset"))
        assert told(page) == before
        looked(page, lambda: (page.fill("#threshold", "0.4"), page.press("#threshold", "Enter")))
        truth = truth_of(MODELS, X, im, target=1, threshold=0.4).of_model("strict")
        assert counts(page).get("above", 0) == int((truth["verdict"] == "above").sum())
        page.fill("#threshold", "7")
        page.press("#threshold", "Enter")
        page.wait_for_selector("#edit-problems:not([hidden])")
        page.wait_for_selector("#threshold")
        assert page.input_value("#threshold") == "0.4"
        page.trouble[:] = [t for t in page.trouble if "400" not in t]  # chromium notes the refused request


def test_the_model_is_chosen_and_models_stand_side_by_side(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1)
    with page_of(open_page, address, "p=P007") as page:
        page.click("#view-models")
        page.wait_for_selector("#each")
        means = [float(line.inner_text()) for line in page.locator("#each tbody td:last-child").all()]
        assert means == [pytest.approx(truth.summary(m).mean_rho, abs=5e-4) for m in MODELS]
        number = page.locator(".pair button").first
        listed = int(number.inner_text())
        number.click()
        page.wait_for_selector("#find-note:has-text('of these')")
        assert page.locator("#list li").count() == listed
        looked(page, lambda: page.select_option("#model", "kind"))
        assert told(page)["rho"] == truth.of_model("kind").loc["P007", "rho"]
        assert float(page.get_attribute("#state", "data-mean")) == truth.summary("kind").mean_rho
        assert "model=kind" in page.url


def test_everyone_in_words_and_marks(open_page: Open, address: str) -> None:
    X, im = strict_world()
    truth = truth_of(MODELS, X, im, target=1, wording=WORDS, design=budge.Design(on_invalid="skip", groups=["home"]))
    with page_of(open_page, address, "view=everyone") as page:
        page.wait_for_selector("#headline")
        none = int((truth.of_model("strict")["extreme"] == "none").sum())
        assert page.inner_text("#headline") == answer(truth, "strict", truth.wording).headline
        assert str(none) in page.inner_text("#headline")
        assert page.locator(".strip.paper svg .m-none").count() == none
        assert page.inner_text("#sentences").split("\n") == list(truth.summary("strict").sentences())
        page.select_option("#by", "home")
        page.wait_for_selector("#by-figure svg")
        assert "by=home" in page.url
        groups = truth.of_model("strict").assign(group=truth.group("home", model="strict"))
        for line in page.locator("#groups tbody tr").all():
            name, *cells = line.locator("th, td").all_inner_texts()
            own = groups[groups["group"] == {"tenants": "rent", "owners": "own"}[name]]
            below = int((own["verdict"] == "below").sum())
            assert [cells[0], cells[1].split(" ")[0], cells[2]] == [str(len(own)), str(below), str((own["extreme"] == "none").sum())]
            assert cells[3] == f"{own['rho'].mean():.3f}"
        looked(page, lambda: page.click('[data-rule="s1"]'))
        page.wait_for_selector("#changes")
        assert page.input_value("#by") == "home"  # an edit does not take the choice back
        assert page.locator("#by-figure figure svg").count() == 1
        after = truth_of(MODELS, X, im.relax("years", what="steps"), target=1)
        means = page.evaluate("({...document.getElementById('means').dataset})")
        assert (float(means["before"]), float(means["after"])) == (truth.summary("strict").mean_rho, after.summary("strict").mean_rho)


def test_the_address_is_the_state_and_can_be_shared(open_page: Open, address: str, chromium: Any) -> None:
    with page_of(open_page, address, "p=P007&show=all&off=s1&tau=0.3&view=spec") as page:
        assert name_of(page) == "P007"
        assert page.is_visible("#spec-text")
        assert page.input_value("#threshold") == "0.3"
        assert "token" not in page.url
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.click("#copy")
        page.wait_for_selector("#copy:has-text('Copied')")
        link = page.evaluate("navigator.clipboard.readText()")
        sentence, where = page.text_content("#sentence"), page.url.split("#")[1]
    with page_of(open_page, link) as page:
        assert page.text_content("#sentence") == sentence
        assert page.url.split("#")[1] == where
    with page_of(open_page, address, "edit=null&at=x.y&tau=high&run=-1&view=nowhere&by=nobody&p=P007") as page:  # what cannot be read is as served
        assert page.get_attribute("#view-person", "aria-selected") == "true"
        assert page.is_hidden("#alert")
        assert page.locator("#edited").count() == 0
    for wrong in ("off=c99&p=P007", "p=nobody", "base=gone&p=P007", "pin=nobody"):
        with open_page(f"{address}&{wrong}", offline=False) as page:
            settled(page)
            assert "does not fit what is served" in page.inner_text("#alert")
            assert wrong.split("&")[0] not in page.url
            assert page.inner_text("#sentence")


def test_the_spec_is_checked_as_one_types_and_applied(open_page: Open, address: str, tmp_path: Path) -> None:
    X, im = strict_world()
    with page_of(open_page, address, "p=P007") as page:
        page.click("#view-spec")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        text = page.input_value("#spec-text")
        assert text.startswith("# own words")
        page.fill("#spec-text", text.replace("type: binary", "type: binry", 1))
        page.wait_for_selector("#spec-problems li")
        line = next(i for i, t in enumerate(text.split("\n"), 1) if "type: binary" in t)
        assert f"line {line}" in page.inner_text("#spec-problems")
        assert "did you mean 'binary'?" in page.inner_text("#spec-problems")
        assert page.is_disabled("#spec-apply")
        page.click("#spec-problems .line")
        assert "binry" in page.evaluate("(() => { const b = document.getElementById('spec-text'); return b.value.slice(b.selectionStart, b.selectionEnd); })()")
        page.click("#spec-revert")
        assert page.input_value("#spec-text") == text
        (tmp_path / "spec.yaml").write_text(text.replace("max_increase: 2", "max_increase: 4"), encoding="utf-8")
        page.set_input_files("#spec-file", tmp_path / "spec.yaml")
        page.wait_for_selector("#spec-apply:not([disabled])")
        looked(page, lambda: page.click("#spec-apply"))
        wider = budge.InteractionModel([f.but(max_increase=4) if f.name == "years" else f for f in im.features], im.constraints, name=im.name)
        assert float(page.get_attribute("#state", "data-mean")) == truth_of(MODELS, X, wider, target=1).summary("strict").mean_rho
        assert "base=" in page.url
        page.reload()
        settled(page)
        assert told(page)["rho"] == truth_of(MODELS, X, wider, target=1).of_model("strict").loc["P007", "rho"]
        page.click("#parts summary")
        page.wait_for_selector("#parts-figure svg")
        looked(page, page.go_back)
        assert float(page.get_attribute("#state", "data-mean")) == truth_of(MODELS, X, im, target=1).summary("strict").mean_rho


def test_leaving_warns_only_of_a_spec_that_would_be_lost(open_page: Open, address: str) -> None:
    with page_of(open_page, address, "p=P007") as page:
        asked: list[str] = []
        page.on("dialog", lambda d: (asked.append(d.type), d.accept()))
        looked(page, lambda: page.click('[data-rule="s1"]'))
        page.reload()
        settled(page)
        assert asked == []
        page.click("#view-spec")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        page.click("#spec-text")
        page.keyboard.type("# mine")
        page.reload()
        settled(page)
        assert asked == ["beforeunload"]


def test_a_typed_spec_outlives_another_state_and_another_run(open_page: Open, tmp_path: Path) -> None:
    X, im = world()
    for audit, name in ((truth_of(MODELS, X, im, target=1), "one"), (truth_of(MODELS, X, im.without(1), target=1), "two")):
        audit.save(tmp_path / name)
    runs = [from_run(budge.Audit.load(tmp_path / name), MODELS, X, title=name) for name in ("one", "two")]
    with served(runs) as address, page_of(open_page, address, "p=P007&view=spec") as page:
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        typed = page.input_value("#spec-text") + "# mine\n"
        page.fill("#spec-text", typed)
        looked(page, lambda: page.click('[data-rule="s1"]'))
        assert page.input_value("#spec-text") == typed
        looked(page, lambda: page.select_option("#run", "1"))
        page.wait_for_selector("#spec-apply:not([disabled])")
        assert page.input_value("#spec-text") == typed
        page.click("#spec-revert")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        assert page.input_value("#spec-text") == to_text(im.without(1))


def test_a_spec_that_people_break_is_a_warning_and_ctrl_enter_applies(open_page: Open, address: str) -> None:
    X, im = strict_world()
    with page_of(open_page, address, "p=P007&view=spec") as page:
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        text = page.input_value("#spec-text")
        page.fill("#spec-text", text.replace("max_increase: 2", "max_increase: 2.0").replace("bounds: [18, 99]", "bounds: [30, 99]"))
        page.wait_for_selector("#spec-problems .against[open]")
        assert "break the spec" in page.inner_text("#spec-problems .against")
        assert page.locator("#gutter span").count() == len(text.split("\n"))
        page.fill("#spec-text", text.replace("max_increase: 2", "max_increase: 3"))
        page.wait_for_selector("#spec-apply:not([disabled])")
        looked(page, lambda: page.press("#spec-text", "Control+Enter"))
        page.wait_for_selector("#spec-status:has-text('Applied.'), #spec-status:has-text('As it is in use')")
        wider = budge.InteractionModel([f.but(max_increase=3) if f.name == "years" else f for f in im.features], im.constraints, name=im.name)
        assert float(page.get_attribute("#state", "data-mean")) == truth_of(MODELS, X, wider, target=1).summary("strict").mean_rho


def test_a_limit_is_taken_back_when_it_is_as_declared(open_page: Open, address: str) -> None:
    with page_of(open_page, address, "p=P007") as page:
        page.click("#limits summary")
        box = '[data-feature="balance"][data-field="low"]'
        looked(page, lambda: (page.fill(box, "1"), page.press(box, "Tab")))
        assert "'balance': low 0 → 1" in page.inner_text("#edited")
        looked(page, lambda: (page.fill(box, "0"), page.press(box, "Tab")))
        assert "edit=" not in page.url
        assert page.locator("#edited").count() == 0


def test_nobody_to_judge_and_one_person(open_page: Open) -> None:
    import pandas as pd

    im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=4)], name="few")
    for incomes, words in (([6, 7, 9], "nobody was asked about"), ([1], "of 1 person, each known exactly")):
        question = make_question(lambda t: (t["income"] > 4).astype(int), pd.DataFrame({"income": incomes}), im, target=1)
        with served(question) as address, page_of(open_page, address, bypass_csp=True, viewport={"width": 390, "height": 844}) as page:
            assert page.inner_text("#state").strip() == words
            check_access(page, 390)
            page.click("#view-everyone")
            page.wait_for_selector("#headline")
            check_access(page, 390)


def test_the_exported_spec_loads_back_equal(open_page: Open, address: str, tmp_path: Path) -> None:
    _, im = strict_world()
    with page_of(open_page, address, "p=P007", accept_downloads=True) as page:
        looked(page, lambda: page.click('[data-rule="c0"]'))
        with page.expect_download() as found:
            page.click("#export-spec")
        found.value.save_as(tmp_path / "spec.yaml")
        exported = budge.InteractionModel.from_file(tmp_path / "spec.yaml")
        assert exported.digest == im.without("ageing").digest
        assert exported.name == "loans (edited)"
        with page.expect_download(timeout=60_000) as found:
            page.click("#export-report")
        found.value.save_as(tmp_path / "report.html")
        assert im.without("ageing").digest in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_saved_runs_are_chosen_and_compared(open_page: Open, tmp_path: Path) -> None:
    X, im = world()
    one, two = truth_of(MODELS, X, im, target=1), truth_of(MODELS, X, im.without(1), target=1, threshold=0.2)
    for audit, name in ((one, "one"), (two, "two")):
        audit.save(tmp_path / name)
    runs = [from_run(budge.Audit.load(tmp_path / name), title=name) for name in ("one", "two")]
    with served(runs) as address, page_of(open_page, address, "show=all") as page:
        assert "to be read" in page.inner_text("#asked")
        assert page.is_disabled('[data-rule="c0"]')
        assert page.is_disabled("#threshold")
        assert "--data and --model" in page.inner_text("#read-only")
        assert page.locator("#try, #mosaic, #limits").count() == 0
        looked(page, lambda: page.click('#list [data-who="P004"]'))
        assert told(page)["rho"] == one.of_model("strict").loc["P004", "rho"]
        looked(page, lambda: page.select_option("#run", "1"))
        assert told(page)["rho"] == two.of_model("strict").loc["P004", "rho"]
        assert "run=1" in page.url
        looked(page, page.go_back)
        page.click("#view-runs")
        page.wait_for_selector("#run-people")
        assert page.locator("#versus option").count() == 1
        a, b = (audit.of_model("strict")["rho"] for audit in (one, two))
        for line in page.locator("#run-people tbody tr").all()[:5]:
            label, rho = line.locator("th").inner_text(), line.locator("td").first.inner_text()
            assert [float(v) for v in rho.split(" → ")] == [pytest.approx(a[label], abs=5e-4), pytest.approx(b[label], abs=5e-4)]
        assert int(page.get_attribute("#runs-head", "data-both")) == 40
        assert "threshold 0.1 and 0.2" in page.inner_text("#runs-panel")
        label = page.locator("#run-people tbody th").first.inner_text()
        looked(page, lambda: page.click("#run-people button >> nth=0"))
        assert name_of(page) == label
        page.click("#view-spec")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        assert page.input_value("#spec-text") == to_text(im)


def test_many_people_are_listed_page_by_page(open_page: Open) -> None:
    X, im = world()
    many = X.sample(2500, replace=True, random_state=0).reset_index(drop=True)
    with served(make_question(MODELS["strict"], many, im, target=1, population="all")) as address, page_of(open_page, address, "show=all") as page:
        assert page.locator("#list li").count() == 100
        assert "100 of 2,500" in page.inner_text("#more")
        page.click("#more")
        page.wait_for_selector("#list li:nth-child(200)")
        page.fill("#find", "2499")
        page.wait_for_selector("#find-note:has-text('1 found')")
        assert page.is_hidden("#more")


def test_hostile_names_are_text(open_page: Open) -> None:
    X, im = world()
    X = X.rename(index={"P000": HOSTILE, "P001": "<img src=x onerror=alert(1)>"}, columns={"balance": "<b>balance"})
    features = [f.but(name="<b>balance") if f.name == "balance" else f for f in im.features]
    im = budge.InteractionModel(features, [c for c in im.constraints if c.name != "owners pay"], name="<u>spec</u>")
    models = {"<i>m</i>": lambda t: MODELS["strict"](t.rename(columns={"<b>balance": "balance"})), "k": lambda t: (t["ge_1"] == 1).astype(int)}
    words = {"people_name": "<em>x</em>", "target_name": "<s>y</s>", "group_labels": {"home": {"rent": "<q>"}}, "feature_labels": {"years": "<img src=x>"}}
    question = make_question(models, X, im, target=1, population="all", wording=words, groups=["home"])
    with served(question) as address, page_of(open_page, address, "show=all") as page:
        dialogs: list[str] = []
        page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
        labels = page.locator("#list .who").all_inner_texts()
        assert any(text.startswith(HOSTILE.replace("\x1b", "\\u001b")) for text in labels)
        looked(page, lambda: page.click("#list li:has-text('<img src=x')"))
        assert name_of(page) == "<img src=x onerror=alert(1)>"
        for view in ("everyone", "models"):
            page.click(f"#view-{view}")
            page.wait_for_selector(f"#{view}-panel h1")
        assert page.evaluate("document.querySelectorAll('body img, body u, main i, body em, body s, body q, main script').length") == 0
        assert dialogs == []


def test_without_the_token_nothing_is_shown(open_page: Open, address: str) -> None:
    origin = address.split("#")[0]
    for where, words in ((origin, "no token"), (f"{origin}#token=wrong", "the token is missing or wrong")):
        with open_page(where, offline=False) as page:
            page.wait_for_selector("#alert:not([hidden])")
            assert words in page.inner_text("#alert")
            assert page.is_hidden("#lay")


def test_quick_toggles_end_at_the_last_state(open_page: Open, address: str) -> None:
    X, im = strict_world()
    with page_of(open_page, address) as page:
        for rule in ("c0", "s1", "d1", "c0", "s1"):
            page.click(f'[data-rule="{rule}"]')
        settled(page)
        page.wait_for_timeout(600)
        settled(page)
        truth = truth_of(MODELS, X, im.relax("years", what="direction"), target=1).summary("strict")
        assert float(page.get_attribute("#state", "data-mean")) == truth.mean_rho
        assert [page.is_checked(f'[data-rule="{rule}"]') for rule in ("c0", "s1", "d1")] == [True, True, False]


def test_a_slow_model_is_asked_about_everyone_on_demand(open_page: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.web import session as module

    X, im = world()
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "FEWEST", 1)
    with served(make_question(MODELS["strict"], X, im, target=1, population="all")) as address, open_page(address, offline=False) as page:
        page.wait_for_selector("#ask-all")
        assert "drawn at random from 40" in page.inner_text("#state")
        looked(page, lambda: page.click("#ask-all"))
        assert page.locator("#ask-all").count() == 0


def test_the_theme_is_kept_for_the_tab(open_page: Open, address: str) -> None:
    with page_of(open_page, address, "p=P007", color_scheme="light") as page:
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.click("#theme")
        dark = page.evaluate(ground)
        page.reload()
        settled(page)
        assert page.evaluate(ground) == dark != light


def test_the_run_beside_is_part_of_the_address(open_page: Open, tmp_path: Path) -> None:
    X, im = world()
    for k, name in enumerate(("one", "two", "three")):
        truth_of(MODELS, X, im, target=1, threshold=0.1 + 0.1 * k).save(tmp_path / name)
    runs = [from_run(budge.Audit.load(tmp_path / name), title=name) for name in ("one", "two", "three")]
    with served(runs) as address, page_of(open_page, address, "view=runs") as page:
        page.wait_for_selector("#runs-head")
        page.select_option("#versus", "2")
        page.wait_for_selector("#runs-panel:has-text('threshold 0.1 and 0.3')")
        page.reload()
        settled(page)
        page.wait_for_selector("#runs-panel:has-text('threshold 0.1 and 0.3')")
        assert page.input_value("#versus") == "2"


VIEWS = ["p=P007", "p=P007&pin=P003", "p=P007&off=s1.c0", "view=everyone", "view=models", "view=spec", "p=P007&show=all&find=zzz"]


def check_access(page: Any, width: int) -> None:
    """No violation that axe-core finds, no text below 11 px, nothing wider than the window."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is in the `browser` extra")
    found = axe.Axe().run(page).response["violations"]
    assert [(v["id"], [n["html"][:120] for n in v["nodes"]][:3]) for v in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    small = page.evaluate(
        """() => [...document.querySelectorAll("body *")].filter((n) => n.checkVisibility() && !n.closest(".sr, .figure") &&
        [...n.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim()) && parseFloat(getComputedStyle(n).fontSize) *
        (n.ownerSVGElement ? n.ownerSVGElement.getBoundingClientRect().width / n.ownerSVGElement.viewBox.baseVal.width : 1) < 10.99)
        .map((n) => n.outerHTML.slice(0, 120))"""
    )
    assert small == []


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "light"), (1280, "dark"), (390, "dark")])
def test_every_view_is_accessible(open_page: Open, address: str, scores: str, tmp_path: Path, width: int, scheme: str) -> None:
    options = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme, "bypass_csp": True}  # axe-core is put into the page
    for view in VIEWS:
        with page_of(open_page, address, view, **options) as page:
            page.wait_for_timeout(200)
            for summary in page.locator("details:visible > summary").all():
                summary.click()
            check_access(page, width)
    with page_of(open_page, scores, "p=P007", **options) as page:
        page.click(".mosaic [data-cell] >> nth=0")
        page.wait_for_timeout(200)
        check_access(page, width)
        page.click("#theme")
        check_access(page, width)
    X, im = world()
    for name in ("one", "two"):
        truth_of(MODELS, X, im if name == "one" else im.without(1), target=1).save(tmp_path / name)
    with served([from_run(budge.Audit.load(tmp_path / name), title=name) for name in ("one", "two")]) as runs:
        for view in ("show=all", "view=runs"):
            with page_of(open_page, runs, view, **options) as page:
                page.wait_for_timeout(300)
                check_access(page, width)


@pytest.mark.parametrize("width", [1280, 900, 390])
def test_long_names_and_many_features_fit(open_page: Open, width: int) -> None:
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(0)
    names = [f"a rather long name of a feature that somebody gave it {k}" for k in range(20)] + [f"x{'y' * 58}{k}" for k in range(20)]
    X = pd.DataFrame({name: rng.integers(0, 2, 12) for name in names}, index=[f"{'long' * 15} {k}" for k in range(12)])
    ways = ["increase" if k % 10 == 0 else None for k in range(40)]
    im = budge.InteractionModel([budge.Feature(name, "binary", actionable=k % 5 == 0, direction=ways[k]) for k, name in enumerate(names)])  # type: ignore[arg-type]
    question = make_question(lambda t: (t.sum(axis=1) > 22).astype(int), X, im, target=1, population="all", title="t" * 90)
    with served(question) as address, page_of(open_page, address, viewport={"width": width, "height": 844}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.is_visible(".control >> nth=0")
        assert re.search(r"\d+ of \d+ reachable points|None of the", page.inner_text("#sentence"))
