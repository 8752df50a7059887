"""Inspect's scorers as judges: anything that Inspect or a package for it can score is a judge here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from budge.errors import InputError, MissingDependencyError, SpecError
from budge.llm.interactions.base import Ask
from budge.llm.judges.base import Judge, Judgement, empty
from budge.llm.prompts import Prompt
from budge.llm.scores import meaning_of

__all__ = ["InspectScorer", "scorer"]


@dataclass(frozen=True)
class InspectScorer(Judge):
    """A scorer of Inspect, by its registered name and arguments; C, 1 and True are hits, or numbers from `cutoff` on."""

    kind: ClassVar[str] = "scorer"

    called: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cutoff: float | str | None = field(default=None, kw_only=True)
    made: Any = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        meaning_of(None, self.cutoff)
        name = self.called.rpartition("/")[2]
        if name == "choice":
            remedy = 'scorer(answer, {"pattern": "letter"}) reads the letter from the answer'
            raise SpecError("choice reads marks that a solver sets and no record holds", where="scorer", got=self.called, remedy=remedy)
        if name.startswith("model_graded") and not self.arguments.get("model") and self.made is None:
            remedy = f'scorer({name}, {{"model": "openai/gpt-4o"}})'
            raise SpecError("grades with a model, and none is named: the model under test would grade itself", where=f"scorer.{name}", remedy=remedy)
        if self.made is None:
            object.__setattr__(self, "made", _create(self.called, dict(self.arguments)))

    @property
    def name(self) -> str:
        """The label, or the scorer's name."""
        return self.label or self.called

    def _outside(self) -> tuple[str, ...]:
        return ("made",)

    def to_dict(self) -> dict[str, Any]:
        """The record: the name and the arguments."""
        return {**{key: value for key, value in super().to_dict().items() if key != "made"}, "arguments": dict(self.arguments)}

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Raise: a scorer is asynchronous."""
        raise InputError("a scorer of Inspect is asynchronous", where=self.name, remedy="await apply(prompt, sent, answer, ask)")

    async def apply(self, prompt: Prompt, sent: str, answer: str, ask: Ask) -> Judgement:
        """Return what the scorer makes of a state with the prompt as its input and the answer as its output."""
        if (nothing := empty(answer)) is not None:
            return nothing
        from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelName, ModelOutput
        from inspect_ai.scorer import Target
        from inspect_ai.solver import TaskState

        target = Target(prompt.expected.split("|"))
        state = TaskState(
            model=ModelName("none/none"), sample_id=prompt.id, epoch=1, input=prompt.text, target=target, choices=list(prompt.options),
            messages=[ChatMessageUser(content=sent), ChatMessageAssistant(content=answer)], output=ModelOutput.from_content("none/none", answer),
        )  # fmt: skip
        score = await self.made(state, target)
        if score is None:
            return Judgement(None, "the scorer gave no score")
        hit, why = meaning_of(None, self.cutoff)(score.value)
        return Judgement(hit, why, str(score.explanation or ""))

    def describe(self) -> str:
        """One English sentence."""
        with_ = f" with {dict(self.arguments)}" if self.arguments else ""
        cut = f"; the score is cut at {self.cutoff}" if self.cutoff is not None else ""
        return f"A hit is an answer that Inspect's scorer {self.called}{with_} scores C, 1 or true{cut}."


def _create(name: str, arguments: dict[str, Any]) -> Any:
    try:
        import inspect_ai.scorer as scorers
    except ImportError:
        raise MissingDependencyError("scorers of Inspect need inspect-ai", where="scorer", remedy="pip install 'budge[llm]'") from None
    # Inspect has no public function that makes a scorer by its name.
    from inspect_ai._util.registry import is_registry_object, registry_create

    try:
        known = "/" not in name and name in scorers.__all__
        made = getattr(scorers, name)(**arguments) if known else registry_create("scorer", name, **arguments)
        if not is_registry_object(made, "scorer"):
            raise ValueError("it is something else")
        return made
    except (TypeError, ValueError, LookupError) as error:
        raise SpecError(f"the scorer cannot be made: {error}", where="scorer", got=name, remedy="includes, match, answer, or package/name") from error


def scorer(name: Any, arguments: Mapping[str, Any] | None = None, *, cutoff: float | str | None = None, label: str = "") -> InspectScorer:
    """A scorer of Inspect as a judge: ``scorer("includes")``, ``scorer("answer", {"pattern": "letter"})``, ``scorer(includes())``, ``scorer("package/mine")``.

    Parameters
    ----------
    name
        The registered name, or the scorer itself.
    arguments
        Of the scorer, where it is given by name.
    cutoff
        For scores that are numbers: a hit from here on, or ``"< 3"``.

    Notes
    -----
    Calls of a scorer that asks a model are Inspect's: they are neither in the caps of a run nor in its prices.
    """
    if isinstance(name, str):
        return InspectScorer(name, dict(arguments or {}), cutoff=cutoff, label=label)
    from inspect_ai._util.registry import is_registry_object, registry_log_name, registry_params

    if not is_registry_object(name, "scorer") or arguments is not None:
        raise SpecError("is no scorer of Inspect", where="scorer", got=name, remedy="give its name, or what a function with @scorer returns")
    return InspectScorer(registry_log_name(name), dict(registry_params(name)), cutoff=cutoff, label=label, made=name)
