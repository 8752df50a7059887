"""Structures of scikit-learn's models: linear models, trees, forests, boosting, and what wraps them.

Models are recognised by the names of their classes; scikit-learn is not imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from budge.models.reading import plain
from budge.proof.boosters import catboost, lightgbm, xgboost
from budge.proof.encoders import Inputs
from budge.proof.linear import additive, floored
from budge.proof.pipelines import follow
from budge.proof.splits import Codes, join, to_trees
from budge.proof.structure import Additive, Answer, FloatArray, Structure, Trees, UnreadableError

__all__ = ["read_model"]

EPSILON = 2.0**-52
LINKS = {"IdentityLink": "identity", "LogLink": "exp", "LogitLink": "logistic"}
LOGISTIC = ("LogisticRegression", "LogisticRegressionCV")
CLASSIFIERS = (
    *LOGISTIC,
    "RidgeClassifier",
    "RidgeClassifierCV",
    "SGDClassifier",
    "LinearSVC",
    "Perceptron",
    "PassiveAggressiveClassifier",
)
REGRESSORS = (
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "SGDRegressor",
    "LinearSVR",
    "HuberRegressor",
)
LOGLINEAR = ("PoissonRegressor", "GammaRegressor", "TweedieRegressor")
SINGLE_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
FORESTS = ("RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor")


def read_model(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of a model that is given these inputs."""
    kinds = {kind.__name__ for kind in type(model).__mro__}
    roots = {kind.__module__.split(".")[0] for kind in type(model).__mro__}
    if "Pipeline" in kinds:
        for _, step in model.steps[:-1]:
            inputs = follow(step, inputs)
        return read_model(model.steps[-1][1], inputs)
    for names, reader in _READERS:
        if kinds & set(names):
            return reader(model, inputs)
    if "xgboost" in roots:
        return xgboost(model, inputs)
    if "lightgbm" in roots:
        return lightgbm(model, inputs)
    if "catboost" in roots:
        return catboost(model, inputs)
    raise UnreadableError(f"{type(model).__name__} is not among the models whose structure can be read")


def _classes(model: Any) -> tuple[Any, ...]:
    if getattr(model, "n_outputs_", 1) != 1:
        raise UnreadableError("the model has several outputs")
    return tuple(plain(c) for c in model.classes_)


def _linear(model: Any, inputs: Inputs) -> Additive:
    coef = np.atleast_2d(np.asarray(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_, dtype=float))
    const = np.broadcast_to(np.asarray(model.intercept_, dtype=float).ravel(), (len(coef),))
    kinds = {kind.__name__ for kind in type(model).__mro__}
    rounding = 2.0**-23 if getattr(model.coef_, "dtype", None) == np.float32 else inputs.epsilon
    precision = (len(inputs.sources) + len(inputs.table.columns) + 16) * rounding
    if not kinds & set(CLASSIFIERS):
        if len(coef) > 1:
            raise UnreadableError("the model has several outputs")
        name = type(model._base_loss.link).__name__ if kinds & set(LOGLINEAR) else "IdentityLink"
        return additive(coef, const, inputs, Answer("number", link=_link(name)), precision)
    classes = _classes(model)
    if len(coef) > 1:
        return additive(coef, const, inputs, Answer("argmax", classes, link=None), precision)
    doubled = getattr(model, "multi_class", None) == "multinomial"  # its probability is that of twice the score
    logistic = (kinds & set(LOGISTIC) and not doubled) or getattr(model, "loss", None) == "log_loss"
    return additive(coef, const, inputs, Answer("binary", classes, link="logistic" if logistic else None), precision)


def _link(name: str) -> Literal["identity", "logistic", "exp"]:
    if name not in LINKS:
        raise UnreadableError(f"the link {name} cannot be read")
    return LINKS[name]  # type: ignore[return-value]


def _tree(model: Any, scores: Callable[[npt.NDArray[Any]], FloatArray]) -> dict[str, Any]:
    tree = model.tree_
    leaf = tree.children_left < 0
    gone = getattr(tree, "missing_go_to_left", np.zeros(len(leaf)))
    return {"feature": np.where(leaf, -1, tree.feature), "threshold": tree.threshold, "missing": np.asarray(gone).astype(bool),
            "left": tree.children_left, "right": tree.children_right, "value": scores(tree.value[:, 0, :])}  # fmt: skip


def _forest(model: Any, inputs: Inputs) -> Trees:
    members: Sequence[Any] = getattr(model, "estimators_", None) or [model]
    n = len(members)
    precision = (n + len(inputs.table.columns) + 16) * EPSILON
    if not hasattr(model, "classes_"):
        if getattr(model, "n_outputs_", 1) != 1:
            raise UnreadableError("the model has several outputs")
        forest = join([_tree(m, lambda v: v / n) for m in members], single=True)
        return to_trees(forest, inputs, Answer("number", link="identity"), np.zeros(1), precision)
    classes = _classes(model)

    def shares(values: npt.NDArray[Any]) -> FloatArray:
        found = values / values.sum(axis=1, keepdims=True) / n
        return np.asarray(found[:, 1:] if len(classes) == 2 else found)

    if len(classes) < 2:
        raise UnreadableError("the model knows one class only")
    answer = Answer("binary", classes, 0.5, link="identity") if len(classes) == 2 else Answer("argmax", classes, link=None)
    return to_trees(
        join([_tree(m, shares) for m in members], single=True),
        inputs,
        answer,
        np.zeros(len(classes) if len(classes) > 2 else 1),
        precision,
    )


def _spread(values: FloatArray, at: int, scores: int) -> FloatArray:
    """Return the values of one score among several."""
    found = np.zeros((len(values), scores))
    found[:, at] = values
    return found


def _gradient(model: Any, inputs: Inputs) -> Trees:
    if model.init is not None and model.init != "zero":
        raise UnreadableError("the model starts from another model (init), which is not read")
    scores = model.estimators_.shape[1]
    trees = [
        _tree(m, lambda v, k=k: _spread(model.learning_rate * v[:, 0], k, scores))  # type: ignore[misc]
        for stage in model.estimators_
        for k, m in enumerate(stage)
    ]
    const = np.asarray(model._raw_predict_init(np.zeros((1, model.n_features_in_), dtype=np.float32))[0], dtype=float)
    precision = (len(trees) + len(inputs.table.columns) + 16) * EPSILON
    answer = Answer("number", link="identity")
    if hasattr(model, "classes_"):
        # the loss `exponential` has the probability of twice the score
        one = Answer("binary", _classes(model), strict=False, link="logistic" if model.loss != "exponential" else None)
        answer = one if scores == 1 else Answer("argmax", _classes(model), link=None)
    return to_trees(join(trees, single=True), inputs, answer, const, precision)


def _histogram(model: Any, inputs: Inputs) -> Trees:
    if getattr(model, "_preprocessor", None) is not None:
        inputs = follow(model._preprocessor, inputs)
    scores = model.n_trees_per_iteration_
    trees = []
    for stage in model._predictors:
        for k, member in enumerate(stage):
            nodes = member.nodes
            leaf = nodes["is_leaf"].astype(bool)
            sets = {
                int(i): Codes(_bits(member.raw_left_cat_bitsets[nodes["bitset_idx"][i]]))
                for i in np.flatnonzero(nodes["is_categorical"].astype(bool) & ~leaf)
            }
            trees.append({"feature": np.where(leaf, -1, nodes["feature_idx"].astype(np.intp)), "threshold": nodes["num_threshold"],
                          "missing": nodes["missing_go_to_left"], "left": nodes["left"].astype(np.intp), "right": nodes["right"].astype(np.intp),
                          "value": _spread(nodes["value"], k, scores), "sets": sets})  # fmt: skip
    precision = (len(trees) + len(inputs.table.columns) + 16) * EPSILON
    if not hasattr(model, "classes_"):
        answer = Answer("number", link=_link(type(model._loss.link).__name__))
    else:
        answer = Answer("binary", _classes(model)) if scores == 1 else Answer("argmax", _classes(model), link=None)
    return to_trees(join(trees), inputs, answer, np.asarray(model._baseline_prediction, dtype=float).ravel(), precision)


def _bits(words: npt.NDArray[Any]) -> frozenset[int]:
    return frozenset(b for b in range(32 * len(words)) if int(words[b // 32]) >> (b % 32) & 1)


def _threshold(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of the model inside, with the wrapper's own cut."""
    inner = getattr(model, "estimator_", None) or model.estimator
    found = read_model(inner, inputs)
    answer = found.answer
    if answer.kind != "binary":
        raise UnreadableError(f"{type(model).__name__} around a model that is not one of two classes")
    method = model.response_method
    asked = "predict_proba" if hasattr(inner, "predict_proba") and method in ("auto", "predict_proba") else "decision_function"
    limit = model.best_threshold_ if hasattr(model, "best_threshold_") else model.threshold
    limit = (0.5 if asked == "predict_proba" else 0.0) if limit == "auto" else float(limit)
    scorer = getattr(model, "_curve_scorer", None)
    wanted = scorer._get_pos_label() if scorer is not None else model.pos_label
    turned = wanted is not None and plain(wanted) == answer.classes[0]
    if asked == "decision_function":
        return replace(found, answer=replace(answer, cut=-limit if turned else limit, strict=turned))
    limit = 1 - limit if turned else limit
    if answer.link == "identity":
        return replace(found, answer=replace(answer, cut=limit, strict=turned))
    if answer.link != "logistic" or not 1e-6 < limit < 1 - 1e-6:
        raise UnreadableError(f"the threshold {limit:g} of {type(model).__name__} cannot be told from the model's score")
    cut = math.log(limit / (1 - limit))
    single = found.precision > 2.0**-30
    found = replace(found, answer=replace(answer, cut=cut, strict=turned))
    return floored(found, (2.0**-22 if single else 2.0**-50) / (limit * (1 - limit)))


def _calibrated(model: Any, inputs: Inputs) -> Structure:
    """Return the structure of a model whose scores one sigmoid turns into probabilities."""
    members = model.calibrated_classifiers_
    if len(members) != 1:
        raise UnreadableError("CalibratedClassifierCV averages several models; ensemble=False can be read")
    (member,) = members
    if member.method != "sigmoid" or len(member.calibrators) != 1:
        raise UnreadableError(
            f"CalibratedClassifierCV with {member.method} for {len(member.classes)} classes; sigmoid for two can be read"
        )
    found = read_model(member.estimator, inputs)
    (sigmoid,) = member.calibrators
    if found.answer.kind != "binary" or not (hasattr(member.estimator, "decision_function") or found.answer.link == "identity"):
        raise UnreadableError("CalibratedClassifierCV around a model that gives no scores, only their probabilities")
    factor, answer = -float(sigmoid.a_), Answer("binary", tuple(plain(c) for c in model.classes_))
    const = factor * found.const - float(sigmoid.b_)
    ratio = max(1.0, float((abs(factor) * np.abs(found.const) + abs(sigmoid.b_))[0] / max(abs(const[0]), 2.0**-24)))
    how: dict[str, Any] = {"answer": answer, "const": const, "precision": 2 * ratio * found.precision}
    if isinstance(found, Trees):
        return floored(replace(found, value=factor * found.value, **how), 2.0**-50)
    scaled: dict[str, Any] = {
        name: {c: factor * v for c, v in getattr(found, name).items()} for name in ("slopes", "tables", "missing")
    }
    steps = {c: (cuts, factor * entries) for c, (cuts, entries) in found.steps.items()}
    return floored(replace(found, steps=steps, **scaled, **how), 2.0**-50)


_READERS: tuple[tuple[tuple[str, ...], Callable[[Any, Inputs], Structure]], ...] = (
    ((*CLASSIFIERS, *REGRESSORS, *LOGLINEAR), _linear),
    ((*SINGLE_TREES, *FORESTS), _forest),
    (("GradientBoostingClassifier", "GradientBoostingRegressor"), _gradient),
    (("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"), _histogram),
    (("TunedThresholdClassifierCV", "FixedThresholdClassifier"), _threshold),
    (("CalibratedClassifierCV",), _calibrated),
)
