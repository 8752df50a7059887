"""A model behind an OpenAI-compatible address, and the label under which any model stands in tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from budge.errors import InputError, ModelError

__all__ = ["ChatModel", "labelled"]


@dataclass(frozen=True)
class ChatModel:
    """A model at an address that speaks OpenAI's chat protocol: a vLLM or llama.cpp server, a gateway, a vendor.

    Parameters
    ----------
    name
        The model's name at that address.
    base_url
        The address, with its ``/v1``.
    api_key
        Sent with each request; never shown, written or compared. Local servers take any.
    version
        Part of the run's identity: change it when the model behind the name changes.

    Examples
    --------
    >>> ChatModel("smollm2", "http://127.0.0.1:8080/v1", api_key="secret")
    ChatModel(name='smollm2', base_url='http://127.0.0.1:8080/v1', version='')
    """

    name: str
    base_url: str
    api_key: str = field(default="none", repr=False, compare=False)
    version: str = ""

    def __post_init__(self) -> None:
        if not self.base_url.lower().startswith(("http://", "https://")):
            raise ModelError("an address starts with http:// or https://", where="base_url", got=self.base_url)

    @property
    def model(self) -> str:
        """The name by which Inspect knows it."""
        return f"openai-api/local/{self.name}"


def labelled(models: Any) -> dict[str, Any]:
    """The models of a run by label: a mapping as it is; a name, a `ChatModel`, an Inspect model or a list of those by their names."""
    if isinstance(models, Mapping):
        given = dict(models)
    else:
        several = list(models) if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        given = {}
        for model in several:
            label = model if isinstance(model, str) else model.name if isinstance(model, ChatModel) else str(model)
            if label in given:
                raise InputError("two models have the same name", where="models", got=label, remedy="give a dict of names")
            given[label] = model
    if not given:
        raise InputError("no model is given", where="models")
    for label, model in given.items():
        if not isinstance(label, str) or not label:
            raise InputError("a model's label is a text", where="models", got=label)
        if isinstance(model, str) and not re.fullmatch(r"[^/\s]+/\S+", model):
            remedy = "name it as Inspect does: openai/gpt-4o-mini, openai-api/<service>/<model>, hf/…, vllm/…"
            raise ModelError("a model's name is <provider>/<model>", where="models", got=model, remedy=remedy)
    return given
