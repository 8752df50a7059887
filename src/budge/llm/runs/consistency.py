"""Whether the answers of a run folder can come from the design that is stated beside them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import pandas as pd

from budge.llm.answers import Answers
from budge.llm.claims.evidence import prompts_of, rule_of
from budge.llm.runs.draws import stop_of

__all__ = ["check_answers"]


def check_answers(answers: Answers) -> None:
    """Raise a `ValueError` where the answers contradict their design; what the design does not state (of an imported log) is not compared."""
    info, table = answers.info, answers.table
    scheme, whole, rule = info.get("scheme"), info.get("complete", True), info.get("sequential") or None
    identity = info.get("identity") if isinstance(info.get("identity"), Mapping) else {}
    _check_statement(info, identity or {})
    if "lost" in table and any(lost and hit is not None for lost, hit in zip(table["lost"], table["hit"])):
        raise ValueError("there is a verdict on a draw without an answer")
    cells = {(str(key[0]), str(key[1])): part for key, part in table.groupby(["model", "interaction"], sort=False)}
    _check_names(set(cells), identity or {}, whole)
    if scheme == "joint" and isinstance(info.get("n"), int) and (table.groupby("draw")["prompt"].nunique() > 1).any():
        raise ValueError("a joint draw is of different prompts")
    for (model, word), part in cells.items():
        try:
            if scheme == "joint":
                _check_joint(part, info.get("n"), whole and rule is None)
            elif isinstance(info.get("per_prompt"), int):
                _check_each(part, info["per_prompt"], prompts_of(info), whole)
        except ValueError as error:
            raise ValueError(f"{error}, of {model!r} under {word!r}") from None
    if isinstance(rule, Mapping):
        _check_stops(cells, rule, whole)


def _check_statement(info: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    """Compare what is stated of the design in two places, and the scheme with the numbers that it has."""
    fixed = identity.get("n") is not None  # a rule that may be extended is the same run with another number
    for key in ("prompts", "per_prompt", "seed", *(("n",) if fixed else ())):
        if key in info and key in identity and info[key] != identity[key]:
            raise ValueError(f"{key!r} is stated in two places, and they differ")
    scheme, n, each = (info.get(key) for key in ("scheme", "n", "per_prompt"))
    joint = scheme == "joint"
    if "census" in identity and identity["census"] is not (scheme == "census"):
        raise ValueError("whether it is a census is stated in two places, and they differ")
    if (n is not None and not joint) or (each is not None and joint) or (scheme == "census" and each not in (None, 1)):
        raise ValueError(f"the scheme {scheme!r} does not have these numbers of draws")
    rule = info.get("sequential") or {}
    if rule and not joint:
        raise ValueError(f"the scheme {scheme!r} has no stopping rule")
    same = identity.get("sequential", rule)
    if bool(same) != bool(rule) or any(key in rule and rule[key] != value for key, value in dict(same).items()):
        raise ValueError("the stopping rule is stated in two places, and they differ")
    if rule and n is not None and isinstance(rule, Mapping) and rule.get("max_n", n) != n:
        raise ValueError("the rule has another number of draws than the run")


def _check_names(cells: set[tuple[str, str]], identity: Mapping[str, Any], whole: bool) -> None:
    """Compare models and interactions with those that were to be asked."""
    planned = [list(identity[key]) if key in identity else None for key in ("models", "interactions")]
    for at, names in enumerate(planned):
        unknown = {cell[at] for cell in cells} - set(names) if names is not None else set()
        if unknown:
            raise ValueError(f"{min(unknown)!r} was not to be asked")
    if whole and planned[0] is not None and planned[1] is not None and (missing := set(product(*planned)) - cells):  # type: ignore[arg-type]
        raise ValueError("it is stated to be complete, and there are no answers of {!r} under {!r}".format(*min(missing)))


def _check_joint(part: pd.DataFrame, n: Any, fixed: bool) -> None:
    """Compare the draws of a cell with a number of joint draws."""
    if part["draw"].duplicated().any():
        raise ValueError("a joint draw is there twice")
    if isinstance(n, int) and int(part["draw"].max()) >= n:
        raise ValueError(f"there are draws beyond the {n:,} that were planned")
    if isinstance(n, int) and fixed and len(part) != n:
        raise ValueError(f"it is stated to be complete, and {len(part):,} of {n:,} draws are there")


def _check_each(part: pd.DataFrame, each: int, prompts: int | None, whole: bool) -> None:
    """Compare the draws of a cell with a number of draws per prompt."""
    sizes = part.groupby("prompt", sort=False).size()
    if int(part["draw"].max()) >= each or (prompts is not None and len(sizes) > prompts):
        raise ValueError(f"there are more draws than the {each:,} per prompt that were planned")
    if whole and ((sizes != each).any() or len(sizes) != (prompts or len(sizes))):
        raise ValueError(f"it is stated to be complete, and {len(part):,} of {each * (prompts or len(sizes)):,} draws are there")


def _check_stops(cells: Mapping[tuple[str, str], pd.DataFrame], record: Mapping[str, Any], whole: bool) -> None:
    """Compare the draws of each cell with where its rule is stated to have stopped, and with the rule itself."""
    stops = {(stop["model"], stop["interaction"]): stop for stop in record.get("stops", ())}
    if "stops" in record and (set(stops) - set(cells) or (whole and set(cells) - set(stops))):
        raise ValueError("the rule stopped for other models or interactions than there are")
    rule = rule_of(record)
    for cell, stop in stops.items():
        part = cells[cell].sort_values("draw")
        hits = [None if hit is None else bool(hit) for hit in part["hit"]]
        seen = (len(hits), hits.count(True), hits.count(None))
        if seen != (stop["draws"], stop["hits"], stop["unresolved"]) or int(part["draw"].iloc[-1]) + 1 != len(hits):
            raise ValueError(f"the rule stopped after other draws than there are, of {cell[0]!r} under {cell[1]!r}")
        if rule.kind == "curtailed" and stop_of(rule, hits) != (stop["verdict"], len(hits)):
            raise ValueError(f"the rule does not stop after these draws, of {cell[0]!r} under {cell[1]!r}")
