"""What `budge audit`, `budge show` and `budge demo` print of an audit: the answer, how many people stand where, groups, the harmed by name, what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from budge.audit.result import Audit
from budge.audit.summary import heads
from budge.cli.layout import Column, column, figure, interval_of
from budge.cli.people import Chosen, chosen, closest, listed, moves, short_of
from budge.cli.terminal import head, say, show_bars, show_columns
from budge.report.answer import MORE, Told, category_words, told_of, undecided_by_draws
from budge.report.figures.strip import CATEGORIES
from budge.report.people import at_most, decimals
from budge.report.who import shares_of
from budge.report.words import percent
from budge.wording import Wording

__all__ = ["audit_record", "per_cent", "show_answer", "show_groups", "show_next", "show_notes", "show_people", "show_run"]

FEW, SOME = 5, 8  # people without a way, and others, who are named
MOST_RANKED = 2000  # people without a way who are put in order
MOST_GROUPS = 20
DRAWN = ("sample", "sequential", "weighted")
_STYLES = {"none": "none", "nohit": "none", "below": "below", "above": "above"}


def per_cent(part: int, whole: int) -> str:
    """Return a share for a column: one decimal, more only where that would be nothing or all.

    Examples
    --------
    >>> per_cent(1, 4), per_cent(1, 30_000), per_cent(29_999, 30_000), per_cent(0, 3)
    ('25.0 %', '0.00333 %', '99.997 %', '0.0 %')
    """
    if not whole:
        return "–"
    told = f"{100 * part / whole:.1f} %"
    return percent(part / whole) if (told == "0.0 %" and part) or (told == "100.0 %" and part < whole) else told


def show_run(audit: Audit, groups: Sequence[str], place: str) -> None:
    """Print the answer of each model, its groups and the harmed, notes, and what to do next; `place` is the folder of the run for the shell."""
    told = []
    for k, name in enumerate(audit.models):
        if k:
            say()
        told.append(show_answer(audit, name))
        show_groups(audit, name, groups, told[-1])
        show_people(audit, name, groups, told[-1])
    notes = [note for note in audit.notes if note.where != "population"]  # the answer tells that nobody is left
    if notes:
        say()
        show_notes(notes)
    show_next(audit, told, place)


def audit_record(audit: Audit) -> dict[str, Any]:
    """Return the record that `--json` prints of an audit."""
    summaries = {name: audit.summary(name) for name in audit.models}
    return {
        **audit.to_dict(), "no_way": {name: s.no_way for name, s in summaries.items()}, "every_way": {name: s.every_way for name, s in summaries.items()},
    }  # fmt: skip


def show_answer(audit: Audit, model: str) -> Told:
    """Print the first sentence of one model and how many people stand where."""
    nouns, tau = audit.wording, audit.design.threshold
    told = told_of(audit, model, nouns, brief=True)
    named = f"{model}: " if len(audit.models) > 1 else ""
    say(named + " ".join(part for part in (told.headline, told.how, told.lost, told.left_out) if part))
    if told.judged:
        words = {name: text.split(",")[0] if name == "below" else text for name, text in category_words(tau, audit.design.claim).items()}
        shown = [name for name in CATEGORIES if told.numbers[name] or (name in ("below", "above") and tau > 0)]
        say()
        show_bars([(words[n], told.numbers[n], per_cent(told.numbers[n], told.judged)) for n in shown], [_STYLES.get(n, "") for n in shown])
        say(f"\nρ is the share of the points that a person can reach at which the model gives {nouns.goal()}.")
    return told


def show_groups(audit: Audit, model: str, groups: Sequence[str], told: Told) -> None:
    """Print the groups of each column: shares with intervals, and the difference."""
    nouns, design = audit.wording, audit.design
    for name in groups if told.judged else ():
        made = shares_of(audit, name, model, design.alpha / len(groups), nouns, told.summary)
        head(f"By {name}" + (f", {model}" if len(audit.models) > 1 else ""))
        rows = [row for row in made.rows if row["people"]][:MOST_GROUPS]
        ends = [_ends(share.low, share.high) for share in made.shares]  # of the same groups in the same order: names may be alike
        drawn = any(told.summary.methods.get(law) for law in DRAWN)
        name_of_ends = _ends_name(known=not drawn and not made.exact, rough=told.summary.approximate > 0)
        plain = design.threshold > 0 and design.claim == "below" and not told.summary.open_ways  # what draws leave open is not nobody
        columns = [
            Column("group", [row["group"].removeprefix(f"{name} = ") for row in rows]), column("people", [row["people"] for row in rows]),
            Column(made.words, [_share(row[design.claim]["count"], row["people"]) for row in rows], right=True),
            Column(name_of_ends or f"{percent(1 - design.alpha)} interval", ends[: len(rows)], right=True, spare=1),
            *([Column("no way", [_share(row["no_way"], row["people"]) for row in rows], right=True, spare=2)] if plain else []),
            Column("mean ρ", [figure(row["mean_rho"], 2) for row in rows], right=True, spare=3),
        ]  # fmt: skip
        show_columns(columns, more=sum(1 for row in made.rows if row["people"]) - len(rows))
        larger = " Intervals are for a population of which these people are a random sample." if made.exact and not made.sentence else ""
        say(f"  {made.sentence or made.heading}{larger}")


def _ends_name(*, known: bool, rough: bool) -> str:
    """Return what a column of intervals without a level is called: ends that are known, or those of a chain's draws; empty where there is a level."""
    return "ends" if known else "about" if rough else ""


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({per_cent(part, whole)})"


def _ends(low: float, high: float) -> str:
    least, most = (f"{100 * share:.1f} %".replace("-", "−") for share in (low, high))
    return least if least == most else f"{least} to {most}"


def show_people(audit: Audit, model: str, groups: Sequence[str], told: Told) -> None:
    """Print the people of the design's claim by name: those without any way first, then those with almost none."""
    design, nouns = audit.design, audit.wording
    by, under = groups[0] if len(groups) == 1 else "", f" ({model})" if len(audit.models) > 1 else ""
    if design.claim == "above":
        some = chosen(audit, model, lambda t: t["verdict"] == "above", ["low", "rho"], rising=False, most=SOME)
        if some.many:
            head(f"{category_words(design.threshold, design.claim)['above'].capitalize()}: {heads(some.many)}, highest ρ first{under}")
            _show_some(some, by, nouns)
        return
    if told.numbers["none"]:
        _show_none(audit, model, by, nouns, under)
    empty = (lambda t: _nohit(t)) if design.threshold == 0 else (lambda t: (t["verdict"] == "below") & (t["extreme"] != "none"))
    some = chosen(audit, model, empty, ["rho", "high"], most=SOME)
    if some.many:
        title = "No hit, not proved" if design.threshold == 0 else "Almost no way" if told.numbers["nohit"] else "Almost none"
        head(f"{title}: {heads(some.many)}, {'lowest bound' if design.threshold == 0 else 'lowest ρ'} first{under}")
        _show_some(some, by, nouns)
    if told.numbers["nohit"]:
        _show_nohit(audit, model, told)


def _nohit(table: pd.DataFrame) -> Any:
    """Return who has draws, all of them answered, no hit among them, and no way that a proof has found."""
    found = table["proof"] == "possible" if "proof" in table else False
    return table["method"].isin(DRAWN) & (table["hits"] == 0) & (table["unresolved"] == 0) & ~np.asarray(found)


def _show_none(audit: Audit, model: str, by: str, nouns: Wording, under: str) -> None:
    none = chosen(audit, model, lambda t: t["extreme"] == "none", ["n"], rising=False, most=MOST_RANKED)
    near = closest(none, most=FEW)
    target = nouns.target_name or "the target"
    order = f", closest to {target} first" if near is not None else ", most points first" if (none.rows["method"] == "exact").all() and none.many > 1 else ""
    head(f"No way at all: {heads(none.many)}{order}{under}")
    some = near[0] if near is not None else Chosen(audit, model, none.rows.head(FEW), none.many)
    rows, known = some.rows, (some.rows["method"] == "exact").tolist()
    points = Column("points", [f"{n:,}" if listed_ else "–" for n, listed_ in zip(rows["n"], known)], right=True, spare=1)
    how = [] if all(known) else [Column("known", ["listed" if listed_ else "proved" for listed_ in known], spare=1)]
    show_columns(listed(some, by, nouns, points, *how, *short_of(near)), more=none.many - len(rows))


def _show_some(some: Chosen, by: str, nouns: Wording) -> None:
    """Print some people with their counts and a change that works."""
    rows, design = some.rows, some.audit.design
    drawn = bool(rows["method"].isin(DRAWN).all())
    at_hand = some.audit.context is not None or getattr(some.audit, "work", None) is not None or bool(some.audit.moved)
    rho = Column("ρ", [decimals(v) for v in rows["rho"]], right=True)
    hits = Column("hits", [f"{h:,}" for h in rows["hits"]], right=True, spare=3)
    points = Column("draws" if drawn else "points", [f"{n:,}" for n in rows["n"]], right=True, spare=3)
    more = [rho, hits, points]
    if rows["method"].isin(DRAWN).any() or rows["rho"].isna().any():
        known, rough = not rows["method"].isin(DRAWN).any(), bool((rows["exactness"] == "approximate").any())
        more.insert(1, interval_of(rows["low"].tolist(), rows["high"].tolist(), design.alpha, name=_ends_name(known=known, rough=rough), spare=1))
    if at_hand and (design.claim == "above" or not drawn):  # of draws the smallest change found is far from the least: `budge recourse` finds that
        called, steps = moves(some, nouns)
        if any(step != "–" for step in steps):
            more.append(Column(called, steps))
    show_columns(listed(some, by, nouns, *more), more=some.more)


def _show_nohit(audit: Audit, model: str, told: Told) -> None:
    """Print what draws without a hit show, and what they do not."""
    many, bound, draws, rough = told.numbers["nohit"], 0.0, set[int](), False
    for piece in audit.in_memory(model):
        table = piece.of_model(model)
        own = table[_nohit(table)]
        bound, rough = max(bound, float(own["upper"].max()) if len(own) else 0.0), rough or bool((own["exactness"] == "approximate").any())
        draws |= set(own["n"].unique().tolist())
    some = "1 person has" if many == 1 else f"{many:,} people have"
    among = f"{draws.pop():,} draws" if len(draws) == 1 else f"{min(draws):,} to {max(draws):,} draws"
    sure = "about " if rough else ""
    say()
    say(f"{some} no hit in {among}: {at_most(bound, audit.design.alpha, sure)}, which is no proof that there is none.")


def show_notes(notes: Sequence[object]) -> None:
    """Print what is to be known besides."""
    for note in notes:
        say(f"Note: {note}.")


def show_next(audit: Audit, told: Sequence[Told], place: str) -> None:
    """Print what to do next: at most three things."""
    if not sum(t.judged for t in told):
        return
    found = [f"budge report {place} writes one HTML file" if place else "with -o FOLDER the run is kept, and budge report FOLDER writes one HTML file"]
    judged = sum(t.judged for t in told)
    if any(t.numbers["nohit"] for t in told) and not audit.design.prove:  # missing answers leave nothing to prove
        found.append("--prove can settle who has no way at all, for a model that can be read")
    if audit.design.threshold > 0 and sum(undecided_by_draws(audit, t.summary.model) for t in told) > 0.1 * max(judged, 1):
        found.append(f"with -n {_larger(audit)} more people are decided")
    if any(t.harmed for t in told) and audit.design.claim == "below":
        found.append("budge ablate shows which rule holds people back")
    say()
    say(f"Next: {'; '.join(found[:3])}.")


def _larger(audit: Audit) -> int:
    """Return the larger number of draws that is advised, rounded up to two figures."""
    many = MORE * audit.design.draws
    unit = 10 ** max(int(np.log10(many)) - 1, 0)
    return int(-(-many // unit) * unit)
