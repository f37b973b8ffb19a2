"""Google tokens: from a service account's key, a refresh token, or the machine itself.

A service account signs an assertion of its own (RFC 7523, RS256) and gets a token for an hour. Without a `source` the
first that is there counts: what the operator gave, the file of GOOGLE_APPLICATION_CREDENTIALS, the machine.
"""

import base64
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from smg_node.providers.access_tokens.fetch import FORM, Fetch, fetched_json, form, place_of
from smg_node.providers.access_tokens.made_token import MadeToken, bearer, token_error
from smg_node.providers.provider_spec import ProviderSecrets, ProviderSpec
from smg_node.providers.secret import Secret, SecretSources

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_URL: Final = "https://oauth2.googleapis.com/token"
ASSERTION_LIFE_S: Final = 3_600
METADATA: Final = "metadata.google.internal"
_GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_PATH: Final = "/computeMetadata/v1/instance/service-accounts/default/token"


class GoogleMaker:
    """Makes the tokens of one provider."""

    def __init__(
        self, spec: ProviderSpec, secrets: ProviderSecrets, fetch: Fetch, sources: SecretSources
    ) -> None:
        self._said = spec.credentials
        self._named = secrets.named
        self._fetch = fetch
        self._sources = sources

    async def make(self, now: float) -> MadeToken:
        """Return a token; UPSTREAM_FAILED with what is missing otherwise."""
        source = self._said.source
        if source == "instance":
            return await self._instance(now)
        if "refresh_token" in self._named and source in ("", "refresh_token"):
            return await self._refreshed(
                self._said.client_id,
                self._named["client_secret"].read(self._sources),
                self._named["refresh_token"].read(self._sources),
                now,
            )
        key = self._named.get("service_account")
        path = self._sources.env("GOOGLE_APPLICATION_CREDENTIALS")
        if key is None and path:
            key = Secret(f"file:{path}")
        if key is None:
            return await self._instance(now)
        return await self._from_file(key.read(self._sources), now)

    async def _from_file(self, text: str, now: float) -> MadeToken:
        """Return the token of a file as Google's tools write it: of a service account, or of a user."""
        try:
            said = msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.DecodeError:
            # Without its cause, which may show a part of the key.
            raise token_error("the service account's file is no JSON object") from None
        kind = said.get("type")
        if kind == "authorized_user":
            names = ("client_id", "client_secret", "refresh_token")
            client_id, client_secret, refresh_token = (_text(said, name) for name in names)
            return await self._refreshed(client_id, client_secret, refresh_token, now)
        if kind != "service_account":
            raise token_error(f"a file of type {str(kind)[:40]!r} is none of a service account")
        url = said.get("token_uri") or TOKEN_URL
        if not isinstance(url, str) or not _is_safe(url):
            raise token_error("the service account's token_uri is no https URL")
        assertion = signed_assertion(said, self._said.scope or SCOPE, url, now)
        body = form(grant_type=_GRANT, assertion=assertion)
        return bearer(await fetched_json(self._fetch, "POST", url, FORM, body), place_of(url), now)

    async def _refreshed(
        self, client_id: str, client_secret: str, refresh_token: str, now: float
    ) -> MadeToken:
        body = form(
            grant_type="refresh_token",
            client_id=client_id,
            client_secret=client_secret,
            refresh_token=refresh_token,
        )
        said = await fetched_json(self._fetch, "POST", TOKEN_URL, FORM, body)
        return bearer(said, place_of(TOKEN_URL), now)

    async def _instance(self, now: float) -> MadeToken:
        host = self._sources.env("GCE_METADATA_HOST") or METADATA
        url = f"http://{host}{_TOKEN_PATH}"
        said = await fetched_json(self._fetch, "GET", url, {"metadata-flavor": "Google"})
        return bearer(said, place_of(url), now)


def signed_assertion(account: Mapping[str, Any], scope: str, audience: str, now: float) -> str:
    """Return the JWT by which a service account says who it is, for an hour from `now`; UPSTREAM_FAILED for a key that
    is none.
    """
    # Imported here: only nodes that have a service account sign for it.
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    head: dict[str, Any] = {"alg": "RS256", "typ": "JWT"}
    if isinstance(account.get("private_key_id"), str):
        head["kid"] = account["private_key_id"]
    issued = int(now)
    claims = {
        "iss": _text(account, "client_email"),
        "scope": scope,
        "aud": audience,
        "iat": issued,
        "exp": issued + ASSERTION_LIFE_S,
    }
    try:
        key = load_pem_private_key(_text(account, "private_key").encode(), None)
    except (ValueError, TypeError):
        # Without its cause, which may show a part of the key.
        raise token_error("the service account's private_key is no PEM key") from None
    if not isinstance(key, RSAPrivateKey):
        raise token_error("the service account's private_key is no RSA key")
    signed = f"{_segment(head)}.{_segment(claims)}"
    return f"{signed}.{_encoded(key.sign(signed.encode(), PKCS1v15(), SHA256()))}"


def _segment(said: Mapping[str, Any]) -> str:
    return _encoded(msgspec.json.encode(said))


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _text(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not value:
        raise token_error(f"the service account's file has no {name}")
    return value


def _is_safe(url: str) -> bool:
    """Whether an assertion may go there: over TLS, or to this machine."""
    parts = urlsplit(url)
    near = parts.hostname in ("localhost", "127.0.0.1", "::1")
    return parts.scheme == "https" or (parts.scheme == "http" and near)
