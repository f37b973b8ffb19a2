"""Lazy media: a node that serves texts loads nothing that works on pictures."""

import json
import subprocess
import sys

_PROGRAM = """
import json, sys
import smg_node.wiring.node_process, smg_node.wiring.data_process
import smg_node.fleet.models.model_assembly
print(json.dumps(sorted(sys.modules)))
"""
_MAY = {
    "smg_node.media",
    "smg_node.media.engine_media",
    "smg_node.media.seeing",
}
"""What engines and models are described with."""


def test_a_node_without_pictures_loads_nothing_for_them() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = set(json.loads(ran.stdout))
    rooms = ("smg_node.media.", "smg_node.pipeline.media")
    assert {name for name in loaded if f"{name}.".startswith(rooms)} <= _MAY
    assert not loaded & {"numpy", "PIL", "simplejpeg"}
