"""What a control process asks its data processes about runs that wait."""

import asyncio

from smg_node.processes.ipc.ipc_link import AnswerError, LinkCutError
from smg_node.processes.reports.approval_query import ApprovalQuery


async def test_all_are_asked_and_those_who_are_silent_are_named() -> None:
    asked: list[tuple[str, bytes]] = []

    async def ask(process: str, question: bytes) -> bytes:
        asked.append((process, question))
        if process == "2":
            await asyncio.sleep(9)
        elif process == "3":
            raise LinkCutError("gone")
        elif process == "4":
            raise AnswerError("a data process does not answer that")
        return b"one" if process == "1" else b""

    query = ApprovalQuery(lambda: list("12345"), ask, patience_s=0.02)
    replies, silent = await query.ask(b"?")
    assert list(replies) == [b"one", b""]
    assert list(silent) == ["2", "3", "4"]
    assert asked == [(name, b"?") for name in "12345"]
