"""Converse answer: blocks, usage, and events in AWS frames with padding."""

from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer, Cost
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.wire.aws_frames import event_frame
from smg_chaos.vendor.wire.sse import encode

_STOPS: Final = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "refusal": "content_filtered",
    "filter": "guardrail_intervened",
    "stop_sequence": "stop_sequence",
}
_PADDING: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LATENCY_MS: Final = 42
_Block = dict[str, Any]


def padded(value: dict[str, Any], at: int) -> bytes:
    """Return an event's payload with the padding that hides its length."""
    return encode({**value, "p": _PADDING[: 1 + at * 7 % len(_PADDING)]})


def usage_of(cost: Cost) -> dict[str, Any]:
    """Return what an answer cost: the cache stands beside the input, and counts in the total."""
    usage: dict[str, Any] = {
        "inputTokens": cost.new,
        "outputTokens": cost.answer,
        "totalTokens": cost.prompt + cost.answer,
        "cacheReadInputTokens": cost.cached,
        "cacheWriteInputTokens": cost.written,
    }
    if cost.written:
        short = cost.written - cost.written_long
        rows = [
            {"inputTokens": short, "ttl": "5m"},
            {"inputTokens": cost.written_long, "ttl": "1h"},
        ]
        usage["cacheDetails"] = [row for row in rows if row["inputTokens"]]
    return usage


class ConverseBlocks:
    """The blocks of one answer."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer

    def seal(self) -> str:
        """Return the signature of the thought."""
        answer, issuer = self._answer, self._call.traits.issuer
        if answer.draft.redacted:
            return self._call.seals.seal("redacted", issuer, "", answer.seed)
        return self._call.seals.seal("thinking", issuer, answer.thought, answer.seed)

    def call_id(self, at: int) -> str:
        """Return the id of the call with that number."""
        return self._answer.name("tooluse_", at)

    @property
    def signs(self) -> bool:
        """Whether thoughts are signed: those of open models are not."""
        return self._call.traits.issuer == "anthropic"

    def all(self) -> list[_Block]:
        """Return the blocks, whole."""
        answer, blocks = self._answer, list[_Block]()
        if answer.thinks:
            if answer.draft.redacted:
                blocks.append({"reasoningContent": {"redactedContent": self.seal()}})
            else:
                text = {"text": answer.thought}
                if self.signs:
                    text["signature"] = self.seal()
                blocks.append({"reasoningContent": {"reasoningText": text}})
        if answer.text:
            blocks.append({"text": answer.text})
        for at, one in enumerate(answer.calls):
            used = {"toolUseId": self.call_id(at), "name": one.name, "input": one.arguments}
            blocks.append({"toolUse": used})
        return blocks


def whole_converse(call: Call, answer: Answer) -> dict[str, Any]:
    """Return a whole answer."""
    content = ConverseBlocks(call, answer).all()
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": _STOPS[answer.draft.ending],
        "usage": usage_of(answer.cost),
        "metrics": {"latencyMs": _LATENCY_MS},
    }


def converse_frames(call: Call, answer: Answer) -> list[Frame]:
    """Return an answer as frames; the metadata come after messageStop."""
    return _Frames(call, answer).all()


class _Frames:
    """Writer of the frames of one answer."""

    def __init__(self, call: Call, answer: Answer) -> None:
        self._call = call
        self._answer = answer
        self._blocks = ConverseBlocks(call, answer)
        self._frames: list[Frame] = []
        self._index = 0

    def all(self) -> list[Frame]:
        """Return all frames."""
        answer = self._answer
        self._put("messageStart", {"role": "assistant"})
        if self._call.traits.issuer == "open" and answer.thinks:
            self._delta({"text": ""}, 0)
            self._stop()
        if answer.thinks:
            self._thought()
        if answer.text:
            for piece in answer.draft.text:
                self._delta({"text": piece}, 1)
            self._stop()
        for at, one in enumerate(answer.calls):
            start = {"toolUse": {"toolUseId": self._blocks.call_id(at), "name": one.name}}
            self._put("contentBlockStart", {"contentBlockIndex": self._index, "start": start})
            for piece in one.slices:
                self._delta({"toolUse": {"input": piece}}, 1)
            self._stop()
        self._put("messageStop", {"stopReason": _STOPS[answer.draft.ending]})
        metrics = {"latencyMs": _LATENCY_MS}
        self._put("metadata", {"usage": usage_of(answer.cost), "metrics": metrics})
        return self._frames

    def _put(self, name: str, value: dict[str, Any], tokens: int = 0) -> None:
        payload = padded(value, len(self._frames))
        self._frames.append(Frame(event_frame(name, payload), tokens))

    def _delta(self, delta: _Block, tokens: int) -> None:
        value = {"contentBlockIndex": self._index, "delta": delta}
        self._put("contentBlockDelta", value, tokens)

    def _stop(self) -> None:
        self._put("contentBlockStop", {"contentBlockIndex": self._index})
        self._index += 1

    def _thought(self) -> None:
        answer = self._answer
        if answer.draft.redacted:
            self._delta({"reasoningContent": {"redactedContent": self._blocks.seal()}}, 0)
        else:
            for piece in answer.draft.thought if answer.thought else ():
                self._delta({"reasoningContent": {"text": piece}}, 1)
            if self._blocks.signs:
                self._delta({"reasoningContent": {"signature": self._blocks.seal()}}, 0)
        self._stop()
