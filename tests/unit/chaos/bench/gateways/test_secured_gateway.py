import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from smg_chaos.bench.children import BenchError, fetch, free_ports, spawn
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, Gateway, Place
from smg_chaos.bench.gateways.secured_gateway import ADMIN_KEY, TENANT, equip
from smg_chaos.bench.load.envelopes import envelope_of
from smg_chaos.bench.load.job import Flow, Job, Prompt
from smg_node.access.api_key import read_key_text


@dataclass
class Heard:
    """What a gateway was asked, and what it answers to each path."""

    statuses: dict[str, int]
    requests: list[tuple[str, str, dict[str, object]]]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        lines = dict(line.split(": ", 1) for line in head.strip().split("\r\n")[1:])
        body = await reader.readexactly(int(lines["content-length"]))
        method, path, _ = head.split(" ", 2)
        assert lines["authorization"] == f"Bearer {ADMIN_KEY}"
        self.requests.append((method, path, json.loads(body)))
        status = self.statuses.get(path, 200)
        content = b'{"key":"smg-abc-def"}'
        writer.write(
            b"HTTP/1.1 %d x\r\ncontent-length: %d\r\n\r\n%b" % (status, len(content), content)
        )
        writer.close()


async def with_gateway(
    heard: Heard, act: Callable[[Gateway], Awaitable[str]], *, late_s: float = 0.0
) -> str:
    (port,) = free_ports(1)
    gateway = Gateway("g", "127.0.0.1", port, 0, None, "grpc", None)

    async def listen() -> asyncio.Server:
        await asyncio.sleep(late_s)
        return await asyncio.start_server(heard.answer, "127.0.0.1", port)

    async with asyncio.TaskGroup() as group:
        starting = group.create_task(listen())
        try:
            return await act(gateway)
        finally:
            (await starting).close()


def clock_s() -> float:
    return asyncio.get_running_loop().time()


async def test_limits_are_set_and_a_key_is_made_as_soon_as_it_listens() -> None:
    heard = Heard({}, [])
    key = await with_gateway(heard, lambda gateway: equip(gateway, clock_s), late_s=0.05)
    assert key == "smg-abc-def"
    [(method, path, limits), (made, keys, wish)] = heard.requests
    assert (method, path) == ("PUT", f"/v1/cluster/limits/tenant={TENANT}")
    assert (made, keys, wish) == ("POST", "/v1/cluster/keys", {"tenant": TENANT, "role": "user"})
    assert set(limits) == {"amounts", "concurrency"}


async def test_a_gateway_that_refuses_is_named_with_its_reason() -> None:
    heard = Heard({"/v1/cluster/keys": 403}, [])
    said = await with_gateway(heard, refused)
    assert said.startswith("g: POST /v1/cluster/keys: status 403")


async def refused(gateway: Gateway) -> str:
    with pytest.raises(BenchError) as refusal:
        await equip(gateway, clock_s)
    return str(refusal.value)


async def test_one_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    child = spawn("g", [sys.executable, "-c", "raise SystemExit(7)"], tmp_path / "log")
    child.process.wait()
    gateway = Gateway("g", "127.0.0.1", port, child.pid, child, "grpc", None)
    assert "ended with code 7" in await refused(gateway)


def test_the_gateway_is_closed_and_knows_the_admin_key(tmp_path: Path) -> None:
    command = KINDS[EQUIPPED].command(Place(1, 2, 3, tmp_path, tmp_path))
    path = Path(command[command.index("--auth.admin-key-file") + 1])
    assert path.read_text().strip() == ADMIN_KEY
    assert path.stat().st_mode & 0o077 == 0
    assert command[command.index("--auth.data") + 1] == "closed"
    assert read_key_text(ADMIN_KEY) is not None


def test_requests_carry_the_key_where_there_is_one() -> None:
    flow = Flow(
        name="main", shape="closed", connections=1, tokens=1, stream=False,
        prompt=Prompt(kind="short"),
    )  # fmt: skip
    job = Job(host="h", port=1, model="m", flows=(flow,))
    assert b"authorization" not in envelope_of(job, flow).head
    keyed = msgspec.structs.replace(job, key="smg-a-b")
    assert b"\r\nauthorization: Bearer smg-a-b\r\n" in envelope_of(keyed, flow).head


async def test_nobody_listens_is_an_error_of_the_operating_system() -> None:
    (port,) = free_ports(1)
    with pytest.raises(OSError):  # noqa: PT011  # which one depends on the system
        await fetch("127.0.0.1", port, "GET", "/", headers={"a": "b"})
