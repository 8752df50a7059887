"""The paper's table, for a terminal, a notebook and a paper."""

from __future__ import annotations

import math
from html.parser import HTMLParser
from pathlib import Path

import budge
from budge import constraints
from budge.describe import Description

IM = budge.InteractionModel(
    {
        "age": {"type": "integer", "bounds": [18, 100], "actionable": False},
        "years": {"type": "integer", "bounds": [0, 60], "direction": "increase", "max_increase": 2},
        "debt": {"type": "real", "bounds": [0, 2.5], "direction": "decrease"},
        "home": {"type": "category", "levels": ["rent", "own"]},
        "wealth": {"type": "real", "bounds": [0, math.inf], "actionable": False},
        "id": "fixed",
    },
    [
        constraints.DirectionalLinkage("years", {"age": 1}, name="ageing"),
        constraints.IfThen("home == 'own'", "debt >= 1"),
        constraints.Rule("debt <= 0.1 * years"),
    ],
    [budge.Effect("debt", add="latent.u", clip=(0, 2.5))],
    {"u": "normal(0, 1)"},
    name="A few things",
)


def test_the_text_is_the_papers_table() -> None:
    assert str(IM) == str(IM.describe()) == (
        "A few things: 6 features, 3 parts, 3 constraints, 1 effect\n"
        "Name    Type                  LB   UB  Actionable  Sign            Joint constraints  Part\n"
        "age     integer               18  100  no                          1                  1\n"
        "years   integer                0   60  yes         + (at most +2)  1, 3               1\n"
        "debt    real                   0  2.5  yes         −               2, 3               1\n"
        "home    category (rent, own)           yes                         2                  1\n"
        "wealth  real                   0    ∞  no                                             2\n"
        "id      fixed                          no                                             3\n"
        "Constraints\n"
        "  1. Each unit that years moves changes age by exactly 1. (ageing)\n"
        "  2. If home == 'own', then debt >= 1.\n"
        "  3. debt <= 0.1 * years.\n"
        "Effects\n"
        "  1. latent u ~ normal(0, 1).\n"
        "  2. debt changes by latent.u, kept within 0 and 2.5."
    )  # fmt: skip


def test_the_frame_holds_values() -> None:
    frame = IM.describe().to_frame().set_index("name")
    assert frame.loc["age", ["lower", "upper", "actionable", "sign", "part"]].tolist() == [18, 100, False, 0, 1]
    assert frame["sign"].tolist() == [0, 1, -1, 0, 0, 0]
    assert frame.loc["debt", "joint_constraints"] == [2, 3]
    assert frame.loc["home", "levels"] == ["rent", "own"]
    assert frame.loc["wealth", "upper"] == math.inf
    assert len(set(frame["part"])) == len(IM.parts)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


DRAWN = {"svg", "title", "desc", "text", "rect", "polyline"}  # the partition as a graph


def test_nothing_in_a_name_becomes_html() -> None:
    evil = "<script>alert(1)</script>"
    im = budge.InteractionModel(
        {evil: {"type": "category", "levels": ["<b>", "&amp;"]}, "n": {"type": "binary"}},
        [constraints.Rule("n >= 0", name=evil)],
        name=evil,
    )
    page = Tags()
    page.feed(im._repr_html_())
    assert set(page.seen) == {"table", "caption", "thead", "tr", "th", "tbody", "td", "p", "b", "ol", "li"} | DRAWN
    assert page.text.count(evil) >= 3  # as text wherever it stands
    assert page.seen.count("tr") == 3


def test_nothing_in_a_name_steers_a_terminal() -> None:
    im = budge.InteractionModel({"a\x1b[31m\nb": {"type": "binary"}}, name="\x07")
    text = str(im)
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "\\x1b" in text


def test_latex_escapes_what_it_must() -> None:
    im = budge.InteractionModel(
        {"a_b%&#": {"type": "real", "bounds": [0, math.inf], "actionable": False}, "{x}\\": {"type": "binary"}}
    )
    latex = im.describe().to_latex()
    assert r"a\_b\%\&\# & real & 0 & $\infty$ & no" in latex
    assert r"\{x\}\textbackslash{} & binary" in latex
    assert latex.count(r"\\") == 3
    assert r"\begin{enumerate}" in IM.describe().to_latex()
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1


def test_warnings_are_shown() -> None:
    im = budge.InteractionModel({"n": {"type": "binary"}}, [constraints.Rule("n >= 0")])
    assert "Warnings" in str(im)
    assert "always holds" in str(im)


def test_every_study_has_a_table() -> None:
    for path in sorted((Path(__file__).parents[1] / "studies").glob("*.yaml")):
        im = budge.InteractionModel.from_file(path)
        description = Description(im)
        assert len(description.rows) == len(im.features)
        assert len(description.constraints) == len(im.constraints)
        joint = {int(n) for row in description.rows for n in row[6].split(", ") if n}
        assert joint == set(range(1, len(im.constraints) + 1))


def test_a_feature_in_very_many_constraints_does_not_widen_the_table() -> None:
    im = budge.InteractionModel({f"f{i}": {"type": "binary"} for i in range(40)}, [budge.constraints.Rule("f0 + f1 <= 1")] * 500)
    rows = str(im.describe()).splitlines()[1:42]
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, … (500 in all)" in rows[1]
    assert max(map(len, rows)) < 120
