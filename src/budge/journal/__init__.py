"""Journals of runs, of audits and of language models alike: what is finished survives a kill, and one process at a time writes a folder."""

from budge.journal.file import FolderLock
from budge.journal.journal import NAME, NEXT, Journal
from budge.journal.records import decode, encode

__all__ = ["NAME", "NEXT", "FolderLock", "Journal", "decode", "encode"]
