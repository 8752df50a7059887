"""The conformance suite passes on every registered kind, and fails, with a reason, on broken ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from budge import Feature
from budge.constraints import Constraint, Example, OneHot, Reachability, Rule, Switch, registry
from budge.constraints.base import Configurations
from budge.testing import check_constraint


@pytest.mark.parametrize("kind", sorted(registry()))
def test_every_registered_kind_conforms(kind: str) -> None:
    check_constraint(registry()[kind], starts=2, candidates=30)


@pytest.mark.parametrize("kind", sorted(registry()))
def test_every_kind_shows_both_outcomes_and_says_what_it_is(kind: str) -> None:
    cls = registry()[kind]
    assert {example.holds for example in cls.examples()} == {True, False}
    assert cls.__doc__
    assert cls.kind == kind


def test_one_value_with_examples_of_its_own() -> None:
    features = (Feature("a", "binary"), Feature("b", "binary"))
    x = {"a": 0.0, "b": 0.0}
    value = OneHot(("a", "b"), relation="<=").bind({f.name: f for f in features})
    examples = [Example(value, features, x, {"a": 1.0, "b": 0.0}, True), Example(value, features, x, {"a": 1.0, "b": 1.0}, False)]
    check_constraint(value, examples)
    with pytest.raises(AssertionError, match="should hold"):
        check_constraint(value, [replace(examples[1], holds=True), replace(examples[0], holds=False)])
    with pytest.raises(AssertionError, match="one that is violated"):
        check_constraint(value, examples[:1])


@dataclass(frozen=True)
class Even(Constraint):
    """The sum is even: a constraint of a third party."""

    kind: ClassVar[str] = "even"

    features: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", tuple(self.features))

    @property
    def scope(self) -> tuple[str, ...]:
        return self.features

    def mask(self, x: Any, action: Any, change: Any) -> Any:
        return np.asarray(sum(x[n] + change[n] for n in self.features) % 2 == 0)

    def describe(self) -> str:
        return f"The sum of {', '.join(self.features)} is even."

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        features = tuple(Feature(n, "integer", bounds=(0, 3)) for n in ("p", "q"))
        x = {"p": 1.0, "q": 1.0}
        return (
            Example(cls(("p", "q")), features, x, {"p": 1.0, "q": -1.0}, True),
            Example(cls(("p", "q")), features, x, {"p": 1.0, "q": 0.0}, False),
        )


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> type[Even]:
    """Registered, as an entry point would do it."""
    kinds = {**registry(), "even": Even}
    for module in ("budge.constraints", "budge.spec.reading", "budge.spec.shapes"):
        monkeypatch.setattr(f"{module}.registry", lambda: kinds, raising=False)
    return Even


def test_a_constraint_of_a_third_party_conforms(even: type[Even], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budge.testing.conformance._check_spec", lambda *args: None)
    check_constraint(even)


class _Wrong(Even):
    """Even, with one promise broken in each subclass."""


class Writes(_Wrong):
    def mask(self, x: Any, action: Any, change: Any) -> Any:
        good = super().mask(x, action, change)
        change[self.features[0]][...] = 0.0
        return good


class Scalar(_Wrong):
    def mask(self, x: Any, action: Any, change: Any) -> Any:
        return np.asarray(bool(np.all(super().mask(x, action, change))))


class Numbers(_Wrong):
    def mask(self, x: Any, action: Any, change: Any) -> Any:
        return super().mask(x, action, change).astype(float)


class Secret(_Wrong):
    def mask(self, x: Any, action: Any, change: Any) -> Any:
        return super().mask(x, action, change) & (np.asarray(action["p"]) < 3)


class Listed(_Wrong):
    def configurations(self, x: Mapping[str, float]) -> Configurations:
        return Configurations(self.features, np.array([[0.0, 0.0], [1.0, 1.0]]))


class Linear(_Wrong):
    def rows(self, x: Any, known: Any = None) -> Any:
        from budge.expressions import Truth

        return Truth(True)


class Wordy(_Wrong):
    def describe(self) -> str:
        return "The sum is even.\nAnd more"


class Stray(_Wrong):
    @property
    def reads(self) -> Any:
        return frozenset([("value", "p"), ("value", "q"), ("value", "other")])


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (Writes, "read-only|writes"),
        (Scalar, "shape"),
        (Numbers, "truth values"),
        (Secret, "own action of p"),
        (Listed, "configurations"),
        (Linear, "its rows"),
        (Wordy, "one sentence"),
        (Stray, "scope does not name"),
    ],
)
def test_each_broken_promise_is_named(broken: type[Even], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("budge.testing.conformance._check_spec", lambda *args: None)
    with pytest.raises((AssertionError, ValueError), match=reason):
        check_constraint(broken)


def test_planted_bugs_in_budges_own_kinds_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Reachability.mask
    monkeypatch.setattr(
        Reachability,
        "mask",
        lambda self, x, a, c: right(replace(self, reachable=self.reachable and tuple(zip(*self.reachable))), x, a, c),
    )
    with pytest.raises(AssertionError):
        check_constraint(Reachability)
    monkeypatch.setattr(
        Switch, "rows", lambda self, x, known=None: Rule("closed == 1 or closed == 0").bind(self.declared).rows(x)
    )
    with pytest.raises(AssertionError, match="its rows"):
        check_constraint(Switch)
    monkeypatch.setattr(OneHot, "to_spec", lambda self: {"one_hot": {"features": list(self.features)}})
    with pytest.raises(AssertionError, match="round trip"):
        check_constraint(OneHot)
