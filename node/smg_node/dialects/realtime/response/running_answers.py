"""Running answers of a session: one that writes to its conversation, and some beside it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.json_cursor import quoted
from smg_node.dialects.realtime.response.response_presenter import ResponsePresenter


@dataclass(frozen=True, slots=True)
class RunningAnswer:
    """An answer that runs. `owners` are the items its history came from, `event_id` is that of the client's wish."""

    presenter: ResponsePresenter
    owners: Sequence[str]
    event_id: str | None
    is_beside: bool


class RunningAnswers:
    """The answers whose generation goes on, or is about to start, by their ids."""

    __slots__ = ("_beside_max", "_running")

    def __init__(self, *, beside_max: int) -> None:
        self._beside_max = beside_max
        self._running: dict[str, RunningAnswer] = {}

    @property
    def ids(self) -> tuple[str, ...]:
        """Their ids, the oldest first."""
        return tuple(self._running)

    def get(self, response_id: str) -> RunningAnswer | None:
        """Return an answer; None for one that does not run."""
        return self._running.get(response_id)

    def begin(self, response_id: str, answer: RunningAnswer) -> None:
        """Add an answer, for which there is room."""
        self._running[response_id] = answer

    def end(self, response_id: str) -> RunningAnswer:
        """Remove an answer that runs, and return it."""
        return self._running.pop(response_id)

    def so_far(self, item_id: str) -> dict[str, Any] | None:
        """Return the public object of an item that one of them is saying; None for any other."""
        found = (one.presenter.so_far(item_id) for one in self._running.values())
        return next((shown for shown in found if shown is not None), None)

    def check_free(self, *, is_beside: bool) -> None:
        """Raise an error if no other answer of this kind may begin now."""
        alike = [key for key, one in self._running.items() if one.is_beside == is_beside]
        if is_beside and len(alike) >= self._beside_max:
            raise SmgError(
                ErrorKind.RATE_LIMITED,
                f"a session may have at most {self._beside_max} responses at once beside its conversation",
            )
        if not is_beside and alike:
            raise invalid(
                f"Conversation already has an active response in progress: {alike[0]}."
                " Wait until the response is finished before creating a new one.",
                None,
                "conversation_already_has_active_response",
            )

    def to_cancel(self, wanted: str | None) -> str:
        """Return the id of the answer to cancel: the one that is named, or that of the conversation.

        INVALID_REQUEST `response_cancel_not_active` if it does not run.
        """
        code = "response_cancel_not_active"
        if wanted is None:
            for response_id, answer in self._running.items():
                if not answer.is_beside:
                    return response_id
            raise invalid("Cancellation failed: no active response found.", None, code)
        if wanted not in self._running:
            why = f"Cancellation failed: the response {quoted(wanted)} is not active."
            raise invalid(why, "response_id", code)
        return wanted
