"""Kept secrets: what a new definition of a provider says nothing of stays as it was, so nobody has to type keys again. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec

_KEYS: Final = "keys"


def with_kept(
    body: Mapping[str, Any], before: ProviderSpec | None, secrets: ProviderSecrets
) -> Mapping[str, Any]:
    """Return the plain values with the secrets of `before` that they leave out.

    Keys stay where the new definition has no other way in, secrets of credentials where their kind and source stay.
    """
    if before is None:
        return body
    credentials = body.get("credentials")
    kind, told = _told(credentials)
    if kind in ("", _KEYS):
        return _with_keys(body, secrets)
    own = before.credentials
    same = kind == own.kind and told.get("source", "") == own.source
    said = {"token_file", *secrets.named} & told.keys()
    if not same or said or not secrets.named:
        return body
    kept = {name: secret.spelled for name, secret in secrets.named.items()}
    return {**body, "credentials": {**told, **kept}}


def _with_keys(body: Mapping[str, Any], secrets: ProviderSecrets) -> Mapping[str, Any]:
    if body.get(_KEYS) is not None or not secrets.keys:
        return body
    return {**body, _KEYS: [key.spelled for key in secrets.keys]}


def _told(credentials: object) -> tuple[str, Mapping[str, Any]]:
    """Return the kind of credentials, "" where nothing is said, and what is said of them."""
    if isinstance(credentials, str):
        return credentials, {"kind": credentials}
    if isinstance(credentials, Mapping):
        return str(credentials.get("kind", "")), credentials
    return "", {}
