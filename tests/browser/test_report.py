"""The report in a browser: found, sorted, switched, by mouse and by keyboard, offline, without a request and without an error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "report"))
from report_kit import approve, audited, loans

TOOLS = "globalThis.budgeTests = (tools) => { globalThis.tools = tools; };"


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
        assert set(first_cells(page, 6)) == {"below"}
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
        quiet(page, path)


def test_switches_say_what_the_library_computes(report: tuple[Any, Path], open_page: Any) -> None:
    """Every switch alone, and two together, for one person: exactly ρ of the relaxed interaction model."""
    audit, path = report
    X, im = loans()
    with open_page(path.as_uri()) as page:
        label = page.evaluate("JSON.parse(document.getElementById('data').textContent).live.people[2].label")
        page.select_option("#whom", label=label)
        assert float(page.get_attribute("#result-rho", "data-value")) == pytest.approx(audit.table["rho"][label], abs=1e-6)
        before = float(page.get_attribute("#result-rho", "data-value"))
        moved = 0
        names = {
            "drop effort": im.without("effort"),
            "drop a full job pays": im.without("a full job pays"),
            "free home": im.relax("home", what="actionable"),
            "lift steps of income": im.relax("income", what="steps"),
            "lift direction of income": im.relax("income", what="direction"),
        }
        order = page.evaluate("JSON.parse(document.getElementById('data').textContent).live.toggles.map(t => t.name)")
        assert set(order) == set(names)
        for name, relaxed in names.items():
            box = page.locator(f"[data-switch='{order.index(name)}']")
            box.uncheck()
            rho = float(page.get_attribute("#result-rho", "data-value"))
            truth = budge.audit(approve, X.loc[[label]], relaxed, target=1, method="exact").table["rho"].iloc[0]
            assert rho == pytest.approx(truth, abs=1e-12), name
            assert "Exactly" in page.inner_text("#result-text")
            moved += rho != before
            box.check()
        assert moved >= 2
        for name in ("drop effort", "lift steps of income"):
            page.locator(f"[data-switch='{order.index(name)}']").uncheck()
        both = budge.audit(approve, X.loc[[label]], im.without("effort").relax("income", what="steps"), target=1, method="exact").table["rho"].iloc[0]
        assert float(page.get_attribute("#result-rho", "data-value")) == pytest.approx(both, abs=1e-12)
        page.click("#all-on")
        assert float(page.get_attribute("#result-rho", "data-value")) == before
        quiet(page, path)


def test_the_mean_is_that_of_the_people_carried(report: tuple[Any, Path], open_page: Any) -> None:
    audit, path = report
    X, im = loans()
    with open_page(path.as_uri()) as page:
        people = page.evaluate("JSON.parse(document.getElementById('data').textContent).live.people.filter(p => p.mean).map(p => p.label)")
        assert float(page.get_attribute("#result-rho", "data-value")) == pytest.approx(audit.table["rho"][people].mean(), abs=1e-6)
        page.locator("[data-switch='0']").uncheck()
        truth = budge.audit(approve, X.loc[people], im.without("effort"), target=1, method="exact").table["rho"].mean()
        assert float(page.get_attribute("#result-rho", "data-value")) == pytest.approx(truth, abs=1e-9)
        assert f"over {len(people)} people" in page.inner_text("#result-text")


def test_combinations_that_are_not_carried_are_refused(tmp_path: Path, open_page: Any) -> None:
    """Drawn sets: an interval from the file's own statistics, and no number where too few draws are left."""
    im = budge.InteractionModel(
        [budge.Feature(name, "real", bounds=(0.0, 10.0), max_increase=1.0, max_decrease=1.0) for name in "ab"]
        + [budge.Feature("c", "real", bounds=(0.0, 10.0), actionable=False), budge.Feature("d", "real", bounds=(0.0, 10.0), actionable=False)]
    )
    X = pd.DataFrame({"a": [5.0, 4.0], "b": [5.0, 5.0], "c": [1.0, 1.0], "d": [1.0, 2.0]})
    audit = budge.audit(lambda t: (t["a"] + t["b"] + t["c"] > 12).astype(int), X, im, target=1, n=300)
    path = audit.to_html(tmp_path / "drawn.html")
    with open_page(path.as_uri()) as page:
        names = page.evaluate("JSON.parse(document.getElementById('data').textContent).live.toggles.map(t => t.name)")
        page.select_option("#whom", "0")
        row = audit.table.iloc[0]
        assert float(page.get_attribute("#result-rho", "data-low")) == pytest.approx(row["low"], abs=1e-9)
        assert float(page.get_attribute("#result-rho", "data-high")) == pytest.approx(row["high"], abs=1e-9)
        page.locator(f"[data-switch='{names.index('free c')}']").uncheck()
        assert "points; between" in page.inner_text("#result-text")
        page.locator(f"[data-switch='{names.index('free d')}']").uncheck()
        assert page.inner_text("#result-rho") == "No number"
        assert "no points for this combination" in page.inner_text("#result-text")
        assert "c cannot be changed directly" in page.inner_text("#result-text")
        # Few draws left: the file itself holds the rule.
        page.evaluate("""() => { const all = document.querySelector('#all-on'); all.click(); }""")
        assert page.inner_text("#result-rho") != "No number"
        quiet(page, path)


def test_too_few_draws_are_refused(tmp_path: Path, open_page: Any) -> None:
    from dataclasses import replace

    import budge.report.contents as contents_module
    from budge.report.live import Counts, make_live

    im = budge.InteractionModel([budge.Feature("a", "real", bounds=(0.0, 10.0), max_increase=1.0)])
    X = pd.DataFrame({"a": [5.0]})
    audit = budge.audit(lambda t: (t["a"] > 5.5).astype(int), X, im, target=1, n=300)
    found = make_live(audit, people=1)
    for left, shown in ((29, False), (30, True)):
        counted = Counts(False, np.array([0]), np.array([float(left)]), np.array([[3.0]]))
        few = replace(found, counts=tuple(tuple(counted for _ in each) for each in found.counts))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contents_module, "_live", lambda *a, few=few: (few, ""))
            path = audit.to_html(tmp_path / f"few{left}.html")
        with open_page(path.as_uri()) as page:
            page.select_option("#whom", "0")
            page.locator("[data-switch='0']").uncheck()
            assert (page.inner_text("#result-rho") != "No number") == shown
            if not shown:
                assert "Too few points are left (29)" in page.inner_text("#result-text")


def test_statistics_in_the_file(report: tuple[Any, Path], chromium: Any) -> None:
    """Clopper-Pearson and the binomial tails of the script against those of the library."""
    context = chromium.new_context(offline=True)
    context.add_init_script(TOOLS)
    page = context.new_page()
    page.goto(report[1].as_uri())
    cases = [(0, 29), (29, 29), (1, 30), (3, 402), (200, 402), (401, 402), (5, 1000), (77, 1000), (999, 1000), (12, 20_000), (10_000, 20_000), (1, 1)]
    for alpha in (0.05, 0.01, 1e-4):
        for hits, n in cases:
            low, high = page.evaluate("([k, n, a]) => globalThis.tools.interval(k, n, a)", [hits, n, alpha])
            truth = stats.interval(hits, n, alpha)
            assert low == pytest.approx(truth.low, rel=1e-8, abs=1e-12), (hits, n, alpha)
            assert high == pytest.approx(truth.high, rel=1e-8, abs=1e-12), (hits, n, alpha)
    for hits, n in cases:
        for rate in (0.01, 0.1, 0.5):
            for side, claim in (("atMost", "below"), ("atLeast", "above")):
                p = page.evaluate(f"([k, n, r]) => globalThis.tools.{side}(k, n, r)", [hits, n, rate])
                assert p == pytest.approx(stats.p_value(hits, n, rate, claim), rel=1e-7, abs=1e-13), (hits, n, rate, claim)
    context.close()


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
        page.focus("#everybody tbody button")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "whom"
        assert page.input_value("#whom") != "-1"
        page.focus("[data-switch='0']")
        before = page.get_attribute("#result-rho", "data-value")
        page.keyboard.press("Space")
        assert not page.is_checked("[data-switch='0']")
        assert "1 rule is off" in page.inner_text("#result-before")
        assert page.get_attribute("#result-rho", "data-value") is not None
        page.keyboard.press("Space")
        assert page.get_attribute("#result-rho", "data-value") == before
        ring = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid"


def test_without_javascript(report: tuple[Any, Path], open_page: Any) -> None:
    audit, path = report
    with open_page(path.as_uri(), java_script_enabled=False) as page:
        text = page.inner_text("body")
        assert "With JavaScript it can be sorted and searched" in text
        assert "The switches need JavaScript" in text
        assert page.locator("#everybody tbody tr").count() == 40
        assert str(audit.summary()).split("\n")[1] in text
        assert page.locator("#controls").is_hidden()
        assert page.locator("#board").is_hidden()
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
        assert page.locator("#live").is_hidden()


def test_it_prints(report: tuple[Any, Path], open_page: Any) -> None:
    with open_page(report[1].as_uri()) as page:
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
        page.select_option("#whom", "0")
        page.locator("[data-switch='0']").uncheck()
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
    audit = budge.audit(approve, many, im, target=1, method="sample", n=100)
    path = audit.to_html(tmp_path / "many.html", people=10)
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
