"""Checkpoint: the status update from which a client goes on by itself when its stream breaks.

It is no event of the log, and has the number of the one it stands behind. A client goes on from it only
if nothing else was said after it.
"""

from typing import Final

from smg_node.dialects.openai.frames import json_line

STATUS_UPDATE: Final = "interaction.status_update"


def checkpoint_frame(interaction_id: str, number: int, token: str) -> bytes:
    """Return the frame of a checkpoint behind event `number`; of -1, before all events, it names none."""
    place = {"event_id": str(number)} if number >= 0 else {}
    data = json_line(
        {
            "event_type": STATUS_UPDATE,
            **place,
            "interaction_id": interaction_id,
            "status": "in_progress",
            "continuation_token": token,
        }
    )
    return b"event: interaction.status_update\ndata: " + data + b"\n\n"
