"""What is said about rows that are proved: no draws, no confidence, no lists."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from proved_kit import Card, between_ends, wide

import budge
from budge.errors import DesignError, InputError

DRAWS = budge.Design(method="sample", prove=True)
COUNTED = budge.Design(method="exact", prove=True)
PROVED = "proved from the model's structure"


def test_what_is_impossible_is_not_said_to_be_drawn():
    im, x = wide()
    falsified, verified, estimated = (
        task(Card(200_001), x, im, target=1, design=DRAWS) for task in (budge.falsify, budge.verify, budge.estimate)
    )
    assert str(falsified) == f"The target cannot be attained: no reachable point attains the target: {PROVED}."
    assert (falsified.found, falsified.impossible, falsified.bound) == (False, True, 0.0)
    assert str(verified) == f"No reachable point attains the target: {PROVED}."
    assert str(estimated) == f"No reachable point attains the target: {PROVED}."
    assert estimated.method == "proved"


def test_what_is_certain_is_not_said_to_be_drawn():
    im, x = wide()
    falsified, verified, estimated = (task(Card(0), x, im, target=1, design=DRAWS) for task in (budge.falsify, budge.verify, budge.estimate))
    assert str(falsified) == f"The target can be attained: every reachable point attains the target: {PROVED}."
    assert str(verified) == str(estimated) == f"Every reachable point attains the target: {PROVED}."


def test_a_way_that_a_proof_finds_is_found():
    im, x = wide()
    one = budge.falsify(Card(199_999), x, im, target=1, design=DRAWS)
    assert one.hits == 0
    assert one.found
    assert not one.impossible
    assert str(one) == "The target can be attained: none of 299 draws does, but a proof found a point that does."
    both = budge.falsify({"hard": Card(199_999), "never": Card(200_001)}, pd.concat([x] * 2, ignore_index=True), im, target=1, design=DRAWS)
    assert both.found.tolist() == [True, True, False, False]
    assert both.impossible.tolist() == [False, False, True, True]
    assert str(both) == "2 of 4 people can attain the target; for 2 it is proved impossible"


def test_counted_points_are_said_to_be_counted():
    im, x = wide()
    said = f"3 of all {100_001**2:,} reachable points attain the target: responsiveness is exactly 3e-10, {PROVED}."
    assert str(budge.estimate(Card(199_999), x, im, target=1, design=COUNTED)) == said
    assert str(budge.verify(Card(199_999), x, im, target=1, design=COUNTED)) == f"{said} Below the threshold 0.1."
    found = budge.falsify(Card(199_999), x, im, target=1, design=COUNTED)
    assert found.found
    assert str(found) == f"The target can be attained: {said}"


def test_a_counted_share_without_a_count():
    im, x = wide(top=4, kind="real")
    said = f"Responsiveness is exactly 0.5: {PROVED}."
    estimated = budge.estimate(Card(4), x, im, target=1, design=COUNTED)
    assert estimated.n == 0
    assert str(estimated) == said
    assert str(budge.verify(Card(4), x, im, target=1, design=COUNTED)) == f"{said} Above the threshold 0.1."
    assert str(budge.verify(Card(4), x, im, target=1, threshold=0.5, design=COUNTED)) == f"{said} Equal to the threshold 0.5."
    found = budge.falsify(Card(4), x, im, target=1, design=COUNTED)
    assert found.found
    assert str(found) == f"The target can be attained: {said[0].lower()}{said[1:]}"


def test_a_set_too_large_for_a_count_has_a_share():
    im, x = wide("abcdefghijklmnopqrstu", 9)
    found = budge.estimate(Card(94.5), x, im, target=1, design=COUNTED)
    assert (found.n, found.hits, found.rho) == (0, 0, 0.5)
    assert str(found) == f"Responsiveness is exactly 0.5: {PROVED}."


def test_ends_are_said_to_be_ends():
    model, im, x = between_ends()
    said = f"Responsiveness lies within 3e-05 of 0.5: {PROVED}."
    estimated = budge.estimate(model, x, im, target=1, design=COUNTED)
    assert estimated.low < 0.5 < estimated.high
    assert np.isnan(estimated.rho)
    assert str(estimated) == said
    assert str(budge.verify(model, x, im, target=1, threshold=0.5, design=COUNTED)) == f"{said} Inconclusive at the threshold 0.5."
    assert str(budge.verify(model, x, im, target=1, threshold=0.6, design=COUNTED)) == f"{said} Below the threshold 0.6."
    several = budge.estimate(model, pd.concat([x, x + 1], ignore_index=True), im, target=1, design=COUNTED)
    assert "missing" not in str(several)
    assert "mean responsiveness within 3e-05 of 0.5" in str(several)


def test_an_audit_between_ends_blames_no_missing_answers():
    model, im, x = between_ends()
    people = pd.concat([x, x + 1, x + 2], ignore_index=True)
    found = budge.audit(model, people, im, target=1, threshold=0.5, design=COUNTED, groups="a")
    assert found.summary().between_ends == 3
    assert "missing answers" not in str(found)
    assert "Between 0 % and 100 % of these 3 people are below the threshold, by ends of responsiveness that are proved." in str(found)
    assert "all known" not in str(found)


@pytest.mark.parametrize("cut", [1, 9 * 18])
def test_almost_all_is_not_all_and_almost_none_is_not_none(cut):
    im, x = wide("abcdefghijklmnopqr", 9)  # 10^18 points, of which one misses, or one attains
    found = budge.audit(Card(cut), x, im, target=1, population="all", design=COUNTED)
    assert found.table["hits"].tolist() == [10**18 - 1 if cut == 1 else 1]
    assert found.table["extreme"].tolist() == [""]
    assert (found.summary().no_way, found.summary().every_way) == (0, 0)


def test_one_person_is_not_called_people():
    im, x = wide()
    said = str(budge.audit(Card(200_001), x, im, target=1, design=DRAWS))
    assert "1 person proved from the model's structure" in said
    assert "Exactly 1 of 1 person (100 %) is below the threshold." in said
    assert "1 people" not in said


def test_a_share_by_weights_is_the_listed_one():
    from budge.distributions import Distribution

    odd = Distribution.from_spec({"weights": {k: 1 + k % 5 for k in range(61)}})
    im = budge.InteractionModel([budge.Feature(name, "integer", bounds=(0, 60), distribution=odd if name == "a" else None) for name in "abc"])
    x = pd.DataFrame({name: [0] for name in "abc"})
    listed = budge.audit(Card(120), x, im, target=1, method="exact").table["rho"][0]
    counted = budge.audit(Card(120), x, im, target=1, design=COUNTED.but(exact_limit=1)).table.loc[0]
    assert counted["method"] == "proved"
    assert counted["rho"] == pytest.approx(listed, abs=1e-14)


def test_the_points_of_a_counted_person_are_planned_draws():
    from budge.audit.ask import points_of

    im, x = wide(top=4, kind="real")
    found = budge.audit(Card(4), x, im, target=1, population="all", design=COUNTED)
    assert len(points_of(found, 0).rows) == COUNTED.draws
    large = budge.audit(Card(199_999), wide()[1], wide()[0], target=1, population="all", design=COUNTED)
    assert large.table["n"].iloc[0] == 100_001**2
    assert len(points_of(large, 0).rows) == COUNTED.draws
    for audit in (found, large):
        figure = audit.plot("person", label=0)
        assert f"of {COUNTED.draws:,} draws attain the target" in figure.title
        assert "are shown" not in figure.note
        assert figure.about.startswith(f"Responsiveness {audit.table['rho'].iloc[0]:.4g}.")


def test_how_much_refuses_weighted_draws_of_proved_rows_too():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 100, (300, 2)), columns=["a", "b"])
    model = budge.models.as_predictor(LogisticRegression().fit(table, (table.sum(axis=1) > 90).astype(int)), output="probability")
    im, x = wide(top=40, max_increase=20)
    far = {"target": "score >= 0.999999", "population": "all", "prove": True, "method": "sample", "n": 100}
    found = budge.audit(model, x, im, **far)
    assert found.table["method"].tolist() == ["proved"]
    assert found.how_much(0).n == 100
    weighted = budge.audit(model, x, im, **far, proposal={"a": {"weights": {k: 1 + k for k in range(41)}}})
    assert weighted.table["method"].tolist() == ["proved"]
    with pytest.raises(InputError, match="weighted draws have no quantiles"):
        weighted.how_much(0)


def test_figures_of_proved_rows_are_not_called_estimates():
    im, x = wide()
    people = pd.concat([x, x + 1], ignore_index=True)
    found = budge.audit(Card(200_001), people, im, target=1, design=DRAWS, groups="a")
    assert set(found.table["method"]) == {"proved"}
    cdf = found.plot("cdf")
    assert "estimated" not in cdf.about
    assert "all exactly" in cdf.note
    assert "known exactly" in found.plot("verdicts").note
    assert "known exactly" in found.plot("verdicts", by="a").note


def test_known_shares_of_groups_are_known_exactly_whatever_they_round_to():
    im, x = wide(max_increase=1000)
    people = pd.concat([x + 150 * k for k in range(37)], ignore_index=True)
    found = budge.audit(Card(3000), people, im.freeze("b"), target=1, threshold=0.3, population="all", design=COUNTED.but(exact_limit=1))
    groups = pd.Series(np.where(np.arange(len(found.table)) % 2, "odd", "even"), index=found.table.index)
    assert set(found.table["method"]) == {"proved"}
    assert "known exactly" in found.plot("verdicts", by=groups).note


def test_who_has_a_way_is_no_matter_of_confidence():
    im, x = wide()
    found = budge.audit(Card(150_000), pd.concat([x, x + 1], ignore_index=True), im, target=1, threshold=0, design=DRAWS.but(testing=False))
    assert set(found.table["method"]) == {"sample"}
    assert "Exactly 0 of these 2 people (0 %) have no way at all." in str(found)


def test_a_report_of_proved_rows(tmp_path):
    im, x = wide(top=4, kind="real")
    found = budge.audit(Card(4), pd.concat([x, x + 1], ignore_index=True), im, target=1, threshold=0.6, population="all", design=COUNTED)
    page = found.to_html(tmp_path / "report.html").read_text()
    body = page[page.index('<table id="everybody">') :]
    assert body.count('<td class="num">proved</td>') == 2
    assert '<td class="num">–</td>' in body
    assert "0 of 0" not in body
    assert "Number: draws in the cell that attain the target" in page  # the table of a case: points were counted, and draws are shown
    assert "--prove" in page
    assert "missing answers are" not in page


def test_the_command_of_a_report_repeats_proofs(tmp_path):
    from budge.report.contents import _command

    im, x = wide()
    found = budge.audit(Card(200_001), x, im, target=1, design=DRAWS.but(prove_seconds=5))
    assert "--prove --prove-seconds 5" in _command(found)
    assert "--prove" not in _command(budge.audit(Card(200_001), x, im, target=1, method="sample"))


def test_the_page_shows_a_counted_person():
    from budge.web.person import Person
    from budge.web.question import make_question

    im, x = wide(top=4, kind="real")
    question = make_question(Card(4), x, im, target=1, design=COUNTED)
    person = Person(question, im, 0.1, 0)
    record = person.record("model")
    assert record["status"] == "ok"
    assert record["models"]["model"]["method"] == "proved"
    assert len(person.values) == COUNTED.draws


def test_stress_tests_refuse_proofs_that_they_do_not_use():
    from budge.stress import ablate, minimal_relaxations

    im, x = wide(max_increase=10)
    with pytest.raises(DesignError, match="not by proofs"):
        ablate(Card(100), x, im, target=1, design=budge.Design(prove=True))
    found = minimal_relaxations(Card(100), x, im, target=1, design=budge.Design(prove=True, testing=False), max_size=1)
    assert str(found).startswith("Stuck: 1 person; relaxations were tried one by one.")


def test_sensitivity_between_ends_knows_neither_least_nor_most():
    from budge.stress import sensitivity

    model, im, x = between_ends()
    frozen = im.freeze(*"bcdefghi")
    found = sensitivity(model, x, {"all": im, "one": frozen}, target=1, design=COUNTED)
    assert found.table["rho"].isna().tolist() == [True, False]
    assert found.people[["rho_min", "rho_max"]].isna().all(axis=None)


def test_who_is_proved_to_be_below_does_not_game():
    from budge.stress import select

    model, im, x = between_ends()
    for threshold, gaming in ((0.6, 0.0), (0.4, 1.0)):
        found = select({"m": model}, x, im, accuracy={"m": 0.9}, target=1, design=COUNTED.but(threshold=threshold))
        assert found.table["gaming"].tolist() == [gaming]
        assert "fresh draws" not in str(found)


def test_seconds_of_proofs_on_the_shell(tmp_path, capsys):
    from budge.cli import main

    im, x = wide()
    im.to_file(tmp_path / "spec.yaml")
    x.to_csv(tmp_path / "people.csv", index=False)
    common = ["audit", str(tmp_path / "spec.yaml"), str(tmp_path / "people.csv"), "--model", "none.json", "--target", "1"]
    assert main([*common, "--prove-seconds", "2"]) == 2
    assert "add --prove" in capsys.readouterr().err
    assert main(["ablate", common[1], "--data", *common[2:], "--prove"]) == 2
    assert "add --stuck" in capsys.readouterr().err
