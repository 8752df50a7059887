"""``budge serve``: the page on which an auditor explores, on this machine only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from budge.cli import echo_json
from budge.cli.models import MODEL, Trust, models_of
from budge.cli.shared import (
    PEOPLE,
    Claim,
    FeatureLabels,
    GroupLabels,
    Harm,
    Id,
    LevelLabels,
    Output,
    PeopleName,
    Population,
    Read,
    TargetName,
    people_of,
    run_of,
    runs_of,
    say,
    wording_of,
)  # fmt: skip
from budge.errors import InputError

if TYPE_CHECKING:
    from budge.models import Predictor
    from budge.web import Question
    from budge.wording import Wording

__all__ = ["register"]

MOST_RUNS = 50


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("serve")(serve)


def serve(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of saved runs, or a folder that holds some: their specs, designs and results.")] = None,
    spec: Annotated[Path | None, typer.Option(help="The spec file of the interaction model.")] = None,
    data: Annotated[str | None, typer.Option(metavar="FILE", help=PEOPLE)] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="MODEL", help=f"{MODEL}; several as NAME=MODEL to compare them.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="A label, 'score >= 0.7', 'lower', 'higher' or 'different', or 'not' before one.")] = None,
    demo: Annotated[bool, typer.Option("--demo", help="The embedded lending demo: nothing else is needed.")] = False,
    threshold: Annotated[float, typer.Option(help="The threshold at the start; the page can change it.")] = 0.1,
    alpha: Annotated[float, typer.Option(help="The error of a single verdict.")] = 0.05,
    claim: Claim = "below",
    n: Annotated[int | None, typer.Option("-n", help="Draws per person; from the plan unless given.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.")] = 0,
    population: Population = "outside",
    by: Annotated[list[str] | None, typer.Option(help="A column of groups, shown beside each person; may repeat.")] = None,
    output: Output = "auto",
    cutoff: Annotated[float | None, typer.Option(help="Turn the model's score into a label at this cutoff.")] = None,
    drop: Annotated[list[str] | None, typer.Option(help="A column of the data that is not for the model.")] = None,
    label: Id = None,
    read: Read = None,
    harm: Harm = None,
    people_name: PeopleName = "",
    target_name: TargetName = "",
    group_label: GroupLabels = None,
    feature_label: FeatureLabels = None,
    level_label: LevelLabels = None,
    trust: Trust = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 0,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one record with the address.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Explore people, constraints and models on a local page; Ctrl-C ends it."""
    from budge.web.server import Address
    from budge.web.server import serve as serve_page

    if not (quiet or as_json):
        say("preparing: reading the people, asking the models about a few of them …", err=True)
    wording = wording_of(people_name, target_name, group_label, feature_label, level_label)
    given = {"runs": runs, "spec": spec, "data": data, "model": model}
    if demo:
        extra = [name for name, value in given.items() if value]
        if extra:
            raise InputError("the demo brings its own people and models", where="--demo", got=extra[0], remedy="leave one of them out")
        questions = [_demo(threshold, seed)]
    elif runs:
        if spec is not None:
            raise InputError("a run has its own spec", where="--spec", got=str(spec), remedy="leave out the run or --spec")
        people = people_of(data, drop, label=label, read=read) if data is not None else None
        folders = _folders(runs)
        questions = [_saved(run, people, model, output, cutoff, trust, wording, alone=len(folders) == 1) for run in folders]
    else:
        missing = [f"--{name}" for name in ("spec", "data", "model") if not given[name]] + ([] if target is not None else ["--target"])
        if missing:
            raise InputError(
                f"give a saved run, or {', '.join(missing)}", remedy="or try: budge serve --demo"
            )
        assert spec is not None
        assert data is not None
        assert target is not None
        question = _fresh(
            spec, people_of(data, drop, label=label, read=read), models_of(model or [], output, cutoff, trust), target, threshold=threshold, alpha=alpha,
            claim=claim, n=n, seed=seed, population=population, harm=harm, groups=by or (), wording=wording,
        )  # fmt: skip
        questions = [question]

    def ready(address: Address) -> None:
        if as_json:
            echo_json(address.to_dict())
        elif not quiet:
            typer.echo(f"budge serves {_title(questions)} at\n\n  {address}\n\nfor this machine only. Ctrl-C ends it.")

    serve_page(questions, port=port, open_browser=open_browser and not as_json, ready=ready)


def _fresh(spec: Path, people: Any, models: Mapping[str, Predictor], target: str, **options: Any) -> Question:
    from budge.spec.files import read_text
    from budge.spec.reading import read_model
    from budge.targets import parse_target
    from budge.web import make_question
    from budge.wording import check_names

    classes = next((m.classes for m in models.values() if m.classes is not None), None)
    im = read_model(spec)
    check_names(options["wording"], im, people, shell=True)
    text = read_text(spec) if spec.suffix.lower() in (".yaml", ".yml") else ""
    return make_question(models, people, im, target=parse_target(target, classes=classes), text=text, title=im.name or spec.stem, **options)


def _title(questions: Sequence[Question]) -> str:
    return questions[0].title or "the page" if len(questions) == 1 else f"{len(questions)} runs"


def _folders(given: Sequence[Path]) -> list[Path]:
    """Return the folders of runs: those given, and the runs in one that is none itself."""
    found = [inner for folder in given for inner in runs_of(folder).values()]
    if len(found) > MOST_RUNS:
        raise InputError(f"at most {MOST_RUNS} runs are served at a time", where="runs", got=len(found), remedy="name the folders of fewer runs")
    return found


def _saved(
    run: Path, people: Any, model: list[str] | None, output: str, cutoff: float | None, trust: list[str] | None, wording: Wording, *, alone: bool
) -> Question:
    """Return a saved run to be explored, or to be read: without models and people, or beside other runs where they are not its own."""
    from budge.report.document import worded
    from budge.web import from_run

    saved = run_of(run).whole()
    title = str(saved.info["name"] or run.name) if alone else run.name
    models: Any = models_of(model, output, cutoff, trust) if model else None
    if models is not None and set(models) != set(saved.models):
        if len(models) != 1 or len(saved.models) != 1:
            raise InputError(
                "the run has other models", where="--model", got=", ".join(models), remedy=f"give {', '.join(f'{m}=MODEL' for m in saved.models)}"
            )
        models = {saved.models[0]: next(iter(models.values()))}
    own = worded(saved, wording, shell=True)
    try:
        return replace(from_run(saved, models, people, title=title), wording=own)
    except InputError:
        if alone or models is None:
            raise
        return replace(from_run(saved, title=title), wording=own)


def _demo(threshold: float, seed: int) -> Question:
    """Those whom the scorecard of ``budge demo`` refuses, beside one that does not look at savings."""
    from budge.datasets import lending, spec_path
    from budge.datasets.scorecard import Scorecard
    from budge.interaction import InteractionModel
    from budge.web import make_question

    data = lending(n=1500, seed=seed)
    train, outcome = data.X.iloc[:1000], data.y.iloc[:1000]
    models = {"scorecard": Scorecard.fit(train, outcome), "without savings": Scorecard.fit(train.drop(columns="savings"), outcome)}
    others = data.X.iloc[1000:]
    applicants = others[models["scorecard"].predict(others) == 0]
    path = spec_path("lending")
    im = InteractionModel.from_file(path)
    return make_question(
        models, applicants, im, target=1, threshold=threshold, seed=seed, harm="below", text=path.read_text(encoding="utf-8"),
        title=im.name, wording={"people_name": "refused applicants", "target_name": "approval"},
    )  # fmt: skip
