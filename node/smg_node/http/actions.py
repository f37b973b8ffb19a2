"""What each `action` of the table of routes means: the routes, put together."""

from collections.abc import Mapping
from functools import partial

from smg_node.http.about import AboutRoutes
from smg_node.http.audit import AuditRoutes
from smg_node.http.body import BodyReader
from smg_node.http.cluster import ClusterRoutes
from smg_node.http.drain import Drain
from smg_node.http.embeddings import EmbeddingRoutes
from smg_node.http.events import EventRoutes
from smg_node.http.explain import ExplainRoutes
from smg_node.http.generation import GenerationRoutes
from smg_node.http.inflight import Inflight
from smg_node.http.keys import KeyRoutes
from smg_node.http.limits import LimitRoutes
from smg_node.http.middleware import Action
from smg_node.http.models import ModelRoutes
from smg_node.http.parts import HttpParts
from smg_node.http.probes import ProbeRoutes
from smg_node.http.pulse import Pulse
from smg_node.http.routes import ROUTES
from smg_node.http.settings import SettingsRoutes
from smg_node.http.state import StateRoutes
from smg_node.http.tokens import TokenRoutes
from smg_node.http.usage import UsageRoutes
from smg_node.http.workers import WorkerRoutes


def build_actions(
    parts: HttpParts, bodies: BodyReader, drain: Drain, pulse: Pulse, inflight: Inflight
) -> Mapping[str, Action]:
    """Return the action of every name in the table of routes."""
    return {
        **_for_tenants(parts, bodies, pulse),
        **_for_the_fleet(parts, bodies),
        **_for_members(parts, bodies, pulse, inflight),
        **_for_shared_state(parts, bodies),
        **_about_the_node(parts, drain),
    }


def _for_tenants(parts: HttpParts, bodies: BodyReader, pulse: Pulse) -> Mapping[str, Action]:
    generation = GenerationRoutes(parts, bodies, pulse)
    embeddings = EmbeddingRoutes(parts, bodies, pulse)
    tokens = TokenRoutes(parts, bodies)
    models = ModelRoutes(parts.catalog)
    usage = UsageRoutes(parts.identity.node, parts.usage, parts.clock.now_ms)
    return {
        "chat": partial(generation.serve, "chat"),
        "completions": partial(generation.serve, "completions"),
        "embeddings": embeddings.embeddings,
        "rerank": partial(embeddings.relay, "rerank"),
        "classify": partial(embeddings.relay, "classify"),
        "tokenize": tokens.tokenize,
        "detokenize": tokens.detokenize,
        "models": models.models,
        "model": models.model,
        "model_card": models.model_card,
        "usage": usage.usage,
        "own_usage": usage.own,
    }


def _for_the_fleet(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    workers = WorkerRoutes(parts.workers, parts.audit, bodies)
    return {
        "workers": workers.workers,
        "worker": workers.worker,
        "add_worker": workers.add_worker,
        "patch_worker": workers.patch_worker,
        "replace_worker": workers.replace_worker,
        "remove_worker": workers.remove_worker,
        "drain_worker": workers.drain_worker,
        "undrain_worker": workers.undrain_worker,
        "probe_worker": workers.probe_worker,
        "loads": workers.loads,
        "cluster_workers": workers.cluster_workers,
    }


def _for_members(
    parts: HttpParts, bodies: BodyReader, pulse: Pulse, inflight: Inflight
) -> Mapping[str, Action]:
    cluster = ClusterRoutes(parts.cluster, parts.cluster_settings, parts.audit, bodies)
    events = EventRoutes(parts.cluster, pulse, inflight)
    return {
        "cluster": cluster.cluster,
        "members": cluster.members,
        "member": cluster.member,
        "join": cluster.join,
        "leave": cluster.leave,
        "drain_member": cluster.drain_member,
        "undrain_member": cluster.undrain_member,
        "forget_member": cluster.forget_member,
        "keyring": cluster.keyring,
        "change_keyring": cluster.change_keyring,
        "events": events.events,
        "explain": ExplainRoutes(parts.explain, parts.workers).explain,
    }


def _for_shared_state(parts: HttpParts, bodies: BodyReader) -> Mapping[str, Action]:
    node = parts.identity.node
    settings = SettingsRoutes(node, parts.cluster_settings, parts.audit, bodies)
    keys = KeyRoutes(parts.keys, parts.audit, bodies)
    limits = LimitRoutes(node, parts.limits, parts.audit, bodies)
    audit = AuditRoutes(parts.audit)
    state = StateRoutes(parts.state, parts.sessions, parts.audit)
    return {
        "settings": settings.settings,
        "setting": settings.setting,
        "change_setting": settings.change,
        "unset_setting": settings.unset,
        "settings_difference": settings.difference,
        "settings_history": settings.history,
        "validate_settings": settings.validate,
        "rollback_settings": settings.rollback,
        "keys": keys.keys,
        "create_key": keys.create,
        "revoke_key": keys.revoke,
        "limits": limits.limits,
        "limit": limits.limit,
        "change_limit": limits.change,
        "unset_limit": limits.unset,
        "audit": audit.audit,
        "state": state.state,
        "namespace": state.namespace,
        "session": state.session,
        "end_session": state.end_session,
    }


def _about_the_node(parts: HttpParts, drain: Drain) -> Mapping[str, Action]:
    probes = ProbeRoutes(parts, drain)
    about = AboutRoutes(parts, ROUTES)
    return {
        "server_card": about.server_card,
        "version": about.version,
        "openapi": about.openapi,
        "metrics": about.metrics,
        "root": about.root,
        "liveness": probes.liveness,
        "readiness": probes.readiness,
        "health": probes.health,
        "health_generate": probes.health_generate,
    }
