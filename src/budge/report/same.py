"""Whether a stress test answers the question of the run beside which it is to be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.audit.result import Audit
from budge.errors import InputError

__all__ = ["same_question"]

#: What both records hold under the same name, and what it is called.
_TOLD = {"target": "the target", "population": "the population", "data_digest": "the people (digest)"}
_DESIGNED = {"threshold": "the threshold", "alpha": "alpha"}


def same_question(audit: Audit, found: Any, *, where: str) -> None:
    """Raise an error for a stress test of another target, threshold, model or spec, or of other people; the error names what differs.

    A sensitivity analysis is about other interaction models, so that its specs may differ from the run's.
    """
    from budge.stress import Ablation, Sensitivity  # here, since a report without stress tests has no need of them

    kind: type[Any] = Ablation if where == "ablation" else Sensitivity
    if not isinstance(found, kind):
        raise InputError(f"must be the result of budge.{'ablate' if kind is Ablation else 'sensitivity'}", where=where, got=type(found).__name__)
    info: Mapping[str, Any] = found.info
    needed = [*_TOLD, *_DESIGNED, "people", "model_digest", *(["spec_digest"] if kind is Ablation else ["digests"])]
    missing = [key for key in needed if key not in info]
    if missing:
        raise InputError(
            "the record does not say all that it was asked about, so that it cannot be compared with the run", where=where,
            got=f"no {', '.join(missing)}", remedy="make it again with this version of budge",
        )  # fmt: skip
    differs = [f"{name}: {info[key]}, in the run {audit.info[key]}" for key, name in _TOLD.items() if info[key] != audit.info[key]]
    design = audit.info["design"]
    differs += [f"{name}: {info[key]:g}, in the run {design[key]:g}" for key, name in _DESIGNED.items() if float(info[key]) != float(design[key])]
    if kind is Ablation and info["spec_digest"] != audit.info["spec_digest"]:
        differs.append(f"the interaction model (digest): {info['spec_digest']}, in the run {audit.info['spec_digest']}")
    digests = audit.info.get("model_digests", {})
    if info["model_digest"] and all(digests.values()) and info["model_digest"] not in digests.values():
        differs.append(f"the model (digest): {info['model_digest']}, in the run {', '.join(map(str, digests.values()))}")
    counts = {len(audit.of_model(name)) for name in audit.models}
    if info["people"] not in counts and not differs:
        differs.append(f"the number of people: {info['people']:,}, in the run {' or '.join(f'{n:,}' for n in sorted(counts))}")
    if differs:
        raise InputError(
            f"answers another question than the run; what differs is {'; '.join(differs)}", where=where,
            remedy="make it with the run's target, threshold, alpha, population, people, spec and model",
        )  # fmt: skip
