"""Several targets in one run: an ordinary audit for each, and every model is asked once about the points that they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import pandas as pd

from budge.audit.ask import predictors_of
from budge.audit.counting import Remembered
from budge.audit.design import Design, Execution, question_of
from budge.audit.loading import RECORD, runs_in
from budge.audit.result import Audit
from budge.audit.run import run_audit, warn_of
from budge.errors import BudgeError, InputError, OutputExistsError, Problem, StorageError, nearest
from budge.interaction import InteractionModel
from budge.models import Predictor
from budge.targets import Target
from budge.wording import Wording

__all__ = ["Audits", "Options", "audit_targets", "check_folder", "check_name", "check_targets", "run_targets"]

_NAME = re.compile(r"[^\W_][\w.-]{0,59}")


class Options(TypedDict, total=False):
    """The arguments of `budge.audit` besides the target."""

    threshold: float | None
    alpha: float | None
    claim: Literal["below", "above"] | None
    n: int | None
    seed: int | None
    population: Any
    method: Literal["auto", "exact", "sample"] | None
    sequential: bool | None
    proposal: Mapping[str, Any] | None
    journal: str | Path | None
    progress: Callable[[int, int], None] | bool | None
    harm: Literal["below", "above"] | None
    adjust: Literal["bh", "holm", "bonferroni", "none"]
    groups: str | Sequence[str] | Mapping[str, Mapping[Any, str] | None]
    prove: bool
    n_jobs: int
    wording: Wording | Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Audits(Mapping[str, Audit]):
    """One audit per target, by name: each is what `budge.audit` of that target alone returns, with its own population, verdicts and adjustment."""

    audits: Mapping[str, Audit] = field(repr=False)

    def __getitem__(self, target: str) -> Audit:
        if target not in self.audits:
            raise InputError("no such target", where="target", got=target, remedy=nearest(target, self.audits))
        return self.audits[target]

    def __contains__(self, target: object) -> bool:
        return target in self.audits

    def __iter__(self) -> Iterator[str]:
        return iter(self.audits)

    def __len__(self) -> int:
        return len(self.audits)

    @cached_property
    def table(self) -> pd.DataFrame:
        """The tables of all audits, one below the other, with the name of the target in the first column."""
        tables = []
        for name, audit in self.audits.items():
            part = audit.table.copy()
            part.insert(0, "target", name)
            tables.append(part)
        joined = pd.concat(tables)
        joined.index.name = tables[0].index.name
        return joined

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write each audit to the folder of its name inside this one."""
        place = Path(folder)
        check_folder(place, list(self.audits))
        for name in () if overwrite else self.audits:
            if (place / name / RECORD).exists():
                raise OutputExistsError("exists already", where=str(place / name), remedy="choose another folder, or overwrite")
        for name, audit in self.audits.items():
            audit.save(place / name, overwrite=overwrite)
        return place

    @classmethod
    def load(cls, folder: str | Path) -> Audits:
        """Read the runs inside a folder."""
        place = Path(folder)
        if (place / RECORD).exists():
            raise StorageError("is one run, not a folder of several", where=str(place), remedy="budge.Audit.load reads it")
        found = runs_in(place)
        if not found:
            raise StorageError("there are no saved runs in this folder", where=str(place), remedy="save some with audits.save(folder)")
        return cls({inner.name: Audit.load(inner) for inner in found})

    def __str__(self) -> str:
        return "\n\n".join(f"{name}\n{audit}" for name, audit in self.audits.items())

    def __repr__(self) -> str:
        return f"<Audits of {len(self)} targets: {', '.join(self.audits)}>"

    def _repr_html_(self) -> str:
        from budge.report.notebook import show_html

        return show_html(str(self), table=self.table)


def audit_targets(
    model: Any, X: Any, im: Any, targets: Mapping[str, Any], *, design: Design | None = None, execution: Execution | None = None, **options: Unpack[Options]
) -> Audits:
    """Audit several targets of the same people: draw each person's points once, ask every model about them once, and judge each target by itself.

    Parameters
    ----------
    model, X, im
        As for `budge.audit`.
    targets
        Targets by name, such as ``{"approval": 1, "low_rate": "score >= 0.8"}``. A name is what the target is called in sentences, an underscore for a
        blank, and the folder of its run.
    design, execution, options
        As for `budge.audit`; a journal is a folder with one journal per target.

    Returns
    -------
    Audits
        By name, the very audits that `budge.audit` of each target alone returns: nothing is adjusted for the number of targets. Of a stream of people, and
        with workers or a cluster, the models are asked for each target.

    Examples
    --------
    >>> import pandas as pd, budge
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> X = pd.DataFrame({"income": [1, 7]})
    >>> audits = budge.audit_targets(lambda t: t["income"] // 4, X, im, {"fair": [1, 2], "best": 2})
    >>> audits["best"].table["rho"].tolist()
    [0.2, 0.2]
    """
    asked, how = question_of(design, execution, dict(options))
    check_targets(list(targets))
    wording, place = Wording.of(how.wording), None if how.journal is None else Path(how.journal)
    if wording.target_name:
        raise InputError("names one of several targets", where="target_name", got=wording.target_name, remedy="targets are called by their names")
    if place is not None:
        check_folder(place, list(targets))
    questions, ways = {}, {}
    for name, target in targets.items():
        questions[name] = asked.but(target=target)
        ways[name] = how.but(wording=replace(wording, target_name=name.replace("_", " ")), journal=None if place is None else place / name)
    return Audits(run_targets(model, X, im, questions, ways))


def run_targets(model: Any, X: Any, im: Any, designs: Mapping[str, Design], executions: Mapping[str, Execution]) -> dict[str, Audit]:
    """Return the audit of each design, which are about different targets; an error carries those that are finished in its `results`."""
    predictors = predictors_of(model, table=isinstance(im, InteractionModel))
    _check_known(predictors, designs, table=isinstance(im, InteractionModel))
    memory, done = dict[str, Remembered](), dict[str, Audit]()
    try:
        for name, design in designs.items():
            done[name] = run_audit(predictors, X, im, design, executions[name], memory)
    except BudgeError as error:
        unfinished = getattr(error, "result", None)
        with suppress(AttributeError):
            error.results = Audits({**done, **({} if unfinished is None else {name: unfinished})})  # type: ignore[attr-defined]
        raise
    warn_of(note for audit in done.values() for note in audit.notes)
    return done


def _check_known(predictors: Mapping[str, Predictor], designs: Mapping[str, Design], *, table: bool) -> None:
    """Raise the problems of all targets together, before anything is asked."""
    classes = next((p.classes for p in predictors.values() if p.classes is not None and p.output == "label"), None)
    found = list[Problem]()
    for name, design in designs.items():
        try:
            target = design.aimed(classes).target
        except InputError as error:
            found += error.at(f"targets: {name}").problems
            continue
        assert isinstance(target, Target)
        for predictor in predictors.values() if table else ():
            found += [replace(p, where=f"targets: {name}") for p in target.check(predictor) if p.severity == "error"]
    InputError.raise_if(list(dict.fromkeys(found)))


def check_targets(names: Sequence[str]) -> None:
    """Raise an error where there are no targets, or names of targets that are no names of folders."""
    if not names:
        raise InputError("no target is given", where="targets", got=list(names), remedy='give targets by name, such as {"approval": 1}')
    for name in names:
        check_name(name)
    folded = [name.casefold() for name in names]
    for name in names:
        if folded.count(name.casefold()) > 1:
            raise InputError("two targets have names that differ at most in capitals", where="targets", got=name, remedy="call one of them otherwise")


def check_name(name: object) -> None:
    """Raise an error where a text cannot be the name of a target."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name.endswith(".") or name == RECORD:
        remedy = "begin with a letter or digit; letters, digits, underscores, points and hyphens may follow"
        raise InputError("cannot be the name of a target, which is that of a folder", where="targets", got=name, remedy=remedy)


def check_folder(place: Path, names: Sequence[str]) -> None:
    """Raise an error where a folder holds another run, or runs of other targets, than those that are to stand in it."""
    if (place / RECORD).exists():
        raise OutputExistsError("holds the run of one target", where=str(place), remedy="choose another folder")
    strangers = [inner.name for inner in runs_in(place) if inner.name not in names]
    if strangers:
        raise OutputExistsError("holds a run of another target", where=str(place), got=strangers[0], remedy="choose another folder")
