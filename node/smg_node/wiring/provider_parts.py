"""Provider parts of a process: what serves models at providers, and the service of their definitions."""

from functools import partial
from typing import TYPE_CHECKING

from smg_node.cluster.providers.provider_fleet import ProviderFleet, ProviderState
from smg_node.cluster.providers.provider_metrics import watch_providers
from smg_node.config.frozen_settings import Settings
from smg_node.core.ports import Clock
from smg_node.fleet.fleet import Fleet
from smg_node.wiring.base import Base
from smg_node.wiring.mcp_parts import tool_server_access
from smg_node.wiring.serving_parts import engine_options

if TYPE_CHECKING:
    from smg_mesh.shared import Shared
    from smg_node.cluster.mcp.lazy_servers import LazyToolServers
    from smg_node.cluster.providers.provider_service import ClusterProviders
    from smg_node.http.http_parts import HttpParts
    from smg_node.pipeline.relay.shadows.shadow_records import ShadowBook
    from smg_node.providers.kept_tokens import Spawn
    from smg_node.providers.provider_book import ProviderBook


def build_providers(settings: Settings, base: Base, shared: ProviderState) -> ProviderFleet:
    """Return what serves models at providers. ConfigurationError for a file of definitions that cannot be used."""

    def make_book(spawn: "Spawn") -> "ProviderBook":
        # With the first definition: a node without providers holds nothing of it.
        from smg_node.providers.provider_book import ProviderBook

        return ProviderBook(engine_options(settings), base.clock, spawn, base.prices)

    providers = ProviderFleet(
        settings.providers.definitions, shared, make_book, base.clock.now_ms, base.prices
    )

    def start_shadows(spawn: "Spawn") -> "ShadowBook":
        # With the first route that has a shadow.
        from smg_node.pipeline.relay.shadows.shadow_runs import ShadowRuns

        each = max(1, settings.processes)
        runs = ShadowRuns(spawn, base.clock, lambda: each * max(1, len(shared.living())))
        base.post.shadows = runs
        return runs.book

    providers.start_shadows = start_shadows
    providers.check()
    watch_providers(base.meters, providers)
    return providers


def provider_access(
    shared: "Shared", clock: Clock, fleet: Fleet, providers: ProviderFleet
) -> "ClusterProviders":
    """Return the service of definitions; its first request imports what it needs."""
    from smg_node.cluster.providers.provider_service import ClusterProviders

    return ClusterProviders(providers, shared.providers, shared.seal, fleet, clock.monotonic_s)


def let_define(
    parts: "HttpParts",
    base: Base,
    shared: "Shared",
    fleet: Fleet,
    providers: ProviderFleet,
    servers: "LazyToolServers",
) -> None:
    """Let operators see and change what the cluster's own state holds definitions of."""
    parts.providers = partial(provider_access, shared, base.clock, fleet, providers)
    parts.tool_servers = partial(tool_server_access, shared, base.clock, servers)
    parts.token_access = base.issuers.service
    parts.role_access = base.issuers.role_service
