"""Makes hostile specs: texts that would run code, grow, nest, stall or confuse a reader."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

BODY = {"budge": 1, "features": {"a": {"type": "integer", "bounds": [0, 5]}, "b": {"type": "binary"}}}
HEAD = "budge: 1\nfeatures:\n  a: {type: integer, bounds: [0, 5]}\n  b: {type: binary}\n"
TABLE = 'budge = 1\n[features.a]\ntype = "integer"\nbounds = [0, 5]\n'


def spec(**more: Any) -> str:
    """Return a spec in JSON: two features, and what is given besides."""
    return json.dumps({**BODY, **more})


def small() -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content) of specs that are short."""
    for name, text in (*_yaml(), *_toml(), *_json(), *_values()):
        yield name, text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    for i, (letter, suffix) in enumerate(
        product(
            ["\0", "\x01", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\ufeff", "\ufffe", "\ud800"], ["yaml", "json", "toml"]
        )
    ):
        key = json.dumps(f"a{letter}") if suffix == "json" else f'"a{letter}"'
        text = {
            "yaml": f"budge: 1\nfeatures:\n  {key}: {{type: binary}}\n",
            "json": f'{{"budge": 1, "features": {{{key}: {{"type": "binary"}}}}}}',
            "toml": f'budge = 1\n[features.{key}]\ntype = "binary"\n',
        }[suffix]
        yield f"letter {i}.{suffix}", text.encode("utf-8", "surrogatepass")
    for i, mark in enumerate(
        (
            b"\xef\xbb\xbf",
            b"\xff\xfe",
            b"\xfe\xff",
            b"\xff\xfe\0\0",
            b"\0\0\xfe\xff",
            b"\xef\xbb\xbf\xef\xbb\xbf",
            b"\x80",
            b"\xc0\xaf",
        )
    ):
        yield f"mark {i}.yaml", mark + HEAD.encode()
        yield f"mark {i}.json", mark + spec().encode()


def _yaml() -> Iterator[tuple[str, str]]:
    bomb = "a: &a [x, x, x]\n" + "".join(
        f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
    )
    tags = [
        "!!python/object/apply:os.system ['touch x']",
        "!!python/name:os.system",
        "!!python/module:os",
        "!!python/object/new:os.system [x]",
        "!!binary aGk=",
        "!!set {a, b}",
        "!!omap [a: 1]",
        "!!timestamp 2001-01-01",
        "!!float 1",
        "!!int 'x'",
        "!x y",
        "!<tag:yaml.org,2002:str> x",
        "!!merge <<",
        "! x",
    ]
    pieces = {
        "alias bomb": bomb,
        "alias": "a: &x 1\nb: *x\n",
        "alias of itself": "a: &x [*x]\n",
        "anchor": HEAD + "name: &n x\n",
        "unknown alias": "budge: *b\n",
        "merge": "base: &b {type: binary}\nfeatures:\n  a: {<<: *b}\n",
        "merge inline": HEAD + "<<: {name: x}\n",
        "merge of a list": HEAD + "<<: [{name: x}, {measure: volume}]\n",
        "two documents": HEAD + "---\n" + HEAD,
        "directive": "%YAML 1.1\n---\n" + HEAD,
        "tag directive": "%TAG ! tag:x,2000:\n---\n" + HEAD,
        "twice": HEAD + "features: {}\n",
        "twice inside": "budge: 1\nfeatures:\n  a: {type: binary, type: real}\n",
        "twice as number": "budge: 1\nfeatures: {1: {type: binary}, 1: {type: binary}}\n",
        "yes is text": "budge: 1\nfeatures: {a: {type: binary, actionable: yes}}\n",
        "sexagesimal": HEAD + "name: 12:30:45\n",
        "complex key": "? [a, b]\n: 1\n",
        "mapping as key": "{{a: 1}: 2}\n",
        "null key": "~: 1\n",
        "tabs": "budge: 1\nfeatures:\n\ta: {type: binary}\n",
        "block": HEAD + "name: |\n" + "  x\n" * 500,
        "folded": HEAD + "name: >-\n" + "  x\n" * 500,
        "unclosed": "budge: 1\nfeatures: {a: {type: [\n",
        "unclosed quote": 'budge: 1\nname: "x\n',
        "only comments": "# x\n" * 100,
        "blank": " \n\n",
        "dash": "- - - x\n",
        "deep flow": "[" * 50_000,
        "deep mapping": "{a: " * 20_000,
        "deep dashes": "- " * 20_000,
        "question marks": "? " * 20_000,
        "colons": ": " * 20_000,
        "long scalar": "name: " + "x" * 150_000,
        "many anchors": "".join(f"a{i}: &a{i} x\n" for i in range(5000)),
        "quotes": "'" * 100_000,
        "escapes": 'a: "' + "\\x41" * 30_000 + '"',
        "long key": "k" * 2000 + ": 1\n",
        "percent": "%" * 10_000,
        "at": "@x: 1\n",
        "backtick": "`x`: 1\n",
        "version 2": "budge: 2\n" + HEAD[9:],
        "version text": 'budge: "1"\n' + HEAD[9:],
        "version true": "budge: true\n" + HEAD[9:],
        "list": "- 1\n",
        "number": "1\n",
        "text": "budge\n",
        "nothing": "",
        "end": "...\n",
        "octal": HEAD + "name: 0o17\n",
        "binary": "budge: 0b1\n",
        "huge number": "budge: 1\nfeatures: {a: {type: real, bounds: [0, " + "9" * 10_001 + "]}}\n",
        "huge power": "budge: 1\nfeatures: {a: {type: real, bounds: [0, 10**10000]}}\n",
        "huge exponent": "budge: 1\nfeatures: {a: {type: real, bounds: [0, 1e999999999]}}\n",
        "hex": "budge: 1\nfeatures: {a: {type: real, bounds: [0, 0x" + "f" * 5000 + "]}}\n",
    }
    yield from ((f"{name}.yaml", text) for name, text in pieces.items())
    yield from ((f"tag {i}.yaml", f"{HEAD}name: {tag}\n") for i, tag in enumerate(tags))


def _toml() -> Iterator[tuple[str, str]]:
    pieces = {
        "dotted": "a" + ".a" * 50_000 + " = 1",
        "dotted table": "[a" + ".a" * 50_000 + "]",
        "quoted dots": "a" + '."a"' * 20_000 + " = 1",
        "spaced dots": "a" + " . a" * 20_000 + " = 1",
        "table twice": TABLE + "[features.a]\n",
        "key twice": "budge = 1\nbudge = 1\n",
        "dotted over a value": "budge = 1\nbudge.x = 2\n",
        "table over a value": "budge = 1\n[budge]\n",
        "table over dots": TABLE + "[features]\na.type = 'real'\n",
        "array of tables": "[[constraints]]\n" * 3000,
        "array over a table": TABLE + "[[features.a]]\n",
        "inline extended": "budge = 1\nfeatures = {a = {type = 'binary'}}\n[features.b]\ntype='binary'\n",
        "deep arrays": "a = " + "[" * 50_000,
        "deep inline": "a = " + "{a = " * 20_000,
        "date": TABLE + "name = 2001-01-01\n",
        "time": TABLE + "name = 07:32:00\n",
        "nan": "budge = 1\n[features.a]\ntype='real'\nbounds=[nan, inf]\n",
        "infinity": "budge = 1\n[features.a]\ntype='real'\nbounds=[-inf, inf]\n",
        "digits": "budge = " + "9" * 10_000,
        "underscores": "budge = 1" + "_0" * 5000,
        "exponent": "budge = 1e" + "9" * 5000,
        "hex": "budge = 0x" + "f" * 10_000,
        "octal": "budge = 0o7",
        "unclosed": 'a = """' + "x" * 50_000,
        "quotes": "a = " + "'" * 10_000,
        "surrogate": 'name = "\\uD800"',
        "beyond": 'name = "\\UFFFFFFFF"',
        "nul": 'name = "\\u0000"',
        "bare": "=",
        "brackets": "[" * 10_000,
        "comments": "#" * 100_000,
        "empty key": '"" = 1',
        "many tables": "".join(f"[t{i}]\n" for i in range(5000)),
        "carriage": "budge = 1\rname = 'x'\n",
    }
    yield from ((f"{name}.toml", text) for name, text in pieces.items())


def _json() -> Iterator[tuple[str, str]]:
    pieces = {
        "deep lists": "[" * 100_000,
        "deep closed": "[" * 100_000 + "]" * 100_000,
        "deep mappings": '{"a":' * 100_000,
        "twice": '{"budge": 1, "budge": 1}',
        "twice inside": '{"budge": 1, "features": {"a": {"type": "binary", "type": "real"}}}',
        "twice escaped": '{"budge": 1, "\\u0062udge": 2}',
        "NaN": '{"budge": NaN}',
        "Infinity": '{"budge": -Infinity}',
        "comment": '{"budge": 1 /* x */}',
        "trailing comma": '{"budge": 1,}',
        "single quotes": "{'budge': 1}",
        "no end": '{"budge": ',
        "after the end": spec() + spec(),
        "digits": '{"budge": ' + "9" * 10_001 + "}",
        "exponent": '{"budge": 1e' + "9" * 5000 + "}",
        "point": '{"budge": 1.' + "0" * 100_000 + "}",
        "zero first": '{"budge": 01}',
        "plus": '{"budge": +1}',
        "surrogate": '{"name": "\\ud800"}',
        "pair": '{"name": "\\ud83d\\ude00"}',
        "escape": '{"name": "\\x41"}',
        "control": '{"name": "\x01"}',
        "no colon": '{"budge" 1}',
        "true": "true",
        "null": "null",
        "blank": " " * 100_000,
        "list of lists": "[" + "[]," * 50_000 + "[]]",
        "twins": '{"a":1,' * 1 + '"a":1,' * 20_000 + '"a":1}',
    }
    yield from ((f"{name}.json", text) for name, text in pieces.items())


def _values() -> Iterator[tuple[str, str]]:
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        1e308,
        -1e308,
        2**53 + 1,
        10**300,
        10**320,
        "",
        "x",
        "inf",
        "__import__('os')",
        "../../etc/passwd",
        "http://x",
        [],
        {},
        [[]],
        [None],
        {"a": {}},
        [1, 2, 3],
        [0, 1e-320],
        "\u0000",
        "=cmd()",
    ]
    for i, value in enumerate(odd):
        yield f"bounds {i}.json", spec(features={"a": {"type": "integer", "bounds": [0, value]}})
        yield (
            f"levels {i}.json",
            spec(features={"a": {"type": "category", "levels": value}, "b": {"type": "category", "levels": [value, "x"]}}),
        )
        yield (
            f"constraint {i}.json",
            spec(
                constraints=[
                    value,
                    {"one_hot": value},
                    {"rule": value},
                    {"reachability": {"features": ["a"], "values": value, "reachable": value}},
                ]
            ),
        )
        yield (
            f"linkage {i}.json",
            spec(
                constraints=[
                    {"directional_linkage": {"source": "a", "targets": {"b": value}}},
                    {"directional_linkage": {"source": value, "targets": value}},
                ]
            ),
        )
        yield (
            f"effect {i}.json",
            spec(
                effects=[{"feature": "a", "add": value, "clip": value}],
                latent={"u": value, "v": {"draw": value, "components": value}},
            ),
        )
        yield (
            f"distribution {i}.json",
            spec(
                features={
                    "a": {"type": "integer", "bounds": [0, 5], "distribution": value},
                    "b": {"type": "binary", "distribution": {"weights": value}},
                }
            ),
        )
        yield (
            f"linear {i}.json",
            spec(constraints=[{"linear": {"coefficients": {"a": value}, "relation": "<=", "constant": value}}]),
        )
    for key in (
        "path",
        "file",
        "url",
        "import",
        "python",
        "$ref",
        "include",
        "api_key",
        "password",
        "exec",
        "__class__",
        "model",
        "extends",
    ):
        yield f"key {key}.json", spec(**{key: "sk-abcdefghijklmnopqrstuvwxyz"})
        yield f"inner {key}.json", spec(features={"a": {"type": "binary", key: "http://x/y"}})


def large(n: int = 1) -> Iterator[tuple[str, bytes]]:
    """Yield (file name, content) of specs that are long; at 1 most are just within the limits, and more goes beyond them."""
    many, names = int(1900 * n), [f"f{i}" for i in range(int(1900 * n))]
    binary, real = {name: {"type": "binary"} for name in names}, {name: {"type": "real", "bounds": [0, 1]} for name in names}
    levels = [f"l{i}" for i in range(int(9000 * n))]
    cases: dict[str, dict[str, Any]] = {
        "features": {"features": {f"f{i}": "fixed" for i in range(int(9900 * n))}},
        "dummies": {"features": binary, "constraints": [{"one_hot": {"features": names}}]},
        "ordinal": {"features": binary, "constraints": [{"ordinal": {"features": names}}]},
        "dummies twice": {"features": binary, "constraints": [{"one_hot": {"features": names[: many // 2] * 2}}]},
        "levels": {"features": {"a": {"type": "category", "levels": levels}}},
        "levels twice": {"features": {"a": {"type": "category", "levels": levels + levels[:1]}}},
        "weights": {
            "features": {"a": {"type": "category", "levels": levels, "distribution": {"weights": dict.fromkeys(levels, 1)}}}
        },
        "if_then": {
            "features": binary,
            "constraints": [{"if_then": {"if": f"{a}==1", "then": f"{b}==0"}} for a, b in zip(names, names[7:])],
        },
        "rules": {"features": binary, "constraints": [{"rule": f"{a}+{b}<=1"} for a, b in zip(names, names[7:])]},
        "one rule often": {"features": binary, "constraints": [{"rule": "f0+f1<=1"}] * many},
        "chain": {
            "features": real,
            "constraints": [{"directional_linkage": {"source": a, "targets": {b: 1}}} for a, b in pairwise(names)],
        },
        "circle": {
            "features": real,
            "constraints": [
                {"directional_linkage": {"source": a, "targets": {b: 1}}} for a, b in zip(names, [*names[1:], names[0]])
            ],
        },
        "star": {
            "features": real,
            "constraints": [{"directional_linkage": {"source": names[0], "targets": dict.fromkeys(names[1:], 1)}}],
        },
        "sum": {
            "features": real,
            "constraints": [{"linear": {"coefficients": dict.fromkeys(names, 1), "relation": "<=", "constant": 1}}],
        },
        "effects": {
            "features": real,
            "effects": [{"feature": a, "add": f"normal(0,1)+{b}", "clip": [0, 1]} for a, b in pairwise(names)],
        },
        "effect chain": {
            "features": real,
            "effects": [
                {"feature": a, "set": f"effect.{b}" if b != names[many // 2] else "normal(0,1)", "clip": [0, 1]}
                for a, b in pairwise(names)
            ],
        },
        "undeclared": {"features": binary, "constraints": [{"rule": f"g{i}==1"} for i in range(many)]},
        "undeclared dummies": {
            "features": {f"ab{i}cd": {"type": "binary"} for i in range(int(9900 * n))},
            "constraints": [{"one_hot": {"features": [f"ba{i}dc" for i in range(many)]}}],
        },
        "anagrams": {
            "features": {"".join(f"{i:012b}" * 12): {"type": "binary"} for i in range(many)},
            "constraints": [{"rule": f"`{f'{i:012b}'[::-1] * 12}x`==1"} for i in range(500)],
        },
        "look-alikes": {
            "features": {("A" if i % 2 else "a") + "\u0430" * 400 + str(i // 2): {"type": "binary"} for i in range(many // 3)}
        },
        "wrong types": {"features": {name: {"type": "x"} for name in names}},
        "wrong keys": {"features": {name: {"type": "binary", "tipe": 1} for name in names}},
        "matrix": {
            "features": {"a": {"type": "integer", "bounds": [0, 400]}},
            "constraints": [
                {
                    "reachability": {
                        "features": ["a"],
                        "values": [[i] for i in range(400)],
                        "reachable": [[1] * int(400 * n)] * 400,
                    }
                }
            ],
        },
        "listed levels": {
            "features": {"a": {"type": "category", "levels": levels}},
            "constraints": [{"reachability": {"features": ["a"], "values": [[v] for v in levels[-many:]]}}],
        },
        "member": {
            "features": {"a": {"type": "category", "levels": levels}},
            "constraints": [{"rule": f"a in [{', '.join(map(repr, levels[-900:]))}]"}] * 10,
        },
        "long or": {"features": binary, "constraints": [{"rule": " or ".join(f"f{i}==1" for i in range(800))}] * 10},
        "brackets": {"features": binary, "constraints": [{"rule": "(" * 45 + "f0==1" + ")" * 45}] * int(900 * n)},
        "latent": {"features": binary, "latent": {f"u{i}": "normal(0,1)" for i in range(int(990 * n))}},
        "unknown keys": {**binary},
        "names": {"features": {f"{i}" * 200: {"type": "binary"} for i in range(1000)}},
    }
    for name, body in cases.items():
        yield f"{name}.json", json.dumps({"budge": 1, **body}).encode()
    yield "rows.yaml", ("budge: 1\nfeatures:\n" + "".join(f"  f{i}: {{type: binary}}\n" for i in range(int(7000 * n)))).encode()
    yield "rows.toml", ("budge = 1\n" + "".join(f"[features.f{i}]\ntype = 'binary'\n" for i in range(int(9900 * n)))).encode()
