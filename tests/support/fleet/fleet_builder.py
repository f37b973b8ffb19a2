"""A fleet of in-memory engines with a bytewise vocabulary behind it."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from smg_node.config.worker_url import WorkerUrl, parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.engine import Engine
from smg_node.fleet.fleet import Fleet, FleetOptions, OpenEngine
from smg_node.fleet.models.format_recognition import Recognition
from smg_node.fleet.models.model_options import ModelSettings
from smg_node.fleet.models.model_registry import ModelParts, Models, RendererRequest
from smg_node.fleet.models.tokenizer_bundles import BundleCache
from smg_node.fleet.workers.engine_identity import Resolve, unresolved
from smg_node.fleet.workers.worker import Worker
from smg_node.fleet.workers.worker_spec import DeclaredWorker
from smg_node.parsers.selection.recognition import Clues
from smg_node.prompts.renderer import Renderer
from smg_node.system_clock import SystemClock
from smg_node.tokens.caches.cached_encoder import CachedEncoder
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from support.engines.fake_engine import FakeEngine
from support.models.bytewise_tokenizer import BytewiseTokenizer

FAST = FleetOptions(
    probe_interval_s=0.02, probe_timeout_s=0.5, retry_s=0.02, down_after=2, up_after=2
)


def no_renderer(
    bundle: TokenizerBundle, tokenizer: LoadedTokenizer, template: str | None, wish: RendererRequest
) -> Renderer:
    raise invalid("it ships none")


def bytewise(bundle: TokenizerBundle) -> LoadedTokenizer:
    # It is one in all but its borders, which only the caches look at.
    return cast("LoadedTokenizer", BytewiseTokenizer())


def faster(tokenizer: LoadedTokenizer, encoder: CachedEncoder) -> Callable[[], None]:
    assert tokenizer.faster is not None
    tokenizer.take(*tokenizer.faster())
    return lambda: encoder.reconsider(None)


def fleet_of(
    engines: Mapping[str, FakeEngine],
    folder: Path,
    *,
    settings: Mapping[str, ModelSettings] | None = None,
    options: FleetOptions = FAST,
    open_really: OpenEngine | None = None,
    clues: Clues | None = None,
    load: Callable[[TokenizerBundle], LoadedTokenizer] = bytewise,
    at_once: bool = True,
    resolve: Resolve = unresolved,
    renderer: Callable[..., Renderer] = no_renderer,
) -> Fleet:
    """Return a fleet in which `grpc://NAME:1` is reached through `engines[NAME]`, or as `open_really` does.

    `clues` are what all models' files say of what they print; `load` and `at_once` are as in `ModelParts`.
    """

    async def open_engine(url: WorkerUrl, api_key: str | None) -> Engine:
        engine = engines.get(url.host)
        if engine is None or not engine.up:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "nothing answers")
        engine.api_key = api_key
        return engine

    parts = ModelParts(
        load=load,
        encoder=CachedEncoder,
        faster=faster,
        renderer=renderer,
        recognition=lambda name, bundle, tokenizer, template: Recognition(clues or Clues((name,))),
        at_once=at_once,
    )
    models = Models(settings or {}, parts, clock=SystemClock(), bundle_max_bytes=1 << 20)
    return Fleet(
        options,
        models,
        open_engine=open_really if open_really is not None else open_engine,
        cache=BundleCache(folder, max_bytes=1 << 20),
        rng=random.Random(5),
        resolve=resolve,
    )


def declare(fleet: Fleet, *urls: str, **said: object) -> list[Worker]:
    """Register workers at a fleet as its registry would, each `NAME` or `NAME?model=…` or a whole URL."""
    found = []
    for name in urls:
        host, question, query = name.partition("?")
        whole = name if "://" in name else f"grpc://{host}:1{question}{query}"
        declared = replace(DeclaredWorker(parse_worker_url(whole)), **said)  # type: ignore[arg-type]  # its own fields
        fleet.apply({declared.id: declared})
        found.append(fleet.get(declared.id))
    return found


def set_aside(fleet: Fleet, worker_id: str, *, on: bool) -> None:
    """Drain a worker at a fleet, or take it back, as its registry would."""
    worker = fleet.get(worker_id)
    fleet.apply({worker.id: replace(worker.declared, draining=on)})


@asynccontextmanager
async def running(fleet: Fleet, workers: Sequence[str] = ()) -> AsyncIterator[Fleet]:
    """Run the fleet with `workers` registered, each `NAME` or `NAME?model=…`."""
    declare(fleet, *workers)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(fleet.run())
        try:
            yield fleet
        finally:
            task.cancel()
