"""Provider spec: all that an operator says of one provider but its secrets, as a document that nodes share. Pure.

A document of a newer release is read as far as it is understood: what is not is kept in `strange` at its place and
written again, so a node of this release passes on what it does not know.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from smg_node.providers.hosting import ANTHROPIC_VERSION, HOSTINGS, Hosting
from smg_node.providers.secret import Secret
from smg_node.providers.wire.provider_url import Site

STATES: Final = ("ours", "vendor")
CACHE_SCOPES: Final = ("account", "key")
"""Whose a prompt cache is at the vendor: all keys', or each key's own."""


class Credentials(msgspec.Struct, frozen=True):
    """How this node gets in: its kind, and what of it is no secret.

    `source` says where AWS keys come from, or Google's tokens; "" tries what is there. `token_file` holds a token that
    somebody else renews. `tenant` and `client_id` are Entra's, `role_arn` is the role that a web identity takes on.
    """

    kind: str = "keys"
    source: str = ""
    role_arn: str = ""
    session_name: str = ""
    token_file: str = ""
    tenant: str = ""
    client_id: str = ""
    authority: str = ""
    scope: str = ""
    strange: Mapping[str, Any] = {}


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds until a call is given up: to connect, to its first event, between events, in all; 0 for the node's own."""

    connect_s: float = 0.0
    first_event_s: float = 0.0
    stall_s: float = 0.0
    total_s: float = 0.0
    strange: Mapping[str, Any] = {}


class ModelSpec(msgspec.Struct, frozen=True):
    """One model as the vendor names it, and what is special about it; empty for what is not."""

    model: str
    dialects: tuple[str, ...] = ()
    output_max: int = 0
    quirks: tuple[str, ...] = ()
    cache_min_tokens: int = 0
    strange: Mapping[str, Any] = {}


class ProviderSpec(msgspec.Struct, frozen=True):
    """One account at one place. Fields that are empty stand for what its kind has by default.

    `headers` are names of clients' headers that pass in addition to those of the kind. `key_header` is the header a
    key stands in, where that is not Authorization. `proxy` is a URL through which calls go.
    """

    name: str
    kind: str
    base: str = ""
    region: str = ""
    location: str = ""
    project: str = ""
    organization: str = ""
    workspace: str = ""
    resource: str = ""
    api_version: str = ""
    anthropic_version: str = ANTHROPIC_VERSION
    key_header: str = ""
    credentials: Credentials = Credentials()
    labels: Mapping[str, str] = {}
    headers: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()
    models: tuple[ModelSpec, ...] = ()
    client_keys: bool = False
    proxy: str = ""
    timeouts: Timeouts = Timeouts()
    state: str = "ours"
    cache_scope: str = CACHE_SCOPES[0]
    cache_key_added: bool = False
    strange: Mapping[str, Any] = {}

    @property
    def hosting(self) -> Hosting | None:
        """The row of its kind; None for a kind that only a newer release knows."""
        return HOSTINGS.get(self.kind)

    @property
    def site(self) -> Site:
        """Where the account is."""
        return Site(
            self.base,
            self.region,
            self.location,
            self.project,
            self.workspace,
            self.resource,
            self.api_version,
        )

    @property
    def accounts(self) -> tuple[str, ...]:
        """Names that tell whose account this is: no client sees them."""
        named = (self.project, self.organization, self.workspace, self.resource)
        own = (self.credentials.role_arn, self.credentials.tenant, self.credentials.client_id)
        return tuple(name for name in (*named, *own) if name)

    def model(self, name: str) -> ModelSpec:
        """Return what is said of the vendor's model of that name; nothing special if it is not listed."""
        found = (one for one in self.models if one.model == name)
        return next(found, None) or ModelSpec(name)


class ProviderSecrets(msgspec.Struct, frozen=True):
    """The secrets of one provider: its keys, and those of its credentials by name. Sealed apart from the rest."""

    keys: tuple[Secret, ...] = ()
    named: Mapping[str, Secret] = {}


_Part = TypeVar("_Part", bound=msgspec.Struct)
_PARTS: Final[Mapping[str, type[msgspec.Struct]]] = {
    "credentials": Credentials,
    "timeouts": Timeouts,
}
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def write_spec(spec: ProviderSpec) -> bytes:
    """Return the document of a spec: one spelling for one meaning, defaults left out."""
    return _encode(_plain(spec))


def read_spec(document: bytes) -> ProviderSpec:
    """Return the spec in a document; ValueError where a field that is known has another type here."""
    try:
        said = msgspec.json.decode(document)
        if not isinstance(said, dict):
            raise ValueError("a document of a provider is an object")
        parts: dict[str, Any] = {
            name: _read(kind, said[name]) for name, kind in _PARTS.items() if name in said
        }
        if "models" in said:
            if not isinstance(said["models"], list):
                raise ValueError("models of a provider are a list")
            parts["models"] = tuple(_read(ModelSpec, row) for row in said["models"])
        return _read(ProviderSpec, said, parts)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError) as error:
        raise ValueError(str(error)) from error


def write_secrets(secrets: ProviderSecrets) -> bytes:
    """Return the secrets as bytes that are to be sealed."""
    named = {name: secret.spelled for name, secret in secrets.named.items()}
    return _encode({"keys": [key.spelled for key in secrets.keys], "named": named})


def read_secrets(opened: bytes) -> ProviderSecrets:
    """Return what `write_secrets` wrote; ValueError for anything else."""
    try:
        said = msgspec.json.decode(opened, type=_Spelled)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # Its words could show what they are about.
        raise ValueError("no secrets of a provider") from error
    named = {name: Secret(value) for name, value in said.named.items()}
    return ProviderSecrets(tuple(map(Secret, said.keys)), named)


class _Spelled(msgspec.Struct):
    keys: tuple[str, ...] = ()
    named: dict[str, str] = {}


def _plain(part: msgspec.Struct) -> dict[str, Any]:
    """Return a part as plain values, with what was strange in it at its place again."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(type(part))}
    said: dict[str, Any] = {}
    for name, value in msgspec.structs.asdict(part).items():
        if name == "strange" or (value == defaults[name] and not _is_odd(value)):
            continue
        if isinstance(value, msgspec.Struct):
            said[name] = _plain(value)
        elif name == "models":
            said[name] = [_plain(one) for one in value]
        elif value or not isinstance(value, dict | tuple):
            said[name] = value
    return {**getattr(part, "strange", {}), **said}


def _is_odd(value: object) -> bool:
    return bool(getattr(value, "strange", None))


def _read(kind: type[_Part], said: Any, parts: Mapping[str, Any] | None = None) -> _Part:
    """Return a part; what it does not know is kept beside."""
    if not isinstance(said, dict):
        raise ValueError(f"a part of a provider is an object, not {type(said).__name__}")
    parts = parts or {}
    names = [name for name in kind.__struct_fields__ if name != "strange"]
    plain = {name: said[name] for name in names if name in said and name not in parts}
    converted = {
        name: msgspec.convert(value, _TYPES[kind][name], strict=True)
        for name, value in plain.items()
    }
    strange = {name: value for name, value in said.items() if name not in names}
    return kind(**converted, **parts, strange=strange)


_TYPES: Final[Mapping[type[msgspec.Struct], Mapping[str, Any]]] = {
    kind: {field.name: field.type for field in msgspec.structs.fields(kind)}
    for kind in (ProviderSpec, Credentials, Timeouts, ModelSpec)
}
