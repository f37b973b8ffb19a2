"""Pass stream: the events of one pass of a model, as events of the whole answer. Pure.

Blocks are counted on from those of earlier passes, calls get their owners when they begin, and what is not to be shown is
left out. What a pass says of itself (Begin, Finish, Usage, its failure) is kept for whoever puts the answer together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Fail,
    Finish,
    PromptEcho,
    Usage,
)
from smg_node.core.generation.served_call_ids import ServedCallIds
from smg_node.pipeline.tool_loop.call_ledger import CLIENTS, Judged


class Called(msgspec.Struct, frozen=True):
    """A call that is whole. `block` is its number in the answer, None where it is not shown."""

    block: int | None
    name: str
    call_id: str
    arguments: str
    judged: Judged


class PassStream:
    """Events of one pass. `judge` is asked once for each call, by its name, when it begins.

    `annotate` is asked for the annotations of each text that is over. `apart`: the pass before ended with calls that are
    not shown. `number` counts the passes of the answer, from 1 on. Calls of ours get an id of `call_ids`.
    """

    def __init__(
        self,
        judge: Callable[[str], Judged],
        first_block: int,
        annotate: Callable[[str], tuple[Mapping[str, Any], ...]] = lambda _: (),
        *,
        apart: bool = False,
        number: int = 1,
        call_ids: ServedCallIds | None = None,
    ) -> None:
        self._call_ids = call_ids or ServedCallIds("")
        self._call_id = ""
        """Id of the call that is open."""
        self._number = number
        self._judge = judge
        self._annotate = annotate
        self._judged = CLIENTS
        self._place: int | None = None
        self._apart = False
        """Whether the block that is open stands apart."""
        self.apart = apart
        """Whether the next block does: calls that are not shown stand before it."""
        self.next_block = first_block
        """The number of the answer's next block."""
        self.begin: Begin | None = None
        self.echoes: list[PromptEcho] = []
        self.blocks: list[BlockEnd] = []
        """All blocks that are over, as the model knows them."""
        self.calls: list[Called] = []
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.failure: SmgError | None = None

    def feed(self, batch: Sequence[Event]) -> list[Event]:
        """Take the next events of the pass; return those that the answer says."""
        out: list[Event] = []
        for event in batch:
            match event:
                case Delta():
                    if self._place is not None:
                        out.append(_at(event, self._place))
                case BlockStart():
                    self._start(event, out)
                case BlockEnd():
                    self._end(event, out)
                case _:
                    self._keep(event)
        return out

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        self._judged = judged = self._judge(event.name) if event.kind == "call" else CLIENTS
        self._call_id = event.call_id
        if judged.fate != "client":
            self._call_id = self._call_ids.give(event.call_id)
        if judged.fate == "unseen":
            self._place = None
            self.apart = True
            return
        self._place = place = self.next_block
        self.next_block += 1
        self._apart, self.apart = self.apart, False
        out.append(
            msgspec.structs.replace(
                event,
                block=place,
                call_id=self._call_id,
                owner=judged.owner,
                apart=self._apart,
                round=self._number,
            )
        )

    def _end(self, event: BlockEnd, out: list[Event]) -> None:
        place, judged = self._place, self._judged
        if event.call_id != self._call_id:
            event = msgspec.structs.replace(event, call_id=self._call_id)
        self.blocks.append(event)
        if event.kind == "call":
            called = Called(place, event.name, event.call_id, event.text, judged)
            self.calls.append(called)
        if place is not None:
            if event.kind == "text" and (annotations := self._annotate(event.text)):
                event = msgspec.structs.replace(event, annotations=annotations)
            out.append(
                msgspec.structs.replace(
                    event, block=place, owner=judged.owner, apart=self._apart, round=self._number
                )
            )
        self._place, self._judged = None, CLIENTS

    def _keep(self, event: Event) -> None:
        match event:
            case Begin():
                self.begin = event
            case PromptEcho():
                self.echoes.append(event)
            case Finish():
                self.finish = event
            case Usage():
                self.usage = event
            case Fail():
                self.failure = event.error
            case _:
                # End, which the loop says itself.
                pass


def _at(event: Delta, place: int) -> Delta:
    if event.block == place:
        return event
    return Delta(0, place, event.text, event.tokens, event.logprobs, event.ids)
