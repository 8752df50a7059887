"""Remake the pictures of the README and the docs: ``python docs/pictures.py [hero] [terminal] [report] [drawings] [page]``, all unless some are named.

``hero`` is docs/images/hero.svg: one applicant of German credit, every point that they can reach, and what the model answers. All numbers and marks are
those of a real audit; the words for levels stand here, and what they state about the points is checked before anything is drawn. ``terminal`` is the
output of ``budge demo`` in the README, ``report`` the screenshots of reports; ``drawings`` and ``page`` run draw_counting.py and page_screenshots.py.
Needs the extras models, serve and browser, chromium on the PATH, and the data of German credit (docs/how-to/data.md).
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import datasets

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
README = ROOT / "README.md"
BLOCK = ("<!-- budge demo: written by docs/pictures.py -->\n```text\n", "```\n<!-- end -->")
REPORTS = {
    "german": {"report-german": "", "report-german-who": "who", "report-german-why": "why", "report-german-cases": "cases"},
    "lending": {"report-lending": "", "report-lending-people": "everybody"},
    "survey": {"report-survey": "", "report-survey-why": "why"},
}  # picture: the section at its top

# -- the figure of the README ------------------------------------------------------------------------------------------

PERSON = 203
ACROSS, DOWN = ("CheckingAcct>=0", "Checking account", "overdrawn", "0 or more"), ("HasGuarantor", "Guarantor", "no", "yes")
DECLARED = (
    ("Checking account", "overdrawn → 0 or more", ["CheckingAcct>=0"]),
    ("Guarantor", "no → yes", ["HasGuarantor"]),
    ("Savings", "under 100 → 100 or more", ["SavingsAcct>=100"]),
    ("Instalments", "at a bank, at a store", ["HistoryOfBankInstallments", "HistoryOfStoreInstallments"]),
    ("Years at the address", "{old} → up to {new}; age follows", ["YearsAtResidence", "Age"]),
)
WIDTH, HEIGHT, PITCH, ROWS = 920, 356, 15, 4
CELL = (8 * PITCH + 8, 96)
STYLE = """
text{font:14px Inter,system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;fill:#171b21}.h{font-size:15px;font-weight:650}
.big{font-size:34px;font-weight:700}.soft{fill:#4c5561}.paper{fill:#fff;stroke:#d5dae1}.rule{stroke:#d5dae1}.number{fill:#fff;font-weight:700;font-size:13px}
.disc{fill:#171b21}.yes{fill:#0a66a8}.no{fill:#fff;stroke:#767f8b;stroke-width:1.4}.cell{fill:#f5f6f8}.all{fill:#e3eff8}
.ring,.arrow{fill:none;stroke:#171b21;stroke-width:2}.head{fill:#171b21}
@media (prefers-color-scheme:dark){text{fill:#eceff3}.soft{fill:#aeb7c2}.paper{fill:#12161b;stroke:#323b46}.rule{stroke:#323b46}.number{fill:#12161b}
.disc,.head{fill:#eceff3}.yes{fill:#74b9f0}.no{fill:#12161b;stroke:#7f8a97}.cell{fill:#1b2129}.all{fill:#16324a}.ring,.arrow{stroke:#eceff3}}
"""


def german() -> tuple[dict[str, Any], pd.DataFrame, budge.InteractionModel]:
    """Return two models of German credit, all applicants, and what they can change; both models are fitted on four of five."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from xgboost import XGBClassifier

    data = datasets.german()
    chosen, _ = train_test_split(np.arange(len(data.X)), test_size=0.2, stratify=data.y, random_state=0)
    X, y = data.X.to_numpy()[np.sort(chosen)], data.y.to_numpy()[np.sort(chosen)]
    trees = XGBClassifier(n_estimators=50, max_depth=3, learning_rate=0.1, n_jobs=1, random_state=0)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    im = budge.InteractionModel.from_file(ROOT / "studies" / "german.yaml")
    return {"XGBoost": trees.fit(X, y), "LR": linear.fit(X, y)}, data.X, im


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return words as SVG."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def declared(points: pd.DataFrame, start: pd.Series) -> list[str]:
    """Return what the person can change; a feature that moves and is not named is an error."""
    moving = {str(name) for name in points.columns if points[name].nunique() > 1}
    assert moving == {name for _, _, names in DECLARED for name in names}, moving
    old, new = start["YearsAtResidence"], points["YearsAtResidence"].max()
    found = []
    for k, (name, words, _) in enumerate(DECLARED):
        y = 84 + 49 * k
        found += [text(28, y, name), text(28, y + 19, words.format(old=old, new=new), "soft")]
        found += [f'<line class="rule" x1="28" x2="240" y1="{y + 30}" y2="{y + 30}"/>'] if k + 1 < len(DECLARED) else []
    return found


def mosaic(points: pd.DataFrame, hit: np.ndarray, x0: float, y0: float) -> list[str]:
    """Return all points in four cells, by the two features that decide; the start and the least change meet in the middle."""
    wide, high = CELL
    found = [text(x0 + wide + 4, y0 - 34, ACROSS[1], "soft", "middle"), text(x0 - 12, y0 + 22, DOWN[1], "soft", "end")]
    for side in range(2):
        found += [text(x0 + side * (wide + 8) + wide / 2, y0 - 12, ACROSS[2 + side], anchor="middle")]
        found += [text(x0 - 12, y0 + side * (high + 8) + high / 2 + 5, DOWN[2 + side], anchor="end")]
    for column in range(2):
        for row in range(2):
            own = hit[(points[ACROSS[0]] == column) & (points[DOWN[0]] == row)]
            assert len(own) == 8 * ROWS, "each cell holds as many points as are drawn"
            x, y = x0 + column * (wide + 8), y0 + row * (high + 8)
            found.append(f'<rect class="{"all" if own.all() else "cell"}" x="{x}" y="{y}" width="{wide}" height="{high}" rx="6"/>')
            for k, good in enumerate(own):
                across, down = k % 8 if column else 7 - k % 8, k // 8 if row else ROWS - 1 - k // 8
                cx, cy = x + 4 + PITCH * (across + 0.5), y + 6 + 21 * (down + 0.5)
                found.append(f'<circle class="{"yes" if good else "no"}" cx="{cx:g}" cy="{cy:g}" r="5"/>')
    sx, sy = x0 + 4 + 7.5 * PITCH, y0 + 6 + 21 * 3.5
    tx, ty = x0 + wide + 8 + 4 + PITCH / 2, y0 + high + 8 + 6 + 10.5
    found += [f'<circle class="ring" cx="{cx:g}" cy="{cy:g}" r="8.5"/>' for cx, cy in ((sx, sy), (tx, ty))]
    found.append(f'<path class="arrow" d="M{sx + 5:g} {sy + 7:g}L{tx - 8:g} {ty - 12:g}"/><path class="head" d="M{tx - 4:g} {ty - 6:g}l-9 -4l7 -6z"/>')
    y = y0 + 2 * high + 34
    marks = f'<circle class="no" cx="{x0 + 8}" cy="{y - 5}" r="5"/><circle class="yes" cx="{x0 + 92}" cy="{y - 5}" r="5"/>'
    return [*found, marks, text(x0 + 20, y, "refused"), text(x0 + 104, y, "approved"), text(x0 + 182, y, "→ least change", "soft")]


def hero() -> str:
    """Return the figure as SVG."""
    models, X, im = german()
    model = models["XGBoost"]
    audit = budge.audit(model, X, im, target=1, threshold=0.1)
    points = im.enumerate(X.loc[[PERSON]]).points
    moves = [ACROSS[0], DOWN[0], "SavingsAcct>=100", "HistoryOfBankInstallments", "HistoryOfStoreInstallments", "YearsAtResidence"]
    points = points.sort_values(moves)
    hit = model.predict(points.to_numpy()) == 1
    row, start = audit.table.loc[PERSON], X.loc[PERSON]
    assert (row["n"], row["hits"], row["exactness"]) == (len(points), hit.sum(), "exact")
    assert (hit == ((points[ACROSS[0]] == 1) & (points[DOWN[0]] == 1))).all(), "the two features decide"
    assert (points.iloc[0][moves] == start[moves]).all(), "the start is the first point of its cell, and so is the least change"
    plan = audit.recourse(PERSON)
    assert plan.optimal, "the least change is proved"
    assert set(plan.actions["feature"]) == {ACROSS[0], DOWN[0]}
    stuck, people = audit.summary().no_way, audit.summary().people
    told = f"One refused applicant can reach {len(points)} points. The model approves {hit.sum()}: those with a guarantor and a checking account at 0 or more."
    found = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-labelledby="told">',
        f'<title id="told">{escape(told)}</title><style>{STYLE}</style><rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="12"/>',
    ]
    for k, (x, words) in enumerate(((28, "Declare what can change"), (300, "Ask the model about every point"), (684, "State what holds")), start=1):
        found.append(f'<circle class="disc" cx="{x + 11}" cy="38" r="11"/>' + text(x + 11, 42.5, str(k), "number", "middle") + text(x + 30, 43, words, "h"))
    found += [*declared(points, start), *mosaic(points, hit, 384, 118)]
    found += [text(684, 106, f"{hit.sum()} of {len(points)}", "big"), text(684, 130, "points are approved:"), text(684, 150, f"ρ = {row['rho']:.2f}, exact.")]
    found += [text(684, 186 + 20 * k, line) for k, line in enumerate(("Every approved point has", "a guarantor and a checking", "account at 0 or more."))]
    last = ("Nothing less works: all", f"{len(points)} points were asked.", f"For {stuck} of {people} people", "no point is approved.")
    return "\n".join([*found, *(text(684, 262 + 20 * k, line, "soft") for k, line in enumerate(last)), "</svg>", ""])


# -- the terminal -------------------------------------------------------------------------------------------------------


def terminal() -> None:
    """Put the output of ``budge demo`` into the README."""
    run = [sys.executable, "-c", "from budge.cli import main; raise SystemExit(main(['demo']))"]
    said = subprocess.run(run, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}).stdout
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BLOCK[0])
    _, after = rest.split(BLOCK[1])
    lines = "\n".join(line.rstrip() for line in said.strip().split("\n"))
    README.write_text(f"{before}{BLOCK[0]}{lines}\n{BLOCK[1]}{after}", encoding="utf-8")


# -- reports ------------------------------------------------------------------------------------------------------------


def lending_report(path: Path) -> Path:
    """Write the report of the demo's people."""
    data = datasets.lending(n=1500, seed=0)
    model = datasets.Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    im = budge.InteractionModel.from_file(datasets.spec_path("lending"))
    audit = budge.audit(model, data.X.iloc[1000:1300], im, target=1, threshold=0.1, harm="below")
    title = "Lending: who can turn a refusal around"
    return audit.to_html(path, by=["housing"], title=title, target_name="approval", people_name="refused applicants")


def survey_report(path: Path) -> Path:
    """Write the report of 30,000 people, from the folder of their run and with the model at hand."""
    data = datasets.lending(n=31_000, seed=0)
    model = datasets.Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    im = budge.InteractionModel.from_file(datasets.spec_path("lending"))
    words = budge.Wording(target_name="approval", people_name="refused applicants")
    audit = budge.audit(model, data.X.iloc[1000:], im, target=1, threshold=0.1, harm="below", groups="housing", wording=words)
    run = budge.Audit.load(audit.save(path.parent / "run"))
    return run.replay(model, data.X.iloc[1000:], im).to_html(path, title="30,000 people: who can turn a refusal around")


def german_report(path: Path) -> Path:
    """Write the report of two models of German credit, about those whom they refuse."""
    models, X, im = german()
    audit = budge.audit(models, X, im, target=1, threshold=0.1, harm="below")
    return audit.to_html(
        path, by=["Male"], title="German credit: who can turn a refusal around", target_name="approval", people_name="refused applicants",
        group_labels={"Male": {"0": "women", "1": "men"}},
    )  # fmt: skip


def reports() -> None:
    """Write the reports, open them, take the pictures."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        for name, make in (("german", german_report), ("lending", lending_report), ("survey", survey_report)):
            path = make(Path(folder) / f"{name}.html")
            for picture, section in REPORTS[name].items():
                context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True, color_scheme="light")
                page = context.new_page()
                page.goto(path.as_uri())
                page.evaluate("(id) => { if (id) document.getElementById(id).scrollIntoView(); }", section)
                page.screenshot(path=IMAGES / f"{picture}.png")
                context.close()
        browser.close()


def run_file(name: str) -> None:
    """Run another file of this folder, with no arguments."""
    given, sys.argv = sys.argv, [name]
    try:
        runpy.run_path(str(Path(__file__).with_name(name)), run_name="__main__")
    finally:
        sys.argv = given


def main(wanted: list[str]) -> None:
    """Remake the pictures that are named; all of them if none is."""
    makers = {
        "hero": lambda: (IMAGES / "hero.svg").write_text(hero(), encoding="utf-8"), "terminal": terminal, "report": reports,
        "drawings": lambda: run_file("draw_counting.py"), "page": lambda: run_file("page_screenshots.py"),
    }  # fmt: skip
    if strange := set(wanted) - set(makers):
        raise SystemExit(f"no such picture: {', '.join(sorted(strange))}; there are {', '.join(makers)}")
    for name, make in makers.items():
        if not wanted or name in wanted:
            make()
            print(f"remade: {name}")


if __name__ == "__main__":
    main(sys.argv[1:])
