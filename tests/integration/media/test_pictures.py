"""Pictures through a real node: official clients in front, simulated engines that check every tensor behind."""

import base64
import json
import urllib.request
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from PIL import Image

from support.http.raw_http import ask
from support.media.origin import Origin, origin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

VISION = ("--vision", "qwen3_vl", "--script", "pictures", "--model", "eyes")


def jpeg(width: int, height: int, shade: int = 0) -> bytes:
    """Return a picture that is different for each shade."""
    picture = Image.new("RGB", (width, height))
    picture.putdata(
        [((x * 7 + shade) % 256, (y * 5) % 256, (x * y) % 256) for y in range(height) for x in range(width)]
    )
    out = BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue()


A, B = jpeg(320, 200), jpeg(200, 333, shade=40)
TOKENS = {A: 60, B: 60}
"""By the size rule of Qwen3-VL: 10 x 6 and 6 x 10 blocks of 32 pixels."""


def data_url(data: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    with running_simulated(tmp_path_factory.mktemp("engines"), *VISION) as simulated:
        yield simulated


@pytest.fixture(scope="module")
def pictures() -> Iterator[Origin]:
    with origin({"/a.jpg": A, "/b.jpg": B}) as found:
        yield found


@pytest.fixture(scope="module")
def node(
    tmp_path_factory: pytest.TempPathFactory, engines: Simulated, pictures: Origin
) -> Iterator[RunningNode]:
    flags = ("--media.fetch-private-hosts", pictures.host)
    folder = tmp_path_factory.mktemp("node")
    with running_node(folder, workers=[f"grpc://{engines.address}"], flags=flags) as running:
        yield running


def test_chat_by_the_official_client(node: RunningNode) -> None:
    client = openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0)
    answer = client.chat.completions.create(
        model="eyes",
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is it?"},
                    {"type": "image_url", "image_url": {"url": data_url(A)}},
                ],
            }
        ],
    )
    assert (answer.choices[0].message.content or "").startswith("I see 1: ")


def picture_part(url: str, **said: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url, **said}}
