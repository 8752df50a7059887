"""Size and opening time of a report: ``python benchmarks/report_open.py [people]``.

Writes a report of 30,000 people (1,500 applicants of the lending demo over and over, drawn, with witnesses) and opens it in chromium,
offline; prints megabytes and milliseconds until the page can be used, the median of five. Ends with an error above 10 MB or 3 seconds.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

import budge
from budge.datasets import lending, spec_path
from budge.datasets.scorecard import Scorecard


def main(people=30_000):
    from playwright.sync_api import sync_playwright

    past = lending(n=1000, seed=0)
    model = Scorecard.fit(past.X, past.y)
    some = lending(n=1500, seed=1).X
    applicants = pd.concat([some] * -(-people // len(some)), ignore_index=True).head(people)
    im = budge.InteractionModel.from_file(spec_path("lending"))
    start = time.perf_counter()
    audit = budge.audit(model, applicants, im, target=1, n=29, design=budge.Design(testing=False))
    between = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = audit.to_html(Path(folder) / "report.html", by=["housing"])
        done = time.perf_counter()
        size = path.stat().st_size / 1e6
        times = []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
            for _ in range(5):
                context = browser.new_context(offline=True)
                page = context.new_page()
                page.goto(path.as_uri())
                times.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
                context.close()
            browser.close()
    opened = statistics.median(times)
    print(f"people {people:,}  audit {between - start:.0f} s  report {done - between:.0f} s  size {size:.2f} MB  opens in {opened:.0f} ms")
    if size >= 10 or opened >= 3000:
        raise SystemExit("too large or too slow")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30_000)
