"""Counter names of replicated state: the names of `replica_effects.Count`, and what each means."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NOTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "document_full": "Writes refused because the document has no room; the detail is the document.",
        "rumor_left_out": "Rows that may be lost and were not spread, for want of room; the detail is their kind.",
        "state_epoch": "Documents begun anew, by this node or after another.",
        "state_forgotten": "Times that everything held was dropped after too long an absence.",
        "state_gap": "Updates whose predecessors did not come and were fetched.",
        "state_learned": "Pieces that an exchange changed; the detail is the kind.",
        "state_refused": "Rumors that made no sense; the detail is what they claimed to be.",
    }
)
