"""Random mixed interaction models, each with its law written down a second time: plain rejection, or a closed form where rejection would not end.

Nothing here asks the library what is feasible: every rule is made together with a few lines of numpy that decide it, moves come from `reach_brute.span`,
linkages are added up by hand. Constants are in general position, so that a configuration that leaves room leaves an interval and not a point; configurations
that leave a single point, and strict rows that take it away, are in `edge`, whose numbers are multiples of 1/4 and whose law is worked out exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

import numpy as np
import numpy.typing as npt
from reach_brute import span

from budge import Feature, InteractionModel
from budge.constraints import DirectionalLinkage, IfThen, LinearConstraint, OneHot, Predicate, Rule, Switch
from budge.distributions import Distribution
from budge.effects import Effect

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Columns = dict[str, FloatArray]
Check = Callable[[Mapping[str, FloatArray], Mapping[str, FloatArray]], BoolArray]  # values reached, own actions
LOG = Distribution("log")
RAREST = 1e-4  # acceptance below which plain rejection is given up
PROPOSALS = 400_000  # for one question about one model


class TooRareError(Exception):
    """Plain rejection accepts too little."""


class NothingError(Exception):
    """Not one proposal was accepted."""


@dataclass
class Law:
    """A model, a start, and draws from its law that owe nothing to the library."""

    family: str
    im: InteractionModel
    x: dict[str, Any]
    reference: Callable[[int, np.random.Generator], FloatArray]  # so many points, a column per feature
    shares: Callable[[], tuple[FloatArray, FloatArray]] | None = None  # configurations (columns: discrete features) and their probabilities
    noise: tuple[str, ...] = ()  # features with an effect: not to be asked whether they are feasible
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def discrete(self) -> list[int]:
        """Columns of the discrete features."""
        return [j for j, f in enumerate(self.im.features) if f.discrete]


def number(rng: np.random.Generator, low: float, high: float) -> float:
    """A number in general position."""
    return float(np.round(rng.uniform(low, high), 6))


def some(rng: np.random.Generator, among: Any, least: int, most: int) -> list[Any]:
    among = list(among)
    count = int(rng.integers(min(least, len(among)), min(most, len(among)) + 1))
    return [among[i] for i in rng.permutation(len(among))[:count]]


# -- small mixed models: every configuration listed, its room by rejection ------------------------------------------------


@dataclass
class Builder:
    """A mixed model in the making."""

    rng: np.random.Generator
    features: list[Feature] = field(default_factory=list)
    x: dict[str, Any] = field(default_factory=dict)
    constraints: list[Any] = field(default_factory=list)
    checks: list[tuple[frozenset[str], Check]] = field(default_factory=list)
    links: dict[str, list[DirectionalLinkage]] = field(default_factory=dict)
    frozen: list[tuple[Check, tuple[str, ...]]] = field(default_factory=list)  # where this holds, these reals do not move
    solved: tuple[str, dict[str, float], float] | None = None  # the real that an equality determines
    effects: list[Effect] = field(default_factory=list)
    measure: str = "configuration"
    kinds: list[str] = field(default_factory=list)

    @property
    def by_name(self) -> dict[str, Feature]:
        return {f.name: f for f in self.features}

    @property
    def reals(self) -> list[str]:
        return [f.name for f in self.features if f.type == "real"]

    @property
    def wholes(self) -> list[str]:
        return [f.name for f in self.features if f.type in ("integer", "binary")]

    @property
    def listed(self) -> list[str]:
        return [f.name for f in self.features if f.discrete]

    def start(self, name: str) -> float:
        f = self.by_name[name]
        return float(f.levels.index(self.x[name])) if f.levels is not None else float(self.x[name])

    def point(self) -> Columns:
        """A point that every feature could reach by itself."""
        found = {}
        for f in self.features:
            down, up = span(f, self.start(f.name))
            moved = self.rng.integers(round(down), round(up) + 1) if f.discrete else self.rng.uniform(down, up)
            found[f.name] = np.array([self.start(f.name) + moved])
        return found

    def rule(self, kind: str, names: Any, constraint: Any, check: Check) -> None:
        self.kinds.append(kind)
        self.constraints.append(constraint)
        self.checks.append((frozenset(names), check))

    # -- features

    def add_features(self) -> None:
        rng = self.rng
        names = iter(rng.permutation([f"{a}{b}" for a in "abcdefgh" for b in "xyz"]).tolist())
        for _ in range(int(rng.integers(1, 5))):
            name, kind = next(names), rng.choice(["binary", "integer", "integer", "category"])
            if kind == "binary":
                f = Feature(name, "binary")
            elif kind == "category":
                f = Feature(name, "category", levels=("low", "mid", "high"), ordered=bool(rng.integers(2)))
            else:
                low = int(rng.integers(-2, 3))
                law = LOG if low > 0 and rng.random() < 0.5 else None
                f = Feature(name, "integer", bounds=(low, low + int(rng.integers(1, 6))), distribution=law)
            self._add(f)
        for _ in range(int(rng.integers(1, 5))):
            name = next(names)
            low, law = number(rng, -3, 3), None
            if rng.random() < 0.25:
                low, law = number(rng, 0.3, 3), LOG
            self._add(Feature(name, "real", bounds=(low, low + number(rng, 0.5, 6)), distribution=law))
        order = rng.permutation(len(self.features))
        self.features = [self.features[i] for i in order]

    def _add(self, f: Feature) -> None:
        rng = self.rng
        low, high = f.range
        if f.discrete:
            value: Any = int(rng.integers(round(low), round(high) + 1))
        else:
            value = number(rng, low, high)
            if f.distribution is None and rng.random() < 0.1:
                value = number(rng, high, high + 1)  # outside: it may stay or come back
        if f.type in ("integer", "real") and rng.random() < 0.25:
            f = f.but(direction=str(rng.choice(["increase", "decrease"])))
        if f.type in ("integer", "real") and rng.random() < 0.2:
            f = f.but(max_increase=number(rng, 0.4, 4), max_decrease=number(rng, 0.4, 4))
        if rng.random() < 0.05:
            f = f.but(actionable=False)
        self.features.append(f)
        self.x[f.name] = f.levels[value] if f.levels is not None else value

    # -- rules; each returns whether it could be made

    def one_hot(self) -> bool:
        names = [f"h{i}" for i in range(int(self.rng.integers(2, 5)))]
        on = int(self.rng.integers(len(names)))
        for i, name in enumerate(names):
            self.features.append(Feature(name, "binary"))
            self.x[name] = int(i == on)
        self.rule("one_hot", names, OneHot(tuple(names)), lambda v, a: sum(v[n] for n in names) == 1)
        if self.reals:
            u, h, c = str(self.rng.choice(self.reals)), names[-1], float(self.point()[str(self.rng.choice(self.reals))][0])
            self.rule("if_then", (u, h), IfThen(f"{h} == 1", f"{u} <= {c}"), lambda v, a: (v[h] != 1) | (v[u] <= c))
        return True

    def linear(self) -> bool:
        rng = self.rng
        names = some(rng, self.reals, 1, 3) + some(rng, self.wholes, 0, 2)
        if len(names) < 2:
            return False
        terms = {n: number(rng, 0.3, 2) * int(rng.choice([-1, 1, 1])) for n in names}
        on = "action" if rng.random() < 0.15 and not set(names) & set(self.links) else "value"
        at = self.point()
        limit = number(rng, -0.5, 0.5) + sum(c * (at[n][0] - (self.start(n) if on == "action" else 0.0)) for n, c in terms.items())
        sign = int(rng.choice([-1, 1]))

        def check(v: Mapping[str, FloatArray], a: Mapping[str, FloatArray]) -> BoolArray:
            read = a if on == "action" else v
            return np.asarray(sign * (sum(c * read[n] for n, c in terms.items()) - limit) <= 0)

        if on == "value" and rng.random() < 0.4:
            text = " + ".join(f"{c} * {n}" for n, c in terms.items())
            made: Any = Rule(f"{text} {rng.choice(['<', '<=']) if sign > 0 else rng.choice(['>', '>='])} {limit}")
        else:
            made = LinearConstraint(terms, "<=" if sign > 0 else ">=", limit, on=on)
        self.rule("linear", names, made, check)
        return True

    def curved(self) -> bool:
        rng = self.rng
        names = some(rng, self.reals + self.wholes[:1], 2, 2)
        if len(names) < 2 or not set(names) & set(self.reals):
            return False
        u, v_ = names
        forms: list[tuple[str, Callable[[FloatArray, FloatArray], FloatArray]]] = [
            (f"{u} * {v_}", lambda a, b: a * b),
            (f"{u} * {u} + {v_} * {v_}", lambda a, b: a * a + b * b),
            (f"abs({u} - {v_})", lambda a, b: np.abs(a - b)),
            (f"max({u}, {v_})", np.maximum),
            (f"{u} * {u} - {v_}", lambda a, b: a * a - b),
        ]
        text, value = forms[int(rng.integers(len(forms)))]
        at = self.point()
        limit = float(value(at[u], at[v_])[0]) + number(rng, 0, 0.3)
        if rng.random() < 0.6:
            self.rule("curved", names, Rule(f"{text} <= {limit}"), lambda v, a: value(v[u], v[v_]) <= limit)
        else:
            self.rule("curved", names, Rule(f"{text} >= {limit - 0.4}"), lambda v, a: value(v[u], v[v_]) >= limit - 0.4)
        return True

    def total(self) -> bool:
        """A total of absolute distances, or of what exceeds something, from where people stand or from anywhere."""
        rng = self.rng
        names = some(rng, self.reals, 1, 4) + some(rng, self.wholes, 0, 2)
        if len(names) < 2:
            return False
        at, kind = self.point(), str(rng.choice(["abs", "abs", "max", "skew"]))
        middle = {n: self.start(n) if rng.random() < 0.5 else round(float(at[n][0]), 6) for n in names}
        factor = {n: 1.0 if rng.random() < 0.4 else number(rng, 0.3, 2) for n in names}
        lean = {n: number(rng, -0.9, 0.9) if kind == "skew" else 0.0 for n in names}

        def value(v: Mapping[str, FloatArray]) -> FloatArray:
            gaps = {n: v[n] - middle[n] for n in names}
            one = (lambda g: np.maximum(g, 0.0)) if kind == "max" else np.abs
            return np.asarray(sum(factor[n] * (one(gap) + lean[n] * gap) for n, gap in gaps.items()))

        aim = self.point()
        limit = float(value(aim)[0]) + number(rng, 0.0, 0.4)
        texts = []
        for n in names:
            gap = f"({n} - {middle[n]})"
            texts.append({"abs": f"{factor[n]} * abs{gap}", "max": f"max({gap} * {factor[n]}, 0)"}.get(kind, f"{factor[n]} * (abs{gap} + {lean[n]} * {gap})"))
        text = " + ".join(texts)
        self.rule("total", names, Rule(f"{text} <= {limit}" if rng.integers(2) else f"{limit} > {text}"), lambda v, a: value(v) <= limit)
        return True

    def predicate(self) -> bool:
        names = some(self.rng, self.reals, 1, 2) + some(self.rng, self.wholes, 0, 1)
        ways = {n: number(self.rng, 0.5, 2) for n in names}

        def wave(v: Mapping[str, Any]) -> Any:
            return np.sin(sum(c * np.asarray(v[n], dtype=float) for n, c in ways.items())) <= 0.4

        self.rule("predicate", names, Predicate(tuple(names), wave), lambda v, a: wave(v))
        return True

    def _atom(self, names: list[str]) -> tuple[str, Callable[[Mapping[str, FloatArray]], BoolArray], str]:
        """A comparison of one feature with a constant."""
        name = str(self.rng.choice(names))
        f, at = self.by_name[name], self.point()
        c = float(at[name][0])
        if f.levels is not None:
            return f"{name} == '{f.levels[int(c)]}'", lambda v: v[name] == c, name
        if f.discrete:
            return (f"{name} >= {int(c)}", lambda v: v[name] >= c, name) if self.rng.integers(2) else (f"{name} == {int(c)}", lambda v: v[name] == c, name)
        return (f"{name} >= {c}", lambda v: v[name] >= c, name) if self.rng.integers(2) else (f"{name} < {c}", lambda v: v[name] < c, name)

    def if_then(self) -> bool:
        every = self.listed + self.reals
        if_text, when, k = self._atom(every)
        then_text, then, u = self._atom([n for n in self.reals if n != k] or every)
        if k == u:
            return False
        if self.rng.random() < 0.3 and len(self.reals) > 1:  # a row as its consequence
            p, q = some(self.rng, self.reals, 2, 2)
            at = self.point()
            limit = float(at[p][0] + 0.7 * at[q][0]) + 0.2
            self.rule("if_then", (k, p, q), IfThen(if_text, f"{p} + 0.7 * {q} <= {limit}"), lambda v, a: ~when(v) | (v[p] + 0.7 * v[q] <= limit))
            return True
        self.rule("if_then", (k, u), IfThen(if_text, then_text), lambda v, a: ~when(v) | then(v))
        return True

    def either(self) -> bool:
        made = [self._atom(self.listed + self.reals * 2) for _ in range(int(self.rng.integers(2, 4)))]
        names = {name for _, _, name in made}
        if len(names) < 2 or not names & set(self.reals):
            return False
        self.rule("either", names, Rule(" or ".join(t for t, _, _ in made)), lambda v, a: np.any([f(v) for _, f, _ in made], axis=0))
        return True

    def switch(self) -> bool:
        if self.solved is not None:
            return False
        text, when, _ = self._atom(self.listed)
        targets = tuple(n for n in some(self.rng, self.reals, 1, 2) if n not in self.links)
        if not targets:
            return False
        self.kinds.append("switch")
        self.constraints.append(Switch(text, targets))
        self.frozen.append((lambda v, a: when(v), targets))
        return True

    def link(self) -> bool:
        """Sources come before targets in the alphabet, so that nothing is linked in a circle."""
        rng = self.rng
        if self.solved is not None or self.frozen or any(isinstance(c, LinearConstraint) and c.on == "action" for c in self.constraints):
            return False
        source = str(rng.choice(self.wholes + self.reals * 2))
        before = {link.source for links in self.links.values() for link in links}
        before |= {e.feature for e in self.effects}
        targets = [n for n in self.reals if n > source and n not in before]
        counted = [n for n in self.wholes if n > source and n not in before and n[0] != "h" and self.by_name[n].distribution is None]
        if counted and rng.random() < 0.3:
            targets = [n for n in counted if self.by_name[n].type == "integer"]
        if not targets or source in self.links:
            return False
        target = str(rng.choice(targets))
        f, relation = self.by_name[target], str(rng.choice(["==", "==", "<="]))
        policy = self.links[target][0].on_exceed if target in self.links else str(rng.choice(["allow", "reject", "clip", "clip"]))
        if f.discrete and (relation == "==" and source in self.reals):
            relation = "<="
        scale = float(rng.choice([-1, 1, 2])) if f.discrete else number(rng, 0.3, 2) * int(rng.choice([-1, 1]))
        if f.discrete and (relation == "<=" or self.links.get(target)):
            if f.actionable and target not in self.links:  # an own action beside an induced one is not told by the change
                f = f.but(actionable=False)
            elif self.links.get(target):
                return False
        if rng.random() < 0.5 and f.actionable:
            f = f.but(actionable=False)
        if f.distribution is not None:
            least = self.start(target) + span(f, self.start(target))[0]
            for link in [*self.links.get(target, []), DirectionalLinkage(source, {target: scale}, relation, policy)]:  # type: ignore[arg-type]
                ends = [link.targets[target] * a for a in span(self.by_name[link.source], self.start(link.source))]
                least += min(0.0, *ends)
            if policy != "allow":
                least = max(least, min(f.range[0], self.start(target)))
            if least <= 0.05 or (not f.actionable and source not in self.reals) or policy == "clip":
                f = f.but(distribution=None)
        self.features[[g.name for g in self.features].index(target)] = f
        made = DirectionalLinkage(source, {target: scale}, relation, policy)  # type: ignore[arg-type]
        self.links.setdefault(target, []).append(made)
        self.kinds.append(f"link {relation} {policy}")
        self.constraints.append(made)
        return True

    def shares(self) -> bool:
        """Reals, and sometimes a whole number, add up to a constant."""
        if self.solved is not None or self.frozen or self.links:
            return False
        names = [n for n in self.reals if self.by_name[n].actionable]
        if len(names) < 2:
            return False
        names = some(self.rng, names, 2, 4)
        if self.wholes and self.rng.random() < 0.4:
            names.append(str(self.rng.choice(self.wholes)))
        terms = {n: 1.0 if self.rng.random() < 0.6 else number(self.rng, 0.4, 2) for n in names}
        at = self.point()
        total = sum(c * at[n][0] for n, c in terms.items())
        self.solved = (next(n for n in names if n in self.reals), terms, float(total))
        self.kinds.append("equality")
        self.constraints.append(LinearConstraint(terms, "==", float(total)))
        return True

    def effect(self) -> bool:
        name = str(self.rng.choice(self.reals))
        if any(e.feature == name for e in self.effects) or name in self.links:  # the change of a linked feature does not tell its own action
            return False
        self.kinds.append("effect")
        self.effects.append(Effect(name, add=f"normal(0.3 * action.{name}, 0.5)", clip=self.by_name[name].bounds))
        return True

    # -- what it means

    def sized(self) -> int:
        return math.prod(len(range(*self._ends(n))) for n in self.listed)

    def _ends(self, name: str) -> tuple[int, int]:
        """Whole own actions of a feature, or whole changes of one that only inequality linkages move."""
        down, up = self._span(name)
        return math.ceil(down - 1e-9), math.floor(up + 1e-9) + 1

    def _span(self, name: str) -> tuple[float, float]:
        down, up = span(self.by_name[name], self.start(name))
        for link in self.links.get(name, []):
            if link.relation != "==":
                ends = [float(link.targets[name]) * a for a in span(self.by_name[link.source], self.start(link.source))]
                down, up = down + min(0.0, *ends), up + max(0.0, *ends)
        return down, up

    def law(self, family: str) -> Law:
        im = InteractionModel(self.features, self.constraints, self.effects, measure=self.measure)  # type: ignore[arg-type]
        oracle = Oracle(self)
        shares = None if self.measure == "volume" or self.listed == [] else oracle.shares
        return Law(family, im, self.x, oracle.draw, shares, tuple(e.feature for e in self.effects), {"kinds": self.kinds})


class Oracle:
    """The law of a built model, by rejection from own actions."""

    def __init__(self, b: Builder) -> None:
        self.b = b
        self.names = [f.name for f in b.features]
        self.configurations: FloatArray | None = None  # own actions of the discrete features, one row each
        self.rng = np.random.default_rng(7)

    # a table of own actions of the discrete features -> changes of these; which are possible at all
    def _changes(self, own: Columns) -> tuple[Columns, BoolArray]:
        b, n = self.b, len(next(iter(own.values())))
        change, good = {}, np.ones(n, dtype=bool)
        for name in b.listed:
            links, moved = b.links.get(name, []), own[name]
            if links and all(link.relation == "==" for link in links):
                moved = moved + sum(float(link.targets[name]) * own[link.source] for link in links)
                floor, ceiling = self._reach(name)
                if links[0].on_exceed == "clip":
                    moved = np.clip(moved, floor, ceiling)
                elif links[0].on_exceed == "reject":
                    good &= (moved >= floor) & (moved <= ceiling)
            change[name] = moved
        return change, good

    def _reach(self, name: str) -> tuple[float, float]:
        f, x = self.b.by_name[name], self.b.start(name)
        return min(f.range[0], x) - x, max(f.range[1], x) - x

    def propose(self, own: Columns, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        """Points, one for each row of own actions of the discrete features, and which of them are accepted."""
        b, n = self.b, len(next(iter(own.values()))) if own else 1000
        by_volume = b.measure == "volume"
        action = dict(own)
        change, good = self._changes(own)
        value = {name: b.start(name) + change[name] for name in change}
        frozen = {t: np.zeros(n, dtype=bool) for _, targets in b.frozen for t in targets}
        for when, targets in b.frozen:
            held = when(value, action)
            for t in targets:
                frozen[t] |= held
        keep = np.ones(n)
        for name in sorted(b.reals):  # sources before targets
            f, x = b.by_name[name], b.start(name)
            links = b.links.get(name, [])
            down, up = span(f, x)
            floor, ceiling = self._reach(name)
            if not links:
                if f.distribution is not None and up > down:
                    action[name] = (x + down) * ((x + up) / (x + down)) ** rng.random(n) - x
                else:
                    action[name] = rng.uniform(down, up, n)
                if name in frozen:
                    if by_volume and down < up:
                        good &= ~frozen[name]
                    action[name] = np.where(frozen[name], 0.0, action[name])
                change[name] = action[name]
                value[name] = x + change[name]
                continue
            policy = links[0].on_exceed
            told = all(link.relation == "==" for link in links)
            induced = [float(link.targets[name]) * action[link.source] for link in links]
            low = down + sum(i if link.relation == "==" else np.minimum(i, 0.0) for i, link in zip(induced, links))
            high = up + sum(i if link.relation == "==" else np.maximum(i, 0.0) for i, link in zip(induced, links))
            low, high = np.broadcast_to(low, (n,)), np.broadcast_to(high, (n,))
            if told and down == up == 0.0:
                moved = np.clip(low, floor, ceiling) if policy == "clip" else low
                if policy == "reject":
                    good &= (moved >= floor) & (moved <= ceiling)
            elif by_volume or any(b.by_name[link.source].type == "real" for link in links):
                ends = [sum(e) for e in zip((down, up), *([min(0, *s), max(0, *s)] for s in (self._scaled(link, name) for link in links)))]
                if policy != "allow":
                    ends = [max(ends[0], floor), min(ends[1], ceiling)]
                moved = rng.uniform(ends[0], ends[1], n)
                good &= (moved >= low) & (moved <= high)
            else:
                if policy == "clip":
                    low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
                elif policy == "reject":
                    low, high = np.maximum(low, floor), np.minimum(high, ceiling)
                    good &= low <= high
                moved = low + (high - low) * rng.random(n)
            change[name], action[name] = moved, moved
            value[name] = x + moved
            if f.distribution is not None:
                least = x + down + sum(min(0.0, *self._scaled(link, name)) for link in links)
                least = max(least, x + floor) if policy != "allow" else least
                keep = keep * least / value[name]
        for name in b.listed:  # whole changes of those that inequality linkages move
            for link in b.links.get(name, []):
                if link.relation == "<=":
                    induced = float(link.targets[name]) * action[link.source]
                    low, high = np.minimum(induced, 0.0), np.maximum(induced, 0.0)
                    floor, ceiling = self._reach(name)
                    if link.on_exceed == "clip":
                        low, high = np.clip(low, floor, ceiling), np.clip(high, floor, ceiling)
                    good &= (change[name] >= low - 1e-9) & (change[name] <= high + 1e-9)
                    if link.on_exceed == "reject":
                        good &= (change[name] >= floor) & (change[name] <= ceiling)
        if b.solved is not None:
            name, terms, total = b.solved
            f, x = b.by_name[name], b.start(name)
            down, up = span(f, x)
            value[name] = (total - sum(c * value[m] for m, c in terms.items() if m != name)) / terms[name]
            action[name] = change[name] = value[name] - x
            good &= (change[name] >= down) & (change[name] <= up)
            if f.distribution is not None:
                keep = keep * np.minimum((x + down) / np.maximum(value[name], x + down), 1.0)
        for _, check in b.checks:
            good &= check(value, action)
        if b.measure == "volume":
            for name in b.listed:
                if b.by_name[name].distribution is not None:
                    keep = keep * b.by_name[name].range[0] / np.maximum(value[name], b.by_name[name].range[0])
        good &= rng.random(n) < keep
        for e in b.effects:
            value[e.feature] = np.clip(value[e.feature] + rng.normal(0.3 * action[e.feature], 0.5), *b.by_name[e.feature].range)
        return np.stack([value[name] for name in self.names], axis=1), good

    def _scaled(self, link: DirectionalLinkage, name: str) -> list[float]:
        return [float(link.targets[name]) * a for a in span(self.b.by_name[link.source], self.b.start(link.source))]

    def _listed(self) -> FloatArray:
        """Own actions of the discrete features, one row for each configuration (change) that the discrete rules allow."""
        b = self.b
        rows = np.array(list(product(*(range(*b._ends(n)) for n in b.listed))), dtype=float).reshape(-1, len(b.listed))
        own = {n: rows[:, j] for j, n in enumerate(b.listed)}
        change, good = self._changes(own) if b.listed else ({}, np.ones(1, dtype=bool))
        value = {n: b.start(n) + change[n] for n in change}
        for names, check in b.checks:
            if names <= set(b.listed):
                good &= check(value, own)
        moved = np.stack([change[n] for n in b.listed], axis=1)[good] if b.listed else rows
        _, first = np.unique(moved, axis=0, return_index=True)
        return np.asarray(rows[good][first])

    def feasible(self) -> FloatArray:
        """The configurations that have room, found by proposals."""
        if self.configurations is None:
            rows = self._listed()
            left, seen, tries = np.arange(len(rows)), [], 50
            spent = 0
            while len(left) and spent < PROPOSALS:
                at = np.repeat(left, tries)
                spent += len(at)
                _, good = self.propose({n: rows[at, j] for j, n in enumerate(self.b.listed)}, self.rng)
                hit = good.reshape(len(left), tries).any(axis=1)
                seen += left[hit].tolist()
                left, tries = left[~hit], min(tries * 4, max(50, PROPOSALS // max(len(left), 1)))
            if not seen:
                raise NothingError
            self.configurations = rows[sorted(seen)]
        return self.configurations

    def more(self, points: FloatArray) -> None:
        """Look again for configurations that somebody has drawn."""
        rows = self._listed()
        own = {n: rows[:, j] for j, n in enumerate(self.b.listed)}
        change, _ = self._changes(own)
        value = np.stack([self.b.start(n) + change[n] for n in self.b.listed], axis=1)
        places = [self.names.index(n) for n in self.b.listed]
        for row, at in zip(rows, value):
            if (np.abs(points[:, places] - at).max(axis=1) < 1e-9).any() and not (np.abs(self.feasible() - row).max(axis=1) == 0).any():
                for _ in range(20):
                    _, good = self.propose({n: np.full(100_000, row[j]) for j, n in enumerate(self.b.listed)}, self.rng)
                    if good.any():
                        self.configurations = np.vstack([self.feasible(), row])
                        break
                else:
                    raise TooRareError

    def shares(self) -> tuple[FloatArray, FloatArray]:
        """Values of the discrete features in each configuration, and its probability."""
        rows, b = self.feasible(), self.b
        change, _ = self._changes({n: rows[:, j] for j, n in enumerate(b.listed)})
        values = np.stack([b.start(n) + change[n] for n in b.listed], axis=1)
        weights = np.ones(len(rows))
        for j, n in enumerate(b.listed):
            if b.by_name[n].distribution is not None:
                weights = weights / values[:, j]
        return values, weights / weights.sum()

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        b = self.b
        points = np.empty((n, len(self.names)))
        pending = np.arange(n)
        if b.measure == "volume":
            spent = done = 0
            while done < n:
                own = {name: rng.integers(*b._ends(name), 20_000).astype(float) for name in b.listed}
                if any(b.by_name[m].discrete and any(link.relation == "==" for link in links) and links[0].on_exceed == "clip" for m, links in b.links.items()):
                    own = self._once(rng, 20_000)
                found, good = self.propose(own, rng)
                spent += len(good)
                found = found[good][: n - done]
                points[done : done + len(found)] = found
                done += len(found)
                if (spent > PROPOSALS and done < RAREST * spent) or spent > 5e6:
                    raise TooRareError if done else NothingError
            return points
        rows = self.feasible()
        _, shares = self.shares() if b.listed else (None, np.ones(1))
        which = rng.choice(len(rows), n, p=shares)
        spent, copies = 0, 1
        while len(pending):
            some_ = pending[: max(1, 200_000 // copies)]
            at = np.repeat(which[some_], copies)
            found, good = self.propose({name: rows[at, j] for j, name in enumerate(b.listed)}, rng)
            spent += len(good)
            table = good.reshape(len(some_), copies)
            done = table.any(axis=1)
            points[some_[done]] = found[np.flatnonzero(done) * copies + table[done].argmax(axis=1)]
            pending = np.concatenate([pending[len(some_) :], some_[~done]])
            copies = min(copies * 2, 8192)
            if spent > 5e6:
                raise TooRareError
        return points

    def _once(self, rng: np.random.Generator, n: int) -> Columns:
        """Own actions such that each change of the discrete features comes equally often."""
        rows = self._listed()
        at = rng.integers(len(rows), size=n)
        return {name: rows[at, j] for j, name in enumerate(self.b.listed)}


RULES = ("linear", "linear", "total", "curved", "predicate", "if_then", "if_then", "either", "switch", "link", "link", "shares", "one_hot", "effect")


def small(rng: np.random.Generator) -> Law:
    """One to four discrete and one to four real features under one to three rules of any kind."""
    while True:
        b = Builder(rng)
        b.add_features()
        for kind in rng.choice(RULES, int(rng.integers(1, 4))).tolist():
            if kind == "one_hot" and "one_hot" in b.kinds:
                continue
            getattr(b, kind)()
        if rng.random() < 0.3 and not any(e for e in b.effects):
            b.measure = "volume"
        if b.kinds and b.sized() <= 600:
            return b.law("small")


# -- wide whole numbers beside one real, or several under one row --------------------------------------------------------


def wide(rng: np.random.Generator) -> Law:
    """Whole numbers with thousands or millions of values beside reals that rows couple to them."""
    count, top = int(rng.integers(1, 5)), int(rng.choice([700, 3000, 50_000, 10**6]))
    names = [f"w{i}" for i in range(count)]
    tops = {n: int(top * rng.uniform(0.6, 1.4)) for n in names}
    log = bool(rng.random() < 0.2)
    several = bool(rng.random() < 0.3) and not log
    reals = [f"r{i}" for i in range(int(rng.integers(2, 5)) if several else 1)]
    size = float(rng.choice([1.0, top]))
    spans = {n: (number(rng, 0.05, 0.2) * size, number(rng, 0.5, 1.5) * size) for n in reals}
    flag = bool(rng.random() < 0.4)
    features = [Feature(n, "integer", bounds=(0, tops[n])) for n in names]
    features += [Feature(n, "real", bounds=spans[n], distribution=LOG if log else None) for n in reals]
    features += [Feature("flag", "binary")] if flag else []
    features = [features[i] for i in rng.permutation(len(features))]
    strict = bool(rng.integers(2))

    def row(among: list[str], sign: int) -> tuple[dict[str, float], float]:
        terms = {n: float(sign * rng.choice([1, 1, 2, 3])) for n in among if n in tops}
        terms |= {n: sign * (1.0 if size > 1 or rng.integers(2) else number(rng, 0.1, 2) * top) for n in among if n in spans}
        at = {n: rng.uniform(0.15, 0.85) * tops[n] for n in tops} | {n: float(rng.uniform(*spans[n])) for n in spans}
        return terms, sum(c * at[n] for n, c in terms.items()) + number(rng, 0.01, 0.99)

    rows = [row(names + reals, 1)]
    if not several:
        if count > 1 and rng.random() < 0.5:
            terms, limit = row([names[0], reals[0]], -1)
            rows.append((terms, limit))
        if rng.random() < 0.3:
            rows.append(({names[0]: 1.0, reals[0]: -size and -1.0 * tops[names[0]] / size}, number(rng, 0.1, 0.9)))
    constraints: list[Any] = []
    for i, (terms, limit) in enumerate(rows):
        text = " + ".join(f"{c} * {n}" for n, c in terms.items())
        if strict:
            constraints.append(Rule(f"{text} < {limit}"))
        elif i == 0 and flag:
            constraints.append(LinearConstraint(terms | {"flag": 0.25 * top + 0.123}, "<=", limit + 0.25 * top))
        else:
            constraints.append(LinearConstraint(terms, "<=", limit))
    if strict and flag:
        constraints.append(IfThen("flag == 1", f"{names[0]} <= {tops[names[0]] // 2}"))
    x = {f.name: (int(rng.integers(0, tops[f.name] // 4)) if f.name in tops else 0 if f.name == "flag" else spans[f.name][0]) for f in features}
    place = {f.name: j for j, f in enumerate(features)}

    def tight(value: Columns, limit_of: int) -> FloatArray:
        """What the whole numbers leave of a limit."""
        terms, limit = rows[limit_of]
        rest = limit - sum(c * value[n] for n, c in terms.items() if n in tops)
        if limit_of == 0 and flag and not strict:
            rest = rest + 0.25 * top - (0.25 * top + 0.123) * value["flag"]
        return np.asarray(rest)

    def reference(n: int, rng: np.random.Generator) -> FloatArray:
        kept: list[FloatArray] = []
        spent = 0
        while sum(map(len, kept)) < n:
            m = 50_000
            spent += m
            value: Columns = {k: rng.integers(0, tops[k] + 1, m).astype(float) for k in names}
            if flag:
                value["flag"] = rng.integers(0, 2, m).astype(float)
            good = np.ones(m, dtype=bool)
            if strict and flag:
                good &= (value["flag"] == 0) | (value[names[0]] <= tops[names[0]] // 2)
            if several:
                terms, _ = rows[0]
                rest = tight(value, 0) - sum(terms[r] * spans[r][0] for r in reals)
                good &= rest >= 0
                at = np.flatnonzero(good)[: n - sum(map(len, kept))]
                drawn = np.empty((len(at), len(reals)))
                pending = np.arange(len(at))
                slope = np.array([terms[r] for r in reals])
                low, high = np.array([spans[r][0] for r in reals]), np.array([spans[r][1] for r in reals])
                tries = 0
                while len(pending):
                    # the box, cut by hand to what one coordinate may take: rejection from a smaller box
                    upper = np.minimum(high, low + rest[at[pending]][:, None] / slope)
                    y = low + (upper - low) * rng.random((len(pending), len(reals)))
                    ok = (y - low) @ slope <= rest[at[pending]]
                    drawn[pending[ok]] = y[ok]
                    pending = pending[~ok]
                    tries += 1
                    if tries > 3000:
                        raise TooRareError
                for j, r in enumerate(reals):
                    value[r] = np.zeros(m)
                    value[r][at] = drawn[:, j]
            else:
                r = reals[0]
                least, most = np.full(m, spans[r][0]), np.full(m, spans[r][1])
                for i, (terms, _) in enumerate(rows):
                    bound = tight(value, i) / terms[r]
                    most, least = (np.minimum(most, bound), least) if terms[r] > 0 else (most, np.maximum(least, bound))
                good &= least < most
                at = np.flatnonzero(good)[: n - sum(map(len, kept))]
                u = rng.random(m)
                with np.errstate(all="ignore"):
                    value[r] = least * (most / least) ** u if log else least + (most - least) * u
            points = np.empty((len(at), len(features)))
            for k, column in value.items():
                points[:, place[k]] = column[at]
            kept.append(points)
            if spent >= 2_000_000 and sum(map(len, kept)) < RAREST * spent:
                raise TooRareError
        return np.concatenate(kept)[:n]

    return Law("wide", InteractionModel(features, constraints), x, reference, about={"kinds": []})


# -- one real at the edge: single points, strict rows, exactly -----------------------------------------------------------


def edge(rng: np.random.Generator) -> Law:
    """Whole numbers and one real under rows whose constants meet their bounds: single points count, unless a strict row takes them."""
    count = int(rng.integers(1, 4))
    names = [f"k{i}" for i in range(count)]
    tops = [int(rng.choice([1, 3, 5])) if count > 1 else int(rng.choice([2, 5, 800])) for _ in names]
    low = int(rng.integers(-4, 5)) / 4
    high = low + int(rng.integers(0, 17)) / 4 * (1 if max(tops) < 50 else 100)
    features = [*(Feature(n, "integer", bounds=(0, t)) for n, t in zip(names, tops)), Feature("u", "real", bounds=(low, high))]
    rows = []
    constraints: list[Any] = []
    for _ in range(int(rng.integers(1, 4))):
        terms = {n: int(rng.integers(-2, 3)) for n in names}
        slope = int(rng.choice([1, -1, 1, 2]))
        at = sum(c * int(rng.integers(0, t + 1)) for c, t in zip(terms.values(), tops)) + slope * (low if rng.integers(2) else high)
        relation = str(rng.choice(["<", "<=", ">", ">=", "==", "!="], p=[0.25, 0.2, 0.2, 0.2, 0.05, 0.1]))
        guard = (str(rng.choice(names)), int(rng.integers(0, 2))) if rng.random() < 0.3 else None
        text = " + ".join([*(f"{c} * {n}" for n, c in terms.items()), f"{slope} * u"]) + f" {relation} {at}"
        constraints.append(Rule(text) if guard is None else IfThen(f"{guard[0]} == {guard[1]}", text))
        rows.append((terms, slope, at, relation, guard))
    grid = np.array(list(product(*(range(t + 1) for t in tops))), dtype=float)
    least, most = np.full(len(grid), low), np.full(len(grid), high)
    open_low, open_high = np.zeros(len(grid), dtype=bool), np.zeros(len(grid), dtype=bool)
    holes: list[FloatArray] = []
    for terms, slope, at, relation, guard in rows:
        on = np.ones(len(grid), dtype=bool) if guard is None else grid[:, names.index(guard[0])] == guard[1]
        bound = (at - grid @ np.array(list(terms.values()), dtype=float)) / slope
        if relation == "!=":
            holes.append(np.where(on, bound, np.nan))
            continue
        upper = relation == "==" or (relation[0] == "<") == (slope > 0)
        lower = relation == "==" or not upper
        strict = relation in ("<", ">")
        if upper:
            tighter = on & (bound < most)
            open_high = np.where(tighter, strict, open_high | (on & (bound == most) & strict))
            most = np.where(tighter, bound, most)
        if lower:
            tighter = on & (bound > least)
            open_low = np.where(tighter, strict, open_low | (on & (bound == least) & strict))
            least = np.where(tighter, bound, least)
    single = (least == most) & ~open_low & ~open_high
    for hole in holes:
        single &= hole != least
    there = (least < most) | single
    x = {n: int(rng.integers(0, t + 1)) for n, t in zip(names, tops)} | {"u": number(rng, low, high)}
    by_volume = bool(rng.random() < 0.2) and bool((least < most).any())
    weights = np.where(there, np.maximum(most - least, 0.0) if by_volume else 1.0, 0.0)

    def shares() -> tuple[FloatArray, FloatArray]:
        if not weights.any():
            raise NothingError
        return grid[weights > 0], weights[weights > 0] / weights.sum()

    def reference(n: int, rng: np.random.Generator) -> FloatArray:
        shares()
        which = rng.choice(len(grid), n, p=weights / weights.sum())
        return np.hstack([grid[which], (least[which] + (most - least)[which] * rng.random(n))[:, None]])

    im = InteractionModel(features, constraints, measure="volume" if by_volume else "configuration")
    return Law("edge", im, x, reference, shares, about={"kinds": []})


# -- many binaries beside reals: counted by a diagram --------------------------------------------------------------------


def many(rng: np.random.Generator, fewest: int = 16) -> Law:
    """More configurations than are listed, beside one or two reals under the same budget."""
    d, k = int(rng.integers(fewest, fewest + 14)), int(rng.integers(1, 3))
    cost = rng.integers(1, 6, d).astype(float)
    limit = float(int(cost.sum() * rng.uniform(0.35, 0.6))) + 0.37
    low, high = number(rng, 0.05, 0.3), number(rng, 1, 6)
    names, reals = [f"b{i:02d}" for i in range(d)], [f"r{i}" for i in range(k)]
    features = [*(Feature(n, "binary") for n in names), *(Feature(r, "real", bounds=(low, high)) for r in reals)]
    terms = dict(zip(names, cost.tolist())) | dict.fromkeys(reals, 1.0)
    im = InteractionModel(features, [LinearConstraint(terms, "<=", limit)])

    def reference(n: int, rng: np.random.Generator) -> FloatArray:
        kept: list[FloatArray] = []
        while sum(map(len, kept)) < n:
            b = rng.integers(0, 2, (4 * n, d)).astype(float)
            rest = limit - b @ cost - k * low
            b, rest = b[rest >= 0], rest[rest >= 0]
            if k == 1:
                u = low + np.minimum(high - low, rest)[:, None] * rng.random((len(b), 1))
            else:
                u = np.empty((len(b), 2))
                pending = np.arange(len(b))
                while len(pending):
                    y = np.minimum(high - low, rest[pending])[:, None] * rng.random((len(pending), 2))
                    ok = y.sum(axis=1) <= rest[pending]
                    u[pending[ok]] = low + y[ok]
                    pending = pending[~ok]
            kept.append(np.hstack([b, u]))
        return np.concatenate(kept)[:n]

    return Law("many", im, dict.fromkeys(names, 0) | dict.fromkeys(reals, low), reference, about={"kinds": []})


# -- 5 to 30 reals -------------------------------------------------------------------------------------------------------


def dirichlet(n: int, d: int, rng: np.random.Generator) -> FloatArray:
    spread = rng.exponential(size=(n, d))
    return np.asarray(spread / spread.sum(axis=1, keepdims=True))


def high(rng: np.random.Generator) -> Law:
    """Budgets, shares and totals of absolute moves over 5 to 30 reals, beside a whole number that sets the limit."""
    kind = str(rng.choice(["budget", "shares", "capped", "cut", "two", "overlap", "box", "absolute", "moves"]))
    d = int(rng.integers(5, 31)) if kind in ("budget", "shares", "capped", "two", "absolute") else int(rng.integers(5, 9))
    names = [f"y{i:02d}" for i in range(d)]
    low = rng.uniform(0, 0.2, d).round(6)
    slope = np.ones(d) if rng.random() < 0.5 else rng.uniform(0.5, 2, d).round(6)
    step = number(rng, 0.1, 0.6)  # what each of k adds to the limit
    base = number(rng, 0.5, 2)
    ks = int(rng.integers(0, 4))
    most = base + step * ks
    high_ = low + (most + 0.1) / slope  # wide enough not to cut
    accept: Callable[[FloatArray, FloatArray], BoolArray] = lambda y, k: np.ones(len(y), dtype=bool)  # noqa: E731
    start = low.copy()
    first = slope
    constraints: list[Any] = []
    terms = {n: float(s) for n, s in zip(names, slope)}
    limit = float(low @ slope) + base
    equal = kind in ("shares", "capped")
    if kind in ("capped", "cut"):
        sides = rng.uniform(2.2, 6, d).round(6) / d if kind == "capped" else rng.uniform(0.25, 0.9, d).round(6) / 2
        high_ = low + base * sides / slope
        if ((high_ - low) @ slope) < most * 1.3:
            high_ = low + 1.5 * most / slope
        top = high_
        accept = lambda y, k: (y <= top).all(axis=1)  # noqa: E731
    rising = np.zeros(d, dtype=bool)  # who may only increase
    if kind in ("absolute", "moves"):
        start = rng.uniform(-1, 1, d).round(6)
        low, high_ = start - (most + 0.1) / slope, start + (most + 0.1) / slope
        rising = rng.random(d) < 0.3
        if kind == "moves":  # bounds that cut, and perhaps another row
            low, high_ = start - rng.uniform(0.2, 1.2, d).round(6) * base / slope, start + rng.uniform(0.2, 1.2, d).round(6) * base / slope
            other = rng.normal(size=d).round(6) * (rng.random() < 0.5)
            far = float(other @ start) + number(rng, 0.1, 0.5)
            accept = lambda y, k: ((y >= low) & (y <= high_)).all(axis=1) & (y @ other <= far)  # noqa: E731
            if other.any():
                constraints.append(LinearConstraint({n: float(c) for n, c in zip(names, other)}, "<=", far))
        text = " + ".join(f"{c} * abs(action.{n})" for n, c in terms.items())
        constraints.append(Rule(f"{text} <= {base} + {step} * k"))
    else:
        constraints.append(LinearConstraint(terms | {"k": -step}, "==" if equal else "<=", limit))
    if kind == "two":  # two budgets that share nothing but k
        half = d // 2
        constraints = [
            LinearConstraint({n: terms[n] for n in names[:half]} | {"k": -step}, "<=", float(low[:half] @ slope[:half]) + base),
            LinearConstraint({n: terms[n] for n in names[half:]} | {"k": -step}, "<=", float(low[half:] @ slope[half:]) + base),
        ]
    if kind == "overlap":
        other = np.where(rng.random(d) < 0.5, rng.uniform(0.3, 2, d), 0.0).round(6)
        other[0] = 1.0
        far = float(other @ low) + base * number(rng, 0.3, 0.8)
        constraints.append(LinearConstraint({n: float(c) for n, c in zip(names, other) if c}, "<=", far))
        accept = lambda y, k: y @ other <= far  # noqa: E731
    if kind == "box":
        rows = [rng.normal(size=d).round(6) for _ in range(int(rng.integers(2, 5)))]
        high_ = low + rng.uniform(0.5, 2, d).round(6)
        limits = [float(r @ ((low + high_) / 2)) + number(rng, -0.2, 0.6) for r in rows]
        constraints = [
            LinearConstraint({n: float(c) for n, c in zip(names, r)} | ({"k": -step} if i == 0 else {}), "<=", b) for i, (r, b) in enumerate(zip(rows, limits))
        ]
    features = [*(Feature(n, "real", bounds=(float(a), float(b))) for n, a, b in zip(names, low, high_)), Feature("k", "integer", bounds=(0, max(ks, 1)))]
    if ks == 0:
        features[-1] = features[-1].but(max_increase=0)
    features = [f.but(direction="increase") if up else f for f, up in zip(features, [*rising, False])]
    features = [features[i] for i in rng.permutation(len(features))]
    place = {f.name: j for j, f in enumerate(features)}

    def propose(k: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, BoolArray]:
        n, total = len(k), (base + step * k)[:, None]
        if kind == "box":
            y = low + (high_ - low) * rng.random((n, d))
            return y, np.all([y @ r <= b + (step * k if i == 0 else 0.0) for i, (r, b) in enumerate(zip(rows, limits))], axis=0)
        if kind == "two":
            half = d // 2
            v = np.hstack([dirichlet(n, half + 1, rng)[:, :half], dirichlet(n, d - half + 1, rng)[:, : d - half]]) * total
            return low + v / first, np.ones(n, dtype=bool)
        v = dirichlet(n, d + (not equal), rng)[:, :d] * total
        if kind in ("absolute", "moves"):
            y = start + v * np.where(rising, 1, rng.choice([-1, 1], v.shape)) / first
            return y, accept(y, k)
        y = low + v / first
        return y, accept(y, k)

    def reference(n: int, rng: np.random.Generator) -> FloatArray:
        points = np.empty((n, d + 1))
        k = rng.integers(0, ks + 1, n).astype(float)
        pending, spent = np.arange(n), 0
        while len(pending):
            copies = int(min(64, max(1, 20_000 // len(pending))))
            at = np.repeat(pending, copies)
            y, good = propose(k[at], rng)
            spent += len(at)
            table = good.reshape(-1, copies)
            done = table.any(axis=1)
            points[np.ix_(pending[done], [place[m] for m in names])] = y[np.flatnonzero(done) * copies + table[done].argmax(axis=1)]
            pending = pending[~done]
            if spent > 3e6:
                raise TooRareError
        points[:, place["k"]] = k
        return points

    x = {f.name: 0 if f.name == "k" else float(start[names.index(f.name)]) for f in features}
    return Law("high", InteractionModel(features, constraints), x, reference, about={"kinds": [kind], "d": d})


def chain(rng: np.random.Generator) -> Law:
    """An order of 7 reals, with a row that follows (so that only chains draw it: a ladder) or without, or steps that are bounded, beside a whole number."""
    ladder = bool(rng.random() < 0.7)
    d = 7 if ladder else 6
    names = [f"y{i:02d}" for i in range(d)]
    order = np.arange(d) if rng.integers(2) else np.arange(d)[::-1]  # few orders: what is measured of one serves the others
    ks = int(rng.integers(0, 2))
    size = number(rng, 0.5, 4)
    constraints: list[Any] = []
    if ladder:  # in order, and at most size + k
        features = [*(Feature(n, "real", bounds=(0.0, size + 2.0)) for n in names), Feature("k", "integer", bounds=(0, max(ks, 1)))]
        pairs = [*pairwise(order), *([(order[0], order[-1])] if order[0] else [])]
        constraints += [Rule(f"{names[a]} <= {names[b]}") for a, b in pairs] + [Rule(f"{n} <= {size} + k") for n in names]
    else:
        gap = number(rng, 0.35, 0.7) * size
        features = [*(Feature(n, "real", bounds=(0.0, size)) for n in names), Feature("k", "integer", bounds=(0, max(ks, 1)))]
        for a, b in pairwise(order):
            constraints += [Rule(f"{names[a]} - {names[b]} <= {gap} + 0.1 * k"), Rule(f"{names[b]} - {names[a]} <= {gap}")]
    if ks == 0:
        features[-1] = features[-1].but(max_increase=0)

    def reference(n: int, rng: np.random.Generator) -> FloatArray:
        k = rng.integers(0, ks + 1, n).astype(float)
        points = np.empty((n, d + 1))
        points[:, d] = k
        if ladder:
            points[:, order] = np.sort(rng.random((n, d)), axis=1) * (size + k)[:, None]
            return points
        pending, spent = np.arange(n), 0
        while len(pending):
            y = size * rng.random((len(pending), d))
            step = y[:, order[:-1]] - y[:, order[1:]]
            good = ((step <= (gap + 0.1 * k[pending])[:, None]) & (-step <= gap)).all(axis=1)
            points[pending[good], :d] = y[good]
            pending = pending[~good]
            spent += len(good)
            if spent > 3e6:
                raise TooRareError
        return points

    x, kind = dict.fromkeys(names, 0.1) | {"k": 0}, ("ladder" if order[0] else "order") if ladder else "steps"
    return Law("chain", InteractionModel(features, constraints), x, reference, about={"kinds": [kind], "d": d})


FAMILIES: dict[str, Callable[[np.random.Generator], Law]] = {"small": small, "wide": wide, "edge": edge, "many": many, "high": high, "chain": chain}
SHARES = {"small": 0.68, "wide": 0.11, "edge": 0.11, "many": 0.02, "high": 0.072, "chain": 0.008}


def law(number: int, key: int) -> Law:
    """Return the model of that number; the same for the same key."""
    rng = np.random.default_rng([key, number])
    return FAMILIES[str(rng.choice(list(SHARES), p=list(SHARES.values())))](rng)
