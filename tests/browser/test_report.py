"""The report in a browser: found, sorted, filtered, by mouse and by keyboard, offline, without a request and without an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
from report_kit import approve, audited, generous, loans, unanswered


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    audit = audited()
    return audit, audit.to_html(tmp_path_factory.mktemp("browser") / "report.html", by=["home"], title="Loans <b>& co</b>")


def quiet(page: Any, path: Path) -> None:
    """No trouble, and nothing was asked for but the file."""
    assert page.trouble == []
    assert page.asked == [path.as_uri()]


def rows(page: Any, many: int) -> None:
    """Wait until the table has so many rows (the policy of the file allows no evaluated text)."""
    from playwright.sync_api import expect

    expect(page.locator("#everybody tbody tr")).to_have_count(many)


def first_cells(page: Any, column: int) -> list[str]:
    return [text.strip() for text in page.locator(f"#everybody tbody tr > :nth-child({column})").all_inner_texts()]


def test_find_sort_and_filter(report: tuple[Any, Path], open_page: Any) -> None:
    audit, path = report
    with open_page(path.as_uri()) as page:
        assert page.title() == "Loans <b>& co</b>"
        assert page.locator("#everybody tbody tr").count() == 40
        page.fill("#find", "p17")
        rows(page, 1)
        assert first_cells(page, 1) == ["p17"]
        assert page.inner_text("#count") == "1 of 40 people"
        page.fill("#find", "")
        rows(page, 40)
        page.select_option("#verdict", "below")
        assert {cell.split("\n")[0] for cell in first_cells(page, 6)} == {"below"}
        assert page.locator("#everybody tbody tr").count() == int((audit.table["verdict"] == "below").sum())
        page.select_option("#verdict", "")
        page.click("#everybody th[data-key=rho] button")
        assert page.get_attribute("#everybody th[data-key=rho]", "aria-sort") == "ascending"
        rho = [float(text) for text in first_cells(page, 3)]
        assert rho == sorted(rho)
        page.click("#everybody th[data-key=rho] button")
        rho = [float(text) for text in first_cells(page, 3)]
        assert rho == sorted(rho, reverse=True)
        np.testing.assert_allclose(rho, np.sort(audit.table["rho"])[::-1], rtol=0.006, atol=1e-3)
        page.click("#everybody th[data-key=label] button")
        assert first_cells(page, 1) == [f"p{k}" for k in range(40)]  # p2 before p10
        page.click("#everybody th[data-key=moves] button")
        steps = [0 if text == "–" else text.count("→") for text in first_cells(page, 8)]
        assert steps == sorted(steps)
        assert len(set(steps)) > 1
        page.fill("#find", "no way at all")
        rows(page, int((audit.table["extreme"] == "none").sum()))
        quiet(page, path)


def test_words_sort_as_words_and_what_is_not_known_comes_last(tmp_path: Path, open_page: Any) -> None:
    audit = unanswered()
    with open_page(audit.to_html(tmp_path / "report.html").as_uri()) as page:
        unknown = int(audit.table["rho"].isna().sum())
        assert 0 < unknown < len(audit.table)
        for key, column in (("rho", 3), ("verdict", 6)):
            for turn in (1, -1):
                page.click(f"#everybody th[data-key={key}] button")
                cells = [cell.split("\n")[0] for cell in first_cells(page, column)]
                if key == "rho":
                    known = [float(cell) for cell in cells[:-unknown]]
                    assert known == sorted(known)[::turn]
                    assert set(cells[-unknown:]) == {"–"}
                else:
                    assert cells == sorted(cells)[::turn]


def test_by_keyboard_alone(report: tuple[Any, Path], open_page: Any) -> None:
    _, path = report
    with open_page(path.as_uri()) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.focus("#find")
        page.keyboard.type("p3")
        rows(page, 11)  # p3 and p30 to p39
        assert first_cells(page, 1)[0] == "p3"
        page.focus("#everybody th[data-key=rho] button")
        page.keyboard.press("Enter")
        assert page.get_attribute("#everybody th[data-key=rho]", "aria-sort") == "ascending"
        rho = [float(text) for text in first_cells(page, 3)]
        assert rho == sorted(rho)
        page.keyboard.press("Space")
        assert page.get_attribute("#everybody th[data-key=rho]", "aria-sort") == "descending"
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid"


def test_without_javascript(report: tuple[Any, Path], open_page: Any) -> None:
    audit, path = report
    with open_page(path.as_uri(), java_script_enabled=False) as page:
        text = page.inner_text("body")
        assert "With JavaScript it can be sorted and searched" in text
        assert page.locator("#everybody tbody tr").count() == 40
        assert str(audit.summary()).split("\n")[1] in text
        assert page.locator("#controls").is_hidden()
        quiet(page, path)


def test_light_and_dark(report: tuple[Any, Path], open_page: Any) -> None:
    _, path = report
    ground = "getComputedStyle(document.body).backgroundColor"
    with open_page(path.as_uri(), color_scheme="dark") as page:
        assert page.evaluate(ground) == "rgb(20, 23, 28)"
        page.click("#theme")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        quiet(page, path)
    with open_page(path.as_uri(), color_scheme="light") as page:
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.click("#theme")
        assert page.evaluate(ground) == "rgb(20, 23, 28)"
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        assert page.locator("#theme").is_hidden()
        assert page.locator("#controls").is_hidden()


def several() -> Any:
    """Return an audit of two models in groups, which has all sections; the first model judges nobody."""
    X, im = loans()
    models = {"yes": lambda t: np.ones(len(t), dtype=int), "points": approve, "generous": generous}
    return budge.audit(models, X, im, target=1, threshold=0.3, groups="home")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return several().to_html(tmp_path_factory.mktemp("browser") / "whole.html")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with names of 60 characters and 40 features."""
    names = [f"a rather long name of a feature, which has the number {k:02d}, {'x' * 60}"[:60] for k in range(40)]
    im = budge.InteractionModel([budge.Feature(n, "binary", actionable=k < 6) for k, n in enumerate(names)], name="x" * 60)
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (30, 40)), columns=names, index=[f"a person of a long label {'y' * 40} {k}" for k in range(30)])
    model = {"m" * 60: lambda t: (t.to_numpy(dtype=float)[:, :12].sum(axis=1) > 7).astype(int)}
    return budge.audit(model, X, im, target=1).to_html(tmp_path_factory.mktemp("browser") / "long.html", by=[names[9]])


#: Texts that are drawn smaller than 11 px, a figure's own scale included.
SMALL = """() => [...document.querySelectorAll("body *")].filter((e) => {
  if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || e.getBoundingClientRect().width < 2) return false;
  const svg = e.closest("svg"), scale = svg && svg.viewBox.baseVal.width ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
  return parseFloat(getComputedStyle(e).fontSize) * scale < 10.99;
}).map((e) => e.outerHTML.slice(0, 90))"""


@pytest.mark.parametrize("kind", ["whole", "long"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light")])
def test_axe_finds_nothing_and_the_page_fits(kind: str, width: int, scheme: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe-core is in the `browser` extra")
    path = request.getfixturevalue(kind)
    rules = next(Path(axe.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
    with open_page(path.as_uri(), viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True) as page:
        page.evaluate(rules)
        found = page.evaluate("axe.run()")
        assert [(v["id"], [node["html"][:90] for node in v["nodes"]]) for v in found["violations"]] == []
        assert len(found["passes"]) > 20  # it looked
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(SMALL) == []
        page.add_style_tag(content="p { color: #767676 !important; background: #555 }")  # a planted fault is seen
        assert page.evaluate("axe.run()")["violations"] != []


@pytest.mark.parametrize("kind", ["whole", "long"])
def test_nothing_is_wider_than_the_paper(kind: str, open_page: Any, request: pytest.FixtureRequest) -> None:
    """A4 without its margins is 680 px wide; chromium would scale a wider page down."""
    wider = """() => [...document.querySelectorAll("table, svg, pre, figure")].filter((e) => e.getBoundingClientRect().right > 681)
      .map((e) => e.outerHTML.slice(0, 90))"""
    with open_page(request.getfixturevalue(kind).as_uri(), viewport={"width": 680, "height": 900}) as page:
        page.emulate_media(media="print")
        assert page.evaluate(wider) == []


def test_print_opens_what_is_folded(report: tuple[Any, Path], open_page: Any) -> None:
    with open_page(report[1].as_uri()) as page:
        folded = page.locator("details pre").first
        assert folded.is_hidden()
        page.emulate_media(media="print")
        assert folded.is_visible()


def test_tables_of_cases_fit_their_column(open_page: Any, tmp_path: Path) -> None:
    """Long names of features wrap, so that the cell of the least change is seen without scrolling."""
    names = ["HistoryOfBankInstallments", "HistoryOfStoreInstallments", "YearsAtResidence", "HasGuarantor"]
    im = budge.InteractionModel([budge.Feature(name, "binary") for name in names])
    audit = budge.audit(lambda t: (t[names].sum(axis=1) > 3).astype(int), pd.DataFrame([[0, 0, 0, 0]], columns=names), im, target=1)
    path = audit.to_html(tmp_path / "one.html", why=False)
    for width in (1280, 390):
        with open_page(path.as_uri(), viewport={"width": width, "height": 900}) as page:
            assert page.evaluate("(() => { const box = document.querySelector('.case .scroll'); return box.scrollWidth - box.clientWidth; })()") <= 0


def test_captions_are_read_without_scrolling_and_everybody_stays_short(open_page: Any, tmp_path: Path) -> None:
    """A table may be wider than a phone, its caption is not; the table of everybody scrolls in a box whose heads stay, and is whole on paper."""
    path = audited(method="sample", groups="home").to_html(tmp_path / "drawn.html", why=False)
    with open_page(path.as_uri(), viewport={"width": 390, "height": 900}) as page:
        ends = page.evaluate("[...document.querySelectorAll('caption span')].map((e) => e.getBoundingClientRect().right)")
        assert ends
        assert max(ends) <= 390
        assert page.evaluate("document.querySelector('.tall').clientHeight") <= 600
        page.evaluate("document.querySelector('.tall').scrollTop = 500")
        head, box = (page.evaluate(f"document.querySelector('{which}').getBoundingClientRect().top") for which in (".tall thead th", ".tall"))
        assert abs(head - box) < 3
        page.emulate_media(media="print")
        assert page.evaluate("document.querySelector('.tall').scrollHeight - document.querySelector('.tall').clientHeight") <= 1


def test_everybody_and_drawn_groups_are_seen_without_scrolling_sideways(open_page: Any, tmp_path: Path) -> None:
    """A phone shows person, responsiveness, verdict and witness; a drawn group's last column is in sight on a screen."""
    path = audited(method="sample", groups="home").to_html(tmp_path / "drawn.html", why=False)
    for width, media, seen in ((1280, "screen", 8), (390, "screen", 4), (390, "print", 8)):
        with open_page(path.as_uri(), viewport={"width": width, "height": 900}) as page:
            page.emulate_media(media=media)
            shown = page.evaluate("[...document.querySelectorAll('#everybody thead th')].filter((e) => e.checkVisibility()).map((e) => e.textContent.trim())")
            assert len(shown) == seen
            assert {"Person", "ρ", "Verdict", "Nearest witness"} <= set(shown)
            wide = "(which) => { const box = document.querySelector(which); return box.scrollWidth - box.clientWidth; }"
            assert media == "print" or page.evaluate(f"({wide})('.tall')") <= 30
            assert width == 390 or page.evaluate(f"({wide})('#who .scroll')") <= 0


def test_figures_of_cases_are_open_and_each_medium_has_its_own_strip(whole: Path, open_page: Any) -> None:
    for width, shown in ((1280, "screen"), (390, "phone")):
        with open_page(whole.as_uri(), viewport={"width": width, "height": 900}) as page:
            assert page.locator(".case table.mosaic").first.is_visible()
            assert page.locator("details .mosaic").count() == 0
            for medium in ("screen", "phone", "paper"):
                assert page.locator(f"#answer .on-{medium}").is_visible() == (medium == shown)


def test_the_model_is_chosen_and_the_first_is_the_one_of_the_answer(whole: Path, open_page: Any) -> None:
    audit = several()
    with open_page(whole.as_uri()) as page:
        assert "model points" in page.inner_text("#answer .kicker")
        assert page.locator("#which option:checked").inner_text() == "points"
        rows(page, len(audit.of_model("points")))
        page.select_option("#which", label="generous")
        rows(page, len(audit.of_model("generous")))
        assert first_cells(page, 1) == list(audit.of_model("generous").index)
        page.select_option("#which", label="yes")
        rows(page, 0)
        page.select_option("#method", "")
        quiet(page, whole)


def test_what_is_saved_is_what_is_found(report: tuple[Any, Path], open_page: Any) -> None:
    audit, path = report
    with open_page(path.as_uri()) as page:
        page.select_option("#verdict", "below")
        with page.expect_download() as download:
            page.click("#export")
        saved = pd.read_csv(download.value.path(), index_col="person")
        below = audit.table[audit.table["verdict"] == "below"]
        assert list(saved.index) == list(below.index)
        assert saved["hits"].tolist() == below["hits"].tolist()
        page.select_option("#verdict", "")
        page.select_option("#method", "exact")
        rows(page, int((audit.table["method"] == "exact").sum()))


def test_links_lead_to_sections(whole: Path, open_page: Any) -> None:
    with open_page(whole.as_uri()) as page:
        for link in page.locator("a[href^='#']").all():
            assert page.locator(link.get_attribute("href")).count() == 1, link.get_attribute("href")
        assert page.locator("nav a").all_inner_texts() == ["Answer", "Who", "Why", "Cases", "Models", "Trust", "Appendix"]


def test_it_prints(report: tuple[Any, Path], open_page: Any) -> None:
    with open_page(report[1].as_uri()) as page:
        page.emulate_media(media="print")
        assert page.locator("nav b").is_visible()  # a printed page states what it is
        assert not any(link.is_visible() for link in page.locator("nav a").all())
        printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF")
    assert len(printed) > 20_000


def test_hostile_names_in_the_browser(tmp_path: Path, open_page: Any) -> None:
    """Nothing runs, and what a spreadsheet would run is tamed in the table that is saved."""
    evil = "</script><img src=x onerror=alert(1)>"
    im = budge.InteractionModel([budge.Feature(evil, "integer", bounds=(0, 5), max_increase=2)], name=evil)
    X = pd.DataFrame({evil: [0, 3]}, index=["=HYPERLINK(\"http://x\")", "<script>alert(1)</script>"])
    audit = budge.audit({evil: lambda t: (t[evil] > 4).astype(int)}, X, im, target=1)
    path = audit.to_html(tmp_path / "evil.html", title=evil)
    with open_page(path.as_uri()) as page:
        page.on("dialog", lambda dialog: page.trouble.append(f"dialog {dialog.message}"))
        assert page.title() == evil
        assert first_cells(page, 1) == list(X.index)
        page.fill("#find", "<script>")
        rows(page, 1)
        page.fill("#find", "")
        rows(page, 2)
        assert page.locator("img").count() == 0
        with page.expect_download() as download:
            page.click("#export")
        saved = Path(download.value.path()).read_text(encoding="utf-8")
        assert "\"'=HYPERLINK(\"\"http://x\"\")\"" in saved
        assert saved.split("\r\n")[0].startswith("person,prediction")
        assert page.trouble == []


def test_thirty_thousand_people_open_in_three_seconds(tmp_path: Path, open_page: Any, chromium: Any) -> None:
    X, im = loans()
    many = X.sample(30_000, replace=True, random_state=0).reset_index(drop=True)
    audit = budge.audit(approve, many, im, target=1, method="sample", n=100, population="all")
    path = audit.to_html(tmp_path / "many.html")
    assert path.stat().st_size < 10_000_000
    with open_page(path.as_uri()) as page:
        took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
        assert took < 3000
        assert page.inner_text("#count") == "30,000 of 30,000 people"
        assert page.locator("#everybody tbody tr").count() == 100
        page.fill("#find", "29999")
        page.locator("#everybody tbody tr:first-child th", has_text="29999").wait_for()
        page.fill("#find", "")
        page.click("#next")
        assert page.inner_text("#where") == "Page 2 of 300"
        quiet(page, path)


def test_the_first_screen_states_what_to_do(whole: Path, open_page: Any) -> None:
    with open_page(whole.as_uri(), viewport={"width": 1280, "height": 900}) as page:
        steps = page.locator(".then a")
        assert steps.count() == page.locator(".next li").count() > 0
        for k in range(steps.count()):
            box = steps.nth(k).bounding_box()
            assert box is not None
            assert box["y"] + box["height"] < 900
            assert page.locator(str(steps.nth(k).get_attribute("href"))).count() == 1


def test_columns_have_fixed_decimals_and_read_alike_without_the_script(open_page: Any, tmp_path: Path) -> None:
    """Shares have three decimals, more where these would be nothing or all; the script writes what the file shows without it."""
    free, fixed = budge.Feature("x", "integer", bounds=(0, 9999)), budge.Feature("least", "integer", bounds=(0, 9999), actionable=False)
    im = budge.InteractionModel([free, fixed])
    X = pd.DataFrame({"x": 0, "least": [9999, 9375, 5000, 1, 9000, 1234]})
    exact = budge.audit(lambda t: (t["x"] >= t["least"]).astype(int), X, im, target=1)
    drawn = budge.audit(lambda t: (t["x"] >= t["least"]).astype(int), X, im, target=1, method="sample")
    for audit, shares in ((exact, ["0.0001", "0.063", "0.500", "0.9999", "0.100", "0.877"]), (drawn, None)):
        path = audit.to_html(tmp_path / "decimals.html", overwrite=True)
        texts = []
        for script in (True, False):
            with open_page(path.as_uri(), java_script_enabled=script) as page:
                rows(page, 6)
                texts.append((first_cells(page, 3), first_cells(page, 4)))
        assert texts[0] == texts[1]
        assert shares is None or texts[0][0] == shares
