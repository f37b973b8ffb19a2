"""Pictures to engines of every contract, to pairs, and to workers that take requests as they are."""

import json
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_pair, running_simulated

pytestmark = pytest.mark.integration

EYES = ("--script", "pictures", "--model", "eyes")
A, B = jpeg(320, 200), jpeg(200, 333, shade=40)


def chat(node: RunningNode, *pictures: bytes, **more: Any) -> Any:
    client = openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)
    parts: list[Any] = [{"type": "text", "text": "Look"}]
    parts += [picture_part(data_url(each)) for each in pictures]
    messages: Any = [{"role": "user", "content": parts}]
    return client.chat.completions.create(model="eyes", messages=messages, **more)


def text_of(answer: Any) -> str:
    return answer.choices[0].message.content or ""


@pytest.mark.parametrize(
    ("contract", "vision", "flags", "way"),
    [
        (
            "vllm",
            "qwen2_5_vl",
            ("--no-media-normalizes", "--media-dtype", "bfloat16"),
            "tensors",
        ),
        ("vllm", "llava", (), "tensors"),
        ("sglang", "qwen3_vl", (), "tensors"),
        ("tokenspeed", "qwen3_vl", ("--media-dtype", "bfloat16"), "tensors"),
        ("trtllm", "qwen3_vl", (), "encoded"),
    ],
)
def test_engines_of_each_contract_see_what_was_sent(
    tmp_path: Path, contract: str, vision: str, flags: Sequence[str], way: str
) -> None:
    words = (*EYES, "--contract", contract, "--vision", vision, *flags)
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *words))
        node = stack.enter_context(running_node(tmp_path, workers=[f"grpc://{engines.address}"]))
        one, two = text_of(chat(node, A)), text_of(chat(node, A, B))
        assert one.startswith("I see 1: ")
        assert two.startswith("I see 2: ")
        assert node.metric("smg_node_media_items_total", way=way) == 3
        tally = engines.tally()
        assert tally["media_mistakes"] == 0
        assert tally["pictures"] == 3


def test_pictures_go_through_a_pair_once(tmp_path: Path) -> None:
    flags = (*EYES, "--vision", "qwen3_vl")
    with ExitStack() as stack:
        prefill, decode = stack.enter_context(
            running_pair(tmp_path, *flags, contract="vllm", connector="nixl")
        )
        workers = [f"grpc://{each.address}" for each in (prefill, decode)]
        node = stack.enter_context(running_node(tmp_path, workers=workers))
        assert text_of(chat(node, A, B)).startswith("I see 2: ")
        for engine in (prefill, decode):
            assert engine.tally()["media_mistakes"] == 0


def test_an_engine_that_makes_pictures_itself_gets_them_by_reference(tmp_path: Path) -> None:
    words = (*EYES, "--vision", "qwen3_vl", "--media-references")
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *words))
        flags = ("--media.where", "engine")
        workers = [f"grpc://{engines.address}"]
        node = stack.enter_context(running_node(tmp_path, workers=workers, flags=flags))
        assert text_of(chat(node, A, B)).startswith("I see 2: ")
        assert node.metric("smg_node_media_items_total", way="references") == 2
        assert node.metric("smg_node_media_seconds_count", stage="decode") == 0
        assert engines.tally()["media_mistakes"] == 0


def test_the_same_picture_goes_where_its_blocks_are_cached(tmp_path: Path) -> None:
    words = (*EYES, "--vision", "qwen3_vl")
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, *words, workers=2))
        workers = [f"grpc://{address}" for address in engines.addresses]
        node = stack.enter_context(running_node(tmp_path, workers=workers))
        large = jpeg(800, 640)
        chat(node, large)
        engines_told = "smg_node_kv_batches_total"
        node.process.wait_until(lambda: node.metric(engines_told) > 0, "KV events", 30)
        raw = openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0)
        for picture, cached in ((large, True), (jpeg(800, 640, shade=7), False)):
            parts: Any = [{"type": "text", "text": "Look"}, picture_part(data_url(picture))]
            answer = raw.chat.completions.with_raw_response.create(
                model="eyes", messages=[{"role": "user", "content": parts}]
            )
            name = answer.headers["x-request-id"]
            with urllib.request.urlopen(f"{node.url}/v1/cluster/explain/{name}") as told:
                (step,) = json.loads(told.read())["journeys"][0]["steps"]
            best = max(each["overlap"] for each in step["rated"])
            assert best > 400 if cached else best < 64, step["rated"]


def test_engines_of_text_refuse_pictures_before_any_work(tmp_path: Path) -> None:
    with ExitStack() as stack:
        engines = stack.enter_context(running_simulated(tmp_path, "--model", "eyes"))
        node = stack.enter_context(running_node(tmp_path, workers=[f"grpc://{engines.address}"]))
        with pytest.raises(openai.BadRequestError) as caught:
            chat(node, A)
        body: Any = caught.value.body
        assert body["code"] == "unsupported_parameter"
        assert body["param"].startswith("messages[0].content[1]")
