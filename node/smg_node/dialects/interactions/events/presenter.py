"""Presenter of Interactions: a generation's events as the events and object of an interaction. Pure.

    created [status_update] { step.start { step.delta } step.stop } [error] completed

Every step of it gives a consistent object. The end of a block does not tell how its step ended, so
that is sent when the next event is there, which nearly always comes in the same batch. The last
event is sent by the caller, after the interaction was stored.
"""

from collections.abc import Sequence

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
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.interactions.events.interaction_object import (
    OBJECT,
    InteractionObject,
    errors_shown,
    last_event,
    time_text,
)
from smg_node.dialects.interactions.events.open_step import (
    DELTA,
    Numbers,
    OpenCall,
    OpenOutput,
    OpenStateStep,
    OpenStep,
    OpenThought,
    Sign,
)
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.openai.frames import json_text
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_types import KINDS
from smg_storage.ids import Chance, new_id


class InteractionPresenter:
    """Presents one interaction.

    `thread` is the thread of its items' ids, `now_ms` Unix time for them. `outcome` is the
    generation's final status, once it is over, without its time.
    """

    def __init__(
        self,
        ask: InteractionRequest,
        *,
        interaction_id: str,
        thread: str,
        created_s: int,
        now_ms: int,
        chance: Chance,
        sign: Sign,
    ) -> None:
        self._ask = ask
        self._id = interaction_id
        self._thread = thread
        self._created_s = created_s
        self._now_ms = now_ms
        self._chance = chance
        self._sign = sign
        self._object = InteractionObject(ask, interaction_id=interaction_id, created_s=created_s)
        self._numbers = Numbers()
        self._status = "queued"
        self._items: list[ItemDoc] = []
        self._open: OpenStep | None = None
        # Whether the block of the open step is over, and only how it ended is not known.
        self._held = False
        self._refused = False
        self._usage: Usage | None = None
        self._ended: FinalStatus | None = None
        self.outcome: FinalStatus | None = None

    # ── In order ─────────────────────────────────────────────────────────────

    def queue(self) -> list[NumberedEvent]:
        """Return the events of a queued interaction; `begin` goes on from there."""
        assert self._numbers.next == 0, "an interaction starts once"
        return [self._created()]

    def begin(self) -> list[NumberedEvent]:
        """Return the events of an interaction that runs from now on."""
        fresh = self._numbers.next == 0
        self._status = "in_progress"
        if fresh:
            return [self._created()]
        fields = {"interaction_id": self._id, "status": "in_progress"}
        return [self._numbers.say("interaction.status_update", fields)]

    def drawn_with(self, begin: Begin) -> None:
        """Do nothing: the object shows only what the client set."""

    def tell(self, events: Sequence[Event]) -> list[NumberedEvent]:
        """Return the public events for these events of the generation; never the last one."""
        assert self._ended is None, "nothing follows the end"
        out: list[NumberedEvent] = []
        numbers = self._numbers
        for event in events:
            if type(event) is not Delta:
                self._rare(event, out)
                continue
            step = self._open
            assert step is not None, "a delta belongs to an open block"
            text = event.text
            if not text:
                continue
            if step.head is None:
                told = step.late_delta(event)
                if told is not None:
                    out.append(told)
                continue
            number = numbers.next
            numbers.next = number + 1
            step.texts.append(text)
            data = step.head + b"%d" % number + step.middle + json_text(text) + step.tail
            out.append(NumberedEvent(number, DELTA, data))
        return out

    def close(self, ended: FinalStatus) -> list[NumberedEvent]:
        """Return the last events; the very last one ends the stream. No event may follow."""
        assert self._ended is None, "an interaction ends once"
        assert self._numbers.next > 0, "an interaction begins before it ends"
        out: list[NumberedEvent] = []
        self._settle("completed" if ended.status == "completed" else "incomplete", out)
        self._ended = ended
        self._status = ended.status
        errors = errors_shown(ended.error)
        out.extend(self._numbers.say("error", {"error": error}) for error in errors)
        out.append(last_event(self.response(), self._numbers.next))
        return out

    def instead(self, ended: FinalStatus) -> NumberedEvent:
        """Return the last event with another end, in place of the one that was not sent yet."""
        assert self._ended is not None, "only what has an end can have another"
        self._ended = ended
        self._status = ended.status
        return last_event(self.response(), self._numbers.next)

    # ── At any moment ────────────────────────────────────────────────────────

    def response(self) -> bytes:
        """Return the kept document as it is now, an open step included."""
        items = self._items
        if self._open is not None:
            items = [*items, self._open.so_far()]
        return self._object.kept(self._status, items, ended=self._ended, usage=self._usage)

    def output(self) -> tuple[ItemDoc, ...]:
        """Return the finished items."""
        return tuple(self._items)

    # ── Step by step ─────────────────────────────────────────────────────────

    def _rare(self, event: Event, out: list[NumberedEvent]) -> None:
        match event:
            case BlockStart():
                self._settle("completed", out)
                self._open = self._opened(event)
                out.append(self._open.start())
            case BlockEnd():
                assert self._open is not None, "only an open block can end"
                self._held = True
                self._open.opaque = event.opaque
            case Finish():
                self.outcome = FinalStatus.by(event.reason, refused=self._refused)
                whole = self.outcome.status == "completed"
                self._settle("completed" if whole else "incomplete", out)
            case Fail():
                self.outcome = FinalStatus.failed(event.error)
                self._settle("incomplete", out)
            case Usage():
                self._usage = event
            case Begin() | PromptEcho() | End():
                pass
            case Listed() | RunStart() | RunNote() | RunEnd():
                # No reader of this API asks for tools of ours.
                pass
            case Delta():
                raise AssertionError("deltas are not rare")

    def _opened(self, event: BlockStart) -> OpenStep:
        numbers, index = self._numbers, len(self._items)
        if event.kind in ("text", "refusal"):
            self._refused = self._refused or event.kind == "refusal"
            return OpenOutput(numbers, self._new_id("message"), index)
        if event.kind == "reasoning":
            item_id = self._new_id("reasoning")
            shown = self._ask.shows_thoughts
            return OpenThought(numbers, item_id, index, sign=self._sign, shown=shown)
        call_id = event.call_id or f"call_{self._chance.getrandbits(96):024x}"
        item_id = self._new_id("function_call")
        return OpenCall(numbers, item_id, index, call_id=call_id, name=event.name)

    def _new_id(self, kind: str) -> str:
        prefix = KINDS[kind].prefix
        return new_id(prefix, self._thread, now_ms=self._now_ms, chance=self._chance)

    def _settle(self, status: str, out: list[NumberedEvent]) -> None:
        """End the open step, if there is one."""
        if self._open is None:
            return
        assert self._held or status == "incomplete", "a block that is open is not completed"
        step = self._open
        told, item = step.finish(status)
        out.extend(told)
        self._items.append(item)
        self._open = None
        self._held = False
        if step.opaque and not isinstance(step, OpenThought) and OpenStateStep.holds(step.opaque):
            self._carry(step.opaque, out)

    def _carry(self, opaque: tuple[Opaque, ...], out: list[NumberedEvent]) -> None:
        """Tell the opaque state of the step before in a step of its own."""
        numbers, item_id, index = self._numbers, self._new_id("reasoning"), len(self._items)
        carrier = OpenStateStep(numbers, item_id, index, sign=self._sign, shown=False)
        carrier.opaque = opaque
        out.append(carrier.start())
        told, item = carrier.finish("completed")
        out.extend(told)
        self._items.append(item)

    def _created(self) -> NumberedEvent:
        shown = {
            "id": self._id,
            "object": OBJECT,
            "status": self._status,
            "model": self._ask.model,
            "created": time_text(self._created_s),
        }
        return self._numbers.say("interaction.created", {"interaction": shown})
