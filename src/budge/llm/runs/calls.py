"""One call of a model through Inspect: counted, paid for, tried again as we say, its errors in our words and without keys."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from budge.errors import BudgeError, MissingDependencyError, ModelError
from budge.llm.runs.chat_models import ChatModel
from budge.llm.runs.meter import CapReachedError, Meter, Ticket, Usage
from budge.llm.runs.patience import Patience
from budge.llm.runs.steps import GaveUpError, Reply
from budge.models.transport import Transport

__all__ = ["Calls", "Options", "load_inspect"]

_MARKUP = re.compile(r"\[/?(?:[a-z]+(?: [a-z]+)*)?\]")  # of Rich, in what Inspect says
_REMEDIES = {
    400: "the endpoint does not take this request: look at the model's name, max_tokens, and send_seed=False",
    401: "give a valid key: in the provider's environment variable, or --key-variable (api_key=)",
    403: "this key may not do that",
    404: "look at the model's name and --base-url (base_url=)",
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """How models are asked."""

    temperature: float = 0.7
    max_tokens: Mapping[str, int] = field(default_factory=lambda: {"model": 256, "rewriter": 1024, "judge": 1024})
    concurrency: int = 8
    patience: Patience = field(default_factory=Patience)
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    send_seed: bool = True


@dataclass
class _Question:
    """One call under way: how often it was tried, what the server sent last, and the leave to send the first try."""

    tries: int = 0
    ticket: Ticket | None = None
    seen: Any = None


_question: ContextVar[_Question] = ContextVar("budge_llm_question")


class _GarbledError(Exception):
    """An answer came, and there is no completion in it."""

    def __init__(self, why: str, raw: str):
        super().__init__(why)
        self.why, self.raw = why, raw


class _RefusedError(Exception):
    """A status that no retry changes; the message has no key in it."""

    def __init__(self, message: str, status: int | None):
        super().__init__(message)
        self.status = status


class _PassingError(Exception):
    """Something that a later try may change."""

    def __init__(self, message: str, retry_after: float | None):
        super().__init__(message)
        self.retry_after = retry_after


class Calls:
    """The models of a run, and how each of them is asked."""

    def __init__(self, models: Mapping[str, Any], helpers: Mapping[str, Any], meter: Meter, options: Options):
        self.meter, self.options = meter, options
        self._secrets: list[str] = [options.api_key or ""]
        self.models = {label: self._make(label, model, own=True) for label, model in models.items()}
        self._helpers = {role: self._make(role, model, own=False) for role, model in helpers.items() if model is not None}

    async def ask(self, model: str, text: str, *, role: str, seed: int, system: str = "") -> Reply:
        """Ask a model by its label, or the one that plays the role; see `run_steps.Call`."""
        from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig

        options, limit = self.options, self.options.max_tokens[role]
        target = self.models.get(model) or self._helper(model, role)
        config = GenerateConfig(
            temperature=0.0 if role == "judge" else options.temperature, max_tokens=limit,
            seed=seed if options.send_seed else None, max_connections=options.concurrency,
            max_retries=options.patience.attempts - 1, attempt_timeout=options.patience.timeout,
        )  # fmt: skip
        # Here and not in `generate`, where Inspect's clock runs already: this may wait for other calls.
        whole = (target.config.system_message or "") + system + text
        question = _Question(ticket=await self.meter.take(model or role, whole, limit))
        token = _question.set(question)
        messages = [*([ChatMessageSystem(content=system)] if system else []), ChatMessageUser(content=text)]
        try:
            output = await target.generate(messages, config=config, cache=False)
        except Exception as error:
            return self._failed(_last(error), error, model or role, question.tries)
        finally:
            _question.reset(token)
            if question.ticket is not None:
                self.meter.settle(question.ticket, None)
        told = output.usage
        known = told is not None and (told.input_tokens or told.output_tokens)
        usage = _usage(told) if known else _most(whole, limit)
        completion = output.completion
        why = ""
        if not completion.strip():
            why = f"the answer is empty (stopped by {output.stop_reason})"
        elif output.stop_reason in ("model_length", "content_filter") and not known:  # Inspect's reading of a refused request
            long = output.stop_reason == "model_length"
            why = "the prompt is too long for the model" if long else "the provider blocked the prompt"
        return Reply(completion, usage, question.tries, why, completion if why else "", str(output.stop_reason))

    def _failed(self, last: BaseException, outer: Exception, label: str, tries: int) -> Reply:
        """What a call that raised amounts to: no answer in what came, nothing for now, or the end."""
        if isinstance(last, CapReachedError):
            last.calls = tries
            raise last
        if isinstance(last, BudgeError):  # of ours: the journal cannot be written
            raise last
        if isinstance(last, _GarbledError):
            return Reply("", Usage(known=False), tries, last.why, last.raw)
        if isinstance(last, _RefusedError):
            raise ModelError(str(last), where=label, remedy=_REMEDIES.get(last.status or 0, "")) from None
        if last is not outer:  # Inspect tried again until it had to stop
            name = "" if isinstance(last, _PassingError) else f"{type(last).__name__}: "
            raise GaveUpError(self.redact(f"{name}{last} ({tries} tries)"), tries) from None
        raise ModelError(self.redact(f"the model failed: {type(last).__name__}: {last}"), where=label) from None

    def prepare(self, name: str, role: str) -> None:
        """Make a model that is named by an interaction or a judge, unless it is one of the run's."""
        if name not in self.models:
            self._helper(name, role)

    def _helper(self, name: str, role: str) -> Any:
        """A model that an interaction or a judge asks."""
        key = name or role
        if key not in self._helpers:
            if not name:
                option = "rewriter" if role == "rewriter" else "judge_model"
                remedy = f"give --{option.replace('_', '-')} ({option}= in Python)"
                raise ModelError(f"the {role} asks a model, and none is given", where=option, remedy=remedy)
            at = self.options.base_url if "/" not in name else None  # a bare name is one at the run's own address
            there = ChatModel(name, at, api_key=self.options.api_key or "none") if at else name
            self._helpers[key] = self._make(name, there, own=False)
        return self._helpers[key]

    # -- models ---------------------------------------------------------------------------------------------------------

    def _make(self, label: str, model: Any, *, own: bool) -> Any:
        """An Inspect model that counts its calls, waits as we say, and shows no key."""
        load_inspect()
        from inspect_ai.model import Model, get_model

        try:
            if isinstance(model, Model):
                made = model
            elif isinstance(model, ChatModel):
                made = get_model(model.model, base_url=model.base_url, api_key=model.api_key, memoize=False, max_retries=0)
            elif isinstance(model, str):
                extra: dict[str, Any] = {"max_retries": 0} if model.startswith("openai-api/") else {}
                url, key = (self.options.base_url, self.options.api_key) if own else (None, None)
                made = get_model(model, base_url=url, api_key=key, memoize=False, **extra)
            else:
                raise ModelError("a model is a name, a ChatModel or an Inspect model", where=f"models.{label}", got=model)
        except ModelError:
            raise
        except ImportError as error:
            if "ipywidgets" in str(error):  # Inspect's own check, in notebooks alone
                what = "language models in a notebook need ipywidgets"
                raise MissingDependencyError(what, where=f"models.{label}", remedy="pip install ipywidgets") from error
            raise MissingDependencyError(f"this provider needs a package: {error}", where=f"models.{label}") from error
        except Exception as error:
            said = self.redact(_first_line(error))
            raise ModelError(f"the model cannot be made: {said}", where=f"models.{label}", remedy=_making_remedy(said)) from None
        self._secrets.append(str(made.api.api_key or ""))
        ours = copy.copy(made)
        ours.api = copy.copy(made.api)
        self._meter_calls(label, ours.api)
        return ours

    def _meter_calls(self, label: str, api: Any) -> None:
        """Put ourselves before the provider's `generate`: the one place through which every try passes."""
        from inspect_ai.model import ModelOutput
        from tenacity.wait import wait_base

        inner, judge_retry, patience = api.generate, api.should_retry, self.options.patience
        inner_note, address = getattr(api, "on_response", None), str(getattr(api, "base_url", None) or "the endpoint")

        async def generate(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
            text = "\n".join(message.text for message in input)
            question = _question.get(_Question())
            ticket = question.ticket or await self.meter.take(label, text, config.max_tokens or max(self.options.max_tokens.values()))
            question.ticket = None
            question.tries, question.seen = question.tries + 1, None
            usage: Usage | None = None
            try:
                result = await inner(input=input, tools=tools, tool_choice=tool_choice, config=config)
                output = result[0] if isinstance(result, tuple) else result
                if isinstance(output, Exception):
                    raise output
                if not output.choices:
                    raise _GarbledError("the answer holds no completion", self._without_keys(_written(question.seen)))
                known = output.usage is not None and (output.usage.input_tokens or output.usage.output_tokens)
                usage = _usage(output.usage) if known else ticket.most
                if (clean := self._without_keys(output.completion)) != output.completion:
                    result = ModelOutput.from_content(output.model, clean, stop_reason=output.stop_reason)
                    result.usage = output.usage
                return result
            except Exception as error:
                raise self._told(error, judge_retry, address) from None
            finally:
                self.meter.settle(ticket, usage)

        class Wait(wait_base):
            def __call__(self, retry_state: Any) -> float:
                outcome = retry_state.outcome
                error = outcome.exception() if outcome is not None and outcome.failed else None
                return patience.wait(retry_state.attempt_number, getattr(error, "retry_after", None))

        def note(response: Any) -> None:
            _question.get(_Question()).seen = response
            if inner_note is not None:
                inner_note(response)

        if inner_note is not None:  # of OpenAI-compatible providers: the body before it is read
            api.on_response = note
        api.generate = generate
        api.retry_wait = Wait
        api.should_retry = lambda error: isinstance(error, _GarbledError | _PassingError)

    def _told(self, error: Exception, judge_retry: Any, address: str) -> Exception:
        """The provider's error in our words: passing, garbled, or final; without keys."""
        _forget_call()
        if isinstance(error, _GarbledError | CapReachedError | BudgeError):
            return error
        message = self.redact(f"{type(error).__name__}: {error}")
        if type(error).__name__ == "APIConnectionError":
            message = self.redact(f"the connection to {address} failed: is the server running?")
        if isinstance(error, json.JSONDecodeError):
            return _GarbledError("the answer is no JSON", self._without_keys(error.doc))
        if "non-ChatCompletion response" in str(error):
            return _GarbledError("the answer is no completion", self._without_keys(str(error).split("response: ", 1)[-1]))
        decision = judge_retry(error)
        if decision:
            return _PassingError(message, getattr(decision, "retry_after", None))
        status, seen = getattr(error, "status_code", None), _question.get(_Question()).seen
        if seen is not None and not isinstance(status, int):
            return _GarbledError("the answer holds no completion", self._without_keys(_written(seen)))
        code = status if isinstance(status, int) else None
        return _RefusedError(f"the endpoint refused: {message}" if code else f"the model failed: {message}", code)

    # -- words ----------------------------------------------------------------------------------------------------------

    def redact(self, text: str) -> str:
        """A message without keys."""
        keys = {str(number): key for number, key in enumerate(self._secrets) if key != "none"}
        return Transport(url="http://localhost/", headers=keys).redact(text)

    def _without_keys(self, text: str) -> str:
        """What a model or a server said, to the letter but for keys."""
        for key in sorted({key for key in self._secrets if len(key) >= 8}, key=len, reverse=True):
            text = text.replace(key, "***")
        return text


def load_inspect() -> Any:
    """Inspect, or the extra that it comes with."""
    try:
        import inspect_ai
    except ImportError as error:
        raise MissingDependencyError("runs need Inspect AI", remedy="pip install 'budge[llm]'") from error
    return inspect_ai


def _last(error: Exception) -> BaseException:
    """The error inside tenacity's `RetryError`."""
    attempt = getattr(error, "last_attempt", None)
    inner = attempt.exception() if attempt is not None else None
    return inner if inner is not None else error


def _most(text: str, limit: int) -> Usage:
    return Usage(len(text.encode("utf-8", "replace")), limit, known=False)


def _usage(told: Any) -> Usage:
    """Tokens as they are paid for; what a provider read from its own cache counts in full."""
    cached = (told.input_tokens_cache_read or 0) + (told.input_tokens_cache_write or 0)
    return Usage(int(told.input_tokens + cached), int(told.output_tokens))


def _written(response: Any) -> str:
    return json.dumps(response, default=str, ensure_ascii=False) if response is not None else ""


def _forget_call() -> None:
    """A failed call is not kept in Inspect's log with its body: servers echo keys."""
    from inspect_ai.event import ModelEvent
    from inspect_ai.log import transcript

    event = next((event for event in reversed(transcript().events) if isinstance(event, ModelEvent)), None)
    if event is not None:
        event.call = None


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {_MARKUP.sub('', ' '.join(lines[:3]))}"


def _making_remedy(said: str) -> str:
    """What to do about a model that cannot be made."""
    if (variable := re.search(r"\b[A-Z][A-Z0-9_]*_API_KEY\b", said)) is not None:
        return f"export {variable[0]}=…; for a server of your own: --base-url (base_url=), or a ChatModel"
    return "name it as Inspect does: openai/gpt-4o-mini, hf/…, vllm/…; for a server of your own: --base-url, or a ChatModel"
