"""What the name of a column suggests: a trait that nobody can change, a record of the past, codes, an identifier, an outcome."""

from __future__ import annotations

import re

__all__ = ["is_code", "is_identifier", "is_outcome", "why_fixed"]

_TRAITS = {
    "nobody chooses it, and it rises by itself": {"age", "dob", "birthday", "birthdate", "birth", "yob"},
    "nobody can be asked to change it": {
        "sex", "gender", "male", "female", "man", "woman", "race", "racial", "ethnic", "ethnicity", "hispanic", "hispan", "latino", "latina", "black", "white",
        "nonwhite", "asian", "skin",
        "nationality", "citizenship", "citizen", "foreign", "foreigner", "immigrant", "native", "origin", "religion", "caste", "tribe", "disability",
        "disabled", "orphan", "veteran", "pregnant",
    },
    "a record of the past, which nobody can undo": {"prior", "priors", "prio", "history", "previous", "past", "juv", "juvenile", "convictions", "arrests"},
}  # fmt: skip
#: Things that have an age, a race or a history of their own: the age of an account is none of a person.
_THINGS = {
    "account", "acct", "loan", "car", "vehicle", "house", "home", "building", "file", "policy", "contract", "company", "firm", "business", "property", "card",
    "device", "phone", "machine", "review", "collar", "goods", "page",
}  # fmt: skip
_CODES = {
    "code", "type", "kind", "category", "cat", "class", "group", "region", "state", "county", "district", "country", "city", "zip", "postcode", "marital",
    "marriage", "married", "education",
    "occupation", "job", "sector", "industry", "status", "housing", "purpose", "relationship", "workclass", "sex", "gender", "race",
    "ethnicity", "religion", "grade", "month", "weekday",
}  # fmt: skip
_OUTCOMES = {
    "outcome", "target", "label", "y", "default", "defaulted", "recid", "recidivism", "rearrest", "rearrested", "arrest", "approve", "approved", "approval",
    "reject", "rejected", "accepted", "granted", "death", "dead",
    "risk", "churn", "churned", "response", "survived", "deceased", "died", "hired", "admitted", "fraud", "readmitted", "event", "class",
}  # fmt: skip
_AMOUNTS = {"num", "number", "count", "years", "months", "days", "amount", "amt", "size", "score", "rate"}
_IDENTIFIERS = {"id", "ids", "uuid", "guid", "ssn", "identifier", "rowid", "index", "serial"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _words(name: str) -> list[str]:
    """Return the words of a name: of ``isMale``, ``race_white``, ``Native-Country`` and ``PAY_AMT1``."""
    return [word.lower() for word in _WORD.findall(name)]


def why_fixed(name: str) -> str:
    """Return why people cannot change what a column of this name holds; nothing where the name does not tell.

    Examples
    --------
    >>> why_fixed("AgeGroup"), why_fixed("age_of_account"), why_fixed("average")
    ('nobody chooses it, and it rises by itself', '', '')
    """
    words = set(_words(name))
    if words & _THINGS:
        return ""
    return next((reason for reason, known in _TRAITS.items() if words & known), "")


def is_code(name: str) -> bool:
    """Return whether whole numbers under this name are likely codes of categories."""
    return not _CODES.isdisjoint(_words(name)) and _AMOUNTS.isdisjoint(_words(name))


def is_identifier(name: str) -> bool:
    """Return whether the name is that of an identifier."""
    return not _IDENTIFIERS.isdisjoint(_words(name))


def is_outcome(name: str, *, alone: bool = False) -> bool:
    """Return whether the name is that of an outcome which a model is trained to predict; `alone`: whether it is called nothing else, as ``target`` is.

    Examples
    --------
    >>> is_outcome("loan_default"), is_outcome("loan_default", alone=True), is_outcome("Target", alone=True)
    (True, False, True)
    """
    return name.lower() in ("outcome", "target", "label", "y") if alone else not _OUTCOMES.isdisjoint(_words(name))
