"""Call state: what a call that waits for its client's input carries back to any node, sealed for one caller and call. Pure.

Nothing of such a call is kept here. The state is bound to the tenant, the key, the tool and the arguments, and it is
good for an hour: whoever is asked may be at lunch, and nobody approves today what was asked yesterday.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from smg_node.mcp.failures import plain_text

GOOD_MS: Final = 3_600_000
STATE_CHARACTERS_MAX: Final = 65_536
"""Of a server's own state: a client sends it back in every round."""
ARGUMENTS_SHOWN_MAX: Final = 500
"""Characters of a call's arguments in the question about it."""
APPROVAL: Final = "smg-node.approval"
"""Key of our own question among those of a call."""
_PREFIX: Final = "smgc1."


class Vault(Protocol):
    """Encryption that only nodes of this cluster can undo, as far as it has keys."""

    def seal(self, secret: str) -> bytes:
        """Return it sealed."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return what any node sealed; None for anything else."""
        ...


class CallBinding(msgspec.Struct, frozen=True):
    """Which call a state belongs to: its caller, server and tool, and a digest of its arguments."""

    tenant: str
    key_id: str
    server: str
    tool: str
    arguments: str


class CallState(msgspec.Struct, frozen=True):
    """How far a call has come. `approved`: a person allowed it. `server_state` is the server's own, None where it gave none."""

    approved: bool = False
    server_state: str | None = None


class _Sealed(msgspec.Struct, frozen=True, array_like=True, tag="call"):
    binding: CallBinding
    state: CallState
    until_ms: int


_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder(_Sealed).decode


def binding_of(
    *, tenant: str, key_id: str, server: str, tool: str, arguments: Mapping[str, Any]
) -> CallBinding:
    """Return the binding of a call; how its arguments were spelled makes no difference."""
    digest = hashlib.blake2b(_encode(arguments), digest_size=24).hexdigest()
    return CallBinding(tenant, key_id, server, tool, digest)


def sealed(vault: Vault, state: CallState, binding: CallBinding, *, now_ms: int) -> str:
    """Return a state as its client carries it."""
    text = _encode(_Sealed(binding, state, now_ms + GOOD_MS)).decode()
    return _PREFIX + base64.urlsafe_b64encode(vault.seal(text)).decode().rstrip("=")


def opened(vault: Vault, text: str, binding: CallBinding, *, now_ms: int) -> CallState | None:
    """Return the state that was sealed for this caller and call and is still good, None for anything else."""
    if not text.startswith(_PREFIX) or not text.isascii():
        return None
    spelled = text[len(_PREFIX) :]
    try:
        raw = base64.b64decode(spelled + "=" * (-len(spelled) % 4), altchars=b"-_", validate=True)
        if base64.urlsafe_b64encode(raw).decode().rstrip("=") != spelled:
            return None
        plain = vault.open_secret(raw)
        found = None if plain is None else _decode(plain)
    except (binascii.Error, ValueError, msgspec.DecodeError):
        return None
    if found is None or found.binding != binding or not now_ms < found.until_ms:
        return None
    return found.state


def approval_request(server: str, tool: str, arguments: str) -> dict[str, Any]:
    """Return the question whether a call may run, as an elicitation without fields: accepting it is the answer.

    `arguments` are JSON text, of which a person is shown the beginning.
    """
    shown = plain_text(arguments, ARGUMENTS_SHOWN_MAX)
    message = f"Allow {server} to run {tool} with {shown}?"
    schema = {"type": "object", "properties": {}}
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def approval_answer(responses: Mapping[str, Any]) -> bool | None:
    """Return whether a person allowed the call, None where there is no answer."""
    said = responses.get(APPROVAL)
    action = said.get("action") if isinstance(said, dict) else None
    return None if not isinstance(action, str) else action == "accept"


def can_be_asked(capabilities: Mapping[str, Any]) -> bool:
    """Whether a client can put a form before a person; an empty capability means forms."""
    said = capabilities.get("elicitation")
    return isinstance(said, dict) and (not said or "form" in said)
