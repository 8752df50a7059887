"""``budge plan``: how many draws, in sentences, as JSON, and as a power curve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from budge import plan as planning
from budge.cli import echo_json
from budge.cli.figures import check_figure, write_figure
from budge.cli.shared import Claim, head, say
from budge.cli.terminal import columns
from budge.errors import DesignError
from budge.stats._checks import number

__all__ = ["register"]


def _number(text: object) -> float:
    """A number from the command line; "5%" is told what to write instead."""
    try:
        return number(float(text) if isinstance(text, str) and _plain(text) else text, "value")
    except DesignError as error:
        raise typer.BadParameter(str(error)) from None


def _plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("plan")(plan)


def plan(
    threshold: Annotated[
        float, typer.Option("--threshold", "-t", parser=_number, metavar="NUMBER", help="The threshold tau.")
    ] = 0.1,
    alpha: Annotated[float, typer.Option(parser=_number, metavar="NUMBER", help="The error that is allowed for a claim.")] = 0.05,
    power: Annotated[
        float,
        typer.Option(parser=_number, metavar="NUMBER", help="The probability of showing a claim that is true by the margin."),
    ] = 0.95,
    rate: Annotated[
        float | None,
        typer.Option(
            parser=_number, metavar="NUMBER", help="The responsiveness that is expected; half the threshold unless given."
        ),
    ] = None,
    margin: Annotated[
        float | None, typer.Option(parser=_number, metavar="NUMBER", help="Its distance from the threshold, instead of --rate.")
    ] = None,
    width: Annotated[
        float, typer.Option(parser=_number, metavar="NUMBER", help="The width of an interval for estimation.")
    ] = 0.1,
    n: Annotated[int | None, typer.Option("--n", help="A number of draws: what can it show?")] = None,
    people: Annotated[int, typer.Option(help="The number of people, for the number of model calls.")] = 1,
    claim: Claim = "below",
    curve: Annotated[bool, typer.Option("--curve/--no-curve", help="Draw the power curve in the terminal.")] = True,
    figure: Annotated[
        Path | None, typer.Option(help="Write the power curve: .svg, or .png and .pdf with the extra plot.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the figure if it exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the number of draws that gives the power.")] = False,
) -> None:
    """Plan how many draws a test, an estimate or a detection needs, and what a number of draws can show."""
    if rate is None and margin is None:
        rate = threshold / 2 if claim == "below" else (1 + threshold) / 2
    least = planning.min_samples(threshold, alpha, claim=claim)
    for_width = planning.samples_for_width(width, alpha)
    drawn = planning.power_curve(threshold=threshold, rate=rate, margin=margin, alpha=alpha, power=power, claim=claim)
    aim = drawn.plan
    rule = planning.sprt_rule(threshold=threshold, rate=aim.rate, alpha=alpha, power=power, claim=claim)
    calls = planning.expected_calls(aim.rate, aim.n, people=people, rule=rule)
    given = None if n is None else _given(n, threshold, alpha, power, aim.rate, claim)
    if figure is not None:
        check_figure(figure, overwrite)
        write_figure(figure, drawn.plot())
    if as_json:
        record: dict[str, Any] = {
            "threshold": aim.threshold,
            "alpha": aim.alpha,
            "claim": aim.claim,
            "min_samples": least,
            "width": width,
            "samples_for_width": for_width,
            "samples_for_power": aim.to_dict(),
            "sequential": {"rule": rule.kind, "max_n": rule.max_n, **rule.at(aim.rate).to_dict()},
            "calls": calls.to_dict(),
            "curve": {key: value for key, value in drawn.to_dict().items() if key != "plan"},
        }
        if given is not None:
            record["given"] = given[1]
        if figure is not None:
            record["figure"] = str(figure)
        echo_json(record)
        return
    if quiet:
        say(aim.n)
        return
    sign, best = ("<", "no hit") if claim == "below" else (">", "nothing but hits")
    say(f"To test ρ {sign} {threshold:g} at alpha {alpha:g}: at least {least:,} draws; with fewer, even {best} proves nothing.")
    say(f"To detect: {aim}.")
    say(f"To estimate: {for_width:,} draws give an interval at most {width:g} wide, whatever is seen.")
    early = rule.at(aim.rate).expected_calls
    say(f"To stop early: a sequential test (SPRT) needs {early:,.0f} draws on average at that rate, at most {rule.max_n:,}.")
    say(f"Cost: {calls}.")
    if given is not None:
        say(f"Given: {given[0]}.")
    if curve:
        head(f"Power by number of draws, target {power:g}")
        say(drawn.text(max(min(60, columns() - 13), 10)), whole=True)
    if figure is not None:
        say(f"Figure written to {figure}.")


def _given(n: int, threshold: float, alpha: float, power: float, rate: float, claim: str) -> tuple[str, dict[str, Any]]:
    """What n draws can show, as a sentence and as a record; too few are refused."""
    found = planning.detectable_margin(n, threshold=threshold, alpha=alpha, power=power, claim=claim)
    reached = planning.power(n, threshold, rate, alpha=alpha, claim=claim)
    last = planning.critical_hits(n, threshold, alpha=alpha, claim=claim)
    side = "at most" if claim == "below" else "at least"
    text = f"{found}; the claim is shown by {side} {last} hits; at ρ {rate:g} the power is {reached:.4g}"
    return text, {**found.to_dict(), "critical_hits": last, "power_at_rate": reached, "power_rate": rate}
