"""Sensitivity: families, extremes, flag and certify, harm, where the verdict breaks; error rates on planted families."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from budge import Design, Effect, Execution, Feature, InteractionModel, constraints, stats
from budge import audit as run_audit
from budge.errors import DesignError, InputError, ModelError, SpecError
from budge.stress import grid, sensitivity, toggles


def model(t: pd.DataFrame) -> np.ndarray:
    return (t["income"] > 6).to_numpy().astype(int)


IM = InteractionModel(
    [Feature("income", "integer", bounds=(0, 9), max_increase=2), Feature("on", "binary")],
    [constraints.Switch("on == 0", ("income",), name="closed"), constraints.IfThen("income >= 8", "on == 1", name="rule")],
)
X = pd.DataFrame({"income": [1, 4, 5, 7], "on": [0, 1, 1, 1]}, index=list("abcd"))


def test_members_are_audited_one_by_one_and_summed_up() -> None:
    family = grid(IM, {"features.income.max_increase": [1, 2, 5, 9]})
    found = sensitivity(model, X, family, target=1, threshold=0.2, harm="below", population="all")
    rho = np.stack([run_audit(model, X, im, target=1, threshold=0.2, population="all").table["rho"] for im in family.values()], axis=1)
    assert np.allclose(found.people["rho_max"], rho.max(axis=1))
    assert np.allclose(found.people["rho_min"], rho.min(axis=1))
    # All exact: flag is "some member below", certify "all members below", and harm here is the claim itself.
    assert found.people["flag"].tolist() == (rho < 0.2).any(axis=1).tolist() == found.people["possibility"].tolist()
    assert found.people["certify"].tolist() == (rho < 0.2).all(axis=1).tolist() == found.people["consensus"].tolist()
    for row in found.breaks().itertuples():
        values = [1, 2, 5, 9]
        k = values.index(row[4])
        person = list(X.index).index(row.person)
        assert values[k + 1] == row.to
        assert (rho[person, k] < 0.2) != (rho[person, k + 1] < 0.2)
    changes = int((np.diff((rho < 0.2).astype(int), axis=1) != 0).sum())
    assert len(found.breaks()) == changes > 0
    assert "under every member" in str(found)
    assert found.to_dict()["by_member"][0]["member"] == found.members[0]


def test_the_summary_states_what_is_known_and_in_which_direction_the_mean_moves() -> None:
    wide = InteractionModel([IM.features[0].but(max_increase=5), IM.features[1]], IM.constraints)
    found = sensitivity(model, X, {"wide": wide, "narrow": IM}, target=1, threshold=0.2, population="all")
    first, other = found.by_member["mean_rho"]
    assert other < first
    assert f"moves most with “narrow”: from {first:.3g} to {other:.3g}." in str(found)
    assert "(known, since nothing was drawn)" in str(found)
    assert "95 %" not in str(found)
    drawn = sensitivity(model, X, {"wide": wide, "narrow": IM}, target=1, threshold=0.2, population="all", design=Design(method="sample"))
    assert "each claim at 95 %; Holm over the members" in str(drawn)
    same = sensitivity(lambda t: np.zeros(len(t), int), X, {"wide": wide, "narrow": IM}, target=1, threshold=0.2, population="all")
    assert "moves most" not in str(same)


def test_harm_on_the_other_side_uses_the_other_test() -> None:
    found = sensitivity(model, X, {"one": IM, "two": IM.without("closed")}, target=1, threshold=0.2, harm="above", population="all")
    for person, row in found.people.iterrows():
        verdicts = found.table.loc[person, "verdict"]
        assert row["consensus"] == (verdicts == "above").all()
        assert row["possibility"] == (verdicts == "above").any()


def test_common_random_numbers() -> None:
    """Two equal members draw the same: their counts are the same to the last hit."""
    im = InteractionModel([Feature("income", "real", bounds=(0, 9))])
    found = sensitivity(model, X[["income"]], {"one": im, "two": im.relax("income", bounds=(0, 9))}, target=1, population="all")
    one, two = found.of("one"), found.of("two")
    assert (one["method"] == "sample").all()
    assert (one["hits"] == two["hits"]).all()


def test_a_grid_over_effects_names_and_new_keys() -> None:
    luck = Effect("income", add="normal(0, 1)", clip=(0, 9), name="luck")
    im = InteractionModel([Feature("income", "real", bounds=(0, 9)), Feature("a.b", "integer", bounds=(0, 3))], effects=[luck])
    family = grid(im, {"effects.luck.add": ["normal(0, 1)", "normal(2, 1)"], "features.a.b.max_increase": [1, 2]})
    assert len(family) == 4
    assert {m.by_name["a.b"].max_increase for m in family.values()} == {1, 2}
    assert len({m.effects[0].draw for m in family.values()}) == 2
    found = sensitivity(
        lambda t: (t["income"] > 6).astype(int), pd.DataFrame({"income": [1.0], "a.b": [0]}), family, target=1, n=300
    )
    assert found.tornado()["what"][0] == "effects.luck.add"


def test_toggles_switch_every_combination_or_one_at_a_time() -> None:
    family = toggles(IM, ["closed", "rule"])
    assert [len(m.constraints) for m in family.values()] == [2, 1, 1, 0]
    assert list(toggles(IM, ["closed", "rule"], how="one")) == ["all on", "without rule", "without closed"]


def test_what_is_refused() -> None:
    for empty in ({}, []):
        with pytest.raises(DesignError, match="empty family"):
            sensitivity(model, X, empty, target=1)
    with pytest.raises(DesignError, match="empty family"):
        grid(IM, {})
    with pytest.raises(DesignError, match="empty family"):
        grid(IM, {"features.income.max_increase": []})
    with pytest.raises(DesignError, match="empty family"):
        toggles(IM, [])
    with pytest.raises(InputError, match="no such place"):
        grid(IM, {"features.incme.max_increase": [1]})
    with pytest.raises(SpecError, match="member"):
        grid(IM, {"features.income.max_increase": ["often"]})
    with pytest.raises(InputError, match="no family"):
        sensitivity(model, X, IM, target=1)
    with pytest.raises(InputError, match="no such constraint"):
        toggles(IM, ["nothing"])
    found = sensitivity(model, X, {"one": IM}, target=1)
    with pytest.raises(InputError, match="no grid"):
        found.breaks()
    with pytest.raises(DesignError, match="more draws after looking"):
        found.again(n=4000)
    assert found.again(seed=5).info["seed"] == 5


def test_flag_and_certify_keep_their_error_on_10000_planted_families() -> None:
    """At worst cases: flag with every member at τ, certify with one member at τ and the others at 0.

    With 10^4 families an error of 0.05 shows as more than 0.0585 once in 10^4 (binomial tail); common random numbers couple the members.
    """
    rng = np.random.default_rng(11)
    families, members, n, tau = 10_000, 4, 60, 0.1
    for coupled in (False, True):
        draws = rng.random((families, 1 if coupled else members, n))
        hits = np.broadcast_to((draws < tau).sum(axis=2), (families, members))
        p = stats.p_value(hits, n, tau, "below")
        for method in ("holm", "bonferroni"):
            assert np.mean(stats.flag(p, 0.05, method=method).rejected) < 0.0585
        one = np.concatenate([hits[:, :1], np.zeros((families, members - 1), dtype=int)], axis=1)
        share = np.mean(stats.certify(stats.p_value(one, n, tau, "below"), 0.05).rejected)
        assert 0.001 < share < 0.0585


def test_flag_keeps_its_error_through_the_public_door() -> None:
    """400 people, three members, all at τ exactly: at most 0.05 are flagged; more than 37 would happen once in 10^4."""
    people = 400
    frame = pd.DataFrame({"dial": np.full(people, 0.5), "who": np.arange(people)})
    base = [Feature("dial", "real", bounds=(0, 1)), Feature("who", "integer", actionable=False)]
    family = {str(k): InteractionModel([base[0].but(bounds=(0, 1 + k)), base[1]]) for k in range(3)}
    found = sensitivity(
        lambda t: (t["dial"] < 0.1).astype(int),
        frame,
        {"a": family["0"], "b": family["0"].freeze("who")},
        target=1,
        n=100,
        seed=4,
    )
    assert len(found.people) == people
    assert found.people["flag"].sum() <= 37
    assert found.people["certify"].sum() <= 37


def test_only_contradictions_that_are_shown_are_counted() -> None:
    """A verdict that turns inconclusive is a break that is not shown; one that turns around is."""
    im = InteractionModel([Feature("dial", "real", bounds=(0, 1)), Feature("who", "integer", actionable=False)])
    frame = pd.DataFrame({"dial": 0.9, "who": np.arange(30)})
    family = grid(im, {"features.dial.bounds": [[0, 1], [0, 0.99], [0.89, 1]]})
    found = sensitivity(lambda t: (t["dial"] < 0.1).astype(int), frame, family, target=1, n=60)
    breaks = found.breaks()
    for row in breaks.itertuples():
        assert row.shown == ({row.verdict_from, row.verdict_to} <= {"below", "above", "at the threshold", "none"})
    verdicts = found.table.groupby(level=0)["verdict"].agg(set)
    shown = verdicts.map(lambda v: len(v - {"inconclusive"}) > 1).sum()
    changed = verdicts.map(lambda v: len(v) > 1).sum()
    assert 0 <= shown < changed  # at the threshold itself most are inconclusive, in the last member all are below
    assert f"for {shown} pe" in next(line for line in str(found).splitlines() if "disagree" in line)
    sure = sensitivity(model, X, grid(IM, {"features.income.max_increase": [1, 2, 5, 9]}), target=1, threshold=0.2, population="all")
    assert sure.breaks()["shown"].all()  # all exact


def test_a_model_that_drifts_after_the_first_member_is_an_error() -> None:
    frame = pd.DataFrame({"income": np.linspace(0, 9, 20)})
    family = {str(top): InteractionModel([Feature("income", "real", bounds=(0, top))]) for top in (9, 12)}

    class Drifting:
        asked = 0

        def __call__(self, t: pd.DataFrame) -> np.ndarray:
            self.asked += len(t)
            return model(t) ^ (self.asked > 20 * 60 + 500)

    with pytest.raises(ModelError, match="answers otherwise than at the start") as caught:
        sensitivity(Drifting(), frame, family, target=1, n=60, population="all")
    assert len(caught.value.result.people) == 20  # type: ignore[attr-defined]
    noted = sensitivity(Drifting(), frame, family, target=1, n=60, population="all", execution=Execution(check="warn"))
    assert "answers otherwise" in noted.info["notes"][0]


def test_a_verdict_that_one_member_has_is_counted_as_nobody_under_the_others() -> None:
    few = X[["income"]].iloc[:3]
    family = {name: InteractionModel([Feature("income", "integer", bounds=(0, 9), max_increase=most)]) for name, most in (("at", None), ("strict", 2))}
    found = sensitivity(model, few, family, target=1, threshold=0.3)
    rows = found.by_member.set_index("member")["at the threshold"]
    assert rows.to_dict() == {"at": 3, "strict": 0}
    assert "from 0.3 to 0.0417." in str(found)
