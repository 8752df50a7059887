"""The section Why: computed with the model at hand, counted as the ablation counts, and never claimed beyond what was listed or drawn."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from report_kit import Page, approve, audited, generous, loans, unanswered

import budge
from budge import Feature, InteractionModel, constraints
from budge.errors import InputError
from budge.report import why as section
from budge.report.document import render
from budge.report.why import ablated, why
from budge.stress import default_relaxations
from budge.stress.needs import Need
from budge.wording import Wording

PLAIN = Wording()


def text_of(audit: Any, **options: Any) -> str:
    page = Page(render(audit, **options))
    assert page.wrong == []
    return " ".join(page.text.split())


def reasons(audit: Any, ablation: Any = None, about: str = "") -> dict[str, Any]:
    found = why(audit, audit.models[0], ablation, about, PLAIN)
    assert found is not None
    return found


# -- computed by default ------------------------------------------------------------------------------------------------


def test_the_reports_own_ablation_equals_budge_ablate() -> None:
    X, im = loans()
    for options in ({}, {"method": "sample", "n": 60}):
        audit = budge.audit(approve, X, im, target=1, **options)
        own, about = ablated(audit, "model")
        given = budge.ablate(approve, X, im, target=1, design=budge.Design(**options))
        assert own is not None
        assert about == ""
        assert own.info["people"] == len(audit.table)
        pd.testing.assert_series_equal(own.of("free home")["before"], audit.table["rho"], check_names=False)  # what the audit counted is not counted anew
        if not options:  # draws of relaxed sets are the same stream, but an ablation of its own draws as many as its own plan states
            pd.testing.assert_frame_equal(own.ranking, given.ranking)
            pd.testing.assert_frame_equal(own.table, given.table)
            assert own.needs == given.needs
        told, found = text_of(audit), reasons(audit, own)
        assert (f"Newly able, of {found['none']} without a way" if not options else f"Way found, of {found['missed']} without a hit") in told
        assert not options or found["none"] == 0 < max(row["seen"] for row in found["rows"])


def test_it_can_be_left_out_and_an_ablation_that_is_given_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    X, im = loans()
    audit = budge.audit(approve, X, im, target=1)
    given = budge.ablate(approve, X, im, ["free home"], target=1)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("the model is not asked")

    monkeypatch.setattr(section, "ablated", never)
    monkeypatch.setattr("budge.report.contents.ablated", never)
    assert "Newly able" not in text_of(audit, why=False)
    assert "home may change" in text_of(audit, ablation=given)


def test_without_the_model_a_sentence_tells_how_to_get_it(tmp_path: Any) -> None:
    audit = audited(population="outside")
    audit.save(tmp_path / "run")
    loaded = budge.Audit.load(tmp_path / "run")
    text = text_of(loaded)
    assert "a saved run holds no model" in text
    assert "budge report RUN --model … --data …" in text
    assert "Find the rule that holds them back." in text
    assert "not in this report" not in text_of(loaded, why=False)


def test_nothing_is_asked_where_nobody_is_held_back_or_the_claim_is_the_other_one() -> None:
    X, im = loans()
    for audit in (audited(model=generous, threshold=0.01, population="all"), audited(population="outside", claim="above")):
        harmed = audit.design.claim == "below" and (audit.table["verdict"] == "below").any()
        if not harmed:
            assert ablated(audit, "model") == (None, "")
    from budge.models import PredictionFile, point_keys

    known = PredictionFile.from_frame(pd.DataFrame({"key": point_keys(X), "prediction": approve(X)}))
    lost = budge.audit(known, X, im, target=1, design=budge.Design(max_unresolved=1.0), execution=budge.Execution(check=False))
    assert ablated(lost, "model")[0] is None


def test_starts_and_drawn_originals_are_not_asked_again() -> None:
    X, im = loans()
    asked: list[pd.DataFrame] = []

    def listening(table: pd.DataFrame) -> np.ndarray:
        asked.append(table.copy())
        return approve(table)

    audit = budge.audit(listening, X, im, target=1, method="sample", n=40)
    asked.clear()
    found, _ = ablated(audit, "model")
    assert found is not None
    sets = len(found.ranking)
    rows = sum(map(len, asked))
    assert found.info["asked"] == sets * 40 * len(audit.table)  # no draw of an original set among them
    assert rows - found.info["asked"] <= 100  # a few points are asked twice, to see whether the model drifts


def test_many_people_are_a_stated_sample_of_those_without_a_way(monkeypatch: pytest.MonkeyPatch) -> None:
    X, im = loans()
    audit = budge.audit(approve, pd.concat([X] * 5, ignore_index=True), im, target=1)
    stuck = audit.table.index[audit.table["extreme"] == "none"]
    assert len(stuck) > 5
    monkeypatch.setattr(section, "MOST_POINTS", 2 * int(audit.table["n"].sum()) * (len(default_relaxations(im, X)[0]) + 1) - 1)
    found, about = ablated(audit, "model")
    assert found is not None
    assert set(found.of("free home").index) == set(stuck)
    assert about == f"It is about the {len(stuck)} people without a way or a hit, since there are many people."
    monkeypatch.setattr(section, "MOST_POINTS", 4000)
    found, about = ablated(audit, "model")
    assert found is not None
    some = found.of("free home").index
    assert 0 < len(some) < len(stuck)
    assert set(some) < set(stuck)
    assert f"It is about {len(some)} of the {len(stuck)} people without a way or a hit, drawn at random" in about
    assert about in text_of(audit)
    assert set(ablated(audit, "model")[0].of("free home").index) == set(some)  # type: ignore[union-attr]


def test_people_chosen_for_draws_without_a_hit_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """New draws of such people find some hits under any rule: a mean that was 0 by choice rises."""
    audit = audited(population="outside", method="sample")
    assert "chosen for draws" not in ablated(audit, "model")[1]
    monkeypatch.setattr(section, "MOST_POINTS", 1)
    assert "They were chosen for draws without a hit" in ablated(audit, "model")[1]


def test_progress_ends_at_everyone_and_never_falls() -> None:
    seen: list[tuple[int, int]] = []
    for options in ({}, {"method": "sample"}):
        audit = audited(population="outside", **options)
        seen.clear()
        render(audit, progress=lambda done, of: seen.append((done, of)))
        assert seen[-1] == (len(audit.table), len(audit.table))
        assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("options", [{"sequential": True}, {"proposal": {"savings": {"weights": {0: 2, 1: 1, 2: 1, 3: 1, 4: 1}}}}])
def test_stopped_and_weighted_rows_are_drawn_anew(options: dict[str, Any]) -> None:
    audit = audited(population="outside", method="sample", threshold=0.3, **options)
    found, _ = ablated(audit, "model")
    assert found is not None
    assert found.info["purpose"].endswith("why")
    assert set(found.table["method_before"]) <= {"sample", "exact"}
    hit = audit.table.index[audit.table["hits"] > 0]
    assert not found.table.loc[found.table["seen_only_after"]].index.isin(hit).any()  # a hit of the audit is a way


# -- what it states -----------------------------------------------------------------------------------------------------


def test_rules_are_ranked_by_people() -> None:
    X, im = loans()
    audit = budge.audit(approve, X, im, target=1)
    gone = budge.ablate(approve, X, im, target=1)
    found = reasons(audit, gone)
    people = [row["people"] for row in found["rows"][:10]]
    assert people == sorted(people, reverse=True)
    ranking = gone.ranking.set_index("relaxation")
    for row in found["rows"]:
        assert row["people"] == ranking.loc[row["relaxation"], "newly_reachable"]
    none = int((audit.table["extreme"] == "none").sum())
    assert found["none"] == none
    assert f"would give a way to {people[0]} of the {none} people without one" in found["heading"]
    assert why(audit, "model", None, "", PLAIN) is None


def test_draws_and_missing_answers_show_no_absence_of_a_way() -> None:
    X, im = loans()
    audit = budge.audit(approve, X, im, target=1, method="sample")
    drawn = reasons(audit, budge.ablate(approve, X, im, target=1, design=budge.Design(method="sample")))
    assert drawn["heading"].startswith("Relaxing one rule finds a way to the target (the output is 1) for 2 of the ")
    assert "without a hit" in drawn["heading"]
    assert all("by the hits that were found" in text for row in drawn["rows"] for text in row["needs"])
    model, checks = unanswered().context.predictors["model"], budge.Execution(check=False)
    lost = budge.ablate(model, X, im, target=1, design=budge.Design(max_unresolved=1.0), execution=checks)
    found = reasons(unanswered(), lost)
    assert lost.ranking["gain"].isna().any()
    assert len(found["rows"]) + found["more"] == len(lost.by_rule)
    assert {row["after"] for row in found["rows"]} >= {"–"}


def test_a_fall_of_the_mean_is_explained() -> None:
    text = text_of(audited(population="outside"))
    assert "Mean ρ can fall although nobody loses a way" in text


ACCOUNT = InteractionModel(
    [Feature("has", "binary"), Feature("pays", "binary"), Feature("Home=Own", "binary", actionable=False), Feature("Home=Rent", "binary", actionable=False)],
    [constraints.Thermometer(("has", "pays"), direction="increase", name="account")],
)


def no_account(table: pd.DataFrame) -> np.ndarray:
    return ((table["has"] == 0) & (table["pays"] == 0) | (table["Home=Own"] == 1)).to_numpy().astype(int)


def accounts() -> pd.DataFrame:
    return pd.DataFrame({"has": [1, 1, 1, 0], "pays": [0, 1, 1, 0], "Home=Own": [0, 0, 0, 1], "Home=Rent": [1, 1, 1, 0]}, index=list("abcd"))


def test_one_rule_is_one_row_and_the_weakest_relaxation_is_kept() -> None:
    found = budge.ablate(no_account, accounts(), ACCOUNT, ["drop account", *(r.name for r in default_relaxations(ACCOUNT, accounts())[0])], target=1)
    able = found.ranking.set_index("relaxation")["newly_reachable"]
    assert able["drop account"] == able["lift direction of account"] == 3
    rows = found.by_rule.set_index("relaxation")
    assert "drop account" not in rows.index
    assert rows.loc["lift direction of account", "also"] == ["drop account"]
    assert set(found.relaxations) == set(rows.index) | {name for also in rows["also"] for name in also}


def test_a_code_of_several_columns_is_dropped_only_where_it_is_named() -> None:
    """Without it somebody pays from an account that is not there; such people are no finding."""
    found = budge.ablate(no_account, accounts(), ACCOUNT, target=1)
    assert "drop account" not in found.relaxations
    assert "Not relaxed: drop account: its columns are one code" in str(found)
    assert budge.ablate(no_account, accounts(), ACCOUNT, ["drop account"], target=1).relaxations == ("drop account",)


@pytest.mark.parametrize(("count", "relation", "code"), [(1, "==", True), (1, "<=", True), (1, ">=", False), (2, "<=", False)])
def test_so_many_of_several_dummies_are_a_rule_and_not_a_code(count: int, relation: Any, code: bool) -> None:
    names = ("course", "mentor", "grant")
    chosen = constraints.OneHot(names, count, relation, name="help")
    im = InteractionModel([Feature(n, "binary") for n in names], [chosen])
    X = pd.DataFrame({"course": [1], "mentor": [0], "grant": [0]})
    model = lambda t: (t["mentor"] + t["grant"] > 1).to_numpy().astype(int)  # noqa: E731
    if code:
        with pytest.raises(InputError, match=r"nothing can be relaxed but constraints that hold the columns of one code .*name one: 'drop help'"):
            budge.ablate(model, X, im, target=1)
    else:
        assert budge.ablate(model, X, im, target=1).relaxations == ("drop help",)


@pytest.mark.parametrize("chance", [False, True])
def test_a_hit_that_the_rules_allow_is_no_way_that_a_rule_would_open(chance: bool) -> None:
    """A rare hit that draws missed before and found after is not due to the rule; with an effect of chance, what the person does decides, not where it ends."""
    rare = [Feature("a", "integer", bounds=(0, 20), max_increase=9), Feature("b", "integer", bounds=(0, 9))]
    effects = [budge.Effect("a", "round(normal(0, 2))", clip=(0, 20))] if chance else []
    im = InteractionModel(rare, [constraints.IfThen("a == 5", "b == 5", name="fives")], effects=effects)
    X = pd.DataFrame({"a": [0] * 120, "b": np.arange(120) % 5})
    model = lambda t: ((t["a"] >= 10 if chance else t["a"] == 9) & (t["b"] == 9)).to_numpy().astype(int)  # noqa: E731
    audit = budge.audit(model, X, im, target=1, method="sample", n=60)
    found = budge.ablate(model, X, im, ["drop fives"], n=60, design=budge.Design(target=1, method="sample"))
    after = found.of("drop fives")
    assert ((after["before"] == 0) & (after["after"] > 0)).any()  # draws found what draws had missed
    assert not found.table["seen_only_after"].any()
    assert reasons(audit, found)["heading"].startswith("No rule, relaxed alone, was found to open a way")


def test_means_that_draws_do_not_tell_apart_have_no_arrow_and_lost_ways_are_no_dilution() -> None:
    base = {"relaxation": "drop x", "kind": "constraint", "rule": "x", "also": (), "superset": True, "newly_reachable": 0, "seen_only_after": 0}
    moved = {**base, "before": 0.276, "after": 0.265, "gain": -0.011}
    row = section._row({**moved, "low": -0.03, "high": 0.01}, 3, [], PLAIN)
    assert (row["sign"], row["move"]) == ("≈", "flat")
    row = section._row({**moved, "low": -0.03, "high": -0.001}, 3, [], PLAIN)
    assert (row["sign"], row["move"]) == ("▼", "down")
    ages = [Feature("age", "integer", bounds=(0, 99), actionable=False), Feature("years", "integer", bounds=(0, 9), max_increase=2)]
    im = InteractionModel(ages, [constraints.DirectionalLinkage("years", {"age": 1}, name="ageing")])
    X = pd.DataFrame({"age": [17, 30], "years": [0, 0]})
    audit = budge.audit(lambda t: ((t["age"] >= 18) & (t["years"] > 0)).to_numpy().astype(int), X, im, target=1, harm="below")
    found = reasons(audit, budge.ablate(lambda t: ((t["age"] >= 18) & (t["years"] > 0)).to_numpy().astype(int), X, im, ["drop ageing"], target=1))
    assert [row["move"] for row in found["rows"]] == ["down"]
    assert found["falls"] == 0  # a way is lost


def test_new_ways_need_what_every_hit_shares() -> None:
    audit = budge.audit(no_account, accounts(), ACCOUNT, target=1)
    found, _ = ablated(audit, "model")
    rows = {row["relaxation"]: row for row in reasons(audit, found)["rows"]}
    assert rows["lift direction of account"]["needs"] == ["3 of 3 need has → 0, pays → 0"]
    assert rows["free Home"]["needs"] == ["3 of 3 need Home=Own"]


def test_dummies_of_a_group_describe_people_who_are_possible() -> None:
    """Every point that the model is asked about is a combination of the data."""
    seen: set[tuple[int, ...]] = set()

    def listening(table: pd.DataFrame) -> np.ndarray:
        seen.update(map(tuple, table[["Home=Own", "Home=Rent"]].to_numpy().tolist()))
        return no_account(table)

    found = budge.ablate(listening, accounts(), ACCOUNT, target=1)
    assert seen == {(0, 1), (1, 0)}
    assert "free Home=Own" not in found.relaxations


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["auto", "sample"])
def test_needs_equal_brute_force(seed: int, method: str) -> None:
    """For random models over a small grid, the levels of all hits of the newly able are found by listing the relaxed set."""
    rng = np.random.default_rng(seed)
    a, b = Feature("a", "integer", bounds=(0, 3), max_increase=0, max_decrease=1), Feature("b", "binary", direction="increase")
    im = InteractionModel([a, b, Feature("c", "binary", actionable=False)])
    answers = rng.random((4, 2, 2)) < 0.2
    X = pd.DataFrame(list(product(range(4), range(2), range(2))), columns=list("abc"))

    def model(table: pd.DataFrame) -> np.ndarray:
        return answers[tuple(table[list("abc")].to_numpy(dtype=int).T)].astype(int)

    found = budge.ablate(model, X, im, target=1, n=400, design=budge.Design(method=method))
    assert found.needs
    for need in found.needs:
        relaxed = next(r for r in default_relaxations(im, X)[0] if r.name == need.relaxation).model(im)
        rows = found.of(need.relaxation)
        able = rows.index[rows["newly_reachable"] | rows["seen_only_after"]]
        (name,) = need.features
        held = 0
        for i in able:
            points = relaxed.enumerate(X.loc[[i]]).points
            levels = set(points.loc[model(points) == 1, name])
            old = X.loc[i, name]
            fits = {
                "only": levels == {(need.new or (None,))[0]} and old not in levels, "higher": min(levels) > old, "lower": max(levels) < old,
                "some": (need.new or (None,))[0] in levels,
            }  # fmt: skip
            held += fits[need.kind]
        assert (need.people, need.able) == (held, len(able))
        assert need.listed == (method == "auto")


def test_a_planted_miscount_of_needs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from budge.stress.listing import Listing

    right = Listing.ways

    def wrong(self: Listing, hit: Any, freed: Any) -> Any:
        return {s: values[:1] * 0 for s, values in right(self, hit, freed).items()}

    monkeypatch.setattr(Listing, "ways", wrong)

    def over_all_seeds() -> None:
        for seed in range(6):
            test_needs_equal_brute_force(seed, "auto")

    with pytest.raises((AssertionError, ValueError)):
        over_all_seeds()


def test_names_are_escaped_and_labels_used() -> None:
    evil = "<img src=x onerror=alert(1)>"
    im = InteractionModel([Feature(evil, "binary", actionable=False), Feature("b", "binary")])
    X = pd.DataFrame({evil: [0, 1], "b": [0, 0]})
    audit = budge.audit(lambda t: (t[evil] == 1).astype(int), X, im, target=1)
    assert evil in text_of(audit)
    assert evil not in render(audit)
    assert "1 of 1 needs the flag no → yes" in text_of(audit, nouns=Wording(feature_labels={evil: "the flag"}))


def test_a_model_that_fails_on_relaxed_points_leaves_a_report() -> None:
    X, im = loans()
    down: list[int] = []

    def failing(table: pd.DataFrame) -> np.ndarray:
        if down:
            raise RuntimeError("no more")
        return approve(table)

    audit = budge.audit(failing, X, im, target=1)
    sound = replace(audit, moved={})
    down.append(1)
    assert "could not be computed" in ablated(sound, "model")[1]


@pytest.mark.parametrize("forged", [{"people": 99}, {"people": 0}, {"able": 10**6}, {"relaxation": "other"}, {"kind": "all"}, {"new": [[1]]}, {"new": [1]}])
def test_forged_needs_are_refused(forged: dict[str, Any]) -> None:
    from budge.errors import InputError
    from budge.report.saved import ablation_from

    record = budge.ablate(no_account, accounts(), ACCOUNT, target=1).to_dict()
    assert ablation_from(record).needs
    with pytest.raises((InputError, ValueError)):
        ablation_from({**record, "needs": [{**record["needs"][0], **forged}]})


def test_people_who_were_drawn_without_a_hit_are_not_said_to_have_no_way():
    im = budge.InteractionModel([budge.Feature("x", "integer", bounds=(0, 99), max_increase=40), budge.Feature("y", "binary", actionable=False)])
    X = pd.DataFrame({"x": [1, 2, 3], "y": [0, 0, 0]})
    model = lambda t: (t["x"] > 200).astype(int)  # noqa: E731
    for method, words in (("sample", "for any of the 3 people without a hit."), ("auto", "for any of the 3 people without a way.")):
        audit = budge.audit(model, X, im, target=1, method=method, n=50)
        heading = why(audit, "model", *ablated(audit, "model", False), Wording())["heading"]
        assert words in heading, heading
    one = budge.audit(model, X[:1], im, target=1, method="sample", n=50)
    assert "the only person without a hit" in why(one, "model", *ablated(one, "model", False), Wording())["heading"]


def test_hits_of_a_listed_set_with_missing_answers_are_not_said_to_be_drawn():
    im = budge.InteractionModel([budge.Feature("x", "integer", bounds=(0, 9), max_increase=2), budge.Feature("y", "binary", actionable=False)])
    X = pd.DataFrame({"x": [1, 2, 3], "y": [0, 0, 0]})

    def model(t):
        found = (t["x"].to_numpy() > 6).astype(object)
        found[(t["x"] == 9).to_numpy()] = None
        return [None if v is None else int(v) for v in found]

    audit = budge.audit(model, X, im, design=budge.Design(target=1, max_unresolved=1.0))
    told = why(audit, "model", *ablated(audit, "model", False), Wording())
    needs = [text for row in told["rows"] for text in row["needs"]]
    assert needs == ["3 of 3 need a higher x, by the hits that were found"]


def test_people_who_could_not_even_stay_are_among_those_without_a_way():
    im = InteractionModel([Feature("x", "integer", bounds=(0, 9), max_increase=2, max_decrease=0)], [constraints.LinearConstraint({"x": 1}, "<=", 5)])
    X = pd.DataFrame({"x": [1, 2, 7, 8, 9]})
    design = budge.Design(target=1, on_invalid="keep", population="all")
    model = lambda t: (t["x"] > 7).astype(int)  # noqa: E731
    audit, gone = budge.audit(model, X, im, design=design), budge.ablate(model, X, im, design=design)
    assert reasons(audit, gone)["heading"].startswith("Relaxing one rule would give a way to 3 of the 5 people without one")


def test_equal_means_equal_and_one_person_s_values_are_no_need() -> None:
    """Means that differ are not called equal; small ones have three decimals; a value that one of several people found says nothing of the others."""
    base = {"relaxation": "drop x", "kind": "constraint", "rule": "x", "also": (), "superset": True, "newly_reachable": 3, "seen_only_after": 0}
    needs = [Need("drop x", ("r",), "some", None, (0.8279,), people, 3, True) for people in (1, 2)]
    row = section._row({**base, "before": 0.0041, "after": 0.0042, "gain": 0.0001}, 3, needs, Wording())
    assert (row["before"], row["sign"], row["after"]) == ("0.004", "≈", "0.004")
    assert row["needs"] == ["2 of 3 have a way with r → 0.8279"]
    assert section._row({**base, "before": 0.5, "after": 0.5, "gain": -1.4e-17}, 3, [], Wording())["sign"] == "="
    alone = Need("drop x", ("r",), "some", None, (1234,), 1, 1, True)
    assert section._row({**base, "before": 0.5, "after": 0.5, "gain": 0.0}, 1, [alone], Wording())["needs"] == ["1 of 1 has a way with r → 1,234"]
