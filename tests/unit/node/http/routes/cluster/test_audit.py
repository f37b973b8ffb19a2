from typing import Any

import pytest

from smg_mesh.shared import StateError
from support.http.http_node import node
from support.http.raw_http import ask

AUDIT = "/v1/cluster/audit"


async def test_every_change_an_operator_makes_is_written_down() -> None:
    changes: list[tuple[str, str, Any, str, str]] = [
        ("POST", "/v1/cluster/members/b/drain", None, "member.drain", "b"),
        ("POST", "/v1/cluster/members/b/undrain", None, "member.undrain", "b"),
        ("POST", "/v1/cluster/members/c/forget", None, "member.forget", "c"),
        ("POST", "/v1/cluster/join", {"peers": ["d:1"]}, "cluster.join", "node-a"),
        (
            "POST",
            "/v1/cluster/keyring",
            {"operation": "install", "key": "A" * 44},
            "keyring.install",
            "",
        ),
        (
            "POST",
            "/v1/cluster/keyring",
            {"operation": "use", "key": "aabbccdd"},
            "keyring.use",
            "aabbccdd",
        ),
        ("POST", "/v1/cluster/leave", None, "node.leave", "node-a"),
        ("POST", "/workers", {"url": "grpc://e:2"}, "worker.add", "w/2"),
        ("DELETE", "/v1/cluster/sessions/key-1?model=m", None, "session.end", "4be1d2f39a07c655"),
    ]
    async with node() as served:
        for method, path, body, action, subject in changes:
            headers = {"content-type": "application/json", "x-request-id": f"req-{action}"}
            answer = await ask(served.port, method, path, body, headers=headers)
            assert answer.status < 300, answer.body
            row = served.world.rows[-1]
            assert (row.action, row.subject) == (action, subject)
            assert (row.who, row.address, row.node) == ("loopback", "127.0.0.1", "node-a")
            assert row.request_id == f"req-{action}"
        assert len(served.world.rows) == len(changes)
        assert "A" * 44 not in repr(served.world.rows)


async def test_what_was_refused_or_only_looked_at_leaves_no_row() -> None:
    async with node() as served:
        port = served.port
        await ask(port, "POST", "/v1/cluster/members/c/drain")
        await ask(port, "POST", "/v1/cluster/join", {"peers": ["nonsense"]})
        await ask(port, "POST", "/v1/cluster/keyring", {"operation": "remove", "key": "aa"})
        await ask(port, "DELETE", "/workers/nobody")
        await ask(port, "POST", "/workers/w-1/probe")
        await ask(port, "GET", "/v1/cluster/keyring")
        assert served.world.rows == []


async def test_rows_are_listed_newest_first_and_filtered() -> None:
    async with node() as served:
        port = served.port
        await ask(port, "POST", "/workers/w-1/drain")
        await ask(port, "POST", "/workers/w-1/undrain")
        await ask(port, "POST", "/v1/cluster/members/b/drain")
        rows = (await ask(port, "GET", AUDIT)).json()["rows"]
        worker = (await ask(port, "GET", f"{AUDIT}?action=worker&limit=1")).json()["rows"]
        exact = (await ask(port, "GET", f"{AUDIT}?action=worker.drain")).json()["rows"]
        subject = (await ask(port, "GET", f"{AUDIT}?subject=b&who=loopback")).json()["rows"]
        elsewhere = (await ask(port, "GET", f"{AUDIT}?node=b")).json()["rows"]
        newer = (await ask(port, "GET", f"{AUDIT}?after={rows[2]['id']}")).json()["rows"]
        older = (await ask(port, "GET", f"{AUDIT}?before={rows[1]['id']}")).json()["rows"]
    assert [row["action"] for row in rows] == ["member.drain", "worker.undrain", "worker.drain"]
    assert rows[2]["before"]["draining"] is False
    assert rows[2]["after"]["draining"] is True
    assert [row["action"] for row in worker] == ["worker.undrain"]
    assert [row["action"] for row in exact] == ["worker.drain"]
    assert [row["subject"] for row in subject] == ["b"]
    assert elsewhere == []
    assert newer == rows[:2]
    assert older == rows[2:]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=x", "limit"),
        ("who=" + "w" * 600, "who"),
    ],
)
async def test_a_bad_question_is_refused(query: str, param: str) -> None:
    async with node() as served:
        answer = await ask(served.port, "GET", f"{AUDIT}?{query}")
    assert (answer.status, answer.error()["param"]) == (400, param)


async def test_a_change_does_not_fail_because_its_row_could_not_be_kept() -> None:
    async with node() as served:
        served.world.nodes["node-a"].audit.refuses = StateError("full", "no room")
        answer = await ask(served.port, "POST", "/workers/w-1/drain")
    assert answer.json()["status"] == "draining"
