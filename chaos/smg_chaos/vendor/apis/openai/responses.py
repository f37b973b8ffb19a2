"""Responses as an API of a stand-in."""

from typing import Any

from smg_chaos.vendor.answers.answer import Answer
from smg_chaos.vendor.answers.conversation import Conversation
from smg_chaos.vendor.apis.call import Call, Frame
from smg_chaos.vendor.apis.openai.response_store import ResponseStore
from smg_chaos.vendor.apis.openai.responses_answer import (
    ResponseItems,
    response_object,
    responses_frames,
)
from smg_chaos.vendor.apis.openai.responses_request import items_of, read_responses
from smg_chaos.vendor.errors.envelopes import inband_body
from smg_chaos.vendor.errors.vendor_error import Reason, VendorError
from smg_chaos.vendor.wire.sse import named_event


class ResponsesApi:
    """Responses; see `Api`. It keeps what is stored."""

    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.store = ResponseStore()

    def read(self, call: Call) -> Conversation:
        """Return what the request says."""
        return read_responses(call, self.store)

    def whole(self, call: Call, conversation: Conversation, answer: Answer) -> Any:
        """Return the answer in one piece."""
        items = ResponseItems(call, answer).all()
        response = response_object(call, conversation, answer, items)
        self._keep(call, response)
        return response

    def frames(self, call: Call, conversation: Conversation, answer: Answer) -> list[Frame]:
        """Return the answer as events."""
        if call.body.get("store") is not False:
            self.whole(call, conversation, answer)
        return responses_frames(call, conversation, answer)

    def failure(self, call: Call, error: VendorError, request_id: str) -> bytes:
        """Return an error as an event."""
        body = inband_body(error, call.hosting.family, request_id)
        said = body.get("error") if isinstance(body, dict) else None
        fields = said if isinstance(said, dict) else {"message": error.message, "code": None}
        event = {"type": "error", "sequence_number": 0, "message": "", "param": None, **fields}
        return named_event("error", {**event, "type": "error"})

    def stored(self, name: str, *, remove: bool) -> dict[str, Any]:
        """Return a stored response, or forget it; VendorError if there is none."""
        found = self.store.get(name)
        if found is None:
            raise VendorError(Reason.NOT_FOUND, f"Response with id '{name}' not found.")
        if remove:
            self.store.remove(name)
            return {"id": name, "object": "response", "deleted": True}
        return found.response

    def _keep(self, call: Call, response: dict[str, Any]) -> None:
        if call.body.get("store") is not False:
            self.store.keep(items_of(call, self.store), response)
