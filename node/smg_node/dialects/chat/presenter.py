"""Presenter of Chat Completions: events to SSE frames, a whole answer to a body.

Frames of a stream, in this order: per choice one with the role; text, thoughts and calls as they
come; per choice one with `finish_reason`; usage if asked for; `[DONE]`. For a plain delta, which is
nearly every one, a frame is head + text + tail; head and tail are made when its block starts.
Frames that differ in more than their text (log probabilities, ids, usage on every frame) take the
slower path through `_frame`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.answer import Answer, Choice
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
    TokenLogprob,
    Usage,
)
from smg_node.dialects.chat.message import finish_reason, has_refusal, message_of
from smg_node.dialects.chat.open_block import OpenBlock, open_block
from smg_node.dialects.chat.state.shown_state import ShownState, call_state
from smg_node.dialects.chat.view import ChatView
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.frames import (
    DONE,
    answer_body,
    bare_answer_body,
    chunk_closing,
    chunk_opening,
    encode_json,
    json_line,
    json_text,
    usage_closing,
    usage_object,
)
from smg_node.dialects.openai.logprobs import THOUGHT, chat_rows, prompt_rows
from smg_node.dialects.openai_errors import error_frame

_CHUNK: Final = "chat.completion.chunk"
_ANSWER: Final = "chat.completion"
_DETAILS: Final = b'"reasoning_details":'
_CHOICE: Final = (
    b'{"index":0,"message":{"role":"assistant","content":%b,"refusal":null},'
    b'"logprobs":null,"finish_reason":%b}'
)


class ChatPresenter:
    """Renders one generation."""

    _opening = b""
    _closing = b""
    _prompt_tokens = 0
    _completion_tokens = 0

    # Made when a stream begins: whole answers need none of them.
    _prepared: bool
    _open: list[OpenBlock | None]
    _calls: list[int]
    _states: list[ShownState]
    _refused: set[int]
    """Choices with a refusal in words."""

    def __init__(self, reading: ParsedBody[ChatView]) -> None:
        self._request, self._view = reading.request, reading.view
        self._logprobs = reading.request.sampling.logprobs is not None

    # ── Streamed ─────────────────────────────────────────────────────────────

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; ends with [DONE] at End, with an error frame at Fail."""
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                block = self._open[event.choice]
                assert block is not None, "a delta belongs to an open block"
                if block.head is None:
                    self._slow_delta(event, block, out)
                elif event.text:
                    out.append(block.head + json_text(event.text) + block.tail)
            else:
                _RARE[type(event)](self, event, out)
        return b"".join(out)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        block = self._open[0]
        if block is None or block.head is None:
            return None
        return FrameTemplate(block.head, block.tail, json_text)

    def _usage(self, event: Usage, out: list[bytes]) -> None:
        if self._view.include_usage:
            usage = encode_json(usage_object(event))
            out.append(self._opening + b'],"usage":' + usage + b"}\n\n")

    def _over(self, _event: End, out: list[bytes]) -> None:
        out.append(DONE)

    def _echo(self, event: PromptEcho, out: list[bytes]) -> None:
        if self._view.token_ids and event.choice == 0:
            ids = b',"prompt_token_ids":' + encode_json(event.ids)
            out.append(self._frame(0, b"", top=ids))

    def _nothing(self, _event: Event, _out: list[bytes]) -> None:
        """Show nothing of runs that nobody asked for."""

    def _fail(self, event: Fail, out: list[bytes]) -> None:
        out.append(error_frame(event.error))

    def _begin(self, event: Begin, out: list[bytes]) -> None:
        view, choices = self._view, self._request.choices
        self._closing = chunk_closing(view)
        self._prepared = not (self._logprobs or view.token_ids or view.continuous_usage)
        self._open = [None] * choices
        self._calls = [0] * choices
        self._states = [ShownState(self._view) for _ in range(choices)]
        self._refused = set()
        self._opening = chunk_opening(_CHUNK, event, self._view)
        self._prompt_tokens = event.prompt_tokens
        role = b'"role":"assistant","content":""'
        out += [self._frame(choice, role) for choice in range(choices)]

    def _start(self, event: BlockStart, out: list[bytes]) -> None:
        choice = event.choice
        block = open_block(event, self._view, self._calls[choice])
        self._open[choice] = block
        if event.kind == "call":
            self._calls[choice] += 1
        elif event.kind == "refusal":
            self._refused.add(choice)
        if block.announced is not None:
            out.append(self._frame(choice, block.announced))
        if self._prepared and block.before is not None and block.between is None and not block.held:
            block.head = self._opening + b'{"index":%d,"delta":{' % choice + block.before
            block.tail = block.after + b'},"logprobs":null,"finish_reason":null}' + self._closing

    def _slow_delta(self, event: Delta, block: OpenBlock, out: list[bytes]) -> None:
        self._completion_tokens += event.tokens
        if block.held:
            block.ids.extend(event.ids)
            block.logprobs.extend(event.logprobs)
            return
        shows_text = event.text and block.before is not None
        rows = event.logprobs if block.rows else ()
        if shows_text or rows or (event.ids and self._view.token_ids):
            # Text that is empty or hidden may still have tokens to show.
            delta = block.delta(event.text)
            out.append(self._frame(event.choice, delta, rows, event.ids, block.rows))

    def _end(self, event: BlockEnd, out: list[bytes]) -> None:
        block = self._open[event.choice]
        assert block is not None, "only an open block can end"
        self._open[event.choice] = None
        if block.held:
            delta = block.delta(event.text)
            out.append(self._frame(event.choice, delta, block.logprobs, block.ids, block.rows))
        elif event.kind == "call" and not event.text and block.before is not None:
            out.append(self._frame(event.choice, block.delta("{}")))
        details = self._states[event.choice].add(event)
        if event.opaque:
            self._state(event, block, details, out)

    def _state(
        self, event: BlockEnd, block: OpenBlock, details: list[dict[str, Any]], out: list[bytes]
    ) -> None:
        """Show what a vendor wants back with a block."""
        if details:
            out.append(self._frame(event.choice, _DETAILS + json_line(details)))
        if event.kind == "call" and not (self._view.legacy_call or block.signed):
            extra = call_state(event.opaque)
            if extra is not None:
                # The official client wants each piece of a call to be of its kind.
                custom = event.name in self._view.custom_tools
                nothing = {"custom": {"input": ""}} if custom else {"function": {"arguments": ""}}
                call = {"index": self._calls[event.choice] - 1, **nothing, "extra_content": extra}
                out.append(self._frame(event.choice, b'"tool_calls":' + json_line([call])))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        rest = self._states[event.choice].rest()
        if rest:
            out.append(self._frame(event.choice, _DETAILS + json_line(rest)))
        refused = event.choice in self._refused
        reason = finish_reason(event.reason, self._view, refused=refused)
        fields = b'"finish_reason":%b' % json_text(reason)
        if self._view.matched_stop:
            fields += b',"matched_stop":' + json_line(event.matched)
        out.append(
            self._opening
            + b'{"index":%d,"delta":{},"logprobs":null,' % event.choice
            + fields
            + b"}"
            + self._ending()
        )

    def _frame(
        self,
        choice: int,
        delta: bytes,
        logprobs: Sequence[TokenLogprob] = (),
        ids: Sequence[int] = (),
        listed: str = "",
        *,
        top: bytes = b"",
    ) -> bytes:
        """Return a frame around the inside of a delta, whose log probabilities are in the list `listed`;
        `top` are more fields of the chunk itself.
        """
        shown = b"null"
        if self._logprobs and logprobs:
            both = ((), logprobs) if listed == THOUGHT else (logprobs, ())
            shown = json_line(chat_rows(*both, as_ids=self._view.tokens_as_ids))
        more = b',"token_ids":' + encode_json(ids) if self._view.token_ids and ids else b""
        return (
            self._opening
            + b'{"index":%d,"delta":{' % choice
            + delta
            + b'},"logprobs":'
            + shown
            + b',"finish_reason":null'
            + more
            + b"}]"
            + top
            + self._ending()[1:]
        )

    def _ending(self) -> bytes:
        if self._view.continuous_usage:
            return usage_closing(self._prompt_tokens, self._completion_tokens)
        return self._closing

    # ── Whole ────────────────────────────────────────────────────────────────

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        first = answer.choices[0]
        if self._view.bare and not self._logprobs and len(answer.choices) == 1:
            blocks, finish = first.blocks, first.finish
            assert finish is not None, "a whole answer has finished"
            if len(blocks) == 1 and first.echo is None and is_bare(blocks[0], answer.usage):
                text, reason = blocks[0].text, finish_reason(finish.reason, self._view)
                return bare_answer_body(_ANSWER, answer.begin, text, reason, answer.usage, _CHOICE)
        choices = [self._choice(index, choice) for index, choice in enumerate(answer.choices)]
        body = answer_body(_ANSWER, answer.begin, choices, answer.usage, self._view)
        echo = first.echo
        if echo is not None and self._view.token_ids:
            body["prompt_token_ids"] = echo.ids
        if echo is not None and self._request.sampling.prompt_logprobs is not None:
            body["prompt_logprobs"] = prompt_rows(echo.logprobs)
        return encode_json(body)

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        assert choice.finish is not None, "a whole answer has finished"
        shown: dict[str, Any] = {
            "index": index,
            "message": message_of(choice, self._view),
            "logprobs": None,
            "finish_reason": finish_reason(
                choice.finish.reason, self._view, refused=has_refusal(choice)
            ),
        }
        if self._logprobs:
            shown["logprobs"] = self._rows_of(choice)
        if self._view.token_ids:
            shown["token_ids"] = choice.ids
        if self._view.matched_stop:
            shown["matched_stop"] = choice.finish.matched
        return shown

    def _rows_of(self, choice: Choice) -> dict[str, Any]:
        as_ids = self._view.tokens_as_ids
        if not self._view.separate_reasoning:
            return chat_rows(choice.logprobs_of("text", "reasoning"), (), as_ids=as_ids)
        text, thought = choice.logprobs_of("text"), choice.logprobs_of("reasoning")
        return chat_rows(text, thought, as_ids=as_ids)


def is_bare(block: BlockEnd, usage: Usage) -> bool:
    """Whether an answer is a text, and nothing that its usual form has no place for."""
    plain = block.kind == "text" and not (block.opaque or block.annotations)
    return plain and not (usage.cache_write_tokens or usage.image_tokens)


# By type, in one step: a match over classes takes 0.4 us.
_RARE: Final[Mapping[type, Callable[[ChatPresenter, Any, list[bytes]], None]]] = {
    Begin: ChatPresenter._begin,
    PromptEcho: ChatPresenter._echo,
    BlockStart: ChatPresenter._start,
    BlockEnd: ChatPresenter._end,
    Finish: ChatPresenter._finish,
    Usage: ChatPresenter._usage,
    End: ChatPresenter._over,
    **dict.fromkeys((Listed, RunStart, RunNote, RunEnd), ChatPresenter._nothing),
    Fail: ChatPresenter._fail,
}
