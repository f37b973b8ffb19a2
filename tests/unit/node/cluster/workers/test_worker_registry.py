"""Workers belong to the cluster: added, changed and removed at any node, tended by all, whoever dies."""

import asyncio
import logging
from pathlib import Path

import pytest

from smg_mesh.shared import StateError, WorkerSpec
from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import SmgError
from smg_node.engines.disaggregation import Pairing
from smg_node.engines.engine import Contract
from smg_node.http.ports.node import WorkerChange, WorkerRequest
from support.engines.fake_engine import card
from support.fleet.fleet_world import FleetNode, fleet_world


def wish(host: str, **said: object) -> WorkerRequest:
    return WorkerRequest(f"grpc://{host}:1", **said)  # type: ignore[arg-type]  # its own fields


def gone(node: FleetNode) -> bool:
    return node.fleet.workers() == []


async def test_a_worker_added_at_one_node_is_ready_at_all(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        view = world["n2"].desk.add(wish("a", labels={"zone": "x"}, priority=7, cost=2.5))
        assert (view.priority, view.cost, view.owner) == (7, 2.5, "n2")
        await world.until(lambda node: node.ready("a"))
        for node in world.all():
            shown = node.desk.worker(view.id)
            assert (shown.sources, shown.owner, shown.priority, shown.cost) == (
                ("api",),
                "n2",
                7,
                2.5,
            )
            assert shown.labels == {"zone": "x"}
            await world.until(lambda node: node.desk.worker(view.id).seen_by == ("n1", "n2", "n3"))


async def test_every_node_brings_a_worker_up_once_by_itself(tmp_path: Path) -> None:
    names = [f"n{at}" for at in range(6)]
    async with fleet_world(tmp_path, *names) as world:
        world["n0"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        assert all(node.worker("a").card is not None for node in world.all())
        assert all(node.engines["a"].looks >= 2 for node in world.all())


async def test_workers_outlive_the_node_that_registered_them(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        world["n1"].list_static("a")
        world["n1"].desk.add(wish("b"))
        await world.until(lambda node: node.ready("a", "b"))
        world.kill("n1")
        for _ in range(20):
            await asyncio.sleep(0.02)
            assert all(node.ready("a", "b") for node in world.all())


async def test_a_removal_at_any_node_is_a_removal_everywhere(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        world["n1"].list_static("a")
        await world.until(lambda node: node.ready("a"))
        await world["n3"].desk.remove("grpc://a:1", force=False)
        await world.until(gone)
        await world.until(lambda node: node.engines["a"].closed)
        # The node that lists it does not bring it back, not even when it says its list again.
        world["n1"].list_static("a")
        await asyncio.sleep(0.6)
        assert all(gone(node) for node in world.all())
        with pytest.raises(SmgError) as caught:
            await world["n2"].desk.remove("grpc://a:1", force=False)
        assert caught.value.code == "worker_not_found"


async def test_what_is_open_elsewhere_may_end_when_a_worker_is_removed(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        world["n1"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        busy = world["n2"].worker("a")
        busy.hold(10)
        async with asyncio.timeout(2):
            await world["n1"].desk.remove(busy.id, force=False)
        await world.until(gone)
        await asyncio.sleep(0.1)
        assert not world["n2"].engines["a"].closed
        busy.release(10)
        await world.until(lambda node: node.engines["a"].closed)


async def test_a_drained_worker_gets_no_new_work_from_any_node(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        view = world["n1"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        assert world["n2"].desk.drain(view.id).status == "draining"
        await world.until(lambda node: not node.worker("a").routable)
        world["n3"].desk.undrain("grpc://a:1")
        await world.until(lambda node: node.worker("a").routable)
        changed = world["n1"].desk.change(view.id, WorkerChange(draining=True))
        assert changed.status == "draining"
        await world.until(lambda node: not node.worker("a").routable)


async def test_changes_of_labels_priority_and_cost_touch_no_connection(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        view = world["n1"].desk.add(wish("a", labels={"old": "1"}))
        await world.until(lambda node: node.ready("a"))
        before = [node.worker("a") for node in world.all()]
        world["n2"].desk.change(view.id, WorkerChange(labels={"weight": "2"}, priority=1, cost=0.5))
        await world.until(lambda node: node.worker("a").load.weight == 2)
        for node, worker in zip(world.all(), before, strict=True):
            assert node.worker("a") is worker
            assert worker.routable
            assert (worker.url.priority, worker.url.cost) == (1, 0.5)
            assert worker.labels == {"weight": "2"}


async def test_another_model_or_key_is_registered_anew_beside_what_is_open(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        view = world["n1"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        old = world["n2"].worker("a")
        old.hold(5)
        world["n1"].desk.change(view.id, WorkerChange(model="mine"))
        await world.until(lambda node: node.ready("a") and node.worker("a") is not old)
        assert world["n2"].worker("a").model_name() == "mine"
        # What was open there still counts as load of that address.
        assert world["n2"].worker("a").load.own_inflight == 1
        assert world["n2"].worker("a").inflight == 0
        old.release(5)
        world["n1"].desk.change(view.id, WorkerChange(model=""))
        await world.until(lambda node: node.ready("a") and node.worker("a").url.model is None)


async def test_an_api_key_is_sealed_opened_everywhere_and_shown_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "sk-very-secret"
    caplog.set_level(logging.DEBUG)
    async with fleet_world(tmp_path, "n1", "n2", "n3") as world:
        view = world["n1"].desk.add(wish("a", api_key=secret))
        await world.until(lambda node: node.ready("a"))
        assert [node.engines["a"].api_key for node in world.all()] == [secret] * 3
        record = world["n1"].shared.workers.get(view.id)
        assert record is not None
        assert secret.encode() not in record.spec.sealed_key
        # Said again without the key, or with the same one, it is the same worker.
        before = world["n2"].worker("a")
        world["n3"].desk.add(wish("a"))
        world["n3"].desk.add(wish("a", api_key=secret))
        assert world["n2"].worker("a") is before
        shown = [repr(node.desk.workers()) for node in world.all()]
        shown += [repr(node.desk.cluster_workers()) for node in world.all()]
        shown += [repr(node.worker("a").declared) for node in world.all()]
        assert not any(secret in text for text in [*shown, caplog.text])
        assert all(node.desk.worker(view.id).has_key for node in world.all())
        world["n2"].desk.change(view.id, WorkerChange(api_key="sk-other"))
        await world.until(lambda node: node.ready("a") and node.engines["a"].api_key == "sk-other")
        world["n2"].desk.change(view.id, WorkerChange(api_key=""))
        await world.until(lambda node: node.ready("a") and node.engines["a"].api_key is None)
        assert not world["n1"].desk.worker(view.id).has_key


async def test_listed_workers_are_sent_the_key_that_the_settings_have_for_them(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        urls = [parse_worker_url("grpc://a:1")]
        world["n1"].registry.list_static(urls, "sk-of-the-settings")
        await world.until(lambda node: node.ready("a"))
        assert [node.engines["a"].api_key for node in world.all()] == ["sk-of-the-settings"] * 2
        before = world["n2"].worker("a")
        version = before.declared.version
        # Sealing gives other bytes each time; the key is the same.
        world["n1"].registry.list_static(urls, "sk-of-the-settings")
        await asyncio.sleep(0.2)
        assert world["n2"].worker("a") is before
        assert world["n2"].worker("a").declared.version == version
        world["n1"].registry.list_static(urls, "sk-another")
        await world.until(
            lambda node: node.ready("a") and node.engines["a"].api_key == "sk-another"
        )
        world["n1"].registry.list_static(urls)
        await world.until(lambda node: node.ready("a") and node.engines["a"].api_key is None)


@pytest.mark.parametrize("bad", ["with blank", "ümlaut", "line\nbreak", "x" * 5000])
async def test_a_key_that_cannot_travel_is_refused_and_not_repeated(
    tmp_path: Path, bad: str
) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        with pytest.raises(SmgError) as caught:
            world["n1"].desk.add(wish("a", api_key=bad))
        assert (caught.value.status, caught.value.where) == (400, "api_key")
        assert bad not in caught.value.message
        assert world["n1"].desk.workers() == []


async def test_a_key_this_node_cannot_open_keeps_the_worker_from_it_until_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.cluster.workers.worker_registry.SWEEP_S", 0.1)
    async with fleet_world(tmp_path, "n1", "n2") as world:
        world["n1"].shared.keyring = ["two", "one"]
        view = world["n1"].desk.add(wish("a", api_key="k"))
        await world.until(lambda node: node.ready("a") or node.name == "n2")
        shown = world["n2"].desk.worker(view.id)
        assert (shown.status, shown.has_key) == ("failed", True)
        assert "keyring" in shown.reason
        assert world["n2"].engines["a"].api_key is None
        world["n2"].shared.keyring.append("two")
        await world.until(lambda node: node.ready("a"))


async def test_the_same_registration_twice_is_one_worker_that_nobody_touches(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        first = world["n1"].desk.add(wish("a", labels={"x": "1"}))
        await world.until(lambda node: node.ready("a"))
        before = [node.worker("a") for node in world.all()]
        assert world["n2"].desk.add(wish("a", labels={"x": "1"})).id == first.id
        await asyncio.sleep(0.1)
        assert [node.worker("a") for node in world.all()] == before
        assert len(world["n1"].desk.workers()) == 1


async def test_what_one_node_accepts_does_not_go_with_a_removal_it_had_not_heard_of(
    tmp_path: Path,
) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        world["n1"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        world.board.workers.hold()
        await world["n1"].desk.remove("grpc://a:1", force=True)
        world.board.workers.advance(1)
        world["n2"].desk.add(wish("a"))
        world.board.workers.heal()
        await world.until(lambda node: node.ready("a"))


async def test_what_the_url_says_and_what_stands_beside_it_are_joined(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        desk = world["n1"].desk
        view = desk.add(
            WorkerRequest(
                "grpc://a:1?model=m&priority=3&cost=2&label.zone=z", priority=4, model="n"
            )
        )
        assert (view.model, view.priority, view.cost, view.labels) == ("n", 4, 2.0, {"zone": "z"})
        for url in ("ftp://a:1", "grpc://a", "grpc://a:1?priority=-1", "grpc://a:1?cost=nan"):
            with pytest.raises(SmgError) as caught:
                desk.add(WorkerRequest(url))
            assert caught.value.status == 400
        for change in (WorkerChange(role="encoder"), WorkerChange(priority=1001)):
            with pytest.raises(SmgError) as caught:
                desk.change(view.id, change)
            assert caught.value.status == 400


async def test_a_role_and_what_belongs_to_it_are_the_same_on_every_node(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        for node in world.nodes.values():
            for engine in node.engines.values():
                engine.model_card = card(
                    contract=Contract.SGLANG, pairing=Pairing("room", "nixl", 9001), ranks=4
                )
        view = world["n1"].desk.add(wish("a", role="prefill", labels={"bootstrap_port": "7000"}))
        world["n2"].desk.add(wish("b"))
        await world.until(lambda node: node.ready("a", "b"))
        for node in world.all():
            a, b = (node.desk.worker(f"grpc://{host}:1") for host in "ab")
            assert (a.role, a.ranks, a.pairing, a.bootstrap_port) == (
                *("prefill", 4, "room nixl"),
                7000,
            )
            assert (b.role, b.bootstrap_port, b.pairing) == ("regular", None, "room nixl")
            assert {row.id: row.role for row in node.desk.cluster_workers()} == {
                a.id: "prefill",
                b.id: "regular",
            }
        before = {node.name: node.worker("a") for node in world.all()}
        world["n2"].desk.change(view.id, WorkerChange(bootstrap_port=7001))
        await world.until(
            lambda node: node.worker("a") is not before[node.name] and node.ready("a", "b")
        )
        assert all(node.worker("a").meeting == ("a", 7001) for node in world.all())
        assert all(
            dict(node.worker("a").labels) == {"bootstrap_port": "7001"} for node in world.all()
        )
        world["n2"].desk.change(view.id, WorkerChange(labels={"x": "y"}, role="regular"))
        await world.until(lambda node: node.ready("a", "b") and node.worker("a").role == "regular")
        assert dict(world["n1"].worker("a").labels) == {"x": "y"}


async def test_a_list_is_written_down_only_when_the_clusters_state_is_here(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        node = world["n1"]
        node.shared.held = False
        node.list_static("a")
        await asyncio.sleep(0.05)
        assert gone(node)
        node.shared.held = True
        node.shared.arrived()
        await world.until(lambda node: node.ready("a"))


async def test_a_node_that_never_finds_the_cluster_does_not_wait_for_ever(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        world["n1"].shared.held = False
        world["n1"].list_static("a")
        await world.until(lambda node: node.ready("a"))


async def test_a_restart_with_another_list_takes_back_what_is_not_on_it(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1", "n2") as world:
        world["n1"].list_static("a", "b")
        await world.until(lambda node: node.ready("a", "b"))
        world["n1"].list_static("b")
        await world.until(lambda node: node.ready("b"))


async def test_a_node_that_had_to_forget_lists_its_own_again(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        world["n1"].list_static("a")
        await world.until(lambda node: node.ready("a"))
        writes = world.board.workers["n1"].writes
        for forgotten in world["n1"].shared.forgotten:  # as after weeks away
            forgotten()
        await asyncio.sleep(0.4)
        # Nothing was forgotten here in truth, so nothing is written: it is listed already.
        assert world.board.workers["n1"].writes == writes
        assert world["n1"].ready("a")


async def test_a_write_that_is_refused_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        world.board.workers["n1"].full = lambda key: True
        with pytest.raises(SmgError) as caught:
            world["n1"].desk.add(wish("a"))
        assert (caught.value.status, caught.value.code) == (503, "state_full")
        assert isinstance(caught.value.__cause__, StateError)
        assert gone(world["n1"])


async def test_a_worker_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    async with fleet_world(tmp_path, "n1") as world:
        world["n1"].shared.workers.add("w-new", "api", WorkerSpec(url="quic://a:1"))
        world["n1"].shared.workers.add("w-role", "api", WorkerSpec(url="grpc://b:1", role="draft"))
        world["n1"].desk.add(wish("a"))
        await world.until(lambda node: node.ready("a"))
        assert len(world["n1"].shared.workers) == 3


async def test_sessions_show_and_end_what_is_written_down(tmp_path: Path) -> None:
    from smg_node.routing.routing_keys import sticky_id

    async with fleet_world(tmp_path, "n1", "n2") as world:
        key = sticky_id("user", model="m")
        world["n1"].shared.sticky.bind(key, "w-1", "w-2 could not take it")
        for name in ("user", key):
            view = world["n2"].desk.session(name, model="m", tenant="")
            assert (view.id, view.worker) == (key, "w-1")
            assert view.age_ms >= 50
            assert 0 < view.expires_ms <= 1000
        assert world["n2"].desk.end_session("user", model="m", tenant="").worker == "w-1"
        assert world["n1"].shared.sticky.worker_of(key) is None
        with pytest.raises(SmgError) as caught:
            world["n1"].desk.session("user", model="m", tenant="")
        assert caught.value.code == "session_not_found"
