"""Will predictions change, how much, how often: responsiveness verification with exact guarantees."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from budge.audit import audit

if TYPE_CHECKING:
    from budge import (
        constraints,
        datasets,
        errors,
        llm,
        models,
        people,
        plan,
        proof,
        report,
        spec,
        stats,
        stress,
        targets,
        testing,
        web,
    )
    from budge.audit.design import Design, Execution
    from budge.audit.proofs import Proofs, prove
    from budge.audit.recourse import Recourse, recourse
    from budge.audit.result import Audit
    from budge.audit.several import Audits, audit_targets
    from budge.audit.tasks import Estimate, Falsified, Verification, estimate, falsify, verify
    from budge.effects import Effect, Latent
    from budge.errors import BudgeError
    from budge.features import Feature
    from budge.interaction import InteractionModel
    from budge.stress import ablate, sensitivity
    from budge.tables import read_table
    from budge.wording import Wording

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "Audits",
    "BudgeError",
    "Design",
    "Effect",
    "Estimate",
    "Execution",
    "Falsified",
    "Feature",
    "InteractionModel",
    "Latent",
    "Proofs",
    "Recourse",
    "Verification",
    "Wording",
    "__version__",
    "ablate",
    "audit",
    "audit_targets",
    "constraints",
    "datasets",
    "errors",
    "estimate",
    "falsify",
    "llm",
    "models",
    "people",
    "plan",
    "proof",
    "prove",
    "read_table",
    "recourse",
    "report",
    "sensitivity",
    "spec",
    "stats",
    "stress",
    "targets",
    "testing",
    "verify",
    "web",
]

# Where each name lives: it is imported when it is first asked for, so that `import budge` takes no time.
_HOMES = {
    "Audit": "budge.audit.result",
    "Audits": "budge.audit.several",
    "audit_targets": "budge.audit.several",
    "BudgeError": "budge.errors",
    "Design": "budge.audit.design",
    "Execution": "budge.audit.design",
    "Proofs": "budge.audit.proofs",
    "prove": "budge.audit.proofs",
    "Recourse": "budge.audit.recourse",
    "recourse": "budge.audit.recourse",
    "Estimate": "budge.audit.tasks",
    "Falsified": "budge.audit.tasks",
    "Verification": "budge.audit.tasks",
    "estimate": "budge.audit.tasks",
    "falsify": "budge.audit.tasks",
    "verify": "budge.audit.tasks",
    "Effect": "budge.effects",
    "Latent": "budge.effects",
    "Feature": "budge.features",
    "InteractionModel": "budge.interaction",
    "read_table": "budge.tables",
    "Wording": "budge.wording",
    "ablate": "budge.stress",
    "sensitivity": "budge.stress",
}
_MODULES = ("constraints", "datasets", "errors", "llm", "models", "people", "plan", "proof", "report", "spec", "stats", "stress", "targets", "testing", "web")


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"budge.{name}")
    else:
        raise AttributeError(f"module 'budge' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
