"""Videos as tensors of this node, at simulated engines that check them more strictly than real ones."""

import base64
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import openai
import pytest

from support.house.tree import ROOT
from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

CLIPS: Final = ROOT / "tests" / "support" / "media" / "clips"
EYES: Final = ("--script", "pictures", "--model", "eyes")


def part(name: str) -> dict[str, Any]:
    """Return a part of a chat that is a clip."""
    encoded = base64.b64encode((CLIPS / name).read_bytes()).decode()
    return {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{encoded}"}}


def ask(node: RunningNode, *parts: Any) -> str:
    client = openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)
    content: Any = [*parts, {"type": "text", "text": "What happens?"}]
    answer = client.chat.completions.create(
        model="eyes", messages=[{"role": "user", "content": content}]
    )
    return answer.choices[0].message.content or ""


@pytest.mark.parametrize(
    ("vision", "flags"),
    [
        ("qwen3_vl", ()),
        ("qwen2_5_vl", ("--no-media-normalizes", "--media-dtype", "bfloat16")),
    ],
)
def test_videos_become_tensors_and_are_kept(
    tmp_path: Path, vision: str, flags: tuple[str, ...]
) -> None:
    with ExitStack() as stack:
        engines = stack.enter_context(
            running_simulated(tmp_path, *EYES, "--vision", vision, *flags)
        )
        node = stack.enter_context(running_node(tmp_path, workers=[f"grpc://{engines.address}"]))
        one = ask(node, part("h264.mp4"))
        assert one.startswith("I see 1: ")
        assert ask(node, part("h264.mp4")) == one
        assert ask(node, part("vp9.webm")) != one
        assert ask(node, part("h264.mp4"), part("mpeg4.avi")).startswith("I see 2: ")
        assert node.metric("smg_node_media_items_total", modality="video", way="tensors") == 5
        assert node.metric("smg_node_media_cache_total", outcome="hit") == 2
        assert engines.tally()["media_mistakes"] == 0


def test_pictures_and_videos_together_are_the_engines_work(tmp_path: Path) -> None:
    words = (*EYES, "--vision", "qwen3_vl", "--media-references")
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *words))
        node = stack.enter_context(running_node(tmp_path, workers=[f"grpc://{engines.address}"]))
        picture = picture_part(data_url(jpeg(320, 200)))
        assert ask(node, picture, part("h264.mp4")).startswith("I see 2: ")
        assert node.metric("smg_node_media_items_total", modality="video", way="references") == 1
        assert engines.tally()["media_mistakes"] == 0


def test_files_that_are_no_videos_are_refused_at_their_path(tmp_path: Path) -> None:
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *EYES, "--vision", "qwen3_vl"))
        node = stack.enter_context(
            running_node(
                tmp_path,
                workers=[f"grpc://{engines.address}"],
                flags=("--media.video-pixels-max", "1000000"),
            )
        )
        for data, why in (
            (b"\x89PNG\r\n\x1a\n" + bytes(99), "a PNG picture is not a video"),
            ((CLIPS / "h264.mp4").read_bytes()[:2000], "cannot be decoded"),
        ):
            encoded = base64.b64encode(data).decode()
            broken = {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{encoded}"}}
            with pytest.raises(openai.BadRequestError) as caught:
                ask(node, part("h264.mp4"), broken)
            assert caught.value.code == "invalid_video"
            assert caught.value.param == "messages[0].content[1].video_url"
            assert why in caught.value.message
        assert engines.tally()["pictures"] == 0
