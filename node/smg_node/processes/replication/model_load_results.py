"""Model load results of data processes, reported to the control process, which seldom loads models.

    data ──▶ model.finding      one model: read, or why not; all of them anew with each link

So its `/workers` shows a vocabulary that it has not read, and a worker whose tokenizer no process
can read as failed.
"""

from typing import Final

from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.load_result import Finding
from smg_node.fleet.models.model_registry import Models
from smg_node.processes.ipc.control_bus import Bus
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.state_messages import read, write

FINDING: Final = "model.finding"


def tell_findings(uplink: Uplink, models: Models) -> None:
    """Report to every control process the results found here, now and later."""

    def told(finding: Finding) -> None:
        uplink.tell(FINDING, write(finding))

    def opened() -> None:
        for finding in models.findings():
            told(finding)

    models.watch(told)
    uplink.opened(opened)


def hear_findings(bus: Bus, fleet: Fleet) -> None:
    """Take the data processes' results, and have the workers concerned checked at once."""

    def heard(_process: str, content: bytes) -> None:
        model = fleet.models.hear(read(content, Finding))
        if model is not None:
            for worker in fleet.serving(model):
                worker.wake.set()

    bus.on(FINDING, heard)
