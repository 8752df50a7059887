"""The pytest plugin: gates on audits as assertions whose messages name people and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pandas as pd

    from budge.audit.result import Audit

__all__ = ["assert_audit", "budge_gate"]


def assert_audit(audit: Audit, fail_if: str, *, show: int = 5, model: str | None = None, people: pd.DataFrame | None = None) -> None:
    """Raise an error where the condition holds, with the people behind it.

    Parameters
    ----------
    audit, fail_if, model, people
        As in `budge.audit.gate.gate`: columns of the audit and of the people, `no_way`, `every_way`, `share_low`, `share_high` and `gap_low`.
    show
        People that the message names.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> result = budge.audit(lambda t: t["income"] > 9, pd.DataFrame({"income": [1]}), im, target=True)
    >>> assert_audit(result, "share(verdict == 'below') > 0.05")
    Traceback (most recent call last):
    ...
    AssertionError: FAILED: fail if share(verdict == 'below') > 0.05 (1 > 0.05)
    ...
    """
    from budge.audit.gate import gate

    found = gate(audit, fail_if, model=model, people=people)
    if not found.failed:
        return
    rows = (audit.table if model is None else audit.of_model(model)).sort_values("rho", kind="stable").head(show)
    named = [
        f"  {label}{_model(row)}: prediction {row['prediction']}, rho {row['rho']:.4g} "
        f"({row['hits']} of {row['n']}), {row['verdict']}"
        for label, row in rows.iterrows()
    ]
    raise AssertionError("\n".join([str(found), str(audit), f"The {len(named)} least responsive:", *named]))


def _model(row: pd.Series) -> str:
    return f" ({row['model']})" if "model" in row.index else ""


@pytest.fixture
def budge_gate() -> Callable[..., Any]:
    """`assert_audit` as a fixture: ``budge_gate(audit, "share(verdict == 'below') > 0.05")``."""
    return assert_audit
