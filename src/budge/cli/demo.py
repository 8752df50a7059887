"""``budge demo``: the main job on embedded data, offline, in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from budge.cli import echo_json
from budge.cli.shared import progress_bar, say
from budge.errors import OutputExistsError

if TYPE_CHECKING:
    from budge.audit.result import Audit

__all__ = ["register"]

WORDS = {"n_dependents": "dependents", "years_at_address": "years at the address"}


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
    """Train a lending model on synthetic data, and audit who can turn a refusal around."""
    import budge
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard

    if report is not None and report.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(report), remedy="choose another name, or --overwrite")
    data = lending(n=1500, seed=seed)
    model = Scorecard.fit(data.X.iloc[:1000], data.y.iloc[:1000])
    applicants = data.X.iloc[1000 : 1000 + people] if people <= 500 else lending(n=people, seed=seed + 1).X
    applicants = applicants.rename_axis("applicant")
    im = budge.InteractionModel.from_file(spec_path("lending"))
    told = as_json or quiet
    if not told:
        say(f"A lender trained a scorecard on 1,000 past loans. It refuses {_refused(model, applicants)}. What can they do about it within a year?\n")
    words = budge.Wording(people_name="refused applicants", target_name="approval", feature_labels=WORDS)
    with progress_bar("applicants", quiet=told) as progress:
        stuck = budge.audit(model, applicants, im, target=1, threshold=0.1, seed=seed, harm="below", progress=progress or False, wording=words)
    summary = stuck.summary()
    if as_json:
        verdicts = stuck.table["verdict"]
        found = {"precluded": int((verdicts == "below").sum()), "gameable": int((verdicts == "above").sum()), "refused": summary.people}
        echo_json({**found, "no_way": summary.no_way, "every_way": summary.every_way, **stuck.to_dict()})
    elif quiet:
        say(str(stuck))
    else:
        _show(stuck)
    if out is not None:
        stuck.save(out, overwrite=overwrite)
        if not told:
            say(f"Saved to {out}.")
    if report is not None:
        stuck.to_html(report, by=["housing"], title="Lending: who can turn a refusal around", overwrite=overwrite)
        if not told:
            say(f"Wrote {report}; open it in a browser.")


def _refused(model: Any, applicants: Any) -> str:
    """Return how many applicants are refused, in words."""
    many = int((np.asarray(model.predict(applicants)) != 1).sum())
    return f"{many:,} of {len(applicants):,} new applicants"


def _show(stuck: Audit) -> None:
    """Print the answer, the harmed, and a change that works for some of the others."""
    from budge.cli.answers import show_answer, show_people
    from budge.cli.layout import Column, figure
    from budge.cli.people import chosen, listed, moves
    from budge.cli.terminal import head, show_columns

    answer = show_answer(stuck, "model")
    show_people(stuck, "model", (), answer)
    others = chosen(stuck, "model", lambda t: t["verdict"] == "above", ["rho"], most=3)
    if others.many:
        head(f"A way: the smallest change found for {'one' if len(others.rows) == 1 else 'some'} of the others")
        rho, steps = [figure(v) for v in others.rows["rho"]], moves(others, stuck.wording)[1]
        show_columns(listed(others, "", stuck.wording, Column("ρ", rho, right=True), Column("change", steps)))
    say()
    say("Each verdict “below” is wrong with probability at most 5 %, and so is each “above”.")
    say("Next: budge init YOUR.csv -o model.yaml, budge check model.yaml YOUR.csv, budge audit.")
