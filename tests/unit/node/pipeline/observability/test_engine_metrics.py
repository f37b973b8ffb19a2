"""What scrapes and operators see of what engines say."""

from array import array
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from smg_node.cluster.workers.worker_views import worker_view
from smg_node.engines.kv_events import KvBatch, KvBlock, KvStored
from smg_node.engines.load import Load
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import ServedModel
from smg_node.fleet.workers.worker import Sampled, Status, Worker
from smg_node.fleet.workers.worker_roles import ROLES
from smg_node.pipeline.observability.engine_metrics import watch_listening, watch_prefixes
from smg_node.pipeline.observability.placement_metrics import watch_fleet
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.system_clock import SystemClock
from smg_node.telemetry.metrics.meters import Meters
from support.engines.fake_engine import FakeEngine, card
from support.fleet.fleet_builder import declare, fleet_of


class Scene:
    """Two workers of which one speaks, scraped at second 100."""

    def __init__(self, folder: Path) -> None:
        self.fleet: Fleet = fleet_of({"a": FakeEngine(), "b": FakeEngine()}, folder)
        self.worker, self.mute = declare(self.fleet, "a", "b")
        self.meters = Meters(CollectorRegistry(), version="1")
        watch_listening(self.meters, self.fleet, lambda: 100.0)

    def says(self, load: Load, at_s: float, *, pushed: bool = True) -> None:
        self.worker.sampled[load.rank] = Sampled(load, at_s, pushed=pushed)
        self.worker.load.sample(load, at_s)

    def scraped(self) -> Mapping[str, float]:
        page = self.meters.exposition("")[0].decode()
        rows = [line.rpartition(" ") for line in page.splitlines() if line[0] != "#"]
        return {name.replace("grpc://", ""): float(value) for name, _, value in rows}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def load(rank: int, running: int, kv_usage: float | None, speed: float | None) -> Load:
    return Load(rank, running, 1, 8, 50, kv_usage, speed, None)


def test_the_ranks_of_an_engine_are_one_figure_each(scene: Scene) -> None:
    scene.says(load(0, 3, 0.5, 100.0), 98.0)
    scene.says(load(1, 4, 0.75, None), 99.0)
    found = scene.scraped()
    assert found['smg_node_engine_running_requests{worker="a:1"}'] == 7
    assert found['smg_node_engine_waiting_requests{worker="a:1"}'] == 2
    assert found['smg_node_engine_kv_usage_ratio{worker="a:1"}'] == 0.75
    assert found['smg_node_engine_tokens_per_second{worker="a:1"}'] == 100.0
    assert found['smg_node_engine_load_age_seconds{worker="a:1"}'] == 2.0
    assert found['smg_node_worker_prefill_tokens_per_second{worker="a:1"}'] > 0
    assert found['smg_node_worker_stuck{worker="b:1"}'] == 0


def test_an_engine_that_says_nothing_has_no_figures_of_its_own(scene: Scene) -> None:
    scene.says(load(0, 3, None, None), 98.0)
    found = scene.scraped()
    assert 'smg_node_engine_kv_usage_ratio{worker="a:1"}' not in found
    assert 'smg_node_engine_running_requests{worker="b:1"}' not in found
    assert 'smg_node_kv_silence_seconds{worker="a:1"}' not in found


def test_silence_and_ends_of_subscriptions_are_told(scene: Scene) -> None:
    scene.worker.following, scene.worker.heard_s = True, 97.0
    scene.fleet.listening.batches = 12
    scene.fleet.listening.stumbles = 3
    scene.fleet.listening.ended["gap"] += 2
    found = scene.scraped()
    assert found['smg_node_kv_silence_seconds{worker="a:1"}'] == 3.0
    assert found["smg_node_kv_batches_total"] == 12
    assert found["smg_node_kv_stumbles_total"] == 3
    assert found['smg_node_kv_subscriptions_ended_total{reason="gap"}'] == 2


def test_workers_are_counted_by_the_part_they_play_while_they_are_ready(scene: Scene) -> None:
    watch_fleet(scene.meters, scene.fleet, SystemClock())
    declare(scene.fleet, "p?role=prefill", "d?role=decode")
    for worker in scene.fleet.workers():
        worker.status = Status.NOT_READY if worker.role == "decode" else Status.READY
    scene.mute.card = card(role="prefill")
    found = scene.scraped()
    ready = {role: found[f'smg_node_workers_ready{{role="{role}"}}'] for role in ROLES}
    assert ready == {"regular": 1, "prefill": 2, "decode": 0, "encode": 0}
    assert found['smg_node_workers{status="ready"}'] == 3


def test_what_is_known_of_caches_is_counted(scene: Scene) -> None:
    prefixes = Prefixes(PrefixIndex(block=16), cluster="smg")
    watch_prefixes(scene.meters, prefixes)
    follow(prefixes, scene.worker)
    found = scene.scraped()
    assert found["smg_node_kv_index_blocks"] == 1
    assert found["smg_node_kv_resyncs_total"] == 1
    assert found['smg_node_kv_blocks_unplaced_total{reason="refused"}'] == 1
    assert found["smg_node_kv_index_evicted_total"] == 0


def follow(prefixes: Prefixes, worker: Worker) -> None:
    worker.model = cast("ServedModel", SimpleNamespace(name="tiny", bundle_digest="0", pool="tiny"))
    prefixes.start(worker)
    one = KvBlock(7, array("I", range(16)))
    bare = KvBlock(8, array("I"), plain=False)
    prefixes.batch(worker, KvBatch(1), 1.0)
    prefixes.batch(worker, KvBatch(9), 1.0)
    prefixes.batch(worker, KvBatch(10, (KvStored(None, (one, bare)),)), 1.0)


def test_operators_see_how_busy_an_engine_is_and_what_is_made_of_it(scene: Scene) -> None:
    scene.says(load(0, 3, 0.5, 100.0), 98.0)
    scene.says(load(1, 4, 0.75, None), 99.0)
    scene.worker.following = True
    scene.worker.hold(2_000)
    busy = worker_view(scene.worker, (), now_s=100.0).busy
    assert dict(busy) == {
        "running": 7,
        "waiting": 2,
        "waiting_tokens": 100,
        "kv_usage": 0.75,
        "tokens_per_s": 100.0,
        "age_ms": 2000,
        "pushed": True,
        "follows_cache": True,
        "wait_ms": round(1000 * scene.worker.load.wait_s),
        "prefill_tokens_per_s": 8000,
        "capacity": 16,
        "overloaded": False,
        "full": False,
        "stuck": False,
    }


def test_of_an_engine_that_says_nothing_only_our_own_judgement_is_shown(scene: Scene) -> None:
    busy = worker_view(scene.mute, (), now_s=100.0).busy
    assert "running" not in busy
    assert (busy["wait_ms"], busy["follows_cache"]) == (0, False)
