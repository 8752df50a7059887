"""The strategies give sound models of every kind, and starts and changes of all sorts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from budge import InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, OneHot, Reachability, Switch
from budge.testing.strategies import KINDS, changes, features, interaction_models, starts

QUIET = settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@QUIET
@given(features())
def test_features_are_sound(feature: object) -> None:
    assert not feature.problems()  # type: ignore[attr-defined]


def test_models_show_what_they_should() -> None:
    seen = Counter[str]()

    @settings(QUIET, max_examples=12, derandomize=False)
    @given(interaction_models(continuous=True), st.data())
    def run(im: InteractionModel, data: st.DataObject) -> None:
        start = data.draw(starts(im))
        x = im.start(start)
        change = data.draw(changes(im, start))
        assert set(change) == set(x)
        seen["feasible" if im.feasible(start, {k: [v] for k, v in change.items()})[0] else "infeasible"] += 1
        outside = any(not f.range[0] <= x[f.name] <= f.range[1] for f in im.features)
        seen.update(["outside"] if outside else [])
        targets = Counter(t for c in im.constraints if isinstance(c, DirectionalLinkage) for t in c.targets)
        seen.update(["several links"] if any(count > 1 for count in targets.values()) else [])
        for c in im.constraints:
            seen[c.kind] += 1
            if isinstance(c, DirectionalLinkage):
                seen.update([f"link {c.relation}", f"link {c.on_exceed}"])
                seen.update(["actionable target"] if any(im.by_name[t].actionable for t in c.targets) else [])
            if isinstance(c, Switch):
                seen[f"switch {c.otherwise}"] += 1
            if isinstance(c, OneHot):
                seen.update([f"one_hot {c.relation}", f"one_hot {min(c.count, 2)}"])
            if isinstance(c, IfThen):
                seen[f"if_then on {c.on}"] += 1
            if isinstance(c, Reachability) and c.reachable is not None:
                matrix = np.array(c.reachable)
                seen["asymmetric" if (matrix != matrix.T).any() else "symmetric"] += 1
            if c.kind == "rule":
                seen["linear rule" if c.rows(x) is not None else "curved rule"] += 1

    for number in range(30):
        seed(number)(run)()
    wanted = [
        *KINDS,
        "feasible",
        "infeasible",
        "outside",
        "several links",
        "actionable target",
        "asymmetric",
        "linear rule",
        "curved rule",
    ]
    wanted += [f"link {how}" for how in ("==", "<=", ">=", "allow", "reject", "clip")]
    wanted += [f"switch {how}" for how in ("free", "any", "all")] + ["one_hot ==", "one_hot <=", "one_hot >=", "one_hot 2"]
    wanted += ["if_then on value", "if_then on action"]
    assert [what for what in wanted if not seen[what]] == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_asked_for(kind: str) -> None:
    found = Counter[str]()

    @settings(QUIET, max_examples=30)
    @given(interaction_models(kinds=(kind,), effects=True))
    def run(im: InteractionModel) -> None:
        found.update({c.kind for c in im.constraints})
        found["effects"] += len(im.effects)

    run()
    assert set(found) == {kind, "effects"}
    assert found["effects"]
