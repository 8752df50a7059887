"""``budge llm import``, ``judge`` and ``report``: answers from the tools of others, other verdicts on them, and one page about them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.llm import group
from budge.cli.llm_arguments import (
    Adjust,
    Alpha,
    ClaimSide,
    Method,
    Over,
    Threshold,
    end_incomplete,
    key_of,
    prices_of,
    prompts_of,
)
from budge.cli.shared import Read, progress_bar, say, show_table
from budge.errors import InputError, OutputExistsError
from budge.llm.answers import BASE

__all__: list[str] = []


@group.command("import")
def bring(
    logs: Annotated[list[str], typer.Argument(help="Logs or folders of logs: logs/, or one per interaction: base=a.eval misspell=b.eval.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the answers, for `budge llm test`.")],
    score: Annotated[str | None, typer.Option(help="Which score of the log, where it has several; scorer/key of one that is a dict.")] = None,
    cutoff: Annotated[str | None, typer.Option(help='For scores that are numbers: a hit from here on (0.5), or "< 3".')] = None,
    values: Annotated[str | None, typer.Option(help="What the values of the score mean: C=miss,I=hit. Others are unresolved.")] = None,
    model: Annotated[str | None, typer.Option(help="Another name for the model.")] = None,
    base: Annotated[str | None, typer.Option(help="The interaction of the log that leaves prompts as they stand.")] = None,
    category: Annotated[str | None, typer.Option(help="The field of a sample that holds its category.")] = None,
    filter: Annotated[str | None, typer.Option(help="Which filter of lm-evaluation-harness, where a file has several.")] = None,
    columns: Annotated[str | None, typer.Option(help="Of a table: which column holds what, e.g. prompt=qid,answer=text.")] = None,
    match: Annotated[str, typer.Option(help="text: equal identifiers need equal prompts; ids: logs of datasets that were rewritten beforehand.")] = "text",
    format: Annotated[str | None, typer.Option(help="inspect, lm-eval, promptfoo, garak, helm, openai-evals, table; where content does not tell.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of a sentence.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Take the answers of earlier runs from their logs, so that they can be tested without new calls."""
    from budge import llm
    from budge.llm.runs.folder import RECORD, save

    if (out / RECORD).exists() and not overwrite:
        raise OutputExistsError("holds a run", where=str(out), remedy="choose another folder, or --overwrite")
    given: dict[str, Any] = {"score": score, "cutoff": cutoff, "model": model, "base": base, "category": category}
    given |= {"values": None if values is None else _values(values), "columns": None if columns is None else _columns(columns)}
    given |= {"filter": filter, "match": match, "format": format}
    named: dict[str, list[str]] = {}
    for name, path in map(_named_log, logs):
        named.setdefault(name, []).append(path)
    answers = llm.read_log(named[""], **given) if set(named) == {""} else llm.read_logs({name or BASE: paths for name, paths in named.items()}, **given)
    status = answers.info.get("status", "success")
    broken = [s for s in (status if isinstance(status, list) else [status]) if s != "success"]
    save(answers, out)
    if as_json:
        echo_json({"rows": len(answers), "folder": str(out), "status": status, "counts": answers.counts().to_dict("records")})
    elif not quiet:
        say(answers)
        show_table(answers.counts(), most=100)
        for why, count in answers.table.loc[answers.table["hit"].isna(), "why"].value_counts().head(5).items():
            say(f"{count} unresolved: {why}")
        say(f"Kept in {out}. Next: budge llm test {out} --threshold 0.5 --over these")
    if broken and not as_json and not quiet:
        what = "a log has" if len(broken) == 1 else f"{len(broken)} logs have"
        say(f"budge: {what} the status {', '.join(dict.fromkeys(broken))}: answers that were planned and are not there are unresolved", err=True)


@group.command("judge")
def judge_again(
    run: Annotated[Path, typer.Argument(help="The folder of a run or of imported answers, or a file of answers.")],
    judge: Annotated[str, typer.Option(help="The new judge: contains(Paris), model_judge(openai/gpt-4o), scorer(includes), …")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the new verdicts; the same call resumes.")],
    prompts: Annotated[str | None, typer.Option(help="The prompts with their expected answers, where the answers do not hold them.")] = None,
    read: Read = None,
    judge_model: Annotated[str | None, typer.Option(help="The model for a judge that asks one and does not name it.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The address of an OpenAI-compatible server; --judge-model is then its name there.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="The environment variable with the key for --base-url.")] = None,
    max_tokens: Annotated[int, typer.Option(help="The longest reply of the judge.")] = 1024,
    max_calls: Annotated[int | None, typer.Option(help="Stop before this many calls; retries count.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop before this cost; needs --price.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="For a million tokens in and out: 0.15,0.6.")] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at a time.")] = 8,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Judge the answers of a run again by another judge; no model under test is asked."""
    from budge import llm
    from budge.llm.runs.design import asking

    key = key_of(key_variable)
    model: Any = judge_model
    if base_url is not None and judge_model is not None and "/" not in judge_model:
        model = llm.ChatModel(judge_model, base_url, api_key=key or "none")
    names = ["judge"] if judge_model is not None else list(filter(None, asking(llm.as_judge(judge))))
    with progress_bar("verdicts", quiet=quiet or as_json) as progress:
        found = llm.judge(
            run, judge, prompts=None if prompts is None else prompts_of(prompts, read), folder=out, judge_model=model, base_url=base_url, api_key=key,
            max_tokens=max_tokens, max_calls=max_calls, max_cost=max_cost, prices=prices_of(price, names), concurrency=concurrency, overwrite=overwrite,
            progress=progress,
        )  # fmt: skip
    if as_json:
        echo_json(found.to_dict())
    elif not quiet:
        say(found)
        show_table(found.answers.counts(), most=100)
        say(f"Kept in {out}. Next: budge llm test {out} --threshold 0.5 --over these")
    end_incomplete(found, as_json)


@group.command("report")
def write_report(
    run: Annotated[Path, typer.Argument(help="The folder of a run or of imported answers, or a file of answers.")],
    over: Over,
    threshold: Threshold = 0.4,
    claim: ClaimSide = "below",
    alpha: Alpha = 0.05,
    adjust: Adjust = "bh",
    method: Method = "auto",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; report.html in the folder by default.")] = None,
    title: Annotated[str, typer.Option(help="The heading.")] = "",
    examples: Annotated[int, typer.Option(help="Answers that flipped, per model and interaction.")] = 3,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of a sentence.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Write one page: what was asked, the verdicts, answers that flipped side by side, how to repeat it."""
    from budge import llm

    place = out or (run / "report.html" if run.is_dir() else run.with_suffix(".html"))
    llm.report(
        run, place, threshold=threshold, over=over, claim=claim, alpha=alpha, adjust=adjust, method=method, title=title, examples=examples, overwrite=overwrite
    )  # fmt: skip
    if as_json:
        echo_json({"report": str(place)})
    elif not quiet:
        say(f"Written to {place}.")


def _values(text: str) -> dict[Any, bool]:
    """What scores mean; a number means the number and its text."""
    meaning: dict[Any, bool] = {}
    for part in text.split(","):
        name, sign, word = (piece.strip() for piece in part.rpartition("="))
        if not sign or word not in ("hit", "miss"):
            raise InputError("a value is a hit or a miss", where="--values", got=part, remedy="C=miss,I=hit")
        meaning[name] = word == "hit"
        try:
            meaning[float(name)] = word == "hit"
        except ValueError:
            if name.lower() in ("true", "false"):
                meaning[name.lower() == "true"] = word == "hit"
    return meaning


def _columns(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name.strip() and column.strip() for name, _, column in pairs):
        raise InputError("is not field=column", where="--columns", got=text, remedy="prompt=qid,answer=text")
    return {name.strip(): column.strip() for name, _, column in pairs}


def _named_log(text: str) -> tuple[str, str]:
    """Return the name of the interaction, empty where none is given, and the path."""
    name, sign, path = text.partition("=")
    return (name, path) if sign and not Path(text).exists() else ("", text)
