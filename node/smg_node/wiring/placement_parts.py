"""Placement parts: the placer that chooses workers for the calls of one process, made of the settings."""

from smg_node.config.frozen_settings import Settings
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.observability.placement_metrics import encode_meter
from smg_node.pipeline.placement.placer import Placer, PlacerOptions
from smg_node.pipeline.placement.policy_settings import by_model, encode_rule
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.routing.policy_registry import Policies
from smg_node.wiring.base import Base
from smg_node.wiring.fleet_parts import line_options


def build_placer(
    settings: Settings,
    fleet: Fleet,
    policies: Policies,
    base: Base,
    prefixes: Prefixes | None = None,
) -> Placer:
    """Return the placer that chooses workers, by these policies."""
    routing = settings.routing
    options = PlacerOptions(
        routing.policy,
        by_model(settings),
        routing.wait_for_worker_s,
        line=line_options(settings),
        zone=routing.zone,
        zone_spill=routing.zone_spill_ratio,
        shed=settings.overload.shed,
        prefill_policy=routing.prefill_policy,
        decode_policy=routing.decode_policy,
        prefill_policies=by_model(settings, "prefill_policy"),
        decode_policies=by_model(settings, "decode_policy"),
        fallback_regular=routing.fallback_regular,
        encode=encode_rule(settings),
        encode_policies=by_model(settings, "encode_policy"),
    )
    return Placer(
        fleet,
        policies,
        options,
        clock=base.clock,
        rng=base.rng,
        beginnings=prefixes,
        observe_encode=encode_meter(base.meters.cells),
    )
