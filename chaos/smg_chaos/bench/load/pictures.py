"""Pictured requests: chats about a JPEG, each of them new to whoever tells pictures apart by their bytes, or all the same.

The picture is made once, with as much detail as a photograph has (about a quarter of a byte a pixel). A new one is the
same picture with another comment in its file, so that making it costs the load generator nothing but base64.
"""

import base64
import io
import random
from typing import Final

from smg_chaos.bench.load.envelopes import Envelope
from smg_chaos.bench.load.job import Prompt

_QUALITY: Final = 85
_COARSE: Final = 12
"""Pixels between two points of the clouds that the picture shows."""
_GRAIN: Final = 6
"""Levels of noise above them."""
_START_OF_IMAGE: Final = 2
_COMMENT: Final = b"\xff\xfe"


def photograph(width: int, height: int) -> bytes:
    """Return a JPEG of coloured clouds with some grain, the same at each call."""
    from PIL import Image, ImageChops

    chance = random.Random(width * 65_537 + height)
    columns, rows = width // _COARSE + 2, height // _COARSE + 2
    clouds = Image.frombytes("RGB", (columns, rows), chance.randbytes(columns * rows * 3))
    smooth = clouds.resize((width, height), Image.Resampling.BICUBIC)
    grain = Image.frombytes("L", (width, height), chance.randbytes(width * height))
    grain = grain.point([level * _GRAIN // 256 for level in range(256)])
    picture = ImageChops.add(smooth, grain.convert("RGB"))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()


def commented(jpeg: bytes, number: int) -> bytes:
    """Return the same picture in a file that differs: with a comment that holds a number."""
    comment = b"%016d" % number
    size = (len(comment) + 2).to_bytes(2, "big")
    start = jpeg[:_START_OF_IMAGE]
    return b"".join((start, _COMMENT, size, comment, jpeg[_START_OF_IMAGE:]))


class Pictured:
    """Chats of one turn: a picture in a data URL, and a question that is never the same."""

    def __init__(self, envelope: Envelope, prompt: Prompt) -> None:
        """ValueError for an API whose pictures are written otherwise."""
        if envelope.instructed:
            raise ValueError("pictures are sent in Chat Completions")
        self._envelope = envelope
        self._number = prompt.first
        self._jpeg = photograph(*prompt.sizes)
        self._again = prompt.kind == "known picture"
        self._known = base64.b64encode(self._jpeg)

    def next(self, lane: int) -> bytes:
        """Return the next request."""
        number, self._number = self._number, self._number + 1
        file = self._known if self._again else base64.b64encode(commented(self._jpeg, number))
        return self._envelope.around(
            b'{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,'
            b'%b"}},{"type":"text","text":"%010d. What does it show?"}]}' % (file, number)
        )
