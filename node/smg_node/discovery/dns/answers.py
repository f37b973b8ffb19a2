"""Answers of name servers, as values: addresses or SRV records with the time that they hold."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

RecordKind: TypeAlias = Literal["A", "AAAA", "SRV"]
RECORDS_MAX: Final = 4096
"""Of one answer; an answer by TCP has room for about as many addresses."""


class UnansweredError(Exception):
    """No server gave an answer: time ran out, or they refused, failed, or sent what is none. The message says what."""


@dataclass(frozen=True, slots=True)
class SrvRecord:
    """One SRV record (RFC 2782). `target` is lower-case and has no final dot; it is empty for "there is none"."""

    priority: int
    weight: int
    port: int
    target: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses of a host, all of one family, and for how many seconds they hold. None: it has none."""

    found: tuple[str, ...]
    ttl_s: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered to one question, an empty answer included.

    `ttl_s` is the smallest of all that led to it; of an empty one it is how long that may be believed. `exists` is false
    where the name has no records of any kind. `additional` has IPv4 addresses of targets that came along.
    """

    ttl_s: int
    addresses: tuple[str, ...] = ()
    services: tuple[SrvRecord, ...] = ()
    exists: bool = True
    additional: Mapping[str, Addresses] = field(default_factory=lambda: MappingProxyType({}))
    left_out: int = 0
    """Records beyond the 4,096th."""
