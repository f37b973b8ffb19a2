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
HIDDEN_SERVICE = """
import asyncio, base64, sys
for name in ("numpy", "PIL", "simplejpeg"):
    sys.modules[name] = None
import msgspec
from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, token_ids
from smg_node.media.families.registry import family_of
from smg_node.pipeline.media.asked_media import AskedMedia
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.pipeline.media.media_service import MediaService
from smg_node.prompts.media_forms import MediaForms
from smg_node.telemetry.metrics.cells import Cells
from smg_node.telemetry.metrics.declared.media import MEDIA_METRICS

class Tokens:
    def token_id(self, text):
        return 9

async def main():
    config = msgspec.json.encode({"model_type": "qwen3_vl", "image_token_id": 9})
    family = family_of({"config.json": config}, overrides={}, tokens=Tokens())
    cells = Cells(MEDIA_METRICS, before=lambda: None)
    service = MediaService(MediaOptions(), lambda _: (), None, cells=cells, monotonic_s=lambda: 0.0)
    url = "data:image/gif;base64," + base64.b64encode(b"GIF89a").decode()
    parts = [MediaPart("image", url, "messages[0].content[1]")]
    asked = AskedMedia(parts, MediaForms("<p>"), family, Tokens(), (), MediaOptions())
    try:
        await service.intake.media(asked, token_ids([1, 9]), "tiny")
    except SmgError as error:
        assert error.status == 400 and error.where == "messages[0].content[1]", error
        assert "pip install 'smg-node[media]'" in error.message
        print("refused", service.inflight_bytes)
    service.close()

asyncio.run(main())
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


def test_without_the_libraries_what_works_on_pictures_refuses_them_at_their_path() -> None:
    assert said(HIDDEN_SERVICE) == "refused 0"


def test_libraries_are_loaded_by_the_first_picture_only() -> None:
    assert said(LAZY) == "lazy"
