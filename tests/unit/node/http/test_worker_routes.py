import pytest

from support.http_node import node
from support.raw_http import ask


async def test_workers_are_listed_counted_and_filtered() -> None:
    async with node() as served:
        full = (await ask(served.port, "GET", "/workers")).json()
        none = (await ask(served.port, "GET", "/workers?status=failed")).json()
        some = (await ask(served.port, "GET", "/workers?model=m&role=regular")).json()
    assert full["workers"][0]["id"] == "w-1"
    assert full["workers"][0]["labels"] == {"a": "b"}
    assert full["stats"] == {"total": 1, "by_status": {"ready": 1}, "inflight": 3}
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
        assert served.workers.calls == [("add", "grpc://e:2", "m2", "decode", {"z": "1"})]


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
        assert served.workers.calls == [("probe", "w-1"), ("remove", "w-1", True)]
        for method, path in (
            ("GET", "/workers/w-1"),
            ("DELETE", "/workers/w-1"),
            ("POST", "/workers/w-1/drain"),
        ):
            missing = await ask(port, method, path)
            assert (missing.status, missing.error()["code"]) == (404, "worker_not_found")


@pytest.mark.parametrize(
    ("body", "param"),
    [({"status": "failed"}, "status"), ({}, "status"), ({"priority": 5}, "priority")],
)
async def test_only_the_status_of_a_worker_can_be_changed(
    body: dict[str, object], param: str
) -> None:
    async with node() as served:
        response = await ask(served.port, "PATCH", "/workers/w-1", body)
    assert (response.status, response.error()["param"]) == (400, param)


async def test_loads_have_a_row_per_worker_also_for_one_that_fails() -> None:
    async with node() as served:
        loads = (await ask(served.port, "GET", "/get_loads")).json()["loads"]
    assert loads == [{"worker": "w-1", "running": 1}, {"worker": "w-2", "error": "down"}]
