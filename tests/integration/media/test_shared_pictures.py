"""A node of several processes: a picture that one of them has made is there for all, and gone with the node."""

import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import openai
import pytest

from smg_node.media.pixels.shared_patches import folder_of_node
from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.node import running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration


def test_a_picture_is_worked_on_once_for_all_processes(tmp_path: Path) -> None:
    with ExitStack() as stack:
        words = ("--script", "pictures", "--model", "eyes", "--vision", "qwen3_vl")
        engines = stack.enter_context(running_simulated(tmp_path, *words))
        node = stack.enter_context(
            running_node(
                tmp_path, workers=[f"grpc://{engines.address}"], flags=("--processes", "3")
            )
        )
        parts: list[Any] = [{"type": "text", "text": "Look"}]
        parts.append(picture_part(data_url(jpeg(320, 200))))
        for _ in range(24):
            # A connection of its own comes to any of the processes.
            with openai.OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as client:
                answer = client.chat.completions.create(
                    model="eyes", messages=[{"role": "user", "content": parts}]
                )
            assert (answer.choices[0].message.content or "").startswith("I see 1: ")

        def looked(outcome: str) -> float:
            return node.metric("smg_node_media_cache_total", outcome=outcome)

        node.process.wait_until(lambda: looked("hit") + looked("miss") == 24, "counted", 30)
        assert looked("miss") == 1
        folder = folder_of_node(node.process.pid)
        assert folder is not None
        assert folder.is_dir()
        with urllib.request.urlopen(f"{node.url}/health", timeout=10) as told:
            assert told.status == 200
    assert not folder.exists(), "nothing is left in memory"
