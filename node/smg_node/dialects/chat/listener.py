"""Listener: incremental reader of a worker's or vendor's Chat Completions answer: bytes in, events out. Pure.

The worker has rendered, sampled and parsed by itself; its text is not parsed again. No event is
emitted before the first output, so that a worker that fails earlier can be retried. An answer is
whole when its choice has finished, even if the connection breaks then. A value that cannot be read
is an error, because dropping it could drop a part of the answer; unknown keys are ignored.

A choice that stops after a call has called, whatever word it says for that: OpenAI says `stop` where the call
was demanded by name. What a vendor wants back with a thought is kept until the thought is over, and until the
end of the answer if it comes after a call.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import (
    Begin,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    TokenLogprob,
    Usage,
)
from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.chat.state.thought_details import ThoughtDetails, shown_text
from smg_node.dialects.openai.logprobs import CONTENT, THOUGHT
from smg_node.dialects.openai.provider.answer_values import (
    arguments_of,
    broken,
    logprob_rows,
    number_of,
    object_at,
    object_of,
    objects,
    string_at,
    text_of,
)
from smg_node.dialects.openai.provider.quirks import FINISH_OPTIONAL
from smg_node.dialects.sse_reader import EventLines
from smg_node.dialects.worker_errors import error_of
from smg_node.dialects.worker_usage import tier_in, usage_in, worker_usage

_DONE: Final = b"[DONE]"
_REASONS: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "content_filter",
}
NO_REASONS: Final = frozenset({"abort", "cancelled", "error", "insufficient_system_resource"})
"""What servers say of an answer that they gave up."""
_SIGNED: Final = ("extra_content", "google", "thought_signature")
"""Where Gemini's OpenAI door has the signature of a call or a text."""
_NO_ROWS: Final[tuple[TokenLogprob, ...]] = ()


class ChunkReader:
    """Reads one answer. `begin` is emitted before its first output; `taken` are ids of earlier tool
    calls; `quirks` are those of its vendor.

    `out` of any method takes the events. A method that raises has put in those that came before the
    error.
    """

    def __init__(
        self,
        begin: Begin,
        *,
        prompt_tokens: int,
        taken: Collection[str] = (),
        quirks: Collection[str] = (),
    ) -> None:
        """Take an estimate of the prompt's tokens, used if the worker gives no usage."""
        self._begin = begin
        self._prompt_tokens = prompt_tokens
        self._lines = EventLines()
        self._blocks = AnswerBlocks(taken, f"call_{begin.id}_")
        self._details: ThoughtDetails | None = None
        self._may_lack_reason = FINISH_OPTIONAL in quirks
        self._begun = False
        self._chose = False
        self._called = False
        self._refused = False
        self._done = False
        self._finish: Finish | None = None
        self._usage: Usage | None = None
        self._tier = ""

    @property
    def spent(self) -> Usage | None:
        """See `AnswerListener`."""
        return self._usage

    @property
    def deltas(self) -> int:
        """See `AnswerListener`."""
        return self._blocks.deltas

    @property
    def finished(self) -> bool:
        """Whether the answer is whole, even if its usage or the end of the stream is still missing."""
        return self._finish is not None or self._ends_without_reason

    @property
    def _ends_without_reason(self) -> bool:
        return self._may_lack_reason and self._done and self._chose

    def feed(self, piece: bytes, out: list[Event]) -> None:
        """Take the next bytes of a stream. UPSTREAM_FAILED for bytes that are no answer;
        `WorkerError`.
        """
        for event in self._lines.feed(piece):
            self._hear(event, out)

    def feed_whole(self, body: bytes, out: list[Event]) -> None:
        """Take the whole body of an answer that is not streamed; errors as `feed`."""
        self._hear(body, out)
        self._done = True

    def end(self, out: list[Event]) -> None:
        """End the answer; errors as `feed`, and UPSTREAM_FAILED if the answer is not whole."""
        for event in self._lines.finish():
            self._hear(event, out)
        if not self.finished:
            raise broken("the worker ended its answer without a reason")
        finish = self._ending(self._finish or Finish(0, "stop"))
        self._start(out)
        self._prove(out)
        self._blocks.close(out)
        used = self._usage or Usage(self._prompt_tokens, self._blocks.deltas, 0)
        out += [finish, used, End()]

    def _ending(self, finish: Finish) -> Finish:
        """Return how the choice ended, all of it in view."""
        if finish.reason != "stop" or isinstance(finish.matched, str):
            return finish
        if self._called:
            return Finish(0, "tool_calls", finish.matched)
        return Finish(0, "refusal", finish.matched) if self._refused else finish

    def fail(self, error: SmgError, out: list[Event]) -> None:
        """Close open blocks: nothing more comes."""
        self._blocks.abandon(out)
        out.append(Fail(error))

    # ── One chunk ────────────────────────────────────────────────────────────

    def _hear(self, event: bytes, out: list[Event]) -> None:
        if self._done:
            return
        if event.strip() == _DONE:
            self._done = True
            return
        chunk = object_of(event)
        said = error_of(chunk)
        if said is not None:
            raise said
        self._tier = tier_in(chunk) or self._tier
        self._usage = usage_of(usage_in(chunk), self._tier) or self._usage
        for choice in objects(chunk.get("choices")):
            if not choice.get("index"):
                self._choose(choice, out)

    def _choose(self, choice: Mapping[str, Any], out: list[Event]) -> None:
        self._chose = True
        told = choice.get("logprobs")
        rows = (_NO_ROWS, _NO_ROWS)
        if isinstance(told, dict):
            rows = (logprob_rows(told.get(CONTENT)), logprob_rows(told.get(THOUGHT)))
        said = choice.get("delta")
        said = choice.get("message") if said is None else said
        if isinstance(said, dict):
            self._tell(said, rows, out)
        reason = choice.get("finish_reason")
        if not reason:
            return
        if not isinstance(reason, str) or reason in NO_REASONS:
            raise broken("the worker gave up in the middle of its answer")
        matched = choice.get("stop_reason", choice.get("matched_stop"))
        if not isinstance(matched, str | int) or isinstance(matched, bool):
            matched = None
        self._finish = Finish(0, _REASONS.get(reason, "stop"), matched)

    def _tell(
        self,
        said: Mapping[str, Any],
        rows: tuple[tuple[TokenLogprob, ...], tuple[TokenLogprob, ...]],
        out: list[Event],
    ) -> None:
        thought = text_of(said.get("reasoning_content")) or text_of(said.get("reasoning"))
        details = said.get("reasoning_details")
        if details:
            thought = self._detail(details, thought)
        content = said.get("content")
        if isinstance(content, list):
            more, content = _apart(content)
            thought += more
        text, refusal = text_of(content), text_of(said.get("refusal"))
        # What a chunk says of both is rare, and most servers have one list for them: then text has it.
        of_text, of_thought = rows
        if thought:
            self._start(out)
            self._blocks.say("reasoning", thought, out, of_thought or (() if text else of_text))
        if text or not thought:
            self._say("text", text, out, of_text)
        if refusal:
            self._refused = True
            self._say("refusal", refusal, out)
        if "extra_content" in said and not self._called and (proof := string_at(said, *_SIGNED)):
            self._start(out)
            self._blocks.attach("text", Opaque("google", SIGNATURE, proof), out)
        for call in objects(said.get("tool_calls")):
            self._call(call, out)

    def _say(
        self,
        kind: Literal["text", "refusal"],
        text: str,
        out: list[Event],
        rows: tuple[TokenLogprob, ...] = (),
    ) -> None:
        if text:
            self._start(out)
            if self._details is not None and not self._called:
                self._prove(out)
        self._blocks.say(kind, text, out, rows)

    def _call(self, call: Mapping[str, Any], out: list[Event]) -> None:
        self._start(out)
        if self._details is not None and not self._called:
            self._prove(out)
        self._called = True
        function = object_at(call, "function")
        proof = string_at(call, *_SIGNED) if "extra_content" in call else ""
        self._blocks.call(
            number_of(call.get("index")),
            text_of(call.get("id")),
            text_of(function.get("name")),
            arguments_of(function.get("arguments")),
            out,
            (Opaque("google", SIGNATURE, proof),) if proof else (),
        )

    # ── What a vendor wants back with a thought ──────────────────────────────

    def _detail(self, details: object, thought: str) -> str:
        """Take the details of a thought; return its text, which may be in them alone."""
        rows = objects(details)
        if self._details is None:
            self._details = ThoughtDetails()
        self._details.add(rows)
        return thought or "".join(map(shown_text, rows))

    def _prove(self, out: list[Event]) -> None:
        """Put what came with the thought on its block: the thought is over."""
        for opaque in self._details.take() if self._details is not None else ():
            self._blocks.attach("reasoning", opaque, out)

    def _start(self, out: list[Event]) -> None:
        if not self._begun:
            self._begun = True
            out.append(self._begin)


def _apart(parts: list[Any]) -> tuple[str, str]:
    """Return the thought and the text of content in parts, as Mistral sends it."""
    thoughts, texts = list[str](), list[str]()
    for part in objects(parts):
        if part.get("type") == "thinking":
            thoughts.append(text_of(part.get("thinking")))
        else:
            texts.append(text_of(part.get("text")))
    return "".join(thoughts), "".join(texts)


def usage_of(told: Mapping[str, Any] | None, tier: str = "") -> Usage | None:
    """Return what an answer of that tier says that it cost; None if it says nothing."""
    if told is None:
        return None
    used = worker_usage(told)
    if not (used.prompt or used.answer):
        return None
    return Usage(
        used.prompt,
        used.answer,
        used.cached,
        used.thought,
        used.written,
        used.written_long,
        tier,
        used.tools,
        used.cost_pico,
    )
