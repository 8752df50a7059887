"""A real moderation classifier as a model under test: `alt-profanity-check`, which ships its weights in its wheel."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from budge.errors import MissingDependencyError

__all__ = ["flag_probability", "flags"]


@lru_cache(maxsize=1)
def _classifier() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its weights were saved by another version of scikit-learn
            import profanity_check
    except ImportError as error:
        what = "the moderation classifier comes with alt-profanity-check"
        raise MissingDependencyError(what, where="moderation", remedy="pip install 'budge[text]'") from error
    return profanity_check


def flag_probability(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """How likely each text is to be profane, by the classifier."""
    return np.asarray(_classifier().predict_prob(list(texts)), dtype=np.float64)


def flags(texts: Sequence[str], *, cutoff: float = 0.5) -> npt.NDArray[np.bool_]:
    """Which texts a moderator would stop: those whose probability is at least the cutoff."""
    return flag_probability(texts) >= cutoff
