"""What the commands of ``budge llm`` are given, as values: prompts, models that help, stopping rules, prices, labels."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.cli.shared import choices_of, read_people, say
from budge.errors import InputError, nearest

if TYPE_CHECKING:
    from budge.llm import Labelled, Prompts
    from budge.llm.runs.run import Run
    from budge.stats import StoppingRule

__all__ = [
    "ROLES", "Adjust", "Alpha", "ClaimSide", "Method", "Over", "Threshold", "arguments_of", "end_incomplete", "helpers_of",
    "key_of", "labels_of", "named_number", "prices_of", "prompts_of", "rule_of", "served_model",
]  # fmt: skip

Over = Annotated[str, typer.Option(help="these (the prompts of the benchmark) or population (which they are a sample of).")]
Threshold = Annotated[float, typer.Option("--threshold", "-t", help="The threshold tau.")]
ClaimSide = Annotated[str, typer.Option(help="below or above.")]
Alpha = Annotated[float, typer.Option(help="The error of the claims.")]
Adjust = Annotated[str, typer.Option(help="Within a model: bh, by, holm, bonferroni or none.")]
Method = Annotated[str, typer.Option(help="auto, first, bounded, clustered or anytime.")]


def end_incomplete(found: Run, as_json: bool) -> None:
    """End with exit code 4, and one line unless a record was printed, where a run is incomplete."""
    if found.incomplete:
        if not as_json:
            say(f"budge: incomplete: {found.incomplete}; {found.remedy}", err=True)
        raise typer.Exit(4)


def prompts_of(given: str, read: Sequence[str] | None = None) -> Prompts:
    """Return the prompts of a file or of a built-in benchmark."""
    from budge.llm import Prompts, benchmark
    from budge.llm.benchmarks import BENCHMARKS

    if given in BENCHMARKS and not Path(given).exists():
        return benchmark(given)
    if not Path(given).exists() and not Path(given).suffix and (close := get_close_matches(given, BENCHMARKS, 1)):
        remedy = f"did you mean the built-in {close[0]}?"
        raise InputError("there is no such file and no such benchmark", where="prompts", got=given, remedy=remedy)
    return Prompts.read(given, read=choices_of(read))


#: The names under which helpers are paid for, and the arguments that give them.
ROLES = {"rewriter": "rewriter", "judge": "judge_model"}


def helpers_of(
    rewriter: str | None, judge_model: str | None, asked: dict[str, Any], served: Any, base_url: str | None, key: str | None, *,
    ways: list[str], judge: str,
) -> dict[str, Any]:  # fmt: skip
    """The models that rewrite and judge: a bare name is one of the run's, or one at its address; the local one where none is named."""
    from budge import llm
    from budge.llm.interactions.registry import as_interaction
    from budge.llm.judges.registry import as_judge
    from budge.llm.runs.design import asking

    def found(name: str | None, parts: list[Any]) -> Any:
        if not name:
            wanted = served is not None and any("" in asking(part) for part in parts)
            return served if wanted else None
        if name in asked:
            return asked[name]
        return llm.ChatModel(name, base_url, api_key=key or "none") if base_url is not None and "/" not in name else name

    return {"rewriter": found(rewriter, [as_interaction(way) for way in ways]), "judge_model": found(judge_model, [as_judge(judge)])}


@contextmanager
def served_model(gguf: Path | None, local: bool) -> Iterator[Any]:
    """Serve a local model while the block runs, if one is wanted."""
    from budge import llm

    with llm.local.server(gguf) if gguf is not None or local else nullcontext() as model:
        yield model


def rule_of(
    kind: str | None, *, n: int | None, threshold: float, claim: str, alpha: float, rate: float | None
) -> StoppingRule | None:
    """Return the stopping rule that a command names."""
    from budge.stats import anytime_rule, curtailed_rule, sprt_rule

    if kind is None:
        return None
    if kind not in ("anytime", "sprt", "curtailed"):
        raise InputError("no such rule", where="--sequential", got=kind, remedy=nearest(kind, ("anytime", "sprt", "curtailed")))
    if kind == "sprt":
        if rate is None:
            raise InputError(
                "this rule needs the rate that is expected", where="--rate", remedy="e.g. the base rate of the model"
            )
        return sprt_rule(threshold=threshold, rate=rate, alpha=alpha, claim=claim, max_n=n)
    if n is None:
        raise InputError("this rule needs the most draws", where="-n", remedy="see `budge llm plan`")
    return (anytime_rule if kind == "anytime" else curtailed_rule)(n, threshold=threshold, alpha=alpha, claim=claim)


def key_of(variable: str | None) -> str | None:
    """Return the key that an environment variable holds."""
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            "the environment has no such variable", where="--key-variable", got=variable, remedy=f"export {variable}=…"
        )
    return key


def arguments_of(given: list[str] | None) -> dict[str, Any]:
    """Return the arguments of a provider; what is JSON (a number, true, a list) is read as such, anything else is text."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name.isidentifier():
            raise InputError("is not name=value", where="--model-arg", got=text, remedy="device=cpu")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def prices_of(given: list[str] | None, models: list[str]) -> dict[str, Any] | None:
    """Return prices by model."""
    prices: dict[str, Any] = {}
    for text in given or ():
        name, _, pair = text.rpartition("=")
        try:
            values = tuple(float(part) for part in pair.split(","))
        except ValueError:
            raise InputError("a price is two numbers", where="--price", got=text, remedy="0.15,0.6 or model=0.15,0.6") from None
        prices.update({name: values} if name else dict.fromkeys(models, values))
    return prices or None


def named_number(text: str, where: str, name: str) -> tuple[str, float]:
    """Return a name and its number; `name` stands for a name that is left out."""
    label, _, value = text.rpartition("=")
    try:
        return label or name, float(value)
    except ValueError:
        raise InputError("is not a number", where=where, got=text, remedy=f"0.227, or {name}=0.227") from None


def labels_of(given: list[str]) -> Labelled | dict[str, Labelled]:
    """Return labels for all answers, or for each interaction: given by its name, or by a column of a file."""
    found: dict[str, Labelled] = {}
    for text in given:
        word, sign, rest = text.partition("=")
        found |= _labelled(rest if sign else text, word if sign else "")
    if "" in found and len(found) > 1:
        raise InputError("labels are for one interaction each, or one set for all", where="--labelled", got=given, remedy="typos=185,15,6,194")
    return found.get("", found)


def _labelled(text: str, word: str) -> dict[str, Labelled]:
    """Return what four counts or a file of pairs tell of an interaction; a file may have a column `interaction`."""
    from budge.llm import Labelled

    if not Path(text).exists():
        parts = text.split(",")
        if len(parts) != 4 or not all(part.strip().isdecimal() for part in parts):
            raise InputError(
                "is neither four counts nor a file",
                where="--labelled",
                got=text,
                remedy="FOUND,MISSED,FALSE_ALARMS,CLEARED, e.g. 185,15,6,194; or a CSV file with the columns person and judge",
            )
        return {word: Labelled(*(int(part) for part in parts))}
    table = read_people(text)
    for name in ("person", "judge"):
        if name not in table.columns:
            raise InputError(
                f"the file has no column {name!r}", where=f"--labelled {text}", got=list(table.columns), remedy="person and judge: 1, 0, or nothing"
            )
    said = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False, "": None, "nan": None, "none": None}
    words = table["interaction"].astype(str) if not word and "interaction" in table.columns else [word] * len(table)
    pairs: dict[str, list[tuple[Any, Any]]] = {}
    for which, person, judge in zip(words, table["person"], table["judge"]):
        pairs.setdefault(which, []).append((said.get(str(person).strip().lower(), person), said.get(str(judge).strip().lower(), judge)))
    return {which: Labelled.of(rows) for which, rows in pairs.items()}
