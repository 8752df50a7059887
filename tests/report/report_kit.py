"""What the tests of the report share: small audits, and a reader of HTML that trusts nothing."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import budge
from budge import Feature, InteractionModel, constraints

VOID = {"meta", "br", "input", "link", "img", "hr", "line", "rect", "circle", "polyline", "polygon", "path", "wbr"}


class Page(HTMLParser):
    """Tags, attributes and texts of a page; elements must close in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.wrong: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        self.wrong += [f"never closed: {tag}" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
            return
        self.texts.append(data)
        if self.rows and self.rows[-1] and ("td" in self.open or "th" in self.open):
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(self.texts)

    @property
    def data(self) -> Any:
        return json.loads(self.scripts[0])


def read(path: Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


def loans() -> tuple[pd.DataFrame, InteractionModel]:
    im = InteractionModel(
        [
            Feature("income", "integer", bounds=(0, 9), max_increase=2, direction="increase"),
            Feature("savings", "integer", bounds=(0, 4)),
            Feature("home", "binary", actionable=False),
            Feature("job", "category", levels=("none", "part", "full")),
        ],
        [
            constraints.LinearConstraint({"income": 1, "savings": 1}, "<=", 2, on="action", name="effort"),
            constraints.IfThen("job == 'full'", "income >= 3", name="a full job pays"),
        ],
        name="loans",
    )
    rng = np.random.default_rng(4)
    X = pd.DataFrame(
        {
            "income": rng.integers(0, 10, 40), "savings": rng.integers(0, 5, 40), "home": rng.integers(0, 2, 40),
            "job": rng.choice(["none", "part"], 40),
        },
        index=[f"p{k}" for k in range(40)],
    )  # fmt: skip
    return X, im


def approve(table: pd.DataFrame) -> np.ndarray:
    full = table["job"].astype(str) == "full"
    score = table["income"].astype(float) + table["savings"].astype(float) + 2 * table["home"].astype(float) + 2 * full
    return (score >= 9).to_numpy().astype(int)


def generous(table: pd.DataFrame) -> np.ndarray:
    return (table["income"].astype(float) + table["savings"].astype(float) >= 3).to_numpy().astype(int)


def audited(**options: Any) -> Any:
    X, im = loans()
    return budge.audit(options.pop("model", approve), X, im, target=1, harm="below", **{"population": "all", **options})


def unanswered() -> Any:
    """Return an audit of a model that gives no answer about some points."""
    X, im = loans()
    starts = set(map(tuple, X.astype(str).to_numpy()))

    def model(table: pd.DataFrame) -> Any:
        lost = [tuple(row) not in starts for row in table[X.columns].astype(str).to_numpy()]
        return np.where(np.array(lost) & (table["savings"].astype(float) == 4).to_numpy(), np.nan, approve(table))

    design, checks = budge.Design(max_unresolved=1.0), budge.Execution(check=False)
    return budge.audit(model, X, im, target=1, groups="home", design=design, execution=checks)
