"""Stdio server of an MCP server on purpose: requests on its input, answers on its output, counts in a file."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from smg_chaos.mcp.book import Book
from smg_chaos.mcp.conversation import MODERN, Conversation, tool_of, version_of
from smg_chaos.mcp.faults import Fault, first_hit
from smg_chaos.mcp.tools import Progress, RpcError, text


class StdioServer:
    """One process. `count_file`, if there is one, always holds the counts as JSON."""

    def __init__(self, era: str, faults: Sequence[Fault], count_file: Path | None) -> None:
        self._book = Book()
        self._conversation = Conversation(era, self._book)
        self._faults = faults
        self._count_file = count_file
        self._running: dict[str, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the input ends."""
        sys.stderr.write("an MCP server on purpose is ready\n")
        sys.stderr.flush()
        async with asyncio.TaskGroup() as group:
            # In a thread, because an input that is a file or nothing cannot be waited for.
            while line := await asyncio.to_thread(sys.stdin.buffer.readline):
                message = json.loads(line)
                if message.get("id") is None or "method" not in message:
                    self._noted(message)
                    continue
                id_ = str(message["id"])
                self._running[id_] = group.create_task(self._answer(message))
            for running in self._running.values():
                running.cancel()

    def _noted(self, message: Any) -> None:
        if message.get("method") == "notifications/cancelled":
            running = self._running.get(str(message["params"]["requestId"]))
            if running is not None and running.cancel():
                self._book.cancelled += 1
                self._write_counts()

    async def _answer(self, message: Any) -> None:
        method = message["method"]
        self._book.methods[method] += 1
        self._book.request_ids.append(str(message["id"]))
        fault = first_hit(self._faults, method, tool_of(message))
        name = fault.name if fault is not None else ""
        try:
            whole = await self._whole(message, fault)
        except RpcError as error:
            body = {"code": error.code, "message": error.message}
            whole = {"error": body if error.about is None else {**body, "data": error.about}}
        finally:
            self._running.pop(str(message["id"]), None)
            self._write_counts()
        if fault is not None and name == "exit":
            os._exit(fault.values["status"])
        if fault is not None and name == "noise":
            for number in range(fault.values["lines"]):
                _print(b"log line %d" % number)
        if name == "garbage":
            _print(b"\xff{garbage")
        elif name not in ("hang", "reset"):
            _print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **whole}).encode())

    async def _whole(self, message: Any, fault: Fault | None) -> dict[str, Any]:
        if fault is not None and fault.name == "slow":
            await asyncio.sleep(fault.values["seconds"])
        if fault is not None and fault.name == "error":
            raise RpcError(fault.values["code"], "on purpose")
        if fault is not None and fault.name == "huge":
            self._book.runs[tool_of(message)] += 1
            kind = {"resultType": "complete"} if version_of(message) == MODERN else {}
            return {"result": {**kind, **text("x" * fault.values["bytes"])}}
        token = (message.get("params") or {}).get("_meta", {}).get("progressToken")
        return {"result": await self._conversation.answer(message, _progress(token))}

    def _write_counts(self) -> None:
        if self._count_file is not None:
            beside = self._count_file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(self._book.counts()), encoding="utf-8")
            beside.replace(self._count_file)


def _progress(token: Any) -> Progress:
    async def progress(done: int, total: int) -> None:
        if token is not None:
            params = {"progressToken": token, "progress": done, "total": total}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            _print(json.dumps(note).encode())

    return progress


def _print(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
