"""Final status of a response: completed, incomplete, failed or cancelled, with its reason."""

from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import FinishReason
from smg_node.dialects.openai_errors import error_object

EndStatus: TypeAlias = Literal["completed", "incomplete", "failed", "cancelled"]
IncompleteReason: TypeAlias = Literal["max_output_tokens", "max_messages", "content_filter"]

# The public list of codes is closed, and says much about pictures; of ours, these have a counterpart.
_CODES: Final = {
    ErrorKind.INVALID_REQUEST: "invalid_prompt",
    ErrorKind.TOO_LARGE: "invalid_prompt",
    ErrorKind.RATE_LIMITED: "rate_limit_exceeded",
}


@dataclass(frozen=True, slots=True)
class FinalStatus:
    """A status that is final. `completed_s` is Unix time, 0 while it is not set.

    `reason` is that of an incomplete one, `error` that of a failed one.
    """

    status: EndStatus
    reason: IncompleteReason | None = None
    error: SmgError | None = None
    completed_s: int = 0

    @classmethod
    def completed(cls) -> "FinalStatus":
        """Return the end of an answer that is whole."""
        return cls("completed")

    @classmethod
    def incomplete(cls, reason: IncompleteReason) -> "FinalStatus":
        """Return the end of an answer that was cut short."""
        return cls("incomplete", reason=reason)

    @classmethod
    def failed(cls, error: SmgError) -> "FinalStatus":
        """Return the end of an answer that broke."""
        return cls("failed", error=error)

    @classmethod
    def cancelled(cls) -> "FinalStatus":
        """Return the end of a cancelled answer."""
        return cls("cancelled")

    @classmethod
    def by(cls, reason: FinishReason, *, refused: bool = False) -> "FinalStatus":
        """Return the final status for a generation's finish reason; `refused`: the answer has a refusal in words."""
        if reason in ("length", "context_window"):
            return cls.incomplete("max_output_tokens")
        if reason == "content_filter" or (reason == "refusal" and not refused):
            return cls.incomplete("content_filter")
        if reason == "pause":
            return cls.incomplete("max_messages")
        return cls.completed()

    def at(self, completed_s: int) -> "FinalStatus":
        """Return the same end, at this time."""
        return replace(self, completed_s=completed_s)

    @property
    def event(self) -> str:
        """Type of the terminal event; a cancelled response has none of its own."""
        return f"response.{'incomplete' if self.status == 'cancelled' else self.status}"

    def error_shown(self) -> dict[str, Any] | None:
        """Return `error` of the public object."""
        if self.error is None:
            return None
        shown = error_object(self.error)
        return {"code": _CODES.get(self.error.kind, "server_error"), "message": shown["message"]}
