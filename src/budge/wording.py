"""What results call people, target, groups and features: words of the user, plain ones where none are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from budge.errors import InputError, Problem, nearest, printable

__all__ = ["LONGEST", "Wording", "amount", "check_names", "percent", "shown"]

LONGEST = 500  # characters of a word of the user


@dataclass(frozen=True)
class Wording:
    """Words of the user for the results of one audit; they are kept with a saved run and never change a number.

    Parameters
    ----------
    people_name, target_name
        A plural such as "refused applicants", and what the target means, such as "approval".
    group_labels
        For a column of groups, what its values are called: ``{"sex": {0: "women", 1: "men"}}``. Values are matched as texts: 0 and "0" are one.
    feature_labels
        What features are called: ``{"HasGuarantor": "guarantor"}``.
    level_labels
        For a feature, what its values are called: ``{"HasGuarantor": {"0": "without", "1": "with"}}``. Those of binary features are no and yes unless given.
    threshold_reason, purpose, auditor
        Why this threshold, what the audit is for, and who made it; printed only if given.

    Examples
    --------
    >>> Wording(people_name="applicants").people(1), Wording().people(1), Wording().people(2)
    ('applicants', 'person', 'people')
    """

    people_name: str = ""
    target_name: str = ""
    threshold_reason: str = ""
    purpose: str = ""
    auditor: str = ""
    group_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)
    feature_labels: Mapping[str, str] = field(default_factory=dict)
    level_labels: Mapping[str, Mapping[Any, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in fields(self):
            given = getattr(self, each.name)
            if isinstance(given, str):
                _check_text(given, each.name)
            elif each.name.endswith("_labels"):
                _check_labels(given, each.name, deep=each.name != "feature_labels")
                plain = {name: {_name_of(k): label for k, label in value.items()} if isinstance(value, Mapping) else value for name, value in given.items()}
                object.__setattr__(self, each.name, plain)
            else:
                raise InputError("must be a text", where=each.name, got=given)

    @classmethod
    def of(cls, given: Wording | Mapping[str, Any] | None) -> Wording:
        """Return the words as they are, or read from a mapping of the fields."""
        if isinstance(given, Wording):
            return given
        if given is not None and not isinstance(given, Mapping):
            raise InputError("must be a Wording or map its fields to words", where="wording", got=given)
        known = [each.name for each in fields(cls)]
        for name in given or ():
            if name not in known:
                raise InputError("no such field of a wording", where="wording", got=name, remedy=nearest(name, known))
        return cls(**(given or {}))

    def but(self, **words: Any) -> Wording:
        """Return the words with others in their place; empty ones change nothing.

        Examples
        --------
        >>> Wording(people_name="applicants").but(target_name="approval", people_name="").to_dict()
        {'people_name': 'applicants', 'target_name': 'approval'}
        """
        return replace(self, **{name: value for name, value in words.items() if value})

    def to_dict(self) -> dict[str, Any]:
        """Return the words that are given, as a record."""
        return {name: value for name, value in asdict(self).items() if value}

    def people(self, n: int) -> str:
        """Return the noun for so many people; the user's own is a plural and is never bent."""
        return shown(self.people_name.strip()) or ("person" if n == 1 else "people")

    def target(self, info: Mapping[str, Any]) -> str:
        """Return what is reached."""
        return shown(self.target_name.strip()) or f"the target (the output {info['target']})"

    def goal(self) -> str:
        """Return what is reached, where the target itself is stated elsewhere."""
        return shown(self.target_name.strip()) or "the target"

    def group(self, column: str, value: object, *, short: bool = False) -> str:
        """Return the name of a group; a short one, for places that name the column, is the value alone if that is a text.

        Examples
        --------
        >>> Wording().group("sex", "Male"), Wording().group("sex", "Male", short=True), Wording().group("male", 1, short=True)
        ('sex = Male', 'Male', 'male = 1')
        """
        known = self.group_labels.get(column, {})
        if shown(value) in known:
            return shown(known[shown(value)])
        alone = short and isinstance(value, str) and any(letter.isalpha() for letter in value)
        return shown(value) if alone else f"{shown(column)} = {shown(value)}"

    def feature(self, name: str) -> str:
        """Return the name of a feature."""
        return shown(self.feature_labels.get(name, name))

    def level(self, name: str, value: object) -> str:
        """Return what a value of a feature is called; empty where it has no name.

        Examples
        --------
        >>> words = Wording(level_labels={"home": {"0": "rents", "1": "owns"}})
        >>> words.level("home", 1.0), words.level("home", True), words.level("age", 1)
        ('owns', 'owns', '')
        """
        return shown(self.level_labels.get(name, {}).get(shown(int(value) if isinstance(value, bool | np.bool_) else value), ""))

    def value(self, name: str, value: object) -> str:
        """Return a value of a feature as text: its name where it has one, else as it is, with thousands apart.

        Examples
        --------
        >>> Wording(level_labels={"home": {"1": "owns"}}).value("home", 1), Wording().value("income", 41317), Wording().value("home", "rent")
        ('owns', '41,317', 'rent')
        """
        return self.level(name, value) or amount(value)

    def of_model(self, im: Any) -> Wording:
        """Return the words with no and yes for the values of an interaction model's binary features that have no labels."""
        binary = {f.name: {"0": "no", "1": "yes"} for f in getattr(im, "features", ()) if f.type == "binary"}
        return replace(self, level_labels={**binary, **self.level_labels})


def check_names(words: Wording, im: Any, people: Any = None, *, others: Iterable[str] = (), shell: bool = False) -> None:
    """Raise an error for all labels that name what is not there: a feature or rule of the interaction model, its values, a column of the people, its values.

    `people` is a table, or the names of its columns where values are not known; without it, groups are not looked at. `others` are names of further columns.
    An interaction model that only draws has no features to look at.
    """
    features = {str(f.name): f for f in getattr(im, "features", ())}
    rules = [str(c.name) for c in getattr(im, "constraints", ()) if c.name]
    where = {name: f"--{name.replace('_', '-')[:-1]}" if shell else name for name in ("feature_labels", "level_labels", "group_labels")}
    found: list[Problem] = []

    def gone(what: str, kind: str, name: str, known: Iterable[str]) -> None:
        found.append(Problem(where[kind], what, name, nearest(name, known)))

    if features:
        for name in words.feature_labels:
            if name not in features and name not in rules:
                gone("no such feature", "feature_labels", name, [*features, *rules])
        for name, labels in words.level_labels.items():
            if name not in features:
                gone("no such feature", "level_labels", name, features)
                continue
            levels = [0, 1] if features[name].type == "binary" else features[name].levels
            for value in _strange(labels, levels, all_known=levels is not None):
                gone(f"no such value of {shown(name)}", "level_labels", value, map(shown, levels or ()))
    for column, labels in words.group_labels.items() if people is not None else ():
        columns = [*getattr(people, "columns", people), *others]
        if column not in columns:
            gone("no such column", "group_labels", column, map(str, columns))
        elif column in getattr(people, "columns", ()):
            values = ["missing" if v is None or v != v else v for v in people[column].astype(object).unique()]
            for value in _strange(labels, values):
                gone(f"no such value of {shown(column)}", "group_labels", value, map(shown, values))
    InputError.raise_if(found)


def _strange(labels: Mapping[str, str], values: Iterable[Any] | None, *, all_known: bool = False) -> list[str]:
    """Return the values that have a label and do not occur.

    Unless all values are known, there are none where all that occur have labels: some people of a table are fewer than their labels.
    """
    known = {shown(v) for v in values or ()}
    return [value for value in labels if value not in known] if all_known or not known <= labels.keys() else []


def _check_text(given: Any, where: str) -> None:
    if not isinstance(given, str):
        raise InputError("must be a text", where=where, got=given)
    if len(given) > LONGEST:
        raise InputError(f"is too long: at most {LONGEST} characters", where=where, got=f"{len(given):,} characters")


def _check_labels(given: Any, where: str, *, deep: bool, value: bool = False) -> None:
    """Check a mapping of names, or of values, to words; `deep` of names to mappings of values to words."""
    if not isinstance(given, Mapping):
        raise InputError("must map names to words", where=where, got=given)
    for name, label in given.items():
        _check_text(_name_of(name) if value else name, where)
        if deep:
            _check_labels(label, f"{where}: {name}", deep=False, value=True)
        else:
            _check_text(label, f"{where}: {name}")


def _name_of(value: Any) -> Any:
    """Return the text of a number or a truth value that has a label."""
    return shown(value) if isinstance(value, bool | int | float | np.bool_ | np.number) else value


def shown(value: Any) -> str:
    """Return a label or a value as text without control characters."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value == value:
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
    return printable(str(value)).replace("\n", "\\n")


def amount(value: Any) -> str:
    """Return a value as text, numbers with thousands apart.

    Examples
    --------
    >>> amount(3956), amount(9999.6), amount(0.71), amount("1000"), amount(True)
    ('3,956', '10,000', '0.71', '1000', 'True')
    """
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not 1000 <= abs(plain) < np.inf:
        return shown(plain)
    return f"{plain:,}" if isinstance(plain, int) else f"{plain:,.0f}"


def percent(share: float, digits: int = 1) -> str:
    """Return a share in per cent, never rounded to nothing or all; a minus is a minus, not a hyphen.

    Examples
    --------
    >>> percent(0.25), percent(1 / 30_000), percent(29_999 / 30_000), percent(0.999, 0)
    ('25 %', '0.00333 %', '99.997 %', '99.9 %')
    """
    if share != share:
        return "–"
    if share < 0:
        return f"−{percent(-share, digits)}"
    shown = f"{100 * share:.{digits}f}"
    if (float(shown) == 0 and share > 0) or (float(shown) == 100 and share < 1):
        return f"{100 * share:.3g} %" if share < 0.5 else f"{100 - float(f'{100 * (1 - share):.1g}'):.10g} %"
    return f"{shown.rstrip('0').rstrip('.') if '.' in shown else shown} %"
