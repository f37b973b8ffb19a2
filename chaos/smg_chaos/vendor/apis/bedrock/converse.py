"""Converse as an API of a stand-in, and the Messages that Bedrock's invocations carry."""

from base64 import b64encode
from typing import Any, Final

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.anthropic.messages_answer import message_events, whole_message
from smg_chaos.vendor.apis.anthropic.messages_request import read_messages
from smg_chaos.vendor.apis.bedrock.converse_answer import converse_frames, padded, whole_converse
from smg_chaos.vendor.apis.bedrock.converse_request import read_converse
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.errors.aws_envelope import exception_of
from smg_chaos.vendor.errors.vendor_error import VendorError, invalid
from smg_chaos.vendor.wire.aws_frames import event_frame, exception_frame
from smg_chaos.vendor.wire.sse import encode

_LATENCY_MS: Final = 42


class ConverseApi:
    """Converse; see `Api`."""

    content_type = "application/vnd.amazon.eventstream"

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        return read_converse(call)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return whole_converse(call, answer)

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as frames."""
        return converse_frames(call, answer)

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as an exception frame."""
        return exception_frame(exception_of(error), encode({"message": error.message}))


class InvokeApi(ConverseApi):
    """Messages inside invocations: each event is the base64 of a chunk's bytes."""

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        if call.traits.issuer != "anthropic":
            raise invalid(
                "Malformed input request: this stand-in invokes models of Anthropic only."
            )
        return read_messages(call)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return whole_message(call, answer)

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as chunks; the last event has the metrics."""
        frames = []
        for at, (name, value, tokens) in enumerate(message_events(call, answer)):
            if name == "message_stop":
                value["amazon-bedrock-invocationMetrics"] = _metrics(answer)
            chunk = {"bytes": b64encode(encode(value)).decode()}
            frames.append(Frame(event_frame("chunk", padded(chunk, at)), tokens))
        return frames


def _metrics(answer: Answer) -> dict[str, int]:
    return {
        "inputTokenCount": answer.cost.new,
        "outputTokenCount": answer.cost.answer,
        "invocationLatency": _LATENCY_MS,
        "firstByteLatency": _LATENCY_MS,
        "cacheReadInputTokenCount": answer.cost.cached,
        "cacheWriteInputTokenCount": answer.cost.written,
    }
