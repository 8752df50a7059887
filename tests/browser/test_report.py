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
from report_kit import approve, audited, loans


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
