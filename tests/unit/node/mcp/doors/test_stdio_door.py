"""Stdio: noisy, silent, ending and stubborn processes; none of them is left behind."""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import uvloop

from smg_node.mcp.definition import ServerDefinition, checked
from smg_node.mcp.doors.child_process import environment_of
from smg_node.mcp.failures import Failure, FailureKind
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import Target
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.faulty_server import pooled, process_target

ERAS = pytest.mark.parametrize("era", ["handshake", "modern"])


def text(outcome: CallResult | Failure) -> str:
    assert isinstance(outcome, CallResult), outcome
    return str(outcome.content[0]["text"])


def counts(path: Path) -> Any:
    return json.loads(path.read_text())


def program(tmp_path: Path, source: str, *args: str) -> Target:
    """Return the target of a program of a test's own."""
    path = tmp_path / "program.py"
    path.write_text(source)
    words = ("-u", str(path), *args)
    return Target(checked(ServerDefinition("s", command=sys.executable, args=words)))


@ERAS
async def test_a_process_is_opened_listed_and_called(era: str, tmp_path: Path) -> None:
    file = tmp_path / "counts"
    async with pooled() as pool:
        at = process_target(era, "noise:lines=99,tool=write", counts=file)
        opened = await pool.open(at)
        assert isinstance(opened, Opened)
        assert opened.verdict.revision.era.value == era
        said = json.dumps({"text": "a\nb\r\nc"}, indent=2)
        assert text(await pool.call(at, "echo", said)) == "a\nb\r\nc"
        assert text(await pool.call(at, "write", '{"text": "x"}')) == "x"
        slow = '{"seconds": 0.2, "steps": 4}'
        beside = await asyncio.gather(*(pool.call(at, "slow", slow) for _ in range(5)))
        assert [text(one) for one in beside] == ["4 steps"] * 5
    assert counts(file)["runs"] == {"echo": 1, "write": 1, "slow": 5}


async def test_a_process_that_ends_loses_the_call_and_the_next_one_has_another() -> None:
    async with pooled() as pool:
        at = process_target("modern", "exit:tool=write,times=1")
        failed = await pool.call(at, "write", "{}")
        assert isinstance(failed, Failure)
        assert (failed.kind, failed.code, failed.sent) == (FailureKind.LOST, 502, True)
        assert text(await pool.call(at, "echo", '{"text": "x"}')) == "x"


async def test_a_call_that_nobody_waits_for_is_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "counts"
    async with pooled() as pool:
        at = process_target("modern", counts=file)
        await pool.open(at)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.call(at, "slow", '{"seconds": 30}'), 0.3)
        assert text(await pool.call(at, "echo", '{"text": "x"}')) == "x"
    assert counts(file)["cancelled"] == 1


async def test_an_answer_above_the_limit_ends_the_process() -> None:
    async with pooled(McpLimits(answer_bytes_max=1 << 20)) as pool:
        at = process_target("modern")
        assert len(text(await pool.call(at, "big", '{"bytes": 600000}'))) == 600_000
        failed = await pool.call(at, "big", '{"bytes": 2000000}')
        assert isinstance(failed, Failure)
        assert "mcp.answer_bytes_max" in failed.message


async def test_a_process_that_prints_no_messages_is_none(tmp_path: Path) -> None:
    source = "import sys\nfor line in sys.stdin:\n    print('hello\\n' * 200, flush=True)\n"
    async with pooled() as pool:
        failed = await pool.open(program(tmp_path, source))
        assert isinstance(failed, Failure)
        assert "no messages" in failed.message


async def test_a_process_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    async with pooled() as pool:
        absent = Target(checked(ServerDefinition("s", command=str(tmp_path / "absent"))))
        failed = await pool.open(absent)
        assert isinstance(failed, Failure)
        assert (failed.sent, "no such file" in failed.message) == (False, True)


async def test_a_process_that_ends_at_the_first_question_is_given_another(tmp_path: Path) -> None:
    source = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "server/discover":
        sys.exit(1)
    if "id" not in message:
        continue
    result = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "old"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
    async with pooled() as pool:
        opened = await pool.open(program(tmp_path, source))
        assert isinstance(opened, Opened)
        assert opened.verdict.revision.name == "2024-11-05"


STUBBORN = """
import json, os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print('up', flush=True); time.sleep(600)"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
child.stdout.readline()
with open(sys.argv[1], "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
for line in sys.stdin:
    message = json.loads(line)
    result = {"supportedVersions": ["2026-07-28"], "capabilities": {}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
signal.pause()
"""


def alive(pid: int) -> bool:
    """Whether a process is there and not waiting to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_neither_a_stubborn_process_nor_what_it_started_is_left(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with pooled() as pool:
        assert isinstance(await pool.open(program(tmp_path, STUBBORN, str(pids))), Opened)
        family = [int(one) for one in pids.read_text().split()]
        assert all(map(alive, family))
        assert os.getpgid(family[1]) == family[0] != os.getpgid(0)
    assert not any(map(alive, family))


@pytest.mark.parametrize(
    "history",
    [
        test_a_process_is_opened_listed_and_called,
        test_neither_a_stubborn_process_nor_what_it_started_is_left,
    ],
)
def test_the_loop_of_nodes_does_the_same(
    history: Callable[..., Coroutine[Any, Any, None]], tmp_path: Path
) -> None:
    given = {"era": "modern"} if "era" in signature(history).parameters else {}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(history(**given, tmp_path=tmp_path))


def test_a_process_is_given_little_of_our_environment() -> None:
    definition = ServerDefinition("s", command="x", env={"TOKEN": "1", "LANG": "C"})
    own = {"HOME": "/h", "PATH": "/p", "LANG": "de", "SMG_KEY": "secret"}
    assert environment_of(definition, own) == {
        "HOME": "/h",
        "PATH": "/p",
        "LANG": "C",
        "TOKEN": "1",
    }
