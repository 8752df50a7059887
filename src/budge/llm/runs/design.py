"""The design of a run: everything that its answers depend on, checked before anything is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from budge import __version__
from budge.errors import DesignError, InputError, ModelError
from budge.llm.answers import BASE
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.registry import as_interaction
from budge.llm.judges.base import Judge
from budge.llm.judges.registry import as_judge
from budge.llm.prompts import Prompts
from budge.llm.runs.chat_models import labelled, named, settings
from budge.llm.runs.draws import Draw, draws_of
from budge.llm.runs.patience import Patience
from budge.reach.streams import check_seed
from budge.stats import StoppingRule

__all__ = ["LIMITS", "Design", "amount", "asking", "count", "design_of", "extendable", "rule_key"]

#: The longest reply in tokens, by role: the argument that sets it.
LIMITS = {"model": "max_tokens", "rewriter": "rewriter_tokens", "judge": "judge_tokens"}


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is asked, how, and how often."""

    models: dict[str, Any]
    prompts: Prompts
    interactions: dict[str, Interaction]
    names: tuple[str, ...]
    judge: Judge
    n: int | None
    per_prompt: int | None
    census: bool
    seed: int
    temperature: float
    max_tokens: Mapping[str, int]  # by role
    concurrency: int
    rule: StoppingRule | None  # of one test: at alpha divided by the family
    family: int
    rewriter: Any
    judge_model: Any
    base_url: str | None
    api_key: str | None = field(repr=False)
    patience: Patience
    send_seed: bool

    def cells(self) -> dict[tuple[str, str], list[Draw]]:
        """All draws that may be made, model by model and interaction by interaction."""
        return {
            (model, name): list(draws_of(model, name, self.prompts, n=self.n, per_prompt=self.per_prompt, seed=self.seed))
            for model in self.models
            for name in self.names
        }

    def priced(self) -> list[str]:
        """Every model that may be asked, by the name under which its price is given."""
        roles = {"rewriter": self.rewriter, "judge": self.judge_model}
        named = [name for name, _ in self.named()]
        return list(
            dict.fromkeys([*self.models, *(role for role, model in roles.items() if model is not None), *filter(None, named)])
        )

    def named(self) -> list[tuple[str, str]]:
        """The models that interactions and the judge name themselves, each with its role."""
        parts = [*((way, "rewriter") for way in self.interactions.values()), (self.judge, "judge")]
        return list(dict.fromkeys((name, role) for part, role in parts for name in asking(part) if name))

    def identity(self) -> dict[str, Any]:
        """All that the answers depend on."""
        asked = {**{name: name for name, _ in self.named()}, **self.models, "rewriter": self.rewriter, "judge_model": self.judge_model}
        return {
            "kind": "llm run", "version": __version__, "models": {label: named(model) for label, model in self.models.items()},
            "prompts": f"{len(self.prompts)} prompts, {self.prompts.digest[:16]}",
            "interactions": {name: _key(self.interactions[name]) if name in self.interactions else "as it stands" for name in self.names},
            "judge": _key(self.judge), "n": None if extendable(self.rule) else self.n, "per_prompt": self.per_prompt,
            "census": self.census, "seed": self.seed, "temperature": self.temperature,
            **{LIMITS[role]: limit for role, limit in self.max_tokens.items()}, "send_seed": self.send_seed,
            "rewriter": named(self.rewriter), "judge_model": named(self.judge_model), "sequential": self._rule_identity(),
            **{
                f"{label}: {key}": value
                for label, model in asked.items()
                for key, value in settings(model, own=label in self.models or "/" not in label, base_url=self.base_url).items()
            },
        }  # fmt: skip

    def _rule_identity(self) -> dict[str, Any]:
        """Return what the answers depend on of the rule: not the cap of one that may be extended."""
        free = ("max_n", "fixed_n") if extendable(self.rule) else ()
        return {key: value for key, value in {**rule_key(self.rule), "family": self.family}.items() if key not in free} if self.rule else {}


def design_of(
    models: Any, prompts: Any, interactions: Any, judge: Any, *, n: Any, per_prompt: Any, census: bool, seed: Any, base: bool, temperature: Any,
    max_tokens: Any, concurrency: Any, sequential: Any, family: Any, **rest: Any,
) -> Design:  # fmt: skip
    """Check all of it; say what is wrong before anything is paid for."""
    judge = as_judge(judge)
    if sequential is not None:
        if not isinstance(sequential, StoppingRule):
            remedy = "give a rule of budge.stats: anytime_rule(n, threshold=…), sprt_rule(…), curtailed_rule(…)"
            raise DesignError("not a stopping rule", where="sequential", got=sequential, remedy=remedy)
        if per_prompt is not None:
            raise DesignError(
                "a stopping rule needs independent draws: joint ones", where="per_prompt", got=per_prompt, remedy="use n="
            )
        if n not in (None, sequential.max_n):
            raise DesignError(
                f"the rule ends at {sequential.max_n} draws", where="n", got=n, remedy="leave n out, or make it the same"
            )
    elif family is not None:
        raise DesignError("a family is divided by a stopping rule, and there is none", where="family", got=family, remedy="give --sequential (sequential=)")
    ways = _named(interactions)
    tests = count(family, "family") or max(len(ways), 1)
    rule = None if sequential is None else sequential.shared(tests)
    n = n if rule is None else rule.max_n
    if census:
        _check_census(n, per_prompt, sequential, temperature)
        per_prompt = 1
    if (n is None) == (per_prompt is None):
        remedy = "-n (n=) for joint draws, `budge llm plan` says how many; --per-prompt (per_prompt=) for draws of each prompt"
        what = "neither of them is given" if n is None else "both are given"
        raise DesignError(f"give either n or per_prompt: {what}", where="n", remedy=remedy)
    if BASE in ways:
        remedy = "give this interaction another name: 'mine = misspell(0.1)' on the command line, a dict or label= in Python"
        raise InputError("the name base is reserved for the prompts as they stand", where="interactions", got=BASE, remedy=remedy)
    names = (*((BASE,) if base else ()), *ways)
    if not names:
        raise InputError("nothing to ask: no interaction is given and base is False", where="interactions")
    for way in ways.values():
        judge.check_languages(way)
    _check_helpers([*ways.values()], "rewriter", "paraphrase", rest.get("rewriter"))
    _check_helpers([judge], "judge_model", "model_judge", rest.get("judge_model"))
    asked = _prompts(prompts, ways, judge)
    if census:
        _check_single(asked, ways)
    heat = (0.0 if census else 0.7) if temperature is None else amount(temperature, "temperature") or 0.0
    return Design(
        models=labelled(models), prompts=asked, interactions=ways, names=names, judge=judge, n=count(n, "n"),
        per_prompt=count(per_prompt, "per_prompt"), census=census, seed=check_seed(seed), temperature=heat,
        max_tokens={role: count(limit, option) or 1 for (role, option), limit in zip(LIMITS.items(), max_tokens)},
        concurrency=count(concurrency, "concurrency") or 1, rule=rule, family=tests, **rest,
    )  # fmt: skip


def asking(part: Any) -> Iterator[str]:
    """The models that an interaction or a judge asks, parts of it included; "" where it leaves that to the run."""
    if isinstance(part, tuple):
        for inner in part:
            yield from asking(inner)
    elif isinstance(part, Interaction | Judge):
        for place in fields(part):
            value = getattr(part, place.name)
            if place.name == "model" and isinstance(value, str):
                yield value
            else:
                yield from asking(value)


def _check_helpers(parts: list[Any], option: str, sample: str, given: Any) -> None:
    """A part that asks a model has one to ask: said before a folder is made."""
    for part in parts:
        if given is None and "" in asking(part):
            flag = option.replace("_", "-")
            remedy = f"name one: {sample}(openai/gpt-4o-mini), or give --{flag} ({option}= in Python)"
            raise ModelError(f"{part.name} asks a model, and none is given", where=option, remedy=remedy)


def _named(interactions: Any) -> dict[str, Interaction]:
    """Interactions by name: a mapping as it is, a list by the names that they have; texts are read as on the command line."""
    if interactions is None:
        return {}
    if isinstance(interactions, Interaction | str):
        interactions = [interactions]
    if isinstance(interactions, Mapping):
        return {_name(name): as_interaction(way) for name, way in interactions.items()}
    named: dict[str, Interaction] = {}
    for way in map(as_interaction, interactions):
        if way.name in named:
            remedy = "name them: a dict, or label="
            raise InputError("two interactions have the same name", where="interactions", got=way.name, remedy=remedy)
        named[_name(way.name)] = way
    return named


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name.strip():
        raise InputError("an interaction has a name", where="interactions", got=name)
    return name


def _prompts(prompts: Any, ways: Mapping[str, Interaction], judge: Judge) -> Prompts:
    """The prompts that every interaction can rewrite and the judge can judge: all cells of the table are about the same ones."""
    given = prompts if isinstance(prompts, Prompts) else Prompts.of(prompts)
    for way in ways.values():
        given = way.check(given)
    judge.check(given)
    return given


def _check_census(n: Any, per_prompt: Any, sequential: Any, temperature: Any) -> None:
    """Raise an error if what is given with a census is not a census."""
    for name, value in (("n", n), ("per_prompt", per_prompt), ("sequential", sequential)):
        if value is not None:
            raise DesignError("a census asks every prompt once, so nothing is drawn", where=name, got=value, remedy=f"leave out {name}, or census")
    if temperature:
        raise DesignError("a census needs answers that do not vary", where="temperature", got=temperature, remedy="leave temperature out: it is 0")


def _check_single(prompts: Prompts, ways: Mapping[str, Interaction]) -> None:
    """Raise an error if a prompt has more than one rewrite: then asking it once is a draw, and no census."""
    for name, way in ways.items():
        several = [prompt.id for prompt in prompts if list(asking(way)) or way.reachable(prompt) != 1]
        if several:
            what = f"a census needs one rewrite per prompt, and {len(several)} of {len(prompts)} prompts have several"
            raise DesignError(what, where=f"interactions.{name}", got=several[0], remedy="use -n or --per-prompt (n=, per_prompt=)")


def count(value: Any, where: str, *, least: int = 1) -> int | None:
    """A whole number, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DesignError(f"a whole number, {least} or more", where=where, got=value)
    return value


def amount(value: Any, where: str) -> float | None:
    """A finite number that is not negative, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise DesignError("a number, 0 or more", where=where, got=value)
    return float(value)


def _key(part: Interaction | Judge) -> str:
    """What an interaction or a judge is: its sentence for the reader, its digest for the comparison."""
    told = part.describe()
    return f"{told if len(told) <= 60 else told[:59] + '…'} [{part.key[:12]}]"


def extendable(rule: StoppingRule | None) -> bool:
    """Return whether draws may be added after the cap: the evidence of the rule holds after any number of them."""
    return rule is not None and rule.bets is not None


def rule_key(rule: StoppingRule | None) -> dict[str, Any]:
    """The rule without its two long lists, which follow from the rest."""
    if rule is None:
        return {}
    record = rule.to_dict()
    return {name: record[name] for name in ("kind", "claim", "threshold", "alpha", "margin", "power", "max_n", "fixed_n")}
