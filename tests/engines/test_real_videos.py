"""Videos before a real vLLM: whichever way one comes, the engine sees the same, and its limits are told before.

The models are tiny and of random weights, so that another video gives other log probabilities. One engine is asked by
two nodes: one fetches URLs, the other hands them on.
"""

import base64
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from support.http import stream_client
from support.http.chat_client import CHAT
from support.media.drawn_pictures import data_url, jpeg
from support.media.origin import Origin, origin
from support.processes.node import RunningNode, running_node
from support.processes.real_engines import KINDS, running_model

pytestmark = pytest.mark.integration

KIND: Final = KINDS["vllm"]
PROGRAMS: Final = Path(__file__).parents[1] / "support" / "media" / "programs"
MODELS: Final = ("qwen2_5_vl", "qwen3_vl")
READING: Final = {"SMG_VLLM_MM_PROCESSOR": "inprocess"}
LIMITS: Final = ("--limit-mm-per-prompt", '{"image": 2, "video": 2}')
PLACES: Final = 5
"""Log probabilities are equal to so many decimal places."""
VIDEO_MARK: Final = "<|video_pad|>"


@dataclass(frozen=True, slots=True)
class Cinema:
    """One engine behind a node that fetches, and behind one that hands URLs on; and two films, elsewhere and here."""

    fetching: RunningNode
    handing: RunningNode
    films: Origin
    inline: tuple[str, str]


def ran(program: str, *words: str) -> None:
    """Run a program by the engine's interpreter."""
    made = subprocess.run(
        [str(KIND.python), "-W", "ignore", str(PROGRAMS / program), *words],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(PROGRAMS.parents[2]), "HF_HUB_OFFLINE": "1"},
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr


@pytest.fixture(scope="module", params=MODELS)
def cinema(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cinema]:
    folder = tmp_path_factory.mktemp(request.param)
    ran("tiny_vision_model.py", str(folder / "model"), request.param)
    contents = []
    for seed in (1, 2):
        file = folder / f"{seed}.mp4"
        ran("small_clip.py", str(file), str(seed), "8")
        contents.append(file.read_bytes())
    inline = [f"data:video/mp4;base64,{base64.b64encode(each).decode()}" for each in contents]
    with ExitStack() as stack:
        films = stack.enter_context(origin({"/1.mp4": contents[0], "/2.mp4": contents[1]}))
        engine = stack.enter_context(running_model(KIND, folder, environment=READING, flags=LIMITS))
        nodes = [
            stack.enter_context(
                running_node(
                    tmp_path_factory.mktemp(urls),
                    workers=[f"grpc://{engine.address}?model=seer"],
                    flags=(
                        *("--media.clip-urls", urls, "--engine.first-event-s", "120"),
                        *("--media.fetch-private-hosts", films.host),
                    ),
                )
            )
            for urls in ("fetched", "handed_on")
        ]
        yield Cinema(nodes[0], nodes[1], films, (inline[0], inline[1]))


def video(url: str) -> dict[str, Any]:
    return {"type": "video_url", "video_url": {"url": url}}


def watch(node: RunningNode, *parts: dict[str, Any], text: str = "What is it?") -> tuple[int, Any]:
    """Return the prompt's length and what was said with how much confidence; or the status and the error."""
    body = {
        "model": "seer",
        "messages": [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}],
        "temperature": 0,
        "max_tokens": 6,
        "logprobs": True,
        "top_logprobs": 3,
    }
    status, answer = stream_client.ask(node, "POST", CHAT, body)
    if status != 200:
        return status, answer["error"]
    choice = answer["choices"][0]
    found = [(each["token"], each["logprob"]) for each in choice["logprobs"]["content"]]
    return answer["usage"]["prompt_tokens"], found


def assert_alike(one: tuple[int, Any], other: tuple[int, Any]) -> None:
    assert one[0] == other[0] > 20, (one, other)
    assert [token for token, _ in one[1]] == [token for token, _ in other[1]]
    differ = [abs(mine - its) for (_, mine), (_, its) in zip(one[1], other[1], strict=True)]
    assert max(differ) <= 10**-PLACES, differ


def test_a_video_is_the_same_whichever_way_it_comes(cinema: Cinema) -> None:
    inside = watch(cinema.fetching, video(cinema.inline[0]))
    assert_alike(inside, watch(cinema.fetching, video(cinema.films.url("/1.mp4"))))
    assert_alike(inside, watch(cinema.handing, video(cinema.films.url("/1.mp4"))))
    file = {"type": "file", "file": {"file_data": cinema.inline[0], "filename": "a.mp4"}}
    assert_alike(inside, watch(cinema.fetching, file))


def test_another_video_is_another_answer(cinema: Cinema) -> None:
    one, other = (watch(cinema.fetching, video(url)) for url in cinema.inline)
    assert one[0] == other[0]
    assert one[1] != other[1]


def test_a_video_beside_pictures_and_another_video(cinema: Cinema) -> None:
    shown = {"type": "image_url", "image_url": {"url": data_url(jpeg(96, 96))}}
    first, second = map(video, cinema.inline)
    alone = watch(cinema.fetching, first)
    both = watch(cinema.fetching, first, shown, second)
    assert both[0] > 2 * (alone[0] - 20), (alone, both)
    assert both[1] != watch(cinema.fetching, second, shown, first)[1]


def test_what_the_engine_does_not_take_is_refused_with_its_path(cinema: Cinema) -> None:
    status, error = watch(cinema.fetching, *[video(cinema.inline[0])] * 3)
    assert (status, error["param"]) == (400, "messages[0].content[0].video_url")
    assert "at most 2 videos" in error["message"]
    status, error = watch(cinema.fetching, video(cinema.inline[0]), text=f"see {VIDEO_MARK}")
    assert (status, error["param"]) == (400, "messages")
    broken = base64.b64encode(b"no video at all, whatever it says").decode()
    status, error = watch(cinema.fetching, video(f"data:video/mp4;base64,{broken}"))
    assert status == 400, error
    assert watch(cinema.fetching, video(cinema.inline[1]))[0] > 20, "it serves others afterwards"
