"""Gates: conditions over an audit that fail a run, in the language of spec files, with numbers that have a guarantee."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from audit_kit import approve, below_rate, dials, loans

import budge
from budge.audit.conditions import where_true
from budge.audit.gate import check_gate, gate, gate_table
from budge.errors import BudgeError, InputError


@pytest.fixture(scope="module")
def listed() -> budge.Audit:
    X, im = loans()
    return budge.audit(approve, X.assign(region=list("nsew") * 3), im, target=1, threshold=0.4, population="all", groups={"closed": {0: "open", 1: "shut"}})


def test_conditions_are_what_the_table_says(listed: budge.Audit) -> None:
    t, X = listed.table, loans()[0]
    expected = {
        "share(verdict == 'below')": t["verdict"].eq("below").mean(), "count(verdict == 'above')": t["verdict"].eq("above").sum(),
        "mean(rho)": t["rho"].mean(), "least(rho)": t["rho"].min(), "most(n)": t["n"].max(), "count(no_way)": t["extreme"].eq("none").sum(),
        "share(every_way)": t["extreme"].eq("every").mean(), "count(verdict == 'below' and age > 40)": (t["verdict"].eq("below") & X["age"].gt(40)).sum(),
        "count(home == 'own')": X["home"].eq("own").sum(), "count(closed == 'shut')": X["closed"].sum(), "count(region == 'n')": 3,
        "count(verdict == 'inconclusive')": 0, "count(region == 'nowhere')": 0, "share_low": t["rho"].lt(0.4).mean(), "share_high": t["rho"].lt(0.4).mean(),
    }  # fmt: skip
    for text, value in expected.items():
        assert gate(listed, f"{text} >= {value - 1e-6:.9f}").failed, text
        assert not gate(listed, f"{text} > {value + 1e-6:.9f}").failed, text
    both = gate(listed, "share(rho < 2) > 0.5 and (count(rho > 2) > 0 or mean(rho) > 2)")
    assert not both.failed
    assert str(both).startswith("passed: fail if ")
    assert str(gate(listed, "share(rho < 2) > 0.5")) == "FAILED: fail if share(rho < 2) > 0.5 (1 > 0.5)"
    assert listed.gate("share(rho < 2) > 0.5") == gate(listed, "share(rho < 2) > 0.5")


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        ("share(verdct == 'below') > 0.1", "verdict"), ("share(rho) > 0.1", "meet a condition"), ("mean(rho)", "not a condition"),
        ("rho > 0.1", "no number over people"), ("shar(no_way) > 0", "did you mean 'share'"),
        ("share(rho < 1 > 0.1", "not closed"), ("share(rho <) > 0.1", "fail-if"),
        ("share(__import__('os').system('true') == 0) > 0", "fail-if"), ("@x > 0", "fail-if"), ("mean(rho.mean()) > 0", "fail-if"),
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused(listed: budge.Audit, condition: str, what: str) -> None:
    with pytest.raises(BudgeError, match=what):
        gate(listed, condition)


@pytest.mark.parametrize("condition", ["count(verdict == 'belwo') > 0", "share(status != 'fine') > 0", "count(method in ('exact', 'drawn')) > 0"])
def test_a_word_that_a_column_can_never_hold_is_refused(listed: budge.Audit, condition: str) -> None:
    with pytest.raises(InputError, match="no such level"):  # such a gate would never fail
        gate(listed, condition)


def test_a_gate_on_rho_is_refused_where_answers_are_missing() -> None:
    def failing(table: pd.DataFrame) -> Any:
        if ((table["who"] == 1) & (table["dial"] > 5)).any():
            raise RuntimeError("down")
        return (table["dial"] > 8) * 1

    im = budge.InteractionModel([budge.Feature("dial", "integer", bounds=(0, 9)), budge.Feature("who", "integer", bounds=(0, 9), actionable=False)])
    X = pd.DataFrame({"dial": [0, 1, 2], "who": [0, 1, 2]})
    found = budge.audit(failing, X, im, design=budge.Design(target=1, max_unresolved=0.5))
    assert found.table["rho"].isna().sum() == 1
    for condition in ("count(rho > 0.05) > 2", "count(not (rho > 0.05)) > 0", "share(rho < 0.2) < 1", "mean(rho) > 0", "least(rho) < 1"):
        with pytest.raises(InputError, match="rho is not known of 1 people"):
            gate(found, condition)
    assert gate(found, "count(high > 0.05) > 2").failed


def test_people_of_whom_a_number_is_not_known_cannot_let_a_gate_pass(listed: budge.Audit) -> None:
    """A comparison with what is not known is false: of whom, in two runs side by side, and of p-values where points are listed."""
    X, im = loans()

    def lossy(table: pd.DataFrame) -> np.ndarray:
        lost = (table["years"].to_numpy() % 3 == 1) & (table["balance"].to_numpy() == 4)
        return np.where(lost, np.nan, approve(table))

    model = budge.models.as_predictor(lossy)
    design = budge.Design(target=1, threshold=0.4, population="all", max_unresolved=0.9)
    found = budge.audit(model, X, im, design=design)
    known = budge.audit(approve, X, im, design=design)
    open_ = int(found.table["rho"].isna().sum())
    assert open_
    wrong = [(found, "count(verdict != 'below', rho < 2) == 0"), (listed, "share(p_value < 0.05) > 0"), (listed, "count(low < 1, p_adjusted > 0.1) > 0")]
    for over, condition in wrong:
        with pytest.raises(InputError, match="is not known of"):
            gate(over, condition)
    both = known.compare(found)
    for condition in ("count(difference < 0) > 9", "count(changed, rho_second > 0) > 9", "mean(difference) < -0.5"):
        with pytest.raises(InputError, match=rf"is not known of {open_} people: answers are missing"):
            both.gate(condition)
    assert not both.gate("count(low > 0) > 0 or count(rho_first > 2) > 0").failed


def test_a_verdict_that_a_threshold_does_not_have_is_refused() -> None:
    """At the threshold 0 nobody is below, but without a way: a gate on the other word would never fail."""
    X, im = loans()
    for threshold, there, other in ((0.0, "none", "below"), (0.4, "below", "none")):
        found = budge.audit(approve, X, im, target=1, threshold=threshold)
        gate(found, f"share(verdict == '{there}') > 0.5")
        check_gate(f"share(verdict == '{there}') > 0.5", X, threshold=threshold)
        found.compare(found).gate(f"count(second == '{there}') > 5")
        for ask in (
            lambda word, found=found: gate(found, f"share(verdict == '{word}') > 0.5"),
            lambda word, threshold=threshold: check_gate(f"share(verdict == '{word}') > 0.5", X, threshold=threshold),
            lambda word, found=found: found.compare(found).gate(f"count(second == '{word}') > 5"),
        ):
            with pytest.raises(InputError, match="no such level"):
                ask(other)


def test_a_level_that_nobody_has_is_stated_and_refused_before_any_work(listed: budge.Audit) -> None:
    """A gate on a word that is mistyped would never fail."""
    X = loans()[0].assign(region=list("nsew") * 3)
    for condition in ("count(no_way, region == 'nord') > 0", "count(no_way and region in ('n', 'nord')) > 99"):
        assert gate(listed, condition).numbers.endswith("; nobody has 'nord'")
        check_gate(condition, X)
        with pytest.raises(InputError, match="nobody has this level"):
            check_gate(condition, X, levels=["n", "s", "e", "w"])
    for condition in ("count(no_way, region == 'n') > 0", "share(verdict == 'below', home == 'own') > 0", "count(extreme == 'none') > 99"):
        assert "nobody" not in gate(listed, condition).numbers
        check_gate(condition, X, levels=["n", "own", "rent"])


def test_truths_stand_for_themselves_and_what_draws_leave_open_is_stated(listed: budge.Audit) -> None:
    none, every = (listed.table["extreme"].eq(word) for word in ("none", "every"))
    assert gate(listed, f"count(age > 0, no_way) == {none.sum()} and count(age > 0, every_way) == {every.sum()}").failed
    check_gate("share(n > 0) / (share_high - share(no_way)) > 9", loans()[0])  # on trial both are no zeros
    X, im = dials(40)
    drawn = budge.audit(lambda t: 1 + 0 * below_rate(t), X.assign(rate=0.5), im, target=1, n=30, population="all")
    assert gate(drawn, "count(every_way) > 9").numbers == "0 > 9; whether every way leads there is not known of 40"
    assert gate(drawn, "count(extreme == 'every') > 9").numbers.endswith("not known of 40")
    assert "not known" not in gate(listed, "count(every_way) > 99").numbers


def test_numbers_stand_in_a_condition_as_they_are() -> None:
    table = pd.DataFrame({"change": [-0.5, -0.5], "large": [12345678901234, 12345678901234]})
    for condition in ("mean(change) ** 2 == 0.25", "0 - mean(change) ** 2 < 0", "2 - mean(change) == 2.5", "most(large) == 12345678901234"):
        assert gate_table(table, condition).failed, condition  # a power of a negative number was the negative of one


def test_numbers_with_a_guarantee() -> None:
    X = dials(60)[0].assign(rate=np.repeat([0.0, 0.5], 30), group=np.repeat(["a", "b"], 30))
    wish: dict[str, Any] = {"target": 1, "n": 60, "seed": 1, "population": "all"}
    found = budge.audit(below_rate, X, dials(1)[1], groups="group", **wish)
    share = found.summary().share
    assert share is not None
    assert gate(found, f"share_low >= {share.low:.9f} and share_high <= {share.high:.9f}").failed
    gap = found.differences("group")["low"].iloc[0]
    assert gap > 0.5
    assert gate(found, f"gap_low > {gap - 1e-6:.9f}").failed
    assert not gate(found, f"gap_low > {gap + 1e-6:.9f}").failed
    with pytest.raises(InputError, match="no groups are declared"):
        gate(budge.audit(below_rate, X, dials(1)[1], **wish), "gap_low > 0")
    swapped = found.design.but(groups={"group": {"a": "z"}})  # the other order of groups shows the same gap
    other = budge.audit(below_rate, X, dials(1)[1], design=swapped)
    assert gate(other, f"gap_low > {gap - 1e-6:.9f}").failed


def test_several_models_and_runs_from_disk(tmp_path: Any) -> None:
    X, im = loans()
    both = budge.audit({"yes": approve, "no": lambda t: 0 * approve(t)}, X, im, target=1, groups="home")
    assert gate(both, "share(no_way) == 1", model="no").failed
    assert not gate(both, "share(no_way) == 1", model="yes").failed
    assert gate(both, f"count(age > 0) == {len(both.table)}").failed
    with pytest.raises(InputError, match="several models"):  # which of them is the worse depends on the condition
        gate(both, "share_high == 1")
    assert gate(both, "share_high == 1", model="no").failed
    both.save(tmp_path / "run")
    back = budge.Audit.load(tmp_path / "run")
    assert gate(back, "count(home == 'own') > 0", model="no").failed  # groups are kept
    assert gate(back, f"count(age > 0) == {len(both.table)}", people=X).failed
    with pytest.raises(InputError, match="no such column"):
        gate(back, "count(age > 0) > 0")


def test_numbers_over_some_people_and_their_differences(listed: budge.Audit) -> None:
    t, X = listed.table, loans()[0]
    own, rent = X["home"].eq("own"), X["home"].eq("rent")
    below = t["verdict"].eq("below")
    expected = {
        "share(verdict == 'below', home == 'own')": below[own].mean(), "mean(rho, age > 40)": t["rho"][X["age"] > 40].mean(),
        "count(no_way, home == 'rent')": (t["extreme"].eq("none") & rent).sum(), "most(n, closed == 'shut')": t["n"][X["closed"] == 1].max(),
        "share(verdict == 'below', home == 'own') - share(verdict == 'below', home == 'rent')": below[own].mean() - below[rent].mean(),
        "share(region in ['n', 's'], min(age, 40) < 40)": listed.context.X["region"][X["age"] < 40].isin(["n", "s"]).mean(),  # type: ignore[union-attr]
    }  # fmt: skip
    for text, value in expected.items():
        assert gate(listed, f"{text} >= {value - 1e-6:.9f}").failed, text
        assert not gate(listed, f"{text} > {value + 1e-6:.9f}").failed, text
    wrong = {"share(rho < 1, age) > 0": "not a condition", "share(rho < 1, age > 1, age > 2) > 0": "one on whom", "mean(rho, age > 999) > 0": "nobody"}
    for text, what in wrong.items():
        with pytest.raises(InputError, match=what):
            gate(listed, text)


def test_the_gap_of_one_column() -> None:
    X, im = loans()
    found = budge.audit(approve, X, im, target=1, population="all", groups=["home", "closed"], threshold=0.4)
    for column in ("home", "closed"):
        table = found.summary().groups[column]
        shares = table.xs("below", level="verdict")
        gap = shares["low"].max() - shares["high"].min()
        assert gate(found, f"gap_low({column}) >= {max(gap, 0) - 1e-6:.9f}").failed
        assert not gate(found, f"gap_low({column}) > {max(gap, 0) + 1e-6:.9f}").failed
    for text, what in (("gap_low(hoem) > 0", "did you mean 'home'"), ("share_low(home) > 0", "about all people")):
        with pytest.raises(InputError, match=what):
            gate(found, text)


def test_a_gate_on_no_way_states_of_whom_it_is_not_known() -> None:
    X, im = loans()

    def never(table: pd.DataFrame) -> np.ndarray:
        return np.zeros(len(table), dtype=int)

    drawn, known = (budge.audit(never, X, im, target=1, method=how, n=40) for how in ("sample", "exact"))
    assert str(gate(drawn, "share(no_way) > 0.5")).endswith(f"(0 > 0.5; whether there is a way is not known of {len(X)})")
    assert str(gate(known, "share(no_way) > 0.5")).endswith("(1 > 0.5)")
    assert str(gate(drawn, "share(verdict == 'below') > 0.5")).endswith("> 0.5)")


def test_a_gap_of_fewer_than_two_groups_is_an_error() -> None:
    X, im = loans()
    wish: dict[str, Any] = {"target": 1, "groups": ["home", "closed"], "threshold": 0.4, "population": "home == 'own'"}
    found = budge.audit(approve, X, im, **wish)
    assert found.table["verdict"].isin(["below", "above"]).any()
    with pytest.raises(InputError, match="fewer than two groups"):
        gate(found, "gap_low(home) > 0.1")
    gate(found, "gap_low > 0.1")  # of the other column
    with pytest.raises(InputError, match="fewer than two groups"):
        gate(budge.audit(lambda t: np.ones(len(t), dtype=int), X, im, target=1, groups="home"), "gap_low > 0.1")


def test_what_is_wrong_with_a_condition_is_known_before_any_work(listed: budge.Audit) -> None:
    X = loans()[0].assign(region=list("nsew") * 3)
    good = ["share(verdict == 'below') > 0.1", "share(prediction == 'yes') > 0", "mean(prediction) > 0", "gap_low(home) > 0"]
    for text in [*good, "count(age > 30, region == 'n') > 1"]:
        check_gate(text, X, ["home"])
    bad = [
        "share(verdict == 'belwo') > 0.1", "share(rho) > 0.1", "mean(rho)", "rho > 0.1", "shar(no_way) > 0", "share(rho < 1 > 0.1", "gap_low(region) > 0",
        "share(nothing > 1) > 0", "share(region > 1) > 0", "share(rho < 1, age) > 0",
    ]  # fmt: skip
    for text in bad:
        with pytest.raises(BudgeError):
            check_gate(text, X, ["home"])
    with pytest.raises(InputError, match="several models"):
        check_gate("share_low > 0.5", X, ["home"], models=2)
    with pytest.raises(InputError, match="no groups"):
        check_gate("gap_low > 0.5", X)


def test_any_table() -> None:
    table = pd.DataFrame({"test": ["a", "b", "a"], "p": [0.01, 0.2, np.nan]})
    assert gate_table(table, "count(p < 0.05) == 1").failed
    assert gate_table(table, "share(test == 'a') > 0.6").failed
    assert not gate_table(table, "mean(p) > 0.11").failed  # a missing number is no number


def test_populations_in_the_language_of_spec_files() -> None:
    table = pd.DataFrame({"age": [20, 40, 25, np.nan], "sex": pd.Categorical(["f", "f", "m", None]), "in": [True, False, True, True], "two words": 1})

    def chosen(text: str) -> list[bool]:
        return where_true(text, table, where="population").tolist()

    assert chosen("age < 30 and sex == 'f'") == [True, False, False, False]
    assert chosen("not (age < 30)") == [False, True, False, False]  # what is missing is on neither side
    assert chosen("sex == 'x'") == [False] * 4
    assert chosen("age >= 20 or sex == 'm'") == [True, True, True, False]
    with pytest.raises(InputError, match="no such column"):
        chosen("agee < 30")
    for text in ("age", "age +", "@table.shape", "age.map(print) > 0", "__import__('os')"):
        with pytest.raises(BudgeError, match="population"):
            chosen(text)
