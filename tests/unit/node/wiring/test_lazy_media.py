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
_WITHOUT = """
import asyncio, sys
for name in ("numpy", "PIL", "simplejpeg"):
    sys.modules[name] = None
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, MediaPart, Turn
from smg_node.pipeline.prompt.preparation import Preparer
from smg_node.system_clock import SystemClock
from smg_node.wiring.media_parts import LazyMedia, LazyPictures

class Model:
    class renderer:
        known = staticmethod(lambda prompt, now_ms: None)

nothing: Any = None
media = LazyMedia(nothing, nothing, nothing)
picture = MediaPart("image", "data:,x", "messages[0].content[1]")
preparer = Preparer(clock=SystemClock(), threads=ThreadPoolExecutor(1), media=media)
for _ in range(2):
    try:
        asyncio.run(preparer.prompt(ChatPrompt((Turn("user", (picture,)),)), Model()))
    except SmgError as error:
        assert (error.status, error.code) == (400, "unsupported_parameter"), error
        assert error.where == "messages[0].content[1]"
        print(error.message)
print(asyncio.run(LazyPictures(media).shown("m", [{"type": "image", "data": "AAAA"}])))
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
    rooms = ("smg_node.media.", "smg_node.pipeline.media", "smg_node.pipeline.encoding")
    assert {name for name in loaded if f"{name}.".startswith(rooms)} <= _MAY
    assert not loaded & {"numpy", "PIL", "simplejpeg"}


def test_without_the_libraries_pictures_are_refused_and_those_of_tools_are_told_in_words() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True, timeout=120
    )
    first, second, shown = ran.stdout.splitlines()
    assert "pip install 'smg-node[media]'" in first
    assert first == second
    assert shown == "()"
