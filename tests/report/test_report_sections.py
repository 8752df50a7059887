"""The sections of a report against the audit: the answer, groups, cases, models, and the figures that show them."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_kit import Page, approve, audited, generous, loans, unanswered

import budge
from budge import stats
from budge.cli import main
from budge.errors import InputError
from budge.report.answer import answer, marks_of
from budge.report.compared import compared
from budge.report.document import render
from budge.report.figures.dots import Gap, GroupShare, dots, points
from budge.report.figures.strip import CATEGORIES, WIDTHS, Marks, pile, strip, unit_of
from budge.report.figures.words import text_width
from budge.report.who import groups_of
from budge.wording import Wording

PLAIN = Wording()


# -- the answer -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", ["below", "above"])
@pytest.mark.parametrize("threshold", [0, 0.1, 0.3])
@pytest.mark.parametrize("method", ["exact", "sample"])
@pytest.mark.parametrize("population", ["all", "outside"])
def test_the_categories_are_everybody_and_agree_with_the_table(claim: str, threshold: float, method: str, population: str) -> None:
    audit = audited(threshold=threshold, method=method, population=population, claim=claim)
    table, marks = audit.table, marks_of(audit, "model")
    counts = {name: marks.count(name) for name in CATEGORIES}
    assert sum(counts.values()) == len(table) == len(marks.rho)
    assert counts["none"] == int((table["extreme"] == "none").sum())
    assert counts["above"] == int(((table["verdict"] == "above")).sum())
    drawn = table["method"].isin(("sample", "sequential", "weighted"))
    assert counts["nohit"] == int((drawn & (table["hits"] == 0)).sum())
    made = answer(audit, "model", PLAIN)
    assert sum(item["count"] for item in made.legend) == len(table)
    if method == "sample":
        assert not counts["none"] or not drawn.all()
        assert not re.search(r"have (no way at all|none at all)", made.headline) or counts["none"]
    word = {"below": "below", "above": "above"}[claim] if threshold or claim == "above" else "none"
    harmed = int(((table["verdict"] == word) | ((table["extreme"] == "none") & (claim == "below"))).sum())
    assert made.harmed == harmed
    assert ("left out" in " ".join(made.lede)) == (population == "outside")
    svg = strip(marks, threshold, "screen", axis="ρ")
    assert (f">{int((table['extreme'] == 'every').sum()) or 'nobody'}</text>" in svg.split('class="threshold"')[0])  # of draws nobody has every way
    for number in re.findall(r"\d+", re.sub(r"\(the output is 1\)|\d+\s%", "", made.headline)):
        assert int(number) in {len(table), harmed, counts["none"], audit.summary().open_ways, audit.summary().every_way, counts["open"], 0}


def test_the_words_of_the_user_are_used_everywhere() -> None:
    audit = audited(population="outside", groups="home")
    nouns = Wording(
        people_name="refused <i>", target_name="a loan & more", group_labels={"home": {"0": "renters", "1": "owners"}}, purpose="a test",
        auditor="somebody", threshold_reason="one in ten",
    )  # fmt: skip
    text = " ".join(Page(render(audit, nouns=nouns)).text.split())
    for words in ("of 19 refused <i>", "to a loan & more", "of renters", "of owners", "a test", "somebody", "one in ten"):
        assert words in text
    assert "home = 0" not in text
    plain = " ".join(Page(render(audit)).text.split())
    assert "home = 0" in plain
    assert "to the target (the output is 1)" in plain
    assert "Purpose" not in plain


@pytest.mark.parametrize("wrong", [{"people_name": 3}, {"target_name": "x" * 1000}, {"group_labels": {"a": "b"}}, {"feature_labels": {"a": 1}}])
def test_words_that_are_none(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        audited().to_html(tmp_path / "x.html", **wrong)
    assert not list(tmp_path.iterdir())


def test_words_from_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audited(population="outside", groups="home").save(tmp_path / "run")
    call = ["report", str(tmp_path / "run"), "--people-name", "applicants", "--target-name", "a loan", "--group-label", "home:1=owners"]
    assert main([*call, "--feature-label", "income=income now", "-q"]) == 0
    text = " ".join(Page((tmp_path / "run" / "report.html").read_text(encoding="utf-8")).text.split())
    assert "of 19 applicants" in text
    assert "of owners" in text
    for bad, words in ((["--group-label", "home=x"], "a column, a value and words"), (["--feature-label", "income"], "a name and words")):
        assert main([*call, *bad, "--overwrite", "-q"]) == 2
        assert words in capsys.readouterr().err


# -- figures --------------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 900), max_size=120), st.floats(1, 20))
@settings(max_examples=100, deadline=None)
def test_marks_never_overlap(places: list[float], gap: float) -> None:
    xs = sorted(places)
    levels = pile(xs, gap)
    for level in set(levels):
        row = [x for x, k in zip(xs, levels) if k == level]
        assert all(b - a >= gap for a, b in pairwise(row))
    assert not levels or set(levels) == set(range(max(levels) + 1))


def _marks(rho: Any) -> Marks:
    values = np.asarray(rho, dtype=float)
    names = np.where(values == 0, 0, np.where(values < 0.1, 2, np.where(values == 0.1, 3, 5)))
    return Marks(values, names.astype(np.int8), values == 0, values == 1)


@pytest.mark.parametrize("rho", [[0.5], [0.0] * 30, [1.0] * 30, [0.1] * 30, np.linspace(0, 1, 400), np.random.default_rng(0).beta(1, 2, 30_000).round(3)])
@pytest.mark.parametrize("medium", WIDTHS)
def test_the_strip_fits_its_width_and_shows_everybody(rho: Any, medium: str) -> None:
    marks = _marks(rho)
    svg = strip(marks, 0.1, medium, axis="ρ")
    unit = unit_of(marks)
    shapes = re.findall(r'<(?:rect|circle|path) class="m-\w+"', svg)
    assert len(rho) / unit - 6 <= len(shapes) <= len(rho) / unit + 6
    places = [float(x) for x in re.findall(r' c?x="([\d.]+)"', svg)]
    assert max(places) <= WIDTHS[medium]
    assert min(float(y) for y in re.findall(r' c?y="(-?[\d.]+)"', svg)) >= 0
    assert f"{len(rho):,} people" in svg
    words = [(float(y), text) for y, text in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>([^<]*)</text>', svg)]
    (axis,) = (y for y, text in words if text == "ρ")
    assert axis - max(y for y, text in words if text != "ρ") >= 16  # no word beside it


def test_dots_show_the_shares_and_escape_names() -> None:
    groups = [GroupShare("<b>", 100, 30, 0.3, 0.2, 0.4), GroupShare("b", 50, 0, 0.0, 0.0, 0.1)]
    for medium, width in WIDTHS.items():
        svg = dots(groups, Gap("<b>", "b", 0.3, -0.1, 0.4), medium, about="share")
        assert "<b>" not in svg
        assert "30 of 100" in svg
        assert max(float(x) for x in re.findall(r' c?x="([\d.]+)"', svg)) <= width
    assert dots([GroupShare("a", 1, 1, 1.0, 0.02, 1.0)] * 2, None, "phone", about="share")


@pytest.mark.parametrize("high", [0.1, 0.33, 0.61, 0.75, 0.836, 0.97, 1.0])
def test_numbers_of_the_axis_of_shares_are_round(high: float) -> None:
    svg = dots([GroupShare("sex = b", 9, 1, 1 / 9, 0.0, high, "b")], None, "screen", about="share")
    ticks = [int(n) for n in re.findall(r'text-anchor="middle">(\d+)(?:\u00a0%)?</text>', svg)]
    assert len(ticks) >= 2
    assert all(tick % 10 == 0 for tick in ticks)
    assert ticks[-1] <= 100
    assert ticks[-1] >= 100 * high
    assert ">b</text>" in svg  # the short name: the section names the column


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (-0.6, 0.4), (0.0, 0.05)])
def test_numbers_of_the_axis_of_a_difference_have_room(ends: tuple[float, float]) -> None:
    groups = [GroupShare("a", 9, 3, 1 / 3, 0.1, 0.7), GroupShare("b", 9, 1, 1 / 9, 0.0, 0.5)]
    for medium in WIDTHS:
        axis = dots(groups, Gap("a", "b", 0.01, *ends), medium, about="share").split("minus b")[-1]
        places = [float(x) for x in re.findall(r'<text class="quiet" x="([\d.]+)"', axis)]
        assert min(places) >= 16
        assert min(b - a for a, b in pairwise(places)) >= 28


@pytest.mark.parametrize("medium", WIDTHS)
@pytest.mark.parametrize(("value", "low", "high"), [(0.16, -0.156, 0.601), (-0.05, -0.064, 0.1001), (-0.999, -1.0, -0.201), (0.999, 0.201, 1.0)])
def test_the_numbers_of_a_difference_lie_inside_the_figure(medium: str, value: float, low: float, high: float) -> None:
    groups = [GroupShare("a", 9, 3, 1 / 3, 0.1, 0.7), GroupShare("b", 9, 1, 1 / 9, 0.0, 0.5)]
    drawn = dots(groups, Gap("a", "b", value, low, high), medium, about="share")
    x, anchor, words = re.findall(r'<text x="([\d.]+)" y="[\d.]+" text-anchor="(\w+)">(.*?)</text>', drawn)[-1]
    wide, at = text_width(re.sub(r"<.*?>", "", words), 13), float(x)
    left = at - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * wide
    assert left >= 0
    assert left + wide <= WIDTHS[medium] - 13  # fonts differ
    assert f"({points(low)} to {points(high)})" in words


def test_people_without_a_way_and_without_a_hit_are_told_apart() -> None:
    marks = Marks(np.zeros(3), np.array([0, 1, 1], np.int8), np.ones(3, bool), np.zeros(3, bool))
    assert "or no hit" in strip(marks, 0.1, "screen", axis="ρ")


# -- groups ---------------------------------------------------------------------------------------------------------------


def test_intervals_of_groups_are_those_of_the_statistics() -> None:
    audit = audited(population="outside", groups="home", threshold=0.3)
    found = groups_of(audit, "home", "model", 0.05, PLAIN)
    rows = audit.table.assign(home=audit.group("home"))
    counts = {g: (int((own["verdict"] == "below").sum()), len(own)) for g, own in rows.groupby("home")}
    (k0, n0), (k1, n1) = counts[0], counts[1]
    gap = stats.difference(*((k0, n0, k1, n1) if k0 / n0 >= k1 / n1 else (k1, n1, k0, n0)), alpha=0.05)
    assert f"{100 * gap.low:.1f} to {100 * gap.high:.1f}".replace("-", "−") in found.sentence
    low, high = stats.interval(k0, n0, alpha=0.025)
    assert f"home = 0: {100 * k0 / n0:.0f}\u00a0%, between {100 * low:.0f}\u00a0% and {100 * high:.0f}\u00a0%" in found.figures["screen"]
    assert "exact" in found.caption
    drawn = groups_of(audited(population="outside", groups="home", threshold=0.3, method="sample"), "home", "model", 0.05, PLAIN)
    assert "random sample" not in drawn.caption
    assert "random sample" not in drawn.sentence


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_p_value_of_a_difference_agrees_with_its_interval(columns: int) -> None:
    home = ["a"] * 99 + ["b"] * 65
    ok = [k >= 29 for k in range(99)] + [k >= 9 for k in range(65)]
    X = pd.DataFrame({"free": 0, "ok": np.array(ok, int), "home": home, "second": np.arange(164) % 2, "third": np.arange(164) % 3})
    fixed = ["home", "second", "third"]
    im = budge.InteractionModel([budge.Feature("free", "binary"), budge.Feature("ok", "binary", actionable=False), *(budge.Feature(c, "fixed") for c in fixed)])
    audit = budge.audit(lambda t: ((t["free"] == 1) & (t["ok"] == 1)).astype(int), X, im, target=1, groups=fixed[:columns])
    found = groups_of(audit, "home", "model", 0.05 / columns, PLAIN)
    p = float(re.findall(r"p = ([\d.]+)", found.caption)[0])
    assert ("may be nil" in found.sentence) == (p >= 0.05)
    assert p == pytest.approx(columns * stats.difference(29, 99, 9, 65).p_value, rel=0.05)
    assert ("adjusted for" in found.caption) == (columns > 1)


def test_many_groups_are_a_table_only() -> None:
    audit = audited(population="all")
    many = pd.Series(np.arange(40) % 12, index=audit.table.index, name="club")
    found = groups_of(audit, many, "model", 0.05, PLAIN)
    assert found.figures == {}
    assert len(found.rows) == 12
    assert found.heading.startswith("By club, the share with almost no way runs from ")


def test_shares_that_are_known_are_one_number_and_no_difference() -> None:
    audit = audited(population="all")
    half = pd.Series(np.arange(40) % 2, index=audit.table.index, name="half")  # 3 of 20 each
    table = audit.by(half)
    assert (table["low"] == table["high"]).all()
    found = groups_of(audit, half, "model", 0.05, PLAIN)
    for row in found.rows:
        assert row["below"]["low"] == row["below"]["high"]
    assert not any(pair["apart"] for pair in found.pairs)
    assert render(audit, by=half) == render(audit, by=[half])


def test_groups_state_how_sure_they_are() -> None:
    sure = audited(population="outside", groups="home", threshold=0.3, method="sample")
    rows = {n: replace(r, counts=replace(r.counts, approximate=np.ones(len(r.index), bool))) for n, r in sure.rows.items()}
    rough = groups_of(replace(sure, rows=rows), "home", "model", 0.05, PLAIN)
    lost = groups_of(unanswered(), "home", "model", 0.05, PLAIN)
    for found, words in ((rough, "approximately; no error rate is guaranteed"), (lost, "whatever the missing answers are")):
        for text in (found.sentence, found.caption):
            assert words in text
            assert "confidence" not in text


def test_people_who_could_not_be_judged_are_counted() -> None:
    X, im = loans()
    X.loc["p7", ["job", "income"]] = ["full", 1]
    found = answer(budge.audit(approve, X, im, target=1, design=budge.Design(on_invalid="skip")), "model", PLAIN)
    assert "1 more could not be judged (invalid start)." in " ".join(found.lede)


# -- models and rules -----------------------------------------------------------------------------------------------------


def test_two_models_meet_in_one_table() -> None:
    X, im = loans()
    audit = budge.audit({"strict": approve, "generous": generous}, X, im, target=1, threshold=0.3)
    found = compared(audit, PLAIN)
    assert found is not None
    (pair,) = found["pairs"]
    assert sum(pair["sums"]) == len(X)
    strict, kind = (audit.of_model(name) for name in ("strict", "generous"))
    both = strict.index.intersection(kind.index)
    assert found["people"] == len(both)
    first, second = (table.loc[both, "verdict"] == "below" for table in (strict, kind))
    assert int((first & ~second).sum()) == 1
    assert f"1 has almost no way under strict alone, and {int((~first & second).sum())} under generous alone" in pair["sentence"]
    assert {row["model"]: row["shared"] for row in found["rows"]} == {"strict": int(first.sum()), "generous": int(second.sum())}
    has = pair["names"].index("has it now")
    assert pair["counts"][has][has] == len(X) - len(strict.index.union(kind.index))
    stuck = [name in ("no way", "almost none") for name in pair["names"]]
    assert pair["tints"] == [[stuck[a] != stuck[b] and count > 0 for b, count in enumerate(row)] for a, row in enumerate(pair["counts"])]
    assert np.array(pair["tints"]).any()
    assert compared(audited(), PLAIN) is None


@pytest.mark.parametrize("threshold", [0, 0.3])
def test_models_are_compared_by_the_claim(threshold: float) -> None:
    X, im = loans()
    found = compared(budge.audit({"one": approve, "two": generous}, X, im, target=1, threshold=threshold, claim="above"), PLAIN)
    assert found is not None
    assert ("with some way" if threshold == 0 else "with ρ above 0.3") in found["heading"]


def test_ends_of_a_share_that_read_alike_are_one_number() -> None:
    X, im = loans()
    X = X.iloc[:12]
    audit = budge.audit(generous, X, im, target=1, method="sample", n=60, threshold=0.2, population="all")
    share = audit.summary().share
    assert share is not None
    assert share.low == pytest.approx(share.high)
    lede = " ".join(answer(audit, "model", audit.wording).lede)
    assert "between" not in lede
    assert "8.3 % of these people are below the threshold (95 % confidence)" in lede


def test_who_is_below_the_threshold_of_the_other_claim_has_less_and_not_almost_none() -> None:
    X, im = loans()
    audit = budge.audit({"strict": approve, "generous": generous}, X, im, target=1, claim="above", threshold=0.9, population="all")
    found = compared(audit, audit.wording)
    assert found is not None
    assert "less" in found["pairs"][0]["names"]
    assert "almost none" not in found["pairs"][0]["names"]
