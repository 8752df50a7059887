"""The solver `budge/rewrite`: one rewrite per sample and epoch, then the task's way of answering."""

from __future__ import annotations

from typing import Any

from inspect_ai.model import ChatMessageSystem, get_model
from inspect_ai.solver import Generate, Solver, TaskState, multiple_choice, solver
from inspect_ai.solver import generate as generating

from budge.errors import InputError, SpecError, nearest
from budge.llm.inspect_record import KEY, Record, digest_of_sample, rewrite_stream, system_of
from budge.llm.interactions.base import Interaction
from budge.llm.interactions.registry import as_interaction
from budge.llm.prompts import Prompt

__all__ = ["rewrite", "with_system"]

_THEN = ("auto", "generate", "multiple_choice", "nothing")


@solver
def rewrite(interaction: str, seed: int = 0, then: str = "auto") -> Solver:
    """Rewrite the user's last message, once per sample and epoch: ``--solver budge/rewrite -S interaction=typos --epochs 20``.

    Parameters
    ----------
    interaction
        As on the command line of budge: ``typos``, ``misspell(0.1)``, ``"typos(most=2) | case(upper)"``.
    seed
        Of the rewrites. A rewrite depends on the seed, the prompt, the interaction and the epoch, and on nothing else.
    then
        ``--solver`` replaces the task's solver, so this one answers too: "generate", "multiple_choice", or "auto", which is the latter where the
        sample has options. "nothing" only rewrites, for `Task(setup=rewrite(...))` and chains.
    """
    way = as_interaction(interaction)
    if then not in _THEN:
        raise InputError("no such way to continue", where="then", got=then, remedy=nearest(then, _THEN))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if Record.of(state.metadata) is None:  # a dataset that was drawn beforehand is left alone
            await _draw(state, way, seed)
        if then == "nothing":
            return state
        chosen = multiple_choice() if then == "multiple_choice" or (then == "auto" and state.choices) else generating()
        return await chosen(state, generate)

    return solve


async def _draw(state: TaskState, way: Interaction, seed: int) -> None:
    message = state.user_prompt
    target = list(state.target)
    given = Prompt(
        str(state.sample_id), message.text, expected="|".join(target), system=system_of(state.messages), options=tuple(c.value for c in state.choices)
    )  # fmt: skip
    digest = digest_of_sample(_Sample(state.input, given.options, target))
    index = state.epoch - 1
    after = await way.change(given, rewrite_stream(seed, digest, way.name, index), _ask)
    if (after.options, after.expected) != (given.options, given.expected):
        remedy = f"make the draws in the dataset: inspect eval budge/under -T task=… -T interactions={way.kind}"
        raise SpecError("changes options or the expected answer, which a solver cannot: scorers read the dataset's", where=way.name, remedy=remedy)
    message.text = after.text  # images and other parts of the message stay
    state.messages = with_system(state.messages, after.system)
    record = Record(
        prompt=str(state.sample_id), digest=digest, interaction=way.name, draw=index, seed=seed, original=given.text, expected=given.expected,
        unchanged=after == given,
    )  # fmt: skip
    state.metadata[KEY] = record.to_dict()


class _Sample:
    """The fields of a state that identify its prompt, named as in a sample."""

    def __init__(self, given: Any, choices: tuple[str, ...], target: list[str]):
        self.input, self.choices, self.target = given, choices, target


def with_system(messages: list[Any], text: str) -> list[Any]:
    """Return the messages with this system message in the place of theirs."""
    if text == system_of(messages):
        return messages
    return [ChatMessageSystem(content=text), *(message for message in messages if message.role != "system")]


async def _ask(model: str, text: str) -> str:
    """Return what a model answers that an interaction asks; the model of the role "rewriter" where it names none."""
    return str((await get_model(model or None, role="rewriter").generate(text, cache=False)).completion)
