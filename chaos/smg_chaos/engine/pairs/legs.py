"""Legs of a request in a prefill/decode pair, read from its fields. Pure."""

import json
from array import array
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import xxhash

from smg_chaos.engine.protocol.generate_request import Asked
from smg_chaos.engine.settings import EngineSettings

if TYPE_CHECKING:
    from smg_chaos.engine.pairs.handover import Asking

_LENGTH: Final = frozenset({"length"})
_LENGTH_OR_STOP: Final = frozenset({"length", "stop"})


class Side(Enum):
    """Which of the two engines a leg runs on."""

    PREFILL = auto()
    DECODE = auto()


@dataclass(slots=True)
class Leg:
    """One of the two calls. `key` is known to both; `host` is "" where no engine can be found.

    `handed_after` are the finish reasons after which the first engine hands over.
    """

    side: Side
    key: str
    host: str = ""
    port: int = 0
    word: str = ""
    """The key of the first engine's call begins with this and the name of its rank, once that is known."""
    handed_after: frozenset[str] = _LENGTH_OR_STOP
    asking: "Asking | None" = None
    waits_again: bool = False
    """Nobody was there, and is looked for again after a moment."""


@dataclass(frozen=True, slots=True)
class Wrong:
    """An impossible request: refused, or deadly."""

    message: str
    kills: bool = False


def leg_of(asked: Asked, settings: EngineSettings) -> Leg | Wrong | None:
    """Return a request's leg of a pair, or None where it is an ordinary request."""
    style = settings.style()
    if style == "sglang":
        return _in_a_room(asked, settings) if settings.role != "regular" else None
    if not asked.transfer:
        return None
    try:
        told = json.loads(asked.transfer)
    except ValueError as error:
        return Wrong(f"Invalid kv_transfer_params_json: {error}")
    if not isinstance(told, dict):
        return Wrong("kv_transfer_params_json must be a JSON object")
    if style not in ("nixl", "mooncake"):
        return None
    gives, takes = bool(told.get("do_remote_decode")), bool(told.get("do_remote_prefill"))
    if (gives or takes) and asked.n > 1:
        return Wrong("blocks are fetched once: several answers are several pairs of calls")
    if style == "nixl":
        return _by_nixl(asked, told, gives=gives, takes=takes)
    return _by_mooncake(asked, told, settings, gives=gives, takes=takes)


def _in_a_room(asked: Asked, settings: EngineSettings) -> Leg | Wrong:
    if not asked.room:
        return Wrong(
            "Invalid request: Disaggregated request received without bootstrap room id. "
            f"req.rid='{asked.request_id}'"
        )
    if asked.n > 1:
        return Wrong("a room takes one answer: several of them are several pairs of calls")
    key = f"room {asked.room}"
    if settings.role == "prefill":
        return Leg(Side.PREFILL, key)
    return Leg(Side.DECODE, key, asked.room_host, asked.room_port)


def _by_nixl(asked: Asked, told: dict[str, Any], *, gives: bool, takes: bool) -> Leg | Wrong | None:
    if takes:
        if not told.get("remote_block_ids"):
            return Wrong("blocks of somebody else without a block", kills=True)
        names = ("remote_engine_id", "remote_request_id", "remote_host", "remote_port")
        if any(name not in told for name in names):
            return Leg(Side.DECODE, "nothing that could be asked for")
        engine, request, host, port = (told[name] for name in names)
        return Leg(Side.DECODE, f"blocks {engine} {request}", str(host), _port(port))
    if gives:
        return Leg(Side.PREFILL, asked.request_id, word="blocks")
    return None


def _by_mooncake(
    asked: Asked, told: dict[str, Any], settings: EngineSettings, *, gives: bool, takes: bool
) -> Leg | Wrong | None:
    if (takes and settings.role == "prefill") or (gives and settings.role == "decode"):
        return Wrong("a request for the other side of the pair", kills=True)
    transfer = told.get("transfer_id")
    if takes:
        names = ("remote_engine_id", "remote_bootstrap_addr", "transfer_id")
        if any(name not in told for name in names):
            return Leg(Side.DECODE, "nothing that could be asked for")
        where = urlsplit(str(told["remote_bootstrap_addr"]))
        key = f"transfer {told['remote_engine_id']} {transfer}"
        return Leg(Side.DECODE, key, where.hostname or "", _port(where.port))
    if gives and transfer:
        return Leg(Side.PREFILL, str(transfer), word="transfer", handed_after=_LENGTH)
    return None


def digest_of(asked: Asked) -> int:
    """Return a digest that distinguishes prompts."""
    return xxhash.xxh3_64_intdigest(array("I", asked.ids).tobytes())


def _port(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 65536 else 0
