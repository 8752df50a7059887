"""Structures are read from models and pipelines, and agree with what the models answer; `read` itself checks that, so most tests only call it."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading_kit import NUMBERS, columns, fitted, outcome, read_fitted, table

from budge.datasets import Scorecard, lending, raw, taiwan
from budge.errors import ModelError
from budge.models import as_predictor
from budge.proof import Additive, Answer, Column, Trees, UnreadableError, encoders, splits
from budge.proof.checking import check
from budge.proof.reading import read
from budge.proof.structure import columns_of

pytest.importorskip("sklearn", reason="scikit-learn is in the `models` extra")

from sklearn import ensemble, linear_model, svm, tree
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

pytestmark = pytest.mark.filterwarnings("ignore")
LEVELS = ["home", "sex"]


def logistic():
    return linear_model.LogisticRegression(max_iter=100)


PREPARED = {
    "scaled, one-hot": lambda: ColumnTransformer(
        [("n", StandardScaler(), ["income", "age"]), ("c", OneHotEncoder(handle_unknown="ignore"), LEVELS)], remainder="passthrough"
    ),
    "dense, dropped, ranged": lambda: ColumnTransformer(
        [("n", MinMaxScaler(), ["income", "age", "months"]), ("c", OneHotEncoder(drop="first"), LEVELS)], remainder="passthrough", sparse_threshold=0
    ),
    "imputed, ordinal": lambda: ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(strategy="median", add_indicator=True), RobustScaler()), ["age", "amount"]),
            ("c", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), LEVELS),
        ],
        remainder=MaxAbsScaler(),
    ),
    "rare levels, nested": lambda: make_pipeline(
        ColumnTransformer(
            [
                ("c", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(min_frequency=0.05, handle_unknown="infrequent_if_exist")), LEVELS),
                ("n", make_pipeline(ColumnTransformer([("x", SimpleImputer(), [0])], remainder="passthrough"), StandardScaler()), ["age", "income"]),
            ],
            sparse_threshold=0,
        ),
        FunctionTransformer(),
        MaxAbsScaler(),
    ),
    "bins, numbers one-hot": lambda: ColumnTransformer(
        [
            ("k", KBinsDiscretizer(4, encode="onehot-dense"), ["months", "amount"]),
            ("o", OneHotEncoder(sparse_output=False), ["rate"]),
            ("c", OrdinalEncoder(), LEVELS),
            ("n", StandardScaler(), ["income"]),
        ],
        sparse_threshold=0,
    ),
    "named": lambda: ColumnTransformer(
        [("n", StandardScaler(), ["income", "amount"]), ("c", OneHotEncoder(sparse_output=False), LEVELS)]
    ).set_output(transform="pandas"),
}  # fmt: skip
TAKES_MISSING = {"imputed, ordinal", "rare levels, nested"}

CLASSIFIERS = {
    "logistic": logistic,
    "tree": lambda: tree.DecisionTreeClassifier(max_depth=6, random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(8, max_depth=6, random_state=0),
    "boosting": lambda: ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0),
    "histogram": lambda: ensemble.HistGradientBoostingClassifier(max_iter=8),
}


def prepared(name):
    return PREPARED[name](), table(missing=name in TAKES_MISSING)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("name", PREPARED)
def test_classifiers_behind_preprocessing(name, kind, classes):
    before, frame = prepared(name)
    model = fitted(make_pipeline(before, CLASSIFIERS[kind]()), frame, classes)
    found = read_fitted(model, frame)
    assert isinstance(found, Additive if kind == "logistic" else Trees)
    assert found.answer.kind == ("binary" if classes == 2 else "argmax")
    assert found.columns == columns(frame)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        linear_model.LogisticRegressionCV(Cs=2, cv=2, max_iter=1000),
        linear_model.RidgeClassifier(),
        linear_model.SGDClassifier(loss="log_loss", random_state=0),
        linear_model.SGDClassifier(loss="hinge", random_state=0),
        linear_model.Perceptron(),
        svm.LinearSVC(),
        tree.ExtraTreeClassifier(max_depth=6, random_state=0),
        ensemble.ExtraTreesClassifier(8, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_other_classifiers(model, classes):
    before, frame = prepared("scaled, one-hot")
    read_fitted(fitted(make_pipeline(before, model), frame, classes), frame)


@pytest.mark.parametrize(
    ("model", "link"),
    [
        (linear_model.LinearRegression(), "identity"),
        (linear_model.Ridge(), "identity"),
        (linear_model.Lasso(0.01), "identity"),
        (linear_model.ElasticNet(0.01), "identity"),
        (linear_model.PoissonRegressor(), "exp"),
        (linear_model.GammaRegressor(), "exp"),
        (linear_model.TweedieRegressor(power=0), "identity"),
        (tree.DecisionTreeRegressor(max_depth=6), "identity"),
        (ensemble.RandomForestRegressor(8, random_state=0), "identity"),
        (ensemble.ExtraTreesRegressor(8, random_state=0), "identity"),
        (ensemble.GradientBoostingRegressor(n_estimators=8, loss="huber"), "identity"),
        (ensemble.HistGradientBoostingRegressor(max_iter=8, loss="poisson"), "exp"),
    ],
    ids=lambda m: type(m).__name__ if not isinstance(m, str) else m,
)
def test_regressors_answer_numbers(model, link):
    before, frame = prepared("dense, dropped, ranged")
    found = read_fitted(make_pipeline(before, model).fit(frame, np.exp(outcome(frame, 0) / 3)), frame)
    assert found.answer == Answer("number", link=link)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_missing_values_and_categories_that_the_model_takes_itself(classes):
    kind = "Classifier" if classes else "Regressor"
    frame = table(missing=True, categories=True)
    natives = getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=8, categorical_features="from_dtype")
    found = read_fitted(fitted(natives, frame, classes), frame)
    assert found.lefts
    coded = getattr(ensemble, f"HistGradientBoosting{kind}")(max_iter=8, categorical_features=["home", "sex", "rate"])
    read_fitted(fitted(coded, frame, classes), frame)
    numbers = frame[NUMBERS]
    forest = getattr(ensemble, f"RandomForest{kind}")(8, random_state=0)
    found = read_fitted(fitted(forest, numbers, classes), numbers)
    assert found.missing.any()


def test_a_model_that_saw_no_names_and_columns_it_does_not_read():
    frame = table()
    model = ensemble.RandomForestClassifier(8, random_state=0).fit(frame[NUMBERS].to_numpy(float), outcome(frame))
    read_fitted(model, frame[NUMBERS])
    named = ensemble.RandomForestClassifier(8, random_state=0).fit(frame[["months", "income"]], outcome(frame))
    found = read_fitted(named, frame)
    assert set(found.column.tolist()) <= {-1, 0, 2}


def test_float32_tables_are_read_as_they_are():
    frame = table()[["income", "age"]].astype("float32")
    for last in (logistic(), tree.DecisionTreeClassifier(max_depth=6)):
        read_fitted(make_pipeline(StandardScaler(), last).fit(frame, outcome(table())), frame)


def test_dtypes_of_the_table_are_kept():
    frame = table().astype({"home": object, "sex": "string", "months": "int8", "rate": "uint8", "amount": "Int64"})
    frame.loc[::7, "home"] = None
    frame.loc[::9, "amount"] = pd.NA
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    before = ColumnTransformer([("n", numbers, ["income", "months", "rate", "amount"]), ("c", OneHotEncoder(), LEVELS)])
    for last in (logistic(), CLASSIFIERS["forest"]()):
        read_fitted(make_pipeline(before, last).fit(frame, outcome(table())), frame)


def test_numbers_may_be_declared_as_levels():
    frame = table()[NUMBERS]
    listed = tuple(replace(c, levels=(1, 2, 3, 4), whole=False) if c.name == "rate" else c for c in columns(frame))
    before = ColumnTransformer([("o", OneHotEncoder(), ["rate"])], remainder="passthrough")
    for model in (CLASSIFIERS["forest"](), logistic(), make_pipeline(before, CLASSIFIERS["tree"]())):
        found = read(as_predictor(fitted(model, frame)), frame, listed)
        assert (found.lefts if isinstance(found, Trees) else found.tables).keys()


def test_a_model_that_answers_no_row_cannot_be_checked():
    frame = table()[NUMBERS]
    model = fitted(CLASSIFIERS["boosting"](), frame)
    with pytest.raises(UnreadableError, match="cannot be checked"):
        read_fitted(model, frame.assign(age=np.nan))


def test_cuts_are_the_largest_number_on_the_left():
    x = np.array([0.1, 0.2, 0.3, 0.4])
    frame = pd.DataFrame({"x": x, "n": [1, 2, 3, 4]})
    model = tree.DecisionTreeClassifier().fit(frame[["x"]], [0, 0, 1, 1])
    found = read(as_predictor(model), frame, (Column("x"), Column("n", whole=True)))
    (cut,) = found.cut[np.isfinite(found.cut)]
    threshold = model.tree_.threshold[0]
    assert np.float32(cut) <= threshold < np.float32(np.nextafter(cut, 1))
    whole = read(
        as_predictor(tree.DecisionTreeClassifier().fit(frame[["n"]], [0, 0, 1, 1])), frame, (Column("x"), Column("n", whole=True))
    )
    assert whole.cut[np.isfinite(whole.cut)].tolist() == [2.0]


def test_wrappers_have_their_own_cut():
    before, frame = prepared("scaled, one-hot")
    inner = make_pipeline(before, logistic())
    up = read_fitted(fitted(FixedThresholdClassifier(inner, threshold=0.3), frame), frame)
    assert (up.answer.cut, up.answer.strict) == (pytest.approx(np.log(3 / 7)), False)
    down = read_fitted(fitted(FixedThresholdClassifier(inner, threshold=0.3, pos_label=0), frame), frame)
    assert (down.answer.cut, down.answer.strict) == (pytest.approx(np.log(7 / 3)), True)
    scored = read_fitted(
        fitted(FixedThresholdClassifier(inner, threshold=0.2, response_method="decision_function"), frame), frame
    )
    assert scored.answer.cut == 0.2
    forest = make_pipeline(PREPARED["imputed, ordinal"](), CLASSIFIERS["forest"]())
    assert read_fitted(fitted(FixedThresholdClassifier(forest, threshold=0.3), frame), frame).answer.cut == 0.3
    read_fitted(fitted(TunedThresholdClassifierCV(inner, cv=2), frame), frame)
    for model in (inner, forest):
        read_fitted(fitted(CalibratedClassifierCV(model, ensemble=False, cv=2), frame), frame)


@pytest.mark.parametrize(
    "how",
    [{"threshold": 0.3}, {"output": "probability"}, {"output": "probability", "of": 0}, {"output": "score"}, {"output": "label"}],
)
def test_what_is_asked_of_the_model_does_not_change_its_structure(how):
    frame = table()[NUMBERS]
    for model in (logistic(), CLASSIFIERS["forest"]()):
        model = fitted(model, frame)
        assert np.array_equal(read_fitted(model, frame, **how).const, read_fitted(model, frame).const)


def refused(reason, model, frame, classes=2):
    with pytest.raises(UnreadableError, match=reason):
        read_fitted(fitted(model, frame, classes), frame)


def test_what_cannot_be_read_is_refused_with_a_reason():
    frame = table()
    numbers, before = frame[NUMBERS], PREPARED["scaled, one-hot"]
    refused("PCA is not among the transformers", make_pipeline(PCA(2), logistic()), numbers)
    refused("applies a function", make_pipeline(FunctionTransformer(np.abs), logistic()), numbers)
    refused("clipped by its scaler", make_pipeline(MinMaxScaler(clip=True), logistic()), numbers)
    refused("takes the value -1 of income as missing", make_pipeline(SimpleImputer(missing_values=-1), logistic()), numbers)
    refused(
        "both scaled and told apart",
        make_pipeline(ColumnTransformer([("a", KBinsDiscretizer(3), ["age"]), ("b", StandardScaler(), ["age"])]), logistic()),
        numbers,
    )
    refused("is scaled before KBins", make_pipeline(StandardScaler(), KBinsDiscretizer(3), logistic()), numbers)
    refused("averages several models", CalibratedClassifierCV(make_pipeline(before(), logistic()), cv=2), frame)
    refused(
        "isotonic", CalibratedClassifierCV(make_pipeline(before(), logistic()), cv=2, ensemble=False, method="isotonic"), frame
    )
    refused("SVC is not among the models", svm.SVC(), numbers)
    refused("starts from another model", ensemble.GradientBoostingClassifier(n_estimators=2, init=logistic()), numbers)
    with pytest.raises(UnreadableError, match="function is not among the models"):
        read(as_predictor(lambda rows: rows["age"] > 5), numbers, columns(numbers))
    model = make_pipeline(ColumnTransformer([("c", OneHotEncoder(), ["home"])]), logistic()).fit(frame[["home"]], outcome(frame))
    with pytest.raises(UnreadableError, match="refuses the level 'castle' of home"):
        read(as_predictor(model), frame[["home"]], (Column("home", ("rent", "own", "free", "other", "castle")),))


def test_structures_that_models_state_themselves_are_checked_too():
    data = lending(n=500, seed=0)
    card = Scorecard.fit(data.X, data.y)
    found = read(as_predictor(card), data.X, columns_of(data.X, data.model.features if hasattr(data, "model") else ()))
    assert isinstance(found, Additive)

    class Liar:
        classes_ = (0, 1)

        def predict(self, rows):
            return card.predict(rows)

        def structure(self, columns):
            return replace(card.structure(columns), const=np.array([5.0]))

    with pytest.raises(ModelError, match="does not agree with the model"):
        read(as_predictor(Liar()), data.X, columns_of(data.X))


# --- planted mistakes: each one must be found by the check ---------------------------------------------------------------------


def disagrees(model, frame):
    with pytest.raises(ModelError, match="does not agree with the model"):
        read_fitted(model, frame)


@pytest.fixture
def grown():
    frame = table(missing=True)
    return fitted(make_pipeline(PREPARED["imputed, ordinal"](), CLASSIFIERS["forest"]()), frame), frame


def test_wrong_strictness_is_found(grown, monkeypatch):
    frame = table()[["months", "amount", "rate", "age", "income"]].round().astype(int)
    model = fitted(tree.DecisionTreeClassifier(max_depth=4, random_state=0), frame)
    model.tree_.threshold[:] = np.where(
        model.tree_.children_left >= 0, np.floor(model.tree_.threshold), -2
    )  # whole thresholds: ties occur
    read_fitted(model, frame)
    monkeypatch.setattr(splits.Forest, "compare", lambda self, nodes, values: values.astype(np.float32) < self.threshold[nodes])
    disagrees(model, frame)


def test_thresholds_without_the_cast_to_float32_are_found(grown, monkeypatch):
    model, frame = grown
    monkeypatch.setattr(splits.Forest, "compare", lambda self, nodes, values: values <= self.threshold[nodes])
    disagrees(model, frame)


def test_swapped_children_and_wrong_directions_of_missing_values_are_found(grown):
    _, frame = grown
    numbers = frame[NUMBERS]
    model = fitted(CLASSIFIERS["forest"](), numbers)
    found = read_fitted(model, numbers)
    predictor = as_predictor(model)
    node = int(found.roots[3])
    left, right = found.left.copy(), found.right.copy()
    left[node], right[node] = right[node], left[node]
    for wrong in (
        replace(found, left=left, right=right),
        replace(found, missing=~found.missing),
        replace(found, cut=np.nextafter(found.cut, -np.inf)),
    ):
        with pytest.raises(ModelError, match="does not agree"):
            check(predictor, wrong, numbers)
    check(predictor, found, numbers)


def test_a_single_wrong_cut_is_found(grown):
    model, frame = grown
    found, predictor = read_fitted(model, frame), as_predictor(model)
    missed, nodes = 0, np.flatnonzero(np.isfinite(found.cut))[::15]
    for node in nodes:
        cut = found.cut.copy()
        cut[node] = np.nextafter(cut[node], np.inf) if frame.columns[found.column[node]] in ("income", "age") else cut[node] + 1
        try:
            check(predictor, replace(found, cut=cut), frame)
            missed += 1
        except ModelError:
            pass
    assert missed <= len(nodes) // 10  # rows that answer the same on both sides of a cut cannot tell


def test_a_dropped_row_of_levels_is_found(monkeypatch):
    frame = table()
    for last in (logistic(), CLASSIFIERS["boosting"]()):
        model = fitted(make_pipeline(PREPARED["dense, dropped, ranged"](), last), frame)
        read_fitted(model, frame)
        whole = encoders.Inputs.levels
        with monkeypatch.context() as patch:
            patch.setattr(
                encoders.Inputs,
                "levels",
                lambda self, j, whole=whole: whole(self, j) * (np.arange(len(self.table.columns[j].levels)) != 2)[:, None],
            )
            disagrees(model, frame)


def test_an_imputer_that_is_ignored_is_found(grown, monkeypatch):
    model, frame = grown
    monkeypatch.setattr(encoders.Inputs, "missing", lambda self, j: np.full(len(self.of(j)), np.nan))
    disagrees(model, frame)
    linear = fitted(make_pipeline(PREPARED["imputed, ordinal"](), logistic()), frame)
    monkeypatch.setattr(encoders.Inputs, "missing", lambda self, j: np.zeros(len(self.of(j))))
    disagrees(linear, frame)


# --- libraries that are not always there ---------------------------------------------------------------------------------------


def boosted(library, classes):
    kind = "Classifier" if classes else "Regressor"
    if library == "xgboost":
        xgboost = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
        return lambda **how: getattr(xgboost, f"XGB{kind}")(n_estimators=10, n_jobs=1, **how)
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is in the `models` extra")
    return lambda **how: getattr(lightgbm, f"LGBM{kind}")(
        n_estimators=10, n_jobs=1, verbose=-1, **{"min_data_per_group": 5, "cat_smooth": 1, **how}
    )


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosters(library, classes):
    make = boosted(library, classes)
    frame = table(missing=True, categories=True)
    numbers = frame[NUMBERS]
    read_fitted(fitted(make(), numbers, classes), numbers)
    native = {"enable_categorical": True, "max_cat_to_onehot": 2} if library == "xgboost" else {}
    found = read_fitted(fitted(make(**native), frame, classes), frame)
    assert found.lefts
    text = table(missing=True)
    read_fitted(fitted(make_pipeline(PREPARED["imputed, ordinal"](), make()), text, classes), text)
    bare = fitted(make(), numbers, classes)
    read_fitted(bare.get_booster() if library == "xgboost" else bare.booster_, numbers)


def test_trees_too_deep_to_be_followed_are_not_read(monkeypatch):
    frame = table()[NUMBERS]
    model = fitted(boosted("lightgbm", 2)(), frame, 2)

    def deep(self):
        return deep(self)

    monkeypatch.setattr(type(model.booster_), "dump_model", deep)  # as Python's reader of JSON ends where LightGBM nests a thousand splits
    with pytest.raises(UnreadableError, match="the trees of LGBMClassifier are too deep"):
        read_fitted(model, frame)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_boosters_stop_at_the_best_iteration(library):
    frame = table(missing=True)[NUMBERS]
    y = np.random.default_rng(0).integers(2, size=len(frame))  # noise: the best iteration is an early one
    if library == "xgboost":
        model = boosted(library, 2)(early_stopping_rounds=5).fit(
            frame[:300], y[:300], eval_set=[(frame[300:], y[300:])], verbose=False
        )
        assert model.best_iteration < 9
    else:
        lightgbm = pytest.importorskip("lightgbm")
        model = boosted(library, 2)().fit(
            frame[:300], y[:300], eval_set=[(frame[300:], y[300:])], callbacks=[lightgbm.early_stopping(5, verbose=False)]
        )
        assert model.best_iteration_ < 10
    found = read_fitted(model, frame)
    assert len(found.roots) < 10


def test_zeros_that_a_sparse_matrix_leaves_out_are_missing_to_xgboost():
    make = boosted("xgboost", 2)
    frame = table(800)
    before = ColumnTransformer(
        [("n", StandardScaler(), ["income", "age"]), ("c", OneHotEncoder(), LEVELS)], remainder="passthrough", sparse_threshold=1
    )
    model = fitted(make_pipeline(before, make(max_depth=4)), frame)
    found = read_fitted(model, frame)
    mean = model[0].named_transformers_["n"].mean_
    rows = pd.concat(
        [frame.assign(income=mean[0]), frame.assign(age=mean[1]), frame.assign(months=0), frame.assign(rate=0)], ignore_index=True
    )
    check(as_predictor(model), found, rows)


def test_xgboost_variants():
    make = boosted("xgboost", 2)
    frame = table(missing=True)[NUMBERS]
    for how in (
        {"base_score": 0.3},
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear"},
        {"objective": "binary:hinge"},
        {"num_parallel_tree": 3},
    ):
        read_fitted(fitted(make(**how), frame), frame)
    regressor = boosted("xgboost", 0)
    for objective in ("count:poisson", "reg:gamma", "reg:tweedie", "reg:absoluteerror"):
        found = read_fitted(regressor(objective=objective).fit(frame, np.exp(outcome(frame, 0) / 3)), frame)
        assert found.answer.link == ("identity" if objective == "reg:absoluteerror" else "exp")
    read_fitted(regressor(objective="reg:logistic").fit(frame, outcome(frame, 2) * 0.8 + 0.1), frame)
    refused("takes the value 0", make(missing=0), frame)
    refused("objective binary:logitraw", make(objective="binary:logitraw"), frame)
    tuned = read_fitted(fitted(TunedThresholdClassifierCV(make(), cv=2), frame), frame)
    assert tuned.answer.kind == "binary"


def test_a_dropped_base_score_is_found(monkeypatch):
    frame = table(missing=True)[NUMBERS]
    model = fitted(boosted("xgboost", 2)(base_score=0.3), frame)
    found = read_fitted(model, frame)
    with pytest.raises(ModelError, match="does not agree"):
        check(as_predictor(model), replace(found, const=np.zeros(1)), frame)


def test_lightgbm_variants():
    make = boosted("lightgbm", 2)
    frame = table(missing=True)[NUMBERS]
    for how in (
        {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
        {"boosting_type": "dart"},
        {"sigmoid": 2.0},
        {"boost_from_average": False},
    ):
        read_fitted(fitted(make(**how), frame), frame)
    found = read_fitted(make().fit(frame, outcome(frame), categorical_feature=["rate"]), frame)
    assert not found.lefts  # a number: its categories are ranges
    regressor = boosted("lightgbm", 0)
    for objective in ("poisson", "gamma", "quantile"):
        read_fitted(regressor(objective=objective).fit(frame, np.exp(outcome(frame, 0) / 3)), frame)
    refused("zero_as_missing", make(zero_as_missing=True), frame)
    refused("linear_tree", make(linear_tree=True), frame)


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_catboost(classes):
    catboost = pytest.importorskip("catboost", reason="catboost is an extra")
    kind = f"CatBoost{'Classifier' if classes else 'Regressor'}"
    frame = table(missing=True)
    numbers = frame[NUMBERS].astype({"flag": int})
    read_fitted(
        fitted(getattr(catboost, kind)(iterations=10, depth=4, verbose=0, allow_writing_files=False), numbers, classes), numbers
    )
    refused(
        "categories",
        getattr(catboost, kind)(iterations=3, verbose=0, allow_writing_files=False, cat_features=LEVELS),
        frame.fillna(0),
        classes,
    )
    refused(
        "not symmetric",
        getattr(catboost, kind)(iterations=3, verbose=0, allow_writing_files=False, grow_policy="Lossguide"),
        numbers,
        classes,
    )


# --- real tables ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def real(monkeypatch):
    folder = Path(os.environ.get("BUDGE_DATA") or Path(__file__).resolve().parents[2].parent / "shared" / "data")
    if not (folder / "taiwan_credit.csv").exists():
        pytest.skip(f"the real data is not in {folder}; set BUDGE_DATA")
    monkeypatch.setenv("BUDGE_DATA", str(folder))


def test_xgboost_on_credit_card_clients(real):
    xgboost = pytest.importorskip("xgboost", reason="xgboost is in the `models` extra")
    data = taiwan()
    for model in (
        xgboost.XGBClassifier(n_estimators=100, max_depth=6, n_jobs=2),
        make_pipeline(StandardScaler(), xgboost.XGBClassifier(n_estimators=30, n_jobs=2)),
    ):
        found = read(as_predictor(model.fit(data.X, data.y)), data.X, columns_of(data.X))
        assert isinstance(found, Trees)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_hot_pipelines_on_german_credit(real, kind):
    frame = raw("german_credit")
    target = frame.columns[-1]
    X, y = frame.drop(columns=target), frame[target]
    text = [c for c in X if X[c].dtype.kind not in "biuf"]
    before = ColumnTransformer(
        [("c", OneHotEncoder(sparse_output=kind != "histogram"), text)], remainder=StandardScaler(), sparse_threshold=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make_pipeline(before, CLASSIFIERS[kind]()).fit(X, y)
    found = read(as_predictor(model), X, columns_of(X))
    assert len(found.columns) == X.shape[1]
