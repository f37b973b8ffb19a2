"""Serving parts of a process, second half of the wiring: model parts, pipeline, HTTP surface."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Final, NoReturn

from smg_node import __version__
from smg_node.access.identity import KeyAuthenticator
from smg_node.admission.admission import Admission
from smg_node.admission.admission_settings import (
    Counting,
    admission_options,
    watch_admission,
)
from smg_node.admission.ports import Rights, Rules
from smg_node.cluster.mcp.lazy_servers import LazyToolServers
from smg_node.cluster.membership.member_query import MemberQueries
from smg_node.cluster.providers.cache_sharing import CacheRows, SharedCachePlans
from smg_node.cluster.providers.provider_fleet import ProviderFleet
from smg_node.cluster.reports.journey_search import Explanations, Siblings
from smg_node.cluster.service_factory import SharedServices
from smg_node.cluster.settings.live_settings import LiveSettings
from smg_node.cluster.settings.model_views import exposed_models
from smg_node.cluster.usage.usage_factory import UsageParts
from smg_node.config.frozen_settings import Settings
from smg_node.config.output.effective_config import shown_settings
from smg_node.config.worker_url import PROVIDER, WorkerUrl
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.registry import Dialects
from smg_node.dialects.thought_seals import ThoughtSeals, Vault
from smg_node.engines.engine import Engine
from smg_node.engines.engine_options import EngineOptions, SharedMemoryOpener
from smg_node.engines.transport.tls_trust import Trust
from smg_node.fleet.fleet import Fleet, OpenEngine
from smg_node.fleet.models.model_registry import ModelParts
from smg_node.fleet.workers.allowed_networks import Networks
from smg_node.fleet.workers.engine_connect import engine_opener as open_with
from smg_node.history.service.lazy_history import LazyHistory
from smg_node.http.http_parts import HttpParts, Identity
from smg_node.http.http_settings import http_options, reader_options
from smg_node.http.ports.node import Cluster
from smg_node.http.routes.inference.token_service import LocalTokens
from smg_node.pipeline.embeddings import Embedder
from smg_node.pipeline.generation.generator import GenerationParts, Generator
from smg_node.pipeline.observability.journey_log import Journal
from smg_node.pipeline.observability.placement_metrics import (
    watch_fleet,
    watch_journal,
    watch_placing,
)
from smg_node.pipeline.placement.policy_settings import build_policies
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.pipeline.relay.chat_generation import AnyGenerations
from smg_node.pipeline.relay.relay_context import OwnCall, RelayParts, TargetAsked
from smg_node.pipeline.relay.relays import Relays
from smg_node.pipeline.tool_loop.serving_generations import ServingGenerations
from smg_node.process_memory import keep
from smg_node.routing.policy import Bindings
from smg_node.routing.retry_budget import RetryBudgets
from smg_node.telemetry.metrics.declared import node as declared
from smg_node.telemetry.metrics.meters import Meters
from smg_node.tokens.caches.exact_cache import ExactCache, ExactLimits
from smg_node.wiring.base import Base
from smg_node.wiring.build_commit import build_commit
from smg_node.wiring.fleet_parts import (
    FleetService,
    retry_options,
)
from smg_node.wiring.live_updates import (
    Pipeline,
    follow_below,
    follow_serving,
    prepare_limits,
)
from smg_node.wiring.mcp_parts import offered_servers
from smg_node.wiring.media_parts import prompt_parts
from smg_node.wiring.placement_parts import build_placer
from smg_node.wiring.tool_loops import Pool, loop_parts

if TYPE_CHECKING:
    from smg_node.fleet.models.model_assembly import Assembly
    from smg_node.fleet.vocabularies.shared_vocabularies import SharedVocabularies
    from smg_node.mcp.tool_servers import ToolServers


# ── Engines ──────────────────────────────────────────────────────────────────


def engine_opener(
    settings: Settings, networks: Networks, meters: Meters, providers: ProviderFleet
) -> OpenEngine:
    """Return the function that connects to workers, and opens models at providers."""
    options = engine_options(settings)

    def observe(name: str, labels: Mapping[str, str]) -> None:
        # One label holds every kind of trouble; an RPC's status is the commonest of them.
        if name == "engine_error":
            meters.engine_error(labels["contract"], labels["status"])
        elif name != "engine_abort":
            meters.engine_error(labels["contract"], name.removeprefix("engine_").upper())

    open_worker = open_with(options, networks, observe)

    async def open_any(url: WorkerUrl, api_key: str | None) -> Engine:
        if url.scheme == PROVIDER:
            return await providers.open(url)
        return await open_worker(url, api_key)

    return open_any


def engine_options(settings: Settings) -> EngineOptions:
    """Return how engines, and models at providers, are called."""
    knobs, tls = settings.engine, settings.engine.tls
    return EngineOptions(
        transport=knobs.transport,
        connect_s=knobs.connect_s,
        first_event_s=knobs.first_event_s,
        stall_s=knobs.stall_s,
        ping_interval_s=knobs.ping_interval_s,
        message_max_bytes=knobs.message_max_bytes,
        media_message_max_bytes=knobs.media_message_max_bytes,
        open_memory=SharedMemoryOpener() if knobs.tensor_transport == "auto" else None,
        bundle_max_bytes=settings.tokens.bundle_max_bytes,
        trust=Trust(tls.authority, tls.certificate, tls.key, tls.authorities),
    )


# ── Models ───────────────────────────────────────────────────────────────────


def model_parts(
    settings: Settings, base: Base, shared: "SharedVocabularies | None" = None
) -> ModelParts:
    """Return how models are put together; all of them share one L0. `shared` has what was read before this process was."""
    tokens, templates = settings.tokens, settings.templates
    l0 = ExactCache(
        ExactLimits(tokens.l0_entries, tokens.l0_max_bytes), seed=base.rng.getrandbits(64)
    )
    _watch_exact_cache(base.meters, l0)

    @cache
    def assembly() -> "Assembly":
        # Imported with the first model, in the thread that builds it: the tokenizer libraries and the
        # template engine are 9 MB that a node without workers does not hold.
        from smg_node.fleet.models.model_assembly import Assembly, AssemblyOptions
        from smg_node.fleet.models.tokenizer_proofs import KeptProofs

        options = AssemblyOptions(
            encoder=tokens.encoder,
            l1_max_bytes=tokens.l1_max_bytes,
            thread_above_bytes=tokens.thread_above_bytes,
            source_max_bytes=templates.source_max_bytes,
            output_max_bytes=templates.output_max_bytes,
            render_max_s=templates.render_max_s,
            allow_from_request=templates.allow_from_request,
        )
        keep()
        proofs = KeptProofs(settings.data_dir / "proofs")
        monotonic_s = base.clock.monotonic_s
        return Assembly(
            options, l0=l0, rng=base.rng, monotonic_s=monotonic_s, proofs=proofs, shared=shared
        )

    return ModelParts(
        load=lambda bundle: assembly().load(bundle),
        encoder=lambda tokenizer: assembly().encoder(tokenizer),
        faster=lambda *said: assembly().faster(*said),
        renderer=lambda *said: assembly().renderer(*said),
        recognition=lambda *said: assembly().recognition(*said),
    )


_OF_HISTORY: Final = ("history", "interactions", "retention", "responses", "storage")
"""Sections of settings that what is remembered follows."""

# ── Requests ─────────────────────────────────────────────────────────────────


def build_http_parts(
    settings: Settings,
    base: Base,
    fleet: Fleet,
    desk: FleetService,
    cluster: Cluster,
    shared: SharedServices,
    usage: UsageParts,
    *,
    sticky: Bindings,
    vault: Vault,
    caches: CacheRows,
    mesh: MemberQueries | None = None,
    siblings: Siblings | None = None,
    prefixes: Prefixes | None = None,
    history: LazyHistory | None,
    admission: Admission | None = None,
    journal: Journal | None = None,
    tool_servers: LazyToolServers | None = None,
) -> HttpParts:
    """Return everything the HTTP surface needs; all of it follows the cluster's settings.

    `tool_servers` are those whose tools run on this side; `vault` seals thoughts that clients carry; `caches` are rows about vendors' prompt caches; `history` is None in a process that remembers nothing; `siblings` are other processes that know of requests.
    """
    offered = offered_servers(tool_servers, admission, usage.usage, base.clock)
    reading = reader_options(settings, False if tool_servers is None else tool_servers)
    watch_fleet(base.meters, fleet, base.clock)
    counting = Counting(base.meters, usage.usage)
    base.state_cache.connect(vault)
    pipeline = _build_pipeline(
        settings,
        base,
        fleet,
        counting,
        sticky=sticky,
        caches=caches,
        prefixes=prefixes,
        admission=admission,
        journal=Journal(settings.name) if journal is None else journal,
        tool_servers=offered,
        live=shared.live,
    )
    explain = Explanations(
        settings.name, pipeline.journal, cluster.members, mesh, siblings=siblings
    )
    seals = ThoughtSeals(vault)
    desks = (desk, cluster, shared, usage)
    parts = _surface(settings, base, desks, admission, pipeline, explain, history, seals, reading)
    base.issuers.serve(parts)
    base.approvals.connect(cluster.members, mesh, lambda: desk.draining())
    parts.vault, parts.offered_tools = vault, offered
    parts.exposed_models = partial(exposed_models, shared.live)
    follow_serving(shared.live, parts, pipeline, seals)
    follow_below(shared.live, base, fleet, desk)
    if history is not None:
        shared.live.watch(_OF_HISTORY, history.retune)
    return parts


def _surface(
    settings: Settings,
    base: Base,
    desks: tuple[FleetService, Cluster, SharedServices, UsageParts],
    admission: Admission | None,
    pipeline: Pipeline,
    explain: Explanations,
    history: LazyHistory | None,
    seals: ThoughtSeals,
    reading: ReaderOptions,
) -> HttpParts:
    """Return the node as the HTTP surface sees it."""
    desk, cluster, shared, usage = desks
    shown = shown_settings(settings)
    anything = ServingGenerations(
        AnyGenerations(pipeline.generator, pipeline.relays, pipeline.preparer), pipeline.loops
    )
    return HttpParts(
        identity=Identity(settings.name, __version__, build_commit()),
        generations=ServingGenerations(pipeline.generator, pipeline.loops),
        translating=anything,
        shown_prompt=anything.shown_prompt,
        relays=pipeline.relays,
        embedder=pipeline.embedder,
        history=_elsewhere
        if history is None
        else history.desks(
            anything, pipeline.placer, pipeline.preparer, pipeline.journal.answers.add
        ),
        catalog=desk,
        tokens=LocalTokens(pipeline.placer, pipeline.preparer, admission),
        workers=desk,
        sessions=desk,
        health=desk,
        cluster=cluster,
        authenticator=KeyAuthenticator(shared.keys),
        keys=shared.keys,
        limits=shared.limits,
        usage=usage.desk,
        cluster_settings=shared.settings,
        audit=shared.audit,
        state=shared.state,
        explain=explain,
        tool_approvals=base.approvals.service,
        issuers=base.issuers.urls,
        refusals=pipeline.journal.refusals,
        dialects=Dialects(reading, seals, base.clock.monotonic_s),
        meters=base.meters,
        tracer=base.tracer,
        access=base.access,
        ids=base.ids,
        clock=base.clock,
        options=http_options(settings),
        reading=reading,
        settings=lambda: shown,
    )


def _elsewhere() -> NoReturn:
    raise AssertionError("what is remembered is asked of the control process")


def build_admission(
    settings: Settings, base: Base, live: LiveSettings, rules: Rules, rights: Rights
) -> Admission:
    """Return what lets requests in, as far as the limits of the cluster do; it follows the cluster's settings."""
    admission = Admission(
        rules,
        rights,
        clock=base.clock,
        rng=base.rng,
        options=admission_options(settings),
        prices=base.prices.now,
    )
    watch_admission(base.meters, admission.tallies)
    base.prices.watch(admission.reprice)
    live.watch(("admission",), lambda now: admission.retune(admission_options(now)))
    return admission


def _build_pipeline(
    settings: Settings,
    base: Base,
    fleet: Fleet,
    counting: Counting,
    *,
    sticky: Bindings,
    caches: CacheRows,
    prefixes: Prefixes | None,
    admission: Admission | None,
    journal: Journal,
    tool_servers: "Callable[[], ToolServers | None]",
    live: LiveSettings,
) -> Pipeline:
    """Return the pipeline of generations, watched by scrapes."""
    watch_journal(base.meters, journal)
    policies = build_policies(settings, sticky)
    placer = build_placer(settings, fleet, policies, base, prefixes)
    retries = RetryBudgets(
        retry_options(settings), known=lambda name: bool(fleet.served(name) or fleet.relayed(name))
    )
    watch_placing(base.meters, placer, retries)
    media, preparer = prompt_parts(settings, base, fleet, prepare_limits(settings))
    engines = GenerationParts(
        placer=placer,
        preparer=preparer,
        ids=base.ids,
        clock=base.clock,
        rng=base.rng,
        retries=retries,
        journal=journal,
        on_outcome=counting,
        admission=admission,
    )
    calls = RelayParts(
        placer=placer,
        fleet=fleet,
        ids=base.ids,
        clock=base.clock,
        rng=base.rng,
        retries=retries,
        journal=journal,
        on_outcome=counting,
        admission=admission,
        caches=SharedCachePlans(caches, base.clock.now_ms),
        prices=base.prices,
        own_calls=partial(_own_call, engines),
        post=base.post,
        state_cache=base.state_cache,
    )
    relays, embedder, made = Relays(calls), Embedder(calls, preparer), Generator(engines)
    pool, now = Pool(relays, embedder, preparer), lambda: live.effective
    loops = loop_parts(now, base, journal, counting, tool_servers, pool, media)
    return Pipeline(
        policies, placer, retries, preparer, journal, made, relays, embedder, loops, media
    )


def _own_call(
    engines: GenerationParts,
    told: TargetAsked,
    name: str,
    spoke: Callable[[], None],
    *,
    patient: bool,
) -> OwnCall:
    # Imported with the first one: a node without routes has none of it.
    from smg_node.pipeline.relay.own.own_call import OwnEnginesCall

    return OwnEnginesCall(engines, told, name, spoke, patient=patient)


# ── What a scrape reads ──────────────────────────────────────────────────────


def _watch_exact_cache(meters: Meters, l0: ExactCache) -> None:
    meters.watch(declared.TOKEN_CACHE_BYTES, lambda: {("l0",): l0.bytes})
    meters.watch(declared.TOKEN_CACHE_ENTRIES, lambda: {("l0",): len(l0)})
