"""KV transfer: the JSON parameters that both vLLM engines of a prefill/decode pair are sent. Pure.

What the prefill engine returns for the decode engine is passed on byte for byte. It is checked to
be what the contract says it is, because an engine refuses a request with any other value, and that
would look like the client's mistake.
"""

from typing import Final

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.disaggregation import Style

TRANSFER_MAX_BYTES: Final = 4 * 1024 * 1024
"""As much as a gRPC server takes in one message by default; numbers of blocks for a million tokens are 0.5 MB."""
_NIXL_ASKS: Final = '{"do_remote_decode":true,"do_remote_prefill":false}'


def of_prefill(style: Style, number: int) -> str:
    """Return the parameters of the prefill engine; "" for none. `number` tells transfers apart."""
    if style == "nixl":
        return _NIXL_ASKS
    if style == "minted":
        return _json(
            {
                "do_remote_decode": True,
                "do_remote_prefill": False,
                "transfer_id": _transfer_id(number),
            }
        )
    return ""


def of_decode(
    style: Style, number: int, *, engine_id: str, host: str, port: int, found: str
) -> str:
    """Return the parameters of the decode engine: what is known of the prefill engine, else
    `found`, which that one returned.
    """
    if style != "minted":
        return found
    named = f"[{host}]" if ":" in host else host
    return _json(
        {
            "do_remote_decode": False,
            "do_remote_prefill": True,
            "transfer_id": _transfer_id(number),
            "remote_engine_id": engine_id,
            "remote_bootstrap_addr": f"http://{named}:{port}",
        }
    )


def checked(transfer: str) -> str:
    """Return the decode engine's parameters, unread; UPSTREAM_FAILED unless it is a JSON object of
    at most the allowed size.
    """
    if not transfer:
        return ""
    data = transfer.encode()
    if len(data) > TRANSFER_MAX_BYTES:
        raise _broken(f"the engine says more than {TRANSFER_MAX_BYTES} bytes to its partner")
    try:
        msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _broken("the engine says to its partner what is no JSON object") from error
    return transfer


def is_fetched(transfer: str) -> bool:
    """Whether these parameters tell an engine to fetch what another one worked off, so that it works nothing off."""
    if not transfer:
        return False
    try:
        return msgspec.json.decode(transfer, type=_Told).do_remote_prefill is True
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


class _Told(msgspec.Struct):
    do_remote_prefill: object = None


def _broken(why: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, why, code="upstream_transfer")


def _transfer_id(number: int) -> str:
    return f"xfer-{number:016x}"


def _json(value: dict[str, object]) -> str:
    return msgspec.json.encode(value).decode()
