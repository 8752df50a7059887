"""Which rule holds people back: relaxations ranked by how many people would newly be able to reach the target."""

from __future__ import annotations

from typing import Any

from budge.wording import Wording

__all__ = ["why"]

MOST_ROWS, FALLS = 10, 2  # rows by people, and those with the largest fall of the mean


def why(ablation: Any, nouns: Wording, target: str) -> dict[str, Any] | None:
    """Return the ranked rules of an ablation, or None where there is none."""
    if ablation is None:
        return None
    rows = _by_rule(ablation.ranking.astype(object).to_dict(orient="records"))
    most = max((row["newly_reachable"] for row in rows), default=0)
    falls = sorted((row for row in rows[MOST_ROWS:] if row["gain"] < 0), key=lambda row: row["gain"])[:FALLS]
    shown = [_row(row, most) for row in (*rows[:MOST_ROWS], *falls)]
    return {"heading": _heading(rows, nouns, target), "rows": shown, "more": len(ablation.ranking) - len(shown), "people": ablation.info["people"]}


def _by_rule(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per rule: the relaxation that gives most people a way, the weakest of several; the others are named beside it."""
    kept: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        kept.setdefault(_subject(row["relaxation"]), []).append(row)
    found = []
    for own in kept.values():
        best, *others = sorted(own, key=lambda row: (*_able(row), _size(row)))
        found.append(best | {"also": "; ".join(f"{row['relaxation']}: {row['newly_reachable']:,}" for row in others if row["newly_reachable"])})
    return sorted(found, key=lambda row: (*_able(row), -row["gain"] if row["gain"] == row["gain"] else 2))


def _able(row: dict[str, Any]) -> tuple[int, int]:
    """Return what puts one relaxation before another: people who are known to gain a way, then people for whom a draw found one."""
    return -row["newly_reachable"], -row["seen_only_after"]


def _size(row: dict[str, Any]) -> float:
    ratio = row["size_ratio"]
    return float(ratio) if ratio is not None and ratio == ratio else float("inf")


def _subject(relaxation: str) -> str:
    """Return the rule or feature that a relaxation is about: its name without the verb and the aspect.

    Examples
    --------
    >>> _subject("drop savings account"), _subject("lift direction of savings account")
    ('savings account', 'savings account')
    """
    verb, _, rest = relaxation.partition(" ")
    _, _, subject = rest.partition(" of ")
    return subject if verb == "lift" and subject else rest or relaxation


def _row(row: dict[str, Any], most: int) -> dict[str, Any]:
    before, after = round(float(row["before"]), 2), round(float(row["after"]), 2)
    known = row["gain"] == row["gain"]  # else answers are missing, or nobody can be compared
    return {
        "name": row["relaxation"], "kind": row["kind"], "also": row["also"], "people": int(row["newly_reachable"]), "seen": int(row["seen_only_after"]),
        "width": round(100 * row["newly_reachable"] / most) if most else 0,
        "before": f"{before:.2f}" if known else "", "after": f"{after:.2f}" if known else "–",
        "sign": "▲" if after > before else "▼" if after < before else "=" if known else "",
        "move": "up" if after > before else "down" if after < before else "flat",
    }  # fmt: skip


def _heading(rows: list[dict[str, Any]], nouns: Wording, target: str) -> str:
    able, seen = (int(rows[0][name]) if rows else 0 for name in ("newly_reachable", "seen_only_after"))
    if able:
        return f"Relaxing one rule would give {able:,} {nouns.people(able)} a way to {target}: {rows[0]['relaxation']}."
    if seen:
        return f"Relaxing one rule finds a way to {target} for {seen:,} {nouns.people(seen)} without a hit before: {rows[0]['relaxation']}."
    return f"No rule, relaxed alone, was found to give anybody a way to {target} who is known to have none."
