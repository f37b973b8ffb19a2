"""Disaggregation: four ways for two engines to share one request, the first for the prefill, the
second for the decode.

    room     both are called at once and meet in a room of the first one's, by a number that the gateway draws
             (SGLang, TokenSpeed)
    nixl     the first one is called, and what it returns is told to the second one, which fetches the KV blocks
             (vLLM with the NixlConnector)
    minted   the first one is called with an id that the gateway makes up, and the second one is told that id and
             where the first one is (vLLM with the MooncakeConnector)
    store    the first one is called, then the second one, and they share a store that the gateway knows nothing of;
             should the first one return something, it is passed on (vLLM with any other connector)

A room takes one answer of one request, and so do the KV blocks that the first one keeps: several answers to one
prompt are several pairs of calls.

Before the prompt is worked off, its pictures may be encoded by engines of their own, in one of two ways:

    room     each picture is pushed to whoever works the prompt off, who meets its encoder in a room of the encoder's
             (TokenSpeed)
    cache    each picture is put into a store that the engines share, under the picture's hash; whoever works the
             prompt off finds it there, or encodes it itself (vLLM with an encoder-cache connector)
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal["regular", "prefill", "decode", "encode"]
"""What an engine was started as: to do everything, to work prompts off, to draw answers, to encode pictures."""
Style: TypeAlias = Literal["room", "nixl", "minted", "store"]
Encoding: TypeAlias = Literal["room", "cache"]
"""How an engine that encodes pictures hands them over."""

BOOTSTRAP_PORT: Final = 8998
"""Where engines open their rooms unless they are told another port."""
ROOM_BITS: Final = 31
"""What a signed 32-bit field carries; the narrowest one that a contract has for the number of a room."""


@dataclass(frozen=True, slots=True)
class Room:
    """Bootstrap room: a port of the prefill engine where the two engines meet, and the number of
    this pair of calls.
    """

    host: str
    port: int
    number: int


@dataclass(frozen=True, slots=True)
class Pairing:
    """The way an engine hands requests over or takes them. Only engines with the same `style` and
    `group` can be paired.

    `group` is what both sides must share beyond that, "" for nothing. `bootstrap_port` is where the engine opens
    rooms, None where it does not say. `engine_id` is what its partners call it by (`minted`).
    """

    style: Style
    group: str = ""
    bootstrap_port: int | None = None
    engine_id: str = ""
    room_bits: int = ROOM_BITS
    """How many bits the number of a room may have."""
