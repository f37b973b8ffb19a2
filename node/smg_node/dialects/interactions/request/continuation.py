"""Continuation: the body of a request that goes on with an interaction's stream behind a checkpoint.

Model, tools and all else of the body are those of the first request, and not looked at.
"""

from typing import Any, Final, NamedTuple

from smg_node.core.json_cursor import Cursor, Problems

TOKEN: Final = "continuation_token"


class Continuation(NamedTuple):
    """A wish to go on; `previous_id` is the interaction that issued the token, "" if it is not named."""

    token: str
    previous_id: str
    model: str


def continuation_of(body: dict[str, Any]) -> Continuation:
    """Return the wish in a body that has a token; INVALID_REQUEST names what is wrong."""
    problems = Problems()
    cursor = Cursor(body, problems)
    token = cursor.text(TOKEN, required=True, characters_min=1)
    previous_id = cursor.text("previous_interaction_id")
    model = cursor.text("model")
    if cursor.flag("stream") is not True:
        cursor.problem(TOKEN, "goes on with a stream: it needs stream to be true")
    problems.check()
    return Continuation(token or "", previous_id or "", model or "")
