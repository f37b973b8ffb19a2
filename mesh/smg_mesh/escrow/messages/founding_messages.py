"""Founding messages: what names say to each other that have no roster yet; the rest is in `messages`."""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.escrow.founding_state import FOUNDERS_MAX, NO_BALLOT, Ballot

_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=63)]
_U64: TypeAlias = Annotated[int, Meta(ge=0)]
_Id: TypeAlias = Annotated[bytes, Meta(min_length=16, max_length=16)]


class FoundAsk(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """`name` proposes a roster of the founders with that id, and asks for a promise to go by no smaller ballot.

    `founders` has the ids of all that it knows to have been tried. A release before ballots says none of both.
    """

    roster: _Id
    name: _Name
    sent_ms: _U64
    ballot: Ballot = NO_BALLOT
    founders: Annotated[tuple[_Id, ...], Meta(max_length=FOUNDERS_MAX)] = ()


class FoundVote(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Answer to a FoundAsk: whether this name promises.

    `ballot` is the largest that it has promised. A release before ballots says nothing from there on.
    """

    roster: _Id
    voter: _Name
    asked_ms: _U64
    accepted: bool
    ballot: Ballot = NO_BALLOT
    unknown: Annotated[tuple[_Id, ...], Meta(max_length=FOUNDERS_MAX)] = ()
    """Founders of the ask whose names it has to be told before it may promise."""
    forgotten: Annotated[tuple[_Id, ...], Meta(max_length=FOUNDERS_MAX)] = ()
    """Founders about which it may have forgotten something: there it counts for nothing."""
    held: Annotated[bytes, Meta(max_length=16)] = b""
    """The founders whose roster it has accepted last; empty for none."""
    held_ballot: Ballot = NO_BALLOT
