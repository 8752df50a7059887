"""A complement is proved as the target that it leaves out is missed."""

from __future__ import annotations

import budge
from budge import targets
from budge.datasets import Scorecard, lending, spec_path


def test_not_refused_is_proved_as_approved_is() -> None:
    data = lending(n=40, seed=0)
    im, card = budge.InteractionModel.from_file(spec_path("lending")), Scorecard.fit(data.X, data.y)
    approved, not_refused = (budge.prove(card, data.X, im, target=t).table for t in (targets.label(1), ~targets.label(0)))
    assert approved["status"].tolist() == not_refused["status"].tolist()
    assert len(set(approved["status"])) > 1


def test_every_draw_is_lower_or_not_lower() -> None:
    data = lending(n=30, seed=1)
    im, card = budge.InteractionModel.from_file(spec_path("lending")), Scorecard.fit(data.X, data.y)
    score = budge.models.as_predictor(card.score, output="score")
    lower, not_lower = (
        budge.audit(score, data.X, im, target=t, threshold=0.1, n=50, seed=3, method="sample", population="all").table["hits"]
        for t in (targets.lower_than_before(), ~targets.lower_than_before())
    )
    assert (lower + not_lower == 50).all(), "the same draws, each in one of the two"
