"""HTTP options: limits and timeouts of the HTTP surface, as plain values; filled from settings."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from smg_node.access.roles import BUILT_IN_ROLES, Roles
from smg_node.core.request_context import Priority

if TYPE_CHECKING:
    from smg_node.access.certificates import CertificateRule
    from smg_node.http.tls_options import TlsOptions

DataAccess: TypeAlias = Literal["auto", "open", "closed"]
"""Who may use the data routes: everyone until an admin key exists, everyone always, only who has a key."""

ServerKind: TypeAlias = Literal["direct", "aiohttp"]
"""Who reads requests: ourselves, or the framework."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Options of listening, reading, writing and draining. Sizes in bytes, times in seconds.

    `metrics_listen` may be empty: then there is no second port. `request_s` is the longest a request
    may take; a client can only ask for less.
    """

    listen: str = "0.0.0.0:30000"
    metrics_listen: str = "0.0.0.0:29000"
    reuse_port: bool = False
    tls: "TlsOptions | None" = None
    """What the public listener shows and whom it trusts; None: it speaks plain HTTP."""
    metrics_tls: bool = False
    """Whether the metrics are served the same way."""
    admin_listen: str = ""
    """Where operators' routes are served, `host:port` or `unix:/path`; empty: not by a listener of this process."""
    admin_tls: bool = False
    """Whether that listener shows the certificates as well."""
    admin_apart: bool = False
    """Whether operators' routes are at a listener of their own, and so not at the public one."""
    trusted_proxies: tuple[str, ...] = ()
    """Networks of proxies that are believed whom a request comes from."""
    server: ServerKind = "direct"
    body_max_bytes: int = 134_217_728
    nesting_max: int = 128
    header_line_max_bytes: int = 16_384
    header_count_max: int = 128
    header_read_s: float = 30.0
    idle_keepalive_s: float = 90.0
    body_stall_s: float = 30.0
    connections_max: int = 16_384
    request_id_headers: tuple[str, ...] = (
        "x-request-id",
        "x-correlation-id",
        "x-trace-id",
        "request-id",
    )
    cors_allowed_origins: tuple[str, ...] = ()
    expose_routing_headers: bool = True
    key_headers: tuple[str, ...] = ("x-smg-routing-key",)
    """Headers that may carry a routing key; the first one present wins."""
    data_access: DataAccess = "auto"
    claim_max: Priority = "interactive"
    """The most urgent class that a client may claim."""
    certificates: "tuple[CertificateRule, ...]" = ()
    """Rules of clients' certificates, in the order in which they are tried."""
    roles: Roles = BUILT_IN_ROLES
    """What roles may."""
    tenant_keys_max: int = 200
    """So many keys a tenant may have that its own administrators make."""
    request_s: float = 1800.0
    commit_after_s: float = 10.0
    keepalive_s: float = 15.0
    coalesce_ms: int = 0
    """So long tokens of a stream may wait for the next ones; the one time that is in milliseconds."""
    slow_client_bytes: int = 1_048_576
    slow_client_s: float = 60.0
    settle_s: float = 5.0
    grace_s: float = 180.0
