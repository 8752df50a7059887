"""An audit in an MLflow run: its question as parameters, its numbers as metrics, the saved run and the report as artifacts (extra `mlflow`)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from budge.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from budge.audit.result import Audit
    from budge.audit.summary import Summary

__all__ = ["log_audit"]

_ODD = re.compile(r"[^\w\-. ]")
_PREFIX = re.compile(r"[\w\-][\w\-. /]*")
MOST_TEXT = 500  #: signs of a parameter's value, which stores limit


def log_audit(audit: Audit, *, prefix: str = "budge", artifacts: bool = True) -> str:
    """Log an audit to the MLflow run that is active, or to a new one that stays active, and return the id of the run.

    Parameters
    ----------
    audit
        The result of `budge.audit`.
    prefix
        What all names begin with: of two audits in one run each needs its own, since MLflow keeps one value for each parameter.
    artifacts
        Whether the saved run (``PREFIX/run``) and the report (``PREFIX/report.html``) are logged, too. Both hold personal data.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> result = budge.audit(lambda t: t["income"] > 9, pd.DataFrame({"income": [1]}), im, target=True)
    >>> log_audit(result, prefix="#")
    Traceback (most recent call last):
    ...
    budge.errors.InputError: prefix: names in MLflow hold letters, digits and _-. / (got '#'); ...
    """
    if not _PREFIX.fullmatch(prefix) or ".." in prefix or "//" in prefix:
        raise InputError("names in MLflow hold letters, digits and _-. /", where="prefix", got=prefix, remedy="give prefix='budge'")
    try:
        import mlflow
    except ImportError as error:
        raise MissingDependencyError("mlflow is not installed", where="log_audit", remedy="pip install 'budge[mlflow]'") from error
    active = mlflow.active_run() or mlflow.start_run()
    asked = {name: value for name, value in audit.design.to_dict().items() if value not in (None, {}, [], "")}
    asked |= {"target": f"the output {audit.design.target}"} | {name: audit.info[name] for name in ("data_digest", "budge") if audit.info.get(name)}
    mlflow.log_params({f"{prefix}.{name}": str(value)[:MOST_TEXT] for name, value in asked.items()})
    for model, name in _names(audit.models).items():
        summary = audit.summary(model)
        of_model = f"{prefix}.{name}" if len(audit.models) > 1 else prefix
        mlflow.log_metrics({f"{of_model}.{name}": value for name, value in _numbers(summary).items()})
        mlflow.set_tag(f"{of_model}.answer", str(summary)[:5000])
    if artifacts:
        with TemporaryDirectory() as folder:
            mlflow.log_artifacts(str(audit.save(Path(folder) / "run")), f"{prefix}/run")
            mlflow.log_artifact(str(audit.to_html(Path(folder) / "report.html")), prefix)
    return str(active.info.run_id)


def _names(texts: Iterable[object]) -> dict[Any, str]:
    """Return names with signs that MLflow takes; where two would be one, as ``<30`` and ``>30``, the codes of their other signs stand in them."""
    plain = {text: _ODD.sub("_", str(text)) for text in texts}
    times = Counter(plain.values())
    return {text: name if times[name] == 1 else _ODD.sub(lambda sign: f"_{ord(sign[0]):x}_", str(text)) for text, name in plain.items()}


def _numbers(summary: Summary) -> dict[str, float]:
    """Return the numbers of one model that are known."""
    found: dict[str, Any] = {name: getattr(summary, name) for name in ("people", "already", "no_way", "every_way", "mean_rho", "unresolved", "asked")}
    found |= {f"verdict_{name}": many for name, many in summary.verdicts.items()}
    if summary.share is not None:
        found |= {"share_low": summary.share.low, "share_high": summary.share.high}
    columns = _names(summary.groups)
    for column, table in summary.groups.items():
        own = table[table.index.get_level_values("verdict") == summary.design.claim].droplevel("verdict")
        groups = _names(own.index)
        found |= {f"verdicts_{columns[column]}_{groups[group]}": share for group, share in own["verdicts"].items()}
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}
