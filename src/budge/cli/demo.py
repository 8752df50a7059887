"""``budge demo``: the main job on embedded data, offline, in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import progress_bar, show_table
from budge.cli.shared import say as tell
from budge.errors import OutputExistsError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("demo")(demo)


def demo(
    people: Annotated[int, typer.Option(min=20, max=5000, help="Applicants to audit.")] = 120,
    seed: Annotated[int, typer.Option(help="Seed of the data and all draws.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Keep the run in this folder.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report to this file, to open in a browser.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the report, and the run in the folder, if they exist.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the two verdicts.")] = False,
) -> None:
    """Train a lending model on synthetic data and audit it: who is precluded, and whose refusal is turned around easily?"""
    import budge
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard

    if report is not None and report.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(report), remedy="choose another name, or --overwrite")
    data = lending(n=1500, seed=seed)
    model = Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    applicants = data.X.iloc[1000 : 1000 + people] if people <= 500 else lending(n=people, seed=seed + 1).X
    im = budge.InteractionModel.from_file(spec_path("lending"))
    say = tell if not (as_json or quiet) else (lambda *_: None)
    say(
        "A lender trains a scorecard on 1,000 past loans. How do its answers respond to what applicants can do within a year?\n"
    )
    say(str(im.describe()))
    with progress_bar("applicants", quiet=as_json or quiet) as progress:
        stuck = budge.audit(model, applicants, im, target=1, threshold=0.1, seed=seed, harm="below", progress=progress)
    table = stuck.table.reset_index(names="applicant")
    precluded = table[table["verdict"] == "below"]
    gameable = table[table["verdict"] == "above"]
    summary = stuck.summary()
    if as_json:
        echo_json(
            {
                "precluded": len(precluded), "gameable": len(gameable), "refused": summary.people, "no_way": summary.no_way,
                "every_way": summary.every_way, **stuck.to_dict(),
            }
        )  # fmt: skip
    else:
        say(f"\nThe scorecard refuses {summary.people} of {len(applicants)} applicants. Can they be approved by what they can do?\n")
        tell(str(stuck))
        say("\nPrecluded: fewer than 1 in 10 of the things they can do would get them approved (first five).")
        if not quiet:
            show_table(precluded[["applicant", "n", "hits", "rho", "lower", "upper", "exactness", "verdict"]], most=5)
        say("\nGameable: more than 1 in 10 of the things they can do turn the refusal around. The nearest change found for some of them:")
        if not quiet:
            for label in gameable["applicant"].head(3):
                moves = stuck.change(label)
                steps = ", ".join(f"{name} {_short(old)} → {_short(new)}" for name, old, new in moves.to_numpy().tolist())
                rho = stuck.table["rho"][label]
                say(f"  applicant {label} (responsiveness {rho:.0%}): {steps}")
            say("\nNext: budge init YOUR.csv -o model.yaml, then budge check model.yaml YOUR.csv, then budge audit.")
    if out is not None:
        stuck.save(out, overwrite=overwrite)
        say(f"Saved to {out}.")
    if report is not None:
        stuck.to_html(report, by=["housing"], title="Lending: who can turn a refusal around", overwrite=overwrite)
        say(f"Wrote {report}; open it in a browser.")


def _short(value: object) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else str(value)
