"""Worker URL: `grpc://host:port?role=…&model=…&contract=…&label.zone=a`, parsed and written.

`grpcs://host:port` is the same over TLS, `http://host:port` one that speaks the OpenAI API; of a plain `host:port` it is found out what it speaks.
An HTTP worker may be written as clients write it, `http://host:port/v1`, and without the port that its scheme has by default.
`bootstrap_port=8998` is another spelling of `label.bootstrap_port=8998`, and `tls_name=HOST` one of `label.tls_name=HOST`.

Flags, files, the environment, the admin API and the command line all use this one form.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, unquote

from smg_node.config.address import join_host_port, split_host_port
from smg_node.config.schema.suggestions import did_you_mean
from smg_node.core.errors import invalid

ROLES: Final = ("regular", "prefill", "decode", "encode")
CONTRACTS: Final = ("sglang", "vllm", "trtllm", "mlx", "tokenspeed", "openai")
OPENAI: Final = "openai"
HTTP_PORTS: Final[Mapping[str, int]] = MappingProxyType({"http": 80, "https": 443})
"""The port of an HTTP worker whose URL names none."""
HTTP_SCHEMES: Final = tuple(HTTP_PORTS)
SECURE_GRPC: Final = "grpcs"
"""gRPC over TLS."""
PROVIDER: Final = "provider"
"""A model at a vendor, `provider://PROVIDER/MODEL`: made of a provider's definition, never written as a URL."""
PRIORITY: Final = 50
PRIORITY_MAX: Final = 1000
COST: Final = 1.0
COST_MAX: Final = 1_000_000.0
BOOTSTRAP_PORT_LABEL: Final = "bootstrap_port"
"""The port at which an engine that works prompts off meets the one that draws the answer."""
BOOTSTRAP_HOST_LABEL: Final = "bootstrap_host"
"""The address others find it at, where that is not its URL's."""
TLS_NAME_LABEL: Final = "tls_name"
"""The name that a worker's certificate is for, where that is not its URL's host."""
CONNECTOR_LABEL: Final = "kv_connector"
"""What engines must have in common to hand requests over; of HTTP workers also how they do it."""
ENGINE_ID_LABEL: Final = "kv_engine_id"
"""How an HTTP worker is called by those it hands requests to, where they ask for it."""
PAIRING_LABELS: Final = (
    BOOTSTRAP_PORT_LABEL,
    BOOTSTRAP_HOST_LABEL,
    CONNECTOR_LABEL,
    ENGINE_ID_LABEL,
)
"""Labels that say how a worker shares requests with another one."""

_URL_MAX_CHARACTERS = 2048  # far above any real one; what log lines and tables still show
_PARAMETERS: Final = (
    "role",
    "model",
    "contract",
    "priority",
    "cost",
    BOOTSTRAP_PORT_LABEL,
    TLS_NAME_LABEL,
)
_SPELLED: Final = (BOOTSTRAP_PORT_LABEL, TLS_NAME_LABEL)
"""Labels that may be written without `label.` in front."""
_LABELS_MAX = 32
_VALUE_MAX_CHARACTERS = 256
_LABEL_KEY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?", re.ASCII)
_PORT_MAX: Final = 65_535
_API_PATHS: Final = ("", "v1", "v1/")
"""Paths of an HTTP worker's URL that mean the same: all APIs lie below /v1 there."""
_LOOPBACK: Final = "127.0.0.1"
_NO_PORT: Final = "none"  # what other gateways accept where there is no bootstrap port
_HOST = re.compile(r"[A-Za-z0-9._:\[\]-]{1,253}", re.ASCII)
_TLS_NAME = re.compile(r"[A-Za-z0-9._:-]{1,253}", re.ASCII)
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class WorkerUrl:
    """One worker endpoint with its parameters.

    `scheme` is "" where it is to be found out what answers. `host` is lower-case and without brackets. `model` and `contract` are None where the engine is to
    be asked. Two URLs of one `identity` mean the same worker. `labels` is sorted and read-only. `priority` and
    `cost` are an operator's order among workers and what a request there costs beside others.
    """

    scheme: str
    host: str
    port: int
    role: str = "regular"
    model: str | None = None
    contract: str | None = None
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    priority: int = PRIORITY
    cost: float = COST

    @property
    def address(self) -> str:
        """`host:port`, with brackets around an IPv6 host: what a gRPC channel is opened to. A model at a vendor has
        no port: its host is `PROVIDER/MODEL`.
        """
        if self.scheme == PROVIDER:
            return self.host
        return join_host_port(self.host, self.port)

    @property
    def endpoint(self) -> str:
        """The URL without its parameters: `grpc://host:port`."""
        return f"{self.scheme}://{self.address}" if self.scheme else self.address

    @property
    def identity(self) -> str:
        """What all spellings of one address have in common: the endpoint, with one name for this host.

        Where the scheme is to be found out, gRPC is taken for it: one port is one engine. A model at a vendor may stand
        behind several public names, and is another worker behind each.
        """
        if self.scheme == PROVIDER:
            return f"{self.endpoint}?model={self.model}"
        host = self.host.removesuffix(".")
        address = join_host_port(_LOOPBACK if host == "localhost" else host, self.port)
        return f"{self.scheme or 'grpc'}://{address}"

    @property
    def bootstrap_port(self) -> int | None:
        """Port where the engine meets its partners, as far as the operator gives it."""
        port = self.labels.get(BOOTSTRAP_PORT_LABEL)
        return None if port is None else int(port)

    @property
    def bootstrap_host(self) -> str:
        """Host where its partners find the engine: its own, unless another one is given."""
        return self.labels.get(BOOTSTRAP_HOST_LABEL, self.host)

    @property
    def tls_name(self) -> str:
        """Name that the worker's certificate must be for, as far as it is not its host's; "" otherwise."""
        return self.labels.get(TLS_NAME_LABEL, "")

    def __str__(self) -> str:
        """Return the one spelling of this URL; parsing it gives an equal value."""
        said = [] if self.role == "regular" else [("role", self.role)]
        said += [("model", self.model)] if self.model is not None else []
        said += [("contract", self.contract)] if self.contract is not None else []
        said += [("priority", str(self.priority))] if self.priority != PRIORITY else []
        said += [("cost", repr(self.cost))] if self.cost != COST else []
        said += [(f"label.{key}", value) for key, value in self.labels.items()]
        query = "&".join(f"{quote(key, safe='/')}={quote(value, safe='/:')}" for key, value in said)
        return f"{self.endpoint}?{query}" if query else self.endpoint


def parse_worker_url(text: str) -> WorkerUrl:
    """Return the worker URL in `text`; INVALID_REQUEST `invalid_worker_url` in an operator's words
    otherwise.
    """
    try:
        return _parse(text)
    except ValueError as error:
        raise invalid(f"worker URL {_shown(text)}: {error}", code="invalid_worker_url") from None


def identity_of(text: str) -> str:
    """Return the identity of the worker URL in `text`, "" if it is none."""
    try:
        return _parse(text).identity
    except ValueError:
        return ""


def prefill_urls(words: Sequence[str]) -> tuple[str, ...]:
    """Return worker URLs of which each may be followed by its bootstrap port, or `none`, as a word of its own.

    A port becomes part of its URL; nothing else is checked here.
    """
    urls: list[str] = []
    may_follow = False
    for word in words:
        is_port = word == _NO_PORT or (word.isascii() and word.isdigit())
        if not (may_follow and is_port):
            urls.append(word)
        elif word != _NO_PORT:
            urls[-1] += f"{'&' if '?' in urls[-1] else '?'}{BOOTSTRAP_PORT_LABEL}={word}"
        may_follow = not is_port
    return tuple(urls)


def with_role(url: WorkerUrl, role: str) -> WorkerUrl:
    """Return `url` in that role; INVALID_REQUEST `invalid_worker_url` where it names another one."""
    if url.role not in ("regular", role):
        raise invalid(
            f"worker URL {_shown(str(url))}: its role is {url.role}, and it is given as {role}",
            code="invalid_worker_url",
        )
    return replace(url, role=role)


def _parse(text: str) -> WorkerUrl:
    if len(text) > _URL_MAX_CHARACTERS:
        raise ValueError(f"it is longer than {_URL_MAX_CHARACTERS} characters")
    if not text.isprintable() or " " in text:
        raise ValueError("it holds a blank or a control character")
    head, _, query = text.partition("?")
    scheme, separator, rest = head.partition("://")
    if not separator:
        scheme, rest = "", head
    elif not scheme:
        raise ValueError("it has nothing before ://; use grpc://host:port or http://host:port")
    _check_scheme(scheme.lower())
    host, port = _authority(rest, scheme.lower())
    if "#" in query:
        raise ValueError("it must not have a fragment (#…)")
    said = _query(query)
    for name in _SPELLED:
        if name in said:
            if f"label.{name}" in said:
                raise ValueError(f"the parameter {name!r} is given twice")
            said[f"label.{name}"] = said.pop(name)
    labels = {
        key.removeprefix("label."): said.pop(key)
        for key in sorted(said)
        if key.startswith("label.")
    }
    _check_labels(labels)
    if TLS_NAME_LABEL in labels and scheme.lower() not in (SECURE_GRPC, "https"):
        raise ValueError(f"{TLS_NAME_LABEL} is for workers over TLS: grpcs:// or https://")
    if scheme.lower() in ("grpc", SECURE_GRPC) and said.get("contract") == OPENAI:
        raise ValueError(f"{OPENAI} is spoken over HTTP; use http://host:port")
    return WorkerUrl(
        scheme.lower(),
        host,
        port,
        role=_one_of("role", said.pop("role", "regular"), ROLES),
        model=said.pop("model", None),
        contract=_one_of("contract", said.pop("contract"), CONTRACTS)
        if "contract" in said
        else None,
        labels=MappingProxyType(labels),
        priority=_priority(said.pop("priority", str(PRIORITY))),
        cost=_cost(said.pop("cost", str(COST))),
    )


def _check_scheme(scheme: str) -> None:
    if scheme == "grpc+tls":
        raise ValueError("gRPC over TLS is grpcs://host:port")
    if scheme not in ("", "grpc", SECURE_GRPC, *HTTP_SCHEMES):
        raise ValueError(
            f"the scheme {scheme[:40]!r} is unknown; use grpc://host:port or http://host:port"
        )


def _authority(text: str, scheme: str) -> tuple[str, int]:
    if "@" in text:
        raise ValueError("it must not carry a user name or password; a worker's key is its api_key")
    if "#" in text:
        raise ValueError("it must not have a fragment (#…)")
    address, _, path = text.partition("/")
    if path:
        _check_path(scheme, address, path)
    if not address:
        raise ValueError("it needs a host and a port, as in grpc://10.0.0.7:50051")
    usual = HTTP_PORTS.get(scheme)
    if usual is not None and (address.endswith("]") or ":" not in address):
        address = f"{address}:{usual}"
    if ":" not in address:
        raise ValueError(f"it needs a port, as in {scheme or 'grpc'}://{address[:80]}:50051")
    host, port = split_host_port(address)
    if not host:
        raise ValueError("it needs a host")
    if port == 0:
        raise ValueError("port 0 cannot be called")
    return host, port


def _check_path(scheme: str, address: str, path: str) -> None:
    if scheme in HTTP_SCHEMES:
        if path not in _API_PATHS:
            raise ValueError(
                f"it must not have a path (/{path[:40]}) other than /v1: the APIs of a worker are looked"
                f" for at {scheme}://{address[:80]}/v1"
            )
    elif not scheme and path in _API_PATHS:
        raise ValueError(
            f"it must not have a path (/{path}); of an HTTP worker write http://{address[:80]}/{path}"
        )
    else:
        raise ValueError(f"it must not have a path (/{path[:40]}); gRPC has none")


def _query(text: str) -> dict[str, str]:
    said: dict[str, str] = {}
    for pair in text.split("&") if text else ():
        if _BROKEN_ESCAPE.search(pair):
            raise ValueError(f"{pair[:60]!r} has a % that is no escape (a plain one is %25)")
        name, equals, value = pair.partition("=")
        key, value = unquote(name), unquote(value)
        if not key.startswith("label.") and key not in _PARAMETERS:
            known = (*_PARAMETERS, "label.NAME")
            hint = did_you_mean(key, known) or f"; known: {', '.join(known)}"
            raise ValueError(f"the parameter {key[:60]!r} is unknown{hint}")
        if key in said:
            raise ValueError(f"the parameter {key[:60]!r} is given twice")
        if not equals or (not value and not key.startswith("label.")):
            raise ValueError(f"the parameter {key[:60]!r} has no value")
        if len(value) > _VALUE_MAX_CHARACTERS or not (value.isprintable() and "�" not in value):
            raise ValueError(
                f"the value of {key[:60]!r} must be printable text of at most "
                f"{_VALUE_MAX_CHARACTERS} characters"
            )
        said[key] = value
    return said


def _check_labels(labels: Mapping[str, str]) -> None:
    if len(labels) > _LABELS_MAX:
        raise ValueError(f"it has {len(labels)} labels, at most {_LABELS_MAX} are allowed")
    for key in labels:
        if not _LABEL_KEY.fullmatch(key):
            raise ValueError(
                f"{key[:60]!r} is no label name (letters, digits, and . _ / - between them, at most 63)"
            )
    port = labels.get(BOOTSTRAP_PORT_LABEL, "1")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) <= _PORT_MAX):
        raise ValueError(f"the bootstrap port {port[:40]!r} is no port from 1 to {_PORT_MAX}")
    host = labels.get(BOOTSTRAP_HOST_LABEL, "h")
    if not _HOST.fullmatch(host):
        raise ValueError(f"the bootstrap host {host[:60]!r} is no host name and no address")
    tls_name = labels.get(TLS_NAME_LABEL, "h")
    if not _TLS_NAME.fullmatch(tls_name):
        raise ValueError(f"the {TLS_NAME_LABEL} {tls_name[:60]!r} is no host name and no address")


def _priority(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) <= PRIORITY_MAX):
        raise ValueError(f"the priority {text[:40]!r} is no whole number from 0 to {PRIORITY_MAX}")
    return int(text)


def _cost(text: str) -> float:
    try:
        cost = float(text)
    except ValueError:
        cost = -1.0
    # Not a number is neither.
    if not 0 <= cost <= COST_MAX:
        raise ValueError(f"the cost {text[:40]!r} is no number from 0 to {COST_MAX:g}")
    return cost


def _one_of(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        hint = did_you_mean(value, known)
        raise ValueError(f"the {name} {value[:40]!r} is unknown; known: {', '.join(known)}{hint}")
    return value


def _shown(text: str) -> str:
    """Return the URL for an error message: short, printable, and without a password."""
    shown = re.sub(r"//[^/@]*@", "//…@", text[:120])
    return repr(shown)
