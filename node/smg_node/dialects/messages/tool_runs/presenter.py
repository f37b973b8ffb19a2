"""Presenter of Messages for requests that ask for tools on this node's side: their runs are shown beside all else.

    { mcp_tool_listing } { block | mcp_tool_use mcp_tool_result | server_tool_use its result }

What this adds to `MessagesPresenter` is the order (`run_order`), the blocks of runs (`shown_runs`), and how often
searches and fetches were made, in the usage.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from smg_node.core.generation.answer import Answer
from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Event,
    Listed,
    RunEnd,
    RunStart,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.generation.served_call_ids import tail_of
from smg_node.core.generation.tool_owner import ToolOwner, ToolShape
from smg_node.core.generation.tool_serving import RunResult
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.message_object import (
    Content,
    Counts,
    Signer,
    arguments_of,
    counts_of,
    tool_use_id,
    whole_message,
)
from smg_node.dialects.messages.open_block import OpenBlock, OpenCall, whole_block
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.tool_runs.block_names import SEALED_RESULTS
from smg_node.dialects.messages.tool_runs.cited_text import (
    CITED_CHARACTERS_MAX,
    CitedText,
    citations_of,
)
from smg_node.dialects.messages.tool_runs.run_order import RunOrder, in_order
from smg_node.dialects.messages.tool_runs.shown_runs import (
    id_prefix,
    listing_block,
    names_of,
    result_block,
    use_block,
)
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.openai.frames import json_line


class _Runs:
    """What is shown of the runs of one answer, streamed or whole."""

    __slots__ = ("_counts", "_found", "_known", "_names", "_signer")

    def __init__(self, request: GenerateRequest, signer: Signer) -> None:
        serving = request.serving
        assert serving is not None, "only such requests have runs"
        self._names: Mapping[ToolShape, str] = names_of(serving)
        self._known = {call.call_id: call.shown_id for call in serving.open_calls}
        """Ids of the calls that the client has already, by those that the model is told."""
        self._signer = signer
        self._counts = {"web_search": 0, "web_fetch": 0}
        self._found: dict[str, str] = {}
        """Texts of what searches found, by their addresses."""

    def known(self, call: BlockStart | BlockEnd) -> str:
        """Return the id of a call that the client has already, from an earlier answer; "" for any other."""
        return self._known.get(call.call_id, "")

    def use(self, owner: ToolOwner, call_id: str) -> dict[str, Any]:
        """Return the block of a call, without its input."""
        return use_block(owner, call_id, self._names)

    def result(self, owner: ToolOwner, call_id: str, result: RunResult) -> dict[str, Any]:
        """Return the block of a result, and count it if it is none of an error."""
        if owner.shape in self._counts and result.error is None:
            self._counts[owner.shape] += 1
        for source in result.sources:
            self._found.setdefault(source.url, source.text[:CITED_CHARACTERS_MAX])
        return result_block(owner, call_id, result, self._sealed)

    def cite(self, block: BlockEnd) -> list[dict[str, Any]]:
        """Return the citations of a text."""
        return citations_of(block, self._found) if block.annotations else []

    def told_in(self, counts: Counts) -> Counts:
        """Return counts with those of searches and fetches, if there were any."""
        if not any(self._counts.values()):
            return counts
        told = (self._counts["web_search"], self._counts["web_fetch"])
        uses = b',"server_tool_use":{"web_search_requests":%d,"web_fetch_requests":%d}' % told
        return counts._replace(created=counts.created + uses)

    def _sealed(self, text: str) -> str:
        return self._signer.sealed(text, SEALED_RESULTS)


class ServedPresenter(MessagesPresenter):
    """Renders one generation of a request that asks for tools on this node's side."""

    def __init__(
        self,
        reading: ParsedBody[MessagesView],
        request_id: str,
        signer: Signer,
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        super().__init__(reading, request_id, signer, monotonic_s)
        self._calls_last = _has_many_calls(reading.request)
        self._order = RunOrder(calls_last=self._calls_last)
        self._runs = _Runs(reading.request, signer)
        self._owners: dict[int, tuple[ToolOwner, str]] = {}
        """Of the calls shown, by their blocks: whose tool, and the id that the client knows."""

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events, as far as their turn has come."""
        out: list[bytes] = []
        for event in self._order.feed(events):
            if isinstance(event, Listed):
                self._list(event, out)
            elif isinstance(event, RunEnd):
                self._show_result(event, out)
            elif isinstance(event, RunStart):
                # A call that runs is whole: its client need not wait for the result to see all of it.
                self._settle(out, followed=True, cut=False)
            else:
                out.append(super().frames((event,)))
        return b"".join(out)

    def _list(self, event: Listed, out: list[bytes]) -> None:
        view = self._view
        if event.server in view.listed and not event.error and not view.silent:
            self._show(listing_block(event), out)

    def _show_result(self, event: RunEnd, out: list[bytes]) -> None:
        self._settle(out, followed=True, cut=False)
        if not (self._over or self._view.silent):
            self._show(self._runs.result(*self._owners.pop(event.block), event.result), out)

    def _show(self, block: dict[str, Any], out: list[bytes]) -> None:
        out += whole_block(self._shown, json_line(block))
        self._shown += 1

    def _opened(self, event: BlockStart, out: list[bytes]) -> OpenBlock:
        owner = event.owner
        if event.kind == "text" and not self._view.silent:
            return CitedText(self._shown, self._runs.cite)
        if owner is None or self._view.silent:
            return super()._opened(event, out)
        if known := self._runs.known(event):
            self._owners[event.block] = owner, known
            return OpenBlock(self._shown)
        self._stated = event.opaque
        index = self._shown
        if event.opaque:
            index = self._carry("next", event.opaque, "", out)
        tail = tail_of(event.call_id)
        call_id = tool_use_id(self._begun, self._calls, id_prefix(owner), tail)
        self._calls += 1
        self._owners[event.block] = owner, call_id
        inside = json_line({**self._runs.use(owner, call_id), "input": {}})
        return OpenCall(index, inside, out, eager=False)

    def _counts(self, usage: Usage) -> Counts:
        return self._runs.told_in(super()._counts(usage))

    # ── Whole ────────────────────────────────────────────────────────────────

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        request, view = self._request, self._view
        content = b"[]" if view.silent else self._content(answer)
        counts = self._runs.told_in(counts_of(answer.usage, view))
        return whole_message(answer, request, view, content, counts)

    def _content(self, answer: Answer) -> bytes:
        choice = answer.choices[0]
        assert choice.finish is not None, "a whole answer has finished"
        content = _ServedContent(answer, self._request, self._view, self._signer, self._runs)
        content.shown += [
            listing_block(listed)
            for listed in answer.listed
            if listed.server in self._view.listed and not listed.error
        ]
        pauses = choice.finish.reason == "pause"
        shown = [*in_order(choice.blocks, choice.runs, pauses=pauses, calls_last=self._calls_last)]
        for place, one in enumerate(shown):
            if isinstance(one, RunEnd):
                content.add_result(one)
            else:
                content.add(one, last=place == len(shown) - 1)
        return content.encoded()


class _ServedContent(Content):
    """Content of a whole answer with runs."""

    __slots__ = ("_owners", "_runs")

    def __init__(
        self,
        answer: Answer,
        request: GenerateRequest,
        view: MessagesView,
        signer: Signer,
        runs: _Runs,
    ) -> None:
        super().__init__(answer, request, view, signer)
        self._runs = runs
        self._owners: dict[int, tuple[ToolOwner, str]] = {}

    def add(self, block: BlockEnd, *, last: bool) -> None:
        """Show a block, unless the client has it already."""
        known = self._runs.known(block)
        if block.owner is not None and known:
            self._owners[block.block] = block.owner, known
            return
        before = len(self.shown)
        super().add(block, last=last)
        citations = self._runs.cite(block)
        if citations and len(self.shown) > before and block.kind == "text":
            self.shown[before]["citations"] = citations

    def add_result(self, event: RunEnd) -> None:
        """Show the result of a call."""
        self.shown.append(self._runs.result(*self._owners.pop(event.block), event.result))

    def _call(self, block: BlockEnd, *, cut: bool) -> dict[str, Any]:
        owner = block.owner
        if owner is None:
            return super()._call(block, cut=cut)
        tail = tail_of(block.call_id)
        call_id = tool_use_id(self._begin, self._calls, id_prefix(owner), tail)
        self._owners[block.block] = owner, call_id
        return {**self._runs.use(owner, call_id), "input": arguments_of(block)}


def _has_many_calls(request: GenerateRequest) -> bool:
    """Whether an answer may have more calls than one at a time."""
    return any(
        isinstance(prompt, ChatPrompt) and prompt.choice.parallel for prompt in request.prompts
    )
