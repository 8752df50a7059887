"""The loop over people: blocks → points → outputs → counts → table; engines, journal and resume."""

from budge.audit.result import Audit
from budge.audit.run import audit
from budge.audit.tasks import Estimate, Falsified, Verification, estimate, falsify, verify

__all__ = ["Audit", "Estimate", "Falsified", "Verification", "audit", "estimate", "falsify", "verify"]
