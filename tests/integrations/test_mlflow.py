"""Audits in MLflow runs, in a store of files; models that MLflow itself has saved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import budge
from budge import Feature
from budge.errors import InputError, ModelError
from budge.mlflow import log_audit
from budge.models import as_predictor

mlflow = pytest.importorskip("mlflow", reason="mlflow is in the `mlflow` extra")
IM = budge.InteractionModel([Feature("income", "integer", bounds=(0, 9), max_increase=3)])
X = pd.DataFrame({"income": range(8), "sex": list("fm") * 4})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield tmp_path
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


def audited(**more: Any) -> budge.Audit:
    models = {"a": lambda t: (t["income"] > 5) * 1, "b/c": lambda t: (t["income"] > 6) * 1}
    return budge.audit(models, X, IM, target=1, groups="sex", **more)


def test_an_audit_is_logged(store: Path) -> None:
    found = audited()
    with mlflow.start_run() as run:
        assert log_audit(found) == run.info.run_id
        log_audit(audited(threshold=0.3), prefix="loose", artifacts=False)
    data = mlflow.get_run(run.info.run_id).data
    assert data.params["budge.target"] == "the output is 1"
    assert (data.params["budge.threshold"], data.params["loose.threshold"]) == ("0.1", "0.3")
    for model, name in (("a", "a"), ("b/c", "b_c")):
        summary = found.summary(model)
        assert data.metrics[f"budge.{name}.no_way"] == summary.no_way
        assert data.metrics[f"budge.{name}.verdict_below"] == summary.verdicts["below"]
        assert data.metrics[f"budge.{name}.share_high"] == summary.share.high  # type: ignore[union-attr]
        assert data.metrics[f"budge.{name}.mean_rho"] == pytest.approx(summary.mean_rho)
        assert data.metrics[f"budge.{name}.verdicts_sex_f"] == summary.groups["sex"].loc[("f", "below"), "verdicts"]
        assert "known to have no way" in data.tags[f"budge.{name}.answer"]
    folder = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="budge")
    pd.testing.assert_frame_equal(budge.Audit.load(Path(folder) / "run").table, found.table)
    assert "<html" in (Path(folder) / "report.html").read_text()
    assert [a.path for a in mlflow.MlflowClient().list_artifacts(run.info.run_id)] == ["budge"]


def test_groups_whose_signs_mlflow_does_not_take_keep_their_own_numbers(store: Path) -> None:
    people = X.assign(age=["<30"] * 3 + [">30"] * 5)
    found = budge.audit(lambda t: (t["income"] > 5) * 1, people, IM, target=1, groups="age")
    with mlflow.start_run() as run:
        log_audit(found, artifacts=False)
    shares = {name: value for name, value in mlflow.get_run(run.info.run_id).data.metrics.items() if "verdicts_age" in name}
    table = found.summary().groups["age"]["verdicts"]
    assert shares == {"budge.verdicts_age__3c_30": table["<30", "below"], "budge.verdicts_age__3e_30": table[">30", "below"]}
    assert len(set(shares.values())) == 2


def test_a_run_is_started_where_none_is_active(store: Path) -> None:
    started = log_audit(audited(), artifacts=False)
    assert mlflow.active_run().info.run_id == started


def test_a_prefix_is_a_name() -> None:
    for prefix in ("", "../x", "a//b", "#"):
        with pytest.raises(InputError, match="prefix"):
            log_audit(audited(), prefix=prefix)


@pytest.mark.filterwarnings("ignore")
def test_models_that_mlflow_has_saved(store: Path) -> None:
    pytest.importorskip("sklearn", reason="the `models` extra")
    import mlflow.pyfunc
    import mlflow.sklearn
    import mlflow.xgboost
    from sklearn.linear_model import LogisticRegression
    from xgboost import XGBClassifier

    Z, y = X[["income"]], (X["income"] > 5).astype(int)
    linear, boosted = LogisticRegression().fit(Z, y), XGBClassifier(n_estimators=2).fit(Z, y)
    mlflow.sklearn.save_model(linear, "pickled", serialization_format="cloudpickle")
    mlflow.xgboost.save_model(boosted, "boosted")
    assert as_predictor("boosted").predict(Z).tolist() == boosted.predict(Z).tolist()

    class Rule(mlflow.pyfunc.PythonModel):  # type: ignore[misc, name-defined]
        def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> Any:
            return (model_input["income"] > 5) * 1

    mlflow.pyfunc.save_model("rule", python_model=Rule())
    for folder, labels in (("pickled", linear.predict(Z)), ("rule", y)):
        with pytest.raises(ModelError, match="would run code"):
            as_predictor(folder)
        assert as_predictor(folder, trust=True).predict(Z).tolist() == labels.tolist()
