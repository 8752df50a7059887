"""One page about a run of language models: what was asked, the verdicts, answers that flipped, how to repeat it. One file that loads nothing."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from budge import __version__
from budge.errors import BudgeError, OutputExistsError
from budge.files import write_whole
from budge.llm.answers import BASE, Answers, marked
from budge.llm.claims.verdict_table import Verdicts
from budge.report.document import asset, policy, rendered
from budge.report.figures import figure_style
from budge.report.llm import forest
from budge.report.words import percent

__all__ = ["flips_of", "llm_page", "write_llm_page"]

_LONGEST = 1200  # characters of a text that are shown
_STYLE = ".flip { margin: 0 0 1rem; } .flip pre { white-space: pre-wrap; overflow-wrap: anywhere; } .flip h3 { margin-top: 0; }"


def write_llm_page(answers: Answers, verdicts: Verdicts, path: str | Path, *, title: str = "", examples: int = 3, overwrite: bool = False) -> Path:
    """Write the page, whole or not at all; see `budge.llm.report`."""
    place = Path(path)
    if place.is_dir():
        raise OutputExistsError("is a folder", where=str(place), remedy="give the path of a file, such as report.html")
    if place.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(place), remedy="choose another name, or overwrite")
    return write_whole(place, llm_page(answers, verdicts, title=title, examples=examples), overwrite=overwrite)


def llm_page(answers: Answers, verdicts: Verdicts, *, title: str = "", examples: int = 3) -> str:
    """Return the page as a text. Everything that a model wrote is escaped, and no script runs on the page."""
    from markupsafe import Markup

    style = asset("look.css") + asset("report.css") + figure_style() + _STYLE
    table = answers.table
    lost = Counter(table.loc[table["hit"].isna(), "why"])
    info = verdicts.info
    whom = "these prompts" if info["over"] == "these" else "the population of which the prompts are a sample"
    return rendered(
        "llm.html", title=title or f"Is the rate of hits {info['claim']} {percent(info['threshold'])} under every rewrite?", version=__version__,
        summary=f"{answers} · over {whom}", asked=_asked(answers), rows=[_row(row, table) for row in verdicts.table.to_dict("records")],
        figure=_figure(verdicts), sentences=str(verdicts).split("\n"), reasons=[f"{count} × {why}" for why, count in lost.most_common(8)],
        flips=flips_of(answers, examples), command=_command(verdicts), identity=json.dumps(answers.info, indent=2, default=str, ensure_ascii=False),
        style=Markup(style), policy=policy(style, ""),
    )  # fmt: skip


def flips_of(answers: Answers, each: int = 3) -> list[dict[str, Any]]:
    """Return draws whose verdict differs between the base and an interaction, some per model and interaction; both directions take turns."""
    table = answers.table
    resolved: list[dict[str, Any]] = [{str(key): value for key, value in row.items()} for row in table[table["hit"].notna()].to_dict("records")]
    base = {(row["model"], row["prompt"], row["draw"]): row for row in resolved if row["interaction"] == BASE}
    found: dict[tuple[str, str, bool], list[dict[str, Any]]] = {}
    for row in resolved:
        before = base.get((row["model"], row["prompt"], row["draw"]))
        if before is not None and before["hit"] != row["hit"]:
            mine = found.setdefault((row["model"], row["interaction"], row["hit"]), [])
            if len(mine) < each:
                mine.append({**{name: row[name] for name in ("model", "interaction", "prompt", "draw")}, "before": _shown(before), "after": _shown(row)})
    chosen: list[dict[str, Any]] = []
    for model, way in dict.fromkeys((model, way) for model, way, _ in found):
        turns = [flip for pair in zip(*(found.get((model, way, hit), []) + [None] * each for hit in (True, False))) for flip in pair if flip is not None]
        chosen += turns[:each]
    return chosen


def _shown(row: dict[str, Any]) -> dict[str, str]:
    texts = {name: str(row[name]) for name in ("sent", "answer")}
    return {
        "verdict": "hit" if row["hit"] else "miss",
        **{name: text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters)" for name, text in texts.items()},
    }


def _row(row: Mapping[Any, Any], table: pd.DataFrame) -> dict[str, Any]:
    mine = table[(table["model"] == row["model"]) & (table["interaction"] == row["interaction"])]
    same, cut = (f"{sum(marked(mine, name))} of {len(mine)}" if name in mine else "–" for name in ("unchanged", "cut"))
    return {
        "model": row["model"], "interaction": row["interaction"], "verdict": row["verdict"], "rate": _share(row["rate"]),
        "interval": f"{_share(row['low'])} to {_share(row['high'])}", "base": _share(row["base_rate"]), "p": f"{row['p_adjusted']:.3g}", "n": row["n"],
        "unresolved": row["unresolved"], "unchanged": same, "cut": cut,
    }  # fmt: skip


def _share(value: Any) -> str:
    return "–" if value is None or math.isnan(value) else percent(float(value))


def _asked(answers: Answers) -> list[tuple[str, str]]:
    info, identity = answers.info, answers.info.get("identity") or {}
    ways = identity.get("interactions") or {}
    rows = [("Models", ", ".join(answers.models)), ("Prompts", f"{answers.table['prompt'].nunique():,}")]
    rows += [(f"Interaction {name}", str(ways.get(name, "as named in the log"))) for name in answers.interactions]
    rows.append(("Judge", str(info.get("judge", "not said"))))
    kept = {"scheme": "Draws", "n": "Draws per interaction", "per_prompt": "Draws per prompt", "seed": "Seed", "source": "Source", "status": "Logs"}
    rows += [(label, str(info[key])) for key, label in kept.items() if info.get(key) is not None]
    rows += [(key.replace("_", " ").capitalize(), str(identity[key])) for key in ("temperature", "max_tokens") if key in identity]
    return rows


def _figure(verdicts: Verdicts) -> Any:
    from markupsafe import Markup

    try:
        return Markup(forest(verdicts).svg(standalone=False))
    except BudgeError:  # a page without a figure is still a page
        return None


def _command(verdicts: Verdicts) -> str:
    info = verdicts.info
    options = f"--over {info['over']} --threshold {info['threshold']:g} --claim {info['claim']} --alpha {info['alpha']:g} --adjust {info['adjust']}"
    return f"budge llm test FOLDER {options}"
