"""HTTP parts: everything that the wiring hands to the HTTP surface."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from smg_node.access.identity import Authenticator
from smg_node.access.roles import Roles
from smg_node.core.ids import IdSource
from smg_node.core.ports import Clock
from smg_node.dialects.dialect import Dialect
from smg_node.dialects.options import ReaderOptions
from smg_node.http.http_options import HttpOptions
from smg_node.http.ports.cluster_metrics import MetricsService
from smg_node.http.ports.drain import DrainService
from smg_node.http.ports.keys import KeyService
from smg_node.http.ports.limits import LimitService
from smg_node.http.ports.node import (
    Catalog,
    Cluster,
    Explainer,
    HealthReport,
    Workers,
)
from smg_node.http.ports.shared_state import (
    AuditService,
    SessionService,
    SettingsService,
    StateService,
)
from smg_node.http.ports.tokens import TokenService
from smg_node.http.ports.usage import UsageService
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.generation.run_interface import Generations, ShownPrompt
from smg_node.pipeline.observability.refusals import Refusals
from smg_node.pipeline.relay.relays import Relays
from smg_node.telemetry.logs.access_log import AccessLog
from smg_node.telemetry.metrics.meters import Meters
from smg_node.telemetry.traces.tracer import Tracer

if TYPE_CHECKING:
    # Loaded with the first request that asks what was said before, or for tools.
    from smg_node.http.ports.access import AccessService, RoleService
    from smg_node.http.ports.discovery import DiscoveryService
    from smg_node.http.ports.history import History
    from smg_node.http.ports.providers import ProviderService
    from smg_node.http.ports.tool_approvals import ApprovalService
    from smg_node.http.ports.tool_servers import ToolServerService
    from smg_node.mcp.serving.call_state import Vault
    from smg_node.mcp.tool_servers import ToolServers


@dataclass(frozen=True, slots=True)
class Identity:
    """Identity of the node: its name, the product's version and commit."""

    node: str
    version: str
    commit: str = ""


@dataclass(slots=True)
class HttpParts:
    """The node's parts as the HTTP surface uses them.

    `translating` also generates on HTTP workers, whose answers it reads.
    `reading` are the limits of those readers that belong to no dialect. `dialects` maps a dialect's
    name (`chat`, `completions`) to it. `history` returns the history service, built at its first
    call. `settings` returns the node's configuration without secrets, for `/get_server_info`.
    `options`, `reading` and `dialects` may be exchanged while the node serves, by `retune` only,
    which informs parts that keep values derived from the options.
    """

    identity: Identity
    generations: Generations
    translating: Generations
    relays: Relays
    embedder: Embedder
    history: "Callable[[], History]"
    catalog: Catalog
    tokens: TokenService
    workers: Workers
    sessions: SessionService
    health: HealthReport
    cluster: Cluster
    authenticator: Authenticator
    keys: KeyService
    limits: LimitService
    usage: UsageService
    cluster_settings: SettingsService
    audit: AuditService
    state: StateService
    explain: Explainer
    dialects: Mapping[str, Dialect]
    meters: Meters
    tracer: Tracer
    access: AccessLog
    ids: IdSource
    clock: Clock
    options: HttpOptions = field(default_factory=HttpOptions)
    reading: ReaderOptions = field(default_factory=ReaderOptions)
    settings: Callable[[], Mapping[str, Any]] = dict
    scrape: Callable[[str], Awaitable[tuple[bytes, str]]] | None = None
    """Puts the page of metrics together where there are other processes to ask."""
    draining: DrainService | None = None
    """Tells how far members are that take no new work; in the process that answers such questions."""
    refusals: Refusals = field(default_factory=lambda: Refusals(""))
    """Takes requests for work that are refused before a generation of theirs began."""
    anywhere: Generations | None = None
    """Generates on HTTP workers as well, for dialects that those do not have."""
    numbers: MetricsService | None = None
    """Tells what the whole cluster counts; in the process that answers such questions."""
    providers: "Callable[[], ProviderService] | None" = None
    """Returns what tells of models at vendors, and defines them; in the process that answers such questions."""
    shown_prompt: ShownPrompt | None = None
    """Adds the tools that run on this side to the prompt of an API's request; None where none do."""
    offered_tools: "Callable[[], ToolServers | None]" = lambda: None
    """Returns the servers of tools that the node's own MCP server offers; None while there are none."""
    exposed_models: Callable[[], Mapping[str, str]] = dict
    """Returns the models that are tools of the node's own MCP server, and what an operator says of each."""
    vault: "Vault | None" = None
    """Seals what clients of tools carry from one request to the next; None where the node has no keyring."""
    tool_servers: "Callable[[], ToolServerService] | None" = None
    """Returns what tells of servers of tools, and defines them; in the process that answers such questions."""
    token_access: "Callable[[], AccessService] | None" = None
    """Returns what tells of issuers of tokens, and denies subjects; in the process that answers such questions."""
    discovery: "Callable[[], DiscoveryService] | None" = None
    """Returns what tells of sources of workers, and defines them; in the process that answers such questions."""
    tool_approvals: "Callable[[], ApprovalService] | None" = None
    """Returns what tells of runs that wait for an operator's word; in the process that answers such questions."""
    issuers: "Callable[[], Sequence[str]]" = tuple
    """Returns the URLs of the issuers whose tokens are good here; none where no tokens are."""
    role_access: "Callable[[], RoleService] | None" = None
    """Returns what tells of roles, and defines them; in the process that answers such questions."""
    heard: list[Callable[[HttpOptions], None]] = field(default_factory=list, init=False)
    """Told of new options."""

    def take_roles(self, roles: Roles) -> None:
        """Go by these roles from the next request on, also of connections that are open."""
        if roles is self.options.roles:
            return
        self.options = replace(self.options, roles=roles)
        for heard in self.heard:
            heard(self.options)

    def retune(
        self, options: HttpOptions, reading: ReaderOptions, dialects: Mapping[str, Dialect]
    ) -> None:
        """Serve with these from the next request on; listening addresses and identity cannot
        change.
        """
        self.options, self.reading, self.dialects = options, reading, dialects
        for heard in self.heard:
            heard(options)
