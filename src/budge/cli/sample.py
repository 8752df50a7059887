"""``budge sample``: the reachable points of a table, to be sent to the owner of a model."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from budge.cli import echo_json
from budge.cli.shared import Claim, Data, Id, Method, OnInvalid, Project, Read, people_of, progress_bar, say, say_command, spec_of
from budge.errors import together

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("sample")(sample)


def sample(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the points go: .parquet or .csv.")],
    threshold: Annotated[float, typer.Option(help="The threshold of the claim to come.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of a single verdict.")] = 0.05,
    claim: Claim = "below",
    n: Annotated[int | None, typer.Option("-n", help="Draws per person; from the plan unless given.")] = None,
    width: Annotated[float | None, typer.Option(help="Plan n for intervals of at most this width.")] = None,
    margin: Annotated[float | None, typer.Option(help="Plan n to find people this far from the threshold.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    method: Method = "auto",
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Write the distinct points that an audit will ask about, each with a key; `budge audit --predictions` finishes it."""
    import budge
    from budge.audit.export import write_points
    from budge.audit.summary import heads
    from budge.tables import masked

    im, people, design = together(
        lambda: spec_of(spec, quiet=quiet),
        lambda: people_of(data, drop, label=label, read=read),
        lambda: budge.Design(threshold=threshold, alpha=alpha, claim=claim, n=n, width=width, margin=margin, seed=seed, method=method, on_invalid=on_invalid),
    )
    with progress_bar("points", quiet=quiet or as_json) as progress:
        count = None if progress is None else (lambda done: progress(done, 0))
        total = write_points(im, people, design, out, overwrite=overwrite, progress=count)
    if as_json:
        echo_json(
            {
                "file": str(out),
                "points": total,
                "people": len(people),
                "n": design.n,
                "seed": design.seed,
                "spec_digest": im.digest,
            }
        )
    elif not quiet:
        say(f"{total:,} distinct {'point' if total == 1 else 'points'} of {heads(len(people))} in {out} (n = {design.n:,} {design.why_n}).")
        say("The model's owner returns a file with the columns key and prediction; then")
        usual = (("--alpha", alpha, 0.05), ("--claim", claim, "below"), ("--method", method, "auto"), ("--on-invalid", on_invalid, "error"))
        kept = "".join(f" {option} {value}" for option, value, default in usual if value != default)
        names = [*(word for column in drop or () for word in ("--drop", column)), *(("--id", label) if label else ())]
        kept += "".join(f" {shlex.quote(word)}" for word in names)
        kept += "".join(f" --read {shlex.quote(word)}" for word in read or ())
        files = shlex.join([str(spec), masked(data)])
        say_command(f"budge audit {files} --predictions FILE --target … -n {design.n} --seed {seed} --threshold {threshold}{kept}")
