"""Pictures encoded apart before real vLLMs: one only encodes and puts what it made into a store, the other finds it there.

The models are tiny and of random weights, so that a picture that differs by a little gives other log probabilities.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from support.http import stream_client
from support.http.chat_client import CHAT
from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.node import RunningNode, running_node
from support.processes.real_engines import KINDS, RealEngine, running_model

pytestmark = pytest.mark.integration

KIND: Final = KINDS["vllm"]
PROGRAM: Final = (
    Path(__file__).parents[1] / "support" / "media" / "programs" / "tiny_vision_model.py"
)
READING: Final = {"SMG_VLLM_MM_PROCESSOR": "inprocess"}
"""Has the engine take pictures by reference as well."""


@dataclass(frozen=True, slots=True)
class Apart:
    """Two engines with a store between them; a node that knows both, and one that hands files to the second."""

    store: Path
    encoder: RealEngine
    consumer: RealEngine
    node: RunningNode
    handing: RunningNode

    def kept(self) -> set[str]:
        """Return the hashes of pictures in the store."""
        return {each.parent.name for each in self.store.glob("*/encoder_cache.safetensors")}


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apart]:
    store = tmp_path_factory.mktemp("store")
    with ExitStack() as stack:
        engines = []
        for role in ("ec_producer", "ec_consumer"):
            folder = tmp_path_factory.mktemp(role)
            made = subprocess.run(
                [str(KIND.python), "-W", "ignore", str(PROGRAM), str(folder / "model"), "qwen3_vl"],
                capture_output=True,
                text=True,
                env={"PYTHONPATH": str(PROGRAM.parents[3]), "HF_HUB_OFFLINE": "1"},
                timeout=300,
                check=False,
            )
            assert made.returncode == 0, made.stderr
            told = {
                "ec_connector": "ECExampleConnector",
                "ec_role": role,
                "ec_connector_extra_config": {"shared_storage_path": str(store)},
            }
            flags = ["--ec-transfer-config", json.dumps(told)]
            if role == "ec_producer":
                flags.append("--no-enable-prefix-caching")
            environment = {**READING, "VLLM_LOGGING_LEVEL": "DEBUG"}
            engines.append(
                stack.enter_context(
                    running_model(KIND, folder, environment=environment, flags=flags)
                )
            )
        encoder, consumer = engines
        worker = f"grpc://{consumer.address}?model=seer"
        slow = ("--engine.first-event-s", "120")
        node = running_node(
            tmp_path_factory.mktemp("node"),
            workers=[f"grpc://{encoder.address}?model=seer&role=encode", worker],
            flags=slow,
        )
        handing = running_node(
            tmp_path_factory.mktemp("handing"),
            workers=[worker],
            flags=(*slow, "--media.where", "engine"),
        )
        yield Apart(
            store, encoder, consumer, stack.enter_context(node), stack.enter_context(handing)
        )


def look(node: RunningNode, *pictures: bytes) -> tuple[int, list[tuple[str, float]]]:
    """Return the length of a prompt with pictures, and what is said to it with how much confidence."""
    body = {
        "model": "seer",
        "messages": [
            {"role": "user", "content": [picture_part(data_url(one)) for one in pictures]}
        ],
        "temperature": 0,
        "max_tokens": 6,
        "logprobs": True,
    }
    status, answer = stream_client.ask(node, "POST", CHAT, body)
    assert status == 200, answer
    said = answer["choices"][0]["logprobs"]["content"]
    return answer["usage"]["prompt_tokens"], [(one["token"], one["logprob"]) for one in said]


def alike(
    one: tuple[int, list[tuple[str, float]]], other: tuple[int, list[tuple[str, float]]]
) -> bool:
    """Whether two answers are the same, to five decimal places."""
    pairs = list(zip(one[1], other[1], strict=True))
    same = one[0] == other[0] and all(a[0] == b[0] for a, b in pairs)
    return same and all(abs(a[1] - b[1]) <= 1e-5 for a, b in pairs)


def test_a_picture_from_the_store_answers_as_one_that_the_engine_encodes(apart: Apart) -> None:
    for number, shown in enumerate(
        [(jpeg(320, 240),), (jpeg(90, 70, shade=3), jpeg(64, 200, shade=4))]
    ):
        before = apart.kept()
        told = look(apart.node, *shown)
        made = apart.kept() - before
        assert len(made) == len(shown), number
        assert alike(told, look(apart.handing, *shown))
    assert apart.node.metric("smg_node_encode_items_total", outcome="ok") == 3
    assert apart.consumer.process is not None
    said = apart.consumer.process.said()
    assert all(f"Success load encoder cache for hash {name}" in said for name in apart.kept())


def test_the_same_picture_is_put_there_once(apart: Apart) -> None:
    shown = jpeg(200, 200, shade=5)
    first = look(apart.node, shown)
    kept = apart.kept()
    assert alike(look(apart.node, shown), first)
    assert apart.kept() == kept
    status, _ = stream_client.ask(apart.node, "GET", "/readiness", None)
    assert status == 200
