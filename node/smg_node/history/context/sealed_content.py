"""Sealed content: encrypts reasoning that a client carries back, for one tenant and one model.

A client that keeps no history on the cluster still has to send back the model's reasoning. It gets
that sealed with the cluster's keyring, together with its tenant and model, so that any node can
open it and no other tenant's request can use it. A node without a keyring cannot encrypt: its
content is only encoded.
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
    """Return the function that seals texts for a tenant and a model."""

    def seal(text: str) -> str:
        said = _encode(_Sealed(tenant, model, text)).decode()
        return _PREFIX + base64.urlsafe_b64encode(vault.seal(said)).decode()

    return seal


def opened(vault: Vault, contents: Iterable[str], *, tenant: str, model: str) -> dict[str, str]:
    """Return the texts of those contents that were sealed for this tenant; "" for those of another model's.

    A conversation may move to another model, which has no use for what the one before it thought.
    """
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
    if found.tenant != tenant:
        return None
    return found.text if found.model == model else ""
