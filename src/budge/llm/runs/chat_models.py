"""A model behind an OpenAI-compatible address, and the label under which any model stands in tables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from budge.errors import InputError, ModelError

__all__ = ["ChatModel", "labelled", "named", "settings"]


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
    place
        What stands for the address in the run's identity, where the address changes by itself (a server on any free port).

    Examples
    --------
    >>> ChatModel("smollm2", "http://127.0.0.1:8080/v1", api_key="secret")
    ChatModel(name='smollm2', base_url='http://127.0.0.1:8080/v1', version='', place='')
    """

    name: str
    base_url: str
    api_key: str = field(default="none", repr=False, compare=False)
    version: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        if not self.base_url.lower().startswith(("http://", "https://")):
            raise ModelError("an address starts with http:// or https://", where="base_url", got=self.base_url)

    @property
    def model(self) -> str:
        """The name by which Inspect knows it."""
        return f"openai-api/local/{self.name}"


#: Of a model's configuration: what does not change its answers, or is set by the run.
_NOT_KEPT = {"temperature", "max_tokens", "seed", "max_connections", "max_retries", "timeout", "attempt_timeout", "cache"}
_SECRET = re.compile(r"(^|[._])(\w*key|token|secret|password|auth\w*|\w*headers)$", re.I)


def named(model: Any) -> str:
    """Return the name of a model with its provider."""
    if model is None or isinstance(model, str):
        return model or ""
    return model.model if isinstance(model, ChatModel) else str(model)


def settings(model: Any, *, own: bool, base_url: str | None) -> dict[str, str]:
    """Return all else that the answers of a model depend on: its address, version, system prompt, sampling, tools, arguments; no keys.

    `own` marks a model of the run, to which the run's `base_url` applies if it is given by name.
    """
    if model is None:
        return {}
    if isinstance(model, ChatModel):
        found: dict[str, Any] = {"address": model.place or _address(model.base_url), "version": model.version}
    elif isinstance(model, str):
        parts = model.split("/")
        provider = parts[1] if parts[0] == "openai-api" and len(parts) > 2 else parts[0]
        variable = provider.upper().replace("-", "_") + "_BASE_URL"
        found = {"address": _address((base_url if own else None) or os.environ.get(variable, ""))}
    else:
        config, origin = model.config.model_dump(exclude_none=True), getattr(model, "budge_origin", None)
        found = {"address": _address(str(getattr(model.api, "base_url", None) or ""))}
        found |= settings(origin, own=own, base_url=base_url) if isinstance(origin, ChatModel) else {}
        found |= {key: value for key, value in config.items() if key not in _NOT_KEPT}
        found |= {f"model_args.{key}": value for key, value in model.model_args.items() if key not in _NOT_KEPT}
    return {key: _written(value) for key, value in found.items() if value not in (None, "") and not _SECRET.search(key)}


def _address(url: str) -> str:
    """Return an address without a name and password."""
    return re.sub(r"(?<=//)[^/@]*@", "", url).rstrip("/")


def _written(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, default=lambda some: getattr(some, "__qualname__", type(some).__qualname__), sort_keys=True)


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
