"""Moderation under misspelling: the share of flagged messages that a few typos let through. Not in the paper; the same machinery.

The model is a text classifier that is shipped and used (`alt-profanity-check`), the inputs are short messages, an action is a slip of
the fingers. Responsiveness of a flagged message is the share of its rewrites that pass.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from budge import stats
from budge.audit import audit
from budge.llm import Interaction, Prompts, benchmark, homoglyphs, leet, misspell, mixed_case, punctuation, typos, whitespace
from budge.llm.moderation import flags

from .charts import panels, sideways
from .common import Study, compared, percent

TITLE = "Moderation: how many flagged messages do a few typos let through?"
THRESHOLD, ALPHA, SEED = 0.1, 0.05, 0
DRAWS, QUICK_DRAWS, SEEDS = 400, 60, 8
#: The interaction of the headline: one to three words with a slip.
FEW, ONE = "a few typos", "one typo"
#: What makes these messages rude: with these words kept, only the words around them can be misspelt.
RUDE = (
    "idiot", "idiots", "moron", "stupid", "stupidest", "dumb", "fool", "fools", "jerk", "loser", "losers", "liar", "creep", "pig", "rat", "ugly",
    "twit", "clown", "nitwit", "crap", "crappy", "damn", "hell", "suck", "sucks", "bloody", "butt", "freaking", "hate", "pathetic", "bully", "goat",
)  # fmt: skip


def interactions() -> dict[str, Interaction]:
    """What people do to a message, by name."""
    return {
        ONE: typos(least=1, most=1),
        FEW: typos(0.3, least=1, most=3),
        "a few typos, rude words kept": typos(0.3, least=1, most=3, keep_words=RUDE),
        "common misspellings": misspell(0.3, least=1, most=3, ways=["list"]),
        "one letter as a digit": leet(least=1, most=1),
        "three letters as digits": leet(least=3, most=3),
        "one foreign lookalike": homoglyphs(least=1, most=1),
        "one gap closed or doubled": whitespace(least=1, most=1),
        "capitals at random": mixed_case(0.5),
        "marks dropped or doubled": punctuation(0.3, least=1),
    }


def run(*, quick: bool = False) -> Study:
    """Flag, misspell, flag again."""
    messages = benchmark("messages")
    stopped = [bool(f) for f in flags([p.text for p in messages])]
    flagged = Prompts(tuple(p for p, stop in zip(messages, stopped) if stop))
    passed = Prompts(tuple(p for p, stop in zip(messages, stopped) if not stop))
    n = QUICK_DRAWS if quick else DRAWS
    audits = {name: asked(flagged, made, n) for name, made in interactions().items()}
    rows = pd.DataFrame([summary(name, audits[name], made, flagged) for name, made in interactions().items()])
    friendly = passed.subset(category="friendly")
    wrongly = asked(friendly, interactions()[FEW], n, target=True)
    by_category = pd.DataFrame([category(c, audits[FEW], flagged) for c in flagged.categories])
    numbers = headline(audits, wrongly, messages, flagged, rows, n)
    exact = pd.to_numeric(rows["exact"], errors="coerce")
    missed = rows.loc[(exact < rows["low"]) | (exact > rows["high"]), "interaction"]
    numbers["missed"] = {k: [mean_of(asked(flagged, interactions()[k], n, seed=s)).estimate for s in range(1, SEEDS + 1)] for k in missed}
    tables = {"interactions": rows, "categories": by_category, "messages": verdicts(audits, flagged)}
    return Study("moderation", TITLE, ABOUT, comparison(numbers, rows), tables, {"let_through": figure(rows)}, numbers, quick, DATA)


DATA = ("100 messages written for this study, in `budge.llm` (MIT); the classifier is that of the package alt-profanity-check (MIT)",)
ABOUT = """
A moderation classifier (`alt-profanity-check`, a linear model on words) flags a message when its probability is at least 0.5.
One hundred mild messages were written for this study. Those that it flags are rewritten at random, as by people who mistype or
who want to pass, and the classifier is run again. For each message ρ is the share of its rewrites that pass; for each interaction the table has the
mean of ρ over these messages with an exact 95 % interval, and, where all rewrites can be listed, its exact value. A message is
"above" where it is shown that more than a tenth of its rewrites pass, and "below" where it is shown that fewer do.
"""


def asked(prompts: Prompts, made: Interaction, n: int, *, target: bool = False, seed: int = SEED) -> Any:
    """The audit of these messages: how often does a rewrite attain the target (False: it passes)?"""
    texts = pd.Series({p.id: p.text for p in prompts})
    return audit(flags, texts, made, target=target, threshold=THRESHOLD, alpha=ALPHA, claim="above", n=n, seed=seed, population="all")


def mean_of(found: Any) -> stats.Average:
    """The share that passes, averaged over these messages."""
    return stats.average(found.table["hits"], found.table["n"], over="these", alpha=ALPHA)


def exact_share(prompts: Prompts, made: Interaction) -> float | None:
    """The same without drawing: over every rewrite of every message, by its probability. None where they are too many."""
    shares = []
    for prompt in prompts:
        size = made.reachable(prompt)
        if size is None or size > 1000:
            return None
        law = made.law(prompt)
        shares.append(sum(p for p, stop in zip(law.values(), flags(list(law))) if not stop))
    return float(sum(shares) / len(shares))


def summary(name: str, found: Any, made: Interaction, flagged: Prompts) -> dict[str, Any]:
    """One row of the table of interactions."""
    share, table = mean_of(found), found.table
    exact = exact_share(flagged, made)
    counts = {verdict: int((table["verdict"] == verdict).sum()) for verdict in ("above", "below", "inconclusive")}
    return {
        "interaction": name, "let_through": share.estimate, "low": share.low, "high": share.high, "exact": "–" if exact is None else f"{exact:.4f}",
        "messages": len(table), "some_rewrite_passes": int((table["hits"] > 0).sum()), **counts, "draws": int(table["n"].sum()),
    }  # fmt: skip


def category(name: str, found: Any, flagged: Prompts) -> dict[str, Any]:
    """The headline within one kind of message; the intervals hold for all kinds together."""
    table = found.table.loc[[p.id for p in flagged if p.category == name]]
    share = stats.average(table["hits"], table["n"], over="these", alpha=ALPHA / len(flagged.categories))
    return {"category": name, "messages": len(table), "let_through": share.estimate, "low": share.low, "high": share.high}


def witness(audits: dict[str, Any], label: str) -> str | None:
    """A rewrite that passes: with one typo where that is enough, else with a few."""
    found: str | None = audits[ONE].witness(label) or audits[FEW].witness(label)
    return found


def verdicts(audits: dict[str, Any], flagged: Prompts) -> pd.DataFrame:
    """Message by message: the share that passes with a few typos, what is shown, and a rewrite that passed."""
    rows = []
    for prompt in flagged:
        row = audits[FEW].table.loc[prompt.id]
        rows.append(
            {
                "message": prompt.text, "rho": float(row["rho"]), "low": float(row["low"]), "high": float(row["high"]), "verdict": row["verdict"],
                "passes": witness(audits, prompt.id) or "none found",
            }
        )  # fmt: skip
    return pd.DataFrame(rows).sort_values("rho", ascending=False, kind="stable", ignore_index=True)


def headline(
    audits: dict[str, Any], wrongly: Any, messages: Prompts, flagged: Prompts, rows: pd.DataFrame, n: int
) -> dict[str, Any]:
    """The numbers behind the table."""
    share, back, table = mean_of(audits[FEW]), mean_of(wrongly), audits[FEW].table
    wider = stats.average(table["hits"], table["n"], over="population", method="bounded", alpha=ALPHA)
    return {
        "messages": len(messages), "flagged": len(flagged), "draws_a_message": n,
        "let_through": share.to_dict(), "population": wider.to_dict(), "friendly_flagged": back.to_dict(), "interactions": rows.to_dict("records"),
        "examples": {p.text: found for p in flagged if (found := witness(audits, p.id)) is not None},
    }  # fmt: skip


def comparison(numbers: dict[str, Any], rows: pd.DataFrame) -> pd.DataFrame:
    """The table in which the study ends. The paper has no moderation study, so that its column is empty."""
    by = rows.set_index("interaction")

    def interval(name: str) -> str:
        row = by.loc[name]
        exact = "" if row["exact"] == "–" else f"; exactly {percent(float(row['exact']))}"
        return f"{percent(row['let_through'])} ({percent(row['low'])} to {percent(row['high'])}{exact})"

    def told(found: dict[str, Any]) -> str:
        return f"{percent(found['estimate'])} ({percent(found['low'])} to {percent(found['high'])})"

    def luck(name: str) -> str:
        if not (again := numbers["missed"].get(name)):
            return ""
        around = f"{percent(sum(again) / len(again))} on average, {percent(min(again))} to {percent(max(again))}"
        return f"the interval misses the exact value, as 1 in 20 may; {len(again)} other seeds give {around}"

    few = by.loc[FEW]
    example = next((f"{a!r} is flagged, {b!r} passes" for a, b in numbers["examples"].items()), "none")
    return compared(
        [
            ("messages flagged, as they stand", "–", f"{numbers['flagged']} of {numbers['messages']}", ""),
            (f"share of flagged messages that {FEW} let through", "–", interval(FEW), "1 to 3 words with one slip each; mean over these messages"),
            ("the same, were these a random sample of messages", "–", told(numbers["population"]),
             "they are no random sample, since they were written for this; interval of a bounded mean"),
            ("flagged messages of which more than 10% of rewrites pass", "–", f"{few['above']} of {few['messages']}", "each shown at 5%"),
            ("flagged messages of which less than 10% of rewrites pass", "–", f"{few['below']} of {few['messages']}", "each shown at 5%"),
            ("flagged messages with some rewrite that passes", "–", f"{few['some_rewrite_passes']} of {few['messages']}",
             "the classifier was run again on each"),
            ("a witness", "–", example, ""),
            *((f"share let through: {name}", "–", interval(name), luck(name)) for name in by.index if name != FEW),
            (f"friendly messages that {FEW} get flagged", "–", told(numbers["friendly_flagged"]), ""),
        ]
    )  # fmt: skip


def figure(rows: pd.DataFrame) -> str:
    """The share let through, interaction by interaction."""
    values = {str(r["interaction"]): float(r["let_through"]) for r in rows.to_dict("records")}
    spans = {str(r["interaction"]): (float(r["low"]), float(r["high"])) for r in rows.to_dict("records")}
    return panels(sideways("Flagged messages let through", "mean share of rewrites that pass", values, spans))
