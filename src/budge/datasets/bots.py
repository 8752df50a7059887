"""Twitter accounts, bots and humans, in the paper's 20 features."""

from __future__ import annotations

import os

import pandas as pd

from budge.datasets.dataset import Dataset
from budge.datasets.files import SOURCES, raw

__all__ = ["twitterbot"]

_GROUPS = ("1k", "100k", "1M", "10M")
_AGES = (180, 365, 730, 1825)
_SOURCES = {"source_web": "1", "source_mobile": "2", "source_app": "3", "source_news": "6"}


def twitterbot(*, path: str | os.PathLike[str] | None = None) -> Dataset:
    """3431 Twitter accounts, the 20 features of the paper's table, in its order.

    Outcome ``human``: 1 is a human, 0 a bot. One account has a negative ratio of followers to friends, which no account
    can have; it is read as 0, the table's lower bound.

    Parameters
    ----------
    path : path, optional
        ``twitterbot.csv`` or its folder.
    """
    table = raw("twitterbot", path=path)
    return Dataset(
        "twitterbot",
        _encode(table),
        table["is_human"].rename("human"),
        "Twitter accounts in four groups of popularity; 1 is a human, 0 a bot",
        SOURCES["twitterbot"].origin,
        SOURCES["twitterbot"].licence,
    )


def _encode(table: pd.DataFrame) -> pd.DataFrame:
    group = table["followers_group"].map({name: level for level, name in enumerate(_GROUPS)})
    codes = table["source_identity"].str.strip("[]").str.split(";")
    columns: dict[str, pd.Series] = {f"followers>={name}": group >= level for level, name in enumerate(_GROUPS)}
    for plural, column in (("tweets", "user_tweeted"), ("retweets", "user_retweeted"), ("replies", "user_replied")):
        columns[f"num_{plural}"] = table[column]
        columns[f"no_{plural}"] = table[column] == 0
        if plural == "tweets":
            columns["urls_count"] = table["urls_count"]
    columns |= {f"age_of_account>={days}_days": table["age_of_account_in_days"] >= days for days in _AGES}
    frame = pd.DataFrame(columns).astype("int64")
    frame["follower_friend_ratio"] = table["follower_friend_ratio"].clip(lower=0.0)
    for name, code in _SOURCES.items():
        frame[name] = codes.map(lambda listed, code=code: int(code in listed)).astype("int64")
    return frame
