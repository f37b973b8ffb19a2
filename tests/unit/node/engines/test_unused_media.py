"""A node that is sent no picture imports nothing of what engines are sent of them."""

import os
import subprocess
import sys

CODE = """
import sys, smg_node.cli, smg_node.wiring.node_process, smg_node.wiring.data_process
from smg_node.core.generation.request import Sampling, token_ids
from smg_node.engines.engine import Contract, EngineRequest
from smg_node.engines.grpc.contract_detection import WIRES
from smg_node.engines.grpc.remote_engine import RemoteEngine
for contract, wire in WIRES.items():
    ids = token_ids([1, 2])
    wire().generate(EngineRequest("a", ids, Sampling(max_tokens=3), True, 1.0), bias_width=None)
    wire().card(b"", b"")
rooms = ("smg_node.engines.contracts.media", "smg_node.engines.shared_memory", "smg_node.engines.grpc.media_call")
print([name for name in sys.modules if name.startswith((*rooms, "numpy", "PIL"))])
"""


def test_requests_and_cards_without_pictures_load_nothing_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "[]", done.stderr
