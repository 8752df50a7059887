"""Language models: prompts are inputs, a rewrite is an action, decoding is the downstream effect, the judge is part of f."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budge.llm import local
    from budge.llm.answers import Answers
    from budge.llm.benchmarks import benchmark
    from budge.llm.claims.comparing import Comparison, compare
    from budge.llm.claims.labels import Labelled
    from budge.llm.claims.verdict_table import Verdicts
    from budge.llm.claims.verdicts import from_counts, test
    from budge.llm.interactions.asked import ask_model, paraphrase, tense, translate
    from budge.llm.interactions.base import Interaction
    from budge.llm.interactions.combine import one_of, unchanged
    from budge.llm.interactions.converters import convert
    from budge.llm.interactions.custom import custom
    from budge.llm.interactions.few_shot import few_shot
    from budge.llm.interactions.letters import case, homoglyphs, leet, mixed_case
    from budge.llm.interactions.misspelling import misspell, typos
    from budge.llm.interactions.prompt_fields import options, passages, system
    from budge.llm.interactions.registry import as_interaction, interaction_from_dict, parse_interaction
    from budge.llm.interactions.rewrites import rewrites
    from budge.llm.interactions.spacing import punctuation, whitespace
    from budge.llm.interactions.templates import prefix, roleplay, suffix, template
    from budge.llm.judges.asked import model_judge
    from budge.llm.judges.base import Judge, Judgement
    from budge.llm.judges.classifier import classifier, profanity
    from budge.llm.judges.matching import choice, contains, match
    from budge.llm.judges.negation import negate
    from budge.llm.judges.pattern import pattern
    from budge.llm.judges.refusal import refusal
    from budge.llm.judges.registry import as_judge, judge_from_dict, parse_judge
    from budge.llm.judges.scorers import scorer
    from budge.llm.judging import judge
    from budge.llm.logs import read_log, read_logs
    from budge.llm.planning import CallPlan, plan_calls
    from budge.llm.prompts import Prompt, Prompts
    from budge.llm.reporting import report
    from budge.llm.runs.chat_models import ChatModel
    from budge.llm.runs.folder import load
    from budge.llm.runs.patience import Patience
    from budge.llm.runs.run import Run, run

__all__ = [
    "Answers",
    "CallPlan",
    "ChatModel",
    "Comparison",
    "Interaction",
    "Judge",
    "Judgement",
    "Labelled",
    "Patience",
    "Prompt",
    "Prompts",
    "Run",
    "Verdicts",
    "as_interaction",
    "as_judge",
    "ask_model",
    "benchmark",
    "case",
    "choice",
    "classifier",
    "compare",
    "contains",
    "convert",
    "custom",
    "few_shot",
    "from_counts",
    "homoglyphs",
    "interaction_from_dict",
    "judge",
    "judge_from_dict",
    "leet",
    "load",
    "local",
    "match",
    "misspell",
    "mixed_case",
    "model_judge",
    "negate",
    "one_of",
    "options",
    "paraphrase",
    "parse_interaction",
    "parse_judge",
    "passages",
    "pattern",
    "plan_calls",
    "prefix",
    "profanity",
    "punctuation",
    "read_log",
    "read_logs",
    "refusal",
    "report",
    "rewrites",
    "roleplay",
    "run",
    "scorer",
    "suffix",
    "system",
    "template",
    "tense",
    "test",
    "translate",
    "typos",
    "unchanged",
    "whitespace",
]

# Where each name lives: it is imported when it is first asked for, so that `import budge.llm` needs no extra.
_HOMES = {
    "Answers": "budge.llm.answers",
    "CallPlan": "budge.llm.planning",
    "ChatModel": "budge.llm.runs.chat_models",
    "Comparison": "budge.llm.claims.comparing",
    "Interaction": "budge.llm.interactions.base",
    "Judge": "budge.llm.judges.base",
    "Judgement": "budge.llm.judges.base",
    "Labelled": "budge.llm.claims.labels",
    "Patience": "budge.llm.runs.patience",
    "Prompt": "budge.llm.prompts",
    "Prompts": "budge.llm.prompts",
    "Run": "budge.llm.runs.run",
    "Verdicts": "budge.llm.claims.verdict_table",
    "as_interaction": "budge.llm.interactions.registry",
    "as_judge": "budge.llm.judges.registry",
    "ask_model": "budge.llm.interactions.asked",
    "benchmark": "budge.llm.benchmarks",
    "case": "budge.llm.interactions.letters",
    "choice": "budge.llm.judges.matching",
    "classifier": "budge.llm.judges.classifier",
    "compare": "budge.llm.claims.comparing",
    "convert": "budge.llm.interactions.converters",
    "options": "budge.llm.interactions.prompt_fields",
    "passages": "budge.llm.interactions.prompt_fields",
    "system": "budge.llm.interactions.prompt_fields",
    "tense": "budge.llm.interactions.asked",
    "judge": "budge.llm.judging",
    "scorer": "budge.llm.judges.scorers",
    "report": "budge.llm.reporting",
    "contains": "budge.llm.judges.matching",
    "custom": "budge.llm.interactions.custom",
    "few_shot": "budge.llm.interactions.few_shot",
    "from_counts": "budge.llm.claims.verdicts",
    "homoglyphs": "budge.llm.interactions.letters",
    "interaction_from_dict": "budge.llm.interactions.registry",
    "judge_from_dict": "budge.llm.judges.registry",
    "leet": "budge.llm.interactions.letters",
    "load": "budge.llm.runs.folder",
    "match": "budge.llm.judges.matching",
    "misspell": "budge.llm.interactions.misspelling",
    "mixed_case": "budge.llm.interactions.letters",
    "model_judge": "budge.llm.judges.asked",
    "negate": "budge.llm.judges.negation",
    "one_of": "budge.llm.interactions.combine",
    "paraphrase": "budge.llm.interactions.asked",
    "parse_interaction": "budge.llm.interactions.registry",
    "parse_judge": "budge.llm.judges.registry",
    "pattern": "budge.llm.judges.pattern",
    "plan_calls": "budge.llm.planning",
    "prefix": "budge.llm.interactions.templates",
    "profanity": "budge.llm.judges.classifier",
    "punctuation": "budge.llm.interactions.spacing",
    "read_log": "budge.llm.logs",
    "read_logs": "budge.llm.logs",
    "refusal": "budge.llm.judges.refusal",
    "rewrites": "budge.llm.interactions.rewrites",
    "roleplay": "budge.llm.interactions.templates",
    "run": "budge.llm.runs.run",
    "suffix": "budge.llm.interactions.templates",
    "template": "budge.llm.interactions.templates",
    "test": "budge.llm.claims.verdicts",
    "translate": "budge.llm.interactions.asked",
    "typos": "budge.llm.interactions.misspelling",
    "unchanged": "budge.llm.interactions.combine",
    "whitespace": "budge.llm.interactions.spacing",
}
_MODULES = ("local",)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"budge.llm.{name}")
    else:
        raise AttributeError(f"module 'budge.llm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
