"""Specs within the limits that would stall after they are loaded: work is bounded, and what was left undone is stated."""

from __future__ import annotations

import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from isolated import MEGABYTES, attempt

import budge
from budge.audit.export import points_to_ask
from budge.errors import DrawError
from budge.program.clash import clash
from budge.reach.hull import Hulls
from budge.reach.prepare import _countable
from budge.reach.reacher import reacher
from budge.reach.starts import Starts
from budge.reach.walks import mixing_of
from budge.report.figures.partition import _ordered, _Tie
from budge.spec import check
from cpu import allowed, within

NAMES = [f"f{i}" for i in range(400)]


def test_idle_constraints_are_looked_for_within_a_time_and_the_others_counted() -> None:
    rules = [{"if_then": {"if": f"{a}==1", "then": f"{b}==0"}} for a, b in zip(NAMES, NAMES[7:])]
    im = budge.InteractionModel.from_spec({"budge": 1, "features": {name: {"type": "binary"} for name in NAMES}, "constraints": rules})
    with within(2):
        report = check(im, pd.DataFrame([dict.fromkeys(NAMES, 0)]), seconds=0.5)
    assert 0 < report.untried < len(rules)
    assert f"{report.untried} constraints" in str(report)
    assert report.to_dict()["not_tried"] == report.untried


def test_a_check_that_has_time_leaves_nothing_out() -> None:
    im = budge.InteractionModel({"a": {"type": "binary"}, "b": {"type": "binary"}}, [budge.constraints.Rule("a + b <= 1")])
    report = check(im, pd.DataFrame({"a": [0], "b": [0]}))
    assert report.untried == 0
    assert "Not tried" not in str(report)


def test_what_clashes_is_named_even_without_time_to_make_it_short() -> None:
    features = [budge.Feature(name, "integer", bounds=(0, 9)) for name in NAMES[:40]]
    rules = [budge.constraints.Rule(f"{a} <= {b}") for a, b in pairwise(NAMES[:40])]
    im = budge.InteractionModel(features, [*rules, budge.constraints.Rule("f0 >= f39 + 1")])
    (part,) = im.parts
    with within(2):
        assert len(clash(part, dict.fromkeys(part.names, 0.0), seconds=0.0)) > 40


def test_polytopes_that_would_be_walked_for_hours_are_refused_at_once() -> None:
    n = 300
    A = np.vstack([np.eye(n), -np.eye(n), np.eye(n)[:-1] - np.eye(n)[1:]])
    middle = (np.arange(n) + 1) / (n + 1)
    with within(2), pytest.raises(DrawError, match=r"899 rows in 300 dimensions takes too long .*couple fewer continuous features"):
        mixing_of(A, np.concatenate([1 - middle, middle, -(A[2 * n :] @ middle)]))


def test_polytopes_that_would_be_measured_for_many_minutes_are_refused_at_once() -> None:
    n = 60
    A, b = np.vstack([np.eye(n), -np.eye(n), np.eye(n)[:-1] + np.eye(n)[1:]]), np.r_[np.full(2 * n, 0.5), np.full(n - 1, 0.2)]
    with within(2), pytest.raises(DrawError, match=r"179 rows in 60 dimensions takes too long .*couple fewer continuous features"):
        mixing_of(A, b)


def test_more_rows_than_a_polytope_can_have_are_refused_before_any_of_it_is_made() -> None:
    slopes, ends = np.zeros((1, 600, 400)), np.zeros((1, 400))
    with pytest.raises(DrawError, match="600 rows couple 400 continuous features, more than are drawn together; couple fewer"):
        Hulls(slopes, np.zeros((1, 600)), np.zeros(600, dtype=bool), ends, ends + 1, "a", slopes, slopes)


def test_hundreds_of_features_in_one_part_are_listed_or_counted_in_time() -> None:
    im = budge.InteractionModel(
        [budge.Feature(n, "binary") for n in NAMES], [budge.constraints.LinearConstraint({a: 1, b: -1}, "<=", 0) for a, b in pairwise(NAMES)]
    )
    with within(2):
        assert reacher(im).block(np.zeros((1, len(NAMES)))).about.tolist() == [len(NAMES) + 1]


def test_wide_numbers_in_a_long_chain_are_looked_at_once_each() -> None:
    features = [budge.Feature(n, "integer", bounds=(0, 100_000)) for n in NAMES]
    im = budge.InteractionModel(features, [budge.constraints.LinearConstraint({a: 1, b: -1}, "<=", 0) for a, b in pairwise(NAMES)])
    (part,) = im.parts
    starts = Starts.of(part, {n: np.zeros(1) for n in NAMES})
    with within(2):
        assert len(_countable(starts, [])[0]) > 100


def test_hundreds_of_curved_rules_in_one_part_are_answered_or_refused_in_time() -> None:
    with within(2):
        for n in (50, 150):
            features = [budge.Feature(name, "real", bounds=(1, 2)) for name in NAMES[:n]]
            im = budge.InteractionModel(features, [budge.constraints.Rule(f"{a} * {b} <= 3") for a, b in pairwise(NAMES[:n])])
            if n == 50:
                assert im.feasible(dict.fromkeys(NAMES[:n], 1), im.sample(dict.fromkeys(NAMES[:n], 1), 3).values - 1).all()
            else:
                with pytest.raises(DrawError, match=r"gave a point within .* proposals; tighten the bounds"):
                    im.sample(dict.fromkeys(NAMES[:n], 1), 3)


def test_a_figure_of_hundreds_of_constraints_in_one_part_is_made_in_time() -> None:
    features = [budge.Feature(n, "binary") for n in NAMES]
    ties = [_Tie("", "", (a, b)) for a, b in pairwise(NAMES)] * 3
    with within(2):
        ordered, _ = _ordered(features, ties)
    assert [f.name for f in ordered] == NAMES


def test_thousands_of_parts_are_sampled_without_a_warning() -> None:
    im = budge.InteractionModel([budge.Feature(f"f{i}", "integer", bounds=(0, 9)) for i in range(1000)])
    X = pd.DataFrame([dict.fromkeys([f.name for f in im.features], 0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(next(points_to_ask(im, X, budge.Design(n=40)))) == 1
        assert reacher(im).block(im.coding.encode(X)).about.tolist() == [2.0**53]


@pytest.mark.parametrize("content", [b"", b"\0" * 1000])
def test_files_of_predictions_that_are_no_tables_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.csv").write_bytes(content)
    with pytest.raises(budge.errors.BudgeError):
        budge.models.PredictionFile.read(tmp_path / "p.csv")


@pytest.mark.parametrize("missing", [False, True])
def test_the_check_of_a_wide_model_asks_about_few_rows(monkeypatch: pytest.MonkeyPatch, missing: bool) -> None:
    """A model of 1,000 columns was compared on 30 rows with a gap per column, 30 million cells, also where it takes no gap."""
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is in the `models` extra")
    ensemble = pytest.importorskip("sklearn.ensemble", reason="scikit-learn is in the `models` extra")
    from budge.proof import checking

    cells: list[int] = []
    compare = checking._compare
    monkeypatch.setattr(checking, "_compare", lambda *given, **more: (cells.append(given[3].size), compare(*given, **more))[1])
    names = [f"f{i}" for i in range(1000)]
    X = pd.DataFrame(np.random.default_rng(0).random((40, len(names))), columns=names)
    model = ensemble.HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5) if missing else linear.LogisticRegression()
    im = budge.InteractionModel([budge.Feature(n, "real", bounds=(0, 1), actionable=n == "f0") for n in names])
    budge.prove(model.fit(X, X["f0"] > 0.5), X.head(1), im, target=True)
    assert max(cells) <= checking.CELLS
    assert len(cells) <= 4


# -- parts beyond their limits -----------------------------------------------------------------------------------------------


def _coupled(rules: int, names: int) -> str:
    """Return the error of a part with so many constraints, each of which names so many features."""
    declared = [f"f{i}" for i in range(rules + names)]
    group = [budge.constraints.OneHot(tuple(declared[i : i + names]), relation="<=") for i in range(rules)]
    try:
        budge.InteractionModel([budge.Feature(name, "binary") for name in declared], group)
    except budge.errors.SpecError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("rules", "names", "said"),
    [
        (2000, 2, ""),
        (2001, 2, "constraints: a part, here f0, f1, f2 and 1,999 more, has at most 2,000 constraints (got 2001); couple fewer features"),
        (4200, 3, "at most 2,000 constraints (got 4200)"),
        (1, 2000, ""),
        (2, 700, ""),
        (500, 11, "at most 4,000 names in its constraints (got 5500)"),
        (100, 9, ""),
        (100, 10, "at most 800 names in its constraints of more than three features that another one of them names, too (got 891)"),
        (1900, 50, "at most 4,000 names in its constraints (got 95000)"),
    ],
)
def test_a_part_beyond_its_limits_is_refused_when_the_model_is_made(rules: int, names: int, said: str) -> None:
    """4,200 rules over 1,000 features took 8 s and 400 MB before they were refused."""
    made = attempt(_coupled, rules, names)
    assert made.safe, str(made)
    assert said in made.value
    assert bool(said) == bool(made.value), made.value


# -- parts that can be read but not drawn -----------------------------------------------------------------------------------


REAL = ("products", "thin", "distances", "extremes", "if-thens", "far if-thens")
ZERO_TO_ONE = ("clauses", "groups", "sums", *REAL[2:])


def _model(kind: str, n: int) -> tuple[budge.InteractionModel, dict[str, float]]:
    """Return a model with one part of n features, and a start."""
    rule, rng, names = budge.constraints.Rule, np.random.default_rng(0), [f"f{i}" for i in range(n)]
    bounds = {"products": (1, 2), "thin": (1, 2)}.get(kind, (0, 1) if kind in ZERO_TO_ONE else (0, 100_000))
    real = [kind in REAL or (kind == "factors beside reals" and i % 2 == 0) for i in range(n)]
    features = [budge.Feature(name, "real" if own else "integer", bounds=bounds) for name, own in zip(names, real)]
    if kind in ("groups", "sums"):
        features = [budge.Feature(name, "binary") for name in names]
    x: dict[str, float] = dict.fromkeys(names, bounds[0])
    rules: list[budge.constraints.Constraint]
    if kind == "thin":
        rules, x["f1"] = [rule("f0 * f1 >= 1.25 and f0 * f1 <= 1.2500001")], 1.25
    elif kind == "rows":
        rules = [budge.constraints.LinearConstraint(dict(zip(names, row)), "<=", 1.0) for row in rng.normal(size=(2 * n, n)).round(2).tolist()]
    elif kind == "clauses":
        drawn = [zip(rng.choice(n, 3, replace=False).tolist(), (0, *rng.integers(0, 2, 2).tolist())) for _ in range(int(4.2 * n))]
        rules = [rule(" or ".join(f"f{i} == {s}" for i, s in clause)) for clause in drawn]
    elif kind in ("groups", "sums"):
        chosen = [[names[i] for i in sorted(rng.choice(n, 50, replace=False).tolist())] for _ in range(20)]
        rules = [
            budge.constraints.OneHot(tuple(own), relation="<=") if kind == "groups" else budge.constraints.LinearConstraint(dict.fromkeys(own, 1), "<=", 1)
            for own in chosen
        ]
    elif "if-thens" in kind:
        rules = [budge.constraints.IfThen(f"{a} > 0.5", f"{b} < 0.5") for a, b in zip(names, names[4 if kind == "far if-thens" else 1 :])]
    elif kind == "linkages":
        rules = [budge.constraints.DirectionalLinkage(a, {b: 1.0}, "<=") for a, b in pairwise(names)]
    else:
        text = {
            "star": "f0 <= {1}", "parity": "({0} + {1}) % 2 == 0", "products": "{0} * {1} <= 3", "products of whole numbers": "{0} * {1} <= 1000",
            "distances": "abs({0} - {1}) <= 0.1", "extremes": "max({0}, {1}) <= 1 - min({0}, {1})",
        }  # fmt: skip
        rules = [rule(text.get(kind, "2 * {0} <= 3 * {1}").format(a, b)) for a, b in pairwise(names)]
    return budge.InteractionModel(features, rules), x


def _refused(kind: str, n: int, how: str) -> tuple[str, float]:
    """Return the error, and the CPU time after the model was made."""
    im, x = _model(kind, n)
    began = time.process_time()
    try:
        if how == "sample":
            im.sample(x, 100)
        else:
            getattr(budge, how)(lambda X: (X["f0"] > 1).astype(int).to_numpy(), pd.DataFrame([x] * 3), im, target=1)
    except DrawError as error:
        return str(error)[-200:], time.process_time() - began
    return "", 0.0


@pytest.mark.parametrize(
    ("kind", "n"),
    [
        ("products", 150), ("products", 1900), ("products of whole numbers", 40), ("products of whole numbers", 1900), ("factors", 30), ("factors", 300),
        ("factors", 1900), ("factors beside reals", 200), ("factors beside reals", 1900), ("star", 1900), ("parity", 300), ("parity", 1900), ("rows", 20),
        ("thin", 2), ("clauses", 200), ("clauses", 317), ("linkages", 300), ("linkages", 1900), ("distances", 500), ("distances", 1900),
        ("extremes", 40), ("extremes", 100), ("extremes", 500), ("extremes", 1900), ("if-thens", 100), ("if-thens", 500), ("if-thens", 1900),
        ("far if-thens", 500), ("far if-thens", 600), ("far if-thens", 1900), ("groups", 300), ("sums", 300),
    ],
)  # fmt: skip
@pytest.mark.parametrize("how", ["sample", "audit", "prove"])
def test_a_part_that_cannot_be_drawn_is_refused_as_fast_as_a_bad_file(kind: str, n: int, how: str) -> None:
    """Proposals were counted in millions: 300 wide whole numbers took minutes, 20 some 500 MB. For several people no more than for one."""
    made = attempt(_refused, kind, n, how)
    assert made.kind == "done", str(made)
    said, seconds = made.value
    assert said
    assert seconds <= allowed(2), str(made)
    assert made.megabytes <= MEGABYTES, str(made)
