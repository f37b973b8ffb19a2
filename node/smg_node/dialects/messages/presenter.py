"""Presenter of Messages: events to SSE frames, a whole answer to a body.

    message_start { content_block_start { content_block_delta } content_block_stop } message_delta message_stop

Indices count the blocks that are shown, without gaps. The frames of a plain text delta, which is nearly
every one, are head + text + tail. `message_delta` waits for the generation's usage, and replaces the
numbers that `message_start` could only begin with.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import FrameTemplate
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
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.carried_state import Place, envelope_at
from smg_node.dialects.messages.errors import error_frame
from smg_node.dialects.messages.message_object import (
    MESSAGE,
    NONE_CREATED,
    NULL,
    SILENT_ENDING,
    Counts,
    Signer,
    content_of,
    counts_of,
    edits_of,
    ending_of,
    is_eager,
    message_id,
    notes_of,
    tool_use_id,
    trims,
    whole_message,
)
from smg_node.dialects.messages.open_block import (
    EMPTY_TEXT,
    OmittedThought,
    OpenBlock,
    OpenCall,
    OpenText,
    OpenThought,
    envelope_frames,
    tool_use,
)
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.openai.frames import json_text

MESSAGE_START: Final = (
    b'event: message_start\ndata: {"type":"message_start","message":' + MESSAGE + b"}\n\n"
)
MESSAGE_DELTA: Final = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":%b,"stop_sequence":%b,'
    b'"stop_details":%b,"container":null},"usage":{"input_tokens":%d,%b,'
    b'"cache_read_input_tokens":%d,"output_tokens":%d,"output_tokens_details":{"thinking_tokens":%d}}%b}\n\n'
)
NONE_CREATED_SINCE: Final = b'"cache_creation_input_tokens":0'
"""What `message_delta` says of tokens newly cached where none are."""
MESSAGE_STOP: Final = b'event: message_stop\ndata: {"type":"message_stop"}\n\n'


class MessagesPresenter:
    """Renders one generation. `monotonic_s` is given where clients want to be told how long the model
    thinks that they are not shown.
    """

    _open: OpenBlock | None = None
    _ended = False
    """Whether the block that is open has ended, and only how is not known."""
    _shown = 0
    _calls = 0
    _over = False
    _finished: Finish | None = None
    _refused = False
    """Whether a text of the answer declines to answer."""
    _stated: tuple[Opaque, ...] = ()
    """State of the block that is open, as far as it was carried before it."""
    _late: tuple[Opaque, ...] = ()
    _ended_text = ""
    # Set when a stream begins.
    _begun: Begin

    def __init__(
        self,
        reading: ParsedBody[MessagesView],
        request_id: str,
        signer: Signer,
        monotonic_s: Callable[[], float] | None = None,
    ) -> None:
        self._request, self._view = reading.request, reading.view
        self._request_id = request_id
        self._signer = signer
        self._monotonic_s = monotonic_s

    # ── Streamed ─────────────────────────────────────────────────────────────

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; none after `message_stop` or an error."""
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                block = self._open
                assert block is not None or self._over, "a delta belongs to an open block"
                if block is None:
                    continue
                if block.head is None:
                    block.take(event, out)
                elif event.text:
                    out.append(block.head + json_text(event.text) + block.tail)
            elif not self._over:
                _RARE[type(event)](self, event, out)
        return b"".join(out)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        block = self._open
        if block is None or block.head is None:
            return None
        return FrameTemplate(block.head, block.tail, json_text)

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        request, view = self._request, self._view
        content = content_of(answer, request, view, self._signer)
        return whole_message(answer, request, view, content, counts_of(answer.usage, view))

    # ── Event by event ───────────────────────────────────────────────────────

    def _begin(self, event: Begin, out: list[bytes]) -> None:
        view = self._view
        self._begun = event
        out.append(
            MESSAGE_START
            % (
                message_id(event).encode(),
                json_text(view.model),
                b"[]",
                NULL,
                NULL,
                NULL,
                event.prompt_tokens,
                NONE_CREATED,
                0,
                0,
                0,
                json_text(view.service_tier),
                notes_of(view),
            )
        )

    def _nothing(self, _event: Event, _out: list[bytes]) -> None:
        """Show nothing: this API has no place for echoes, nor for runs that nobody asked for."""

    def _start(self, event: BlockStart, out: list[bytes]) -> None:
        self._settle(out, followed=True, cut=False)
        if not self._over:
            self._open = self._opened(event, out)

    def _opened(self, event: BlockStart, out: list[bytes]) -> OpenBlock:
        view, index = self._view, self._shown
        if view.silent:
            return OpenBlock(index)
        if event.kind in ("text", "refusal"):
            self._refused = self._refused or event.kind == "refusal"
            return OpenText(index, trims=trims(self._request))
        if event.kind == "call":
            self._stated = event.opaque
            if event.opaque:
                index = self._carry("next", event.opaque, "", out)
            call_id = tool_use_id(self._begun, self._calls)
            self._calls += 1
            block = tool_use(call_id, event.name)
            return OpenCall(index, block, out, eager=is_eager(event.name, view))
        if self._signer.omitted:
            return OmittedThought(index, self._signer, self._monotonic_s)
        return OpenThought(index, self._signer)

    def _end(self, event: BlockEnd, out: list[bytes]) -> None:
        block = self._open
        assert block is not None, "only an open block can end"
        # No text may come past a block that waits for what follows it.
        block.head = None
        if event.opaque and event.kind != "reasoning" and not self._view.silent:
            stated = self._stated if event.kind == "call" else ()
            self._late = tuple(one for one in event.opaque if one not in stated)
            self._ended_text = event.text
        if block.end(event, out):
            self._close(block, out)
        else:
            self._ended = True

    def _settle(self, out: list[bytes], *, followed: bool, cut: bool) -> None:
        """End the block whose end waited for what follows, if there is one."""
        block = self._open
        if block is None:
            return
        assert self._ended, "a block ends before anything follows it"
        block.settle(out, followed=followed, cut=cut)
        self._close(block, out)
        if block.broken:
            self._fail(Fail(_broken()), out)

    def _close(self, block: OpenBlock, out: list[bytes]) -> None:
        self._open, self._ended = None, False
        self._shown += block.shown
        if self._late:
            late, self._late = self._late, ()
            if block.shown:
                self._carry("last", late, "", out)
            else:
                self._carry("text", late, self._ended_text, out)

    def _carry(self, place: Place, opaque: tuple[Opaque, ...], text: str, out: list[bytes]) -> int:
        """Show what carries the state of another block, if there is any; return the index of the next block."""
        envelope = envelope_at(place, opaque, text)
        if envelope:
            out += envelope_frames(self._shown, envelope)
            self._shown += 1
        return self._shown

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        self._settle(out, followed=False, cut=event.reason == "length")
        self._finished = event
        if not (self._shown or self._view.silent or self._over):
            out += EMPTY_TEXT

    def _usage(self, event: Usage, out: list[bytes]) -> None:
        view, finished = self._view, self._finished
        assert finished is not None, "an answer finishes before its usage is told"
        ending = SILENT_ENDING
        if not view.silent:
            ending = ending_of(finished, self._begun, event, self._request, refused=self._refused)
        out.append(MESSAGE_DELTA % (*ending, *self._counts(event), edits_of(view)))

    def _counts(self, usage: Usage) -> Counts:
        """Return the tokens of the answer as the end of a stream tells them."""
        return counts_of(usage, self._view, NONE_CREATED_SINCE)

    def _stop(self, _event: End, out: list[bytes]) -> None:
        self._over = True
        out.append(MESSAGE_STOP)

    def _fail(self, event: Fail, out: list[bytes]) -> None:
        if self._open is not None:
            self._open.stop(out)
            self._open = None
        self._over = True
        out.append(error_frame(event.error, self._request_id))


def _broken() -> SmgError:
    return SmgError(
        ErrorKind.UPSTREAM_FAILED,
        "the model's arguments of a call are no JSON, and a part of them was streamed already",
        code="invalid_arguments",
    )


# By type, in one step.
_RARE: Final[Mapping[type, Callable[[MessagesPresenter, Any, list[bytes]], None]]] = {
    Begin: MessagesPresenter._begin,
    **dict.fromkeys((PromptEcho, Listed, RunStart, RunNote, RunEnd), MessagesPresenter._nothing),
    BlockStart: MessagesPresenter._start,
    BlockEnd: MessagesPresenter._end,
    Finish: MessagesPresenter._finish,
    Usage: MessagesPresenter._usage,
    End: MessagesPresenter._stop,
    Fail: MessagesPresenter._fail,
}
