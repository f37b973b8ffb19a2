"""Contents API: generateContent and its stream as an API of a stand-in, CRLF framing included."""

from typing import Any

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.apis.google.contents_answer import content_chunks, whole_contents
from smg_chaos.vendor.apis.google.contents_request import read_contents
from smg_chaos.vendor.errors.envelopes import inband_body
from smg_chaos.vendor.errors.vendor_error import VendorError
from smg_chaos.vendor.wire.sse import crlf_event, encode


class ContentsApi:
    """generateContent; see `Api`. Without `alt=sse` the stream is one JSON array."""

    content_type = "text/event-stream"

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        return read_contents(call)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return whole_contents(call, answer)

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as chunks."""
        chunks = content_chunks(call, answer)
        if call.query.get("alt") == "sse":
            return [Frame(crlf_event(value), tokens) for value, tokens in chunks]
        frames = [
            Frame((b"[" if at == 0 else b",\r\n") + encode(value), tokens)
            for at, (value, tokens) in enumerate(chunks)
        ]
        return [*frames, Frame(b"]")]

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as a chunk."""
        body = inband_body(error, "google", request_id)
        return crlf_event(body) if call.query.get("alt") == "sse" else b",\r\n" + encode(body)
