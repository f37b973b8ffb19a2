"""Revision of the tables that this code needs."""

from typing import Final

NEEDED: Final = "0001"
"""The newest revision that the statements rely on. Tables of a later one are fine: columns are only ever added."""

VERSION_TABLE: Final = "smg_schema_version"


def is_older(found: str, needed: str = NEEDED) -> bool:
    """Return whether tables of that revision lack something. Revisions are numbers, with words behind them."""
    return _number(found) < _number(needed)


def _number(revision: str) -> int:
    digits = revision.partition("_")[0]
    return int(digits) if digits.isdecimal() else -1
