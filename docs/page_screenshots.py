"""The screenshots of the page in docs/images, from headless chromium: the lending demo, and German credit with two models.

Run: ``python docs/page_screenshots.py`` (needs budge[serve,models,browser], chromium, and for German credit its data set). With names
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
WORDS = {
    "people_name": "refused applicants", "target_name": "approval", "group_labels": {"Male": {"0": "women", "1": "men"}},
    "feature_labels": {
        "YearsAtResidence": "years at the address", "YearsEmployed>=1": "a year or more in the job", "HasGuarantor": "guarantor",
        "HistoryOfBankInstallments": "instalments at a bank", "HistoryOfStoreInstallments": "instalments at a store", "CheckingAcct_exists": "there is one",
        "CheckingAcct>=0": "0 or more", "SavingsAcct_exists": "there is one", "SavingsAcct>=100": "100 or more", "Age": "age",
    },
}  # fmt: skip


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
    """German credit under trees and a logistic regression; the people are those whom each refuses."""
    import numpy as np
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    from budge import InteractionModel, datasets
    from budge.web import make_question

    data = datasets.german()
    X, y = data.X, data.y.to_numpy()
    train = np.sort(train_test_split(np.arange(len(X)), test_size=0.2, stratify=y, random_state=0)[0])
    models = {
        "XGBoost": XGBClassifier(n_estimators=50, max_depth=3, learning_rate=0.1, n_jobs=1, random_state=0),
        "LR": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }
    for model in models.values():
        model.fit(X.to_numpy()[train], y[train])
    path = ROOT / "studies" / "german.yaml"
    im = InteractionModel.from_file(path)
    return make_question(models, X, im, target=1, groups=["Male"], title="German credit", text=path.read_text(encoding="utf-8"), wording=WORDS)


def settled(page: Any) -> None:
    """Everyone is counted, and nothing is under way."""
    page.wait_for_selector('#state[data-whole="true"], #ask-all')
    if page.is_visible("#ask-all"):  # a machine so busy that the page would not wait
        page.click("#ask-all")
        page.wait_for_selector('#state[data-whole="true"]')
    page.wait_for_selector("body:not(.busy)")
    page.wait_for_timeout(500)


def cell(page: Any) -> None:
    """The cell of the table with hits, its points, and the best of them."""
    page.click(".mosaic button.yes >> nth=0")
    page.wait_for_timeout(700)


def spec(page: Any) -> None:
    """Two mistakes in the spec."""
    page.wait_for_selector("#gutter :nth-child(10)", state="attached")
    text = page.input_value("#spec-text")
    page.fill("#spec-text", text.replace("direction: increase", "direction: upwards", 1).replace("bounds: [0, 60]", "bounds: [60, 0]"))
    page.wait_for_selector("#spec-problems li")
    page.wait_for_timeout(300)


#: By name: what is served, the window, the colour scheme, the state in the address, what is clicked, and whether the whole page is shown.
SHOTS: dict[str, tuple[Callable[[], Any], tuple[int, int], str, str, list[Callable[[Any], None]], bool]] = {
    "page-german": (german, (1280, 900), "light", "p=812", [], False),
    "page-german-dark": (german, (1280, 900), "dark", "p=812", [], False),
    "page-german-phone": (german, (390, 844), "light", "p=812", [], False),
    "page-german-person": (german, (1280, 900), "light", "p=707&show=below&pin=812", [cell], True),
    "page-german-rule": (german, (1280, 900), "light", "p=812&off=o2", [], True),
    "page-german-everyone": (german, (1280, 900), "light", "p=812&off=o2&view=everyone", [], False),
    "page-german-models": (german, (1280, 900), "light", "p=812&view=models", [], False),
    "page-lending": (lending, (1280, 900), "light", "", [], False),
    "page-lending-spec": (lending, (1280, 900), "light", "view=spec", [spec], False),
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
                for name, (_, (width, height), theme, state, steps, whole) in some.items():
                    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
                    page = context.new_page()
                    page.set_default_timeout(120_000)
                    page.goto(f"{address}&{state}")
                    settled(page)
                    for step in steps:
                        step(page)
                    target = IMAGES / f"{name}.png"
                    page.screenshot(path=target, full_page=whole)
                    print(f"{target.relative_to(ROOT)}: {target.stat().st_size // 1024} KB")
                    context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
