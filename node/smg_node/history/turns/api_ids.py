"""API ids: prefixes by which the id of a stored answer tells which API made it."""

from typing import Final

from smg_node.dialects.responses.request.response_request import Api

PREFIXES: Final[dict[Api, str]] = {"responses": "resp", "interactions": "int"}
_INTERACTION: Final = f"{PREFIXES['interactions']}_"


def is_interaction(response_id: str) -> bool:
    """Return whether the Interactions API made it; all others, old ones too, are responses."""
    return response_id.startswith(_INTERACTION)
