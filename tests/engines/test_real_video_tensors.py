"""Videos before a real vLLM: tensors that the node makes answer exactly as those that the engine makes itself.

As for pictures (`test_real_pictures`): the engine decodes with OpenCV and samples by itself what it is given by
reference, so that another frame, another time in the prompt or another level gives other log probabilities.
"""

import base64
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import pytest

from support.house.tree import ROOT
from support.http import stream_client
from support.http.chat_client import CHAT
from support.processes.node import RunningNode, running_node
from support.processes.real_engines import KINDS, running_model

pytestmark = pytest.mark.integration

KIND: Final = KINDS["vllm"]
SUPPORT: Final = ROOT / "tests" / "support" / "media"
PROGRAM: Final = SUPPORT / "programs" / "tiny_vision_model.py"
CLIPS: Final = (
    "h264.mp4",
    "h264_10bit.mkv",
    "h264_turned.mp4",
    "hevc.mp4",
    "mjpeg.avi",
    "mpeg4.avi",
    "small.gif",
    "vp8.webm",
    "vp9.webm",
)
"""Those that OpenCV reads."""
MODELS: Final = (("qwen3_vl", "float32"), ("qwen2_5_vl", "float32"), ("qwen2_5_vl", "bfloat16"))
PLACES: Final = 5
"""Log probabilities are equal to so many decimal places."""


class Seers(NamedTuple):
    """One engine behind a node that makes tensors, and behind one that hands videos on."""

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
        env={"PYTHONPATH": str(ROOT / "tests"), "HF_HUB_OFFLINE": "1"},
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    with ExitStack() as stack:
        environment = {"SMG_VLLM_MM_PROCESSOR": "inprocess"}
        engine = stack.enter_context(
            running_model(KIND, folder, environment=environment, flags=("--dtype", dtype))
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
        yield Seers(*nodes)


def look(node: RunningNode, *names: str) -> tuple[int, list[tuple[str, float]]]:
    """Return what a node answers about clips: the prompt's length, and what was said with how much confidence."""
    parts: list[Any] = []
    for name in names:
        encoded = base64.b64encode((SUPPORT / "clips" / name).read_bytes()).decode()
        url = f"data:video/mp4;base64,{encoded}"
        parts.append({"type": "video_url", "video_url": {"url": url}})
    body = {
        "model": "seer",
        "messages": [
            {"role": "user", "content": [*parts, {"type": "text", "text": "What is it?"}]}
        ],
        "temperature": 0,
        "max_tokens": 6,
        "logprobs": True,
    }
    status, answer = stream_client.ask(node, "POST", CHAT, body)
    assert status == 200, answer
    choice = answer["choices"][0]
    found = [(each["token"], each["logprob"]) for each in choice["logprobs"]["content"]]
    return answer["usage"]["prompt_tokens"], found


def assert_alike(seers: Seers, *names: str) -> None:
    made, handed = look(seers.making, *names), look(seers.handing, *names)
    assert made[0] == handed[0], (made, handed)
    assert [token for token, _ in made[1]] == [token for token, _ in handed[1]]
    differ = [abs(one - other) for (_, one), (_, other) in zip(made[1], handed[1], strict=True)]
    assert max(differ) <= 10**-PLACES, differ


@pytest.mark.parametrize("name", CLIPS)
def test_tensors_of_the_node_are_those_of_the_engine(seers: Seers, name: str) -> None:
    assert_alike(seers, name)


def test_two_clips_are_seen_in_their_order(seers: Seers) -> None:
    assert_alike(seers, "vp9.webm", "small.gif")
    one, other = ("vp9.webm", "small.gif"), ("small.gif", "vp9.webm")
    assert look(seers.making, *one) != look(seers.making, *other)


def test_the_node_has_made_them(seers: Seers) -> None:
    look(seers.making, "vp9.webm")
    assert seers.making.metric("smg_node_media_items_total", modality="video", way="tensors") > 0
    assert seers.handing.metric("smg_node_media_items_total", modality="video", way="tensors") == 0
