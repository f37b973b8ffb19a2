"""Hint messages: changes, digests and parts of hint streams, and their msgpack bytes.

    Deltas      numbered changes, ten bytes each: a hash, and which subject came or went
    Digests     how many hashes each subject has and their XOR, as of one number; page by page by name
    AskDigests  something was missed: say the digests now
    AskPart     a part of everything about one subject
    Part        that part: eight bytes a hash
    Busy        ask for that later: others are being served

A *stream* is one life of a publisher; a *subject* is what hints are about, a worker. A hash that is only
*mentioned* is in no digest and in no part: a reader may guess for a while that the subject has it.
"""

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

MESSAGE_BYTES_MAX: Final = 65_536
DELTA_BYTES: Final = 10
HASH_BYTES: Final = 8
SUBJECTS_MAX: Final = 1 << 14
"""Of one message: an index of 14 bits beside two for what happened."""
SUBJECT_CHARS_MAX: Final = 128
PARTS_MAX: Final = 128
PART_HASHES: Final = 8_000
"""So many in a part: a subject of a million hashes can be fetched."""
ADD, REMOVE, CLEAR, MENTION = 0, 1, 2, 3
EMPTY, UNHEARD = 0, 1
"""In place of the hash of a CLEAR: the subject has nothing, or the publisher hears it no more."""

_U64 = Annotated[int, Meta(ge=0)]
Subject = Annotated[str, Meta(min_length=1, max_length=SUBJECT_CHARS_MAX)]
_DELTA: Final = Struct(">QH")


class HintError(ValueError):
    """Bytes that are no message of a hint stream."""


class _Word(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Any message."""


class Deltas(_Word, frozen=True, tag=0):
    """Changes `first`, `first + 1`, …; `packed` has each with the place of its subject in `subjects`."""

    stream: _U64
    first: _U64
    subjects: Annotated[tuple[Subject, ...], Meta(min_length=1, max_length=SUBJECTS_MAX)]
    packed: Annotated[bytes, Meta(min_length=DELTA_BYTES, max_length=MESSAGE_BYTES_MAX)]


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """Digest of one subject: how many hashes, and all of them by XOR."""

    subject: Subject
    count: _U64
    xor: _U64


class Digests(_Word, frozen=True, tag=1):
    """Digests of the subjects after `after` by name, as many as there
    are; of all the rest if `last`.
    """

    stream: _U64
    upto: _U64
    """They hold before the change of this number."""
    after: str
    digests: Annotated[tuple[Digest, ...], Meta(max_length=SUBJECTS_MAX)]
    last: bool


class AskDigests(_Word, frozen=True, tag=2):
    """Asks for digests: something was missed."""

    stream: _U64


class AskPart(_Word, frozen=True, tag=3):
    """Part 0 begins anew; later parts name the number as of which the first one was."""

    stream: _U64
    subject: Subject
    part: Annotated[int, Meta(ge=0, lt=PARTS_MAX)]
    upto: _U64 = 0


class Part(_Word, frozen=True, tag=4):
    """Hashes of a subject as of the number `upto`."""

    stream: _U64
    subject: Subject
    part: Annotated[int, Meta(ge=0, lt=PARTS_MAX)]
    upto: _U64
    last: bool
    packed: Annotated[bytes, Meta(max_length=PART_HASHES * HASH_BYTES)]


class Busy(_Word, frozen=True, tag=5):
    """Tells that this publisher serves others just now."""

    stream: _U64
    subject: Subject


Word: TypeAlias = Deltas | Digests | AskDigests | AskPart | Part | Busy

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Word)


def encode_word(word: Word) -> bytes:
    """Return the bytes of a message."""
    return _encoder.encode(word)


def decode_word(data: bytes) -> Word:
    """Return the message; HintError for any bytes that are none."""
    try:
        word: Word = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as problem:
        raise HintError(str(problem)) from problem
    if isinstance(word, Deltas) and len(word.packed) % DELTA_BYTES:
        raise HintError("half a change")
    if isinstance(word, Part) and len(word.packed) % HASH_BYTES:
        raise HintError("half a hash")
    return word


def pack_delta(block_hash: int, place: int, what: int) -> bytes:
    """Return the ten bytes of a change; `place` of its subject in the message."""
    return _DELTA.pack(block_hash, place << 2 | what)


def read_deltas(word: Deltas) -> Sequence[tuple[str, int, list[int]]]:
    """Return the changes in order as runs of (subject, what happened, the hashes it happened to).

    HintError for places that are not there.
    """
    try:
        return [
            (word.subjects[code >> 2], code & 3, [block_hash for block_hash, _ in run])
            for code, run in groupby(_DELTA.iter_unpack(word.packed), key=itemgetter(1))
        ]
    except IndexError as problem:
        raise HintError("a change without a subject") from problem


def pack_hashes(hashes: Iterable[int]) -> bytes:
    """Return eight bytes for each hash."""
    return _turned(array("Q", hashes)).tobytes()


def read_hashes(packed: bytes) -> "array[int]":
    """Return the hashes of whole eights of bytes."""
    hashes = array("Q")
    hashes.frombytes(packed)
    return _turned(hashes)


def _turned(hashes: "array[int]") -> "array[int]":
    """Exchange this machine's order of bytes and that of the wire, in place."""
    if sys.byteorder == "little":
        hashes.byteswap()
    return hashes
