"""``budge llm``: plan, run and test language models under rewrites of their prompts; import logs of other harnesses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.shared import progress_bar, read_people, say, show_table
from budge.errors import InputError, OutputExistsError, nearest

if TYPE_CHECKING:
    from budge.llm import Labelled, Prompts
    from budge.stats import StoppingRule

__all__ = ["register"]

group = typer.Typer(
    name="llm", no_args_is_help=True, help="Language models: is a verdict still true when the prompt is rephrased?"
)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line, once."""
    if group not in [known.typer_instance for known in app.registered_groups]:
        app.add_typer(group, name="llm")


@group.command("plan")
def plan(
    rate: Annotated[list[str], typer.Option(help="The rate of hits without interaction: 0.227, or model=0.227, several times.")],
    threshold: Annotated[float, typer.Option("--threshold", "-t", help="The threshold tau.")] = 0.4,
    alpha: Annotated[float, typer.Option(help="The error that is allowed for a claim.")] = 0.05,
    power: Annotated[float, typer.Option(help="The probability of showing a claim that is true.")] = 0.95,
    claim: Annotated[str, typer.Option(help="below or above.")] = "below",
    interactions: Annotated[int, typer.Option(help="How many interactions are tested for each model.")] = 1,
    base: Annotated[bool, typer.Option("--base/--no-base", help="Count the draws of the prompts as they stand too.")] = True,
    use: Annotated[str, typer.Option(help="stable (holds for every larger n too) or first (the paper's).")] = "stable",
    calls_per_draw: Annotated[int, typer.Option(help="2 with a model as judge, 3 with another that rewrites.")] = 1,
    price: Annotated[float | None, typer.Option(help="Of one call.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the number of calls.")] = False,
) -> None:
    """How many draws and calls a test needs."""
    from budge import llm

    rates = dict(_pair(text, "--rate", "model") for text in rate)
    made = llm.plan_calls(
        rates, threshold=threshold, alpha=alpha, power=power, claim=claim, interactions=interactions, with_base=base, use=use,
        calls_per_draw=calls_per_draw, price=price,
    )  # fmt: skip
    echo_json(made.to_dict()) if as_json else say(made.calls if quiet else made)


@group.command("run")
def run(
    prompts: Annotated[str, typer.Argument(help="A file of prompts (CSV, JSON lines, text), or a built-in benchmark such as facts.")],
    judge: Annotated[str, typer.Option(help="What is a hit: match(), contains(Paris), refusal(), model_judge(openai/gpt-4o), …")],
    model: Annotated[list[str] | None, typer.Option(help="A model as Inspect names it: openai/gpt-4o-mini, vllm/…; several times.")] = None,
    local: Annotated[bool, typer.Option("--local", help="The small model that runs on this machine (SmolLM2-135M-Instruct).")] = False,
    gguf: Annotated[Path | None, typer.Option(help="Another local model: a GGUF file.")] = None,
    interact: Annotated[list[str] | None, typer.Option(help='A rewrite: "misspell(0.1)", "few = typos(most=2) | case(upper)"; several times.')] = None,
    n: Annotated[int | None, typer.Option("-n", help="Joint draws for each model and interaction; see `budge llm plan`.")] = None,
    per_prompt: Annotated[int | None, typer.Option(help="Instead: draws for each prompt.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the run; the same call resumes it.")] = None,
    base: Annotated[bool, typer.Option("--base/--no-base", help="Ask the prompts as they stand too.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of decoding.")] = 0.7,
    max_tokens: Annotated[int, typer.Option(help="The longest answer.")] = 256,
    max_calls: Annotated[int | None, typer.Option(help="Stop before this many calls, over the whole run; retries count.")] = None,
    max_cost: Annotated[float | None, typer.Option(help="Stop before this cost, over the whole run; needs --price.")] = None,
    price: Annotated[list[str] | None, typer.Option(help="For a million tokens in and out: 0.15,0.6 or model=0.15,0.6.")] = None,
    concurrency: Annotated[int, typer.Option(help="Calls under way at a time.")] = 8,
    sequential: Annotated[str | None, typer.Option(help="Stop as soon as the verdict is certain: anytime, sprt or curtailed.")] = None,
    threshold: Annotated[float, typer.Option(help="The threshold that --sequential tests.")] = 0.4,
    claim: Annotated[str, typer.Option(help="The claim that --sequential tests: below or above.")] = "below",
    alpha: Annotated[float, typer.Option(help="The error of --sequential.")] = 0.05,
    rate: Annotated[float | None, typer.Option(help="The rate that --sequential sprt expects.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The address of an OpenAI-compatible server; --model is then its name there.")] = None,
    key_variable: Annotated[str | None, typer.Option(help="The environment variable with the key for --base-url.")] = None,
    rewriter: Annotated[str | None, typer.Option(help="The model for interactions that ask one and do not name it.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="The model for judges that ask one and do not name it.")] = None,
    retries: Annotated[int, typer.Option(help="Tries of one call before its draw is left for the next run.")] = 8,
    timeout: Annotated[int, typer.Option(help="Seconds for one try.")] = 300,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace another run in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:  # fmt: skip
    """Ask models about prompts, as they stand and rewritten, and judge the answers. The same call goes on where it ended."""
    from budge import llm

    items = _prompts(prompts)
    asked: dict[str, Any] = dict.fromkeys(model or ())
    key = _key(key_variable)
    if base_url is not None:
        asked = {name: llm.ChatModel(name, base_url, api_key=key or "none") for name in asked}
    else:
        asked = {name: name for name in asked}
    rule = _rule(sequential, n=n, threshold=threshold, claim=claim, alpha=alpha, rate=rate)
    try:
        with _served(gguf, local) as served, progress_bar("draws", quiet=quiet or as_json) as progress:
            if served is not None:
                asked[served.name] = served
            if not asked:
                raise InputError(
                    "no model is given", where="--model", remedy="--model openai/gpt-4o-mini, or --local for a small one here"
                )
            helpers = _helpers(rewriter, judge_model, asked, served, base_url, key, ways=interact or [], judge=judge)
            paid = [*asked, *(role for role, option in _ROLES.items() if helpers[option] is not None)]
            result = llm.run(
                asked, items, interact or None, judge=judge, n=None if rule is not None else n, per_prompt=per_prompt, seed=seed, folder=out,
                base=base, temperature=temperature, max_tokens=max_tokens, max_calls=max_calls, max_cost=max_cost,
                prices=_prices(price, paid), concurrency=concurrency, sequential=rule, **helpers,
                base_url=base_url, api_key=key, patience=llm.Patience(attempts=retries, timeout=timeout), overwrite=overwrite, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        if out is not None and not as_json:
            say(f"budge: interrupted; what was answered is in {out}, and the same call goes on", err=True)
        raise typer.Exit(130) from None
    if as_json:
        echo_json(result.to_dict())
    elif not quiet:
        say(replace(result, incomplete=""))
        if len(result.answers):
            show_table(result.answers.counts(), most=100)
        for stop in result.stops:
            say(stop)
        if out is not None and len(result.answers):
            say(f"Kept in {out}. Next: budge llm test {out} --threshold {threshold:g} --over these")
    lost = int(result.answers.table["hit"].isna().sum())
    if lost and 2 * lost >= len(result.answers):
        which = "every answer is" if lost == len(result.answers) else f"{lost} of {len(result.answers)} answers are"
        say(f"budge: {which} unresolved: {', '.join(result.reasons())}", err=True)
    if result.incomplete:
        if not as_json:
            say(f"budge: incomplete: {result.incomplete}; {result.remedy}", err=True)
        raise typer.Exit(4)


@group.command("test")
def verdicts(
    run: Annotated[Path, typer.Argument(help="The folder of a run, or a file of answers.")],
    over: Annotated[str, typer.Option(help="these (the prompts of the benchmark) or population (which they are a sample of).")],
    threshold: Annotated[float, typer.Option("--threshold", "-t", help="The threshold tau.")] = 0.4,
    claim: Annotated[str, typer.Option(help="below or above.")] = "below",
    alpha: Annotated[float, typer.Option(help="The error of the claims.")] = 0.05,
    adjust: Annotated[str, typer.Option(help="Within a model: bh, by, holm, bonferroni or none.")] = "bh",
    method: Annotated[str, typer.Option(help="auto, first, bounded, clustered or anytime.")] = "auto",
    by: Annotated[str | None, typer.Option(help="Also for each: category or prompt.")] = None,
    labelled: Annotated[str | None, typer.Option(help="Answers that people labelled: FOUND,MISSED,FALSE_ALARMS,CLEARED, or a CSV file: person,judge.")] = None,
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
    checked = None if labelled is None else _labelled(labelled)
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
            if checked is not None:
                say(checked)
            if split is not None:
                say(f"\nBy {by}:")
                kept = [c for c in split.columns if c not in ("bound", "method", "interval_method", "exact", "rate_over")]
                marked = "rate (resolved)" if split["unresolved"].any() else "rate"
                show_table(split[kept].rename(columns={"p_value": "p", "p_adjusted": "adjusted p", "rate": marked}), most=200)
        for g in gates:
            say(g, err=g.failed)
    if any(g.failed for g in gates):
        raise typer.Exit(1)


@group.command("compare")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs, or files of answers; together they have two models or more.")],
    over: Annotated[str, typer.Option(help="these (the prompts of the benchmark) or population (which they are a sample of).")],
    model: Annotated[list[str] | None, typer.Option(help="Compare these models only; several times.")] = None,
    alpha: Annotated[float, typer.Option(help="The error of the claims.")] = 0.05,
    adjust: Annotated[str, typer.Option(help="Over all comparisons: holm, bonferroni, bh, by or none.")] = "holm",
    method: Annotated[str, typer.Option(help="auto, first, bounded or clustered.")] = "auto",
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
        names = {"p_value": "p", "p_adjusted": "adjusted p"}
        show_table(found.table.drop(columns=["only_first", "only_second", "method"]).rename(columns=names), most=200)
        if len(found.rankings):
            say("\nRankings of the base:")
            show_table(found.rankings.rename(columns=names), most=200)
        say()
        say(found)


@group.command("import")
def bring(
    logs: Annotated[list[str], typer.Argument(help="Logs of Inspect or lm-evaluation-harness: base=a.eval misspell=b.eval.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the answers, for `budge llm test`.")],
    score: Annotated[str | None, typer.Option(help="Which score of the log, where it has several.")] = None,
    model: Annotated[str | None, typer.Option(help="Another name for the model.")] = None,
    category: Annotated[str | None, typer.Option(help="The field of a sample that holds its category.")] = None,
    values: Annotated[str | None, typer.Option(help="What the values of the score mean: C=miss,I=hit. Others are unresolved.")] = None,
    filter: Annotated[str | None, typer.Option(help="Which filter of lm-evaluation-harness, where a file has several.")] = None,
    format: Annotated[str | None, typer.Option(help="inspect or lm-eval, where the name of the file does not tell.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of a sentence.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Take the answers of earlier runs from their logs, so that they can be tested without new calls."""
    from budge import llm
    from budge.llm.runs.folder import RECORD, save

    if (out / RECORD).exists() and not overwrite:
        raise OutputExistsError("holds a run", where=str(out), remedy="choose another folder, or --overwrite")
    named = dict(_named_log(text) for text in logs)
    if len(named) < len(logs):
        raise InputError("two logs have the same name", got=logs, remedy="write base=one.eval misspell=two.eval")
    meaning = None if values is None else _values(values)
    answers = llm.read_logs(named, score=score, model=model, category=category, values=meaning, filter=filter, format=format)
    status = answers.info.get("status", "success")
    broken = [s for s in (status if isinstance(status, list) else [status]) if s != "success"]
    save(answers, out)
    if as_json:
        echo_json({"rows": len(answers), "folder": str(out), "status": status})
    elif not quiet:
        say(f"{answers}\nKept in {out}.")
    if broken and not as_json and not quiet:
        what = "a log has" if len(broken) == 1 else f"{len(broken)} logs have"
        say(f"budge: {what} the status {', '.join(dict.fromkeys(broken))}: answers that were planned and are not there are unresolved", err=True)


# -- arguments ----------------------------------------------------------------------------------------------------------


def _prompts(given: str) -> Prompts:
    from budge.llm import Prompts, benchmark
    from budge.llm.benchmarks import BENCHMARKS

    if given in BENCHMARKS and not Path(given).exists():
        return benchmark(given)
    if not Path(given).exists() and not Path(given).suffix and (close := get_close_matches(given, BENCHMARKS, 1)):
        remedy = f"did you mean the built-in {close[0]}?"
        raise InputError("there is no such file and no such benchmark", where="prompts", got=given, remedy=remedy)
    return Prompts.read(given)


#: The names under which helpers are paid for, and the arguments that give them.
_ROLES = {"rewriter": "rewriter", "judge": "judge_model"}


def _helpers(
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
def _served(gguf: Path | None, local: bool) -> Iterator[Any]:
    from budge import llm

    with llm.local.server(gguf) if gguf is not None or local else nullcontext() as model:
        yield model


def _rule(
    kind: str | None, *, n: int | None, threshold: float, claim: str, alpha: float, rate: float | None
) -> StoppingRule | None:
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


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    key = os.environ.get(variable)
    if not key:
        raise InputError(
            "the environment has no such variable", where="--key-variable", got=variable, remedy=f"export {variable}=…"
        )
    return key


def _prices(given: list[str] | None, models: list[str]) -> dict[str, Any] | None:
    prices: dict[str, Any] = {}
    for text in given or ():
        name, _, pair = text.rpartition("=")
        try:
            values = tuple(float(part) for part in pair.split(","))
        except ValueError:
            raise InputError("a price is two numbers", where="--price", got=text, remedy="0.15,0.6 or model=0.15,0.6") from None
        prices.update({name: values} if name else dict.fromkeys(models, values))
    return prices or None


def _pair(text: str, where: str, name: str) -> tuple[str, float]:
    label, _, value = text.rpartition("=")
    try:
        return label or name, float(value)
    except ValueError:
        raise InputError("is not a number", where=where, got=text, remedy=f"0.227, or {name}=0.227") from None


def _labelled(text: str) -> Labelled:
    """Four counts, or a file of pairs."""
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
        return Labelled(*(int(part) for part in parts))
    table = read_people(Path(text))
    for name in ("person", "judge"):
        if name not in table.columns:
            raise InputError(
                f"the file has no column {name!r}", where=f"--labelled {text}", got=list(table.columns), remedy="person and judge: 1, 0, or nothing"
            )
    said = {"1": True, "true": True, "1.0": True, "0": False, "false": False, "0.0": False, "": None, "nan": None, "none": None}
    pairs = [tuple(said.get(str(v).strip().lower(), v) for v in row) for row in table[["person", "judge"]].itertuples(index=False)]
    return Labelled.of([(person, judge) for person, judge in pairs])


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


def _named_log(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    return (name, path) if sign and not Path(text).exists() else ("base", text)
