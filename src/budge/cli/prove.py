"""``budge prove``: who can attain the target, who cannot whatever they do, and for whom that stays open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.layout import Column, column
from budge.cli.models import Model, Trust, models_of
from budge.cli.shared import (
    Data,
    FeatureLabels,
    Id,
    LevelLabels,
    OnInvalid,
    Output,
    PeopleName,
    Population,
    Project,
    Read,
    TargetName,
    head,
    people_of,
    progress_bar,
    say,
    show_columns,
    spec_of,
    wording_of,
)  # fmt: skip
from budge.errors import OutputExistsError, StorageError, together

if TYPE_CHECKING:
    from budge.audit.proofs import Proofs
    from budge.wording import Wording

__all__ = ["register"]

ORDER = ("impossible", "possible", "certain", "unresolved")
STYLES = {"impossible": "none", "possible": "above", "certain": "above"}
FEW, SOME, MOST_RANKED = 6, 4, 2000  # people without a way and others who are named, and who are put in order


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("prove")(prove)


def prove(
    spec: Annotated[Path, typer.Argument(help="The spec file of the interaction model.")],
    data: Data,
    target: Annotated[str, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")],
    model: Model,
    population: Population = "all",
    n: Annotated[int, typer.Option("-n", help="Draws per person before a proof is tried.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    seconds: Annotated[float | None, typer.Option(help="Seconds per proof at most; without it every run gives the same answer.")] = None,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="A column of the data that is not for the model, e.g. the outcome.")] = None,
    label: Id = None,
    read: Read = None,
    on_invalid: OnInvalid = "error",
    jobs: Annotated[int, typer.Option(help="Worker processes; -1 for all cores.")] = 1,
    trust: Trust = None,
    people_name: PeopleName = "",
    target_name: TargetName = "",
    feature_label: FeatureLabels = None,
    level_label: LevelLabels = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the table to this .csv or .parquet file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that exists.")] = False,
    project: Project = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a record instead of sentences.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Prove for every person whether some action leads to the target."""
    import budge
    from budge.table_files import check_rows_path, write_rows
    from budge.targets import parse_target
    from budge.wording import check_names

    if out is not None:
        check_rows_path(out)
    if out is not None and out.exists() and not overwrite:
        raise OutputExistsError("exists already", where=str(out), remedy="choose another file, or --overwrite")
    if out is not None and not out.absolute().parent.is_dir():
        raise StorageError("its folder does not exist", where=str(out), remedy="make the folder, or choose another file")
    wording, im, people, named = together(
        lambda: wording_of(people_name, target_name, None, feature_label, level_label),
        lambda: spec_of(spec, quiet=quiet),
        lambda: people_of(data, drop, label=label, read=read),
        lambda: models_of(model, output, cutoff, trust),
    )
    check_names(wording, im, shell=True)
    classes = next((p.classes for p in named.values() if p.classes is not None), None)
    design = budge.Design(threshold=0, testing=False, on_invalid=on_invalid)
    with progress_bar("people", quiet=quiet or as_json) as progress:
        found = budge.prove(
            named, people, im, target=parse_target(target, classes=classes), n=n, seed=seed, population=population, seconds=seconds, n_jobs=jobs,
            progress=progress or False, design=design, execution=budge.Execution(wording=wording),
        )  # fmt: skip
    if out is not None:
        write_rows([found.table.reset_index(names="person")], out, overwrite=overwrite)
    if as_json:
        echo_json(found.to_dict())
    elif not quiet:
        for k, name in enumerate(named):
            if k:
                say()
            _show(found, name)
        from budge.cli.answers import show_notes

        say()
        show_notes(found.audit.notes)
        say("A proof covers this model, this interaction model and these people.")
        if out is not None:
            say(f"Saved to {out}.")


def _show(found: Proofs, model: str) -> None:
    """Print who can attain the target under one model, who cannot, and for whom that stays open."""
    from budge.audit.summary import heads
    from budge.cli.answers import per_cent
    from budge.cli.people import Chosen, closest, listed, moves, short_of
    from budge.cli.terminal import show_bars

    audit, nouns = found.audit, found.audit.wording
    table = found.of_model(model)
    tally = {status: int((table["status"] == status).sum()) for status in table["status"].unique()}
    shown = [*(s for s in ORDER if tally.get(s) or s in ("impossible", "possible", "unresolved")), *(s for s in tally if s not in ORDER)]
    named = f"{model}: " if len(audit.models) > 1 else ""
    say(named + told_proofs(table, tally, nouns, audit.info))
    if not len(table):
        return
    say()
    show_bars([(s.replace("_", " "), tally.get(s, 0), per_cent(tally.get(s, 0), len(table))) for s in shown], [STYLES.get(s, "") for s in shown])
    merged = table.drop(columns=["prediction"]).join(audit.of_model(model)[["n", "hits", "rho"]]) if table.index.is_unique else None
    if merged is None:
        return

    def some(status: str, order: list[str], rising: bool, most: int) -> Chosen:
        own = merged[merged["status"] == status].sort_values(order, ascending=rising, kind="stable")
        return Chosen(audit, model, own.head(most), len(own))

    none = some("impossible", ["n"], False, MOST_RANKED)
    if none.many:
        near = closest(none.with_law("listed"), most=FEW)
        target = nouns.target_name or "the target"
        head(f"Impossible: {heads(none.many)}, {f'closest to {target} first' if near is not None else 'listed ones with most points first'}")
        few = near[0] if near is not None else Chosen(audit, model, none.rows.head(FEW), none.many)
        how = few.rows["method"].replace({"exact": "listed"}).tolist()
        points = Column("points", [f"{n:,}" if law == "listed" else "–" for n, law in zip(few.rows["n"], how)], right=True, spare=1)
        show_columns(listed(few, "", nouns, Column("method", how), points, *short_of(near)), more=none.many - len(few.rows))
    able = some("possible", ["rho", "hits"], True, SOME)
    if able.many:
        head(f"Possible: {heads(able.many)}, fewest ways first")
        hits, points = (column(called, able.rows[key].tolist(), spare=2) for called, key in (("hits", "hits"), ("points", "n")))
        show_columns(listed(able, "", nouns, hits, points, Column("witness", moves(able, nouns, least=False)[1])), more=able.more)
    open_ = some("unresolved", ["n"], True, SOME)
    if open_.many:
        head(f"Unresolved: {heads(open_.many)}")
        show_columns(listed(open_, "", nouns, Column("why", open_.rows["reason"].tolist())), more=open_.more)


def told_proofs(table: Any, tally: Mapping[str, int], nouns: Wording, info: Mapping[str, Any]) -> str:
    """Return in words who can attain the target and who cannot."""
    many, target = len(table), nouns.target(info)
    if not many:
        return "Nobody was asked about: the population leaves none. Choose another with --population."
    none, can, open_ = (tally.get(s, 0) for s in ("impossible", "possible", "unresolved"))
    every, odd = tally.get("certain", 0), many - sum(tally.get(s, 0) for s in ORDER)
    laws = sorted(set(table.loc[table["status"] == "impossible", "method"]))
    how = {"listed": "by listing every point", "proved": "from the model's structure"}
    by = " or ".join(how[law] for law in laws)
    whom = nouns.people(many) if info["population"] != "all" else "person" if many == 1 else "people"  # the user's noun may leave some of them out
    told = [f"{none:,} of {many:,} {whom} cannot reach {target}" + (f": impossible, proved {by}." if none else ".")]
    told += [f"{can:,} can: {'this one has' if can == 1 else 'each has'} a point at which the model gives it."] if can else []
    told += [f"{every:,} cannot miss it (proved)."] if every else []
    told += [f"{open_:,} {'is' if open_ == 1 else 'are'} unresolved." if open_ else "None is unresolved."]
    told += [f"{odd:,} could not be asked about."] if odd else []
    return " ".join(told)
