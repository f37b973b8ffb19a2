"""Live updates: hands changed settings of the cluster to the running parts of a process."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.cluster.settings.model_views import retune_models
from smg_node.config.frozen_settings import Settings
from smg_node.dialects.registry import Dialects
from smg_node.dialects.thought_seals import ThoughtSeals
from smg_node.fleet.fleet import Fleet
from smg_node.http.http_parts import HttpParts
from smg_node.http.http_settings import http_options, reader_options
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.generation.generator import Generator
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.placement.placer import Placer
from smg_node.pipeline.placement.policy_settings import (
    POLICY_FIELDS,
    encode_rule,
    policy_options,
)
from smg_node.pipeline.prompt.preparation import PrepareLimits, Preparer
from smg_node.pipeline.relay.relays import Relays
from smg_node.routing.policy_registry import Policies
from smg_node.routing.retry_budget import RetryBudgets
from smg_node.wiring.base import Base
from smg_node.wiring.fleet_parts import (
    FleetService,
    fleet_options,
    line_options,
    listen_options,
    retry_options,
)
from smg_node.wiring.media_parts import LazyMedia

if TYPE_CHECKING:
    from smg_node.pipeline.tool_loop.loop_parts import LoopParts


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What carries generations through."""

    policies: Policies
    placer: Placer
    retries: RetryBudgets
    preparer: Preparer
    journal: Journal
    generator: Generator
    relays: Relays
    embedder: Embedder
    loops: "Callable[[], LoopParts]"
    """Returns what runs tools of this side, built at its first call."""
    media: LazyMedia
    """What takes pictures in."""


def follow_serving(
    live: LiveSettings, parts: HttpParts, pipeline: Pipeline, seals: ThoughtSeals
) -> None:
    """Let what serves requests take over the cluster's settings as they change."""

    def surface(now: Settings) -> None:
        reading = reader_options(now, parts.reading.tool_servers)
        dialects = Dialects(reading, seals, parts.clock.monotonic_s)
        # Roles are no such settings: they are followed where issuers are.
        options = replace(http_options(now), roles=parts.options.roles)
        parts.retune(options, reading, dialects)

    def placing(now: Settings) -> None:
        own = {
            field: {model: name for model, name in live.of_models(field).items() if name}
            for field in POLICY_FIELDS
        }
        pipeline.placer.retune(
            policy=now.routing.policy,
            policies=own["policy"],
            prefill_policy=now.routing.prefill_policy,
            decode_policy=now.routing.decode_policy,
            prefill_policies=own["prefill_policy"],
            decode_policies=own["decode_policy"],
            fallback_regular=now.routing.fallback_regular,
            encode=encode_rule(now),
            encode_policies=own["encode_policy"],
            wait_for_worker_s=now.routing.wait_for_worker_s,
            zone_spill=now.routing.zone_spill_ratio,
            line=line_options(now),
            shed=now.overload.shed,
        )

    serving = ("http", "auth", "stream", "engine", "limits", "drain", "queue", "messages")
    live.watch(serving, surface)
    live.watch(("limits",), lambda now: pipeline.preparer.retune(prepare_limits(now)))
    live.watch(("media",), pipeline.media.retune)
    live.watch(("routing", "models", "queue", "overload"), placing)
    live.watch(("retry",), lambda now: pipeline.retries.retune(retry_options(now)))
    live.watch(
        ("routing",),
        lambda now: pipeline.policies.retune(
            policy_options(now), sticky=now.routing.sticky_sessions
        ),
    )


def follow_below(live: LiveSettings, base: Base, fleet: Fleet, desk: FleetService) -> None:
    """Let fleet, probes and telemetry take over the cluster's settings as they change."""

    def engines(now: Settings) -> None:
        fleet.retune_engines(first_event_s=now.engine.first_event_s, stall_s=now.engine.stall_s)

    def telemetry(now: Settings) -> None:
        base.logs.set_level(now.telemetry.log_level)
        base.access.turn(on=now.telemetry.access_log)
        base.tracer.set_ratio(now.telemetry.trace_ratio)

    live.watch(("models",), lambda now: retune_models(fleet.models, live))
    live.watch(
        ("workers", "breaker", "routing", "overload", "media"),
        lambda now: fleet.retune(fleet_options(now)),
    )
    live.watch(("kv", "workers"), lambda now: fleet.retune_listening(listen_options(now)))
    live.watch(("engine",), engines)
    live.watch(("readiness",), lambda now: desk.retune(workers_ready_min=now.readiness.min_workers))
    live.watch(("telemetry",), telemetry)


def prepare_limits(settings: Settings) -> PrepareLimits:
    """Return the bounds of schemas and grammars that the settings name."""
    return PrepareLimits(
        schema_max_bytes=settings.limits.schema_max_bytes,
        grammar_max_bytes=settings.limits.grammar_max_bytes,
    )
