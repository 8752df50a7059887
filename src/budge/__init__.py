"""Will predictions change, how much, how often: responsiveness verification with exact guarantees."""

from budge import constraints, datasets, errors, models, plan, stats, targets
from budge.audit import Audit, Estimate, Falsified, Verification, audit, estimate, falsify, verify
from budge.effects import Effect, Latent
from budge.features import Feature
from budge.interaction import InteractionModel

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "Effect",
    "Estimate",
    "Falsified",
    "Feature",
    "InteractionModel",
    "Latent",
    "Verification",
    "__version__",
    "audit",
    "constraints",
    "datasets",
    "errors",
    "estimate",
    "falsify",
    "models",
    "plan",
    "stats",
    "targets",
    "verify",
]
