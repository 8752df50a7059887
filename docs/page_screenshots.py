"""The screenshots of the page in docs/images, from headless chromium: the lending demo, and german credit with two models.

Run: ``python docs/page_screenshots.py`` (needs budge[serve,models,browser], chromium, and for german its data set). With names
(``page-lending``) only those are made.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))


@contextmanager
def served(question: Any) -> Iterator[str]:
    """The page of a question on a free port, in a thread."""
    import uvicorn

    from budge.web import make_app
    from budge.web.server import Address, _socket

    app = make_app(question)
    with _socket(0) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield str(Address(listening.getsockname()[1], app.token))
        finally:
            server.should_exit = True
            thread.join(10)


def lending() -> Any:
    """The demo."""
    from budge.cli.serve import _demo

    return _demo(0.1, 0)


def german() -> Any:
    """German credit with the study's two models; the target is any change."""
    from studies.common import model
    from studies.german import fit, predictor, split

    from budge import datasets
    from budge.web import make_question

    data = datasets.german()
    models = {name: predictor(m) for name, m in fit(data, split(data)[0]).items()}
    text = (ROOT / "studies" / "german.yaml").read_text(encoding="utf-8")
    return make_question(models, data.X, model("german"), target="different", text=text)


def settled(page: Any) -> None:
    """Everybody is counted, and nothing is under way."""
    page.wait_for_selector(".rho-card")
    page.wait_for_selector('#state[data-whole="true"], #ask-all')
    if page.is_visible("#ask-all"):  # a machine so busy that the page would not wait
        page.click("#ask-all")
        page.wait_for_selector('#state[data-whole="true"]')
    page.wait_for_selector("body:not(.busy)")
    page.wait_for_timeout(700)


def toggle(page: Any) -> None:
    """A constraint off."""
    if not page.is_visible("#edits-panel"):
        page.click("#tab-edits")
    page.click('[data-constraint="2"]')
    settled(page)


def limit(page: Any) -> None:
    """A step limit doubled."""
    page.click('.feature[data-feature="income"] summary')
    page.fill('[data-feature="income"][data-field="at most up"]', "10000")
    page.press('[data-feature="income"][data-field="at most up"]', "Tab")
    settled(page)


def person(find: str) -> Callable[[Any], None]:
    """Find a person and open their page."""
    def steps(page: Any) -> None:
        page.fill("#find", find)
        page.wait_for_timeout(500)
        page.click(".who >> nth=0")
        settled(page)

    return steps


def everybody(page: Any) -> None:
    """The distribution before and after."""
    toggle(page)
    page.click("#view-everybody")


def models(page: Any) -> None:
    """Models beside each other."""
    page.click("#view-models")


def spec(page: Any) -> None:
    """Two mistakes in the spec."""
    page.click("#view-spec")
    page.wait_for_selector("#gutter :nth-child(10)", state="attached")
    text = page.input_value("#spec-text")
    page.fill("#spec-text", text.replace("direction: increase", "direction: upwards", 1).replace("bounds: [0, 60]", "bounds: [60, 0]"))
    page.wait_for_selector("#spec-problems li")
    page.wait_for_timeout(300)


SHOTS: dict[str, tuple[Callable[[], Any], tuple[int, int], str, list[Callable[[Any], None]]]] = {
    "page-lending-dark": (lending, (1280, 860), "dark", [person("income < 15000"), limit]),
    "page-lending": (lending, (1280, 860), "light", [person("income < 15000"), limit]),
    "page-lending-spec": (lending, (1280, 860), "light", [spec]),
    "page-lending-models": (lending, (1280, 860), "light", [models]),
    "page-german": (german, (1280, 860), "light", [person("Age < 25"), toggle]),
    "page-german-everybody": (german, (1280, 860), "light", [everybody]),
    "page-german-900": (german, (900, 860), "light", [toggle]),
}


def main(wanted: list[str]) -> None:
    """Make the images."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    IMAGES.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for make in (lending, german):
            some = {name: shot for name, shot in SHOTS.items() if shot[0] is make and (not wanted or name in wanted)}
            if not some:
                continue
            with served(make()) as address:
                for name, (_, (width, height), theme, steps) in some.items():
                    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                    page = context.new_page()
                    page.set_default_timeout(120_000)
                    page.goto(address)
                    settled(page)
                    for step in steps:
                        step(page)
                    page.wait_for_timeout(300)
                    target = IMAGES / f"{name}.png"
                    page.screenshot(path=target)
                    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1024} KB")
                    context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
