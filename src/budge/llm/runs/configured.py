"""A model with settings of its own: system message, sampling, reasoning, and the arguments of its provider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from budge.errors import InputError, MissingDependencyError, ModelError
from budge.llm.runs.chat_models import ChatModel

__all__ = ["configured"]


def configured(
    model: str | ChatModel, *, system: str | None = None, top_p: float | None = None, reasoning_effort: str | None = None,
    arguments: Mapping[str, Any] | None = None, base_url: str | None = None, api_key: str | None = None,
) -> Any:  # fmt: skip
    """Return the model as it is where nothing is set, otherwise an Inspect model with these settings, which are part of its identity."""
    if system is None and top_p is None and reasoning_effort is None and not arguments:
        return model
    try:
        from inspect_ai.model import GenerateConfig, get_model
    except ImportError:
        raise MissingDependencyError("runs need Inspect AI", remedy="pip install 'budge[llm]'") from None
    if top_p is not None and not 0 < top_p <= 1:
        raise InputError("a share above 0, at most 1", where="top_p", got=top_p)
    try:
        config = GenerateConfig(system_message=system, top_p=top_p, reasoning_effort=reasoning_effort)  # type: ignore[arg-type]
    except ValueError as error:  # pydantic's, which names the values that there are
        raise InputError("is not known", where="reasoning_effort", got=reasoning_effort, remedy=str(error).split("Input should be")[-1][:120]) from None
    name = model if isinstance(model, str) else model.model
    if isinstance(model, ChatModel):
        base_url, api_key = model.base_url, model.api_key
    # Tries are counted and spaced by the run, so that the client itself makes none.
    own = {"max_retries": 0} if name.startswith("openai-api/") else {}
    try:
        made = get_model(name, config=config, base_url=base_url, api_key=api_key, memoize=False, **{**own, **dict(arguments or {})})
    except Exception as error:  # whatever a provider raises about its arguments or a missing key
        raise ModelError(f"the model cannot be made: {type(error).__name__}: {str(error)[:200]}", where=name, got=list(arguments or {})) from None
    made.budge_origin = model  # type: ignore[attr-defined]  # whose address may stand for a changing one; see `chat_models.settings`
    return made
