"""Messages as an API of a stand-in, by Anthropic itself and by hostings that speak it as it is."""

from typing import Any

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.anthropic.messages_answer import message_events, whole_message
from smg_chaos.vendor.apis.anthropic.messages_request import read_messages
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.errors.envelopes import inband_body
from smg_chaos.vendor.errors.vendor_error import VendorError
from smg_chaos.vendor.wire.sse import data_first_event, named_event


class MessagesApi:
    """Messages; see `Api`."""

    content_type = "text/event-stream; charset=utf-8"

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        return read_messages(call)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        return whole_message(call, answer)

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as events."""
        write = data_first_event if "data_first" in call.quirks else named_event
        return [
            Frame(write(name, value), tokens)
            for name, value, tokens in message_events(call, answer)
        ]

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as an event."""
        return named_event("error", inband_body(error, "anthropic", request_id))
