"""Pairing rules: the role, ranks and pairing group of an engine, from its own metadata; writes the
bootstrap fields. Pure.

What both sides must share is their *group*: the name that the operator gave (`pairing_protocol`),
else what the engine moves its blocks with. For vLLM that is the connector and the layout of its
blocks, as far as it says it. Groups are compared as texts, so an engine that says less of itself
than another one is never paired with it: the operator's setting is there for that. Impossible
values (a port of 0, a million ranks) count as not said.
"""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.engines.contracts.engine_metadata import whole
from smg_node.engines.disaggregation import ROOM_BITS, Pairing, Role, Room, Style
from smg_node.engines.engine import EngineRequest

RANKS_MAX: Final = 256
"""More than any deployment has; every node keeps a queue, counters and a view of the cache for each of them."""
PORT_MAX: Final = 65535

_STYLES: Final[dict[str, Style]] = {
    "NixlConnector": "nixl",
    "NixlPullConnector": "nixl",
    "NixlPushConnector": "nixl",
    "MooncakeConnector": "minted",
}
_UNSERVED: Final = frozenset({"MoRIIOConnector"})
"""Connectors whose sides must be told of each other what this contract has no words for."""


def scheduler_role(arguments: Mapping[str, object], *, encodes: bool = False) -> Role:
    """Return the role that SGLang or TokenSpeed was started with, from its arguments.

    `encodes`: one of its modes is to encode pictures for others, which is TokenSpeed's alone.
    """
    match _word(arguments, "disaggregation_mode"):
        case "prefill":
            return "prefill"
        case "decode":
            return "decode"
        case "encode" if encodes:
            return "encode"
        case _:
            return "regular"


def scheduler_pairing(
    arguments: Mapping[str, object], *, room_bits: int = ROOM_BITS, encodes: bool = False
) -> Pairing | None:
    """Return how SGLang or TokenSpeed hands requests over; None for one that was started to do everything."""
    if scheduler_role(arguments, encodes=encodes) == "regular":
        return None
    port = whole(arguments.get("disaggregation_bootstrap_port"))
    return Pairing(
        "room",
        group=(
            _text(arguments, "pairing_protocol")
            or _word(arguments, "disaggregation_transfer_backend")
        ),
        bootstrap_port=port if port is not None and port <= PORT_MAX else None,
        room_bits=room_bits,
    )


def scheduler_ranks(arguments: Mapping[str, object]) -> int:
    """Return how many ranks SGLang or TokenSpeed has. SGLang's newer releases move them to a second width."""
    sizes = [whole(arguments.get(name)) or 1 for name in ("dp_size", "attn_dp_size")]
    return believable_ranks(sizes[0] * sizes[1])


def connector_pairing(server: Any) -> Pairing | None:
    """Return how vLLM hands requests over, out of its server information; None where it cannot be done."""
    connector: str = server.kv_connector.strip()
    if not connector or connector in _UNSERVED:
        return None
    style = _STYLES.get(connector, "store")
    return Pairing(
        style,
        group=server.pairing_protocol.strip() or _layout(connector, server),
        engine_id=server.kv_engine_id if style == "minted" else "",
    )


def connector_role(server: Any) -> Role:
    """Return the role that vLLM was started with. Of one that may do both, or cannot be paired, the
    operator says it.
    """
    if connector_pairing(server) is None:
        return "regular"
    match server.kv_role:
        case "kv_producer":
            return "prefill"
        case "kv_consumer":
            return "decode"
        case _:
            return "regular"


def believable_ranks(count: int) -> int:
    """Return a number of ranks; 1 for an engine that does not say, or says an impossible number."""
    return count if 1 <= count <= RANKS_MAX else 1


def meet(place: Any, room: Room) -> None:
    """Write the bootstrap host, port and room into a message of SGLang's or TokenSpeed's, which
    name them alike.
    """
    place.bootstrap_host = room.host
    place.bootstrap_port = room.port
    place.bootstrap_room = room.number


def assert_alone(request: EngineRequest) -> None:
    """Check that a contract without fields for it is not asked to work with a partner, or on a
    rank.
    """
    assert request.room is None, "this contract has no rooms"
    assert not request.transfer, "this contract has no transfers"
    assert request.rank is None, "this contract has no ranks"


def _layout(connector: str, server: Any) -> str:
    """Return what two vLLMs must have in common to read each other's blocks, less what is not said."""
    facts = {
        "kv_cache_dtype": server.kv_cache_dtype,
        "block_size": server.block_size if server.block_size > 0 else "",
        "model_dtype": server.model_dtype,
    }
    said = [f"{name}={value}" for name, value in facts.items() if value]
    return " ".join([connector, *said])


def _word(arguments: Mapping[str, object], name: str) -> str:
    return _text(arguments, name).lower()


def _text(arguments: Mapping[str, object], name: str) -> str:
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) else ""
