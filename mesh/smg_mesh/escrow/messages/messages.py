"""Messages that nodes exchange about leases, rights, rosters and permits. Everything is a total, so
that loss, repetition and order change nothing: each side keeps the largest it was told. Totals are
those of one (node, boot, term, key, window).

    LeaseAsk     ──▶  every name of the roster: promise me this slot under this term; so much is minted
    LeaseVote    ◀──  yes, or why not, with the largest term and totals that the voter knows
    RightsAsk    ──▶  the owner: so much I was given and gave back, so much I spent, so fast I spend
    RightsGive   ◀──  so much you were given in all, so much is left here, good for so long from your asking on
    RecordsAsk   ──▶  another voter, after a restart or a change of the roster: what have you stored?
    RecordsTell  ◀──  this, page by page
    RosterAsk    ──▶  every name of the roster: store this change of it; or, what did others propose?
    RosterVote   ◀──  which change is stored here, under which term
    RosterTell   ──▶  a node that lacks it: a roster that a majority has stored; or one to be accepted as the first
    RosterWant   ──▶  any name: this is the roster I know; is there a better one?
    FoundAsk     ──▶  those who see each other and have no roster: begin one with me, under this ballot
    FoundVote    ◀──  yes, with what was accepted before, or no
    LoanAsk      ──▶  a lender: so many permits of yours I hold, and so many more I could use; LoanGive ◀── so many
                      you hold and may keep
    LoanLook     ──▶  every name, after lives that are not remembered: what do you hold of mine? LoanTell ◀── this
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.escrow.founding_state import NO_BALLOT, Ballot
from smg_mesh.escrow.limit_model import AMOUNT_MAX, KEY_CHARS_MAX, NAMES_MAX, ROSTER_SLOT
from smg_mesh.escrow.messages.founding_messages import FoundAsk, FoundVote

PACKET_BYTES_MAX: Final = 1_200
"""So that a sealed packet fits into one datagram."""
ROWS_MAX: Final = 50

_Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=63)]
_Key: TypeAlias = Annotated[str, Meta(min_length=1, max_length=KEY_CHARS_MAX)]
UNKNOWN: Final = -2
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Slot: TypeAlias = Annotated[int, Meta(ge=0, le=ROSTER_SLOT)]
_U64: TypeAlias = Annotated[int, Meta(ge=0)]
_RosterId: TypeAlias = Annotated[bytes, Meta(min_length=16, max_length=16)]
_Kind: TypeAlias = Literal["", "join", "leave", "grow"]
_Member: TypeAlias = Annotated[str, Meta(max_length=63)]


class EscrowError(ValueError):
    """A peer's message makes no sense here."""


class Minted(msgspec.Struct, frozen=True, array_like=True):
    """So much of a window was minted in all."""

    key: _Key
    window: _U64
    total: _Count


class Stored(msgspec.Struct, frozen=True, array_like=True):
    """Row that a voter has stored of a window: `base` of that is older than the term of the ask that it answers."""

    key: _Key
    window: _U64
    base: _Count
    total: _Count


class LeaseAsk(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """`name`, in its life `boot`, wants to be or to stay the owner of a slot, or to write what it mints."""

    slot: _Slot
    term: _U64
    name: _Name
    boot: _U64
    roster: _RosterId
    roster_version: _U64
    sent_ms: _U64
    """When, on the asker's own clock; votes carry it back."""
    minted: Annotated[tuple[Minted, ...], Meta(max_length=ROWS_MAX)] = ()
    release: bool = False
    """It does not want it any longer: what was promised to it is not."""
    unused: bool = False
    """With that: it never owned the slot under this term."""


class LeaseVote(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Answer of a voter to a LeaseAsk. `seen_term` is the largest term it knows of the slot.

    `stored` has the rows of the ask that it stored, and only those. `basis` is a digest of the limits that the voter
    goes by, `adopted_ms` when it began to, by its wall clock.
    """

    slot: _Slot
    term: _U64
    voter: _Name
    boot: _U64
    granted: bool
    seen_term: _U64
    asked_ms: _U64
    roster: _RosterId
    """All zero, and version 0, of a voter that knows no roster."""
    roster_version: _U64
    basis: Annotated[bytes, Meta(max_length=8)] = b""
    adopted_ms: _U64 = 0
    stored: Annotated[tuple[Stored, ...], Meta(max_length=ROWS_MAX)] = ()
    why: Annotated[str, Meta(max_length=120)] = ""


class AskRow(msgspec.Struct, frozen=True, array_like=True):
    """One key and window of a node that spends. `demand_per_s` is what it is asked for, in thousandths.

    `given` and `returned` are those of `term`, 0 under a term it does not know. `lapsed` is of all
    terms: what stood with this life of it and was not spent in time. `wants` is needed now, `waits`
    of that by requests that wait.
    """

    term: _U64
    key: _Key
    window: _U64
    given: _Count
    returned: _Count
    spent: _Count
    demand_per_s: _U64
    lapsed: _Count = 0
    wants: _Count = 0
    waits: _Count = 0
    loaned: _Count = 0
    """Beyond the limit, by its mode."""
    stands: Annotated[int, Meta(ge=-1, le=AMOUNT_MAX)] = -1
    """What stands with it in this window in all, and what it has of owners of other terms; -1: unsaid."""


class RightsAsk(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Asks an owner for rights to some keys: what a node has of them, and needs."""

    name: _Name
    boot: _U64
    sent_ms: _U64
    rows: Annotated[tuple[AskRow, ...], Meta(max_length=ROWS_MAX)]


class GiveRow(msgspec.Struct, frozen=True, array_like=True):
    """`given` in all, and what is left in the pool; rights are good for `valid_ms` from the asking on."""

    term: _U64
    key: _Key
    window: _U64
    given: _Count
    left: _Count
    valid_ms: _U64
    free: Annotated[int, Meta(ge=UNKNOWN, le=AMOUNT_MAX)] = -1
    """What all nodes that the owner hears can spend of the window yet; -1: unsaid; UNKNOWN: it has not learned that."""
    spent: _Count = 0
    """By the node that is told, as far as `free` goes by it."""
    lost: _Count = 0
    """What stands with names that the owner does not hear."""
    called: _Count = 0
    """So much of what the node does not need is wanted back now."""


class RightsGive(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answer of an owner to one life of a node: what it gives."""

    owner: _Name
    boot: _U64
    """Of the node that is given to."""
    asked_ms: _U64
    rows: Annotated[tuple[GiveRow, ...], Meta(max_length=ROWS_MAX)]


class RecordsAsk(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A voter that may have forgotten asks another one what it has stored, page by page: what comes after a row."""

    name: _Name
    boot: _U64
    roster: _RosterId
    roster_version: _U64
    asked_ms: _U64
    after_key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)] = ""
    after_window: _U64 = 0


class RecordsTell(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """One page of what a voter has stored, in order of (key, window);
    `more` if it is not the last one.

    `blind_short_ms` and `blind_long_ms`: of windows (shorter than 10 s, and others) that began before these moments
    the teller may have forgotten something itself; of short ones for `blind_short_for_ms` yet. `synced`: it has what was stored under earlier rosters.
    """

    voter: _Name
    boot: _U64
    asker_boot: _U64
    roster: _RosterId
    roster_version: _U64
    asked_ms: _U64
    after_key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)]
    after_window: _U64
    more: bool
    synced: bool
    blind_short_ms: _U64
    blind_long_ms: _U64
    blind_short_for_ms: _U64
    rows: Annotated[tuple[Minted, ...], Meta(max_length=ROWS_MAX)] = ()
    terms: Annotated[tuple[tuple[_Slot, _U64], ...], Meta(max_length=ROSTER_SLOT + 1)] = ()
    """(slot, largest term seen), on the first page."""


class RosterAsk(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The owner of the roster's slot proposes what follows a version: a change, or none, to learn what others did."""

    roster: _RosterId
    version: _U64
    term: _U64
    name: _Name
    sent_ms: _U64
    kind: _Kind = ""
    member: _Member = ""
    since_ms: _U64 = 0


class RosterVote(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Answer of a name of the roster: which change it has stored last, under which term.

    It goes by `version` since `adopted_ms` of its wall clock; `ballot` is the largest term it has seen here.
    """

    roster: _RosterId
    version: _U64
    term: _U64
    voter: _Name
    boot: _U64
    asked_ms: _U64
    whole: bool
    """It remembers all it ever said of this version."""
    synced: bool
    adopted_ms: _U64
    ballot: _U64
    stored_term: _U64
    kind: _Kind = ""
    member: _Member = ""
    since_ms: _U64 = 0
    settled: bool = True
    """No more is open and lent there than its part of this version, and what it holds of others."""
    founding: Ballot = NO_BALLOT
    """Of a first roster that is not proven: the ballot under which it was accepted."""


class RosterTell(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """A part of a roster: names from the `first` on, of `count` in all; `wall_ms` is the teller's wall clock, 0 unsaid.

    Of version 0 it is a part of founders, with their lives for divisors. One that is not proven is to be accepted as the
    first, under `ballot`.
    """

    roster: _RosterId
    version: _U64
    since_ms: _U64
    proven: bool
    first: _U64
    count: Annotated[int, Meta(ge=1, le=NAMES_MAX)]
    names: Annotated[tuple[_Name, ...], Meta(min_length=1, max_length=NAMES_MAX)]
    divisors: Annotated[tuple[_U64, ...], Meta(min_length=1, max_length=NAMES_MAX)]
    wall_ms: _U64 = 0
    ballot: Ballot = NO_BALLOT


class RosterWant(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Tells which roster `name` goes by, of so many names (0: none), and asks for a better one."""

    name: _Name
    roster: _RosterId
    version: _U64
    count: _U64


class LoanRow(msgspec.Struct, frozen=True, array_like=True):
    """Loan of one key: the speaker holds `level` of the lender, by the `number` it was given last."""

    key: _Key
    number: _U64
    level: _Count
    wants: _Count = 0


class LoanAsk(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Tells what one life holds of a lender, of whose lives it has heard
    of `lender_boot` as the largest.
    """

    name: _Name
    boot: _U64
    lender_boot: _U64
    rows: Annotated[tuple[LoanRow, ...], Meta(max_length=ROWS_MAX)]


class LentRow(msgspec.Struct, frozen=True, array_like=True):
    """Loan of one key: the other holds `level`, and should keep `keep`; `free` could be lent now."""

    key: _Key
    number: _U64
    level: _Count
    keep: _Count
    free: _Count


class LoanGive(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Answer of a lender to one life of a borrower, with what it lends;
    0: it has not heard of one yet.
    """

    name: _Name
    boot: _U64
    borrower_boot: _U64
    rows: Annotated[tuple[LentRow, ...], Meta(max_length=ROWS_MAX)]


class LoanLook(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """A lender that does not know what its lives before have lent, asks: what after this key?"""

    name: _Name
    boot: _U64
    after_key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)] = ""


class LoanTell(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """One page of what a name holds of a lender, in order of keys,
    `more` if it is not the last one.

    `width`: so many names the speaker divides by, or has in mind of rosters before.
    """

    name: _Name
    boot: _U64
    lender_boot: _U64
    width: Annotated[int, Meta(ge=0, le=NAMES_MAX)]
    after_key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)]
    more: bool
    rows: Annotated[tuple[LoanRow, ...], Meta(max_length=ROWS_MAX)] = ()


RosterMessage: TypeAlias = RosterAsk | RosterVote | RosterTell | RosterWant | FoundAsk | FoundVote
LeaseMessage: TypeAlias = LeaseAsk | LeaseVote | RecordsAsk | RecordsTell
LoanMessage: TypeAlias = LoanAsk | LoanGive | LoanLook | LoanTell
Message: TypeAlias = LeaseMessage | RosterMessage | RightsAsk | RightsGive | LoanMessage

_ARRAY_BYTES: Final = 3
"""Before the messages of a packet, at most."""
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(list[Message])


def encode(messages: Iterable[Message]) -> list[bytes]:
    """Return packets with all of these messages, in order, as few as fit; one message is never larger than a packet."""
    return together(encoded(message) for message in messages)


def encoded(message: Message) -> bytes:
    """Return one message, which is not a packet yet."""
    return _encoder.encode(message)


def together(parts: Iterable[bytes]) -> list[bytes]:
    """Return packets with all of these encoded messages, in order, as few as fit."""
    packets: list[bytes] = []
    group: list[bytes] = []
    size = 0
    for part in parts:
        if group and size + len(part) + _ARRAY_BYTES > PACKET_BYTES_MAX:
            packets.append(_array(group))
            group, size = [], 0
        group.append(part)
        size += len(part)
    if group:
        packets.append(_array(group))
    return packets


def _array(parts: list[bytes]) -> bytes:
    """Return MessagePack for a list of what is encoded already."""
    count = len(parts)
    head = bytes((0x90 | count,)) if count < 16 else b"\xdc" + count.to_bytes(2, "big")
    return head + b"".join(parts)


def decode(data: bytes) -> Sequence[Message]:
    """Return the messages of a packet; EscrowError for anything else."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EscrowError(str(error)) from error
