"""Returned runs: calls of tools on this node's side and their results, as clients send an earlier answer back.

A call stands in the assistant's message, and its result behind it in the same message; or in the next one, where the
answer paused and was sent again, or where the client had calls of its own to answer first. A call without a result at
the end of the conversation is run before the model goes on. Results that this node sealed open as the model saw them;
those of others are told as far as they can be read.
"""

from dataclasses import dataclass
from typing import Any, Final

import msgspec

from smg_node.core.generation.request import Tool, ToolCall, Turn
from smg_node.core.generation.served_call_ids import prompt_id
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import OpenToolCall
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.messages.cache_control import check_cache_control
from smg_node.dialects.messages.request.blocks import (
    TEXTS,
    Piece,
    pieces_at,
    result_turn,
)
from smg_node.dialects.messages.request.messages_draft import MessagesDraft
from smg_node.dialects.messages.tool_runs.asked_servers import read_listing
from smg_node.dialects.messages.tool_runs.block_names import (
    MCP_RESULT,
    MCP_USE,
    SEALED_RESULTS,
    SHAPES,
)

_ID_MAX: Final = 256
_NAME_MAX: Final = 256
_RESULT_KEYS: Final = ("type", "tool_use_id", "content", "cache_control", "caller")
_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class _Call:
    """A call without a result so far. `turn` numbers the assistant's turn it stands in; `place` is where among the
    turns its result belongs, once that turn is over.
    """

    call: ToolCall
    block: Cursor
    turn: int
    place: int = -1


class ReturnedRuns:
    """Reads the blocks of runs, and knows which calls wait for their results."""

    __slots__ = ("_draft", "_known", "_new", "_waiting", "turn")

    def __init__(self, draft: MessagesDraft) -> None:
        self._draft = draft
        self._known: set[str] = set()
        self._waiting: dict[str, _Call] = {}
        self._new: list[_Call] = []
        """Calls of a turn that is not over."""
        self.turn = 0
        """Number of the assistant's turn that is read."""

    def read_call(self, block: Cursor, kind: str) -> ToolCall | None:
        """Return the call that a block tells of; None for one that is wrong, which is noted."""
        mcp = kind == MCP_USE
        block.only(
            ("type", "id", "name", "input", "cache_control", "server_name" if mcp else "caller")
        )
        check_cache_control(block)
        call_id = block.text("id", required=True, characters_min=1, characters_max=_ID_MAX)
        given = block.object("input", required=True)
        owner = _mcp_owner(block) if mcp else _builtin_owner(block)
        if call_id is None or owner is None or given is None:
            return None
        if call_id in self._known:
            block.problem("id", f"two calls have the id {quoted(call_id)}")
            return None
        self._known.add(call_id)
        call = ToolCall(prompt_id(call_id), owner.tool, _encode(given.values).decode(), owner)
        made = _Call(call, block, self.turn)
        self._waiting[call_id] = made
        self._new.append(made)
        return call

    def read_result(self, block: Cursor, kind: str) -> tuple[Turn, int] | None:
        """Return the turn of a result, and the place among the turns where it belongs: -1 for the turn that is read.

        Places are those of turns without such results: who reads a history puts them there when it is over.

        None for one that is wrong, which is noted.
        """
        call_id = block.text("tool_use_id", required=True, characters_min=1, characters_max=_ID_MAX)
        check_cache_control(block)
        turn = self._result_turn(block, kind, prompt_id(call_id or ""))
        if call_id is None:
            return None
        waiting = self._waiting.pop(call_id, None)
        if waiting is None:
            known = call_id in self._known
            why = "has a result already" if known else "is none that the assistant has made before"
            block.problem("tool_use_id", f"the call {quoted(call_id)} {why}")
            return None
        return turn, waiting.place

    def read_listing(self, block: Cursor) -> None:
        """Take the tools that an earlier answer listed of a server."""
        block.only(("type", "mcp_server_name", "tools"))
        name = block.text("mcp_server_name", required=True, characters_max=_NAME_MAX)
        tools_max = self._draft.options.tools_max
        block.raw("tools", required=True)
        tools = read_listing(block, "tools", tools_max=tools_max)
        if name is not None and tools is not None:
            self._draft.asked_tools().listings[name] = tools

    # ── What waits ───────────────────────────────────────────────────────────

    def placed(self, place: int) -> None:
        """Note where results of the calls just made belong, as the turn that made them is over."""
        for call in self._new:
            call.place = place
        self._new.clear()

    def expect_results(self, *, before_turn: int) -> None:
        """Note the calls of turns before this one that were never run, now that the conversation goes on."""
        for call_id, call in list(self._waiting.items()):
            if call.turn < before_turn:
                del self._waiting[call_id]
                why = f"the call {quoted(call_id)} has no result before the conversation goes on"
                call.block.problem("id", why)

    def open_calls(self) -> None:
        """Ask for the calls that have no result at the end to be run."""
        if self._waiting:
            self._draft.asked_tools().open_calls = {
                call_id: (_open_call(one.call, call_id), one.block)
                for call_id, one in self._waiting.items()
            }

    # ── Results ──────────────────────────────────────────────────────────────

    def _result_turn(self, block: Cursor, kind: str, call_id: str) -> Turn:
        if kind == MCP_RESULT:
            block.only((*_RESULT_KEYS, "is_error"))
            pieces = pieces_at(self._draft, block, "content", TEXTS)
            return result_turn(pieces, call_id, failed=block.flag("is_error") or False)
        block.only(_RESULT_KEYS)
        content = block.raw("content", required=True)
        if type(content) is list:
            return result_turn([self._search_text(block, content)], call_id, failed=False)
        found = None if content is None else block.object("content")
        if found is None:
            return result_turn([], call_id, failed=False)
        told = found.text("type", required=True) or ""
        if told.endswith("_error"):
            return result_turn([_error_text(found)], call_id, failed=True)
        if told == "tool_search_tool_search_result":
            return result_turn(self._references(found), call_id, failed=False)
        if "stdout" in found.values:
            texts = [found.text(key) or "" for key in ("stdout", "stderr")]
            said = "\n".join(text for text in texts if text)
            return result_turn([said], call_id, failed=bool(found.values.get("return_code")))
        if told == "web_fetch_result":
            return result_turn([_fetched(found)], call_id, failed=False)
        rest = {key: value for key, value in found.values.items() if key != "type"}
        return result_turn([_encode(rest).decode()], call_id, failed=False)

    def _search_text(self, block: Cursor, content: list[Any]) -> str:
        """Return what a search found, as the model saw it if this node sealed it, else what it is called."""
        lines: list[str] = []
        draft = self._draft
        for index, value in enumerate(content):
            row = block.element("content", index, value)
            if row is None:
                continue
            row.only(("type", "url", "title", "encrypted_content", "page_age"))
            row.word("type", ("web_search_result",), required=True)
            url, title = row.text("url", required=True), row.text("title", required=True)
            sealed = row.text("encrypted_content", required=True)
            if index == 0 and sealed:
                tenant = draft.caller.tenant
                text = draft.seals.opened(sealed, tenant=tenant, model=SEALED_RESULTS)
                if text is not None:
                    return text
            lines.append(f"[{index + 1}] {title or ''} {url or ''}".rstrip())
        return "\n".join(lines)

    def _references(self, found: Cursor) -> list[Piece]:
        """Return the definitions of the tools that a search found; the names of those that only a server knows."""
        pieces: list[Piece] = []
        unknown: list[str] = []
        for row in found.objects("tool_references", required=True):
            row.only(("type", "tool_name", "cache_control"))
            row.word("type", ("tool_reference",), required=True)
            name = row.text("tool_name", required=True, characters_min=1, characters_max=_NAME_MAX)
            if name is not None:
                self._draft.asked_tools().found[name] = True
            tool: Tool | None = None if name is None else self._draft.tools.get(name)
            if tool is not None:
                pieces.append(tool)
            elif name is not None:
                unknown.append(name)
        if unknown:
            pieces.append("\n".join(unknown))
        return pieces


def _mcp_owner(block: Cursor) -> ToolOwner | None:
    name = block.text("name", required=True, characters_min=1, characters_max=_NAME_MAX)
    server = block.text("server_name", required=True, characters_min=1, characters_max=_NAME_MAX)
    return None if name is None or server is None else ToolOwner(server, name)


def _builtin_owner(block: Cursor) -> ToolOwner | None:
    name = block.word("name", tuple(SHAPES), required=True)
    return None if name is None else ToolOwner("", name, SHAPES[name])


def _open_call(call: ToolCall, shown_id: str) -> OpenToolCall:
    assert call.owner is not None, "only calls of tools on this node's side are read here"
    return OpenToolCall(call.call_id, call.owner, call.arguments, shown_id)


def _error_text(found: Cursor) -> str:
    code = found.text("error_code", characters_max=_NAME_MAX) or "unavailable"
    message = found.text("error_message")
    return f"tool failed: {message or code}"


def _fetched(found: Cursor) -> str:
    """Return the text of a document that was fetched; where it is no text, what it is."""
    document = found.object("content", required=True)
    source = None if document is None else document.object("source", required=True)
    if source is None:
        return ""
    if source.values.get("type") == "text":
        return source.text("data", required=True) or ""
    return f"[{source.text('media_type') or 'a document'} at {found.text('url') or 'an unknown place'}]"
