"""One small test per behaviour that was once wrong; each asserts the right one."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import budge
from budge import Design, Execution, Feature, InteractionModel
from budge.distributions import Distribution
from budge.errors import BudgeError, DesignError, InputError, ModelError
from budge.models import as_predictor

QUIET = Execution(check=False)
TENTHS = InteractionModel([Feature("a", "integer", bounds=(0, 9)), Feature("who", "integer", actionable=False)])
DIAL = InteractionModel([Feature("dial", "real", bounds=(0, 1)), Feature("rate", "real", actionable=False), Feature("who", "integer", actionable=False)])


def tenths(people: int, first: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"a": 0, "who": np.arange(first, first + people)})


def dials(rates: Any, first: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"dial": 0.5, "rate": np.asarray(rates, float), "who": np.arange(first, first + len(rates))})


def below_rate(table: pd.DataFrame) -> np.ndarray:
    """1 where the dial is below the person's rate: rho is the rate."""
    return (table["dial"].to_numpy() < table["rate"].to_numpy()).astype(int)


class Recorder:
    """A model that keeps every row that it is asked about."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.tables = answer, []

    def __call__(self, table: pd.DataFrame) -> Any:
        self.tables.append(table.copy())
        return self.answer(table)

    @property
    def rows(self) -> int:
        """Rows seen so far."""
        return sum(map(len, self.tables))

    @property
    def seen(self) -> set[tuple[Any, ...]]:
        """Every row, as a tuple."""
        return {tuple(row) for table in self.tables for row in table.itertuples(index=False)}


# -- unanswered points ----------------------------------------------------------------------------------------------------


def test_unanswered_points_under_a_proposal_are_no_misses() -> None:
    """Half of the law has no answer: rho may be 0.5 and must not be `below`."""

    def model(table: pd.DataFrame) -> list[Any]:
        return [None if a >= 5 else 0 for a in table["a"]]

    proposal = {"a": {"weights": {**dict.fromkeys(range(5), 3), **dict.fromkeys(range(5, 10), 1)}}}
    design = Design(target=1, threshold=0.4, n=200, method="sample", population="all", max_unresolved=1.0, proposal=proposal)
    table = budge.audit(model, tenths(20), TENTHS, design=design, execution=QUIET).table
    assert (table["method"] == "weighted").all()
    assert not (table["verdict"] == "below").any()
    assert (table["high"] >= 0.5).all()


def test_an_unanswered_point_counts_with_its_probability() -> None:
    law = Distribution.from_spec({"weights": {0: 1, 1: 91, 2: 8}})
    im = InteractionModel([Feature("a", "integer", bounds=(0, 2), distribution=law)])
    design = Design(target=1, max_unresolved=1.0)
    row = budge.audit(lambda t: [None if a == 1 else 0 for a in t["a"]], pd.DataFrame({"a": [0]}), im, design=design).table.iloc[0]
    assert row["high"] >= 0.91 - 1e-12
    assert row["upper"] >= 0.91 - 1e-12
    assert row["low"] == 0
    assert np.isnan(row["rho"])
    assert row["verdict"] == "inconclusive"


@pytest.mark.parametrize("claim", ["below", "above"])
def test_unanswered_draws_of_a_sequential_audit_are_unresolved(claim: str) -> None:
    def model(table: pd.DataFrame) -> list[Any]:
        return [None if d > 0.6 else int(d < r) for d, r in zip(table["dial"], table["rate"])]

    design = Design(target=1, threshold=0.1 if claim == "below" else 0.2, claim=claim, sequential=True, max_unresolved=1.0, population="all")
    table = budge.audit(model, dials([0.0, 0.0, 0.3, 0.5]), DIAL, design=design, execution=QUIET).table
    assert (table["unresolved"] > 0).all()
    assert (table["hits"] + table["unresolved"] <= table["n"]).all()
    assert (table["hits"][table.index[:2]] == 0).all()
    assert not (table["verdict"] == "below").any()  # 40 % of the draws have no answer


# -- weights --------------------------------------------------------------------------------------------------------------


def test_the_bound_of_falsify_under_a_proposal_is_valid() -> None:
    proposal = {"a": {"weights": {**dict.fromkeys(range(9), 20), 9: 1}}}
    right = 0
    for seed in range(40):
        found = budge.falsify(lambda t: (t["a"] == 9).astype(int), {"a": 0, "who": seed}, TENTHS, target=1, n=60, seed=seed, method="sample", proposal=proposal)
        right += found.bound >= 0.1
    assert right >= 35


@pytest.fixture(scope="module")
def weighted() -> budge.Audit:
    """60 people who never hit and 60 who hit in half of the points, by weighted draws."""
    proposal = {"a": {"weights": {**dict.fromkeys(range(5), 1), **dict.fromkeys(range(5, 10), 2)}}}
    return budge.audit(
        lambda t: ((t["who"] >= 60) & (t["a"] >= 5)).astype(int), tenths(120), TENTHS, target=1, n=300, method="sample", proposal=proposal, execution=QUIET
    )


def test_shares_of_weighted_people_say_something(weighted: budge.Audit) -> None:
    share = weighted.summary().share
    assert share is not None
    assert 0.4 <= share.low <= 0.5 <= share.high <= 0.6


def test_weighted_rows_have_p_values(weighted: budge.Audit) -> None:
    table = weighted.table
    assert table["p_value"].notna().all()
    assert table["p_adjusted"].notna().all()
    assert ((table["p_value"] < 0.05) == (table["verdict"] == "below")).all()


# -- families and verdicts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sequential", [False, True])
def test_people_above_are_adjusted_too(sequential: bool) -> None:
    """Many people at the threshold itself: some are `above` by chance, and none of these survives Holm."""
    X = dials(np.full(300, 0.1))
    result = budge.audit(below_rate, X, DIAL, target=1, population="all", sequential=sequential, adjust="holm", seed=2, **({} if sequential else {"n": 100}))
    plain, adjusted = result.people("above"), result.people("above", adjusted=True)
    assert len(adjusted) < max(len(plain), 1)
    assert sequential or len(plain) > 0


@pytest.mark.parametrize("adjust", ["none", "bh", "holm", "bonferroni"])
def test_a_sequential_verdict_has_a_small_p_value_and_is_listed(adjust: str) -> None:
    result = budge.audit(below_rate, dials(np.tile([0.0, 0.02, 0.05, 0.3], 10)), DIAL, target=1, population="all", sequential=True, adjust=adjust)
    table = result.table
    below = table[table["verdict"] == "below"]
    assert len(below) > 10
    assert (below["p_value"] < 0.05).all()
    assert list(result.people("below").index) == list(below.index)
    if adjust != "none":  # the rule stops at the level that survives the adjustment
        assert len(result.people("below", adjusted=True)) >= (table["rho"] == 0).sum()


def test_the_verdicts_below_and_above_are_both_described() -> None:
    text = str(budge.audit(below_rate, dials([0.0, 0.5]), DIAL, target=1, n=100, population="all"))
    assert "a false 'below' has probability at most 5 % per person, and so has a false 'above'" in text


def test_no_way_at_all_is_a_claim() -> None:
    result = budge.audit(lambda t: ((t["a"] == 9) & (t["who"] == 1)).astype(int), tenths(2), TENTHS, target=1, threshold=0)
    assert result.table["verdict"].tolist() == ["none", "above"]
    assert list(result.people("none").index) == [0]
    assert "1 is known to have no way at all" in str(result)


def test_listed_people_need_no_number_of_draws() -> None:
    assert budge.audit(lambda t: (t["a"] == 9).astype(int), tenths(3), TENTHS, target=1, n=3).table["method"].eq("exact").all()
    with pytest.raises(DesignError, match="29"):
        budge.audit(below_rate, dials([0.0]), DIAL, target=1, n=3)


def test_the_most_draws_of_a_sequential_audit_can_be_given() -> None:
    result = budge.audit(below_rate, dials([0.07, 0.08, 0.09]), DIAL, target=1, sequential=True, n=100, population="all")
    assert result.design.n == 100
    assert (result.table["n"] <= 100).all()


def test_a_sequential_audit_whose_draws_cannot_show_the_claim_is_refused() -> None:
    """35 draws without a hit suffice for the fixed test, and for no sequential one: it needs 39."""
    with pytest.raises(DesignError, match="n"):
        budge.audit(below_rate, dials([0.0]), DIAL, target=1, sequential=True, n=35, adjust="none", method="sample")


def test_a_sequential_audit_of_many_short_rounds_ends() -> None:
    """Where misses are surprises, rounds are a few draws long: some sixty of them come before the last draw."""
    design = Design(target=1, threshold=0.1, claim="above", margin=0.1, sequential=True, population="all")
    table = budge.audit(below_rate, dials(np.full(40, 0.15)), DIAL, design=design, execution=QUIET).table
    assert (table["n"] <= 499).all()
    assert ((table["verdict"] == "above") == (table["lower"] > 0.1)).all()


# -- points asked ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["listed", "drawn", "sequential", "weighted"])
@pytest.mark.parametrize("block_people", [None, 3])
def test_points_asked_are_the_rows_that_the_model_saw(way: str, block_people: int | None) -> None:
    if way in ("listed", "weighted"):
        model, X, im = Recorder(lambda t: (t["a"] >= 5 + t["who"]).astype(int)), tenths(10), TENTHS
        more: dict[str, Any] = {} if way == "listed" else {"method": "sample", "n": 50, "proposal": {"a": {"weights": dict(enumerate(range(1, 11)))}}}
    else:
        model, X, im = Recorder(below_rate), dials(np.linspace(0, 0.3, 10)), DIAL
        more = {"n": 50} if way == "drawn" else {"sequential": True}
    result = budge.audit(model, X, im, target=1, population="all", execution=Execution(check=False, block_people=block_people), **more)
    assert model.rows == len(X) + result.summary().asked
    assert f"{result.summary().asked:,} points asked" in str(result)
    assert (result.rows["model"].counts.asked >= result.table["n"]).all()


@pytest.mark.parametrize("sequential", [False, True])
def test_witness_and_how_much_use_draws_that_were_asked(sequential: bool) -> None:
    model = Recorder(lambda t: 1.0 - np.abs(t["dial"].to_numpy() - t["rate"].to_numpy()))
    X = dials([0.1, 0.3, 0.9, 0.95])
    more: dict[str, Any] = {"sequential": True} if sequential else {"n": 60}
    result = budge.audit(as_predictor(model, output="score"), X, DIAL, target="score >= 0.8", population="all", execution=QUIET, **more)
    seen = model.seen
    for label in X.index:
        witness = result.witness(label)
        if result.table.loc[label, "prediction"] >= 0.8:
            assert witness is None  # nothing is needed
        else:
            assert tuple(witness[list(X.columns)]) in seen
        before = len(model.tables)
        found = result.how_much(label)
        assert {tuple(row) for table in model.tables[before:] for row in table.itertuples(index=False)} <= seen
        assert found.n == result.table.loc[label, "n"]


# -- groups ---------------------------------------------------------------------------------------------------------------


def test_group_intervals_hold_the_truth() -> None:
    """200 audits of two groups of 30 people near the threshold; each may miss with probability 5 %."""
    rng, missed, runs = np.random.default_rng(0), 0, 200
    for run in range(runs):
        rates = rng.choice([0.0, 0.09, 0.1, 0.12, 0.4], 60)
        X = dials(rates, first=60 * run).assign(group=["x", "y"] * 30)
        by = budge.audit(below_rate, X, DIAL, target=1, n=60, population="all", execution=QUIET).by("group")
        for (group, side), row in by.iterrows():
            here = rates[X["group"] == group]
            share = float((here < 0.1).mean() if side == "below" else (here > 0.1).mean())
            if not row["low"] - 1e-9 <= share <= row["high"] + 1e-9:
                missed += 1
                break
    assert missed <= binom.ppf(0.999, runs, 0.05)


# -- saved runs -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {}, {"claim": "above", "threshold": 0.4}, {"margin": 0.02, "power": 0.8}, {"width": 0.2}, {"n": 77}, {"sequential": True},
        {"sequential": True, "margin": 0.03}, {"groups": {"g": {1: "one"}}}, {"proposal": {"a": {"weights": {0: 1, 1: 2}}}, "n": 50},
        {"threshold": 0}, {"harm": "below", "adjust": "holm", "seed": 7}, {"target": ["a", "b"]}, {"target": "score >= 0.7"},
    ],
)  # fmt: skip
def test_designs_come_back_as_they_were(options: dict[str, Any]) -> None:
    design = Design(**{"target": 1, **options})
    again = Design.from_dict(json.loads(json.dumps(design.to_dict())))
    assert again.digest == design.digest
    assert (again.n, again.why_n, again.margin, again.power) == (design.n, design.why_n, design.margin, design.power)


@pytest.mark.parametrize("sequential", [False, True])
def test_replay_keeps_margin_power_why_n_and_date(sequential: bool, tmp_path: Path) -> None:
    X = dials([0.0, 0.05, 0.2, 0.6])
    design = Design(target=1, margin=0.06, power=0.8, sequential=sequential)
    first = budge.audit(below_rate, X, DIAL, design=design)
    first.save(tmp_path / "run")
    again = budge.Audit.load(tmp_path / "run").replay(below_rate, X)
    for name in ("n", "why_n", "margin", "power", "digest"):
        assert getattr(again.design, name) == getattr(first.design, name)
    assert again.design.margin == 0.06
    assert again.info["when"] == first.info["when"]
    pd.testing.assert_frame_equal(again.table, first.table)


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_witnesses_of_people_with_dates_as_labels_keep_their_changes(zone: str | None, tmp_path: Path) -> None:
    X = tenths(3).set_index(pd.date_range("2024-03-30", periods=3, freq="D", tz=zone))
    first = budge.audit(lambda t: (t["a"] >= 7).astype(int), X, TENTHS, target=1)
    first.save(tmp_path / "run")
    loaded = budge.Audit.load(tmp_path / "run")
    for label in X.index:
        change = loaded.change(label)
        assert change[["feature", "from", "to"]].values.tolist() == [["a", 0, 7]]
        assert change.values.tolist() == first.change(label).values.tolist()
    pd.testing.assert_frame_equal(loaded.table, first.table, check_freq=False)


# -- models that cannot be trusted ----------------------------------------------------------------------------------------


class Later:
    """A model that answers well, and badly about the points of people from the fourth on."""

    def __init__(self, bad: Any) -> None:
        self.bad, self.calls = bad, 0

    def __call__(self, table: pd.DataFrame) -> Any:
        self.calls += 1
        good = (table["a"].to_numpy() >= 5).astype(int)
        return self.bad(table, good) if self.calls > 1 and table["who"].min() >= 3 else good


def mutate(table: pd.DataFrame, good: np.ndarray) -> Any:
    table["a"] = 0
    return good


BAD = {
    "another kind": lambda table, good: np.where(good == 1, "yes", "no"),
    "shares": lambda table, good: good * 0.5 + 0.25,
    "too few": lambda table, good: good[:-1],
    "two columns": lambda table, good: np.column_stack([good, good]),
    "mutates": mutate,
}


@pytest.mark.parametrize("name", BAD)
def test_a_model_that_goes_wrong_in_a_later_block_is_an_error(name: str) -> None:
    with pytest.raises(ModelError):
        budge.audit(Later(BAD[name]), tenths(6), TENTHS, target=1, execution=Execution(block_people=1, check=False))


def test_a_model_that_drifts_is_an_error_unless_that_is_accepted() -> None:
    def drifting() -> Any:
        asked = [0]

        def model(table: pd.DataFrame) -> np.ndarray:
            asked[0] += len(table)
            return (table["a"].to_numpy() >= (5 if asked[0] < 150 else 0)).astype(int)

        return model

    with pytest.raises(ModelError, match="otherwise than at the start"):
        budge.audit(drifting(), tenths(30), TENTHS, target=1, execution=Execution(block_people=2))
    noted = budge.audit(drifting(), tenths(30), TENTHS, target=1, execution=Execution(block_people=2, check="warn"))
    assert any("otherwise than at the start" in note.what for note in noted.notes)


def test_a_random_model_is_an_error() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ModelError):
        budge.audit(lambda t: rng.integers(0, 2, len(t)), tenths(30), TENTHS, target=1)


def test_a_model_that_depends_on_its_batch_is_an_error() -> None:
    with pytest.raises(ModelError):
        budge.audit(lambda t: (t["a"] + t["who"] >= (t["a"] + t["who"]).mean()).astype(int), tenths(30), TENTHS, target=1)


# -- journals -------------------------------------------------------------------------------------------------------------


def test_a_journal_of_a_function_with_other_answers_is_refused(tmp_path: Path) -> None:
    X = tenths(6).assign(a=range(6))
    budge.audit(lambda t: (t["a"] >= 5).astype(int), X, TENTHS, target=1, population="all", journal=tmp_path / "run")
    with pytest.raises(InputError, match="answers"):
        budge.audit(lambda t: (t["a"] >= 4).astype(int), X, TENTHS, target=1, population="all", journal=tmp_path / "run")


def test_people_without_an_answer_are_asked_again_on_resume(tmp_path: Path) -> None:
    broken = [True]

    def model(table: pd.DataFrame) -> Any:
        gone = broken[0] & (table["who"] == 1) & (table["a"] > 3)
        if broken[0] and (table["who"] == 4).any() and (table["a"] > 0).any():
            raise KeyboardInterrupt
        return [None if g else int(a >= 8) for g, a in zip(gone, table["a"])]

    more: dict[str, Any] = {"target": 1, "journal": tmp_path / "run", "design": Design(max_unresolved=1.0), "execution": Execution(block_people=1, check=False)}
    with pytest.raises(KeyboardInterrupt):
        budge.audit(model, tenths(6), TENTHS, **more)
    broken[0] = False
    recorder = Recorder(model)
    result = budge.audit(recorder, tenths(6), TENTHS, **more)
    assert (result.table["unresolved"] == 0).all()
    assert (result.table["hits"] == 2).all()
    points = pd.concat(recorder.tables[1:])
    assert set(points["who"]) == {1, 4, 5}  # only what was missing or without an answer


# -- at the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("harm", "bad"), ("sequential", "no"), ("progress", 3), ("journal", 3), ("n_jobs", 0), ("adjust", "bhh"), ("threshold", 1.5),
        ("claim", "under"), ("seed", -1), ("n", 0), ("method", "fast"), ("alpha", 0),
    ],
)  # fmt: skip
def test_arguments_are_checked_at_the_door(name: str, value: object) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(BudgeError, match=name):
        budge.audit(lambda t: t["a"], tenths(2), TENTHS, target=1, **options)


@pytest.mark.parametrize("value", [-1, 0, 2.5, "many"])
def test_a_block_has_people(value: Any) -> None:
    with pytest.raises(BudgeError, match="block_people"):
        Execution(block_people=value)


def test_the_signature_of_audit_is_short() -> None:
    assert len(inspect.signature(budge.audit).parameters) <= 18


def test_a_share_of_listed_people_is_exact_for_every_number_of_them() -> None:
    """Shares are counts divided by people: rounding must not turn an exact one into one with a confidence."""
    for people, below in ((10, 3), (7, 2), (6, 1), (29, 11), (49, 30)):
        result = budge.audit(lambda t, b=below: (t["who"] >= b).astype(int), tenths(people), TENTHS, target=1, population="all")
        assert f"Exactly {below} of these {people} people" in str(result)
        assert "confidence" not in str(result)


def test_sentences_about_groups_of_listed_people_state_no_confidence() -> None:
    X = tenths(4).assign(group=["x", "x", "y", "y"])
    text = str(budge.audit(lambda t: (t["who"] >= 2).astype(int), X, TENTHS, target=1, population="all", groups="group"))
    assert "confidence" not in text


def test_at_the_threshold_0_nobody_is_said_to_be_below_it() -> None:
    text = str(budge.audit(lambda t: ((t["who"] >= 2) & (t["a"] > 3)).astype(int), tenths(4), TENTHS, target=1, threshold=0))
    assert "below the threshold" not in text


@pytest.mark.parametrize("kind", ["table", "array", "list"])
@pytest.mark.parametrize("sequential", [False, True])
def test_witnesses_of_inputs_of_any_kind_were_asked(kind: str, sequential: bool) -> None:
    class Anywhere:
        def draw(self, x: Any, n: int, rng: np.random.Generator) -> Any:
            values = rng.random((n, 1))
            return pd.DataFrame(values, columns=["v"]) if kind == "table" else values if kind == "array" else values[:, 0].tolist()

    X: Any = {"table": pd.DataFrame({"v": [0.9, 0.8]}), "array": np.array([[0.9], [0.8]]), "list": [0.9, 0.8]}[kind]
    seen: set[float] = set()

    def model(inputs: Any) -> list[int]:
        values = np.ravel(np.asarray(inputs, dtype=float))
        seen.update(values.tolist())
        return (values < 0.3).astype(int).tolist()

    more: dict[str, Any] = {"sequential": True} if sequential else {"n": 60}
    result = budge.audit(model, X, Anywhere(), target=1, **more)
    for label in (0, 1):
        value = float(np.ravel(np.asarray(result.witness(label), dtype=float))[0])
        assert value < 0.3
        assert value in seen
