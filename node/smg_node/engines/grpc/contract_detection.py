"""Contract detection: asks an endpoint which contract it speaks, and opens the engine.

Each contract's HealthCheck is asked in turn: UNIMPLEMENTED means the next one. Any answer to the
question is proof, healthy or not. vLLM's two servicers share one contract; their manners differ only
where the reader of streams copes with both, and `ModelCard.server["servicer"]` tells them apart.
"""

import asyncio
from typing import Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts.mlx import MlxWire
from smg_node.engines.contracts.sglang import SglangWire
from smg_node.engines.contracts.tokenspeed import TokenspeedWire
from smg_node.engines.contracts.trtllm import TrtllmWire
from smg_node.engines.contracts.vllm import VllmWire
from smg_node.engines.contracts.wire import HEALTH_CHECK, Wire
from smg_node.engines.engine import Contract
from smg_node.engines.engine_options import EngineOptions, Observe, unobserved
from smg_node.engines.grpc.known_transports import open_transport
from smg_node.engines.grpc.remote_engine import RemoteEngine
from smg_node.engines.transport.api_key_transport import authorized
from smg_node.engines.transport.grpc_status import smg_error
from smg_node.engines.transport.transport import StatusCode, Transport, TransportError

WIRES: Final[dict[Contract, type[Wire]]] = {
    Contract.VLLM: VllmWire,
    Contract.SGLANG: SglangWire,
    Contract.TRTLLM: TrtllmWire,
    Contract.MLX: MlxWire,
    Contract.TOKENSPEED: TokenspeedWire,
}
"""Every contract, in the order they are asked for: what is most widely run comes first."""

_NO = frozenset({StatusCode.UNIMPLEMENTED, StatusCode.NOT_FOUND, StatusCode.UNKNOWN})
"""Statuses of a server that does not know the service; proxies say NOT_FOUND, odd servers UNKNOWN."""


async def detect(transport: Transport, timeout_s: float) -> Contract:
    """Return the contract spoken at the other end.

    UPSTREAM_FAILED `unknown_contract` if it speaks gRPC but none of ours, and what the table of
    statuses says if it cannot be asked; the message names the address.
    """
    loop = asyncio.get_running_loop()
    until_s = loop.time() + timeout_s
    heard: list[str] = []
    for contract, wire in WIRES.items():
        method = f"/{wire.service}/{HEALTH_CHECK}"
        left_s = max(until_s - loop.time(), 0.001)
        try:
            await transport.unary(method, b"", timeout_s=left_s)
        except TransportError as error:
            if error.status not in _NO:
                raise _unasked(transport.target, error) from error
            heard.append(f"{contract.value}: {error.status.name}")
        else:
            return contract
    raise SmgError(
        ErrorKind.UPSTREAM_FAILED,
        f"what answers at {transport.target} speaks gRPC, but no engine's contract"
        f" ({', '.join(heard)})",
        code="unknown_contract",
    )


def _unasked(target: str, error: TransportError) -> SmgError:
    """Return the error of an engine that could not be asked; for operators, so with the engine's
    own text.
    """
    meaning = smg_error(error)
    text = error.message[:300] or error.status.name
    return SmgError(meaning.kind, f"{target}: {text}", code=meaning.code, status=meaning.status)


async def open_engine(
    target: str,
    options: EngineOptions,
    *,
    contract: Contract | None = None,
    api_key: str | None = None,
    secure: bool = False,
    on_event: Observe = unobserved,
) -> RemoteEngine:
    """Return the engine at `target` (host:port), of the contract it is found to speak unless given.

    With a contract given nothing is asked and nothing can fail before the first call. Every call carries
    `api_key`, if there is one; `secure` is whether they go over TLS.
    """
    transport = authorized(
        open_transport(options.transport, target, options.transport_options(secure=secure)), api_key
    )
    try:
        if contract is None:
            contract = await detect(transport, options.detect_s)
        wire = WIRES[contract]()
        if wire.ping_interval_min_s > options.ping_interval_s:
            # This contract's servers would hang up on us for pinging as often as we like to.
            await transport.close()
            slower = options.transport_options(
                secure=secure, ping_interval_min_s=wire.ping_interval_min_s
            )
            transport = authorized(open_transport(options.transport, target, slower), api_key)
    except BaseException:  # whatever it was, also a cancel, the connections must not outlive it
        await transport.close()
        raise
    return RemoteEngine(transport, wire, options, on_event=on_event)
