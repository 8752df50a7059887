"""Proving and recourse end to end: real models, real pipelines, against lists of every reachable point."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import budge
from budge.constraints import IfThen, LinearConstraint, OneHot
from budge.errors import BudgeError, DesignError, InputError

pytest.importorskip("sklearn")
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

HOMES = ("rent", "own", "free")


def people(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "income": rng.integers(0, 40, n), "debt": rng.integers(0, 20, n), "job": rng.integers(0, 2, n), "home": rng.choice(HOMES, n),
            "age": rng.integers(18, 80, n),
        }
    )  # fmt: skip
    X["debt"] = np.minimum(X["debt"], 50 - X["income"])
    X.loc[X["income"] < 10, "home"] = "rent"
    y = (X["income"] - X["debt"] + 8 * X["job"] + 5 * (X["home"] == "own") + rng.normal(0, 4, n) > 22).astype(int)
    return X, y


IM = budge.InteractionModel(
    [
        budge.Feature("income", "integer", bounds=(0, 40), max_increase=5, max_decrease=2),
        budge.Feature("debt", "integer", bounds=(0, 20), max_decrease=4, max_increase=1),
        budge.Feature("job", "binary"),
        budge.Feature("home", "category", levels=HOMES),
        budge.Feature("age", "integer", bounds=(18, 80), actionable=False),
    ],
    [LinearConstraint({"income": 1, "debt": 1}, "<=", 50), IfThen("home == 'own'", "income >= 10")],
    name="loans",
)


def pipeline(last):
    encode = make_column_transformer((StandardScaler(), ["income", "debt", "age"]), (OneHotEncoder(), ["home"]), remainder="passthrough")
    return make_pipeline(encode, last)


@pytest.fixture(scope="module")
def models():
    X, y = people()
    return {
        "logistic": pipeline(LogisticRegression(max_iter=500)).fit(X, y),
        "forest": pipeline(RandomForestClassifier(15, max_depth=5, random_state=0)).fit(X, y),
    }


DRAWN = budge.Design(threshold=0, testing=False, method="sample")  # so that proofs, not lists, settle everything


@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_proofs_agree_with_lists(models, name):
    X, _ = people(120, 1)
    listed = budge.prove(models[name], X, IM, target=1)
    assert set(listed.table["method"]) == {"listed"}
    proved = budge.prove(models[name], X, IM, target=1, n=2, design=DRAWN)
    assert proved.table["status"].value_counts().to_dict() == listed.table["status"].value_counts().to_dict()
    assert (proved.table["status"] == listed.table["status"]).all()
    assert {"proved", "drawn"} <= set(proved.table["method"])
    assert (proved.table["status"] == "impossible").sum() > 5
    assert (models[name].predict(proved.points.astype(X.dtypes)) == 1).all()
    again = budge.prove(models[name], X, IM, target=1, n=2, design=DRAWN)
    pd.testing.assert_frame_equal(again.table.drop(columns="seconds"), proved.table.drop(columns="seconds"))


@pytest.mark.parametrize("name", ["logistic", "forest"])
@pytest.mark.parametrize("cost", [None, {"income": 1.0, "debt": 2.0, "job": 7.0, "home": 4.0}])
def test_the_least_plan_is_the_cheapest_of_the_list(models, name, cost):
    X, _ = people(60, 2)
    seen = 0
    for label in X.index[:16]:
        x = X.loc[[label]]
        listed = budge.recourse(models[name], x, IM, target=1, cost=cost, k=3)
        proved = budge.recourse(models[name], x, IM, target=1, cost=cost, k=3, design=DRAWN)
        assert listed.status == proved.status
        if listed.status != "possible":
            assert not len(proved.actions)
            continue
        seen += 1
        assert listed.method == "listed"
        assert listed.optimal
        if proved.optimal:
            np.testing.assert_allclose(np.array(proved.cost, dtype=float), np.array(listed.cost, dtype=float)[: len(proved.cost)], atol=1e-9)
        else:
            assert tuple(np.atleast_1d(proved.cost[0])) >= tuple(np.atleast_1d(listed.cost[0]) - 1e-9)
        for found in (listed, proved):
            sets = [frozenset(g["feature"]) for _, g in found.actions.groupby("plan")]
            assert len(set(sets)) == len(sets)
            assert (models[name].predict(found.points) == 1).all()
            for _, point in found.points.iterrows():
                moved = {c: [point[c]] if c == "home" else [point[c] - x.iloc[0][c]] for c in X.columns}
                assert IM.feasible(x, moved)[0]
    assert seen >= 3


def test_an_audit_with_proofs_knows_who_has_no_way(models):
    X, _ = people(80, 3)
    plain = budge.audit(models["forest"], X, IM, target=1, n=298, design=budge.Design(method="sample"))
    proved = budge.audit(models["forest"], X, IM, target=1, n=298, design=budge.Design(method="sample"), prove=True)
    exact = budge.audit(models["forest"], X, IM, target=1)
    none = exact.table["extreme"] == "none"
    assert none.sum() > 5
    assert ((proved.table["extreme"] == "none") == none).all()
    assert (plain.table["extreme"] == "").all()
    settled = proved.table[none]
    assert (settled["method"] == "proved").all()
    assert (settled["rho"] == 0).all()
    assert settled["p_value"].isna().all()
    assert (settled["proof"] == "impossible").all()
    others = ~none & (proved.table["hits"] > 0)
    same = [c for c in plain.table.columns if c != "p_adjusted"]  # fewer people are tested where some are proved
    pd.testing.assert_frame_equal(proved.table.loc[others, same], plain.table.loc[others, same], check_dtype=False)
    assert f"{int(none.sum())} are known to have no way at all (proved), nobody is open" in str(proved)
    assert f"{int(none.sum())} people proved from the model's structure" in str(proved)


def test_a_way_that_only_the_proof_finds_is_a_witness():
    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 100_000)), budge.Feature("b", "integer", bounds=(0, 100_000))])
    X = pd.DataFrame({"a": [0, 5], "b": [0, 5]})

    class Card:
        classes_ = (0, 1)

        def predict(self, table):
            return (table["a"] + table["b"] >= 199_999).astype(int).to_numpy()

        def structure(self, columns):
            one = np.ones(1)
            answer = budge.proof.Answer("binary", (0, 1), cut=199_999, strict=False, link=None)
            return budge.proof.Additive(tuple(columns), answer, np.zeros(1), slopes={"a": one, "b": one})

    found = budge.audit(Card(), X, im, target=1, threshold=0, n=50, prove=True)
    assert (found.table["hits"] == 0).all()
    assert (found.table["verdict"] == "above").all()
    assert found.witness(0)[["a", "b"]].sum() >= 199_999
    drawn = budge.audit(Card(), X, im, target=1, threshold=0, n=50)
    assert (drawn.table["verdict"] == "inconclusive").all()
    plan = budge.recourse(Card(), X.iloc[[1]], im, target=1, cost={"a": 1.0, "b": 1.0})
    assert plan.optimal
    assert plan.cost == (199_989.0,)
    share = budge.audit(Card(), X, im, target=1, method="exact", prove=True)
    assert share.table["hits"].tolist() == [3, 3]
    assert share.table["n"].tolist() == [100_001**2] * 2
    assert (share.table["verdict"] == "below").all()


def test_a_wrong_structure_is_an_error_not_a_proof():
    class Liar:
        classes_ = (0, 1)

        def predict(self, table):
            return (table["a"] >= 3).astype(int).to_numpy()

        def structure(self, columns):
            return budge.proof.Additive(tuple(columns), budge.proof.Answer("binary", (0, 1), cut=9.5), np.zeros(1), slopes={"a": np.ones(1)})

    im = budge.InteractionModel([budge.Feature("a", "integer", bounds=(0, 10))])
    with pytest.raises(BudgeError, match="does not agree with the model"):
        budge.prove(Liar(), pd.DataFrame({"a": [0, 1, 5]}), im, target=1)


def test_what_cannot_be_read_stays_open_and_says_so():
    im = budge.InteractionModel([budge.Feature(name, "real", bounds=(0, 1)) for name in "abc"])
    X = pd.DataFrame({name: [0.0] for name in "abc"})
    found = budge.prove(lambda t: (t.sum(axis=1) > 2.999).astype(int), X, im, target=1)
    assert found.table["status"].tolist() == ["unresolved"]
    assert found.table["reason"].tolist() == ["model"]
    assert any("cannot be read" in note.what for note in found.audit.notes)
    plan = budge.recourse(lambda t: (t.sum(axis=1) > 2.999).astype(int), X, im, target=1)
    assert plan.status == "unresolved"
    assert "1,000 draws" in plan.reason
    easy = budge.recourse(lambda t: (t.sum(axis=1) > 1.5).astype(int), X, im, target=1)
    assert easy.status == "possible"
    assert easy.method == "polished"
    assert not easy.optimal
    assert "cheaper plans may exist" in str(easy)
    assert easy.points.iloc[0].sum() == pytest.approx(1.5, abs=0.02)


def test_people_who_have_the_target_need_no_plan(models):
    X, _ = people(50, 4)
    has = X[models["logistic"].predict(X) == 1].iloc[[0]]
    found = budge.recourse(models["logistic"], has, IM, target=1)
    assert (found.status, len(found.actions), found.optimal) == ("already", 0, False)
    assert "No change is needed" in str(found)
    assert "Nothing has to change" in found.letter()


def test_a_person_for_whom_it_is_impossible_is_told_so(models):
    X, _ = people(120, 1)
    proofs = budge.prove(models["forest"], X, IM, target=1)
    label = proofs.table.index[proofs.table["status"] == "impossible"][0]
    for design in (None, DRAWN):
        found = budge.recourse(models["forest"], X.loc[[label]], IM, target=1, design=design)
        assert found.status == "impossible"
        assert "proved, not estimated" in found.letter()
        assert "No action leads to the target" in str(found)
    one = budge.prove(models["forest"], X.loc[[label]], IM, target=1)
    assert one.status == "impossible"
    assert "No action leads to the target" in str(one)


def test_certain_where_nothing_can_be_missed(models):
    X, _ = people(200, 5)
    rich = X.assign(income=38, debt=0, job=1, home="own")
    frozen = IM.freeze("job", "home")
    listed = budge.prove(models["logistic"], rich.head(20), frozen, target=1)
    proved = budge.prove(models["logistic"], rich.head(20), frozen, target=1, n=5, design=DRAWN)
    assert (listed.table["status"] == proved.table["status"]).all()
    assert "certain" in set(proved.table["status"])
    assert (proved.audit.table.loc[proved.table["status"] == "certain", "rho"] == 1).all()


def test_effects_leave_impossible_proofs_and_nothing_else(models):
    noisy = budge.InteractionModel(IM.features, IM.constraints, [budge.Effect("debt", add="uniform(0, 3)", round=True, clip=(0, 20))])
    X, _ = people(120, 1)
    sure = budge.prove(models["logistic"], X, noisy, target=1, n=20)
    without = budge.prove(models["logistic"], X, IM, target=1)
    stuck = sure.table["status"] == "impossible"
    assert stuck.sum() > 0
    assert (without.table.loc[stuck, "status"] == "impossible").all()
    assert set(sure.table.loc[sure.table["status"] == "unresolved", "reason"]) <= {"effects"}
    plan = budge.recourse(models["logistic"], X.loc[[X.index[without.table["status"] == "possible"][0]]], noisy, target=1)
    assert any(note.where == "effects" for note in plan.notes)


def test_one_hot_columns_move_together():
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 3, 200)
    X = pd.DataFrame({f"k{i}": (kinds == i).astype(int) for i in range(3)} | {"a": rng.integers(0, 10, 200)})
    y = ((kinds == 1) & (X["a"] > 4)).astype(int)
    model = RandomForestClassifier(10, max_depth=4, random_state=0).fit(X, y)
    features = [budge.Feature(f"k{i}", "binary") for i in range(3)] + [budge.Feature("a", "integer", bounds=(0, 9), actionable=False)]
    im = budge.InteractionModel(features, [OneHot(("k0", "k1", "k2"))])
    listed, proved = (budge.prove(model, X.head(60), im, target=1, design=design, n=1) for design in (None, DRAWN))
    assert (listed.table["status"] == proved.table["status"]).all()
    assert (proved.points[["k0", "k1", "k2"]].sum(axis=1) == 1).all()


def test_engines_journals_and_saved_runs_keep_proofs(models, tmp_path):
    X, _ = people(24, 6)
    design = budge.Design(target=1, method="sample", n=298, prove=True)
    whole = budge.audit(models, X, IM, design=design)
    parts = budge.audit(models, X, IM, design=design, execution=budge.Execution(block_people=9, n_jobs=2))
    kept = budge.audit(models, X, IM, design=design, execution=budge.Execution(journal=tmp_path / "journal"))
    again = budge.audit(models, X, IM, design=design, execution=budge.Execution(journal=tmp_path / "journal"))
    for other in (parts, kept, again):
        pd.testing.assert_frame_equal(other.table, whole.table)
    loaded = budge.Audit.load(whole.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(loaded.table, whole.table, check_dtype=False)
    whole.replay()
    groups = whole.by(X["job"].loc[whole.rows["forest"].index], model="forest")
    assert (groups["low"] <= groups["high"]).all()


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"cost": {"wage": 1}}, "no such feature"),
        ({"cost": {"income": -1}}, "cannot be negative"),
        ({"cost": 3}, "weights by feature or a function"),
        ({"k": 0}, "at least 1"),
        ({"seconds": -1}, "positive number of seconds"),
        ({"target": None}, "no target"),
    ],
)
def test_bad_wishes_are_refused(models, more, match):
    X, _ = people(3)
    with pytest.raises((DesignError, InputError), match=match):
        budge.recourse(models["forest"], X.head(1), IM, **({"target": 1} | more))


def test_one_person_and_one_model_are_needed(models):
    X, _ = people(3)
    with pytest.raises(InputError, match="one person"):
        budge.recourse(models["forest"], X, IM, target=1)
    with pytest.raises(InputError, match="one model"):
        budge.recourse(models, X.head(1), IM, target=1)


def test_a_cost_of_ones_own(models):
    X, _ = people(60, 2)
    x = X[models["forest"].predict(X) == 0].iloc[[3]]

    def dear(points, start):
        return 10 * (points["home"] != start["home"].iloc[0]) + (points["income"] - start["income"].iloc[0]).abs() + points["job"]

    found = budge.recourse(models["forest"], x, IM, target=1, cost=dear)
    points = IM.enumerate(x).points
    hits = points[models["forest"].predict(points) == 1]
    if len(hits):
        assert found.cost[0] == pytest.approx(dear(hits, x).min())


# -- the shell ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"income": rng.integers(0, 40, 300), "debt": rng.integers(0, 20, 300)})
    y = (X["income"] - X["debt"] + rng.normal(0, 2, 300) > 15).astype(int)
    model = xgboost.XGBClassifier(n_estimators=10, max_depth=3).fit(X, y)
    model.save_model(tmp_path / "m.json")
    X.head(20).assign(name=[f"p{i}" for i in range(20)]).to_csv(tmp_path / "people.csv", index=False)
    moves = {"income": {"bounds": (0, 40), "max_increase": 6}, "debt": {"bounds": (0, 20), "max_decrease": 6}}
    im = budge.InteractionModel([budge.Feature(name, "integer", **limits) for name, limits in moves.items()])
    im.to_file(tmp_path / "spec.yaml")
    return tmp_path


def run(capsys, *arguments) -> tuple[int, str]:
    from budge.cli import main

    code = main([str(a) for a in arguments])
    return code, capsys.readouterr().out


def test_prove_from_the_shell(files, capsys):
    common = [files / "spec.yaml", files / "people.csv", "--model", files / "m.json", "--target", "1", "--id", "name"]
    code, text = run(capsys, "prove", *common, "-o", files / "proofs.csv")
    assert code == 0
    assert "impossible, proved" in text
    table = pd.read_csv(files / "proofs.csv")
    assert set(table["status"]) <= {"possible", "impossible"}
    assert run(capsys, "prove", *common, "-o", files / "proofs.csv")[0] == 2  # nothing is overwritten unasked
    code, text = run(capsys, "prove", *common, "--json")
    assert json.loads(text)["counts"] == table["status"].value_counts().to_dict()
    code, text = run(capsys, "audit", *common, "--prove", "--prove-seconds", 5, "--method", "sample")
    assert "proved" in text


def test_recourse_from_the_shell(files, capsys):
    common = [files / "spec.yaml", files / "people.csv", "--model", files / "m.json", "--target", "1", "--id", "name"]
    _, text = run(capsys, "prove", *common, "--json")
    who = next(row["person"] for row in json.loads(text)["table"] if row["status"] == "possible" and row["prediction"] == 0)
    code, text = run(capsys, "recourse", *common, "--person", who, "-k", 2)
    assert code == 0
    assert "No cheaper plan exists" in text
    code, text = run(capsys, "recourse", *common, "--person", who, "--letter", "--cost", "income=1", "--cost", "debt=1")
    assert "What would change the decision" in text
    code, text = run(capsys, "recourse", *common, "--person", who, "--json")
    assert json.loads(text)["optimal"] is True
    assert run(capsys, "recourse", *common, "--person", "nobody")[0] == 2
    assert run(capsys, "recourse", *common, "--person", who, "--cost", "income")[0] == 2


def test_an_audit_gives_plans_and_its_report_shows_them(models, tmp_path):
    X, _ = people(60, 7)
    found = budge.audit(models["forest"], X, IM, target=1, n=298, design=budge.Design(method="sample"), prove=True)
    able = found.table.index[found.table["hits"] > 0][0]
    plan = found.recourse(able, k=2)
    assert plan.optimal
    alone = budge.recourse(models["forest"], X.loc[[able]], IM, target=1, k=2, design=DRAWN)
    assert plan.cost == alone.cost
    page = found.to_html(tmp_path / "report.html").read_text()
    assert "<b>Least change that works</b> (" in page
    assert "proved from the model&#39;s structure" in page


def test_which_constraint_would_have_to_go_is_proved(models):
    from budge.stress import minimal_relaxations

    X, _ = people(120, 1)
    stuck = X[budge.prove(models["forest"], X, IM, target=1).table["status"] == "impossible"].head(12)
    listed = minimal_relaxations(models["forest"], stuck, IM, target=1, max_size=1, design=budge.Design(exact_limit=10**6))
    proved = minimal_relaxations(models["forest"], stuck, IM, target=1, max_size=1, design=budge.Design(method="sample", n=3, testing=False), prove=True)
    assert set(listed.stuck) == set(proved.stuck)
    for label in stuck.index:
        assert set(proved.of(label)) == set(listed.of(label))
    assert proved.table["proven"].all()
    assert len(proved.table) > 3


def test_rows_are_coded_together_and_those_that_cannot_be_are_left_out():
    from types import SimpleNamespace

    from budge.audit.proving import Settler
    from budge.proof.structure import codes_of, columns_of
    from budge.targets import as_target

    X, _ = people(9)
    columns = columns_of(X, IM.features)
    strange = X.copy()
    strange.loc[[2, 7], "home"] = "boat"
    settler = Settler(IM, as_target(1), structure=SimpleNamespace(columns=columns))  # type: ignore[arg-type]
    found = settler.starts(SimpleNamespace(frame=strange), list(range(9)))  # type: ignore[arg-type]
    assert sorted(found) == [0, 1, 3, 4, 5, 6, 8]
    assert all(np.array_equal(codes, codes_of(columns, X.iloc[[row]])[0]) for row, codes in found.items())
    assert settler.starts(SimpleNamespace(frame=strange), []) == {}  # type: ignore[arg-type]
    assert Settler(IM, as_target(1)).starts(SimpleNamespace(frame=X), [0]) == {}  # type: ignore[arg-type]


def test_the_page_shows_the_least_change_or_the_proof(models):
    from budge.web.person import Person
    from budge.web.question import make_question

    X, _ = people(60, 7)
    question = make_question(models["forest"], X, IM, target=1, design=budge.Design(method="sample", n=298))
    seen = set()
    for place in range(25):
        person = Person(question, IM, 0.1, place)
        plan = budge.recourse(models["forest"], X.iloc[[place]], IM, target=1)
        assert person.plan("model").status == plan.status
        seen.add(plan.status)
        told = person.least("model")
        if plan.status == "possible":
            assert told is not None
            assert told["proved"]
            assert len(told["moves"]) == plan.cost[0][0]
        else:
            assert told is None
    assert seen == {"possible", "impossible", "already"}


def test_people_who_are_alike_are_proved_once(models, monkeypatch):
    from budge.audit.proving import Prover

    X, _ = people(30, 1)
    twins = pd.concat([X] * 5, ignore_index=True)
    asked = []
    plain = Prover.prove
    monkeypatch.setattr(Prover, "prove", lambda self, start, *more: asked.append(start.tobytes()) or plain(self, start, *more))
    found = budge.prove(models["forest"], twins, IM, target=1, n=2, design=DRAWN, execution=budge.Execution(block_people=40))
    assert len(asked) <= 2 * len(set(asked))  # once for a way, once for a miss at most
    for label in X.index:
        assert found.table.loc[label::30, "status"].nunique() == 1


def test_a_letter_in_the_words_of_the_user() -> None:
    im = budge.InteractionModel([budge.Feature("inc", "integer", bounds=(0, 9))])
    found = budge.recourse(lambda t: (t["inc"] > 2).astype(int), {"inc": 1}, im, target=1)
    said = found.letter({"target_name": "approval", "feature_labels": {"inc": "income"}})
    assert "The decision about you is 0. This would lead to approval:" in said
    assert "  - income: from 1 to 3" in said
    fixed = budge.InteractionModel([budge.Feature("inc", "integer", bounds=(0, 2))])
    none = budge.recourse(lambda t: (t["inc"] > 2).astype(int), {"inc": 1}, fixed, target=1).letter({"target_name": "approval"})
    assert "No change that is open to you would lead to approval." in none


def test_prove_states_who_has_the_target_now(capsys, tmp_path, monkeypatch):
    """A person who has it and can lose it needs no change: the column of witnesses was empty."""
    im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9), max_increase=2, max_decrease=2)])
    im.to_file(tmp_path / "spec.yaml")
    pd.DataFrame({"income": [1, 4, 6]}, index=pd.Index(["a", "b", "c"], name="name")).to_csv(tmp_path / "people.csv")
    (tmp_path / "lender_at_hand.py").write_text("def model(table):\n    return (table['income'] > 5).astype(int)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    asked = ["--model", "lender_at_hand:model", "--target", "1", "--id", "name"]
    code, text = run(capsys, "prove", tmp_path / "spec.yaml", tmp_path / "people.csv", *asked)
    assert code == 0
    lines = {line.split()[0]: line for line in text.split("\n") if line.strip()}
    assert lines["b"].endswith("income: 4 → 6")
    assert lines["c"].endswith("none needed: has it now")
