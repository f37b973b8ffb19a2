"""HTTP knobs: listener, sizes, time-outs and connection limits of the public surface."""

import re
from ipaddress import ip_network
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from smg_node.config.address import parse_address
from smg_node.config.schema.declaration import (
    ListenAddress,
    Section,
    address,
    choice,
    number,
    switch,
    text,
    words,
)
from smg_node.config.sections.http_tls import HttpTls

_HEADER_NAME = re.compile(
    r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}", re.ASCII
)  # RFC 9110 5.6.2, and a length
_UNIX = "unix:"
_SOCKET_PATH_BYTES_MAX = 107  # `sun_path` of Linux, without its closing zero


class Http(Section):
    """Where clients connect, and how large, slow or many they may be."""

    listen: ListenAddress = address(
        "0.0.0.0:30000",
        "Address of the public API, the probes and the admin API. `[::]:PORT` is IPv6 and IPv4. Port 0 takes any free port.",
        short="--http",
        host="--host",
        port="--port",
    )
    metrics_listen: ListenAddress = address(
        "0.0.0.0:29000",
        "Address of Prometheus metrics, as http.listen.",
        short="--metrics",
        host="--prometheus-host",
        port="--prometheus-port",
    )
    admin_listen: str = text(
        "",
        "Address of the admin API, HOST:PORT or unix:/PATH: then operators' and administrators' routes are here and not at"
        " the public address. A UNIX socket takes whoever this process runs as, and root, for an administrator.",
        most=255,
        metavar="ADDRESS",
    )
    server: Literal["direct", "aiohttp"] = choice(
        "direct",
        "Who reads requests: `direct` is the node's own server, `aiohttp` that of a library, at several times the cost.",
    )
    body_max_bytes: int = number(
        134_217_728,
        "Largest request body. Over it the answer is 413 before the rest is read.",
        low=1024,
        high=4_294_967_296,
        why="no chat fits below 1 KiB; a body is held in memory, so above 4 GiB one could take the machine",
        aliases=("--max-payload-size",),
    )
    nesting_max: int = number(
        128,
        "Deepest nesting of a JSON body. Over it the answer is 400.",
        low=8,
        high=512,
        why="a plain tool schema nests about 8 deep; JSON readers give up near 1,000",
    )
    header_line_max_bytes: int = number(
        16_384,
        "Longest request header line. Over it the answer is 431.",
        low=1024,
        high=1_048_576,
        why="common bearer tokens need 1 KiB; every open connection may buffer one such line",
    )
    header_count_max: int = number(
        128,
        "Most headers of a request. Over it the answer is 431.",
        low=16,
        high=4096,
        why="a browser behind a proxy sends about 20; more than 4,096 is an attack",
    )
    header_read_s: float = number(
        30,
        "Seconds a client has to send its request headers before it is disconnected.",
        low=0.1,
        high=3600,
        why="below 0.1 s a far client cannot make it; above an hour slow ones could hold every connection",
    )
    idle_keepalive_s: float = number(
        90,
        "Seconds an idle connection is kept open for the next request.",
        low=0.1,
        high=86_400,
        why="0 would close each connection after one answer; past a day nothing is waiting",
    )
    body_stall_s: float = number(
        30,
        "Seconds without a byte of a request body before the answer is 408.",
        low=0.1,
        high=3600,
        why="below 0.1 s ordinary jitter is a stall; above an hour slow ones could hold every connection",
    )
    connections_max: int = number(
        16_384,
        "Most open client connections, of each data process where there are several; further ones are refused.",
        low=1,
        high=1_000_000,
        why="each takes a file descriptor and some kernel memory",
    )
    unknown_parameters: Literal["forward", "reject"] = choice(
        "forward",
        "What happens to request parameters nobody knows: `forward` lets them pass (gRPC engines ignore"
        " them, and the answer's x-smg-ignored-params names them), `reject` answers 400.",
    )
    request_id_headers: tuple[str, ...] = words(
        ("x-request-id", "x-correlation-id", "x-trace-id", "request-id"),
        "Request headers that may carry the request id; the first one present wins.",
        most=16,
        metavar="HEADER",
        aliases=("--request-id-headers",),
    )
    cors_allowed_origins: tuple[str, ...] = words(
        (),
        "Origins browsers may call from, as https://host[:port], or `*`. Empty: CORS is off.",
        most=256,
        metavar="ORIGIN",
        aliases=("--cors-allowed-origins",),
    )
    expose_routing_headers: bool = switch(
        True,
        "Whether answers name the node, the worker and the attempts (x-smg-node and others).",
    )
    reasoning_field: Literal["reasoning_content", "reasoning", "both"] = choice(
        "reasoning_content",
        "Under which name chat answers carry a model's reasoning.",
    )

    tls: HttpTls = Field(default_factory=HttpTls)
    metrics_tls: bool = switch(
        False, "Whether the metrics are served over TLS as well, with the same certificates."
    )
    admin_tls: bool = switch(
        False,
        "Whether http.admin_listen speaks TLS as well, with the same certificates.",
    )
    trusted_proxies: tuple[str, ...] = words(
        (),
        "Networks of proxies whose word on a client's address, certificate and tenant is believed, as in 10.0.0.0/8:"
        " x-forwarded-for, x-forwarded-client-cert, x-smg-tenant-id.",
        most=256,
        metavar="CIDR",
    )

    @field_validator("request_id_headers")
    @classmethod
    def _header_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _HEADER_NAME.fullmatch(name):
                raise ValueError(f"{name[:64]!r} is not a header name")
        return tuple(name.lower() for name in names)

    @field_validator("cors_allowed_origins")
    @classmethod
    def _origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if origin != "*" and not _is_origin(origin):
                raise ValueError(
                    f"{origin[:120]!r} is not an origin such as https://chat.example.org, or *"
                )
        return origins

    @field_validator("admin_listen")
    @classmethod
    def _admin_address(cls, where: str) -> str:
        if where.startswith(_UNIX):
            path = where.removeprefix(_UNIX)
            if not path.startswith("/") or "\0" in path:
                raise ValueError(
                    f"{where[:120]!r} names no socket: it is unix: and an absolute path"
                )
            if len(path.encode("utf-8", "surrogateescape")) > _SOCKET_PATH_BYTES_MAX:
                raise ValueError(
                    f"a socket's path has at most {_SOCKET_PATH_BYTES_MAX} bytes, as the system has it"
                )
            return where
        return str(parse_address(where)) if where else where

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        found = []
        for network in networks:
            try:
                found.append(str(ip_network(network, strict=False)))
            except ValueError:
                raise ValueError(
                    f"{network[:80]!r} is no network such as 10.0.0.0/8 or 2001:db8::/32"
                ) from None
        return tuple(found)

    @model_validator(mode="after")
    def _has_certificates(self) -> "Http":
        if self.admin_tls and (not self.admin_listen or self.admin_listen.startswith(_UNIX)):
            raise ValueError("http.admin_tls needs http.admin_listen with a host and a port")
        if self.admin_tls and self.tls.certificate is None:
            raise ValueError("http.admin_tls needs http.tls.certificate and http.tls.key")
        if self.metrics_tls and self.tls.certificate is None:
            raise ValueError("http.metrics_tls needs http.tls.certificate and http.tls.key")
        return self

    @property
    def scheme(self) -> str:
        """Scheme of the public API's URL."""
        return "http" if self.tls.certificate is None else "https"

    @property
    def metrics_scheme(self) -> str:
        """Scheme of the metrics' URL."""
        return self.scheme if self.metrics_tls else "http"

    @property
    def admin_scheme(self) -> str:
        """Scheme of the admin listener's URL."""
        return self.scheme if self.admin_tls else "http"


def _is_origin(text: str) -> bool:
    """Whether a browser could send `text` in its Origin header (RFC 6454 7)."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    if not text.isascii() or not text.isprintable() or "," in text or " " in text:
        return False
    bare = f"{parts.scheme}://{parts.netloc}"
    return text.lower() == bare.lower() and bool(parts.scheme and parts.hostname) and port != 0
