"""Logs of earlier runs become answers, so that they can be tested without a new call: one module per format, told apart by content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from budge.errors import BudgeError, DataError, InputError, StorageError, nearest
from budge.llm.answers import Answers
from budge.llm.logs.helm import STATE
from budge.llm.logs.opening import first_record, is_packed, starts_with
from budge.llm.logs.rows import Log, answers_from, joined, refuse_other_settings

__all__ = ["FORMATS", "read_log", "read_logs"]

FORMATS = ("inspect", "lm-eval", "promptfoo", "garak", "helm", "openai-evals", "table")
_ENDS = (".eval", ".json", ".jsonl")  # of the files that a folder of logs is searched for


def read_log(
    path: str | Path | Sequence[str | Path],
    *,
    interaction: str | None = None,
    base: str | None = None,
    model: str | None = None,
    score: str | None = None,
    values: Mapping[Any, bool] | None = None,
    cutoff: float | str | None = None,
    category: str | None = None,
    filter: str | None = None,
    columns: Mapping[str, str] | None = None,
    match: str = "text",
    format: str | None = None,
) -> Answers:
    """Return the answers in a log, a folder of logs, or several: of Inspect, lm-evaluation-harness, promptfoo, garak, HELM, OpenAI's evals, or a table.

    Parameters
    ----------
    path
        A file, a folder (searched with the folders in it), or a list of those. A task of Inspect that was retried counts once: each draw as the
        newest log has it. With several tasks, prompts are named ``task/id``.
    interaction : str, optional
        What was done to the prompts, where the log holds one interaction; otherwise the names in the log are kept, "base" where it has none.
    base : str, optional
        The interaction of the log that leaves prompts as they stand, such as a prompt template of promptfoo.
    model : str, optional
        A name for the model; most logs have one.
    score : str, optional
        The scorer (``scorer/key`` where its score is a dict), metric, detector or column; needed where there are several.
    values : mapping, optional
        What counts as a hit and what as a miss. By default C, 1 and True are hits, I, 0 and False are misses. Everything else is unresolved.
    cutoff : float or text, optional
        Instead: numbers from here on are hits; ``"< 3"``, ``"<= 3"`` and ``"> 3"`` are read too.
    category : str, optional
        The field of a sample that holds its category; by default the task, where there are several.
    filter : str, optional
        Of lm-evaluation-harness: which filter's samples to take; needed where there are several.
    columns : mapping, optional
        Of a table: which column holds which field, such as ``{"prompt": "qid"}``.
    match : {"text", "ids"}
        Prompts of equal identifiers must have equal texts before any rewrite. "ids" matches by identifiers alone, for a log whose dataset
        was rewritten beforehand.
    format : str, optional
        One of `FORMATS`, where the content does not tell.

    Returns
    -------
    Answers
        With the scheme ``per_prompt``. What failed, met a limit, or was planned and is not there is unresolved.
    """
    places = [Path(one) for one in (path if isinstance(path, list | tuple) else [path])]  # type: ignore[arg-type]
    if format is not None and format not in FORMATS:
        raise InputError("unknown format of a log", where="format", got=format, remedy=nearest(format, FORMATS))
    files: dict[str, list[Path]] = {}
    for place in places:
        if not place.exists():
            raise StorageError("there is no such file or folder", where=str(place), remedy="give a log or a folder of logs")
        found = list(_inside(place)) if place.is_dir() and format is None else [(format or _kind(place), place)]
        if not found:
            raise DataError("no log is in this folder", where=str(place), remedy=f"formats: {', '.join(FORMATS)}; --format (format=) names one")
        for kind, one in found:
            if one not in files.setdefault(kind, []):
                files[kind].append(one)
    if len(files) > 1:
        got = {kind: some[0].name for kind, some in files.items()}
        raise InputError("logs of several formats are given", where="path", got=got, remedy="read them apart")
    ((kind, chosen),) = files.items()
    log = _read(kind, chosen, places[0].name, model=model, score=score, filter=filter, columns=columns)
    return answers_from(
        log, interaction=interaction, base=base, model=model, score=score, values=values, cutoff=cutoff, category=category, match=match
    )  # fmt: skip


def read_logs(paths: Mapping[str, str | Path | Sequence[str | Path]], **options: Any) -> Answers:
    """Return one log, or several, per interaction as one table: ``read_logs({"base": one, "misspell": two})``. Options are those of `read_log`.

    Raises
    ------
    DataError
        Prompts of equal identifiers have different texts; a run is given twice; or one model was asked with different settings.
    """
    if not paths:
        raise DataError("no logs", where="paths", got=paths, remedy='{"base": "one.eval", "misspell": "two.eval"}')
    parts = {name: read_log(path, interaction=name, **options) for name, path in paths.items()}
    runs: dict[str, str] = {}
    settings: dict[str, Mapping[str, Any]] = {}
    for name, part in parts.items():
        for run in filter(None, part.info["runs"]):
            if runs.setdefault(run, name) != name:
                remedy = "give the logs of one task under one name: they are tries of one run, and each draw counts once"
                raise DataError(f"is of the same run as {runs[run]}", where=name, got=part.info["source"], remedy=remedy)
        for model, found in part.info["settings"].items():
            refuse_other_settings(model, settings.setdefault(model, found), found)
    return Answers.concat(list(parts.values()))


def _read(
    kind: str, places: list[Path], source: str, *, model: str | None, score: str | None, filter: str | None, columns: Mapping[str, str] | None
) -> Log:  # fmt: skip
    """Return all files of one format as one log."""
    for name, value, owner in (("filter", filter, "lm-eval"), ("columns", columns, "table")):
        if value is not None and kind != owner:
            raise InputError(f"a log of {kind} has no {name}", where=name, got=value, remedy="leave it out")
    if kind == "inspect":
        from budge.llm.logs.inspect_log import read_inspect

        return read_inspect(places, source)
    return joined([_one(kind, place, model, score, filter, columns) for place in places], source)


def _one(kind: str, place: Path, model: str | None, score: str | None, filter: str | None, columns: Mapping[str, str] | None) -> Log:
    from budge.llm.logs.garak import read_garak
    from budge.llm.logs.helm import read_helm
    from budge.llm.logs.lm_eval import read_lm_eval
    from budge.llm.logs.openai_evals import read_openai_evals
    from budge.llm.logs.promptfoo import read_promptfoo
    from budge.llm.logs.tables import read_table

    try:
        if kind == "lm-eval":
            return read_lm_eval(place, model=model, filter=filter)
        if kind == "table":
            return read_table(place, model=model, score=score, columns=columns)
        return {"garak": read_garak, "helm": read_helm, "openai-evals": read_openai_evals, "promptfoo": read_promptfoo}[kind](place)
    except BudgeError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:  # a field is not there, or is something else
        what = f"is not as {kind} writes it ({type(error).__name__}: {error})"
        raise DataError(what, where=str(place), remedy="is it of another version, or damaged?") from error


def _inside(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the logs in a folder, with their formats; files that are no logs are passed over."""
    if (folder / STATE).exists():
        yield "helm", folder
        return
    try:
        places = sorted(folder.iterdir())
    except OSError as error:
        raise StorageError(f"cannot be read: {error.strerror}", where=str(folder)) from error
    for place in places:
        if place.is_dir():
            if not place.is_symlink():  # which may lead back here
                yield from _inside(place)
        elif place.is_file() and place.suffix.lower() in _ENDS and (kind := _known(place)) and kind != "table":
            yield kind, place


def _kind(place: Path) -> str:
    if place.is_dir():
        return "helm"
    kind = _known(place)
    if not kind:
        remedy = f"one of {', '.join(FORMATS)}: --format (format=) names one where the content does not tell"
        raise DataError("is no log of a known format", where=str(place), got=place.name, remedy=remedy)
    return kind


#: Keys of the first record that tell a format.
_SIGNS = {
    "garak": ({"entry_type"}, {"attempt_id", "detector"}), "lm-eval": ({"doc_id"},), "openai-evals": ({"spec"},), "promptfoo": ({"evalId", "results"},),
    "inspect": ({"eval", "version"},), "table": ({"budge answers"}, {"prompt", "hit"}, {"prompt", "score"}),
}  # fmt: skip


def _known(place: Path) -> str:
    """Return the format of a file by what is in it; an empty text where it is none of these."""
    if is_packed(place):
        return "inspect"
    if starts_with(place, b"PAR1") or place.suffix.lower() in (".csv", ".parquet"):
        return "table"
    keys = set(first_record(place)) if place.suffix.lower() in _ENDS else set()
    return next((kind for kind, signs in _SIGNS.items() if any(sign <= keys for sign in signs)), "")
