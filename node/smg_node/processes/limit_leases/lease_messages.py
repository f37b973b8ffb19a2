"""Lease messages between data and control process: asks, grants, reports. Values only.

A *term* is one stay of one key in one window, numbered by the control process: what is given in a
term counts in it alone, and what comes back for another one is void. Between two messages of a link
nothing is lost or reordered, so amounts are what is *new*; when a link is cut, all of that ends,
and a new one begins with a `Hello`.
"""

from typing import Final

import msgspec

from smg_node.admission.ports import State

ASK: Final = "lease.ask"
WORD: Final = "lease.word"
"""What these are called on the bus."""


class LeaseAsk(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Message of a data process about one key."""

    key: str
    term: int
    """That it knows, 0 for none."""
    back: int = 0
    """So much of what it was given goes back."""
    offered: int = 0
    """So much was asked for here since the last time, let in or not."""
    owed: int = 0
    """So much was used without a right."""
    least: int = 0
    """Whoever waits longest needs so much more than there is; 0: nobody waits."""
    waits: int = 0
    """All who wait need so much more."""
    wants: int = 0
    """So much would be of use, `waits` included."""
    recalled: bool = False
    """This answers a recall, and not whatever was asked before."""


class LeaseGrant(msgspec.Struct, frozen=True, array_like=True):
    """Message of the control process about one key."""

    key: str
    term: int
    given: int
    amount: int
    window_ms: int
    window: int
    ends_ms: int
    """By the wall clock."""
    pool: int
    """What is left besides, 0 if nothing is, -1 if nobody knows."""
    state: State
    debt: int
    dry: bool = False
    """Nothing is there for who asked, in no process of this node, as far as anybody knows."""
    answers: bool = True
    """The question is answered; another one may be asked."""
    recall: bool = False
    """What is not in use is needed elsewhere: it is to come back at once, and if that is nothing, to be said."""
    next_ms: int = 0
    """When the next unit accrues to this node without anybody's help; 0 if none does in this window (wall clock)."""


class LeaseReport(msgspec.Struct, frozen=True, array_like=True):
    """All messages of a data process at one time. The first of a link reports what it has open of
    limits without windows.
    """

    asks: tuple[LeaseAsk, ...]
    open: dict[str, int] | None = None


class LeaseGrants(msgspec.Struct, frozen=True, array_like=True):
    """All messages of the control process at one time."""

    words: tuple[LeaseGrant, ...]


_encode: Final = msgspec.msgpack.Encoder().encode
_said: Final = msgspec.msgpack.Decoder(LeaseReport).decode
_told: Final = msgspec.msgpack.Decoder(LeaseGrants).decode


def pack(words: LeaseReport | LeaseGrants) -> bytes:
    """Return it as it travels."""
    return _encode(words)


def read_report(content: bytes) -> LeaseReport:
    """Return the report of a data process; ValueError for anything else."""
    try:
        return _said(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not the words of a data process: {error}") from error


def read_grants(content: bytes) -> LeaseGrants:
    """Return the grants of the control process; ValueError for anything else."""
    try:
        return _told(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not the words of a control process: {error}") from error
