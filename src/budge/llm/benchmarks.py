"""Small harmless benchmarks of our own, for tests and tutorials: facts, sentiment, requests that nobody can fulfil, mild messages."""

from __future__ import annotations

from importlib import resources

from budge.errors import InputError, nearest
from budge.llm.prompts import Prompts

__all__ = ["BENCHMARKS", "benchmark"]

#: What there is, and what it holds.
BENCHMARKS = {
    "facts": "40 simple questions with the answers that are accepted, in 5 categories",
    "sentiment": "40 short sentences, half of them positive and half negative, in 5 categories",
    "requests": "20 harmless requests that a text model can only decline: water my plants, tell me where my keys are",
    "messages": "100 messages: 40 mild insults, 40 grumbles, 20 friendly ones",
}


def benchmark(name: str) -> Prompts:
    """One of the built-in benchmarks.

    Examples
    --------
    >>> facts = benchmark("facts")
    >>> len(facts), facts[0].text, facts[0].expected
    (40, 'What is the capital of France?', 'Paris')
    """
    if name not in BENCHMARKS:
        raise InputError("no such benchmark", where="benchmark", got=name, remedy=nearest(name, BENCHMARKS))
    place = resources.files("budge.llm").joinpath("data", f"{name}.csv")
    with resources.as_file(place) as path:
        return Prompts.read(path)
