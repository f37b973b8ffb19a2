"""A process with streams ends without a word: no task, thread or warning is left behind."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[4]
PROGRAM = """
    import asyncio
    from smg_mesh.io.streams import AskError
    from support.state.exchanges import claims
    from support.mesh.mesh_streams import Gate, Node, derived, until, up

    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 60  # slow machines are no news
        gate = Gate()
        a = Node("a", derived("a"), claims(1500, "l"))
        b = Node("b", derived("b"), claims(1500, "r"), gate=gate, replies=lambda *_: b"yes")
        async with asyncio.TaskGroup() as group:
            async with up(a, b):
                await a.exchange_with(b)
                assert await a.client.ping(b.address, "b", 1, deadline_ms=5000)
                asking = group.create_task(ask(a, b))
                await until(lambda: gate.waiting == 1)
                if {cut!r} == "cancelled":
                    asking.cancel()
                elif {cut!r} == "answered":
                    gate.open.set()
                    assert await asking == b"yes"
        assert len(a.learned_rows) == 1500
        print("done")

    async def ask(a, b):
        try:
            return await a.client.ask(b.address, "b", "t", b"", deadline_s=30)
        except AskError as error:
            assert {cut!r} == "cut", error

    asyncio.run(main(), debug=True)
"""


@pytest.mark.parametrize("cut", ["cancelled", "answered", "cut"])
def test_the_end_is_silent(cut: str) -> None:
    program = textwrap.dedent(PROGRAM).format(cut=cut)
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", "-c", program],
        cwd=TESTS,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"GRPC_VERBOSITY": "NONE", "PYTHONPATH": str(TESTS)},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
