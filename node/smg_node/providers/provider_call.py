"""Provider call: the request that goes to a vendor, byte for byte, from one that came in. Pure.

    native       the client's bytes and headers, where it speaks the vendor's dialect
    translated   the fields that a writer made, and no header of the client

All that differs between vendors is looked up: `hosting` has the rows, `dressing` the bodies, `provider_headers` what
passes. What a signature covers is what goes on the wire: nobody may change path, query or body afterwards.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.providers.hosting import KEY_HEADERS, Auth, Dress, Hosting, Route, Version
from smg_node.providers.provider_spec import ProviderSpec
from smg_node.providers.wire.dressing import Dressed, dress_native, dress_written
from smg_node.providers.wire.provider_headers import to_vendor
from smg_node.providers.wire.provider_url import ProviderUrl, provider_url

NO_STREAM_OPTIONS: Final = "no_stream_options"
"""Quirk of a vendor that refuses `stream_options`, or tells the usage without being asked."""
BETA: Final = "anthropic-beta"
USER_AGENT: Final = "smg-node"


class ApiKey(msgspec.Struct, frozen=True):
    """A key that stands in a request as it is."""

    value: str

    def __repr__(self) -> str:
        return "ApiKey(…)"


class BearerToken(msgspec.Struct, frozen=True):
    """A token with an end, made for this node."""

    value: str

    def __repr__(self) -> str:
        return "BearerToken(…)"


class Signer(Protocol):
    """Signs requests with one account's secret, for one service in one region."""

    def sign(
        self,
        method: str,
        url_path: str,
        query: str,
        headers: Mapping[str, str],
        body: bytes,
        now: float,
    ) -> Mapping[str, str]:
        """Return the headers that are to be added. `url_path` and `query` are as on the wire, `headers` have a host,
        and `now` is in seconds since the epoch.
        """
        ...


Credential: TypeAlias = ApiKey | BearerToken | Signer | None


class ProviderCall(msgspec.Struct, frozen=True):
    """A request to a vendor. `usage_added`: its stream will tell a usage that the client did not ask for."""

    method: str
    url: ProviderUrl
    headers: Mapping[str, str]
    body: bytes
    usage_added: bool = False

    def __repr__(self) -> str:
        return f"ProviderCall({self.method} {self.url}, {len(self.body)} bytes)"


class PreparedCall:
    """All that calls of one operation and model of one provider have in common: what a target keeps.

    INVALID_REQUEST for a name that no path can hold, UPSTREAM_FAILED with 501 for an operation that this kind of
    provider does not have.
    """

    def __init__(
        self,
        spec: ProviderSpec,
        operation: str,
        model: str,
        *,
        streamed: bool,
        user_agent: str = USER_AGENT,
    ) -> None:
        self._spec = spec
        self._operation = operation
        self._model = model
        self._streamed = streamed
        self._hosting, route = _route(spec, operation)
        self._dress = _dress(spec, route)
        self.url = provider_url(self._hosting, spec.site, route, model, streamed=streamed)
        self._before = {
            "host": self.url.host,
            "content-type": "application/json",
            "accept": _accept(self._hosting, streamed=streamed),
            "user-agent": user_agent,
        }
        self._after = _account(spec, self._hosting)
        if self._dress.version is Version.HEADER:
            self._after["anthropic-version"] = spec.anthropic_version

    def call(
        self,
        body: bytes | Mapping[str, Any],
        credential: Credential,
        now: float,
        headers: Mapping[str, str] | None = None,
    ) -> ProviderCall:
        """Return one call. `body` are a client's own bytes, or a writer's fields; `headers` are the client's, names in
        lower case. INVALID_REQUEST for bytes that are no object.
        """
        dress = self._dress
        passed = (
            to_vendor(headers, self._spec.kind, self._operation, self._spec.headers)
            if headers
            else {}
        )
        betas = _betas(passed.pop(BETA, "")) if dress.betas else ()
        dressed = self._dressed(body, betas)
        said = {**self._before, **passed, **self._after}
        said.update(self._authorization(credential, said, dressed.body, now))
        return ProviderCall("POST", self.url, said, dressed.body, dressed.usage_added)

    def _dressed(self, body: bytes | Mapping[str, Any], betas: tuple[str, ...]) -> Dressed:
        model, version = self._model, self._spec.anthropic_version
        if isinstance(body, bytes):
            return dress_native(
                body,
                self._dress,
                model=model,
                streamed=self._streamed,
                version=version,
                betas=betas,
            )
        return dress_written(body, self._dress, model=model, version=version, betas=betas)

    def _authorization(
        self, credential: Credential, headers: Mapping[str, str], body: bytes, now: float
    ) -> Mapping[str, str]:
        """Return the headers that let a call in."""
        auth = self._hosting.auth
        if credential is None:
            return {}
        if isinstance(credential, BearerToken):
            return {"authorization": f"Bearer {_fitting(credential.value)}"}
        if isinstance(credential, ApiKey):
            value = _fitting(credential.value)
            own = self._spec.key_header
            names = (own,) if own else KEY_HEADERS[auth]
            return dict.fromkeys(names, value) if names else {"authorization": f"Bearer {value}"}
        assert auth is Auth.SIGV4
        return credential.sign("POST", self.url.path, self.url.query, headers, body, now)


def provider_call(
    spec: ProviderSpec,
    operation: str,
    model: str,
    body: bytes | Mapping[str, Any],
    *,
    streamed: bool,
    credential: Credential,
    now: float,
    headers: Mapping[str, str] | None = None,
    user_agent: str = USER_AGENT,
) -> ProviderCall:
    """Return the call of an operation, a dialect or the counting of one, for the vendor's `model`; as `PreparedCall`."""
    prepared = PreparedCall(spec, operation, model, streamed=streamed, user_agent=user_agent)
    return prepared.call(body, credential, now, headers)


def _route(spec: ProviderSpec, operation: str) -> tuple[Hosting, Route]:
    hosting = spec.hosting
    route = None if hosting is None else hosting.routes.get(operation)
    if hosting is None or route is None:
        raise SmgError(
            ErrorKind.UPSTREAM_FAILED,
            f"a provider of kind {spec.kind} has no {operation}",
            code="unsupported_operation",
            status=501,
        )
    return hosting, route


def _dress(spec: ProviderSpec, route: Route) -> Dress:
    if route.dress.usage and NO_STREAM_OPTIONS in spec.quirks:
        return msgspec.structs.replace(route.dress, usage=False)
    return route.dress


def _betas(header: str) -> tuple[str, ...]:
    named = (one.strip() for one in header.split(","))
    return tuple(dict.fromkeys(one for one in named if one))


def _accept(hosting: Hosting, *, streamed: bool) -> str:
    if not streamed:
        return "application/json"
    return "application/vnd.amazon.eventstream" if hosting.framed else "text/event-stream"


def _account(spec: ProviderSpec, hosting: Hosting) -> dict[str, str]:
    named = ((header, getattr(spec, field)) for field, header in hosting.account)
    return {header: value for header, value in named if value}


def _fitting(value: str) -> str:
    """Return a key that a header can hold; UPSTREAM_FAILED `provider_secret` for another one."""
    if value.isascii() and value.isprintable() and " " not in value:
        return value
    raise SmgError(
        ErrorKind.UPSTREAM_FAILED,
        "a key of the provider holds a character that no header can",
        code="provider_secret",
    )
