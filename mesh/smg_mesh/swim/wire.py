"""Wire format: packets as bytes and back: one packet, one datagram, and nothing else is accepted.

A packet is a header of 32 bytes that travels in the clear and a msgpack array:

    magic 2 | version 1 | flags 1 | key id 4 | sender tag 8 | boot 8 | counter 8 | body
    body = [incarnation, digest, [kind, fields…], rumors, news]

The digest has 16 bytes, of which the last 8 are left out where they are zero, as they are today.

What is written and read here is the *clear* packet: flags, key id and counter are zero, and sealing
fills them in (it adds 16 bytes after the body, which `BODY_BYTES_MAX` leaves room for).

Reading trusts nothing. Types and ranges are checked by msgspec while it decodes, from what `messages`
declares; patterns and numeric hosts afterwards. What was read is written again and has to be the very
bytes that came: so there is one encoding of a packet and no room for extra, missing or oddly packed
fields. Any bytes give a `Packet` or a `WireError`.

A rumor arrives several times, from several members, as the same bytes: what they mean is remembered
in bounded caches of pure functions, which halves the cost of a packet with rumors.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from ipaddress import ip_address
from struct import Struct
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.config import NAME_PATTERN
from smg_mesh.swim.messages import (
    DIGEST_BYTES,
    U32,
    Accusation,
    Address,
    Claim,
    Hello,
    Message,
    News,
    Packet,
    Ping,
    PingRequest,
)

MAGIC: Final = b"SM"
VERSION: Final = 1
HEADER_BYTES: Final = 32
SEAL_BYTES: Final = 16
PACKET_BYTES_MAX: Final = 1400
"""UDP payload that passes every network without fragments."""
BODY_BYTES_MAX: Final = PACKET_BYTES_MAX - HEADER_BYTES - SEAL_BYTES
CLEAR_BYTES_MAX: Final = HEADER_BYTES + BODY_BYTES_MAX
RUMORS_MAX: Final = 64
"""Claims and news together."""
CLAIMS_MAX: Final = 1000
"""Rows in one slice of an exchange."""
TAG_BYTES: Final = 8

_HEADER: Final = Struct("!2sBB4s8sQQ")
_CLEAR_START: Final = MAGIC + bytes((VERSION, 0)) + bytes(4)
_NO_COUNTER: Final = bytes(8)
_DIGEST_SHORT: Final = 8
_NO_DOCUMENTS: Final = bytes(DIGEST_BYTES - _DIGEST_SHORT)
_FRAME_BYTES: Final = 1 + 5 + (2 + DIGEST_BYTES) + 3 + 3
"""Of a body: the array, incarnation, digest, and the heads of two arrays of at most 64."""
_NAMES_CACHED: Final = 4096
"""Names, tags and hosts that were checked: the whole of a large cluster in about half a megabyte."""
_RUMORS_CACHED: Final = 1024
"""What was read of late: usually about 300 bytes each, and at most 1.5 KB."""


class WireError(Exception):
    """Bytes that are no packet; `reason` is a word for the counter."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Header(NamedTuple):
    """Header that travels in the clear before every body."""

    version: int
    flags: int
    key_id: bytes
    sender: bytes
    boot: int
    counter: int


class _BodyWritten(msgspec.Struct, frozen=True, array_like=True):
    incarnation: int
    digest: bytes
    message: Message
    rumors: tuple[Claim, ...]
    news: tuple[News, ...]


class _BodyUnread(msgspec.Struct, frozen=True, array_like=True):
    """The same body, its rumors still bytes."""

    incarnation: U32
    digest: Annotated[bytes, Meta(min_length=_DIGEST_SHORT, max_length=DIGEST_BYTES)]
    message: Message
    rumors: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=RUMORS_MAX)]
    news: Annotated[tuple[msgspec.Raw, ...], Meta(max_length=RUMORS_MAX)]


_ENCODER: Final = msgspec.msgpack.Encoder()
_BODY_DECODER: Final = msgspec.msgpack.Decoder(_BodyUnread)
_CLAIM_DECODER: Final = msgspec.msgpack.Decoder(Claim)
_NEWS_DECODER: Final = msgspec.msgpack.Decoder(News)
_Rows: TypeAlias = Annotated[list[Claim], Meta(max_length=CLAIMS_MAX)]
_ROWS_DECODER: Final[msgspec.msgpack.Decoder[list[Claim]]] = msgspec.msgpack.Decoder(_Rows)
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


@lru_cache(_NAMES_CACHED)
def sender_tag(name: str) -> bytes:
    """Return the 8 bytes that stand for a member's name in headers."""
    return blake2b(name.encode(), digest_size=TAG_BYTES).digest()


def encode(packet: Packet) -> bytes:
    """Return the clear packet: at most `CLEAR_BYTES_MAX` bytes, which the caller has seen to."""
    digest = packet.digest
    assert len(digest) == DIGEST_BYTES
    if digest.endswith(_NO_DOCUMENTS):
        digest = digest[:_DIGEST_SHORT]
    body = _ENCODER.encode(
        _BodyWritten(packet.incarnation, digest, packet.message, packet.rumors, packet.news)
    )
    assert len(body) <= BODY_BYTES_MAX, len(body)
    assert len(packet.rumors) + len(packet.news) <= RUMORS_MAX
    assert len(packet.sender) == TAG_BYTES
    return b"".join(
        (_CLEAR_START, packet.sender, packet.boot.to_bytes(8, "big"), _NO_COUNTER, body)
    )


def decode(data: bytes) -> Packet:
    """Return what a clear packet says, every field within its range; raise `WireError`."""
    if not HEADER_BYTES < len(data) <= CLEAR_BYTES_MAX:
        raise WireError("size")
    if data[:8] != _CLEAR_START or data[24:32] != _NO_COUNTER:
        raise WireError("header")
    written = data[HEADER_BYTES:]
    try:
        body = _BODY_DECODER.decode(written)
    except _BROKEN as error:
        raise WireError("body") from error
    if _ENCODER.encode(body) != written:
        raise WireError("form")
    digest = _whole(body.digest)
    sender = data[8:16]
    _check_message(body.message, sender)
    if len(body.rumors) + len(body.news) > RUMORS_MAX:
        raise WireError("rumors")
    return Packet(
        sender,
        int.from_bytes(data[16:24], "big"),
        body.incarnation,
        digest,
        body.message,
        tuple(map(_read_claim, map(bytes, body.rumors))) if body.rumors else (),
        tuple(map(_read_news, map(bytes, body.news))) if body.news else (),
    )


def _whole(digest: bytes) -> bytes:
    """Return the digest with what was left out of it; it may be written in one way only."""
    if len(digest) == _DIGEST_SHORT:
        return digest + _NO_DOCUMENTS
    if len(digest) != DIGEST_BYTES or digest.endswith(_NO_DOCUMENTS):
        raise WireError("form")
    return digest


def header(data: bytes) -> Header:
    """Return the clear header of a datagram, of any version; raise `WireError`."""
    if len(data) < HEADER_BYTES:
        raise WireError("size")
    magic, *fields = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise WireError("header")
    return Header(*fields)


def message_bytes(message: Message) -> int:
    """Return the most that a body with this message and no rumors takes."""
    return _FRAME_BYTES + len(_ENCODER.encode(message))


def claim_bytes(claim: Claim) -> int:
    """Return what the claim takes in a body."""
    return len(_ENCODER.encode(claim))


def news_bytes(news: News) -> int:
    """Return what the news take in a body."""
    return len(_ENCODER.encode(news))


def encode_claims(claims: Sequence[Claim]) -> bytes:
    """Return one slice of an exchange, at most `CLAIMS_MAX` rows."""
    assert len(claims) <= CLAIMS_MAX
    return _ENCODER.encode(claims)


def decode_claims(data: bytes) -> list[Claim]:
    """Return the rows of a slice, checked as those of a packet are; raise `WireError`."""
    try:
        claims = _ROWS_DECODER.decode(data)
    except _BROKEN as error:
        raise WireError("body") from error
    if _ENCODER.encode(claims) != data:
        raise WireError("form")
    for claim in claims:
        check_claim(claim)
    return claims


@lru_cache(_RUMORS_CACHED)
def _read_claim(written: bytes) -> Claim:
    try:
        claim = _CLAIM_DECODER.decode(written)
    except _BROKEN as error:
        raise WireError("body") from error
    if _ENCODER.encode(claim) != written:
        raise WireError("form")
    check_claim(claim)
    return claim


@lru_cache(_RUMORS_CACHED)
def _read_news(written: bytes) -> News:
    try:
        news = _NEWS_DECODER.decode(written)
    except _BROKEN as error:
        raise WireError("body") from error
    if _ENCODER.encode(news) != written:
        raise WireError("form")
    check_news(news)
    return news


def check_claim(claim: Claim) -> None:
    """Raise `WireError` for a name or host that no member can have; ranges are not looked at."""
    if not _is_name(claim.name):
        raise WireError("name")
    if claim.accuser and not _is_name(claim.accuser):
        raise WireError("name")
    if claim.address is not None and not _is_host(claim.address.host):
        raise WireError("host")


def check_news(news: News) -> None:
    """Raise `WireError` for an origin or kind that is no name, or a key that cannot be printed."""
    if not (_is_name(news.origin) and _is_name(news.kind)):
        raise WireError("name")
    if not news.key.isprintable():
        raise WireError("key")


def _check_message(message: Message, sender: bytes) -> None:
    match message:
        case Ping():
            if not _is_name(message.target):
                raise WireError("name")
            if message.claim is not None:
                check_claim(message.claim)
        case PingRequest():
            if not _is_name(message.target):
                raise WireError("name")
            _check_address(message.address)
        case Accusation():
            check_claim(message.claim)
        case Hello():
            _check_hello(message.claim, sender)
        case _:
            pass


def _check_hello(claim: Claim, sender: bytes) -> None:
    """A greeting introduces its sender, and in full."""
    check_claim(claim)
    if claim.address is None or claim.meta is None:
        raise WireError("hello")
    if sender_tag(claim.name) != sender:
        raise WireError("hello")


def _check_address(address: Address) -> None:
    if not _is_host(address.host):
        raise WireError("host")


_NAME: Final = re.compile(NAME_PATTERN)


@lru_cache(_NAMES_CACHED)
def _is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


@lru_cache(_NAMES_CACHED)
def _is_host(text: str) -> bool:
    """Whether it is the numeric address of one machine, and means the same to everyone."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return not ("%" in text or address.is_multicast or address.is_unspecified)
