"""Spool format: header and checksummed frames (BLAKE2b, msgpack) in which turns are stored. Pure.

    file:   "SMGTURN1" | salt 16 | frames
    frame:  "TURN" | bytes 4 | BLAKE2b-8 of the rest, keyed with the salt | msgpack

A frame is valid when it is whole and its checksum is right. A torn frame at the end of a file was
never acknowledged. A damaged one in the middle is skipped: the next frame is found by its mark and
its checksum, and because clients do not know the salt, no client's text can pass for a frame. No
file is touched here.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from smg_storage.records import Access, Turn

FILE_MARK: Final = b"SMGTURN1"
SALT_BYTES: Final = 16
HEADER_BYTES: Final = len(FILE_MARK) + SALT_BYTES
FRAME_MARK: Final = b"TURN"
HEAD_BYTES: Final = 16
BODY_BYTES_MAX: Final = 256 << 20
"""More than any turn whose documents a store would take."""


class SpooledTurn(msgspec.Struct, frozen=True):
    """A spooled turn, its tenant, and since when it waits."""

    tenant: str
    turn: Turn
    spooled_us: int
    principal: str = ""
    request_id: str = ""
    headers: Mapping[str, str] = {}

    def access(self, timeout_s: float) -> Access:
        """Return the access with which it is written."""
        return Access(
            tenant=self.tenant,
            timeout_s=timeout_s,
            principal=self.principal,
            request_id=self.request_id,
            headers=self.headers,
        )


class Frame(NamedTuple):
    """Position of a frame's body in its file."""

    start: int
    end: int


class Found(NamedTuple):
    """Valid frames of a file, and the number of damaged stretches before a valid one."""

    frames: Sequence[Frame]
    broken: int


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(SpooledTurn)


def spooled(access: Access, turn: Turn, *, now_us: int) -> SpooledTurn:
    """Return the spool's record of a turn."""
    return SpooledTurn(
        access.tenant, turn, now_us, access.principal, access.request_id, dict(access.headers)
    )


def encode(one: SpooledTurn) -> bytes:
    """Return the body of the turn's frame."""
    return _ENCODER.encode(one)


def decode(body: bytes) -> SpooledTurn:
    """Return the turn in a frame's body; ValueError for anything else."""
    try:
        one = _DECODER.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"this is no turn: {error}") from error
    turn = one.turn
    # Read as lists; a turn is frozen all through.
    turn = replace(
        turn,
        items=tuple(turn.items),
        links=tuple(turn.links),
        locations=tuple(turn.locations),
    )
    return replace(one, turn=turn)


def header(salt: bytes) -> bytes:
    """Return the header of a file."""
    assert len(salt) == SALT_BYTES
    return FILE_MARK + salt


def salt_of(content: bytes) -> bytes | None:
    """Return the salt of a file from its first bytes; None if it is no spool file, or its header is
    not whole.
    """
    head = content[:HEADER_BYTES]
    return (
        head[len(FILE_MARK) :] if len(head) == HEADER_BYTES and head.startswith(FILE_MARK) else None
    )


def frame(body: bytes, salt: bytes) -> bytes:
    """Return the whole frame of a body, to be appended."""
    assert len(body) <= BODY_BYTES_MAX
    return FRAME_MARK + len(body).to_bytes(4, "big") + _sum(body, salt) + body


def frames_of(content: bytes) -> Found:
    """Return the positions of the valid frames of a file."""
    salt = salt_of(content)
    if salt is None:
        return Found((), 0)
    found: list[Frame] = []
    broken, at = 0, HEADER_BYTES
    while True:
        read = _frame_at(content, at, salt)
        if read is None:
            at = _next_good(content, at + 1, salt)
            if at < 0:
                return Found(found, broken)
            broken += 1
            continue
        found.append(read)
        at = read.end


def _next_good(content: bytes, start: int, salt: bytes) -> int:
    at = content.find(FRAME_MARK, start)
    while at >= 0 and _frame_at(content, at, salt) is None:
        at = content.find(FRAME_MARK, at + 1)
    return at


def _frame_at(content: bytes, at: int, salt: bytes) -> Frame | None:
    head = content[at : at + HEAD_BYTES]
    if len(head) < HEAD_BYTES or not head.startswith(FRAME_MARK):
        return None
    start = at + HEAD_BYTES
    end = start + int.from_bytes(head[4:8], "big")
    if end > len(content) or head[8:] != _sum(content[start:end], salt):
        return None
    return Frame(start, end)


def _sum(body: bytes, salt: bytes) -> bytes:
    return blake2b(body, digest_size=8, key=salt, person=b"smg spooled turn").digest()
