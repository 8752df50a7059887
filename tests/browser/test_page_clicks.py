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

from web_kit import HOSTILE, MODELS, truth_of, world

import budge
from budge.spec import to_text
from budge.web import from_run, make_app, make_question
from budge.web.server import Address, _socket


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


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    X, im = world()
    with served(make_question(MODELS, X, im, target=1, population="all", text="# own words\n" + to_text(im))) as found:
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
def page_of(open_page: Open, address: str, **options: Any) -> Iterator[Any]:
    """The page, settled; at its end nothing was amiss and nobody else was asked."""
    with open_page(address, offline=False, **options) as page:
        settled(page)
        page.wait_for_selector(".rho-card")
        yield page
        assert page.trouble == []
        origin = address.split("/#")[0]
        assert [url for url in page.asked if not url.startswith((origin + "/", f"blob:{origin}/"))] == []


def rho_of(page: Any, model: str = "strict") -> float:
    return float(page.get_attribute(f'.rho-card[data-model="{model}"]', "data-rho"))


def find(page: Any, text: str) -> None:
    page.fill("#find", text)
    page.wait_for_selector("#find-note:not(:empty)")


def test_find_open_toggle_and_see_the_library_s_number(open_page: Open, address: str) -> None:
    X, im = world()
    with page_of(open_page, address) as page:
        assert "token" not in page.url
        find(page, "P007")
        assert page.locator(".who").count() == 1
        looked(page, lambda: page.click(".who"))
        assert page.inner_text("#person-name") == "Person P007"
        truth = truth_of(MODELS, X, im, target=1)
        assert rho_of(page) == truth.of_model("strict").loc["P007", "rho"]
        assert page.get_attribute(".sentence", "data-points") == str(im.enumerate(X.loc[["P007"]]).size)

        looked(page, lambda: page.click('[data-constraint="1"]'))
        edited = im.without("savings")
        after = truth_of(MODELS, X, edited, target=1)
        for model in MODELS:
            assert rho_of(page, model) == after.of_model(model).loc["P007", "rho"]
        assert rho_of(page) != truth.of_model("strict").loc["P007", "rho"]
        assert float(page.get_attribute("#mean-rho", "data-value")) == after.summary("strict").mean_rho
        assert page.get_attribute('.stat[data-verdict="below"]', "data-count") == str(after.summary("strict").verdicts.get("below", 0))
        shown = page.locator(".witness tbody tr").all_inner_texts()
        assert [re.split(r"\s+", line)[0] for line in shown] == after.recourse("P007", model="strict").actions["feature"].tolist()

        page.click('.feature[data-feature="years"] summary')
        box = '[data-feature="years"][data-field="at most up"]'
        looked(page, lambda: (page.fill(box, "5"), page.press(box, "Tab")))
        features = [f.but(max_increase=5) if f.name == "years" else f for f in edited.features]
        wider = budge.InteractionModel(features, edited.constraints, name=edited.name)
        assert rho_of(page) == truth_of(MODELS["strict"], X, wider, target=1).table.loc["P007", "rho"]

        looked(page, lambda: page.click("#undo"))
        assert rho_of(page) == after.of_model("strict").loc["P007", "rho"]
        looked(page, lambda: page.click("#reset"))
        assert rho_of(page) == truth.of_model("strict").loc["P007", "rho"]
        assert page.is_checked('[data-constraint="1"]')


def test_a_limit_that_cannot_be_is_told_and_not_taken(open_page: Open, address: str) -> None:
    with page_of(open_page, address) as page:
        before = rho_of(page)
        page.click('.feature[data-feature="years"] summary')
        box = '[data-feature="years"][data-field="at most up"]'
        page.fill(box, "-3")
        page.press(box, "Tab")
        page.wait_for_selector("#edit-problems:not([hidden])")
        assert "a step limit cannot be negative" in page.inner_text("#edit-problems")
        assert page.input_value(box) == "2"
        assert rho_of(page) == before
        assert page.is_disabled("#undo")
        page.trouble[:] = [t for t in page.trouble if "400" not in t]  # chromium notes the refused request


def test_the_spec_is_checked_as_one_types_and_applied(open_page: Open, address: str) -> None:
    X, im = world()
    with page_of(open_page, address) as page:
        page.click("#view-spec")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        text = page.input_value("#spec-text")
        assert text.startswith("# own words")
        page.fill("#spec-text", text.replace("type: binary", "type: binry", 1))
        page.wait_for_selector("#spec-problems li")
        told = page.inner_text("#spec-problems")
        line = next(i for i, t in enumerate(text.split("\n"), 1) if "type: binary" in t)
        assert f"line {line}" in told
        assert "did you mean 'binary'?" in told
        assert page.is_disabled("#spec-apply")
        page.fill("#spec-text", text.replace("bounds: [0, 4]", "bounds: [0, 6]"))
        page.wait_for_selector("#spec-apply:not([disabled])")
        looked(page, lambda: page.click("#spec-apply"))
        wider = im.relax("balance", bounds=(0, 6))
        assert float(page.get_attribute("#mean-rho", "data-value")) == truth_of(MODELS, X, wider, target=1).summary("strict").mean_rho
        looked(page, lambda: page.click("#undo"))
        assert float(page.get_attribute("#mean-rho", "data-value")) == truth_of(MODELS, X, im, target=1).summary("strict").mean_rho


def test_the_exported_spec_loads_back_equal(open_page: Open, address: str, tmp_path: Path) -> None:
    _, im = world()
    with page_of(open_page, address, accept_downloads=True) as page:
        looked(page, lambda: page.click('[data-constraint="0"]'))
        looked(page, lambda: page.click('[data-feature="balance"][data-field="actionable"]'))
        with page.expect_download() as found:
            page.click("#export-spec")
        found.value.save_as(tmp_path / "spec.yaml")
        exported = budge.InteractionModel.from_file(tmp_path / "spec.yaml")
        assert exported.digest == im.without("ageing").freeze("balance").digest
        assert exported.name == "loans (edited)"
        with page.expect_download(timeout=60_000) as found:
            page.click("#export-report")
        found.value.save_as(tmp_path / "report.html")
        assert im.without("ageing").freeze("balance").digest in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_models_stand_side_by_side(open_page: Open, address: str) -> None:
    X, im = world()
    truth = truth_of(MODELS, X, im, target=1)
    with page_of(open_page, address) as page:
        page.click("#view-models")
        means = [float(cell.get_attribute("data-mean")) for cell in page.locator(".models [data-mean]").all()]
        assert means == [truth.summary(m).mean_rho for m in MODELS]
        page.click(".cross tbody button >> nth=0")
        page.wait_for_selector("#find-note:has-text('for strict')")
        one, two = truth.of_model("strict")["verdict"], truth.of_model("kind")["verdict"]
        pair = re.match(r"(\S+) for strict, (\S+) for kind", page.inner_text("#find-note"))
        assert pair is not None
        listed = page.locator(".who .label").all_inner_texts()
        assert listed == X.index[((one == pair[1]) & (two == pair[2])).to_numpy()].tolist()
        page.select_option("#model", "kind")
        page.wait_for_selector(f'#mean-rho[data-value="{truth.summary("kind").mean_rho}"]')


def test_everything_works_from_the_keyboard(open_page: Open, address: str) -> None:
    X, im = world()
    with page_of(open_page, address) as page:
        page.keyboard.press("/")
        assert page.evaluate("document.activeElement.id") == "find"
        page.keyboard.type("P01")
        page.wait_for_selector("#find-note:has-text('10 found')")
        looked(page, lambda: page.keyboard.press("Enter"))
        assert page.inner_text("#person-name") == "Person P010"
        page.focus(".who >> nth=0")
        page.keyboard.press("ArrowDown")
        looked(page, lambda: page.keyboard.press("Enter"))
        assert page.inner_text("#person-name") == "Person P011"
        page.focus("#view-person")
        looked(page, lambda: page.keyboard.press("]"))
        assert page.inner_text("#person-name") == "Person P012"
        page.keyboard.press("ArrowRight")
        assert page.get_attribute("#view-everybody", "aria-selected") == "true"
        assert page.is_visible("#everybody-panel")
        page.focus('[data-constraint="1"]')
        looked(page, lambda: page.keyboard.press("Space"))
        assert page.evaluate("document.activeElement.dataset.constraint") == "1"  # the focus stays
        assert float(page.get_attribute("#mean-rho", "data-value")) == truth_of(MODELS, X, im.without(1), target=1).summary("strict").mean_rho
        assert "responsiveness" in page.text_content("#say")
        looked(page, lambda: page.keyboard.press("Control+z"))
        assert page.is_checked('[data-constraint="1"]')


def test_every_control_has_a_name(open_page: Open, address: str) -> None:
    with page_of(open_page, address) as page:
        bare = page.evaluate(
            """() => [...document.querySelectorAll("button, input, select, textarea")].filter((n) => !(n.getAttribute("aria-label")
            || n.textContent.trim() || n.labels?.length && [...n.labels].some((l) => l.textContent.trim()))).map((n) => n.outerHTML)"""
        )
        assert bare == []
        assert page.get_attribute("html", "lang") == "en"


@pytest.mark.parametrize("width", [1280, 900])
def test_nothing_is_cut(open_page: Open, address: str, width: int) -> None:
    with page_of(open_page, address, viewport={"width": width, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for tab in ("view-everybody", "view-models", "view-spec", "view-person"):
            page.click(f"#{tab}")
            wide = page.evaluate("[...document.querySelectorAll('.view')].filter((v) => !v.hidden && v.scrollWidth > v.clientWidth + 1).map((v) => v.id)")
            assert wide == [], tab
        if width < 1120:
            page.click("#tab-edits")
        assert page.is_visible('[data-constraint="0"]')
        assert page.is_visible(".rho-card >> nth=0")


def test_hostile_names_are_text(open_page: Open) -> None:
    X, im = world()
    X = X.rename(index={"P000": HOSTILE, "P001": "<img src=x onerror=alert(1)>"}, columns={"balance": "<b>balance"})
    features = [f.but(name="<b>balance") if f.name == "balance" else f for f in im.features]
    im = budge.InteractionModel(features, [c for c in im.constraints if c.name != "owners pay"], name="<u>spec</u>")
    models = {"<i>m</i>": lambda t: MODELS["strict"](t.rename(columns={"<b>balance": "balance"})), "k": lambda t: (t["ge_1"] == 1).astype(int)}
    with served(make_question(models, X, im, target=1, population="all")) as address, page_of(open_page, address) as page:
        dialogs: list[str] = []
        page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
        assert page.inner_text("#title") == "<u>spec</u>"
        labels = page.locator(".who .label").all_inner_texts()
        assert labels[0] == HOSTILE.replace("\x1b", "\\u001b")
        assert labels[1] == "<img src=x onerror=alert(1)>"
        looked(page, lambda: page.click(".who >> nth=1"))
        for summary in page.locator("#person details > summary").all():
            summary.click()
        page.wait_for_selector("#person .figure svg")
        for tab in ("view-everybody", "view-models", "view-spec"):
            page.click(f"#{tab}")
        page.wait_for_timeout(300)
        assert page.evaluate("document.querySelectorAll('main img, main u, main script').length") == 0
        assert dialogs == []


def test_a_saved_run_can_be_read(open_page: Open, tmp_path: Path) -> None:
    X, im = world()
    truth_of(MODELS, X, im, target=1).save(tmp_path / "run")
    saved = budge.Audit.load(tmp_path / "run")
    with served(from_run(saved)) as address, page_of(open_page, address) as page:
        assert "to be read" in page.inner_text("#asked")
        assert page.is_disabled('[data-constraint="0"]')
        looked(page, lambda: page.click(".who >> nth=4"))
        assert rho_of(page) == saved.of_model("strict")["rho"].iloc[4]
        label = next(one for one in X.index if len(saved.change(one, model="strict")))
        looked(page, lambda: page.click(f".who >> nth={list(X.index).index(label)}"))
        cells = [re.split(r"\t", line) for line in page.locator(".witness tbody tr").all_inner_texts()]
        assert cells == [[str(v) for v in row] for row in saved.change(label, model="strict").to_numpy().tolist()]
        page.click("#view-spec")
        page.wait_for_selector("#spec-status:has-text('As it is in use')")
        assert page.input_value("#spec-text") == to_text(im)


def test_without_the_token_nothing_is_shown(open_page: Open, address: str) -> None:
    origin = address.split("#")[0]
    with open_page(origin, offline=False) as page:
        page.wait_for_selector("#alert:not([hidden])")
        assert "token" in page.inner_text("#alert")
        assert page.is_hidden("#desk")
    with open_page(f"{origin}#token=wrong", offline=False) as page:
        page.wait_for_selector("#alert:not([hidden])")
        assert "the token is missing or wrong" in page.inner_text("#alert")
        assert page.is_hidden("#desk")


def test_quick_toggles_end_at_the_last_state(open_page: Open, address: str) -> None:
    X, im = world()
    with page_of(open_page, address) as page:
        for i in (0, 1, 2, 0, 1):
            page.click(f'[data-constraint="{i}"]')
        settled(page)
        page.wait_for_timeout(500)
        settled(page)
        assert float(page.get_attribute("#mean-rho", "data-value")) == truth_of(MODELS, X, im.without(2), target=1).summary("strict").mean_rho
        assert [page.is_checked(f'[data-constraint="{i}"]') for i in range(3)] == [True, True, False]


def test_one_model_has_its_bar_of_verdicts(open_page: Open) -> None:
    X, im = world()
    with served(make_question({"strict": MODELS["strict"]}, X, im, target=1, population="all")) as address, page_of(open_page, address) as page:
        assert page.locator("#split").bounding_box()["width"] > 100
        assert page.locator("#model-pick").is_hidden()
        lefts = {page.locator(".who .gauge").nth(k).bounding_box()["x"] for k in range(8)}
        assert len(lefts) == 1
        assert page.locator(".list-head .scale").bounding_box()["x"] == pytest.approx(lefts.pop(), abs=1.5)
        assert "inconclusive" in page.inner_text('[data-verdict-chip="inconclusive"]')
        page.fill("#threshold", "7")
        page.press("#threshold", "Enter")
        page.wait_for_selector("#alert:not([hidden])")
        page.fill("#threshold", "0.1")
        page.press("#threshold", "Enter")
        page.wait_for_selector("#alert", state="hidden")
        page.trouble[:] = [t for t in page.trouble if "400" not in t]  # chromium notes the refused request


def test_each_model_s_own_people_are_counted(open_page: Open) -> None:
    X, im = world()
    truth = truth_of(MODELS, X, im, target=1, population="outside")
    with served(make_question(MODELS, X, im, target=1, population="outside")) as address, page_of(open_page, address) as page:
        own = {name: len(truth.of_model(name)) for name in MODELS}
        assert f"strict {own['strict']}, kind {own['kind']} of 40 people (outside the target)" in page.inner_text("#asked")
        assert page.inner_text("#state").startswith(f"{own['strict']} people")
        assert page.inner_text("#person-name") == f"Person {truth.of_model('strict').index[0]}"
        page.click("#view-models")
        both = len(set(truth.of_model("strict").index) & set(truth.of_model("kind").index))
        assert page.inner_text("#models-panel .gap").startswith(f"{both} people asked of both")
