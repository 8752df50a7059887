"""Language models: prompts are inputs, a rewrite is an action, decoding is the downstream effect, the judge is part of f."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from budge.llm import local
    from budge.llm.answers import Answers
    from budge.llm.comparing import Comparison, compare
    from budge.llm.correction import Labelled
    from budge.llm.interactions.base import Interaction
    from budge.llm.judges.base import Judge, Judgement
    from budge.llm.logs import read_log, read_logs
    from budge.llm.planning import CallPlan, plan_calls
    from budge.llm.prompts import Prompt, Prompts
    from budge.llm.run_folder import load
    from budge.llm.run_models import ChatModel
    from budge.llm.run_patience import Patience
    from budge.llm.runs import Run, run
    from budge.llm.verdict_table import Verdicts
    from budge.llm.verdicts import from_counts, test

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
    "compare",
    "from_counts",
    "load",
    "local",
    "plan_calls",
    "read_log",
    "read_logs",
    "run",
    "test",
]

# Where each name lives: it is imported when it is first asked for, so that `import budge.llm` needs no extra.
_HOMES = {
    "Answers": "budge.llm.answers",
    "CallPlan": "budge.llm.planning",
    "ChatModel": "budge.llm.run_models",
    "Comparison": "budge.llm.comparing",
    "Interaction": "budge.llm.interactions.base",
    "Judge": "budge.llm.judges.base",
    "Judgement": "budge.llm.judges.base",
    "Labelled": "budge.llm.correction",
    "Patience": "budge.llm.run_patience",
    "Prompt": "budge.llm.prompts",
    "Prompts": "budge.llm.prompts",
    "Run": "budge.llm.runs",
    "Verdicts": "budge.llm.verdict_table",
    "compare": "budge.llm.comparing",
    "from_counts": "budge.llm.verdicts",
    "load": "budge.llm.run_folder",
    "plan_calls": "budge.llm.planning",
    "read_log": "budge.llm.logs",
    "read_logs": "budge.llm.logs",
    "run": "budge.llm.runs",
    "test": "budge.llm.verdicts",
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
