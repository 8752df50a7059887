"""``budge llm``: plan, run and test language models under rewrites of their prompts; import logs of other harnesses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from budge.cli import echo_json
from budge.cli.helping import HelpfulGroup
from budge.cli.interrupts import kept
from budge.cli.llm_arguments import (
    ROLES,
    Adjust,
    Alpha,
    ClaimSide,
    Method,
    Over,
    Threshold,
    arguments_of,
    end_incomplete,
    helpers_of,
    key_of,
    labels_of,
    named_number,
    prices_of,
    prompts_of,
    rule_of,
    served_model,
)
from budge.cli.shared import Read, progress_bar, say, show_table
from budge.errors import InputError, nearest

__all__ = ["register"]

group = typer.Typer(
    name="llm", cls=HelpfulGroup, no_args_is_help=True, help="Language models: is a verdict still true when the prompt is rephrased?"
)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line, once."""
    from budge.cli import llm_tools  # noqa: F401  # its commands join the group

    if group not in [known.typer_instance for known in app.registered_groups]:
        app.add_typer(group, name="llm")


@group.command("plan")
def plan(
    rate: Annotated[list[str], typer.Option(help="The rate of hits without interaction: 0.227, or model=0.227, several times.")],
    threshold: Threshold = 0.4,
    alpha: Annotated[float, typer.Option(help="The error that is allowed for a claim.")] = 0.05,
    power: Annotated[float, typer.Option(help="The probability of showing a claim that is true.")] = 0.95,
    claim: ClaimSide = "below",
    interactions: Annotated[int, typer.Option(help="How many interactions are tested for each model.")] = 1,
    prompts: Annotated[int | None, typer.Option(help="The number of prompts: then the plan also has a census of them.")] = None,
    base: Annotated[bool, typer.Option("--base/--no-base", help="Count the draws of the prompts as they stand too.")] = True,
    use: Annotated[str, typer.Option(help="stable (holds for every larger n too) or first (the paper's).")] = "stable",
    calls_per_draw: Annotated[int, typer.Option(help="2 with a model as judge, 3 with another that rewrites.")] = 1,
    price: Annotated[float | None, typer.Option(help="Of one call.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the number of calls.")] = False,
) -> None:
    """How many draws and calls a test needs."""
    from budge import llm

    rates = dict(named_number(text, "--rate", "model") for text in rate)
    made = llm.plan_calls(
        rates, threshold=threshold, alpha=alpha, power=power, claim=claim, interactions=interactions, with_base=base, use=use, prompts=prompts,
        calls_per_draw=calls_per_draw, price=price,
    )  # fmt: skip
    echo_json(made.to_dict()) if as_json else say(made.calls if quiet else made)


@group.command("run")
def run(
    prompts: Annotated[str, typer.Argument(help="A file of prompts (a table of any kind, JSON lines, text), or a built-in benchmark such as facts.")],
    judge: Annotated[str, typer.Option(help="What is a hit: match(), contains(Paris), refusal(), model_judge(openai/gpt-4o), …")],
    model: Annotated[list[str] | None, typer.Option(help="A model as Inspect names it: openai/gpt-4o-mini, vllm/…; several times.")] = None,
    local: Annotated[bool, typer.Option("--local", help="The small model that runs on this machine (SmolLM2-135M-Instruct).")] = False,
    gguf: Annotated[Path | None, typer.Option(help="Another local model: a GGUF file.")] = None,
    interact: Annotated[list[str] | None, typer.Option(help='A rewrite: "misspell(0.1)", "few = typos(most=2) | case(upper)"; several times.')] = None,
    n: Annotated[int | None, typer.Option("-n", help="Joint draws for each model and interaction; see `budge llm plan`.")] = None,
    per_prompt: Annotated[int | None, typer.Option(help="Instead: draws for each prompt.")] = None,
    census: Annotated[bool, typer.Option("--census", help="Instead: every prompt once, at temperature 0 and with one rewrite each: exact.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the run; the same call resumes it.")] = None,
    base: Annotated[bool, typer.Option("--base/--no-base", help="Ask the prompts as they stand too.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    temperature: Annotated[float | None, typer.Option(help="Of decoding; 0.7 unless given, 0 for --census.")] = None,
    max_tokens: Annotated[int, typer.Option(help="The longest answer, in tokens.")] = 256,
    rewriter_tokens: Annotated[int, typer.Option(help="The longest rewrite of --rewriter; one that is cut off is not sent.")] = 1024,
    judge_tokens: Annotated[int, typer.Option(help="The longest reply of --judge-model.")] = 1024,
    system: Annotated[str | None, typer.Option(help="A system message for the models under test.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Of decoding: keep the most likely tokens up to this share.")] = None,
    reasoning_effort: Annotated[str | None, typer.Option(help="For models that reason: low, medium, high, …")] = None,
    model_arg: Annotated[list[str] | None, typer.Option("--model-arg", "-M", help="An argument of the provider: device=cpu; several times.")] = None,
    max_calls: Annotated[int | None, typer.Option(help="Stop before this many calls, over the whole run; retries count.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop before this cost, over the whole run; needs --price.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="For a million tokens in and out: 0.15,0.6 or model=0.15,0.6.")] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at a time.")] = 8,
    sequential: Annotated[str | None, typer.Option(help="Stop as soon as the verdict is certain: anytime, sprt or curtailed.")] = None,
    threshold: Annotated[float, typer.Option(help="The threshold that --sequential tests.")] = 0.4,
    claim: Annotated[str, typer.Option(help="The claim that --sequential tests: below or above.")] = "below",
    alpha: Annotated[float, typer.Option(help="The error of --sequential over the family.")] = 0.05,
    family: Annotated[int | None, typer.Option(help="How many tests --sequential divides alpha by; the number of interactions unless given.")] = None,
    rate: Annotated[float | None, typer.Option(help="The rate that --sequential sprt expects.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The address of an OpenAI-compatible server; --model is then its name there.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="The environment variable with the key for --base-url.")] = None,
    rewriter: Annotated[str | None, typer.Option(help="The model for interactions that ask one and do not name it.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="The model for judges that ask one and do not name it.")] = None,
    retries: Annotated[int, typer.Option(help="Tries of one call before its draw is left for the next run.")] = 8,
    timeout: Annotated[int, typer.Option(help="Seconds for one try.")] = 300,
    read: Read = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another run in the folder, once the new one is finished.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Ask models about prompts, as they stand and rewritten, and judge the answers. The same call goes on where it ended."""
    from budge import llm
    from budge.llm.runs.configured import configured

    items = prompts_of(prompts, read)
    asked: dict[str, Any] = dict.fromkeys(model or ())
    key = key_of(key_variable)
    if base_url is not None:
        asked = {name: llm.ChatModel(name, base_url, api_key=key or "none") for name in asked}
    else:
        asked = {name: name for name in asked}
    own: dict[str, Any] = {"system": system, "top_p": top_p, "reasoning_effort": reasoning_effort, "arguments": arguments_of(model_arg)}
    rule = rule_of(sequential, n=n, threshold=threshold, claim=claim, alpha=alpha, rate=rate)
    with kept(out, what="answered"), served_model(gguf, local) as served, progress_bar("draws", quiet=quiet or as_json) as progress:
        if served is not None:
            asked[served.name] = served
        if not asked:
            raise InputError("no model is given", where="--model", remedy="--model openai/gpt-4o-mini, or --local for a small one here")
        helpers = helpers_of(rewriter, judge_model, asked, served, base_url, key, ways=interact or [], judge=judge)
        paid = [*asked, *(role for role, option in ROLES.items() if helpers[option] is not None)]
        result = llm.run(
            {name: configured(one, **own) for name, one in asked.items()}, items, interact or None, judge=judge, n=None if rule is not None else n,
            per_prompt=per_prompt, census=census, seed=seed,
            folder=out, base=base, temperature=temperature, max_tokens=max_tokens, rewriter_tokens=rewriter_tokens, judge_tokens=judge_tokens,
            family=family, max_calls=max_calls, max_cost=max_cost,
            prices=prices_of(price, paid), concurrency=concurrency, sequential=rule, **helpers,
            base_url=base_url, api_key=key, patience=llm.Patience(attempts=retries, timeout=timeout), overwrite=overwrite, progress=progress,
        )  # fmt: skip
    if as_json:
        echo_json(result.to_dict())
    elif not quiet:
        say(replace(result, incomplete=""))
        if len(result.answers):
            show_table(result.answers.counts(), most=100)
        for stop in result.stops:
            say(stop)
        if out is not None and len(result.answers):
            told = "" if rule is None else f" --claim {claim} --alpha {alpha:g}"
            say(f"Kept in {out}. Next: budge llm test {out} --threshold {threshold:g}{told} --over these")
    lost = int(result.answers.table["hit"].isna().sum())
    if lost and 2 * lost >= len(result.answers):
        which = "every answer is" if lost == len(result.answers) else f"{lost} of {len(result.answers)} answers are"
        say(f"budge: {which} unresolved: {', '.join(result.reasons())}", err=True)
    end_incomplete(result, as_json)


@group.command("test")
def verdicts(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a file of answers.")],
    over: Over,
    threshold: Threshold = 0.4,
    claim: ClaimSide = "below",
    alpha: Alpha = 0.05,
    adjust: Adjust = "bh",
    method: Method = "auto",
    by: Annotated[str | None, typer.Option(help="Also for each: category or prompt.")] = None,
    labelled: Annotated[list[str] | None, typer.Option(help="Labels by people: typos=FOUND,MISSED,FALSE_ALARMS,CLEARED for each, or a CSV file.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="The table in LaTeX, and nothing else.")] = False,
    fail_if: Annotated[list[str] | None, typer.Option(help="Exit with 1 where this holds, e.g. \"share(verdict == 'inconclusive') > 0\".")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors and gates.")] = False,
) -> None:  # fmt: skip
    """Test the answers of a run: model by model and interaction by interaction, the paper's table."""
    from budge import llm
    from budge.audit.gate import gate_table

    if by not in (None, "category", "prompt"):
        raise InputError("is not known", where="--by", got=by, remedy=nearest(by, ("category", "prompt")))
    checked = labels_of(labelled) if labelled else None
    found = llm.test(
        llm.load(run), threshold=threshold, over=over, claim=claim, alpha=alpha, adjust=adjust, method=method, labelled=checked
    )
    gates = [gate_table(found.table, condition) for condition in fail_if or ()]
    split = None if by is None else found.by_category() if by == "category" else found.by_prompt()
    if as_json:
        told = [{"condition": g.condition, "failed": g.failed, "numbers": g.numbers} for g in gates]
        parts = {} if split is None else {f"by_{by}": split.reset_index().to_dict("records")}
        echo_json({**found.to_dict(), **parts, "gates": told})
    else:
        if latex:
            typer.echo(found.to_latex())
        elif not quiet:
            show_table(found.wide(), most=200)
            say(found.footnote + "\n" if found.footnote else "")
            say(found)
            for word, labels in (checked.items() if isinstance(checked, dict) else [("", checked)] if checked is not None else []):
                say(f"{word}: {labels}" if word else labels)
            if split is not None:
                hidden = ("model", "bound", "method", "interval_method", "exact", "rate_over")
                marked = "rate (resolved)" if split["unresolved"].any() else "rate"
                names = {"p_value": "p", "p_adjusted": "adjusted p", "rate": marked}
                shown = {c: names.get(c, c) for c in (by, "interaction", *split.columns) if c not in hidden}
                digits = dict.fromkeys(("rate", "low", "high", "p_value", "p_adjusted"), 3)
                for name, rows in split.groupby("model", sort=False):
                    say(f"\nBy {by}, {name}:")
                    show_table(rows, most=200, names=shown, digits=digits)
        for g in gates:
            say(g, err=g.failed)
    if any(g.failed for g in gates):
        raise typer.Exit(1)


def _show_pairs(rows: pd.DataFrame, columns: tuple[str, ...], title: str) -> None:
    """Print one table for every two models, so that their names take no room in it."""
    names = {c: "adjusted p" if c == "p_adjusted" else c for c in ("interaction", *columns)}
    for two, own in rows.groupby(["first", "second"], sort=False) if len(rows) else ():
        say(title.format(*two))
        show_table(own, most=200, names=names, digits=dict.fromkeys(("difference", "low", "high", "p_adjusted"), 3))
        say()


@group.command("compare")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or files of answers; together they have two models or more.")],
    over: Over,
    model: Annotated[list[str] | None, typer.Option(help="Compare these models only; several times.")] = None,
    alpha: Alpha = 0.05,
    adjust: Annotated[str, typer.Option(help="Over all comparisons: holm, bonferroni, bh, by or none.")] = "holm",
    method: Annotated[str, typer.Option(help="auto, first, bounded or clustered.")] = "auto",
    pairs: Annotated[bool, typer.Option("--pairs", help="Show every pair of models too, with its interval.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Which model has the lower rate, draw by draw, and whether an interaction overturns the ranking of the base."""
    from budge import llm

    answers = llm.Answers.concat([llm.load(run) for run in runs])
    found = llm.compare(answers, over=over, models=model or None, alpha=alpha, adjust=adjust, method=method)
    if as_json:
        echo_json(found.to_dict())
    elif not quiet:
        if pairs:
            _show_pairs(found.table, ("difference", "verdict", "low", "high", "p_adjusted", "pairs", "unresolved"), "Rate of {} minus that of {}:")
            _show_pairs(found.rankings, ("overturned", "p_adjusted", "ahead"), "Ranking of the base, {} and {}:")
        say(found)


