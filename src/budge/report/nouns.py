"""What a report calls people, target, groups and features: words of the user, plain ones where none are given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from budge.errors import InputError, printable

__all__ = ["Nouns"]

LONGEST = 500  # characters of a word of the user


@dataclass(frozen=True)
class Nouns:
    """Words for one report.

    Parameters
    ----------
    people_name, target_name
        A plural such as "refused applicants", and what the target means, such as "approval".
    group_labels
        For a column of groups, what its values are called: ``{"sex": {"0": "women", "1": "men"}}``. Values are matched as texts.
    feature_labels
        What features are called: ``{"HasGuarantor": "guarantor"}``.
    threshold_reason, purpose, auditor
        Why this threshold, what the audit is for, and who made it; printed only if given.

    Examples
    --------
    >>> Nouns(people_name="applicants").people(1), Nouns().people(1), Nouns().people(2)
    ('applicants', 'person', 'people')
    """

    people_name: str = ""
    target_name: str = ""
    threshold_reason: str = ""
    purpose: str = ""
    auditor: str = ""
    group_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    feature_labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if isinstance(given, str):
                _check_text(given, each.name)
            elif each.name.endswith("_labels"):
                _check_labels(given, each.name, deep=each.name == "group_labels")
            else:
                raise InputError("must be a text", where=each.name, got=given)

    def people(self, n: int) -> str:
        """Return the noun for so many people; the user's own is a plural and is never bent."""
        return printable(self.people_name) or ("person" if n == 1 else "people")

    def target(self, info: Mapping[str, Any]) -> str:
        """Return what is reached."""
        return printable(self.target_name) or f"the target (the output {info['target']})"

    def group(self, column: str, value: object) -> str:
        """Return the name of a group."""
        from budge.report.people import shown

        known = self.group_labels.get(column, {})
        return printable(known[shown(value)]) if shown(value) in known else f"{column} = {shown(value)}"

    def feature(self, name: str) -> str:
        """Return the name of a feature."""
        return printable(self.feature_labels.get(name, name))


def _check_text(given: Any, where: str) -> None:
    if not isinstance(given, str):
        raise InputError("must be a text", where=where, got=given)
    if len(given) > LONGEST:
        raise InputError(f"is too long: at most {LONGEST} characters", where=where, got=f"{len(given):,} characters")


def _check_labels(given: Any, where: str, *, deep: bool) -> None:
    if not isinstance(given, Mapping):
        raise InputError("must map names to words", where=where, got=given)
    for name, label in given.items():
        _check_text(name, where)
        if deep:
            _check_labels(label, f"{where}: {name}", deep=False)
        else:
            _check_text(label, f"{where}: {name}")
