"""Figures of results: their primitives are the table's numbers, nothing else."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import budge
from budge import Feature, constraints, plan, stats
from budge.effects import Effect
from budge.errors import InputError
from budge.report import figures
from budge.report.figures.drawing import Area, Bar, Figure, Line, Point, Text
from budge.report.figures.person import cells_of, reached
from budge.wording import percent

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "audit"))
from audit_kit import approve, below_rate, dials, loans


@pytest.fixture(scope="module")
def audit() -> Any:
    X, im = loans()
    return budge.audit({"points": approve, "strict": lambda t: (approve(t) & (t["balance"] > 2)).astype(int)}, X, im, target=1, population="all")


@pytest.fixture(scope="module")
def drawn() -> Any:
    X, im = dials(60)
    return budge.audit(below_rate, X, im, target=1, n=300, seed=3, population="all")


def lines(figure: Figure, title: str | None = None) -> list[Line]:
    return [m for m in figure.marks if isinstance(m, Line) and (title is None or m.title == title)]


def step_at(line: Line, x: float) -> float:
    """The height of a staircase at x, from the right."""
    assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(line.points)), "a staircase has no slopes"
    return max(y for a, y in line.points if a <= x)


@pytest.mark.parametrize("model", ["points", "strict"])
def test_cdf_is_the_empirical_distribution(audit: Any, model: str) -> None:
    figure = audit.plot()
    (line,) = lines(figure, model)
    rho = audit.of_model(model)["rho"].to_numpy()
    assert line.points[0] == (0.0, 0.0)
    assert line.points[-1] == (1.0, 1.0)
    for r in {*rho.tolist(), 0.05, 0.5, 0.99}:
        assert step_at(line, r) == pytest.approx(np.mean(rho <= r))
    assert all(b[0] >= a[0] and b[1] >= a[1] for a, b in pairwise(line.points))
    (mark,) = lines(figure, "threshold 0.1")
    assert {x for x, _ in mark.points} == {0.1}
    assert f"{model}: {percent(np.mean(rho < 0.1))} of those with a ρ have it below the threshold 0.1" in figure.about


def test_a_wrong_distribution_would_be_seen(audit: Any) -> None:
    """The check above can fail: a line shifted by one person is not the distribution."""
    (line,) = lines(audit.plot(), "points")
    rho = audit.of_model("points")["rho"].to_numpy()
    shifted = Line(tuple((x, min(1.0, y + 1 / len(rho))) for x, y in line.points), line.colour)
    assert any(step_at(shifted, r) != pytest.approx(np.mean(rho <= r)) for r in rho)


def test_verdicts_hold_the_shares_and_intervals_of_by(drawn: Any) -> None:
    groups = pd.Series(np.where(np.arange(60) < 20, "young", "old"), index=drawn.table.index)
    figure = drawn.plot("verdicts", by=groups)
    table = drawn.by(groups)
    ticks = next(t for t in figure.ticks if t.axis == "y")
    seats = dict(zip(ticks.names, ticks.values))
    assert list(seats) == ["old (40)", "young (20)"]
    for group, name in (("old", "old (40)"), ("young", "young (20)")):
        below, above = table.loc[(group, "below")], table.loc[(group, "above")]
        bars = sorted(
            (b.x0, b.x1, b.fill) for b in figure.marks if isinstance(b, Bar) and abs((b.y0 + b.y1) / 2 - seats[name]) < 0.01
        )
        assert bars[0][0] == 0.0
        assert bars[-1][1] == 1.0
        assert all(one[1] == pytest.approx(two[0]) for one, two in pairwise(bars))
        widths = {fill: x1 - x0 for x0, x1, fill in bars}
        assert widths["vermilion"] == pytest.approx(below["verdicts"])
        assert widths["blue"] == pytest.approx(above["verdicts"])
        (span,) = [m.points for m in lines(figure) if m.title.startswith(name)]  # one interval per bar: that of the claim
        assert (span[0][0], span[1][0]) == pytest.approx((below["low"], below["high"]))
    assert "shares of verdicts" in figure.note
    assert "all groups together with confidence 95 %" in figure.note


def test_the_claim_stands_on_the_left_and_its_interval_is_not_turned() -> None:
    X, im = dials(60)
    found = budge.audit(below_rate, X, im, target=1, n=300, seed=3, population="all", claim="above", threshold=0.3)
    groups = pd.Series(np.where(np.arange(60) < 20, "young", "old"), index=found.table.index)
    figure, table = found.plot("verdicts", by=groups), found.by(groups)
    bars = sorted((b.x0, b.x1, b.fill) for b in figure.marks if isinstance(b, Bar) and b.y0 > 1.4)  # the upper bar
    assert (bars[0][0], bars[0][2], bars[-1][2]) == (0.0, "blue", "vermilion")
    assert bars[0][1] == pytest.approx(table.loc[("old", "above"), "verdicts"])
    (span,) = [m.points for m in lines(figure) if m.title.startswith("old")]
    assert (span[0][0], span[1][0]) == pytest.approx(tuple(table.loc[("old", "above"), ["low", "high"]]))


def test_verdicts_at_the_threshold_and_of_no_way() -> None:
    im = budge.InteractionModel([Feature("a", "integer", bounds=(0, 9)), Feature("cut", "integer", bounds=(0, 20), actionable=False)])
    X = pd.DataFrame({"a": [0, 0, 0, 0], "cut": [9, 15, 5, 9]})
    found = budge.audit(lambda t: (t["a"] >= t["cut"]).astype(int), X, im, target=1, threshold=0.1)
    assert found.table["verdict"].tolist() == ["at the threshold", "below", "above", "at the threshold"]
    figure = found.plot("verdicts")
    assert {round(b.x1 - b.x0, 6): b.fill for b in figure.marks if isinstance(b, Bar)} == {0.25: "blue", 0.5: "purple"}
    assert "known exactly" in figure.note
    assert "50.0% at the threshold" in figure.about
    never = budge.audit(lambda t: (t["a"] >= t["cut"]).astype(int), X, im, target=1, threshold=0)
    figure = never.plot("verdicts")
    assert "25.0% none" in figure.about
    assert "have no way at all" in figure.note
    assert "no way at all" in figure.legends[0].names


def test_verdicts_by_model_and_by_column(audit: Any) -> None:
    figure = audit.plot("verdicts")
    assert [t.names for t in figure.ticks if t.axis == "y"] == [("points (12)", "strict (12)")]
    one = audit.plot("verdicts", by="home", model="strict")
    assert one.title.endswith("by home (strict)")
    with pytest.raises(InputError, match="several models"):
        audit.plot("verdicts", by="home")
    with pytest.raises(InputError, match="no such column"):
        audit.plot("verdicts", by="hom", model="strict")
    with pytest.raises(InputError, match="too many groups"):
        figures.verdicts(budge.audit(below_rate, *dials(60), target=1, n=60), by="who")


def test_options_that_a_kind_does_not_take_are_refused(audit: Any) -> None:
    for options, words in [
        ({"kind": "cfd"}, "cdf"),
        ({"kind": "cdf", "by": "home"}, "verdicts"),
        ({"kind": "cdf", "model": "points"}, "every model"),
        ({"kind": "person"}, "label"),
        ({"kind": "verdicts", "label": 1}, "person"),
    ]:
        with pytest.raises(InputError, match=words):
            audit.plot(**options)


def test_every_row_of_a_person_holds_their_responsiveness(audit: Any) -> None:
    """A cell's share is the share of points, its filling the share of hits: brute force over the enumerated set."""
    X, im = loans()
    for label in audit.of_model("points").index:
        row = audit.of_model("points").loc[label]
        found = reached(audit, label, "points")
        points = im.enumerate(X.loc[label]).points
        hits = approve(points)
        assert len(found.hit) == len(points) == row["n"]
        assert found.hit.sum() == hits.sum() == row["hits"]
        for j, name in enumerate(found.names):
            cells = cells_of(found, j)
            assert sum(c.share for c in cells) == pytest.approx(1)
            assert sum(c.share * c.hits for c in cells) == pytest.approx(row["rho"])
            for cell in cells:
                same = points[name].astype(str) == cell.words
                assert cell.share == pytest.approx(same.mean())
                assert cell.hits == pytest.approx(hits[same.to_numpy()].mean() if same.any() else 0)
                assert cell.start == (str(X.loc[label, name]) == cell.words)


def test_person_draws_cells_start_and_witness(audit: Any) -> None:
    table = audit.of_model("points")
    label = next(one for one in table.index[(table["rho"] > 0.1) & (table["rho"] < 0.9)] if not audit.why_not(one, model="points"))
    figure = audit.plot("person", label=label, model="points")
    rho = table["rho"][label]
    rows = next(t for t in figure.ticks if t.axis == "y").titles
    assert rows[0] == "features that change"
    filled = [m for m in figure.marks if isinstance(m, Bar) and m.fill == "blue"]
    for k in range(len(rows)):
        area = sum((b.x1 - b.x0) * (b.y0 - b.y1) for b in filled if k <= b.y0 <= k + 1)
        assert area / 0.6 == pytest.approx(rho)
    moved = audit.change(label, model="points").set_index("feature")["to"]
    for k, name in enumerate(rows[1:], 1):
        here = [m.title for m in figure.marks if isinstance(m, Point) and k <= m.y <= k + 1 and m.colour == "green"]
        assert len(here) == 1
        if name in moved:
            assert here[0] == f"nearest hit: {moved[name]}"
    starts = [m for m in figure.marks if isinstance(m, Point) and m.shape == "diamond"]
    assert len(starts) >= len(rows) - 1


def test_person_by_draws_in_rounds_and_weighted() -> None:
    """The very draws that the audit counted, for every method."""
    X, im = dials(12, seed=2)
    plain = budge.audit(below_rate, X, im, target=1, n=250, seed=5, population="all")
    rounds = budge.audit(below_rate, X, im, target=1, seed=5, sequential=True, population="all")
    weights = {"balance": {"weights": {0: 1, 1: 1, 2: 2, 3: 3, 4: 4}}}
    heavy = budge.audit(approve, *loans(), target=1, method="sample", n=250, seed=5, proposal=weights, population="all")
    for found in (plain, rounds, heavy):
        for label, row in found.table.iterrows():
            got = reached(found, label)
            assert (len(got.hit), int(got.hit.sum())) == (row["n"], row["hits"])
            assert got.weights.sum() == pytest.approx(1)
    row = heavy.table[(heavy.table["rho"] > 0) & (heavy.table["rho"] < 1)].iloc[0]
    seen = reached(heavy, row.name)  # the figure's weights add up to one, those of the estimate do so on average
    assert seen.weights[seen.hit].sum() == pytest.approx(row["rho"], abs=0.05)
    assert seen.hit.mean() != pytest.approx(row["rho"], abs=1e-6)
    some = reached(plain, 0, most=40)
    assert len(some.hit) == 40
    assert (some.hit == reached(plain, 0).hit[:40]).all()


def test_person_that_cannot_be_shown(audit: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nobody of that label"):
        audit.plot("person", label="nobody", model="points")
    audit.save(tmp_path / "run")
    loaded = type(audit).load(tmp_path / "run")
    with pytest.raises(InputError, match=r"no model and no people at hand.*replay"):
        loaded.plot("person", label=0, model="points")
    assert lines(loaded.plot())[0].points == lines(audit.plot())[0].points
    still = budge.InteractionModel([Feature("a", "integer", actionable=False)])
    fixed = budge.audit(lambda t: (t["a"] > 1).astype(int), pd.DataFrame({"a": [1, 2]}), still, target=1, population="all")
    with pytest.raises(InputError, match="no feature of this person moves"):
        fixed.plot("person", label=0)


def test_a_listed_set_that_is_too_large_is_shown_in_part() -> None:
    im = budge.InteractionModel([Feature(n, "integer", bounds=(0, 19)) for n in "abc"])
    found = budge.audit(lambda t: (t["a"] > 9).astype(int), pd.DataFrame({"a": [1], "b": [1], "c": [1]}), im, target=1)
    figure = found.plot("person", label=0, most=500)
    assert "500 of 8,000" in figure.note
    assert next(t for t in figure.ticks if t.axis == "y").titles[1] == "a"  # what tells most comes first


def test_how_much_has_the_quantiles(audit: Any) -> None:
    x = np.random.default_rng(1).normal(0, 1, 15)
    found = stats.how_much(x, value_range=(-5, 5))
    figure = found.plot()
    points = [m for m in figure.marks if isinstance(m, Point)]
    rows = [found.quantiles[q] for q in sorted(found.quantiles, reverse=True)] + [found.mean]
    assert [p.x for p in points] == [r.estimate for r in rows]
    whole = [m for m in lines(figure) if m.points[0][1] == m.points[-1][1] and m.title]
    for line, row in zip(whole, rows):
        ends = [end if np.isfinite(end) else edge for end, edge in zip((row.low, row.high), figure.x)]
        assert [p[0] for p in line.points] == ends
    assert "too few draws" in figure.note
    X, im = loans()
    model = budge.models.as_predictor(lambda t: t["years"] * 0.1, output="score")
    scores = budge.audit(model, X, im, target="score >= 0.3", population="all")
    same = scores.plot("how_much", label=3)
    assert same.marks == scores.how_much(3).plot().marks


@given(st.sampled_from(["below", "above"]), st.floats(0.05, 0.9), st.floats(0.3, 0.8))
@settings(max_examples=15, deadline=None)
def test_power_curve_is_the_exact_power(claim: str, threshold: float, gap: float) -> None:
    rate = threshold * gap if claim == "below" else threshold + (1 - threshold) * (1 - gap)
    curve = plan.power_curve(np.arange(1, 60), threshold=threshold, rate=rate, claim=claim)
    (line,) = lines(curve.plot(), "exact power")
    assert line.points == tuple(zip(curve.n.tolist(), curve.power.tolist()))
    marked = {m.x: m.y for m in curve.plot().marks if isinstance(m, Point)}
    for n, power in marked.items():
        assert power == pytest.approx(float(curve.power[curve.n == n][0]))
        assert power >= curve.plan.power
    assert ET.fromstring(curve.svg()).tag.endswith("svg")


def test_stress_figures_hold_their_tables() -> None:
    X, im = loans()
    found = budge.ablate(approve, X, im, target=1)
    figure = found.plot()
    names = next(t for t in figure.ticks if t.axis == "y")
    known = found.ranking[found.ranking["gain"].notna()].head(20)
    assert list(names.titles) == known["relaxation"].tolist()
    bars = [m for m in figure.marks if isinstance(m, Bar)]
    for bar, gain, at in zip(bars, known["gain"], names.values):
        assert (bar.x0, bar.x1) == (min(0, gain), max(0, gain))
        assert (bar.y0 + bar.y1) / 2 == pytest.approx(at)
    before = lines(found.plot("cdf"), "before")[0]
    for row in found.cdf().itertuples():
        assert step_at(before, row.rho) == pytest.approx(row.share)
    family = budge.stress.grid(im, {"features.balance.max_increase": [1, 2, 4]})
    swings = budge.sensitivity(approve, X, family, target=1)
    bars = [m for m in swings.plot().marks if isinstance(m, Bar)]
    assert [(b.x0, b.x1) for b in bars] == list(zip(swings.tornado()["low"], swings.tornado()["high"]))
    for name in swings.members:
        line = lines(swings.plot("cdf"), name)[0]
        for row in swings.cdf(name).itertuples():
            assert step_at(line, row.rho) == pytest.approx(row.share)
    with pytest.raises(InputError, match="tornado"):
        swings.plot("tornato")  # type: ignore[arg-type]


def test_pareto_holds_its_table() -> None:
    X, im = loans()
    models = {"easy": approve, "hard": lambda t: (approve(t) & (t["balance"] > 3)).astype(int)}
    found = budge.stress.select(models, X, im, accuracy={"easy": 0.9, "hard": 0.8}, target=1, limit=0.5)
    points = {m.title.split(":")[0]: m for m in found.plot().marks if isinstance(m, Point)}
    for row in found.table.itertuples():
        assert (points[row.model].x, points[row.model].y) == (row.gaming_high, row.accuracy)
        assert points[row.model].hollow == (row.model != found.chosen)
    (limit,) = lines(found.plot(), "limit 0.5")
    assert {x for x, _ in limit.points} == {0.5}


def world() -> budge.InteractionModel:
    return budge.InteractionModel(
        [
            Feature("age", "integer", bounds=(18, 99), actionable=False),
            Feature("years", "integer", bounds=(0, 20), direction="increase"),
            Feature("a", "binary"),
            Feature("b", "binary"),
            Feature("alone", "integer", bounds=(0, 4)),
            Feature("sex", "binary", actionable=False),
            Feature("mood", "integer", bounds=(0, 9), actionable=False),
        ],
        [constraints.DirectionalLinkage("years", {"age": 1}), constraints.IfThen("a == 1", "b == 1", name="<b>rule</b>")],
        [Effect("mood", add="normal(action.alone, 1)", round=True, clip=(0, 9))],
        name="world",
    )


def test_partition_shows_every_feature_once_in_the_box_of_its_part() -> None:
    im = world()
    figure = im.plot()
    words = [m for m in figure.marks if isinstance(m, Text)]
    shown = {m.title.split(":")[0]: m for m in words if ": " in m.title and m.title.split(":")[0] in im.by_name}
    assert set(shown) == set(im.by_name)
    boxes = [m for m in figure.marks if isinstance(m, Bar) and m.fill == "wash"]

    def box(m: Text) -> int:
        (k,) = [k for k, b in enumerate(boxes) if b.x0 <= m.x <= b.x1 and b.y0 <= m.y <= b.y1]
        return k

    for part in im.partition:
        if len(part) > 1:
            assert len({box(shown[name]) for name in part}) == 1
    assert box(shown["age"]) != box(shown["a"]) != box(shown["alone"])
    ties = {m.title for m in lines(figure)}
    assert {"directional linkage: years", "directional linkage: age", "<b>rule</b>: a", "<b>rule</b>: b"} <= ties
    arrows = [m for m in figure.marks if isinstance(m, Area)]
    assert len(arrows) == 2  # age follows years, mood follows the effect
    dashed = {m.title.split(":")[0] for m in figure.marks if isinstance(m, Bar) and m.dash == "dashed"}
    assert dashed == {"age", "mood"}


def overlap(a: Bar, b: Bar) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0.01 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.01


@pytest.mark.parametrize("name", ["german", "compas", "recidivism", "twitterbot", "transplant_causal", "lending"])
def test_partition_of_real_models_has_no_overlaps_and_stays_inside(name: str) -> None:
    if name == "lending":
        path = budge.datasets.spec_path("lending")
    else:
        path = Path(__file__).resolve().parents[2] / "studies" / f"{name}.yaml"
    figure = budge.InteractionModel.from_file(path).plot()
    bars = [m for m in figure.marks if isinstance(m, Bar)]
    boxes, chips = [b for b in bars if b.fill == "wash"], [b for b in bars if b.fill == "paper"]
    for group in (boxes, chips):
        assert not any(overlap(a, b) for k, a in enumerate(group) for b in group[:k])
    for bar in bars:
        assert -0.01 <= bar.x0 < bar.x1 <= figure.x[1] + 0.01
        assert 0 <= bar.y0 < bar.y1 <= figure.y[0]
    assert all(any(b.x0 <= c.x0 and c.x1 <= b.x1 and b.y0 <= c.y0 and c.y1 <= b.y1 for b in boxes) for c in chips)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=2, unique=True))
@settings(max_examples=25, deadline=None)
def test_names_of_people_models_and_features_are_only_text(names: list[str]) -> None:
    try:
        im = budge.InteractionModel([Feature(n, "integer", bounds=(0, 3)) for n in names], name=names[0])
    except budge.errors.SpecError:
        return
    X = pd.DataFrame([[0, 1], [3, 2]], columns=names, index=[names[1], "other"])
    found = budge.audit({names[0]: lambda t: (t.iloc[:, 0] > 1).astype(int)}, X, im, target=1, population="all")
    shown = [
        found.plot(),
        found.plot("verdicts", by=pd.Series(names, index=X.index)),
        found.plot("person", label=names[1]) if names[1] != "other" else found.plot(),
        im.plot(),
    ]
    allowed = {"svg", "title", "desc", "text", "polyline", "polygon", "rect", "circle", "line", "path"}
    for figure in shown:
        for standalone in (True, False):
            root = ET.fromstring(figure.svg(standalone=standalone))
            assert {e.tag.split("}")[1] for e in root.iter()} <= allowed
