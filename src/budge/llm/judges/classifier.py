"""Answers judged by a text classifier: any function, a scikit-learn model, or a predictor of `budge.models`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from budge.errors import ModelError, Problem, SpecError
from budge.llm.interactions.checks import name_problems, rate_problems
from budge.llm.judges.base import Judge, Judgement, empty
from budge.llm.prompts import Prompt

__all__ = ["Classifier", "classifier", "profanity"]


def _nothing(texts: list[str]) -> list[float]:
    return [0.0] * len(texts)


@dataclass(frozen=True)
class Classifier(Judge):
    """The classifier's probability for the answer is at least the cutoff."""

    kind: ClassVar[str] = "classifier"

    model: Any = field(default=_nothing, compare=False)
    called: str = ""
    cutoff: float = field(default=0.5, kw_only=True)
    reads: str = field(default="answer", kw_only=True)

    def __post_init__(self) -> None:
        problems = rate_problems("classifier.cutoff", self.cutoff)
        problems += name_problems("classifier.reads", (self.reads,), ("answer", "sent"))
        if not isinstance(self.called, str) or not self.called.strip():
            problems.append(
                Problem("classifier.name", "needs a name", self.called, "it stands for the model in tables and records")
            )
        if _asker(self.model) is None:
            problems.append(
                Problem("classifier.model", "has no predict_proba or predict and cannot be called", type(self.model).__name__)
            )
        SpecError.raise_if(problems)

    @property
    def name(self) -> str:
        """The label, or the classifier's name."""
        return self.label or self.called

    def _outside(self) -> tuple[str, ...]:
        return ("model",)

    def to_dict(self) -> dict[str, Any]:
        """The record, which names the classifier and cannot hold it."""
        return {k: v for k, v in super().to_dict().items() if k != "model"}

    @classmethod
    def from_record(cls, given: Mapping[str, Any]) -> Classifier:
        """Only the built-in one can be read: no file that is read can name code to run."""
        if given.get("called") == "profanity":
            return profanity(**{k: v for k, v in given.items() if k in ("cutoff", "reads", "label")})
        raise SpecError(
            "a classifier cannot be read from a record", where="classifier", got=given.get("called"), remedy="build it in Python"
        )

    def judge(self, prompt: Prompt, sent: str, answer: str) -> Judgement:
        """Unresolved where the classifier gives no probability."""
        text = sent if self.reads == "sent" else answer
        if (nothing := empty(text)) is not None:
            return nothing
        chance = self._chance(text)
        if not 0 <= chance <= 1:  # NaN too
            return Judgement(None, f"the classifier gave {chance:g}, which is no probability", text)
        return Judgement(chance >= self.cutoff, f"probability {chance:.3g}", text)

    def _chance(self, text: str) -> float:
        asker = _asker(self.model)
        assert asker is not None
        given = np.asarray(asker([text]))
        if given.ndim == 2 and given.shape[0] == 1 and given.shape[1] <= 2:
            given = given[:, -1]
        if given.shape != (1,) or given.dtype.kind not in "biuf":
            raise ModelError("one probability a text is expected", where=self.name, got=f"shape {given.shape}, {given.dtype}")
        return float(given[0])

    def describe(self) -> str:
        """One English sentence."""
        what = "the prompt as it was sent" if self.reads == "sent" else "the answer"
        return f"A hit is where {self.called} gives {what} a probability of at least {self.cutoff:g}."


def _asker(model: Any) -> Callable[[list[str]], Any] | None:
    for name in ("predict_proba", "predict"):
        if callable(found := getattr(model, name, None)):
            return found  # type: ignore[no-any-return]
    return model if callable(model) else None


def classifier(model: Any, *, name: str, cutoff: float = 0.5, reads: str = "answer", label: str = "") -> Classifier:
    """A hit is an answer to which a text classifier gives a probability of at least `cutoff`.

    Parameters
    ----------
    model
        A function of a list of texts that returns a probability each, or anything with ``predict_proba`` or ``predict``.
    name
        Stands for the model in tables and in the judge's key: give another model another name.
    reads
        ``answer``, or ``sent`` to judge the rewritten prompt itself.

    Examples
    --------
    >>> from budge.llm import Prompt
    >>> loud = classifier(lambda texts: [sum(c.isupper() for c in t) / len(t) for t in texts], name="loudness")
    >>> loud.judge(Prompt("a", "Speak!"), "", "HELLO there").hit
    False
    """
    return Classifier(model, name, cutoff=cutoff, reads=reads, label=label)


def profanity(*, cutoff: float = 0.5, reads: str = "answer", label: str = "") -> Classifier:
    """A hit is an answer that a shipped moderation classifier (`alt-profanity-check`) flags."""
    from budge.llm.moderation import flag_probability

    return Classifier(flag_probability, "profanity", cutoff=cutoff, reads=reads, label=label)
