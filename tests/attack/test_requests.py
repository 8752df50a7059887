"""Hostile requests to the page: every one is answered by a record or a refusal, and none changes what others are shown."""

from __future__ import annotations

import asyncio
import copy
import json
import math
import random
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

sys.path.insert(0, str(Path(__file__).parent.parent / "web"))
from web_kit import MODELS, ORIGIN, Page, world

from budge.web import make_app

GOOD = {"Host": "127.0.0.1:5000", "Origin": ORIGIN, "X-Budge-Token": "the-token", "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
SPEC = "budge: 1\nfeatures:\n  a: {type: binary}\n"
STRANGE: list[Any] = [
    None, True, -1, 0, 1, 39, 40, 2**31, 2**63, 2**64, 10**400, -(10**400), 0.5, 1e308, math.nan, math.inf, -math.inf, "", " ", "0", "a", "a" * 3000, "\x00",
    "\ud800", "\u202e", "../../etc/passwd", "<script>", "age > ", "age > 1 and __import__('os')", "9**9**9", "((((((((((", [], [[]], [0] * 5000, {}, {"": ""},
    {"$float": "nan"}, {"a": {"b": {"c": {}}}}, [None, "x", 1.5], "home", "age", "strict", "rho", "below", "model", "P001", "0-1", ["c0"], "all",
]  # fmt: skip


def honest(page: Page) -> dict[str, list[dict[str, Any]]]:
    """Return requests as the page makes them, by route."""
    state = page.post("start")["state"]
    years = {"max_increase": 3, "low": 0, "high": 20, "direction": "increase", "actionable": True}
    edited = {**state, "off": ["c0", "d1"], "features": {"years": years}}
    return {
        "start": [{}],
        "people": [{"state": s, "run": 0, "find": "age > 30", "show": "above", "model": "strict", "offset": 0, "limit": 5,
                    "other": "kind", "other_show": "above"} for s in (state, edited)],
        "points": [{"state": s, "who": "P003", "model": "strict", "cell": "", "offset": 0} for s in (state, edited)],
        "try": [{"state": state, "who": "P003", "model": "strict", "at": [0] * len(page.look(state, who="P003")["person"][0]["controls"])}],
        "model": [{"state": edited}],
        "spec/text": [{"state": edited, "export": True}, {"state": state}],
        "spec/check": [{"text": SPEC, "kind": "yaml", "deep": False}],
        "spec/apply": [{"text": SPEC, "kind": "yaml"}],
        "figure": [{"state": state, "figure": "strip", "model": "strict"}, {"state": state, "figure": "partition", "model": "kind"},
                   {"state": state, "figure": "models"},
                   {"state": edited, "figure": "verdicts", "by": "home", "model": "kind"}],
        "look": [{"state": s, "who": "P003", "pin": "P001", "window": "w", "whole": True} for s in (state, edited)],
    }  # fmt: skip


def places(record: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path to every value of a record."""
    inner = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    return [path, *(found for key, value in inner for found in places(value, (*path, key)))]


def changed(record: Any, path: tuple[Any, ...], value: Any, rng: random.Random) -> Any:
    """Return the record with one value replaced, left out, or given another name."""
    if not path:
        return value
    record = copy.deepcopy(record)
    inner = record
    for key in path[:-1]:
        inner = inner[key]
    what = rng.random()
    if what < 0.8 or isinstance(inner, list):
        inner[path[-1]] = value
    elif what < 0.9:
        del inner[path[-1]]
    else:
        inner[str(value)[:50]] = inner.pop(path[-1])
    return record


@pytest.fixture(scope="module")
def page() -> Page:
    X, im = world()
    return Page(make_app(MODELS, X, im, target=1, population="all", token="the-token"))


def attack(page: Page, attempts: int, seed: int) -> None:
    rng = random.Random(seed)
    requests = honest(page)
    shown(page, requests)  # the whole is computed now, and shown from here on
    before = shown(page, requests)
    for _ in range(attempts):
        route = rng.choice(list(requests))
        record: Any = rng.choice(requests[route])
        for _ in range(rng.choice((1, 1, 2, 3))):
            record = changed(record, rng.choice(places(record)), rng.choice(STRANGE), rng)
        body = json.dumps(record).encode()
        if rng.random() < 0.1:
            cut = rng.randrange(len(body) + 1)
            body = body[:cut] + rng.randbytes(rng.randrange(4)) + body[cut + rng.randrange(4) :]
        status, text = _answer(page, route, body)
        assert status in (200, 400, 409), (route, body, text)
        for line in text.splitlines() if route == "look" else [text]:
            found = json.loads(line)
            assert isinstance(found, dict), (route, body, text)
            assert found.get("error") != "Internal", (route, body, text)
    assert shown(page, requests) == before


def shown(page: Page, requests: dict[str, list[dict[str, Any]]]) -> dict[str, list[Any]]:
    """Return the answers to honest requests, without the time that they took."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(inner) for key, inner in value.items() if "seconds" not in key}
        return [timeless(inner) for inner in value] if isinstance(value, list) else value

    return {route: [timeless([json.loads(line) for line in _answer(page, route, r)[1].splitlines()]) for r in records] for route, records in requests.items()}


def _answer(page: Page, route: str, record: Any) -> tuple[int, str]:
    body = record if isinstance(record, bytes) else json.dumps(record).encode()
    answer = page.client.post(f"/api/{route}", content=body, headers=GOOD)
    return answer.status_code, answer.text


def test_hostile_requests_are_refused_and_change_nothing(page):
    attack(page, 600, seed=1)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", range(2, 10))
def test_thousands_of_hostile_requests_change_nothing(page, seed):
    attack(page, 2500, seed)


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "1e3", "²", "0x10", ""])
def test_a_strange_length_is_refused(page, length):
    async def call() -> int:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"{}", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(k.lower().encode(), v.encode("latin-1")) for k, v in {**GOOD, "Content-Length": length}.items()]
        await page.app({"type": "http", "method": "POST", "path": "/api/start", "scheme": "http", "headers": headers, "query_string": b""}, receive, send)
        return int(sent[0]["status"])

    assert asyncio.run(call()) == 413
