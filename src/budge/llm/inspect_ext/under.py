"""The task `budge/under`: a task of anybody's under several interactions in one eval. A sample per draw: its rewrite and its target are in the dataset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from inspect_ai import Epochs, Task, task_with
from inspect_ai import task as registered
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser

from budge.errors import DataError, InputError, Problem
from budge.llm.answers import BASE
from budge.llm.inspect_ext.metric import responsiveness
from budge.llm.inspect_ext.rewriting import with_system
from budge.llm.inspect_record import BETWEEN, KEY, Record, as_prompt, digest_of_sample, rewrite_stream
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.combine import unchanged
from budge.llm.interactions.registry import as_interaction
from budge.llm.prompts import Prompt, Prompts

__all__ = ["drawn", "under", "wrap"]


def drawn(samples: Iterable[Sample], interactions: Sequence[Interaction | str], *, n: int = 1, seed: int = 0) -> MemoryDataset:
    """Return a dataset with a sample per prompt, interaction and draw, round by round; prompts as they stand are the interaction "base".

    A sample's id is ``prompt~interaction~draw``, its metadata has the interaction and the record of the draw under "budge". Interactions that ask
    a model are refused here: keep their rewrites in a file (`rewrites`), or use the solver.
    """
    source = list(samples)
    names = [str(place if sample.id is None else sample.id) for place, sample in enumerate(source, 1)]
    prompts = [as_prompt(sample, name) for sample, name in zip(source, names)]
    ways = {BASE: unchanged().named(BASE), **{way.name: way for way in map(as_interaction, interactions)}}
    problems = [Problem("interactions", "has no place in a name", name) for name in ways if BETWEEN in name]
    if len(ways) < len(interactions) + 1:
        problems.append(Problem("interactions", "two have one name, or one is called base", list(interactions), "name them: few = typos(most=2)"))
    InputError.raise_if(problems)
    for way in ways.values():
        kept = way.check(Prompts(tuple(prompts)))
        if len(kept) < len(prompts):
            raise DataError(f"{way.name} cannot rewrite every prompt", where="interactions", got=len(prompts) - len(kept), remedy="leave those prompts out")
    if n < 1:
        raise InputError("a whole number, 1 or more", where="n", got=n)
    pairs = list(zip(source, prompts))
    return MemoryDataset([_draw(*pair, way, index, seed) for index in range(n) for way in ways.values() for pair in pairs], name="+".join(ways))


def _draw(sample: Sample, prompt: Prompt, way: Interaction, index: int, seed: int) -> Sample:
    copy = sample.model_copy(deep=True)
    digest = digest_of_sample(sample)
    after = way.changed(prompt, rewrite_stream(seed, digest, way.name, index))
    if isinstance(copy.input, str):
        copy.input = after.text if not after.system else with_system([ChatMessageUser(content=after.text)], after.system)
    else:
        users = [message for message in copy.input if message.role == "user"]
        if not users:
            raise DataError("has no message of the user", where=f"sample {prompt.id}", remedy="rewrites are of the user's last message")
        users[-1].text = after.text
        copy.input = with_system(copy.input, after.system)
    if after.options != prompt.options:
        copy.choices, several = list(after.options), after.expected.split("|")
        copy.target = several if isinstance(sample.target, list) else after.expected
    order = [prompt.options.index(option) for option in after.options] if after.options != prompt.options else None
    record = Record(prompt.id, digest, way.name, index, seed, prompt.text, after.expected, after == prompt and way.name != BASE, order)
    copy.id = BETWEEN.join((prompt.id, way.name, str(index)))
    copy.metadata = {**(copy.metadata or {}), "interaction": way.name, "original": prompt.text, KEY: record.to_dict()}
    return copy


def wrap(base: Task, interactions: Sequence[Interaction | str], *, n: int = 1, seed: int = 0, **test: Any) -> Task:
    """Return a task under interactions and as it stands: its solver, scorer and limits are its own, its metric is `responsiveness` with `test`.

    The task's own metrics are replaced, since an accuracy over a mixture of interactions has no meaning.
    """
    dataset = drawn(base.dataset, interactions, n=n, seed=seed)
    planned = Counter(str((sample.metadata or {})["interaction"]) for sample in dataset)
    metrics: list[Any] = [responsiveness(**test, planned=dict(planned))]
    # `task_with(metrics=...)` leaves the metrics of the scorers as they are; the constructor applies them.
    scorers = Task(dataset=dataset, scorer=base.scorer, metrics=metrics).scorer
    return task_with(base, dataset=dataset, epochs=Epochs(1), scorer=scorers, metrics=metrics)


@registered
def under(
    task: str, interactions: str | list[str] = "typos", n: int = 1, seed: int = 0, threshold: float = 0.5, claim: str = "below", alpha: float = 0.05,
    cutoff: float | None = None, task_args: dict[str, Any] | None = None,
) -> Task:  # fmt: skip
    """Run a registered task, or a task of a file, under interactions: ``inspect eval budge/under -T task=file.py@mine -T interactions=typos``.

    Several interactions are separated by ``;`` (or by commas, which Inspect reads as a list).
    """
    texts = interactions.split(";") if isinstance(interactions, str) else interactions
    found = _load(task, dict(task_args or {}))
    return wrap(found, [text.strip() for text in texts], n=n, seed=seed, threshold=threshold, claim=claim, alpha=alpha, cutoff=cutoff)


def _load(name: str, arguments: dict[str, Any]) -> Task:
    from inspect_ai._eval.loader import load_tasks  # Inspect has no public function that loads a task by its name

    found = load_tasks([name], arguments)
    if len(found) != 1:
        raise InputError("names one task", where="task", got=name, remedy="file.py@name")
    return found[0]
