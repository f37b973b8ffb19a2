"""Without the extra `media` a picture is refused with the words that mend it, and nothing of it is imported."""

import subprocess
import sys

HIDDEN = """
import sys
for name in ("numpy", "PIL", "simplejpeg"):
    sys.modules[name] = None
from smg_node.core.errors import SmgError
from smg_node.media.pixels.decode import DecodeLimits, read_header
try:
    read_header(b"GIF89a", DecodeLimits(pixels_max=9), "messages[0].content[1]")
except SmgError as error:
    assert error.status == 400 and error.code == "unsupported_parameter", error
    assert error.where == "messages[0].content[1]"
    assert "pip install 'smg-node[media]'" in error.message
    print("refused")
"""
LAZY = """
import sys
import smg_node.media.pixels.decode
assert not {"numpy", "PIL", "simplejpeg"} & sys.modules.keys()
print("lazy")
"""


def said(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


def test_without_the_libraries_a_picture_is_refused_with_what_to_install() -> None:
    assert said(HIDDEN) == "refused"


def test_libraries_are_loaded_by_the_first_picture_only() -> None:
    assert said(LAZY) == "lazy"
