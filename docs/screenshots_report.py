"""Remake the pictures of the report in docs/images: ``python docs/screenshots_report.py [lending] [german]``.

Needs Playwright and a chromium on the PATH; the pictures of German credit need its data (see docs/how-to/data.md) and the models extra.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import budge
from budge import datasets
from budge.stress import ablate

ROOT = Path(__file__).resolve().parents[1]
IMAGES = Path(__file__).resolve().parent / "images"
SIZE = {"width": 1280, "height": 900}


def lending(folder: Path) -> Path:
    """The demo's audit, with groups and an ablation."""
    from budge.datasets.scorecard import Scorecard

    data = datasets.lending(n=1500, seed=0)
    model = Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    people = data.X.iloc[1000:1300]
    refused = model.predict(people) == 0
    im = budge.InteractionModel.from_file(datasets.spec_path("lending"))
    audit = budge.audit(model, people, im, target=1, threshold=0.1, population=refused, harm="below")
    gains = ablate(model, people, im, target=1, population=refused)
    return audit.to_html(
        folder / "lending.html", by=["housing"], ablation=gains, title="Lending: who can turn a refusal around", target_name="approval",
        people_name="refused applicants",
    )  # fmt: skip


def german(folder: Path) -> Path:
    """Two models of German credit, those whom they refuse."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    data = datasets.german()
    train = data.X.index % 5 != 0
    X, y = data.X[train].to_numpy(), data.y[train]
    trees = XGBClassifier(n_estimators=100, max_depth=6, n_jobs=1).fit(X, y)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(data.X[train], y)
    im = budge.InteractionModel.from_file(ROOT / "studies" / "german.yaml")
    audit = budge.audit({"XGBoost": trees, "LR": linear}, data.X, im, target=1, threshold=0.1, population="outside", harm="below")
    return audit.to_html(
        folder / "german.html", by=["Male"], title="German credit: who can turn a refusal around", target_name="approval",
        people_name="refused applicants", group_labels={"Male": {"0": "women", "1": "men"}},
    )  # fmt: skip


def shoot(browser: Any, page_file: Path, shots: dict[str, str]) -> None:
    """Take one picture per shot, scrolled to the element with the given id."""
    for name, at in shots.items():
        context = browser.new_context(viewport=SIZE, offline=True, color_scheme="light")
        page = context.new_page()
        page.goto(page_file.as_uri())
        page.evaluate("(id) => { const e = document.getElementById(id); if (e) e.scrollIntoView(); else scrollTo(0, 0); }", at)
        page.screenshot(path=IMAGES / f"{name}.png")
        context.close()


def main(wanted: list[str]) -> None:
    """Write the reports, open them, take the pictures."""
    from playwright.sync_api import sync_playwright

    IMAGES.mkdir(exist_ok=True)
    path = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        if not wanted or "lending" in wanted:
            shoot(browser, lending(Path(folder)), {"report-lending": "top", "report-lending-people": "controls"})
        if not wanted or "german" in wanted:
            shoot(browser, german(Path(folder)), {"report-german": "top", "report-german-who": "who", "report-german-cases": "cases"})
        browser.close()
    for image in sorted(IMAGES.glob("report-*.png")):
        print(f"{image.name:34s} {image.stat().st_size / 1000:6.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
