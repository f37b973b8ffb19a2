"""Content that clients carry for us: sealed for one tenant and one model, opened for nobody else.

A client that keeps no history here still has to send back what the model thought. It gets that sealed with the
cluster's keyring, together with whose it is, so that any node opens it and no other tenant's request can bring it.
Nodes without a keyring have nothing to seal with: theirs is only wrapped.
"""

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from smg_node.history.ports import Vault

_PREFIX: Final = "smg1."


class _Sealed(msgspec.Struct, frozen=True, array_like=True, tag="thought"):
    tenant: str
    model: str
    text: str


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Sealed).decode


def sealer(vault: Vault, *, tenant: str, model: str) -> Callable[[str], str]:
    """Return what seals texts for a tenant and a model."""

    def seal(text: str) -> str:
        said = _encode(_Sealed(tenant, model, text)).decode()
        return _PREFIX + base64.urlsafe_b64encode(vault.seal(said)).decode()

    return seal


def opened(vault: Vault, contents: Iterable[str], *, tenant: str, model: str) -> dict[str, str]:
    """Return the texts of those contents that were sealed for this tenant and model."""
    found: dict[str, str] = {}
    for content in contents:
        text = _open(vault, content, tenant, model)
        if text is not None:
            found[content] = text
    return found


def _open(vault: Vault, content: str, tenant: str, model: str) -> str | None:
    if not content.startswith(_PREFIX) or not content.isascii():
        return None
    try:
        sealed = base64.b64decode(content[len(_PREFIX) :], altchars=b"-_", validate=True)
    except binascii.Error:
        return None
    said = vault.open_secret(sealed)
    if said is None:
        return None
    try:
        found = _decode(said)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
    return found.text if (found.tenant, found.model) == (tenant, model) else None
