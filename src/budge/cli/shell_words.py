"""Problems in the language of the shell: an option where the library names a Python argument, the nearest file where one is missing."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from budge.errors import BudgeError, ModelError, Problem
from budge.files import near_file

__all__ = ["in_shell_words"]

#: Arguments of Python whose option is not called the same, with hyphens.
OPTIONS = {"n": "-n", "n_jobs": "--jobs", "groups": "--by", "by": "--by", "journal": "--out", "id": "--id"}
SAME = (
    "adjust", "alpha", "claim", "cutoff", "engine", "fail-if", "harm", "margin", "max_unresolved", "method", "model", "on_invalid", "outcome", "output",
    "population", "power", "prove", "prove_seconds", "rate", "seed", "sequential", "target", "threshold", "trust", "width",
)  # fmt: skip
OPTIONS |= {name: f"--{name.replace('_', '-')}" for name in SAME}
FLAGS = ("prove", "sequential")
READ = ("separator", "encoding", "decimal", "header", "names", "missing", "text", "member", "sheet", "table", "query")  #: choices of `--read`
OPTIONS |= {"read": "--read", **{name: f"--read {name}" for name in READ}}
#: What the library advises in Python, and what does the same on the shell; the first that fits is taken.
ADVICE = (
    (rf"(?<![?&\w])({'|'.join(READ)})=(?=[\w…])", r"--read \1="),
    (r"load_model\(path, trust=.*\), or (--trust .*) on the command line", r"give \1"),
    (r"\w+=(?:True|'\w+') \((--[a-z- ]+)\)", r"\1"),
    (r"\btrust=True\b", "--trust all"),
    (r"; check='warn' keeps the result with a note", ""),
    (r"use engine='threads' or n_jobs=1, or make the model picklable", "give --jobs 1"),
    (r"save one with audit\.save\(folder\)", "make one with budge audit SPEC PEOPLE --model FILE --target LABEL -o FOLDER"),
    (r"see the column unresolved of result\.table; mend the model or accept more", "mend the model, or accept more with --max-unresolved"),
    (r"predict_resolved\(\) gives the others", "mend the model, so that it answers about every row"),
    (r"groups=\[\.\.\.\]", "--by COLUMN"),
    (r"\bor overwrite( it)?$", "or --overwrite"),
    (r"\bdraw (\d+) or more", r"give -n \1 or more"),
    (r"\bleave (n|sequential|threshold) out", lambda m: f"leave {OPTIONS[m[1]]} out"),
    (r"\bset on_invalid to skip or keep", "give --on-invalid skip or --on-invalid keep"),
    (r"\bgive a threshold\b", "give threshold=..."),
    (r"\buse (?:replay|attached)\(model, X\) first", "give the model and the people with --model and --data"),
)  # fmt: skip
_ARGUMENT = re.compile(r"\b(\w+)=(?:'([^']*)'|(\.\.\.)|(True)|([\w.]*\w))")

_PLACE = re.compile(r"([\w-]+)((?:,|\.column).*)?", re.DOTALL)


def in_shell_words(error: BudgeError) -> list[Problem]:
    """Return the problems of an error with places and remedies as they are typed on the shell."""
    return [_shell(problem, isinstance(error, ModelError)) for problem in error.problems]


def _shell(problem: Problem, of_model: bool) -> Problem:
    names = OPTIONS | ({"threshold": "--cutoff"} if of_model else {})  # of a model, a threshold turns scores into labels

    def option(found: re.Match[str]) -> str:
        name, text, some, flag, value = found.groups()
        if name not in names or name in READ or (flag and name not in FLAGS):
            return found[0]
        return names[name] + ("" if flag else f" {text or value or ('NUMBER' if some else '')}")

    remedy = problem.remedy
    for pattern, words in ADVICE:
        remedy = re.sub(pattern, words, remedy)
    remedy = _ARGUMENT.sub(option, remedy)
    place = _PLACE.fullmatch(problem.where)
    head, tail = place.groups() if place else (problem.where, "")
    if re.match(r"there is no such (\w+ )?file", problem.what) and not remedy.startswith("did you mean"):
        remedy = near_file(Path(problem.where))
    return replace(problem, where=names.get(head, head) + (tail or "").replace(".column", ", column", 1), remedy=remedy)
