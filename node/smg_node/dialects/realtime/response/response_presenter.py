"""Response presenter: one answer's generation events as the events of a realtime response. Pure.

    response.created [rate_limits.updated] { item } response.done

The end of a block does not tell how its item ended: an answer that reached its limit ends its last block like any other. So
an item's end is said with the next event, which nearly always comes in the same batch. Thoughts have no item: they stand, unseen,
before the item that they led to. A refusal is a message like any other, and so is each text.
"""

from collections.abc import Sequence
from typing import Any, Final

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.core.ports import Rng
from smg_node.dialects.opaque_envelope import pack
from smg_node.dialects.realtime.conversation import Conversation
from smg_node.dialects.realtime.event_script import EventScript
from smg_node.dialects.realtime.response.open_output import OpenCall, OpenMessage, OpenOutput
from smg_node.dialects.realtime.response.response_object import (
    CancelReason,
    ResponseHead,
    status_details,
    usage_object,
)
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.open_state import without_phase
from smg_node.dialects.responses.items.item_document import ItemDoc, item_from
from smg_node.dialects.responses.items.item_state import LAST
from smg_storage.ids import new_id, new_pass

_REASONING: Final = "reasoning"


class ResponsePresenter:
    """Tells one answer, into its conversation or beside it. `ended` once response.done was said: nothing follows."""

    def __init__(
        self,
        head: ResponseHead,
        script: EventScript,
        conversation: Conversation | None,
        *,
        thread: str,
        chance: Rng,
    ) -> None:
        self._head = head
        self._script = script
        self._conversation = conversation
        self._thread = thread
        self._chance = chance
        # The pass of the last block, and its tag, where passes are counted.
        self._round = 0
        self._pass = ""
        self.is_begun = False
        self.ended = False
        self._output: list[dict[str, Any]] = []
        self._open: OpenOutput | None = None
        # Whether the block of the open item is over, and only how it ended is not known.
        self._held = False
        self._thought: list[str] = []
        self._before: list[ItemDoc] = []
        self._outcome: FinalStatus | None = None
        self._refused = False
        self._usage: Usage | None = None
        self._prompt_tokens = 0
        self._said_tokens = 0

    def begin(self) -> bytes:
        """Return response.created."""
        assert not self.is_begun, "a response begins once"
        self.is_begun = True
        shown = self._head.shown("in_progress")
        return self._script.say("response.created", {"response": shown})

    def tell(self, events: Sequence[Event], *, now_ms: int) -> list[bytes]:
        """Return the frames for these events; what follows the end of the response is ignored."""
        said: list[bytes] = []
        for event in events:
            if self.ended:
                break
            if type(event) is Delta:
                self._said_tokens += event.tokens
                if not event.text:
                    continue
                if self._open is None:
                    self._thought.append(event.text)
                else:
                    said.append(self._open.delta(event.text))
            else:
                self._rare(event, said, now_ms)
        return said

    def so_far(self, item_id: str) -> dict[str, Any] | None:
        """Return the public object of the item that is being said; None for any other."""
        item = self._open
        return None if item is None or item.item_id != item_id else item.so_far()

    def cancel(self, reason: CancelReason) -> list[bytes]:
        """Return the frames that end the response now; what is open ends as incomplete."""
        said: list[bytes] = []
        self._settle("incomplete", said, 0)
        self._end(FinalStatus.cancelled(), said, reason)
        return said

    def _rare(self, event: Event, said: list[bytes], now_ms: int) -> None:
        match event:
            case Begin():
                self._prompt_tokens = event.prompt_tokens
            case BlockStart():
                self._settle("completed", said, now_ms)
                self._start(event, said, now_ms)
            case BlockEnd():
                self._end_block(event, now_ms)
            case Finish():
                self._outcome = FinalStatus.by(event.reason, refused=self._refused)
                whole = self._outcome.status == "completed" or event.reason == "pause"
                self._settle("completed" if whole else "incomplete", said, now_ms)
            case Usage():
                self._usage = event
            case End():
                self._settle("completed", said, now_ms)
                self._end(self._outcome or FinalStatus.completed(), said)
            case Fail():
                self._settle("incomplete", said, now_ms)
                self._end(FinalStatus.failed(event.error), said)
            case _:
                # Echoes of prompts and runs of tools on this side are of nothing that such a request can ask for.
                pass

    def _start(self, event: BlockStart, said: list[bytes], now_ms: int) -> None:
        if event.round != self._round:
            self._round, self._pass = event.round, new_pass(self._chance)
        if event.kind == _REASONING:
            self._thought = []
            return
        self._refused = self._refused or event.kind == "refusal"
        before, self._before = tuple(self._before), []
        place: dict[str, Any] = {
            "response_id": self._head.id,
            "item_id": self._new_id("item", now_ms),
            "output_index": len(self._output),
            "before": before,
        }
        if event.kind == "call":
            call_id = event.call_id or f"call_{self._chance.getrandbits(96):024x}"
            self._open = OpenCall(
                self._script, self._conversation, call_id=call_id, name=event.name, **place
            )
        else:
            self._open = OpenMessage(self._script, self._conversation, **place)
        said += self._open.start()

    def _end_block(self, event: BlockEnd, now_ms: int) -> None:
        if event.kind != _REASONING:
            assert self._open is not None, "only an open block can end"
            self._held = True
            # Only a text has a phase, here as in Responses.
            keeps = event.kind != "refusal"
            self._open.opaque = event.opaque if keeps else without_phase(event.opaque)
            return
        text = "".join(self._thought)
        self._thought = []
        # An empty one is kept too: turns are divided at thoughts, here as in Responses.
        packed = pack(event.opaque) if event.opaque else ""
        self._before.append(self._hidden(text, packed, now_ms))

    def _hidden(self, text: str, packed: str, now_ms: int) -> ItemDoc:
        """Return a thought as Responses keeps it, with what its vendor wants back."""
        return item_from(
            {
                "id": self._new_id("rs", now_ms),
                "type": _REASONING,
                "summary": [],
                "content": [{"type": "reasoning_text", "text": text}] if text else [],
                "status": "completed",
                **({"encrypted_content": packed} if packed else {}),
            }
        )

    def _settle(self, status: str, said: list[bytes], now_ms: int) -> None:
        """End the open item, if there is one."""
        item = self._open
        if item is None:
            return
        assert self._held or status == "incomplete", "a block that is open is not completed"
        self._open, self._held = None, False
        after = self._carried(item.opaque, now_ms) if status == "completed" else ()
        told, finished = item.finish(status, after)
        said += told
        self._output.append(dict(finished.shown))

    def _carried(self, opaque: tuple[Opaque, ...], now_ms: int) -> tuple[ItemDoc, ...]:
        """Return the state of a message or a call that cannot hold it, as an item behind it."""
        stays = without_phase(opaque)
        packed = pack(stays, place=LAST) if stays else ""
        return (self._hidden("", packed, now_ms),) if packed else ()

    def _end(
        self, ended: FinalStatus, said: list[bytes], cancelled_by: CancelReason | None = None
    ) -> None:
        assert not self.ended, "a response ends once"
        self.ended = True
        usage = self._usage or Usage(self._prompt_tokens, self._said_tokens, 0)
        shown = self._head.shown(
            ended.status,
            self._output,
            details=status_details(ended, cancelled_by),
            usage=usage_object(usage),
        )
        said.append(self._script.say("response.done", {"response": shown}))

    def _new_id(self, prefix: str, now_ms: int) -> str:
        return new_id(prefix, self._thread, now_ms=now_ms, chance=self._chance, said_in=self._pass)
