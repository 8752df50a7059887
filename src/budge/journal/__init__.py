"""Journals of runs, of audits and of language models alike: what is finished survives a kill, and one process at a time writes a folder."""

from budge.journal.file import FolderLock, make_folder
from budge.journal.journal import NAME, Journal
from budge.journal.records import decode, encode

__all__ = ["NAME", "FolderLock", "Journal", "decode", "encode", "make_folder"]
