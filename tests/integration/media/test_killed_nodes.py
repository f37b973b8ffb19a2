"""Nodes that are killed with tensors in shared memory: the next one removes what is left, and nothing of those that live."""

import re
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from smg_node.engines.shared_memory import FOLDER
from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

VISION: Final = (
    "--vision",
    "qwen3_vl",
    "--script",
    "pictures",
    "--model",
    "eyes",
    "--shared-memory",
)
_LEDGER: Final = re.compile(r"/smg-node-([0-9a-f]{16})\.lock")
_WAIT_S: Final = 30.0


def files_of(node: RunningNode) -> list[Path]:
    """Return the files that a node has in shared memory, found by the lock that it holds."""
    found: list[Path] = []
    for link in Path(f"/proc/{node.process.pid}/fd").iterdir():
        try:
            ledger = _LEDGER.search(str(link.readlink()))
        except FileNotFoundError:
            continue
        if ledger is not None:
            found += FOLDER.glob(f"smg-node-{ledger[1]}-*")
    return found


def ask(node: RunningNode) -> httpx.Response:
    part = picture_part(data_url(jpeg(320, 200)))
    turn = {"role": "user", "content": [{"type": "text", "text": "what?"}, part]}
    body = {"model": "eyes", "messages": [turn], "max_tokens": 5}
    return httpx.post(f"{node.url}/v1/chat/completions", json=body, timeout=60)


@contextmanager
def asking(node: RunningNode) -> Iterator[list[Path]]:
    """Ask for an answer that does not come; yield what the node has in shared memory meanwhile."""

    def unanswered() -> None:
        try:
            ask(node)
        except httpx.HTTPError:
            return

    thread = threading.Thread(target=unanswered)
    thread.start()
    try:
        node.process.wait_until(lambda: bool(files_of(node)), "its tensor is written", _WAIT_S)
        yield files_of(node)
    finally:
        node.process.kill()
        thread.join()


def stopped(engine: Simulated) -> None:
    """Let an engine read nothing any more."""
    engine.process.signal(signal.SIGSTOP)


def test_the_next_node_removes_what_a_killed_one_left_and_nothing_of_one_that_lives(
    tmp_path: Path,
) -> None:
    for name in ("silent", "reading", "first", "other", "third"):
        (tmp_path / name).mkdir()
    with ExitStack() as stack:
        engines = [
            stack.enter_context(running_simulated(tmp_path / name, *VISION))
            for name in ("silent", "reading")
        ]
        silent, reading = engines
        first, other = (
            stack.enter_context(running_node(tmp_path / name, workers=[f"grpc://{silent.address}"]))
            for name in ("first", "other")
        )
        stopped(silent)
        living = stack.enter_context(asking(other))
        with asking(first) as left:
            assert left
            # Once it is dead, any node that starts on this machine may be the next.
            first.process.signal(signal.SIGSTOP)
            assert all(path.exists() for path in left), "they are its own while it lives"
            first.process.kill()
        third = stack.enter_context(
            running_node(tmp_path / "third", workers=[f"grpc://{reading.address}"])
        )
        third.process.wait_until(
            lambda: not any(path.exists() for path in left), "they are swept", _WAIT_S
        )
        assert ask(third).status_code == 200
        assert all(path.exists() for path in living), "their node lives"
        assert not files_of(third)
        silent.process.kill()
