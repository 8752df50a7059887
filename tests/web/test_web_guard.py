"""Who is let in, and that nothing in names or specs is more than text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="Starlette is in the `serve` extra")
pytest.importorskip("httpx", reason="Starlette's test client needs httpx")

from hypothesis import given
from hypothesis import strategies as st
from web_kit import HOSTILE, MODELS, ORIGIN, Page, world

import budge
from budge.errors import InputError
from budge.spec import parse
from budge.web import make_app, serve
from budge.web.guard import HEADERS, own_host


@pytest.fixture(scope="module")
def page() -> Page:
    X, im = world()
    return Page(make_app(MODELS, X, im, target=1, population="all", token="the-token"))


GOOD = {"Host": "127.0.0.1:5000", "Origin": ORIGIN, "X-Budge-Token": "the-token", "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"Origin": None, "Sec-Fetch-Site": None}, 200),  # a program on this machine that has the token
        ({"Host": "localhost:5000", "Origin": "http://localhost:5000"}, 200),
        ({"Host": "evil.example"}, 421),  # a name that was pointed at this machine
        ({"Host": "127.0.0.1.evil.example:5000"}, 421),
        ({"Host": "evil.example:127"}, 421),
        ({"Host": "127.0.0.1:5000@evil.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "0.0.0.0:5000"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:6000"}, 403),  # another server on this machine
        ({"Origin": "https://127.0.0.1:5000"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"X-Budge-Token": None}, 401),
        ({"X-Budge-Token": "the-tokeN"}, 401),
        ({"X-Budge-Token": ""}, 401),
        ({"Content-Type": "text/plain"}, 415),  # what a form of another page could send
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_only_the_page_itself_is_answered(page: Page, change: dict[str, str | None], status: int) -> None:
    headers = {k: v for k, v in {**GOOD, **change}.items() if v is not None}
    answer = page.client.post("/api/start", content=b"{}", headers=headers)
    assert answer.status_code == status
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "access-control-allow-origin" not in answer.headers
    if status != 200:
        assert set(answer.json()["problems"][0]) == {"what", "where", "got", "remedy"}
        assert "state" not in answer.text


def test_every_api_route_asks_for_the_token(page: Page) -> None:
    headers = {k: v for k, v in GOOD.items() if k != "X-Budge-Token"}
    for path in ("start", "people", "look", "points", "try", "model", "runs", "spec/text", "spec/check", "spec/apply", "report", "figure", "nowhere"):
        assert page.client.post(f"/api/{path}", content=b"{}", headers=headers).status_code == 401
        assert page.client.get(f"/api/{path}", headers=GOOD).status_code == 405
    assert page.client.post("/", content=b"{}", headers=GOOD).status_code == 405
    assert page.client.options("/api/start", headers=GOOD).status_code == 405


@given(st.text(max_size=30))
def test_no_other_name_is_this_machine(text: str) -> None:
    known = {"127.0.0.1", "localhost", "[::1]"}
    name = text.rsplit(":", 1)[0] if text.rsplit(":", 1)[-1].isdecimal() else text.removesuffix(":")
    assert own_host(text) == (text in known or name in known)


def test_the_page_itself_holds_no_data_and_loads_nothing_from_elsewhere(page: Page) -> None:
    for path in ("/", "/assets/page.js", "/assets/page.css", "/assets/look.css", "/assets/figures.css", "/assets/icon.svg"):
        answer = page.client.get(path, headers={"Host": "127.0.0.1:5000"})
        assert answer.status_code == 200, path
        assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"
        assert "P000" not in answer.text
        assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", ""), path
    for path in ("/assets/app.py", "/assets/..%2fapp.py", "/assets/%2e%2e/app.py", "/assets/nothing.js", "/docs"):
        assert page.client.get(path, headers={"Host": "127.0.0.1:5000"}).status_code == 404


def test_the_script_never_writes_markup() -> None:
    import budge.web

    assets = Path(budge.web.__file__).parent / "assets"
    for script in assets.glob("*.js"):
        text = script.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "//cdn"):
            assert word not in text, f"{script.name}: {word}"
    html = (assets / "page.html").read_text(encoding="utf-8")
    assert "onclick" not in html
    assert "style=" not in html
    assert html.count("<script") == 1


#: Text and its ground, as page.css pairs them; marks and edges of fields need less.
PAIRS = [
    ("ink", "paper"), ("muted", "paper"), ("ink", "panel"), ("muted", "panel"), ("ink", "above-ground"), ("muted", "above-ground"), ("ink", "below-ground"),
    ("muted", "below-ground"), ("paper", "ink"), ("paper", "above"), ("on-accent", "accent"), ("accent", "paper"), ("accent", "below-ground"),
    ("none", "paper"),
    ("above", "paper"), ("warn", "paper"), ("below", "paper"), ("paper", "below"), ("ink", "warn-ground"), ("accent", "warn-ground"),
]  # fmt: skip
MARKS = ["none", "few", "above", "open", "strong-line"]


def _light(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, two: str) -> float:
    low, high = sorted((_light(one), _light(two)))
    return (high + 0.05) / (low + 0.05)


def test_every_text_can_be_read_on_its_ground(page: Page) -> None:
    """WCAG AA from the tokens, light and dark; every colour of the page is a token."""
    look = page.client.get("/assets/look.css", headers={"Host": "127.0.0.1:5000"}).text
    css = page.client.get("/assets/page.css", headers={"Host": "127.0.0.1:5000"}).text
    blocks = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block)) for block in re.findall(r"color-scheme: (?:light|dark);([^}]*)}", look)][:3]
    assert len(blocks) == 3
    for tokens in blocks:
        low = {pair: round(_contrast(tokens[pair[0]], tokens[pair[1]]), 2) for pair in PAIRS}
        assert {pair: found for pair, found in low.items() if found < 4.5} == {}
        assert {name: found for name in MARKS if (found := _contrast(tokens[name], tokens["paper"])) < 3} == {}
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*})", css) == []
    used = set(re.findall(r"var\(--([a-z-]+)\)", css)) - {"sans", "mono", "round", "fill"}
    assert used <= set(blocks[0]), used - set(blocks[0])


def test_hostile_names_are_text() -> None:
    X, im = world()
    X = X.rename(index={"P000": HOSTILE}, columns={"balance": "=balance<b>"})
    features = [f.but(name="=balance<b>") if f.name == "balance" else f for f in im.features]
    im = budge.InteractionModel(features, [c for c in im.constraints if c.name != "owners pay"], name=HOSTILE)
    renamed = {"<i>m</i>": lambda t: MODELS["strict"](t.rename(columns={"=balance<b>": "balance"}))}
    page = Page(make_app(renamed, X, im, target=1, population="all"))
    start = page.post("start")
    assert start["title"] == HOSTILE
    assert start["models"] == ["<i>m</i>"]
    answer = page.ask("people", state=start["state"], find="<script>", show="all")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["rows"][0]["label"] == HOSTILE
    found = page.look(start["state"], who=HOSTILE)
    assert found["person"][0]["label"] == HOSTILE
    picture = page.post("figure", figure="strip", state=start["state"], model="<i>m</i>")["strips"]["paper"]
    assert "<script" not in picture
    assert "<b>" not in picture
    text = page.post("spec/text", state={**start["state"], "off": ["c0"]})["text"]
    assert parse(text, "yaml").name == HOSTILE


@pytest.mark.parametrize("body", [b"[]", b"null", b"{", b"\xff\xfe", b'"text"', b"[" * 100_000, b'{"state": 3}', b'{"state": {"off": {}}}'])
def test_bad_requests_are_problems(page: Page, body: bytes) -> None:
    for path in ("people", "look", "spec/text", "points", "try", "model"):
        answer = page.client.post(f"/api/{path}", content=body, headers=GOOD)
        assert answer.status_code == 400, answer.text
        assert answer.json()["problems"][0]["what"]


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        ("look", {"who": 3}), ("look", {"who": "nobody"}), ("look", {"who": "P007", "pin": ["P001"]}), ("look", {"model": "other"}), ("look", {"run": 1}),
        ("try", {"at": [0]}), ("try", {"at": "0"}), ("try", {"at": [0, 0, 0, 99]}), ("try", {"at": [0, 0, 0, -1]}), ("try", {"at": [0, 0, 0, 0.5]}),
        ("try", {"at": [0, 0, 0, True]}), ("try", {"who": None}), ("try", {"who": "#99"}), ("points", {"cell": 3}), ("points", {"cell": "x"}),
        ("points", {"offset": -1}), ("points", {"offset": 1.5}), ("people", {"show": "everybody"}), ("people", {"limit": True}), ("people", {"find": 3}),
        ("people", {"offset": 10**400}), ("model", {"run": "0"}), ("start", {"run": 2}), ("figure", {"figure": None}),
    ],
)  # fmt: skip
def test_bad_wishes_are_problems(page: Page, path: str, bad: dict[str, Any]) -> None:
    state = page.post("start")["state"]
    problem = page.problems(path, **{"state": state, "who": "P007", **bad})[0]
    assert problem["what"]
    assert problem["where"]


def test_too_much_is_refused(page: Page) -> None:
    answer = page.client.post("/api/spec/check", content=b" " * 8_000_001, headers=GOOD)
    assert answer.status_code == 413

    def chunks() -> Any:
        for _ in range(9):
            yield b" " * 1_000_000

    answer = page.client.post("/api/spec/check", content=chunks(), headers=GOOD)  # no length is told
    assert answer.status_code in (400, 413)
    large = json.dumps({"text": "#" * 2_000_001})
    found = page.client.post("/api/spec/check", content=large.encode(), headers=GOOD).json()
    assert not found["ok"]
    assert "too large" in found["problems"][0]["what"]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "example.com", ""])
def test_other_hosts_are_refused_by_design(host: str) -> None:
    X, im = world()
    with pytest.raises(InputError, match="this machine only"):
        serve(MODELS, X, im, target=1, host=host)


def test_each_app_has_its_own_token() -> None:
    X, im = world()
    tokens = {make_app(MODELS, X, im, target=1, population="all").token for _ in range(3)}
    assert len(tokens) == 3
    assert all(len(t) >= 32 for t in tokens)
