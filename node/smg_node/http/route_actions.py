"""Route actions: builds the function behind each `action` of the route table, most of them lazily.

Routes that every node serves from its start are built at once: generations, models, probes.
Operator routes, and those that many nodes never serve, are loaded with the first request for them;
that takes one to five milliseconds.
"""

from collections.abc import Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from smg_node.http.access_actions import access_actions
from smg_node.http.http_parts import HttpParts
from smg_node.http.message.body_reader import BodyReader
from smg_node.http.message.delta_coalescing import DeltaCoalescer
from smg_node.http.message.keepalive import KeepaliveTimer
from smg_node.http.middleware.drain_phases import Drain
from smg_node.http.middleware.inflight import Inflight
from smg_node.http.middleware.middleware import Action
from smg_node.http.middleware.readiness_probers import Probers
from smg_node.http.route_table import ROUTES
from smg_node.http.routes.inference.generation import GenerationRoutes
from smg_node.http.routes.inference.models import ModelRoutes
from smg_node.http.routes.node.about import AboutRoutes
from smg_node.http.routes.node.probes import ProbeRoutes
from smg_node.http.socket_actions import socket_actions
from smg_node.http.sockets.own_door import OwnDoor
from smg_node.http.tool_actions import tool_server_actions

if TYPE_CHECKING:
    from smg_node.http.routes.cluster.audit import AuditRoutes
    from smg_node.http.routes.cluster.cluster import ClusterRoutes
    from smg_node.http.routes.cluster.cluster_metrics import NumberRoutes
    from smg_node.http.routes.cluster.drain_status import DrainRoutes
    from smg_node.http.routes.cluster.events import EventRoutes
    from smg_node.http.routes.cluster.explain import ExplainRoutes
    from smg_node.http.routes.cluster.providers import ProviderRoutes
    from smg_node.http.routes.cluster.settings import SettingsRoutes
    from smg_node.http.routes.cluster.shared_state import StateRoutes
    from smg_node.http.routes.inference.embeddings import EmbeddingRoutes
    from smg_node.http.routes.inference.generate_content import GenerateContentRoutes
    from smg_node.http.routes.inference.message_tokens import MessageTokenRoutes
    from smg_node.http.routes.inference.parse_text import ParseRoutes
    from smg_node.http.routes.inference.tokens import TokenRoutes
    from smg_node.http.routes.stored.conversations import ConversationRoutes
    from smg_node.http.routes.stored.interactions import InteractionRoutes
    from smg_node.http.routes.stored.responses import ResponseRoutes
    from smg_node.http.routes.tenants.keys import KeyRoutes
    from smg_node.http.routes.tenants.limits import LimitRoutes
    from smg_node.http.routes.tenants.usage import UsageRoutes
    from smg_node.http.routes.workers.workers import WorkerRoutes


def build_actions(
    parts: HttpParts,
    bodies: BodyReader,
    drain: Drain,
    pulse: KeepaliveTimer,
    joining: DeltaCoalescer,
    inflight: Inflight,
    probers: Probers,
    door: OwnDoor,
) -> Mapping[str, Action]:
    """Return the action of every name in the route table."""
    return {
        **_for_tenants(parts, bodies, pulse, joining),
        **_of_texts(parts, bodies, pulse),
        **_of_history(parts, bodies, pulse, drain, inflight),
        **socket_actions(parts, inflight, door),
        **_of_usage(parts),
        **_for_the_fleet(parts, bodies),
        **_for_members(parts, bodies),
        **_of_what_happens(parts, pulse, inflight),
        **_of_settings(parts, bodies),
        **_of_providers(parts, bodies),
        **tool_server_actions(parts, bodies, pulse),
        **_of_keys_and_limits(parts, bodies),
        **access_actions(parts, bodies),
        **_of_shared_state(parts),
        **_about_the_node(parts, drain, probers),
    }


def _for_tenants(
    parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer, joining: DeltaCoalescer
) -> Mapping[str, Action]:
    generation = GenerationRoutes(parts, bodies, pulse, joining)
    models = ModelRoutes(parts.catalog)

    @cache
    def contents() -> "GenerateContentRoutes":
        from smg_node.http.routes.inference.generate_content import GenerateContentRoutes

        return GenerateContentRoutes(parts, bodies, generation)

    return {
        "chat": partial(generation.serve, "chat"),
        "completions": partial(generation.serve, "completions"),
        "messages": partial(generation.serve, "messages"),
        "models": models.models,
        "model": models.model,
        "google_models": models.google_models,
        "google_model": models.google_model,
        "generate_content": lambda request: contents().serve(request),
        "model_card": models.model_card,
    }


def _of_texts(parts: HttpParts, bodies: BodyReader, pulse: KeepaliveTimer) -> Mapping[str, Action]:
    @cache
    def embeddings() -> "EmbeddingRoutes":
        from smg_node.http.routes.inference.embeddings import EmbeddingRoutes

        return EmbeddingRoutes(parts, bodies, pulse)

    @cache
    def tokens() -> "TokenRoutes":
        from smg_node.http.routes.inference.tokens import TokenRoutes

        return TokenRoutes(parts, bodies)

    @cache
    def message_tokens() -> "MessageTokenRoutes":
        from smg_node.http.routes.inference.message_tokens import MessageTokenRoutes

        return MessageTokenRoutes(parts, bodies)

    @cache
    def parse() -> "ParseRoutes":
        from smg_node.http.routes.inference.parse_text import ParseRoutes

        return ParseRoutes(parts, bodies)

    return {
        "embeddings": lambda request: embeddings().embeddings(request),
        "rerank": lambda request: embeddings().relay("rerank", request),
        "classify": lambda request: embeddings().relay("classify", request),
        "count_tokens": lambda request: message_tokens().count(request),
        "tokenize": lambda request: tokens().tokenize(request),
        "detokenize": lambda request: tokens().detokenize(request),
        "parse_calls": lambda request: parse().calls(request),
        "parse_reasoning": lambda request: parse().reasoning(request),
    }


def _of_history(
    parts: HttpParts,
    bodies: BodyReader,
    pulse: KeepaliveTimer,
    drain: Drain,
    inflight: Inflight,
) -> Mapping[str, Action]:
    @cache
    def responses() -> "ResponseRoutes":
        from smg_node.http.routes.stored.responses import ResponseRoutes

        return ResponseRoutes(parts, parts.history(), bodies, pulse)

    @cache
    def interactions() -> "InteractionRoutes":
        from smg_node.http.routes.stored.follow_stream import FollowStreams
        from smg_node.http.routes.stored.interactions import InteractionRoutes

        streams = FollowStreams(pulse, inflight.movable)
        return InteractionRoutes(
            parts, parts.history(), bodies, streams, pulse, lambda: drain.refusing
        )

    @cache
    def conversations() -> "ConversationRoutes":
        from smg_node.http.routes.stored.conversations import ConversationRoutes

        return ConversationRoutes(parts, parts.history(), bodies)

    return {
        "create_response": lambda request: responses().create(request),
        "response": lambda request: responses().retrieve(request),
        "delete_response": lambda request: responses().delete(request),
        "cancel_response": lambda request: responses().cancel(request),
        "input_items": lambda request: responses().input_items(request),
        "input_tokens": lambda request: responses().input_tokens(request),
        "compact": lambda request: responses().compact(request),
        "create_interaction": lambda request: interactions().create(request),
        "interaction": lambda request: interactions().retrieve(request),
        "delete_interaction": lambda request: interactions().delete(request),
        "cancel_interaction": lambda request: interactions().cancel(request),
        "create_conversation": lambda request: conversations().create(request),
        "conversation": lambda request: conversations().retrieve(request),
        "change_conversation": lambda request: conversations().update(request),
        "delete_conversation": lambda request: conversations().delete(request),
        "items": lambda request: conversations().items(request),
        "add_items": lambda request: conversations().add_items(request),
        "item": lambda request: conversations().item(request),
        "delete_item": lambda request: conversations().delete_item(request),
    }


def _of_usage(parts: HttpParts) -> Mapping[str, Action]:
    @cache
    def usage() -> "UsageRoutes":
        from smg_node.http.routes.tenants.usage import UsageRoutes

        return UsageRoutes(parts.identity.node, parts.usage, parts.clock.now_ms)

    @cache
    def numbers() -> "NumberRoutes":
        from smg_node.http.routes.cluster.cluster_metrics import NumberRoutes

        assert parts.numbers is not None, "the process that has this route has the desk"
        return NumberRoutes(parts.identity.node, parts.numbers, parts.cluster)

    return {
        "numbers": lambda request: numbers().numbers(request),
        "usage": lambda request: usage().usage(request),
        "own_usage": lambda request: usage().own(request),
    }


def _for_the_fleet(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    @cache
    def workers() -> "WorkerRoutes":
        from smg_node.http.routes.workers.workers import WorkerRoutes

        return WorkerRoutes(parts.workers, parts.audit, bodies)

    return {
        "workers": lambda request: workers().workers(request),
        "worker": lambda request: workers().worker(request),
        "add_worker": lambda request: workers().add_worker(request),
        "patch_worker": lambda request: workers().patch_worker(request),
        "replace_worker": lambda request: workers().replace_worker(request),
        "remove_worker": lambda request: workers().remove_worker(request),
        "drain_worker": lambda request: workers().drain_worker(request),
        "undrain_worker": lambda request: workers().undrain_worker(request),
        "probe_worker": lambda request: workers().probe_worker(request),
        "loads": lambda request: workers().loads(request),
        "cluster_workers": lambda request: workers().cluster_workers(request),
    }


def _for_members(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    @cache
    def cluster() -> "ClusterRoutes":
        from smg_node.http.routes.cluster.cluster import ClusterRoutes

        return ClusterRoutes(
            parts.cluster, parts.cluster_settings, parts.audit, bodies, parts.health
        )

    @cache
    def draining() -> "DrainRoutes":
        from smg_node.http.routes.cluster.drain_status import DrainRoutes

        assert parts.draining is not None, "the process that has this route has the desk"
        return DrainRoutes(parts.draining)

    return {
        "member_drain": lambda request: draining().draining(request),
        "cluster": lambda request: cluster().cluster(request),
        "members": lambda request: cluster().members(request),
        "member": lambda request: cluster().member(request),
        "join": lambda request: cluster().join(request),
        "leave": lambda request: cluster().leave(request),
        "drain_member": lambda request: cluster().drain_member(request),
        "undrain_member": lambda request: cluster().undrain_member(request),
        "forget_member": lambda request: cluster().forget_member(request),
        "keyring": lambda request: cluster().keyring(request),
        "change_keyring": lambda request: cluster().change_keyring(request),
    }


def _of_what_happens(
    parts: HttpParts, pulse: KeepaliveTimer, inflight: Inflight
) -> Mapping[str, Action]:
    @cache
    def events() -> "EventRoutes":
        from smg_node.http.routes.cluster.events import EventRoutes

        return EventRoutes(parts.cluster, pulse, inflight)

    @cache
    def explain() -> "ExplainRoutes":
        from smg_node.http.routes.cluster.explain import ExplainRoutes

        return ExplainRoutes(parts.explain, parts.workers)

    @cache
    def audit() -> "AuditRoutes":
        from smg_node.http.routes.cluster.audit import AuditRoutes

        return AuditRoutes(parts.audit)

    return {
        "events": lambda request: events().events(request),
        "explain": lambda request: explain().explain(request),
        "audit": lambda request: audit().audit(request),
    }


def _of_settings(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    @cache
    def settings() -> "SettingsRoutes":
        from smg_node.http.routes.cluster.settings import SettingsRoutes

        return SettingsRoutes(parts, bodies)

    return {
        "settings": lambda request: settings().settings(request),
        "setting": lambda request: settings().setting(request),
        "change_setting": lambda request: settings().change(request),
        "unset_setting": lambda request: settings().unset(request),
        "settings_difference": lambda request: settings().difference(request),
        "settings_history": lambda request: settings().history(request),
        "validate_settings": lambda request: settings().validate(request),
        "rollback_settings": lambda request: settings().rollback(request),
    }


def _of_providers(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    @cache
    def providers() -> "ProviderRoutes":
        from smg_node.http.routes.cluster.providers import ProviderRoutes

        assert parts.providers is not None, "the process that has this route has the desk"
        return ProviderRoutes(parts, parts.providers(), bodies)

    return {
        "providers": lambda request: providers().providers(request),
        "provider": lambda request: providers().provider(request),
        "put_provider": lambda request: providers().put_provider(request),
        "remove_provider": lambda request: providers().remove_provider(request),
        "explain_targets": lambda request: providers().explain(request),
        "routes": lambda request: providers().routes(request),
        "route": lambda request: providers().route(request),
        "put_route": lambda request: providers().put_route(request),
        "shadows": lambda request: providers().shadows(request),
        "remove_route": lambda request: providers().remove_route(request),
        "prices": lambda request: providers().prices(request),
        "price": lambda request: providers().price(request),
        "put_price": lambda request: providers().put_price(request),
        "remove_price": lambda request: providers().remove_price(request),
    }


def _of_keys_and_limits(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    @cache
    def keys() -> "KeyRoutes":
        from smg_node.http.routes.tenants.keys import KeyRoutes

        return KeyRoutes(parts, bodies)

    @cache
    def limits() -> "LimitRoutes":
        from smg_node.http.routes.tenants.limits import LimitRoutes

        return LimitRoutes(parts, bodies)

    return {
        "keys": lambda request: keys().keys(request),
        "create_key": lambda request: keys().create(request),
        "import_keys": lambda request: keys().imports.take_over(request),
        "revoke_key": lambda request: keys().revoke(request),
        "limits": lambda request: limits().limits(request),
        "limit": lambda request: limits().limit(request),
        "change_limit": lambda request: limits().change(request),
        "unset_limit": lambda request: limits().unset(request),
    }


def _of_shared_state(parts: HttpParts) -> Mapping[str, Action]:
    @cache
    def state() -> "StateRoutes":
        from smg_node.http.routes.cluster.shared_state import StateRoutes

        return StateRoutes(parts.state, parts.sessions, parts.audit)

    return {
        "state": lambda request: state().state(request),
        "namespace": lambda request: state().namespace(request),
        "session": lambda request: state().session(request),
        "end_session": lambda request: state().end_session(request),
    }


def _about_the_node(parts: HttpParts, drain: Drain, probers: Probers) -> Mapping[str, Action]:
    probes = ProbeRoutes(parts, drain, probers)
    about = AboutRoutes(parts, ROUTES)

    return {
        "server_card": about.server_card,
        "version": about.version,
        "openapi": about.openapi,
        "metrics": about.metrics,
        "root": about.root,
        "protected_resource": about.protected_resource,
        "liveness": probes.liveness,
        "readiness": probes.readiness,
        "health": probes.health,
        "health_generate": probes.health_generate,
    }
