"""Presenter of Responses: a generation's events as the events and object of a response. Pure.

    created [queued] in_progress { item } ( completed | incomplete | failed )

Every step of it gives a consistent object. The end of a block does not tell how its item ended: an
answer that reached its limit ends its last block like any other. So the end of an item is sent when
the next event is there, which nearly always comes in the same batch. The terminal event is sent by
the caller, after the response was stored. Calls of tools that this node runs go on beside later items.

Several generations may follow one another, as rounds of one response: their usage is added up.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Listed,
    PromptEcho,
    RunEnd,
    RunNote,
    RunStart,
    Usage,
)
from smg_node.dialects.openai.frames import json_text
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, Script
from smg_node.dialects.responses.events.open_item import (
    OpenCall,
    OpenCustomCall,
    OpenItem,
    OpenMessage,
    OpenRefusal,
    OpenThought,
    Seal,
)
from smg_node.dialects.responses.events.open_state import state_item, without_phase
from smg_node.dialects.responses.events.response_object import ResponseObject
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_types import KINDS
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_storage.ids import Chance, new_id, new_pass

if TYPE_CHECKING:
    # Loaded with the first call of a tool that this node runs.
    from smg_node.dialects.responses.events.served.served_output import ServedOutput

ReasoningEvents: TypeAlias = Literal["sdk", "open"]

# How the official SDK and the Open Responses schema call the events of thoughts.
THOUGHT_EVENTS: Final[dict[ReasoningEvents, str]] = {"sdk": "reasoning_text", "open": "reasoning"}


class ResponsePresenter:
    """Presents one response.

    `thread` is the thread of its items' ids, `now_ms` Unix time for them. `outcome` is the
    generation's final status, once it is over, without its time.
    """

    def __init__(
        self,
        ask: ResponseRequest,
        *,
        response_id: str,
        thread: str,
        created_s: int,
        now_ms: int,
        chance: Chance,
        seal: Seal | None = None,
        reasoning_events: ReasoningEvents = "sdk",
    ) -> None:
        self._ask = ask
        self._thread = thread
        self._now_ms = now_ms
        self._chance = chance
        self._seal = seal
        self._thoughts = THOUGHT_EVENTS[reasoning_events]
        self._object = ResponseObject(ask, response_id=response_id, created_s=created_s)
        self._script = Script()
        self._status = "queued"
        self._items: list[ItemDoc | OpenItem] = []
        """In the order in which they began; those that are not done are open ones."""
        self._open: OpenItem | None = None
        # Whether the block of the open item is over, and only how it ended is not known.
        self._held = False
        # The block of the open item, if it is a call of a tool of ours.
        self._owned: int | None = None
        self._served: ServedOutput | None = None
        # The pass of the last block, and its tag, where the model may call tools of ours.
        self._round = 0
        self._pass = ""
        self._refused = False
        self._usage: Usage | None = None
        self._ended: FinalStatus | None = None
        self.outcome: FinalStatus | None = None

    # ── In order ─────────────────────────────────────────────────────────────

    def queue(self) -> list[NumberedEvent]:
        """Return the events of a queued response; `begin` goes on from there."""
        assert self._script.next == 0, "a response starts once"
        return [self._lifecycle("response.created"), self._lifecycle("response.queued")]

    def begin(self, *, queued: bool = False) -> list[NumberedEvent]:
        """Return the events of a response that runs from now on; `queued`: it was queued before."""
        told = self.queue() if queued else []
        fresh = self._script.next == 0
        self._status = "in_progress"
        if fresh:
            told.append(self._lifecycle("response.created"))
        told.append(self._lifecycle("response.in_progress"))
        return told

    def drawn_with(self, begin: Begin) -> None:
        """Show these sampling values from now on, where the client gave none."""
        self._object.drawn_with(temperature=begin.temperature, top_p=begin.top_p)

    def tell(self, events: Sequence[Event]) -> list[NumberedEvent]:
        """Return the public events for these events of the generation; never the terminal one."""
        assert self._ended is None, "nothing follows the end"
        out: list[NumberedEvent] = []
        script = self._script
        for event in events:
            if type(event) is not Delta:
                self._rare(event, out)
                continue
            item = self._open
            assert item is not None, "a delta belongs to an open block"
            text = event.text
            if item.head is None:
                item.slow_delta(event, out)
            elif text:
                sequence = script.next
                script.next = sequence + 1
                item.texts.append(text)
                data = item.head + b"%d" % sequence + item.middle + json_text(text) + item.tail
                out.append(NumberedEvent(sequence, item.delta_type, data))
        return out

    def close(self, ended: FinalStatus) -> list[NumberedEvent]:
        """Return the last events; the very last one is the terminal event. No event may follow."""
        assert self._ended is None, "a response ends once"
        assert self._script.next > 0, "a response begins before it ends"
        out: list[NumberedEvent] = []
        self._settle("completed" if ended.status == "completed" else "incomplete", out)
        if self._served is not None:
            self._served.cut(out)
        self._ended = ended
        self._status = ended.status
        out.append(self._lifecycle(ended.event))
        return out

    def instead(self, ended: FinalStatus) -> NumberedEvent:
        """Return the terminal event with another end, in place of the one that was not sent yet."""
        assert self._ended is not None, "only what has an end can have another"
        self._ended = ended
        self._status = ended.status
        self._script.next -= 1
        return self._lifecycle(ended.event)

    # ── At any moment ────────────────────────────────────────────────────────

    def response(self) -> bytes:
        """Return the whole object as it is now, open items included."""
        items = [one if isinstance(one, ItemDoc) else one.so_far() for one in self._items]
        return self._object.body(self._status, items, ended=self._ended, usage=self._usage)

    def output(self) -> tuple[ItemDoc, ...]:
        """Return the finished items."""
        return tuple(one for one in self._items if isinstance(one, ItemDoc))

    @property
    def usage(self) -> Usage | None:
        """Usage of all generations so far; None before the first has reported it."""
        return self._usage

    # ── Step by step ─────────────────────────────────────────────────────────

    def _rare(self, event: Event, out: list[NumberedEvent]) -> None:
        match event:
            case BlockStart():
                self._settle("completed", out)
                self._start(event, out)
            case BlockEnd():
                assert self._open is not None, "only an open block can end"
                self._held = True
                self._open.opaque = event.opaque
                self._open.annotations = event.annotations
            case Finish():
                self.outcome = FinalStatus.by(event.reason, refused=self._refused)
                whole = self.outcome.status == "completed" or event.reason == "pause"
                self._settle("completed" if whole else "incomplete", out)
            case Fail():
                self.outcome = FinalStatus.failed(event.error)
                self._settle("incomplete", out)
            case Listed() | RunStart() | RunNote() | RunEnd():
                if type(event) is RunStart and event.block == self._owned:
                    self._settle("completed", out)
                self._serving().take(event, out, self._new_id)
            case Usage():
                self._usage = event if self._usage is None else _sum(self._usage, event)
            case Begin():
                self.outcome = None
            case PromptEcho() | End():
                pass
            case Delta():
                raise AssertionError("deltas are not rare")

    def _start(self, event: BlockStart, out: list[NumberedEvent]) -> None:
        self._enter_pass(event)
        if event.owner is not None:
            self._owned = event.block
            self._open = self._serving().opened(event, out, self._new_id)
            return
        self._open = item = self._opened(event)
        self._items.append(item)
        out.extend(item.start())

    def _enter_pass(self, event: BlockStart) -> None:
        """Give the items of each pass, and those of the calls from before the first, ids that tell them as one."""
        if event.round != self._round or (event.owner is not None and not self._pass):
            self._round, self._pass = event.round, new_pass(self._chance)

    def _serving(self) -> "ServedOutput":
        if self._served is None:
            from smg_node.dialects.responses.events.served.served_output import ServedOutput

            self._served = ServedOutput(self._ask, self._script, self._items)
        return self._served

    def _opened(self, event: BlockStart) -> OpenItem:
        index = len(self._items)
        if event.kind == "text":
            wants_logprobs = self._ask.sampling.logprobs is not None
            return OpenMessage(
                self._script, self._new_id("message"), index, logprobs=wants_logprobs
            )
        if event.kind == "reasoning":
            item_id = self._new_id("reasoning")
            return OpenThought(self._script, item_id, index, event=self._thoughts, seal=self._seal)
        if event.kind == "refusal":
            self._refused = True
            return OpenRefusal(self._script, self._new_id("message"), index)
        return self._opened_call(event, index)

    def _opened_call(self, event: BlockStart, index: int) -> OpenItem:
        ask = self._ask
        call_id = event.call_id or f"call_{self._chance.getrandbits(96):024x}"
        namespace, name = ask.namespaced.get(event.name) or ("", event.name)
        custom = event.name in ask.custom_tools
        kind = OpenCustomCall if custom else OpenCall
        item_id = self._new_id("custom_tool_call" if custom else "function_call")
        return kind(self._script, item_id, index, call_id=call_id, name=name, namespace=namespace)

    def _new_id(self, kind: str, tail: str = "") -> str:
        prefix = KINDS[kind].prefix
        return new_id(
            prefix,
            self._thread,
            now_ms=self._now_ms,
            chance=self._chance,
            said_in=self._pass,
            tail=tail,
        )

    def _settle(self, status: str, out: list[NumberedEvent]) -> None:
        """End the open item, if there is one."""
        if self._open is None:
            return
        assert self._held or status == "incomplete", "a block that is open is not completed"
        item, owned = self._open, self._owned
        self._open = self._owned = None
        self._held = False
        if owned is not None:
            self._serving().said(item, owned, out, whole=status == "completed")
        else:
            told, doc = item.finish(status)
            out.extend(told)
            self._items[item.output_index] = doc
        if item.opaque and item.carries_state and not item.holds_state and status == "completed":
            self._carry(item, out)

    def _carry(self, item: OpenItem, out: list[NumberedEvent]) -> None:
        """Put the opaque state of an item that cannot hold it into one of its own."""
        opaque = without_phase(item.opaque)
        item_id, index = self._new_id("reasoning"), len(self._items)
        carried = state_item(self._script, item_id, index, opaque) if opaque else None
        if carried is not None:
            out.extend(carried[0])
            self._items.append(carried[1])

    def _lifecycle(self, kind: str) -> NumberedEvent:
        return self._script.say(kind, {"response": msgspec.Raw(self.response())})


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.completion_tokens + other.completion_tokens,
        one.cached_tokens + other.cached_tokens,
        one.reasoning_tokens + other.reasoning_tokens,
        one.cache_write_tokens + other.cache_write_tokens,
        one.cache_write_long_tokens + other.cache_write_long_tokens,
    )
