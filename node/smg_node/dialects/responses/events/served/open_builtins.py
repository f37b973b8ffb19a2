"""Open built-in tools: items of searches, code, images and searches for tools, whoever does their work here.

What a search asked for, and what it has found, depends on what the request includes:
`web_search_call.action.sources`, `web_search_call.results`, `file_search_call.results`, `code_interpreter_call.outputs`.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunResult, Source
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.served.open_run import OpenRun
from smg_node.dialects.served_tools.tool_search_forms import (
    ItemStatus,
    search_call_item,
    search_output_item,
)

SOURCES: Final = "web_search_call.action.sources"
WEB_RESULTS: Final = "web_search_call.results"
FILE_RESULTS: Final = "file_search_call.results"
OUTPUTS: Final = "code_interpreter_call.outputs"
_decode: Final = msgspec.json.Decoder().decode


def _object(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call; none where they are no object."""
    try:
        found = _decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return found if type(found) is dict else {}


class OpenBuiltin(OpenRun):
    """Common part of all built-in tools. `include` are the request's wishes."""

    __slots__ = ("_include",)

    def __init__(
        self,
        script: Script,
        item_id: str,
        output_index: int,
        owner: ToolOwner,
        *,
        include: Collection[str] = (),
    ) -> None:
        super().__init__(script, item_id, output_index, owner)
        self._include = include

    def _head(self, status: str) -> dict[str, Any]:
        return {"id": self.item_id, "type": self.kind, "status": status}


class OpenWebSearch(OpenBuiltin):
    """Search of the web, or a look at one page of it."""

    __slots__ = ()
    kind = "web_search_call"
    holds_back = True

    def running(self) -> list[NumberedEvent]:
        """Return the events of a run that starts."""
        return [self._step("searching")]

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        action = web_action({**_object(self.arguments), **result.action})
        if SOURCES in self._include and action["type"] == "search":
            action["sources"] = [{"type": "url", "url": one.url} for one in result.sources]
        values = {**self._head(status), "action": action}
        if WEB_RESULTS in self._include and status != "in_progress":
            values["results"] = [
                {"url": one.url, "title": one.title, "text": one.text} for one in result.sources
            ]
        return values


def web_action(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return `action` of a search, for its arguments or what was done."""
    query, url, pattern = (_text(asked, key) for key in ("query", "url", "pattern"))
    if url and pattern:
        return {"type": "find_in_page", "url": url, "pattern": pattern}
    if url and not query:
        return {"type": "open_page", "url": url}
    queries = _texts(asked, "queries") or [query]
    return {"type": "search", "query": query or queries[0], "queries": queries}


class OpenFileSearch(OpenBuiltin):
    """Search of files."""

    __slots__ = ()
    kind = "file_search_call"
    holds_back = True

    def running(self) -> list[NumberedEvent]:
        """Return the events of a run that starts."""
        return [self._step("searching")]

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        asked = {**_object(self.arguments), **result.action}
        queries = _texts(asked, "queries") or [_text(asked, "query")]
        shown = FILE_RESULTS in self._include and status not in ("in_progress", "incomplete")
        results = [_file_found(one) for one in result.sources] if shown else None
        return {**self._head(status), "queries": queries, "results": results}


def _file_found(source: Source) -> dict[str, Any]:
    return {
        "file_id": source.file_id or source.url,
        "filename": source.title or source.url,
        "score": source.score,
        "text": source.text,
        "attributes": {},
    }


class OpenCode(OpenBuiltin):
    """Run of code. The code is inside JSON, and known when that is whole: so it is sent in one delta."""

    __slots__ = ("_container",)
    kind = "code_interpreter_call"

    def __init__(
        self,
        script: Script,
        item_id: str,
        output_index: int,
        owner: ToolOwner,
        *,
        include: Collection[str] = (),
        container: str = "auto",
    ) -> None:
        super().__init__(script, item_id, output_index, owner, include=include)
        self._container = container

    def running(self) -> list[NumberedEvent]:
        """Return the events of a run that starts."""
        return [self._step("interpreting")]

    def _said(self) -> list[NumberedEvent]:
        code = code_in(self.arguments)
        say, word = self._script.say, "response.code_interpreter_call_code"
        return [
            say(f"{word}.delta", {**self._place(), "delta": code}),
            say(f"{word}.done", {**self._place(), "code": code}),
        ]

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        outputs = None
        if OUTPUTS in self._include and status in ("completed", "failed"):
            outputs = [one for one in result.outputs if one.get("type") in ("logs", "image")]
        return {
            **self._head(status),
            "code": code_in(self.arguments) if self.whole else "",
            "container_id": self._container,
            "outputs": outputs,
        }


def code_in(arguments: str) -> str:
    """Return the code that the arguments of a call hold; the arguments themselves where they are no object with one."""
    code = _object(arguments).get("code")
    return code if type(code) is str else arguments


class OpenImage(OpenBuiltin):
    """Making of an image."""

    __slots__ = ()
    kind = "image_generation_call"

    def running(self) -> list[NumberedEvent]:
        """Return the events of a run that starts."""
        return [self._step("generating")]

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        # There is no word for one that is incomplete.
        values = self._head("failed" if status == "incomplete" else status)
        kind, encoded = _picture_of(result)
        values["result"] = encoded or None
        form = kind.removeprefix("image/")
        if form in ("png", "webp", "jpeg", "gif"):
            values["output_format"] = form
        revised = result.action.get("revised_prompt")
        if type(revised) is str:
            values["revised_prompt"] = revised
        return values


def _picture_of(result: RunResult) -> tuple[str, str]:
    """Return the type of the first picture that a result holds and the picture in base64, "" where there is none."""
    for one in result.content:
        if one.get("type") == "image":
            return str(one.get("mimeType", "")), str(one.get("data", ""))
    for one in result.outputs:
        # Servers also say it in JSON, where it is found by what reads results.
        head, _, encoded = str(one.get("url", "")).partition(";base64,")
        if encoded:
            return head.removeprefix("data:"), encoded
    return "", ""


class OpenToolSearch(OpenBuiltin):
    """Search for tools that the prompt does not list. What it has found is an item of its own."""

    __slots__ = ()
    kind = "tool_search_call"
    holds_back = True

    def after(self, result: RunResult) -> Mapping[str, Any] | None:
        """Return what an item of its own says of the tools found."""
        if result.error is not None or result.cut:
            return None
        return search_output_item("", result, {})

    def _begun(self) -> list[NumberedEvent]:
        return []

    def _ending(self, word: str) -> list[NumberedEvent]:
        return []

    def _values(self, status: str, result: RunResult) -> dict[str, Any]:
        word: ItemStatus = "in_progress" if status == "in_progress" else "incomplete"
        word = "completed" if status == "completed" else word
        return search_call_item(self.item_id, _object(self.arguments), word)


def _text(values: Mapping[str, Any], key: str) -> str:
    value = values.get(key)
    return value if type(value) is str else ""


def _texts(values: Mapping[str, Any], key: str) -> list[str]:
    found = values.get(key)
    return [one for one in found if type(one) is str] if type(found) is list else []
