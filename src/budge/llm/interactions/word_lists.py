"""Lists of real misspellings: a built-in one, the long one that nlpaug carries, or a file of the caller's."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import blake2b
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from budge.errors import DataError, MissingDependencyError, Problem
from budge.llm.prompt_files import read_text

__all__ = ["list_digest", "word_list"]

_SPELT = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def word_list(name: str = "common") -> dict[str, tuple[str, ...]]:
    """Words in small letters, each with its misspellings.

    Parameters
    ----------
    name
        ``common``, ``nlpaug`` or the path of a file. Each line of a file is a word and its misspellings, separated by spaces or
        commas, or ``misspelling->word``; lines that start with # are left out.

    Examples
    --------
    >>> word_list("common")["definitely"][0]
    'definately'
    """
    return _read(str(name), _stamp(str(name)))[0]


def list_digest(name: str) -> str:
    """A digest of what the list says, wherever it lies."""
    return _read(str(name), _stamp(str(name)))[1]


def _stamp(name: str) -> tuple[int, int]:
    """When a file was written, and its size: a file that was changed is read again."""
    if name in ("common", "nlpaug"):
        return (0, 0)
    try:
        found = Path(name).stat()
    except OSError:
        return (0, 0)  # reading it will say why
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=16)
def _read(name: str, stamp: tuple[int, int]) -> tuple[dict[str, tuple[str, ...]], str]:
    found = _words(name)
    body = json.dumps(found, sort_keys=True, ensure_ascii=True)
    return found, blake2b(body.encode(), digest_size=16).hexdigest()


def _words(name: str) -> dict[str, tuple[str, ...]]:
    if name == "common":
        text = resources.files("budge.llm").joinpath("data", "misspellings.txt").read_text(encoding="utf-8")
        return _parsed(text, "the built-in list", strict=True)
    if name == "nlpaug":
        return _parsed(read_text(_nlpaug_file()), "nlpaug", strict=False)
    return _parsed(read_text(Path(name)), name, strict=True)


def _nlpaug_file() -> Path:
    """The data file of nlpaug, found without importing its modules, which are heavy."""
    package = find_spec("nlpaug")
    for place in (package.submodule_search_locations or ()) if package else ():
        path = Path(place) / "res" / "word" / "spelling" / "spelling_en.txt"
        if path.is_file():
            return path
    what = "the long list of misspellings comes with nlpaug"
    raise MissingDependencyError(what, where="words", got="nlpaug", remedy="pip install 'budge[text]', or words='common'")


def _parsed(text: str, where: str, *, strict: bool) -> dict[str, tuple[str, ...]]:
    """Words and misspellings that are letters and apostrophes; in a list that is not ours the others are left out."""
    found: dict[str, dict[str, None]] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if "->" in line:
            wrong, right = line.split("->", 1)
            pairs = [(word, w) for word in re.split(r"[\s,]+", right.strip()) for w in re.split(r"[\s,]+", wrong.strip())]
        else:
            word, *rest = re.split(r"[\s,]+", line.strip().rstrip(","))
            pairs = [(word, w) for w in rest]
            if not rest and strict:
                problems.append(Problem(f"line {number}", "has a word and no misspelling", line))
        for word, wrong in pairs:
            if not _SPELT.fullmatch(word) or not _SPELT.fullmatch(wrong):
                if strict:
                    problems.append(Problem(f"line {number}", "words are letters and apostrophes", line))
                    break
            elif wrong.lower() != word.lower():
                found.setdefault(word.lower(), {})[wrong.lower()] = None
    if not found and not problems:
        problems.append(Problem("", "holds no misspelling", text[:40]))
    if problems:
        raise DataError(problems[:20]).at(where)
    return {word: tuple(wrong) for word, wrong in found.items()}
