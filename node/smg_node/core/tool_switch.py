"""Tool switch: the header by which a request asks for tools on this node's side, `x-smg-mcp: enabled`. Pure."""

from collections.abc import Mapping
from typing import Final

SWITCH: Final = "x-smg-mcp"
ON: Final = "enabled"


def is_switched_on(headers: Mapping[str, str]) -> bool:
    """Whether the headers, names in lower case, ask for tools on this node's side."""
    return headers.get(SWITCH, "").strip().lower() == ON
