"""Ways to forge what is stored, by the kind of folder: each is a function that changes an honest folder."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import runs_kit as kit
from runs_kit import arrays, column, forge, in_blocks, lines, members, npy, piece, put, rewritten, sql

HUGE = 10**290


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def as_text(text: str) -> Callable[[Path], None]:
    return lambda folder: kit.seal(folder, text)


def whole_file(name: str, data: bytes | Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return lambda folder: kit.at(folder, name).write_bytes(data(kit.at(folder, name).read_bytes()) if callable(data) else data) and None


def counts_file(data: bytes) -> Callable[[Path], None]:
    def forged(folder: Path) -> None:
        kit.at(folder, "counts.npz").write_bytes(data)
        kit.seal(folder, kit.record_of(folder))

    return forged


def instead(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Return what puts something else in the place of a file."""

    def forged(folder: Path) -> None:
        place = kit.at(folder, name)
        shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        make(place)

    return forged


def link_outside(name: str) -> Callable[[Path], None]:
    """Return what moves a file out of the folder and leaves a link to it."""

    def forged(folder: Path) -> None:
        outside = folder.parent / f"outside-{name.replace('/', '-')}"
        place = kit.at(folder, name)
        place.rename(outside)
        place.symlink_to(outside)

    return forged


def first(value: Any) -> Callable[[Any], Any]:
    """Return what sets the first entry of a column."""

    def change(values: Any) -> Any:
        values[0] = value
        return values

    return change


def larger(values: Any) -> Any:
    return np.append(values, values[-1:])


def repeated(record: dict[str, Any]) -> str:
    return json.dumps(record)[:-1] + ', "design": ' + json.dumps(record["design"] | {"alpha": 0.5}) + "}"


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def beside_a_hole(folder: Path) -> None:
    """Put a large file of nothing among the counts, by which the record may be larger."""
    with (folder / f"counts-{'0' * 16}.npz").open("wb") as file:
        file.truncate(3 << 30)
    (folder / "audit.json").write_bytes(b" " * (400 << 20))


def hole(folder: Path) -> None:
    """Make the counts a large file of nothing."""
    with kit.at(folder, "counts.npz").open("r+b") as file:
        file.truncate(3 << 30)


def designed(**changes: Any) -> Callable[[Path], None]:
    def change(record: dict[str, Any]) -> None:
        record["design"].update(changes)
        record["info"]["design"].update(changes)

    return forge(change)


def half(record: dict[str, Any]) -> None:
    """Make a block one of half as many draws, all of them misses."""
    own = record["counts"]["model"]
    own.update(n=[30] * 10, hits=[0] * 10, hit_mass=[0.0] * 10, witness=[-1] * 10, reached=[], asked=[30] * 10)


def stated(**changes: Any) -> Callable[[Path], None]:
    """Return what changes the design that is stated of answers."""
    return lines(lambda rows: rows[0]["info"].update(changes))


def ruled(**changes: Any) -> Callable[[Path], None]:
    """Return what changes the stopping rule that is stated of answers."""
    return lines(lambda rows: rows[0]["info"]["sequential"].update(changes))


BOMB = "a bomb"
NOTHING = {name: lambda v: v * 0 for name in ("law", "n", "hits", "hit_mass", "asked")} | {"witness": lambda v: v * 0 - 1, "reached": lambda v: v[:0]}
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
TABLE: dict[str, Callable[[Path], None]] = {
    # JSON
    "deep lists": as_text("[" * 100_000 + "]" * 100_000),
    "deep lists in place of a note": put("info.probe", nested(900)),
    "a million lists": as_text("[" + "[]," * 2_000_000 + "0]"),
    "a million mappings": as_text("[" + '{"":1},' * 1_000_000 + "0]"),
    "18 MB of numbers": lambda folder: as_text("[" + "999," * 4_500_000 + "0]")(folder),
    "18 MB of lists and numbers": lambda folder: as_text("[" + "[],11111," * 2_000_000 + "0]")(folder),
    "18 MB of keys": lambda folder: as_text("{" + "".join(f'"{k:x}":1,' for k in range(1_800_000)) + '"z":1}')(folder),
    "18 MB in the widest letters": lambda folder: as_text('["\U0001f600' + "a" * (18 << 20) + '"]')(folder),
    "a key twice among 400,000": lambda folder: as_text("{" + "".join(f'"{k:x}":1,' for k in range(400_000)) + '"z":1,"z":1}')(folder),
    "a number of 10,000 digits": forge(lambda r: json.dumps(r).replace('"threshold": 0.1', '"threshold": ' + "9" * 10_000)),
    "a number of 4,000 digits": forge(lambda r: json.dumps(r).replace('"people": 40', '"people": ' + "9" * 4_000)),
    "NaN in place of alpha": forge(lambda r: json.dumps(r).replace('"alpha": 0.05', '"alpha": NaN')),
    "an infinite threshold": forge(lambda r: json.dumps(r).replace('"threshold": 0.1', '"threshold": 1e999')),
    "a key twice": forge(repeated),
    "another version": put("budge", 4), "a version that is a text": put("budge", "3"), "no version": forge(lambda r: r.pop("budge") and None),
    "another kind": put("kind", "models"), "a stream without one": put("kind", "stream"),
    "a list for a record": as_text("[]"), "a text for a record": as_text('"run"'), "nothing for a record": as_text(""),
    "a record of half a text": lambda folder: whole_file("audit.json", lambda data: data[: len(data) // 2])(folder),
    "no text at all": whole_file("audit.json", b"\xff\xfe\x00\x00" * 100),
    "100 MB of blanks": whole_file("audit.json", lambda data: b" " * (100 << 20)),
    # design
    "alpha of 2": designed(alpha=2), "alpha of -1": designed(alpha=-1), "alpha of nothing": designed(alpha=None), "n of 10^18": designed(n=10**18),
    "n of 10^9, of another run": designed(n=10**9), "n of -5": designed(n=-5), "n of nothing": designed(n=None, why_n=""),
    "a threshold of a text": designed(threshold="0.1"), "an unknown option": designed(evil=1), "a family of 10^30": designed(family=10**30),
    "a rule of 10^12 draws": designed(sequential=True, n=10**12, why_n="as given"),
    "a rule for a margin of 10^-9": designed(sequential=True, margin=1e-9, n=10**5, why_n="as given"),
    "a rule at an error of 10^-300": designed(sequential=True, alpha=1e-300, threshold=1e-9, why_n="as given"),
    "groups of another design": designed(groups=[["age", []]]), "groups of numbers": designed(groups=7),
    "a target of code": designed(target={"kind": "function"}),
    "a target of 10^5 labels that are lists": designed(target={"kind": "labels", "values": [[]] * 100_000}), "no target": designed(target=None),
    "a target of another kind of answers": designed(target={"kind": "labels", "values": ["yes"]}),
    "a population that is code": designed(population="__import__('os').system('true')"),
    "a proposal in pairs of lists": designed(proposal={"$pairs": [[[], 1]]}), "a seed of a list": designed(seed=[1]),
    "another alpha in the report than in the table": put("info.design.alpha", 0.0001),
    "another target in words": put("info.target", "is 0"), "another population in words": put("info.population", "outside"),
    "another harm in words": put("info.harm", "above"),
    # info
    "fewer people than rows": put("info.people", 3), "people that are a fraction": put("info.people", 40.5), "10^30 people": put("info.people", 10**30),
    "more people with the target than people": put("info.already", {"model": 41}), "another number with the target": put("info.already", {"model": 1}),
    "less than nobody with the target": put("info.already", {"model": -12}), "the target for other models": put("info.already", {"other": 12}),
    "other models": put("info.models", {"other": "text"}), "no models": forge(lambda r: r.update(columns={}, moved={}) and None),
    "causes that are numbers": put("info.causes", {"model": [1, 2]}), "more twins than people": put("info.twins", 10**15),
    "a name that is a list": put("info.name", ["loans"]), "a measure that is a mapping": put("info.measure", {}),
    "a date of 10^6 characters and lists": put("info.when", [["x"]] * 1000), "notes that are texts": put("notes", ["all is well"]),
    "a note of another shape": put("notes", [{"where": "x", "what": "y", "severity": "none", "evil": 1}]),
    # columns
    "a column of another name": put("columns.model.prediction", {"array": "0.n"}),
    "a column with an array and values": forge(lambda r: r["columns"]["model"]["prediction"].update(values=[1] * 40)),
    "labels that are lists": put("columns.model.index", {"values": [[]] * 40}),
    "one label too few": forge(lambda r: r["columns"]["model"]["index"]["values"].pop() and None),
    "labels that are mappings": put("columns.model.index", {"values": [{"a": 1}] * 40}),
    "times that are none": put("columns.model.index", {"values": [{"time": "then"}] * 40}),
    "a time of the year 10^9": put("columns.model.index", {"values": [{"time": "999999999-01-01"}] * 40}),
    "a zone without a column of times": put("columns.model.index", {"values": ["x"] * 40, "zone": "Mars/Base"}),
    "groups twice in their order": put("columns.model.groups.home", {"array": "0.group.home", "order": ["own", "own"], "ordered": True}),
    "groups without an order": put("columns.model.groups.home", {"array": "0.group.home", "order": ["own", "rent"]}),
    "groups that are predictions": put("columns.model.groups", {}), "a label of the index that is a list": put("index_name", [1]),
    # moved
    "moves of a row that is not there": put("moved", {"model": [[10**6, []]]}), "moves of a fraction of a row": put("moved", {"model": [[0.5, []]]}),
    "moves of two parts": put("moved", {"model": [[0, [["income", 1]]]]}), "moves that are numbers": put("moved", {"model": [1, 2]}),
    "moves of a feature that is a number": put("moved", {"model": [[0, [[5, 1, 2]]]]}),
    "moves to a list": put("moved", {"model": [[0, [["income", 1, [2]]]]]}),
    "moves to a number that JSON has not": put("moved", {"model": [[0, [["income", 1, {"float": "1" * 5000}]]]]}),
    # files
    "a file outside": put("files", {"../../etc/passwd": "0" * 32}), "an absolute file": put("files", {"/etc/passwd": "0" * 32, "counts.npz": "0" * 32}),
    "files that are a list": put("files", ["counts.npz"]), "a link to a file outside": link_outside("counts.npz"),
    "a link to a record outside": link_outside("audit.json"),
    "a pipe for counts": instead("counts.npz", os.mkfifo), "a pipe for a record": instead("audit.json", os.mkfifo),
    "a device for a record": instead("audit.json", lambda p: p.symlink_to("/dev/zero")), "a folder for counts": instead("counts.npz", Path.mkdir),
    "a file of a terabyte": instead("audit.json", sparse), "counts of a terabyte": instead("counts.npz", sparse),
    "3 GB of nothing for counts": hole, "400 MB of a record beside 3 GB of nothing": beside_a_hole,
    "no counts": instead("counts.npz", lambda p: None),
    # arrays
    "more hits than points": arrays(hits=first(61)), "hits below 0": arrays(hits=first(-1)), "fewer points than hits": arrays(n=first(1)),
    "another number of draws": arrays(n=lambda v: v * 10, hits=lambda v: v * 10, asked=lambda v: v * 11),
    "points asked about by nobody": arrays(asked=lambda v: v * 0),
    "shares of other counts": arrays(hit_mass=first(0.5)), "shares that are none": arrays(hit_mass=first(np.nan)),
    "an infinite share": arrays(lost_mass=first(np.inf)),
    "a share below 0": arrays(hit_mass=first(-0.5)), "unresolved points that are hits, too": arrays(unresolved=first(60)),
    "a status that is none": arrays(status=first(100)), "a law that is none": arrays(law=first(-1)), "a proof that is none": arrays(proof=first(77)),
    "listed points of draws": arrays(law=lambda v: v * 0 + 1, hit_mass=lambda v: v * 0),
    "proofs of what draws contradict": arrays(law=lambda v: v * 0 + 5, hit_mass=lambda v: v * 0, lost_mass=lambda v: v * 0),
    "weighted draws without weights": arrays(law=lambda v: v * 0 + 3), "stopped draws without a rule": arrays(law=lambda v: v * 0 + 4),
    "a witness among misses": arrays(witness=lambda v: np.where(v < 0, 0, v).astype(np.int32)), "a witness beyond all points": arrays(witness=first(10**6)),
    "counts that are fractions": arrays(n=lambda v: v.astype(float)), "counts of 32 bits": arrays(hits=lambda v: v.astype(np.int32)),
    "counts that are texts": arrays(hits=lambda v: v.astype(str)), "counts that are objects": arrays(hits=lambda v: v.astype(object)),
    "counts of two dimensions": arrays(n=lambda v: v.reshape(2, -1)), "counts of no dimension": arrays(n=np.int64(3)),
    "counts of one row more": arrays(n=larger),
    "one place too many": arrays(place=larger), "a place twice": arrays(place=lambda v: v * 0), "a place below 0": arrays(place=first(-1)),
    "places of nobody": arrays(place=lambda v: v + 10**9), "units of fractions": arrays(units=lambda v: v + 0.5),
    "labels of one row more": arrays(prediction=larger),
    "predictions of another type": arrays(prediction=lambda v: v.astype("M8[s]")),
    "predictions of two dimensions": arrays(prediction=lambda v: v.reshape(-1, 1)),
    "values reached of nobody": arrays(reached=lambda v: v[:-1]), "values reached of texts": arrays(reached=lambda v: v.astype(str)),
    "weights of nobody": arrays(heavy__row=np.array([0]), heavy__weight=np.array([1.0]), heavy__hits=np.array([1]), heavy__lost=np.array([0])),
    "proved rows without a proof": arrays(law=lambda v: v * 0 + 5), "a proof where none was asked for": arrays(proof=lambda v: v * 0 + 12),
    "proofs in the design and none in the rows": designed(prove=True), "people who stay, hit and miss": arrays(status=lambda v: v * 0 + 1),
    "people without points who have some": arrays(status=lambda v: v * 0 + 2), "nobody asked and no word why": arrays(**NOTHING),
    "rows that are listed by a design that draws": designed(method="exact"), "rows of a rule that did not stop": designed(sequential=True),
    "rows asked about a million times": arrays(asked=lambda v: v * 0 + 10**6), "everybody like everybody": arrays(units=lambda v: v * 0),
    "nobody like anybody, and 39 who are": put("info.twins", 39), "4,000 people of whom 40 are there": put("info.people", 4000),
    "moves of a person without a witness": put("moved", {"model": [[i, [["income", 1, 2]]] for i in range(40)]}),
    "moves of a feature that there is not": forge(lambda r: r["moved"]["model"][0][1].append(["wealth", 0, 9])),
    "moves of a feature twice": forge(lambda r: r["moved"]["model"][0][1].append(["income", 0, 9]) or r["moved"]["model"][0][1].append(["income", 0, 9])),
    "moves to the same place": forge(lambda r: r["moved"]["model"][0][1].append(["home", "own", "own"])),
    "moves of a person twice": forge(lambda r: r["moved"]["model"].append(r["moved"]["model"][0])),
    "no hits": arrays(hits=None), "an array more": arrays(evil=np.zeros(3)), "CPU time below 0": arrays(seconds=first(-1)),
    "truth values that are 7": members(lambda m: m | {"0.approximate.npy": npy((40,), "|b1", b"\x07" * 40)}),
    # packed files
    BOMB: lambda folder: counts_file(kit.compressed_zeros(1 << 30))(folder),
    "a bomb that states little": members(lambda m: m | {"0.n.npy": npy((40,), "<i8", bytes(80 << 20))}),
    "10^12 entries": members(lambda m: m | {"0.n.npy": npy((10**12,), "<i8")}),
    "10^12 texts of 10^9 letters": members(lambda m: m | {"0.n.npy": npy((10**12,), "<U1000000000")}),
    "less than no entries": members(lambda m: m | {"0.n.npy": npy((-1,), "<i8")}),
    "100 dimensions": members(lambda m: m | {"0.n.npy": npy((1,) * 100, "<i8", bytes(8))}),
    "a header that is code": members(lambda m: m | {"0.n.npy": npy((40,), "'+__import__('os').getcwd()+'", bytes(320))}),
    "a header of 10^5 brackets": members(lambda m: m | {"0.n.npy": b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535}),
    "pickled objects": members(lambda m: m | {"0.n.npy": npy((1,), "|O", b"cos\nsystem\n(S'true'\ntR.")}),
    "columns in columns": members(lambda m: m | {"0.n.npy": m["0.n.npy"].replace(b"'<i8'", b"'V8' ")}),
    "a member that is no array": members(lambda m: m | {"../evil": b"x"}),
    "members packed by other means": members(lambda m: m, 12), "30,000 members": members(lambda m: m | {f"{k}.npy": b"" for k in range(30_000)}),
    "counts that are no packed file": counts_file(b"PK\x03\x04" + bytes(1000)), "counts of nothing": counts_file(b""),
}  # fmt: skip
LISTED_RUNS = {
    "a zone that is not known": put("columns.model.index.zone", "Mars/Base"), "a zone outside": put("columns.model.index.zone", "../../../etc/passwd"),
    "times of another type": arrays(index=lambda v: v.astype(str)),
    "times that are numbers beyond time": arrays(index=lambda v: (v.astype("i8") * 0 + 2**62).astype("M8[s]")),
    "proved and listed": arrays(law=lambda v: v * 0 + 5), "listed by a design that samples": designed(method="sample"),
    "more points than are listed": designed(exact_limit=2),
    "all points hit and half of the share": arrays(hits=lambda v: v * 0 + 8, n=lambda v: v * 0 + 8, asked=lambda v: v * 0 + 9),
}  # fmt: skip
WEIGHTED = {
    "weights below 0": arrays(heavy__weight=lambda v: -v), "weights above the largest": arrays(heavy__top=lambda v: v / 100),
    "infinite weights": arrays(heavy__weight=first(np.inf)),
    "weights of other rows": arrays(heavy__row=lambda v: v + 1000), "weights out of order": arrays(heavy__row=lambda v: v[::-1].copy()),
    "weights of more hits": arrays(heavy__hits=lambda v: v + 1), "weights of other draws": arrays(heavy__n=lambda v: v * 2),
    "one weight less": arrays(heavy__lost=lambda v: v[:-1]),
    "no proposal": designed(proposal=None),
}  # fmt: skip
STOPPED = {
    "a stop where the rule has none": arrays(n=first(3), hits=first(1), hit_mass=first(1 / 3), unresolved=first(0), lost_mass=first(0.0), witness=first(-1)),
    "no rule": designed(sequential=False), "a rule of no length": designed(n=1, why_n="as given"),
    "more draws than the rule": arrays(n=first(10**5), asked=first(10**6), hit_mass=first(0.0), hits=first(0)),
}  # fmt: skip
STREAM: dict[str, Callable[[Path], None]] = {
    "parts that are links": link_outside("parts"), "a part that is a link": link_outside("parts/000000-0.parquet"),
    "a part that is a pipe": instead("parts/000000-0.parquet", os.mkfifo),
    "no part": instead("parts/000000-0.parquet", lambda p: None), "a part twice": forge(lambda r: r["info"]["pieces"].append(r["info"]["pieces"][-1])),
    "a part number of 10^30": put("info.pieces.0.number", 10**30), "a part number below 0": put("info.pieces.0.number", -1),
    "a part number of a text": put("info.pieces.0.number", "../0"),
    "no parts": put("info.pieces", []), "parts that overlap": put("info.pieces.1.first", 5), "parts beyond all people": put("info.pieces.2.rows", 10**9),
    "other people than parts": put("info.people", 10**9), "parts of other sizes": put("info.parts", [60]), "labels of three": put("info.labels", [1, 2, 3]),
    "labels by 0": put("info.labels", [0, 0]),
    "a part less, and no word of it": forge(lambda r: r["info"]["pieces"].pop() and None), "laws that are proofs": column("method", lambda v: ["proved"] * 20),
    "files of other models": put("info.pieces.0.files", []), "a design of other groups": designed(groups=[]),
    "hits beyond points in a part": column("hits", first(100)),
    "a share of other counts in a part": column("hit_mass", first(0.77)), "places of another part": column("place", lambda v: [x + 20 for x in v]),
    "hits that are missing": column("hits", first(None)), "hits that are texts": column("hits", ["1"] * 20),
    "places that are fractions": column("place", [0.5] * 20),
    "laws that are numbers": column("method", [1] * 20), "laws that are not known": column("method", ["magic"] * 20),
    "no hits in a part": piece(lambda t: t.drop_columns(["hits"])),
    "half of a part": piece(lambda t: t.slice(0, 10)), "lists in lists": column("reached", [[[1.0]]] * 20),
    "labels that are lists in a part": column("person", [[1]] * 20),
    "a part that is none": piece(lambda t: b"PAR1" + bytes(1000) + b"PAR1"), "a part of half a file": piece(lambda t: b"PAR1PAR1"),
    "a part of 10^8 equal rows": piece(lambda t: equal_rows(10**8)), "a part with a value of 10^8 entries": piece(lambda t: one_long_list(10**8)),
}  # fmt: skip
JOURNAL: dict[str, Callable[[Path], None]] = {
    "a view": sql("ALTER TABLE done RENAME TO real", "CREATE VIEW done AS SELECT * FROM real"),
    "a trigger": sql("CREATE TRIGGER evil AFTER INSERT ON meta BEGIN DELETE FROM done; END"),
    "an endless view": sql("ALTER TABLE done RENAME TO real", f"CREATE VIEW done AS {ENDLESS} SELECT x AS key, x AS record, x AS checksum FROM c"),
    "a computed column": sql("ALTER TABLE done ADD COLUMN evil TEXT GENERATED ALWAYS AS (hex(zeroblob(100000000)))"),
    "an index": sql("CREATE INDEX evil ON done (record)"), "a table more": sql("CREATE TABLE evil (x)"), "no table": sql("DROP TABLE done"),
    "a damaged schema": sql("UPDATE sqlite_master SET sql = 'CREATE TABLE done (key' WHERE name = 'done'"),
    "another page as root": sql("UPDATE sqlite_master SET rootpage = 1 WHERE name = 'done'"),
    "another program's file": sql("PRAGMA application_id = 7"), "another format": sql("PRAGMA user_version = 99"),
    "a record of 200 MB": sql("INSERT INTO done VALUES ('x', zeroblob(200000000), x'00')"),
    "a note of 400 MB": sql("INSERT INTO meta VALUES ('d', zeroblob(400000000), x'00')"),
    "10^5 notes": sql("INSERT INTO meta WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 100000) SELECT x, x, x FROM c"),
    "deep lists in a block": rewritten(lambda key, text: (key, '{"people":' + "[" * 5000 + "]" * 5000 + "}" if ":" in key else text)),
    "a block that is a list": rewritten(lambda key, text: (key, "[]" if ":" in key else text)),
    "a block that is none": rewritten(lambda key, text: (key, "x" if ":" in key else text)),
    "totals that are texts": rewritten(lambda key, text: (key, '"x"' if key == "totals" else text), "meta"),
    "complete of 7": rewritten(lambda key, text: (key, "7" if key == "complete" else text), "meta"),
    "an identity that is a list": rewritten(lambda key, text: (key, "[]" if key == "identity" else text), "meta"),
    "no identity": rewritten(lambda key, text: None if key == "identity" else (key, text), "meta"),
    "blocks of nobody": in_blocks(lambda r: r.update(people=[10**9] * len(r["people"]))), "blocks of texts": in_blocks(lambda r: r.update(people=["x"])),
    "blocks without people": in_blocks(lambda r: r.update(people=[])),
    "blocks of other models": in_blocks(lambda r: r.update(counts={"other": r["counts"]["model"]})),
    "more hits than points in a block": in_blocks(lambda r: r["counts"]["model"]["hits"].__setitem__(0, 10**6)),
    "proofs of draws in a block": in_blocks(lambda r: r["counts"]["model"].update(law=[5] * 10)),
    "other draws in a block": in_blocks(half),
    "a count of 10^290": in_blocks(lambda r: r["counts"]["model"]["hits"].__setitem__(0, HUGE)),
    "a column less": in_blocks(lambda r: r["counts"]["model"].pop("hits")),
    "shares of texts": in_blocks(lambda r: r["counts"]["model"].update(hit_mass=["x"] * 10)),
    "weights of nobody in a block": in_blocks(lambda r: r["counts"]["model"]["heavy"].update(row=[10**12])),
    "masks of numbers": in_blocks(lambda r: r.update(asked={"model": [1] * 10})),
    "masks of others": in_blocks(lambda r: r.update(asked={"model": [False] * 10})),
    "causes of numbers": in_blocks(lambda r: r.update(causes={"model": [5]})),
    "a probe of another shape": rewritten(lambda key, text: (key, '{"points":1}' if key == "probe" else text)),
    "a link for a journal": link_outside("journal.sqlite"), "a pipe for a journal": instead("journal.sqlite", os.mkfifo),
    "a pipe for a log": instead("journal.sqlite-wal", os.mkfifo),
    "a link for a lock": instead("journal.lock", lambda p: (p.parent.parent / "mine").write_text("mine") and p.symlink_to(p.parent.parent / "mine")),
    "a folder for a lock": instead("journal.lock", Path.mkdir), "a terabyte of nothing": instead("journal.sqlite", sparse),
    "no bytes": instead("journal.sqlite", Path.touch),
}  # fmt: skip
CACHE = {
    "a view of answers": sql("ALTER TABLE answers RENAME TO real", "CREATE VIEW answers AS SELECT * FROM real", name="answers.sqlite"),
    "an older cache": instead("answers.sqlite", lambda p: sql("CREATE TABLE answers (key TEXT PRIMARY KEY, answer TEXT) WITHOUT ROWID", name=p.name)(p.parent)),
    "another answer": sql("UPDATE answers SET answer = '7' WHERE id IN (SELECT id FROM answers LIMIT 1)", name="answers.sqlite"),
    "an answer of 400 MB": sql("UPDATE answers SET answer = zeroblob(400000000) WHERE id IN (SELECT id FROM answers LIMIT 1)", name="answers.sqlite"),
    "a pipe for a cache": instead("answers.sqlite", os.mkfifo), "a link for a cache": link_outside("answers.sqlite"),
    "a cache that is a text": whole_file("answers.sqlite", b"x" * 5000),
}  # fmt: skip
LLM = {
    "rows that are not there": lines(lambda rows: None, rows=7), "rows of a text": lines(lambda rows: None, rows="many"),
    "another format of answers": lines(lambda rows: None, format=9),
    "a digest of a list": lines(lambda rows: None, digest=[]), "hits of 7": lines(lambda rows: rows[1].update(hit=7)),
    "hits of texts": lines(lambda rows: rows[1].update(hit="maybe")),
    "draws below 0": lines(lambda rows: rows[1].update(draw=-1)), "draws of 10^290": lines(lambda rows: rows[1].update(draw=HUGE)),
    "draws of 10^15": lines(lambda rows: rows[1].update(draw=10**15)),
    "draws of fractions": lines(lambda rows: rows[1].update(draw=0.5)), "draws twice": lines(lambda rows: rows.append(rows[1])),
    "rows without a model": lines(lambda rows: rows[1].pop("model") and None),
    "rows that are lists": lines(lambda rows: [rows[0], "[]"]), "deep rows": lines(lambda rows: rows[1].update(evil=nested(900))),
    "rows of deep texts": lines(lambda rows: [rows[0], "[" * 10**5]),
    "a scheme of a list": lines(lambda rows: rows[0]["info"].update(scheme=[1])),
    "an unknown scheme": lines(lambda rows: rows[0]["info"].update(scheme="evil")),
    "10^12 draws that are missing": lines(lambda rows: rows[0]["info"].update(complete=False, n=10**12, per_prompt=None)),
    "draws planned below 0": lines(lambda rows: rows[0]["info"].update(complete=False, n=-5)),
    "10^12 prompts": lines(lambda rows: rows[0]["info"].update(complete=False, prompts="1000000000000 prompts (x)")),
    "completeness of a text": lines(lambda rows: rows[0]["info"].update(complete="no")),
    "a rule of a text": lines(lambda rows: rows[0]["info"].update(sequential="x")),
    "a rule of nothing": lines(lambda rows: rows[0]["info"].update(sequential={"kind": 7})),
    "an identity of a text": lines(lambda rows: rows[0]["info"].update(complete=False, identity="x")),
    "an identity of other shapes": lines(lambda rows: rows[0]["info"].update(complete=False, identity={"models": 5, "interactions": {}})),
    "info of a list": lines(lambda rows: rows[0].update(info=[1])), "a pipe for answers": instead("answers.jsonl", os.mkfifo),
    "a link for answers": link_outside("answers.jsonl"),
    "a pipe for the record of answers": instead("run.json", os.mkfifo), "a record of deep lists": whole_file("run.json", b"[" * 10**6),
    "a terabyte of answers": instead("answers.jsonl", sparse),
    "a draw less": lines(lambda rows: rows.pop() and None), "no hits": lines(lambda rows: [rows[0], *(row for row in rows[1:] if not row["hit"])]),
    "draws beyond those planned": lines(lambda rows: rows.append(rows[-1] | {"draw": 5})),
    "a prompt more": lines(lambda rows: rows.extend(rows[-1] | {"prompt": "new", "draw": k} for k in range(5))),
    "a model that was not asked": lines(lambda rows: rows.append(rows[-1] | {"model": "m3"})), "a census of repeats": stated(scheme="census"),
    "repeats as joint draws": stated(scheme="joint"), "repeats as joint draws without their number": stated(scheme="joint", per_prompt=None),
    "a rule of repeats": stated(sequential={"kind": "curtailed"}),
    "a verdict without an answer": lines(lambda rows: [row.update(lost="time-out") for row in rows[1:]] and None),
    "half a character in a name": lines(lambda rows: [row.update(model="\ud800") for row in rows[1:]] and None),
    "half a character in a category": lines(lambda rows: rows[1].update(category="\ud800")),
}  # fmt: skip
JOINT = {
    "a draw less": lines(lambda rows: rows.pop() and None),
    "a miss more": lines(lambda rows: rows.append(rows[-1] | {"draw": rows[-1]["draw"] + 1, "hit": False})),
    "no hits": lines(lambda rows: [rows[0], *(row for row in rows[1:] if not row["hit"])]),
    "a hit less": lines(lambda rows: next(row for row in rows[1:] if row["hit"]).update(hit=False)),
    "a draw of another prompt again": lines(lambda rows: rows.append(rows[-1] | {"prompt": "q9"})),
    "a draw of two prompts": lines(lambda rows: rows[1].update(prompt="q5")),
    "no rule": stated(sequential=None), "another rule": stated(sequential={"kind": "anytime-valid"}), "a rule that is true": stated(sequential=True),
    "stops that are numbers": ruled(stops=[1]), "stops of lists": ruled(stops=[{"model": [], "interaction": {}}]), "stops of nobody": ruled(stops=[]),
    "another threshold": ruled(threshold=0.9), "a rule of 10^9 draws": ruled(max_n=10**9), "a rule of 10^6 draws": ruled(max_n=10**6),
    "a longer run": stated(n=100), "a run of 0 draws": stated(n=0), "a run of true draws": stated(n=True), "another seed": stated(seed=7),
    "a census": stated(scheme="census"),
    "an interaction that was not asked": lines(lambda rows: [row.update(interaction="base2") for row in rows[-3:]] and None),
    "no interaction": lines(lambda rows: [row for row in rows if row.get("interaction") != "base"]),
}  # fmt: skip
UNFINISHED = {
    "a verdict on a draw that was not asked": rewritten(lambda key, text: (key.replace("00000005", "00000006"), text) if key[:5] == "judge" else (key, text)),
    "a verdict where there is no answer": rewritten(lambda key, text: (key, text.replace('"why":""', '"why":"time-out"') if key[:6] == "answer" else text)),
    "draws beyond those planned": rewritten(lambda key, text: (key.replace("00000005", "00000009"), text)),
    "a draw twice": rewritten(lambda key, text: (key.replace("00000005", "00000004"), text)),
    "a draw of a prompt that there is not": rewritten(lambda key, text: (key.replace("2:q1|", "2:q9|"), text)),
    "a model that was not asked": rewritten(lambda key, text: (key.replace("1:m|", "1:x|"), text)),
    "draws that have no number": rewritten(lambda key, text: (key.replace("|00000005", "|five"), text)),
    "verdicts of texts": rewritten(lambda key, text: (key, text.replace('"hit":true', '"hit":"yes"'))),
    "a plan of a list": rewritten(lambda key, text: (key, "[]" if key == "plan" else text)),
    "a plan of 10^12 draws": rewritten(lambda key, text: (key, text.replace('"n":9', '"n":1000000000000') if key == "plan" else text)),
}  # fmt: skip
FORGED = {(kind, name): change for kind, group in (
    ("table", TABLE), ("listed", LISTED_RUNS), ("weighted", WEIGHTED), ("stopped", STOPPED), ("stream", STREAM), ("journal", JOURNAL),
    ("cache", CACHE), ("llm", LLM), ("joint", JOINT), ("unfinished", UNFINISHED),
) for name, change in group.items()}  # fmt: skip

def equal_rows(rows: int) -> bytes:
    """Return a small file of many rows."""
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    with parquet.ParquetWriter(out, pa.schema([("place", pa.int64())])) as writer:
        for _ in range(10):
            writer.write_table(pa.table({"place": np.zeros(rows // 10, np.int64)}))
    return out.getvalue()


def one_long_list(size: int) -> bytes:
    """Return a small file with one row of many equal values."""
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    some = size // 10
    with parquet.ParquetWriter(out, pa.schema([("reached", pa.large_list(pa.float64()))])) as writer:
        for _ in range(10):
            writer.write_table(pa.table({"reached": pa.LargeListArray.from_arrays(pa.array([0, some]), pa.array(np.zeros(some)))}))
    return out.getvalue()
