"""Credentials parser: how a node gets in at a vendor, as its operator writes it. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from smg_node.providers.hosting import Auth, Hosting
from smg_node.providers.parsing.plain_values import (
    check_names,
    chosen,
    entries,
    secret,
    word,
    wrong,
)
from smg_node.providers.provider_spec import Credentials
from smg_node.providers.secret import Secret

_SECRETS: Final[Mapping[str, Sequence[str]]] = {
    "keys": (),
    "none": (),
    "aws": ("access_key_id", "secret_access_key", "session_token"),
    "gcp": ("service_account", "refresh_token", "client_secret"),
    "entra": ("client_secret",),
}
"""Kinds of credentials, and the secrets of each."""
_SETTINGS: Final[Mapping[str, Sequence[str]]] = {
    "keys": (),
    "none": (),
    "aws": ("source", "role_arn", "session_name", "token_file"),
    "gcp": ("source", "client_id", "scope"),
    "entra": ("tenant", "client_id", "token_file", "authority", "scope"),
}
_SOURCES: Final[Mapping[str, Sequence[str]]] = {
    "aws": ("keys", "environment", "web_identity", "container", "instance"),
    "gcp": ("service_account", "refresh_token", "instance"),
}
_BY_AUTH: Final[Mapping[Auth, Sequence[str]]] = {
    Auth.BEARER: ("keys", "none"),
    Auth.X_GOOG_API_KEY: ("keys", "none"),
    Auth.API_KEY: ("keys", "entra", "none"),
    Auth.BOTH_API_KEYS: ("keys", "entra", "none"),
    Auth.OAUTH: ("gcp", "none"),
    Auth.SIGV4: ("aws", "keys", "none"),
}
"""Kinds of credentials that a hosting takes; the first is what nobody need say."""


def parse_credentials(
    said: object, hosting: Hosting, path: str, *, has_keys: bool
) -> tuple[Credentials, Mapping[str, Secret]]:
    """Return the credentials, and the secrets in them by name; INVALID_REQUEST with its path otherwise.

    `said` is None where nothing is said: keys, if there are some, else what the hosting wants most.
    """
    allowed = _BY_AUTH[hosting.auth]
    if said is None:
        said = {"kind": "keys" if has_keys else allowed[0]}
    told = entries({"kind": said} if isinstance(said, str) else said, path, "{kind: aws}")
    kind = chosen(told.get("kind"), allowed, f"{path}.kind", whose=f"{hosting.kind} takes")
    check_names(told, ["kind", *_SETTINGS[kind], *_SECRETS[kind]], path)
    plain: dict[str, Any] = {
        name: word(told[name], f"{path}.{name}") for name in _SETTINGS[kind] if name in told
    }
    named = {name: secret(told[name], f"{path}.{name}") for name in _SECRETS[kind] if name in told}
    credentials = Credentials(kind, **plain)
    _CHECKS.get(kind, _check_nothing)(credentials, named, told, path)
    return credentials, named


def _check_nothing(*_: object) -> None:
    """Keys, and no credentials at all, have nothing that could be wrong together."""


def _check_aws(
    credentials: Credentials, named: Collection[str], told: Mapping[Any, Any], path: str
) -> None:
    _check_source(credentials, path)
    if ("access_key_id" in named) != ("secret_access_key" in named):
        raise wrong(path, "needs access_key_id and secret_access_key together")
    if "session_token" in named and "access_key_id" not in named:
        raise wrong(f"{path}.session_token", "needs access_key_id and secret_access_key beside it")
    if credentials.source == "keys" and "access_key_id" not in named:
        raise wrong(f"{path}.access_key_id", "is missing")


def _check_gcp(
    credentials: Credentials, named: Collection[str], told: Mapping[Any, Any], path: str
) -> None:
    _check_source(credentials, path)
    if "refresh_token" in named and not (credentials.client_id and "client_secret" in named):
        raise wrong(path, "needs client_id and client_secret beside refresh_token")
    if "refresh_token" in named and "service_account" in named:
        raise wrong(path, "takes either service_account or refresh_token")
    if (
        credentials.source in ("service_account", "refresh_token")
        and credentials.source not in named
    ):
        raise wrong(f"{path}.{credentials.source}", "is missing")


def _check_entra(
    credentials: Credentials, named: Collection[str], told: Mapping[Any, Any], path: str
) -> None:
    for name in ("tenant", "client_id"):
        if name not in told:
            raise wrong(f"{path}.{name}", "is missing")
    if bool(credentials.token_file) == ("client_secret" in named):
        raise wrong(path, "needs either client_secret or token_file")
    if credentials.authority and not credentials.authority.startswith("https://"):
        raise wrong(f"{path}.authority", "must be a URL that begins with https://")


def _check_source(credentials: Credentials, path: str) -> None:
    if credentials.source:
        chosen(credentials.source, _SOURCES[credentials.kind], f"{path}.source")


_CHECKS: Final = {"aws": _check_aws, "gcp": _check_gcp, "entra": _check_entra}
