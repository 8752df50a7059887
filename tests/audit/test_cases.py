"""The people whom a report shows in full are kept with a saved run: the same report from a folder, and nothing that contradicts the counts."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import budge
from budge import datasets
from budge.audit.cases import cases_of
from budge.audit.loading import digest_of
from budge.cli import main
from budge.errors import StorageError

SPEC = datasets.spec_path("lending")


def lending(n: int = 40) -> tuple[Any, pd.DataFrame, budge.InteractionModel]:
    data = datasets.lending(n=1000 + n, seed=0)
    return datasets.Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000]), data.X.iloc[1000:], budge.InteractionModel.from_file(SPEC)


def discrete() -> tuple[Any, pd.DataFrame, budge.InteractionModel]:
    im = budge.InteractionModel([
        budge.Feature("income", "integer", bounds=(0, 9), max_increase=3), budge.Feature("home", "category", levels=("rent", "own", "free")),
        budge.Feature("debt", "binary"),
    ])  # fmt: skip
    X = pd.DataFrame({"income": [0, 1, 2, 4, 5, 5], "home": ["rent", "own", "rent", "free", "rent", "own"], "debt": [1, 1, 0, 1, 0, 1]})
    return lambda t: ((t["income"] - 2 * t["debt"] + (t["home"] == "own")) > 5).to_numpy().astype(int), X, im


def large() -> tuple[Any, pd.DataFrame, budge.InteractionModel]:
    """People with 10,000 points each: the least change is among those that a report takes for one of them, and not for others."""
    im = budge.InteractionModel([budge.Feature(name, "integer", bounds=(0, 9)) for name in "abcd"])
    X = pd.DataFrame({"a": [0, 9, 4, 0], "b": [0, 0, 3, 8], "c": [0, 4, 1, 0], "d": [0, 1, 2, 3]})
    return lambda t: (t.sum(axis=1) > 33).to_numpy().astype(int), X, im


def body(path: Path) -> str:
    """Return what a report shows, without what must differ from one writing to the next."""
    return re.sub(r'<script type="application/json".*?</script>|<p class="repeat.*?</p>', "", path.read_text(), flags=re.S)


@pytest.mark.parametrize("made", [discrete, large, lending], ids=["listed", "large", "drawn"])
def test_a_saved_run_gives_the_report_of_the_process_that_made_it(tmp_path: Path, made: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model, X, im = made()
    audit = budge.audit(model, X, im, target=1, threshold=0.1)
    if made is lending:  # numbers behind labels are asked of the model, and are not kept
        assert "The best output of the draws is" in audit.to_html(tmp_path / "scores.html", why=False).read_text()
        monkeypatch.setattr("budge.report.cases._scores", lambda *_: None)
    there = audit.to_html(tmp_path / "there.html", why=False)
    audit.save(tmp_path / "run")
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "here.html"), "--quiet", "--no-why"]) == 0
    here, now = body(tmp_path / "here.html"), body(there)
    assert '<table class="mosaic' in now
    if made is lending:  # least changes of people whose points were drawn take a search, and are not kept
        least = r' least(?=")|<small>least</small>|<li><i class="least"></i>least change</li>|<p class="plan">.*?</p>\s*'
        here, now = re.sub(least, "", here), re.sub(least, "", now)
    assert here == now


def test_saved_cases_are_those_of_the_audit() -> None:
    model, X, im = discrete()
    audit = budge.audit(model, X, im, target=1, threshold=0.1)
    for case in cases_of(audit, "model", im):
        assert case.points is not None
        row = audit.table.iloc[case.at]
        assert (len(case.points.hit), case.points.hit.sum()) == (row["n"], row["hits"])
        plan = audit.recourse(audit.table.index[case.at])
        assert case.moves() == list(plan.actions[["feature", "from", "to"]].itertuples(index=False, name=None))


def test_a_model_that_answers_otherwise_when_saved_leaves_its_cases_out(tmp_path: Path) -> None:
    model, X, im = discrete()
    other: list[int] = []
    audit = budge.audit(lambda t: 1 - model(t) if other else model(t), X, im, target=1, threshold=0.1)
    other.append(1)
    loaded = budge.Audit.load(audit.save(tmp_path / "run"))
    assert not loaded.cases
    pd.testing.assert_frame_equal(loaded.table, audit.table)


def test_a_run_is_saved_though_its_model_fails_then(tmp_path: Path) -> None:
    model, X, im = discrete()
    down: list[int] = []

    def failing(t: pd.DataFrame) -> np.ndarray:
        if down:
            raise SystemExit("gone")
        return np.asarray(model(t))

    audit = budge.audit(failing, X, im, target=1)
    down.append(1)
    assert not budge.Audit.load(audit.save(tmp_path / "run")).cases


def forged(folder: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Change record and arrays of a run, with right digests."""
    record = json.loads(json.loads((folder / "audit.json").read_text())["record"])
    (old,) = folder.glob("counts-*.npz")
    with np.load(old) as archive:
        arrays = dict(archive)
    change(record, arrays)
    old.unlink()
    np.savez_compressed(folder / "new.npz", **arrays)
    content = (folder / "new.npz").read_bytes()
    (folder / "new.npz").rename(folder / f"counts-{digest_of(content)[:16]}.npz")
    text = json.dumps(record | {"files": {f"counts-{digest_of(content)[:16]}.npz": digest_of(content)}})
    (folder / "audit.json").write_text(json.dumps({"digest": digest_of(text.encode()), "record": text}))


def part(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def apply(_: dict[str, Any], arrays: dict[str, Any]) -> None:
        key = next(k for k in arrays if ".case." in k and k.endswith(f".{name}"))
        arrays[key] = change(arrays[key])

    return apply


def first(record: dict[str, Any]) -> list[int]:
    return next(iter(record["cases"].values()))[0]


FORGED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "hits turned": part("hit", lambda hit: ~hit),
    "fewer points": part("hit", lambda hit: hit[:-1]),
    "weights of another sum": part("weights", lambda w: w * 2),
    "a weight below zero": part("weights", lambda w: np.append(w[:-2], [w[-2] + 2 * w[-1], -w[-1]])),
    "columns beyond the features": part("columns", lambda c: c + 99),
    "columns out of order": part("columns", lambda c: c[::-1].copy()),
    "infinite values": part("values", lambda v: np.full_like(v, np.inf)),
    "fractions as numbers": part("values", lambda v: v.astype(np.float32)),
    "a start of other features": part("start", lambda s: np.append(s, 1.0)),
    "a level that there is not": part("start", lambda s: np.array([s[0], 7.0, s[2]])),
    "half a step": part("start", lambda s: np.array([s[0] + 0.5, s[1], s[2]])),
    "a least change that misses": lambda record, _: first(record).__setitem__(1, 0),
    "a least change beyond the points": lambda record, _: first(record).__setitem__(1, 10**6),
    "another row": lambda record, _: first(record).__setitem__(0, 10**6),
    "a case without arrays": lambda record, arrays: arrays.pop(next(k for k in arrays if ".case." in k)),
    "arrays without a case": lambda record, _: record.update(cases={}),
    "another model": lambda record, _: record.update(cases={"other": next(iter(record["cases"].values()))}),
    "words for rows": lambda record, _: record.update(cases={"model": [["0", "1"]]}),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_cases_are_refused(tmp_path: Path, name: str) -> None:
    model, X, im = discrete()
    folder = budge.audit(model, X, im, target=1).save(tmp_path / "run")
    forged(folder, FORGED[name])
    with pytest.raises(StorageError):
        budge.Audit.load(folder).to_html(tmp_path / "report.html")


def test_runs_without_cases_are_read(tmp_path: Path) -> None:
    model, X, im = discrete()
    folder = budge.audit(model, X, im, target=1).save(tmp_path / "run")

    def bare(record: dict[str, Any], arrays: dict[str, Any]) -> None:
        del record["cases"]
        for key in [k for k in arrays if ".case." in k]:
            del arrays[key]

    forged(folder, bare)
    loaded = budge.Audit.load(folder)
    assert loaded.to_html(tmp_path / "report.html").is_file()
    again = budge.Audit.load(loaded.save(tmp_path / "again"))
    assert not again.cases


def test_a_loaded_run_is_saved_with_its_cases(tmp_path: Path) -> None:
    model, X, im = discrete()
    loaded = budge.Audit.load(budge.audit(model, X, im, target=1).save(tmp_path / "run"))
    again = budge.Audit.load(loaded.save(tmp_path / "again"))
    assert {name: list(kept) for name, kept in again.cases.items()} == {name: list(kept) for name, kept in loaded.cases.items()}
