"""A stress test is shown beside a run only if it answers the run's question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_kit import approve, audited, loans

import budge
from budge.errors import InputError
from budge.report.document import render
from budge.report.saved import ablation_from, sensitivity_from

ONE = ["free home"]


@pytest.fixture(scope="module")
def run() -> Any:
    return audited()


def test_the_same_question_is_shown_also_from_a_file(run: Any) -> None:
    X, im = loans()
    gone = budge.ablate(approve, X, im, ONE, target=1, population="all")
    wide = budge.sensitivity(approve, X, budge.stress.grid(im, {"features.income.max_increase": [1, 3]}), target=1, population="all")
    for a, s in ((gone, wide), (_back(ablation_from, gone), _back(sensitivity_from, wide))):
        text = render(run, ablation=a, sensitivity=s)
        assert "free home" in text
        assert "Other interaction models" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": 0}, "the target"),
        ({"threshold": 0.2}, "the threshold: 0.2, in the run 0.1"),
        ({"alpha": 0.01}, "alpha: 0.01, in the run 0.05"),
        ({"population": "outside"}, "the population: outside, in the run all"),
        ({"X": 20}, "the people"),
    ],
)
def test_another_question_is_refused_with_what_differs(run: Any, options: dict[str, Any], words: str) -> None:
    X, im = loans()
    X = X.head(options.pop("X", len(X)))
    given = {"target": 1, "population": "all", **options}
    family = budge.stress.grid(im, {"features.income.max_increase": [1, 2]})
    tests: dict[str, Any] = {"ablation": budge.ablate(approve, X, im, ONE, **given), "sensitivity": budge.sensitivity(approve, X, family, **given)}
    for name, test in tests.items():
        with pytest.raises(InputError, match="answers another question") as caught:
            render(run, **{name: test})
        assert words in str(caught.value)
        assert name in str(caught.value)
    with pytest.raises(InputError, match="answers another question"):
        render(run, ablation=_back(ablation_from, tests["ablation"]))


def test_another_spec_is_refused(run: Any) -> None:
    X, im = loans()
    other = im.without(0)
    with pytest.raises(InputError, match="the interaction model"):
        render(run, ablation=budge.ablate(approve, X, other, ONE, target=1, population="all"))


def test_a_record_that_does_not_say_what_it_was_asked_is_refused(run: Any, tmp_path: Path) -> None:
    X, im = loans()
    record = json.loads(json.dumps(budge.ablate(approve, X, im, ONE, target=1, population="all").to_dict()))
    for key in ("data_digest", "population"):
        old = {**record, "info": {k: v for k, v in record["info"].items() if k != key}}
        with pytest.raises(InputError, match=f"no {key}"):
            run.to_html(tmp_path / "x.html", ablation=ablation_from(old))
    with pytest.raises(InputError, match="must be the result of"):
        run.to_html(tmp_path / "x.html", ablation=record)
    assert not (tmp_path / "x.html").exists()


def _back(read: Any, test: Any) -> Any:
    return read(json.loads(json.dumps(test.to_dict())))
