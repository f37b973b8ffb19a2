"""Presenter of Completions: events to SSE frames, a whole answer to a body.

All output of a choice is its text, of whatever kind its blocks are: this API has only text. Plain
deltas go through a prepared head and tail per choice, as in Chat Completions.
"""

from collections.abc import Mapping, Sequence
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
    FinishReason,
    Listed,
    PromptEcho,
    RunEnd,
    RunNote,
    RunStart,
    Usage,
)
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.openai.frames import (
    DONE,
    answer_body,
    chunk_closing,
    chunk_opening,
    encode_json,
    json_line,
    json_text,
    usage_closing,
    usage_object,
)
from smg_node.dialects.openai.logprobs import OldShape, prompt_rows
from smg_node.dialects.openai.view import View
from smg_node.dialects.openai_errors import error_frame

_OBJECT: Final = "text_completion"


class CompletionsPresenter:
    """Renders one generation, of one prompt or many."""

    def __init__(self, reading: ParsedBody[View]) -> None:
        request, self._view = reading.request, reading.view
        sampling = request.sampling
        self._choices = request.choices
        self._echo = request.echo
        self._logprobs = sampling.logprobs is not None
        # Asked for by name, not only as the log probabilities of an echo.
        self._prompt_logprobs = (
            sampling.prompt_logprobs is not None and sampling.path("prompt_logprobs") != "logprobs"
        )
        self._opening = b""
        self._closing = chunk_closing(self._view)
        self._prepared = not (self._logprobs or self._view.token_ids or self._view.continuous_usage)
        self._frames: list[tuple[bytes, bytes] | None] = [None] * self._choices
        self._shapes = [OldShape(as_ids=self._view.tokens_as_ids) for _ in range(self._choices)]
        self._prompt_tokens = 0
        self._completion_tokens = 0

    # ── Streamed ─────────────────────────────────────────────────────────────

    def frames(self, events: Sequence[Event]) -> bytes:
        """Return the frames for these events; ends with [DONE] at End, with an error frame at Fail."""
        out: list[bytes] = []
        for event in events:
            if type(event) is Delta:
                prepared = self._frames[event.choice]
                if prepared is None:
                    self._slow_delta(event, out)
                elif event.text:
                    out.append(prepared[0] + json_text(event.text) + prepared[1])
            else:
                self._rare(event, out)
        return b"".join(out)

    def around(self) -> FrameTemplate | None:
        """See `Presenter`."""
        prepared = self._frames[0]
        return None if prepared is None else FrameTemplate(*prepared, json_text)

    def _rare(self, event: Event, out: list[bytes]) -> None:
        match event:
            case Begin():
                self._begin(event)
            case PromptEcho():
                self._echo_prompt(event, out)
            case Finish():
                self._finish(event, out)
            case Usage():
                if self._view.include_usage:
                    usage = encode_json(usage_object(event))
                    out.append(self._opening + b'],"usage":' + usage + b"}\n\n")
            case End():
                out.append(DONE)
            case Fail():
                out.append(error_frame(event.error))
            case BlockStart() | BlockEnd() | Delta():
                pass
            case Listed() | RunStart() | RunNote() | RunEnd():
                """Show nothing: this API has no tools."""

    def _begin(self, event: Begin) -> None:
        self._opening = chunk_opening(_OBJECT, event, self._view)
        self._prompt_tokens = event.prompt_tokens
        if self._prepared:
            tail = b',"logprobs":null,"finish_reason":null}' + self._closing
            for choice in range(self._choices):
                head = self._opening + b'{"index":%d,"text":' % choice
                self._frames[choice] = (head, tail)

    def _echo_prompt(self, event: PromptEcho, out: list[bytes]) -> None:
        ids = b',"prompt_token_ids":' + encode_json(event.ids) if self._view.token_ids else b""
        text, logprobs = "", None
        if self._echo:
            text = event.text
            rows = self._shapes[event.choice].echo(text, event.logprobs)
            logprobs = rows if event.logprobs else None
        if text or ids or (logprobs and self._logprobs):
            out.append(self._frame(event.choice, text, logprobs, more=ids))

    def _slow_delta(self, event: Delta, out: list[bytes]) -> None:
        self._completion_tokens += event.tokens
        shows_ids = bool(event.ids) and self._view.token_ids
        if event.text or event.logprobs or shows_ids:
            ids = b',"token_ids":' + encode_json(event.ids) if shows_ids else b""
            shape = self._shapes[event.choice]
            rows = shape.rows(event.logprobs, event.text)
            logprobs = rows if event.logprobs else None
            out.append(self._frame(event.choice, event.text, logprobs, more=ids))

    def _finish(self, event: Finish, out: list[bytes]) -> None:
        more = b',"matched_stop":' + json_line(event.matched) if self._view.matched_stop else b""
        out.append(self._frame(event.choice, "", None, reason=event.reason, more=more))

    def _frame(
        self,
        choice: int,
        text: str,
        logprobs: dict[str, Any] | None,
        *,
        reason: FinishReason | None = None,
        more: bytes = b"",
    ) -> bytes:
        shown = json_line(logprobs) if self._logprobs else b"null"
        ending = self._closing
        if self._view.continuous_usage:
            ending = usage_closing(self._prompt_tokens, self._completion_tokens)
        return (
            self._opening
            + b'{"index":%d,"text":%b,"logprobs":%b,"finish_reason":%b%b}'
            % (choice, json_text(text), shown, encode_json(_reason(reason)), more)
            + ending
        )

    # ── Whole ────────────────────────────────────────────────────────────────

    def answer(self, answer: Answer) -> bytes:
        """Return the JSON body of an unstreamed answer."""
        choices = [self._choice(index, choice) for index, choice in enumerate(answer.choices)]
        return encode_json(answer_body(_OBJECT, answer.begin, choices, answer.usage, self._view))

    def _choice(self, index: int, choice: Choice) -> dict[str, Any]:
        assert choice.finish is not None, "a whole answer has finished"
        echo = choice.echo
        said = "".join(block.text for block in choice.blocks)
        shape = OldShape(as_ids=self._view.tokens_as_ids)
        logprobs: dict[str, list[Any]] = {}
        text = said
        if echo is not None and self._echo:
            text = echo.text + said
            logprobs = shape.echo(echo.text, echo.logprobs)
        for name, values in shape.rows(choice.logprobs, said).items():
            logprobs[name] = logprobs.get(name, []) + values
        shown: dict[str, Any] = {
            "index": index,
            "text": text,
            "logprobs": logprobs if self._logprobs else None,
            "finish_reason": _reason(choice.finish.reason),
        }
        if self._view.token_ids:
            shown["token_ids"] = choice.ids
            if echo is not None:
                shown["prompt_token_ids"] = echo.ids
        if self._prompt_logprobs and echo is not None:
            shown["prompt_logprobs"] = prompt_rows(echo.logprobs)
        if self._view.matched_stop:
            shown["matched_stop"] = choice.finish.matched
        return shown


_REASONS: Final[Mapping[FinishReason, str]] = {
    "tool_calls": "stop",
    "pause": "stop",
    "refusal": "content_filter",
    "context_window": "length",
}


def _reason(reason: FinishReason | None) -> str | None:
    """Return the dialect's finish reason of a choice; it has none for tool calls."""
    return None if reason is None else _REASONS.get(reason, reason)
