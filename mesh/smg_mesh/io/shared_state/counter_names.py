"""Counter names of shared state: name by name, what each means."""

from collections.abc import Mapping
from typing import Final

from smg_mesh.io.shared_state.hint_transport import NOTES as HINT_NOTES
from smg_mesh.sync.counter_names import NOTES as REPLICA_NOTES

NOTES: Final[Mapping[str, str]] = {
    **REPLICA_NOTES,
    **HINT_NOTES,
    "rights_difference": "units that were spent beyond a limit, as its owner found when a window was over; always 0",
    "rights_file": "times the record of what was minted was written; detail: saved, failed, dropped or damaged",
    "rights_packets": "datagrams about rights; detail: in or out",
    "rights_refused": "what others said of rights and was not heard; detail: wire, name or disk",
    "state_fault": "inputs that failed because of a mistake of ours",
    "state_file": "times the disk was written; detail: saved, failed, or damaged for files set aside",
    "state_resealed": "secrets that were sealed again, under another key",
}
