import pytest

from smg_node.cluster.workers.worker_views import requested_worker
from smg_node.http.ports.node import WorkerChange, WorkerRequest
from smg_node.http.routes.workers.worker_body import read_worker_request
from support.http.http_node import node
from support.http.raw_http import ask


async def test_workers_are_listed_counted_and_filtered() -> None:
    async with node() as served:
        full = (await ask(served.port, "GET", "/workers")).json()
        none = (await ask(served.port, "GET", "/workers?status=failed")).json()
        some = (await ask(served.port, "GET", "/workers?model=m&role=regular")).json()
    assert full["workers"][0]["id"] == "w-1"
    assert full["workers"][0]["labels"] == {"a": "b"}
    assert full["stats"] == {
        "total": 1,
        "by_status": {"ready": 1},
        "inflight": 3,
        "total_workers": 1,
        "healthy_workers": 1,
        "total_models": 1,
        "total_load": 3,
        "by_type": {"regular": 1, "prefill": 0, "decode": 0, "encode": 0},
    }
    assert none["workers"] == []
    assert len(some["workers"]) == 1


async def test_a_worker_is_added_by_its_url_and_found_at_the_location() -> None:
    body = {
        "url": "grpc://e:2",
        "model_id": "m2",
        "worker_type": "decode",
        "labels": {"z": "1"},
        "x": 1,
    }
    async with node() as served:
        response = await ask(served.port, "POST", "/workers", body)
        assert response.status == 202
        answer = response.json()
        assert answer["status"] == "accepted"
        assert answer["worker_id"] == "w/2"
        assert response.headers["location"] == answer["location"] == "/workers/w%2F2"
        assert response.headers["x-smg-ignored-params"] == "x"
        assert (await ask(served.port, "GET", answer["location"])).json()["url"] == "grpc://e:2"
        wish = WorkerRequest("grpc://e:2", model="m2", role="decode", labels={"z": "1"})
        assert served.workers.calls == [("add", wish)]
        row = served.world.rows[-1]
    assert (row.action, row.subject, row.who, row.address) == (
        "worker.add",
        "w/2",
        "loopback",
        "127.0.0.1",
    )
    assert (row.before, row.after["labels"]) == (None, {"z": "1"})


async def test_a_worker_is_shown_in_our_words_and_in_those_of_other_gateways() -> None:
    async with node() as served:
        view = (await ask(served.port, "GET", "/workers/w-1")).json()
    assert (view["model"], view["role"], view["contract"], view["inflight"]) == (
        "m",
        "regular",
        "vllm",
        3,
    )
    assert (view["model_id"], view["worker_type"], view["runtime_type"], view["load"]) == (
        "m",
        "regular",
        "vllm",
        3,
    )
    assert (view["connection_mode"], view["is_healthy"]) == ("grpc", True)
    assert (view["priority"], view["cost"], view["has_key"]) == (50, 1.0, False)


async def test_the_full_spec_of_another_gateway_is_understood_and_its_rest_is_named() -> None:
    spec = {
        "url": "grpc://e:2",
        "models": [{"id": "m2"}],
        "worker_type": "prefill",
        "connection_mode": "grpc",
        "runtime_type": "tensorrt-llm",
        "priority": 80,
        "cost": 0.5,
        "api_key": "sk-very-secret-0123456789",
        "labels": {},
        "health": {"timeout_secs": 3},
        "bootstrap_port": 8998,
    }
    async with node() as served:
        response = await ask(served.port, "POST", "/workers", spec)
        ((_, wish),) = served.workers.calls
        row = served.world.rows[-1]
        shown = await ask(served.port, "GET", "/workers")
        lines = b"".join(served.access.lines)
    assert response.status == 202
    assert wish == WorkerRequest(
        "grpc://e:2",
        model="m2",
        role="prefill",
        contract="trtllm",
        labels={"bootstrap_port": "8998"},
        priority=80,
        cost=0.5,
        api_key="sk-very-secret-0123456789",
    )
    assert response.headers["x-smg-ignored-params"] == "connection_mode, health"
    assert row.after["api_key"] == "(set)"
    assert shown.json()["workers"][1]["has_key"] is True
    seen = [shown.body, response.body, lines, repr(row).encode(), repr(wish).encode()]
    assert not any(b"very-secret" in text for text in seen)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "url"),
        ({"url": 5}, "url"),
        ({"url": ""}, "url"),
        ({"url": "x" * 3000}, "url"),
        ({"url": "grpc://e:1", "model": []}, "model"),
        ({"url": "grpc://e:1", "labels": []}, "labels"),
        ({"url": "grpc://e:1", "labels": {"a": 1}}, "labels.a"),
        ({"url": "grpc://e:1", "labels": {str(i): "" for i in range(65)}}, "labels"),
        ({"url": "grpc://e:1", "priority": "5"}, "priority"),
        ({"url": "grpc://e:1", "priority": 1.5}, "priority"),
        ({"url": "grpc://e:1", "priority": True}, "priority"),
        ({"url": "grpc://e:1", "priority": -1}, "priority"),
        ({"url": "grpc://e:1", "cost": "low"}, "cost"),
        ({"url": "grpc://e:1", "cost": -0.5}, "cost"),
        ({"url": "grpc://e:1", "api_key": 5}, "api_key"),
        ({"url": "grpc://e:1", "api_key": "a\nb"}, "api_key"),
        ({"url": "grpc://e:1", "api_key": "k" * 5000}, "api_key"),
        ({"url": "grpc://e:1", "models": [{"id": "a"}, {"id": "b"}]}, "models"),
        ({"url": "grpc://e:1", "models": "a"}, "models"),
        ({"url": "grpc://e:1", "bootstrap_port": 0}, "bootstrap_port"),
        ({"url": "grpc://e:1", "bootstrap_port": 65536}, "bootstrap_port"),
        ({"url": "grpc://e:1", "bootstrap_port": "8998"}, "bootstrap_port"),
        ({"url": "grpc://e:1", "bootstrap_port": 1.5}, "bootstrap_port"),
        ({"url": "grpc://nonsense"}, "url"),
    ],
)
async def test_a_bad_worker_is_refused_by_the_name_of_what_is_wrong(
    body: dict[str, object], param: str
) -> None:
    async with node() as served:
        response = await ask(served.port, "POST", "/workers", body)
        assert served.workers.calls == []
    assert (response.status, response.error()["param"]) == (400, param)


async def test_a_worker_is_drained_undrained_probed_and_removed() -> None:
    async with node() as served:
        port = served.port
        assert (await ask(port, "POST", "/workers/w-1/drain")).json()["status"] == "draining"
        assert (await ask(port, "POST", "/workers/w-1/undrain")).json()["status"] == "ready"
        patched = await ask(port, "PATCH", "/workers/w-1", {"status": "draining"})
        assert patched.json()["status"] == "draining"
        again = await ask(port, "PATCH", "/workers/w-1", {"status": "ready"})
        assert again.json()["status"] == "ready"
        assert (await ask(port, "POST", "/workers/w-1/probe")).json()["id"] == "w-1"
        removed = await ask(port, "DELETE", "/workers/w-1?force=true")
        assert removed.json() == {"status": "removed", "worker_id": "w-1"}
        assert served.workers.calls[2:] == [("probe", "w-1"), ("remove", "w-1", True)]
        actions = [row.action for row in served.world.rows]
        assert actions == [
            "worker.drain",
            "worker.undrain",
            "worker.change",
            "worker.change",
            "worker.remove",
        ]
        for method, path in (
            ("GET", "/workers/w-1"),
            ("DELETE", "/workers/w-1"),
            ("POST", "/workers/w-1/drain"),
        ):
            missing = await ask(port, method, path)
            assert (missing.status, missing.error()["code"]) == (404, "worker_not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"status": "failed"}, "status"),
        ({}, None),
        ({"url": "grpc://e:9"}, "url"),
        ({"health": {}}, "health"),
        ({"priority": "high"}, "priority"),
    ],
)
async def test_a_bad_change_of_a_worker_is_refused_and_changes_nothing(
    body: dict[str, object], param: str | None
) -> None:
    async with node() as served:
        response = await ask(served.port, "PATCH", "/workers/w-1", body)
        assert served.workers.calls == []
        assert served.world.rows == []
    assert (response.status, response.error()["param"]) == (400, param)


async def test_a_patch_changes_what_it_says_and_the_audit_log_has_both_sides() -> None:
    change = {"priority": 80, "labels": {"rack": "r2"}, "api_key": "sk-1", "status": "draining"}
    async with node() as served:
        view = (await ask(served.port, "PATCH", "/workers/w-1", change)).json()
        bare = (await ask(served.port, "PATCH", "/workers/w-1", {"api_key": ""})).json()
        first, second = served.world.rows
    assert (view["priority"], view["labels"], view["status"]) == (80, {"rack": "r2"}, "draining")
    assert (view["has_key"], bare["has_key"], bare["priority"]) == (True, False, 80)
    assert (first.before["priority"], first.after["priority"]) == (50, 80)
    assert (first.before["api_key"], first.after["api_key"]) == ("", "(set)")
    assert (second.before["api_key"], second.after["api_key"]) == ("(set)", "")


async def test_a_bootstrap_port_is_changed_alone_and_is_a_label_of_what_is_described_as_a_whole() -> (
    None
):
    async with node() as served:
        await ask(served.port, "PATCH", "/workers/w-1", {"bootstrap_port": 9000})
        body = {"worker_type": "prefill", "bootstrap_port": 9001, "labels": {"a": "b"}}
        await ask(served.port, "PUT", "/workers/w-1", body)
        (_, _, patched), (_, _, replaced) = served.workers.calls
    assert patched == WorkerChange(bootstrap_port=9000)
    assert (replaced.role, replaced.labels) == ("prefill", {"a": "b", "bootstrap_port": "9001"})


async def test_a_worker_is_replaced_with_defaults_for_what_is_not_said() -> None:
    async with node() as served:
        port = served.port
        await ask(port, "PATCH", "/workers/w-1", {"priority": 80, "cost": 3, "api_key": "k"})
        body = {"url": "grpc://e:1?model=m", "model_id": "m", "x": 1}
        reply = await ask(port, "PUT", "/workers/w-1", body)
        other = await ask(port, "PUT", "/workers/w-1", {"url": "grpc://other:1"})
    view = reply.json()
    assert (view["priority"], view["cost"], view["has_key"], view["labels"]) == (50, 1.0, False, {})
    assert reply.headers["x-smg-ignored-params"] == "x"
    assert (other.status, other.error()["param"]) == (400, "url")


async def test_the_cluster_says_who_looks_at_a_worker_and_what_each_node_sees() -> None:
    async with node() as served:
        listed = (await ask(served.port, "GET", "/v1/cluster/workers")).json()
        none = (await ask(served.port, "GET", "/v1/cluster/workers?model=other")).json()
        nobody = (await ask(served.port, "GET", "/v1/cluster/workers?id=w-2")).json()
        odd = await ask(served.port, "DELETE", "/workers/w-1?force=maybe")
    (row,) = listed["workers"]
    assert (row["registered_by"], row["sources"], row["probers"]) == ("b", ["api"], ["b", "c"])
    assert row["sights"]["c"] == {"up": False, "reason": "no answer", "age_ms": 340}
    assert (row["requests_mine"], row["requests_others"], row["load_age_ms"]) == (3, 4, 200)
    assert (listed["total"], none, nobody) == (1, {"workers": [], "total": 0}, none)
    assert (odd.status, odd.error()["param"]) == (400, "force")


async def test_loads_have_a_row_per_worker_also_for_one_that_fails() -> None:
    async with node() as served:
        loads = (await ask(served.port, "GET", "/get_loads")).json()["loads"]
    assert loads == [{"worker": "w-1", "running": 1}, {"worker": "w-2", "error": "down"}]


def test_an_encode_worker_is_added_by_the_words_of_other_gateways() -> None:
    body = {"url": "grpc://e:50104", "worker_type": "encode", "bootstrap_port": 18995}
    wish = requested_worker(read_worker_request(body))
    assert str(wish) == "grpc://e:50104?role=encode&label.bootstrap_port=18995"
