"""The app: routes over the sessions of one run or several. Starlette is imported here alone, when an app is made."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any

from budge.errors import BudgeError, InputError, MissingDependencyError, nearest
from budge.web.everyone import groups_record, runs_record, strip_record
from budge.web.guard import Guard
from budge.web.people import Wish
from budge.web.question import Question, make_question
from budge.web.records import as_json, error_record
from budge.web.session import Session, SupersededError, Tell

__all__ = ["make_app", "need_starlette"]

log = logging.getLogger(__name__)

KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
INTERNAL = {"what": "the page failed; its log says where", "where": "", "got": None, "remedy": "undo the last edit, or start budge serve again"}


def need_starlette() -> None:
    """Starlette and uvicorn are in the extra `serve`."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("the page needs Starlette and uvicorn", remedy="pip install 'budge[serve]'") from error


def make_app(model: Any, X: Any = None, im: Any = None, *, target: Any = None, token: str | None = None, **options: Any) -> Any:
    """The page as an ASGI app, to be run by any server that listens on this machine only.

    Parameters
    ----------
    model, X, im, target, options
        As in `budge.audit`; or a `budge.web.Question` alone, or several of them: runs to choose from.
    token
        What requests must carry in the header ``X-Budge-Token``; random unless given. It is in ``app.token``.

    Examples
    --------
    >>> import pandas as pd, budge, budge.web
    >>> im = budge.InteractionModel([budge.Feature("income", "integer", bounds=(0, 9))])
    >>> app = budge.web.make_app(lambda t: t["income"] > 4, pd.DataFrame({"income": [1, 2]}), im, target=True)
    >>> len(app.token) > 20
    True
    """
    need_starlette()
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    if isinstance(model, Question) or (isinstance(model, list) and model and all(isinstance(one, Question) for one in model)):
        sessions = [Session(one) for one in (model if isinstance(model, list) else [model])]
    else:
        sessions = [Session(make_question(model, X, im, target=target, **options))]
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="budge-page")

    def answer(record: Any, status: int = 200) -> Response:
        return Response(as_json(record), status_code=status, media_type="application/json")

    def route(work: Callable[[Session, dict[str, Any]], Any], *, asks: bool = False) -> Callable[[Request], Any]:
        """Return what answers a request's record by a record; `asks`: in the one thread that asks models."""

        async def handle(request: Request) -> Response:
            try:
                record = await _body(request)
                return answer(await asyncio.get_running_loop().run_in_executor(worker if asks else None, work, _session(sessions, record), record))
            except BudgeError as error:
                return answer(error_record(error), 400)
            except SupersededError:
                return answer({"error": "Superseded", "problems": []}, 409)
            except Exception:
                log.exception("the page failed")
                return answer({"error": "Internal", "problems": [INTERNAL]}, 500)

        return handle

    async def look(request: Request) -> Response:
        try:
            record = await _body(request)
            session = _session(sessions, record)
            state, model = session.specs.state(record.get("state")), session.named(record.get("model"))
            _named(session, record)
            state.edits.of(session.specs.base(state.base)[0])  # what is wrong with the edit is said at once
        except BudgeError as error:
            return answer(error_record(error), 400)
        stop = session.enter(str(record.get("window", ""))[:64])

        def answer_to(tell: Tell) -> None:
            session.look(state, record.get("who"), model=model, pin=record.get("pin"), whole=record.get("whole"), stop=stop, tell=tell)

        return StreamingResponse(_lines(answer_to, stop, worker), media_type="application/x-ndjson")

    def state_of(session: Session, record: dict[str, Any]) -> Any:
        return session.specs.state(record.get("state"))

    routes = {
        "start": route(lambda s, r: s.start() | {"run": sessions.index(s), "runs": [_run(own, i) for i, own in enumerate(sessions)]}, asks=True),
        "people": route(lambda s, r: s.people(state_of(s, r), Wish.read(r))),
        "points": route(lambda s, r: s.points(state_of(s, r), r), asks=True),
        "try": route(lambda s, r: s.attempt(state_of(s, r), r), asks=True),
        "model": route(lambda s, r: _named(s, r).specs.declared(state_of(s, r))),
        "spec/text": route(lambda s, r: {"text": (s.specs.export if r.get("export") else s.specs.text)(state_of(s, r))}),
        "spec/check": route(lambda s, r: s.specs.check(_text(r), str(r.get("kind", "yaml")), deep=bool(r.get("deep")))),
        "spec/apply": route(lambda s, r: s.specs.apply(_text(r), str(r.get("kind", "yaml")))),
        "runs": route(lambda s, r: _compared(sessions, s, r)),
        "report": route(lambda s, r: {"text": s.report(state_of(s, r))}, asks=True),
        "figure": route(_figure, asks=True),
        "look": look,
    }
    app = Starlette(
        routes=[
            Route("/", _asset, methods=["GET"]),
            Route("/assets/{name}", _asset, methods=["GET"]),
            *(Route(f"/api/{path}", handler, methods=["POST"]) for path, handler in routes.items()),
        ],
        exception_handlers={404: _missing, 405: _missing},
    )
    guarded: Any = Guard(app, token or secrets.token_urlsafe(24))
    guarded.sessions = sessions
    return guarded


async def _body(request: Any) -> dict[str, Any]:
    from starlette.requests import ClientDisconnect

    try:
        body = await request.body() or b"{}"
        record = json.loads(body)
        if b"\\u" in body:  # half a character cannot be sent back
            json.dumps(record, ensure_ascii=False).encode()
    except ClientDisconnect:
        raise InputError("the request is too large", where="request") from None
    except (ValueError, RecursionError):
        raise InputError("is not JSON", where="request") from None
    if not isinstance(record, dict):
        raise InputError("is not a record", where="request", got=type(record).__name__)
    return record


def _text(record: dict[str, Any]) -> str:
    text = record.get("text")
    if not isinstance(text, str):
        raise InputError("is a text", where="text", got=text)
    return text


async def _lines(answer_to: Callable[[Tell], None], stop: threading.Event, worker: ThreadPoolExecutor) -> AsyncIterator[str]:
    """One JSON record a line, each as soon as it is there; a reader who leaves stops the work."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Queue[str | None] = asyncio.Queue()

    def tell(record: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(ready.put_nowait, as_json(record) + "\n")

    def work() -> None:
        try:
            if stop.is_set():
                raise SupersededError
            answer_to(tell)
        except SupersededError:
            tell({"kind": "superseded"})
        except BudgeError as error:
            tell({"kind": "error", **error_record(error)})
        except Exception:
            log.exception("the page failed")
            tell({"kind": "error", "error": "Internal", "problems": [INTERNAL]})
        finally:
            loop.call_soon_threadsafe(ready.put_nowait, None)

    worker.submit(work)
    try:
        while (line := await ready.get()) is not None:
            yield line
    finally:
        stop.set()


def _session(sessions: Sequence[Session], record: dict[str, Any], key: str = "run") -> Session:
    run = record.get(key, 0)
    if not isinstance(run, int) or isinstance(run, bool) or not 0 <= run < len(sessions):
        raise InputError("there is no such run", where=key, got=run, remedy=f"there {'is one' if len(sessions) == 1 else f'are {len(sessions)}'}")
    return sessions[run]


def _named(session: Session, record: dict[str, Any]) -> Session:
    """Return the session, or raise an error where a request names somebody who is not there."""
    for name in ("who", "pin"):
        if record.get(name) is not None:
            session.place(record[name])
    return session


def _run(session: Session, place: int) -> dict[str, Any]:
    """Return what the choice of runs shows of one."""
    q = session.question
    when = f" · {str(q.saved.info['when'])[:16].replace('T', ' ')}" if q.saved is not None else ""
    return {"id": place, "title": f"{q.title or 'run'}{when}", "models": list(q.models), "saved": q.saved is not None}


def _compared(sessions: Sequence[Session], session: Session, record: dict[str, Any]) -> dict[str, Any]:
    other = _session(sessions, record, "other")
    for own, where in ((session, "run"), (other, "other")):
        if own.question.saved is None:
            raise InputError("only saved runs are put side by side", where=where, got=own.question.title, remedy="save it, and serve its folder")
    return runs_record(session.question, other.question, session.named(record.get("model")), other.named(record.get("other_model")))


def _figure(session: Session, record: dict[str, Any]) -> dict[str, Any]:
    """Return a figure of the library (the parts of a model, everyone as marks, groups), or models side by side."""
    from budge.report import figures
    from budge.report.compared import compared

    state, name, model = session.specs.state(record.get("state")), record.get("figure"), session.named(record.get("model"))
    if name == "partition":
        return {"svg": figures.partition(session.specs.model(state)).svg()}
    if name == "groups":
        return groups_record(session.whole(state), record.get("by"), model, session.question.wording)
    if name == "strip":
        return strip_record(session.whole(state), model, session.question.wording)
    if name == "models":
        return compared(session.whole(state), session.question.wording) or {}
    raise InputError("there is no such figure", where="figure", got=name, remedy=nearest(str(name), ("partition", "groups", "strip", "models")))


async def _asset(request: Any) -> Any:
    """Return a file of the page, or of the report, whose look it shares; the page itself unless one is named."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    name = request.path_params.get("name", "page.html")
    kind = KINDS.get(Path(name).suffix)
    if name == "figures.css":
        from budge.report.figures.colours import figure_style

        return Response(figure_style(), media_type=kind)
    for room in ("budge.web", "budge.report"):
        if kind is not None and name in {entry.name for entry in files(room).joinpath("assets").iterdir()}:
            return Response(files(room).joinpath("assets", name).read_bytes(), media_type=kind)
    raise HTTPException(404)


async def _missing(request: Any, error: Any) -> Any:
    from starlette.responses import Response

    problem = {"what": "there is no such page", "where": request.url.path, "got": request.method, "remedy": "begin at /"}
    return Response(as_json({"error": "Missing", "problems": [problem]}), error.status_code, media_type="application/json")
