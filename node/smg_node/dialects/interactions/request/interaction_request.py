"""Interaction request: a parsed body of `POST /v1/interactions`, not yet joined with its history."""

from dataclasses import dataclass

from smg_node.dialects.responses.request.response_request import Api, ResponseRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionRequest(ResponseRequest):
    """A parsed body; `previous_response_id` is that of its previous interaction, `metadata` its labels.

    `echo` is what the object repeats, by its own names. `shows_thoughts`: whether their texts are
    shown, and not only their signatures.
    """

    api: Api = "interactions"
    shows_thoughts: bool = True

    @property
    def wants_encrypted(self) -> bool:
        """Whether items carry sealed thoughts: never, steps have signatures."""
        return False
