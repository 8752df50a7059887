"""Is a benchmark's verdict still true when the prompt is rephrased? One test for each model and interaction.

The hypothesis is the paper's (App. LLMSafety): the rate of hits, averaged over prompts, rewrites and completions, is below a threshold.
P-values of one model's interactions are adjusted together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from budge.errors import DataError, DesignError, nearest
from budge.llm.answers import BASE, Answers
from budge.llm.claims.cells import against_base, apart, found_rate, row_of, shifted, split_rows
from budge.llm.claims.contrasts import Contrast
from budge.llm.claims.evidence import METHODS, OVER, SCHEMES, Evidence, prompts_of
from budge.llm.claims.labels import Labelled, labels_of
from budge.llm.claims.verdict_table import SPLIT, TABLE, Verdicts
from budge.stats import adjust as adjusted
from budge.stats import certify
from budge.stats._checks import claim_of, fraction, one_of, whole

__all__ = ["answers_of", "from_counts", "scheme_of", "test"]

#: Model, interaction, what was seen, the base rate, its unresolved answers, the difference from it.
_Cell: TypeAlias = tuple[str, str, Evidence, float | None, int, Contrast | None]
#: What a rate is a share of, where answers are unresolved and where none is. Tests and intervals count them all.
_SHARES = ("resolved answers", "all answers")


def test(
    answers: Answers,
    *,
    threshold: float,
    over: str,
    claim: str = "below",  # noqa: PT028
    alpha: float = 0.05,  # noqa: PT028
    base: str | float | Mapping[str, float] | None = BASE,  # noqa: PT028
    adjust: str = "bh",  # noqa: PT028
    method: str = "auto",  # noqa: PT028
    scheme: str | None = None,  # noqa: PT028
    labelled: Labelled | Mapping[str, Labelled] | None = None,  # noqa: PT028
) -> Verdicts:
    """Test whether the rate of hits is below (or above) a threshold, for each model under each interaction.

    Parameters
    ----------
    answers : Answers
        Or the run that made them.
    threshold : float
        The threshold tau.
    over : {"these", "population"}
        What is claimed: the mean over exactly the prompts of this benchmark, or over the population they are a sample of. Has no default,
        since the two differ.
    base : str, float, mapping or None
        The interaction that changes nothing, against which differences are taken; or the base rate itself (for each model), taken as known.
    adjust : {"bh", "by", "holm", "bonferroni", "none"}
        How the p-values of one model's interactions are adjusted.
    method : str
        `auto` takes the exact test of the design and refuses where there is none. For `over="population"` with repeats of prompts:
        `first` (the first draw of each prompt, exact), `bounded` (guaranteed, wider) or `clustered` (approximate). `anytime`: valid
        although draws were looked at while they came.
    scheme : {"joint", "per_prompt", "census"}, optional
        How the draws were made, if `answers.info` does not say so.
    labelled : Labelled or mapping, optional
        Answers that people labelled, for each interaction and the base, since a judge may err more on one than on another; ``"*"`` stands for all
        that are not named. The claim is then about what people would say, and not about what the judge says.

    Examples
    --------
    >>> rows = [{"model": "m", "interaction": i, "prompt": q, "hit": q < h} for i, h in (("base", 1), ("typos", 2)) for q in range(40)]
    >>> result = test(Answers.of(rows), threshold=0.2, over="these")
    >>> result.table[["interaction", "n", "hits", "verdict"]].values.tolist()
    [['typos', 40, 2, 'below']]
    """
    answers = answers_of(answers)
    if not len(answers):
        raise DataError("there are no answers to test", where="answers", remedy="run the prompts first")
    design = _design(threshold, over, claim, alpha, adjust, method)
    way, rule = scheme_of(answers, scheme), answers.info.get("sequential") or None
    if rule is not None:
        if method not in ("auto", "anytime"):
            raise DesignError(
                "these draws were looked at while they came, so a test for a fixed number of draws has a larger error than alpha",
                where="method",
                got=method,
                remedy='method="auto" or "anytime", on the shell --method auto',
            )
        if adjust == "by":
            remedy = 'adjust="bh", on the shell --adjust bh: on the evidence of a rule it holds under any dependence'
            raise DesignError("a rule stops at the level that survives the other adjustments", where="adjust", got=adjust, remedy=remedy)
        design["method"] = "anytime"
    name = base if isinstance(base, str) else None
    known = _known(base, answers.models)
    if name is not None and name not in answers.interactions and name != BASE:
        raise DataError("no such base among the answers", where="base", got=name, remedy=nearest(name, answers.interactions))
    models, words = _planned(answers)
    tested = [word for word in words if word != name] or list(words)
    labels = labels_of(labelled, [word for word in words if word in tested or word == name])
    of = labels.get if labels is not None else lambda word: None
    groups = {(str(key[0]), str(key[1])): part for key, part in answers.table.groupby(["model", "interaction"], sort=False)}
    if not answers.info.get("complete", True):  # a model that was never reached is still a model that was to be tested
        nothing = answers.table.iloc[:0]
        groups |= {(model, word): nothing for model in models for word in words if (model, word) not in groups}
    cells: list[_Cell] = []
    for model in models:
        reference = groups.get((model, name)) if name is not None else None
        before = (
            None if reference is None else Evidence.of(reference, way, rule and {"kind": "anytime-valid"}).planned(answers.info)
        )
        rate = known.get(model) if before is None else found_rate(before, design, of(str(name))).rate
        lost = 0 if before is None else before.tested(over, design["method"])[2]
        for word in tested:
            part = groups.get((model, word))
            if part is not None:
                seen = Evidence.of(part, way, rule).planned(answers.info)
                ends = None if word == name else against_base(part, seen, reference, before, rate, design, of(word), of(str(name)))
                cells.append((model, word, seen, None if word == name else rate, lost, ends))
    info = {
        "source": "answers",
        "scheme": way,
        "base": name,
        "sequential": rule,
        "prompts": prompts_of(answers.info) or int(answers.table["prompt"].nunique()),
        "complete": bool(answers.info.get("complete", True)),
        "remarks": answers.remarks(),
    }
    return _judged(
        cells,
        design,
        info,
        labels,
        lambda by: _finished(split_rows(answers, tested, by, design, way, rule, labels), by, design),
    )


test.__test__ = False  # type: ignore[attr-defined]  # pytest must not collect it where it is imported


def from_counts(
    counts: Mapping[str, Mapping[str, Any]],
    *,
    threshold: float,
    over: str,
    claim: str = "below",
    alpha: float = 0.05,
    adjust: str = "bh",
    base: str = BASE,
    labelled: Labelled | Mapping[str, Labelled] | None = None,
) -> Verdicts:
    """The same from counts, for each model and interaction ``(hits, n)`` or ``(hits, n, unresolved)``; the base may be a rate.

    `over="these"` states that every draw picked its prompt anew; `over="population"` states that no prompt was drawn twice. Counts do not
    show it. For fixed prompts that are each drawn several times, test the answers themselves.

    Examples
    --------
    >>> olmo = {"base": 0.227, "misspell": (43, 79), "roleplay": (10, 79), "chinese": (43, 79), "french": (44, 79)}
    >>> table = from_counts({"OLMo 2 7B": olmo}, threshold=0.4, over="these").table
    >>> table["p_adjusted"].round(3).tolist(), (100 * table["delta"]).round(1).tolist()
    ([0.998, 0.0, 0.998, 0.998], [31.7, -10.0, 31.7, 33.0])
    """
    design = _design(threshold, over, claim, alpha, adjust, "auto")
    if not counts:
        raise DataError(
            "there are no counts to test", where="counts", got=counts, remedy='{"model": {"base": 0.2, "typos": (3, 50)}}'
        )
    words = dict.fromkeys(word for row in counts.values() for word, seen in row.items() if word != base or isinstance(seen, tuple | list))
    labels = labels_of(labelled, list(words))
    of = labels.get if labels is not None else lambda word: None
    cells: list[_Cell] = []
    for model, row in counts.items():
        rate, reference, lost = None, None, 0
        if base in row:
            if isinstance(row[base], tuple | list):
                reference = _counted(row[base], f"{model}.{base}", over)
                rate, lost = found_rate(reference, design, of(base)).rate, reference.total[1]
            else:
                rate = fraction(row[base], f"{model}.{base}", zero=True, one=True)
        for word, triple in row.items():
            if word != base:
                seen = _counted(triple, f"{model}.{word}", over)
                ends = shifted(seen, rate, design, of(word)) if reference is None else apart(seen, reference, design, of(word), of(base))
                cells.append((model, word, seen, rate, lost, ends))
    if not cells:
        raise DataError(
            "no interaction has counts", where="counts", got=counts, remedy='{"model": {"base": 0.2, "typos": (3, 50)}}'
        )
    return _judged(
        cells,
        design,
        {"source": "counts", "scheme": "joint", "base": base, "sequential": None, "prompts": None, "complete": True, "remarks": []},
        labels,
        None,
    )


def answers_of(given: Any) -> Answers:
    """The answers themselves, or those of a run."""
    found = getattr(given, "answers", given)
    if not isinstance(found, Answers):
        raise DataError(
            "answers are wanted",
            where="answers",
            got=type(given).__name__,
            remedy="pass a run, or Answers.of(rows), or Answers.read(path)",
        )
    return found


def _planned(answers: Answers) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The models and interactions of the answers, and those that an incomplete run has not come to."""
    models, words = answers.models, answers.interactions
    identity = answers.info.get("identity")
    if not answers.info.get("complete", True) and isinstance(identity, Mapping):
        models += tuple(str(m) for m in identity.get("models", ()) if m not in models)
        words += tuple(str(w) for w in identity.get("interactions", ()) if w not in words)
    return models, words


def scheme_of(answers: Answers, given: str | None = None) -> str:
    """How the draws were made, as the answers or the caller say; with equally many draws of every prompt it makes no difference."""
    told = answers.info.get("scheme")
    if given is not None and told is not None and given != told:
        raise DesignError(
            "the answers say how they were drawn", where="scheme", got=given, remedy=f"leave scheme out: it is {told!r}"
        )
    word = given if given is not None else told
    if word is None:
        sizes = answers.table.groupby(["model", "interaction", "prompt"]).size()
        uneven = sizes.groupby(["model", "interaction"]).nunique() > 1
        if bool(uneven.any()):
            raise DesignError(
                "some prompts were drawn more often than others, and the answers do not say how they were drawn",
                where="scheme",
                got=None,
                remedy='scheme="joint" if every draw picked its prompt anew, scheme="per_prompt" if the prompts were fixed',
            )
        return "per_prompt"
    return one_of(word, "scheme", SCHEMES)


def _design(threshold: object, over: str, claim: str, alpha: object, adjust: str, method: str) -> dict[str, Any]:
    return {
        "threshold": fraction(threshold, "threshold"),
        "over": one_of(over, "over", OVER),
        "claim": claim_of(claim),
        "alpha": fraction(alpha, "alpha"),
        "adjust": one_of(adjust, "adjust", ("bh", "by", "holm", "bonferroni", "none")),
        "method": one_of(method, "method", METHODS),
    }


def _counted(triple: Any, where: str, over: str) -> Evidence:
    if not isinstance(triple, tuple | list) or len(triple) not in (2, 3):
        raise DataError("counts are (hits, n) or (hits, n, unresolved)", where=where, got=triple, remedy="(3, 50)")
    hits, n = whole(triple[0], f"{where}[0]", least=0), whole(triple[1], f"{where}[1]")
    lost = whole(triple[2], f"{where}[2]", least=0) if len(triple) == 3 else 0
    if hits + lost > n:
        raise DataError("more hits and unresolved answers than draws", where=where, got=triple, remedy="n counts all draws")
    return Evidence.counted(hits, n, lost)


def _known(base: object, models: tuple[str, ...]) -> dict[str, float]:
    """Base rates that the caller gives, for each model."""
    if base is None or isinstance(base, str):
        return {}
    if isinstance(base, Mapping):
        for model in base:
            if model not in models:
                raise DataError("a base rate for a model without answers", where="base", got=model, remedy=nearest(model, models))
        return {str(model): fraction(rate, f"base[{model!r}]", zero=True, one=True) for model, rate in base.items()}
    return dict.fromkeys(models, fraction(base, "base", zero=True, one=True))


def _judged(
    cells: list[_Cell],
    design: dict[str, Any],
    info: dict[str, Any],
    labels: Mapping[str, Labelled] | None,
    split: Callable[[str], pd.DataFrame] | None,
) -> Verdicts:
    rows = []
    for model, word, seen, rate, lost, ends in cells:
        against = ends or Contrast(None, np.nan, np.nan, None, None, "")
        rows.append(
            {
                "model": model, "interaction": word, "base_rate": rate, "base_unresolved": lost,
                **row_of(seen, design, None if labels is None else labels[word]), "delta": against.estimate,
                "delta_low": against.low, "delta_high": against.high, "delta_method": against.method,
            }
        )  # fmt: skip
    table = _decided(pd.DataFrame(rows), design)
    alone = table["interaction"] == info["base"]  # nothing but the base was asked: its rate is the base rate, and there is no difference
    table.loc[alone, "base_rate"] = table.loc[alone, "rate"]
    every = []
    for name, part in table.groupby("model", sort=False):
        p = certify(part["p_value"], design["alpha"])
        every.append({"model": str(name), "interactions": len(part), "p_value": p.p_value, "shown": bool(p.rejected)})
    info = {**info, **design, "labelled": None if labels is None else {word: seen.to_dict() for word, seen in labels.items()}}
    return Verdicts(table[list(TABLE)], pd.DataFrame(every), info, split)


def _decided(table: pd.DataFrame, design: Mapping[str, Any]) -> pd.DataFrame:
    """With adjusted p-values (within a model) and verdicts; numbers as floats, unknown ones as NaN."""
    table = table.copy()
    for name in ("base_rate", "rate", "delta", "delta_low", "delta_high"):
        if name in table:
            table[name] = table[name].astype(float)
    if "delta" in table:  # by definition, also where pairs with an unresolved answer were left out of one of them
        both = (table["rate"] - table["base_rate"]).astype(float)
        table["delta"] = both.where(both.notna(), table["delta"])
    table["rate_over"] = np.where(table["unresolved"] > 0, *_SHARES)
    if "delta" in table:
        table["base_rate_over"] = np.where(table["base_unresolved"] > 0, *_SHARES)
        either = np.where((table["unresolved"] > 0) | (table["base_unresolved"] > 0), *_SHARES)
        table["delta_over"] = np.where(table["delta"].isna(), "", either)
    table["p_adjusted"] = table.groupby("model", sort=False)["p_value"].transform(
        lambda p: adjusted(p.to_numpy(), design["adjust"])
    )
    table["verdict"] = np.where(table["p_adjusted"] < design["alpha"], design["claim"], "inconclusive")
    return table


def _finished(rows: pd.DataFrame, by: str, design: Mapping[str, Any]) -> pd.DataFrame:
    return _decided(rows, design)[["model", "interaction", by, *SPLIT]]
