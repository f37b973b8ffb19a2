"""Chat Completions as an API of a stand-in."""

from typing import Any

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.apis.openai.chat_answer import chat_frames, whole_chat
from smg_chaos.vendor.apis.openai.chat_request import read_chat
from smg_chaos.vendor.errors.envelopes import inband_body
from smg_chaos.vendor.errors.vendor_error import VendorError
from smg_chaos.vendor.wire.sse import data_event


class ChatApi:
    """Chat Completions; see `Api`."""

    content_type = "text/event-stream"

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        return read_chat(call)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return whole_chat(call, conversation, answer)

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as chunks."""
        return chat_frames(call, conversation, answer)

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as a chunk."""
        return data_event(inband_body(error, call.hosting.family, request_id))
