"""Pictures before a real vLLM: tensors that the node makes answer exactly as those that the engine makes itself.

The models are tiny and of random weights, so that a picture that differs by a little, or stands in another place, gives
other log probabilities. One engine is asked by two nodes: one makes tensors, the other hands the files on.
"""

import base64
import io
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from PIL import Image

from support.http import stream_client
from support.http.chat_client import CHAT
from support.processes.node import RunningNode, running_node
from support.processes.real_engines import KINDS, RealEngine, running_model

pytestmark = pytest.mark.integration

KIND: Final = KINDS["vllm"]
PROGRAM: Final = (
    Path(__file__).parents[1] / "support" / "media" / "programs" / "tiny_vision_model.py"
)
MODELS: Final = (
    ("qwen3_vl", "float32"),
    ("qwen3_vl", "bfloat16"),
    ("qwen2_5_vl", "float32"),
)
READING: Final = {"SMG_VLLM_MM_PROCESSOR": "inprocess"}
"""Has the engine take pictures by reference as well."""
PLACES: Final = 5
"""Log probabilities are equal to so many decimal places."""


@dataclass(frozen=True, slots=True)
class Seers:
    """One engine behind a node that makes tensors, and behind one that hands pictures on."""

    engine: RealEngine
    making: RunningNode
    handing: RunningNode


@pytest.fixture(scope="module", params=MODELS, ids=lambda each: "-".join(each))
def seers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Seers]:
    model, dtype = request.param
    folder = tmp_path_factory.mktemp(model)
    made = subprocess.run(
        [str(KIND.python), "-W", "ignore", str(PROGRAM), str(folder / "model"), model],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PROGRAM.parents[3]), "HF_HUB_OFFLINE": "1"},
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    with ExitStack() as stack:
        engine = stack.enter_context(
            running_model(KIND, folder, environment=READING, flags=("--dtype", dtype))
        )
        nodes = [
            stack.enter_context(
                running_node(
                    tmp_path_factory.mktemp(where),
                    workers=[f"grpc://{engine.address}?model=seer"],
                    flags=("--media.where", where, "--engine.first-event-s", "120"),
                )
            )
            for where in ("node", "engine")
        ]
        yield Seers(engine, *nodes)


def picture(
    width: int, height: int, seed: int, form: str = "PNG", mode: str = "RGB", **saved: Any
) -> str:
    """Return a picture of coloured clouds as a data URL."""
    chance = np.random.default_rng(seed)
    clouds = chance.integers(0, 256, (-(-height // 8), -(-width // 8), 3), dtype=np.uint8)
    image = Image.fromarray(clouds).resize((width, height), Image.Resampling.BICUBIC).convert(mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.linear_gradient("L").resize((width, height)))
    file = io.BytesIO()
    image.save(file, form, **saved)
    encoded = base64.b64encode(file.getvalue()).decode()
    return f"data:image/{form.lower()};base64,{encoded}"


def look(node: RunningNode, *pictures: str, text: str = "What is it?") -> tuple[int, Any]:
    """Return what a node answers about pictures: the prompt's length, and what was said with how much confidence."""
    shown = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
    body = {
        "model": "seer",
        "messages": [{"role": "user", "content": [*shown, {"type": "text", "text": text}]}],
        "temperature": 0,
        "max_tokens": 6,
        "logprobs": True,
        "top_logprobs": 3,
    }
    status, answer = stream_client.ask(node, "POST", CHAT, body)
    if status != 200:
        return status, answer
    choice = answer["choices"][0]
    found = [(each["token"], each["logprob"]) for each in choice["logprobs"]["content"]]
    return answer["usage"]["prompt_tokens"], found


def assert_alike(one: tuple[int, Any], other: tuple[int, Any]) -> None:
    assert one[0] == other[0], (one, other)
    assert [token for token, _ in one[1]] == [token for token, _ in other[1]]
    differ = [abs(mine - its) for (_, mine), (_, its) in zip(one[1], other[1], strict=True)]
    assert max(differ) <= 10**-PLACES, differ


SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "PNG": (picture(320, 240, 1),),
    "JPEG to be shrunk": (picture(1280, 720, 2, "JPEG"),),
    "JPEG to be enlarged": (picture(90, 70, 3, "JPEG"),),
    "grey": (picture(333, 251, 4, "PNG", "L"),),
    "alpha": (picture(200, 300, 5, "PNG", "RGBA"),),
    "WebP": (picture(257, 129, 6, "WEBP"),),
    "GIF": (picture(150, 150, 7, "GIF", "P"),),
    "CMYK": (picture(160, 240, 8, "JPEG", "CMYK"),),
    "tall": (picture(100, 1000, 9),),
    "two of different sizes": (picture(320, 240, 10), picture(100, 300, 11, "JPEG")),
    "the same twice": (picture(64, 64, 12), picture(64, 64, 12)),
}


@pytest.mark.parametrize("shown", SHOWN.values(), ids=SHOWN)
def test_tensors_of_the_node_are_those_of_the_engine(seers: Seers, shown: tuple[str, ...]) -> None:
    made = look(seers.making, *shown, text="made")
    assert made[0] > 20, made
    assert_alike(made, look(seers.handing, *shown, text="made"))


def test_another_picture_is_another_answer(seers: Seers) -> None:
    one, other = look(seers.making, picture(96, 96, 20)), look(seers.making, picture(96, 96, 21))
    assert one[0] == other[0]
    assert one[1] != other[1]


def test_the_order_of_pictures_counts(seers: Seers) -> None:
    one, other = picture(96, 96, 22), picture(96, 96, 23)
    assert look(seers.making, one, other) != look(seers.making, other, one)


def test_a_typed_placeholder_is_refused(seers: Seers) -> None:
    status, answer = look(seers.making, picture(96, 96, 24), text="see <|image_pad|>")
    assert status == 400, answer
    assert answer["error"]["param"].startswith("messages"), answer
