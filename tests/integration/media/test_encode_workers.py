"""Pictures encoded by workers of their own: one encoder or two before a pair, and what becomes of it when one dies."""

import json
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import openai
import pytest

from support.media.drawn_pictures import data_url, jpeg, picture_part
from support.processes.mesh_nodes import smg_admin
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_pair, running_simulated

pytestmark = pytest.mark.integration

EYES: Final = ("--script", "pictures", "--model", "eyes", "--vision", "qwen3_vl")
A, B, C = jpeg(320, 200), jpeg(200, 333, shade=40), jpeg(256, 256, shade=90)


@dataclass(frozen=True)
class Scene:
    """A node before encoders and a pair."""

    node: RunningNode
    encoders: Sequence[Simulated]
    prefill: Simulated
    decode: Simulated


@contextmanager
def scene(
    scratch: Path,
    *,
    encoders: Sequence[Sequence[str]] = ((),),
    flags: Sequence[str] = (),
    prefill_flags: Sequence[str] = (),
) -> Iterator[Scene]:
    """Run a node before a pair and as many encoders as flags are given for."""
    with ExitStack() as stack:
        running = []
        for number, own in enumerate(encoders):
            folder = scratch / f"encode{number}"
            folder.mkdir()
            words = ("--contract", "tokenspeed", "--role", "encode", "--bootstrap-port", "0")
            running.append(stack.enter_context(running_simulated(folder, *EYES, *words, *own)))
        prefill, decode = stack.enter_context(
            running_pair(scratch, *EYES, contract="tokenspeed", prefill_flags=prefill_flags)
        )
        workers = [f"grpc://{each.address}" for each in (*running, prefill, decode)]
        node = stack.enter_context(running_node(scratch, workers=workers, flags=flags))
        yield Scene(node, running, prefill, decode)


def chat(node: RunningNode, *pictures: bytes, **more: Any) -> Any:
    parts: list[Any] = [{"type": "text", "text": "Look"}]
    parts += [picture_part(data_url(each)) for each in pictures]
    messages: Any = [{"role": "user", "content": parts}]
    with openai.OpenAI(
        base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60
    ) as client:
        completions = client.chat.completions.with_raw_response
        return completions.create(model="eyes", messages=messages, **more)


def streamed(node: RunningNode, picture: bytes) -> list[str]:
    parts: list[Any] = [{"type": "text", "text": "Look"}, picture_part(data_url(picture))]
    messages: Any = [{"role": "user", "content": parts}]
    with openai.OpenAI(
        base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60
    ) as client:
        stream: Any = client.chat.completions.create(model="eyes", messages=messages, stream=True)
        return [each.choices[0].delta.content or "" for each in stream if each.choices]


def text_of(answer: Any) -> str:
    return answer.parse().choices[0].message.content or ""


def steps_of(node: RunningNode, answer: Any) -> list[dict[str, Any]]:
    name = answer.headers["x-request-id"]
    with urllib.request.urlopen(f"{node.url}/v1/cluster/explain/{name}") as told:
        steps: list[dict[str, Any]] = json.loads(told.read())["journeys"][0]["steps"]
    return steps


def encoders_in(steps: Sequence[dict[str, Any]]) -> list[str]:
    return [each["worker"] for each in steps if each.get("role") == "encode"]


def test_an_answer_is_the_same_with_an_encoder_as_without(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    with ExitStack() as stack:
        words = (*EYES, "--contract", "tokenspeed")
        alone = stack.enter_context(running_simulated(whole, *words))
        node = stack.enter_context(running_node(whole, workers=[f"grpc://{alone.address}"]))
        right = [text_of(chat(node, A)), text_of(chat(node, A, B, A))]
    with scene(tmp_path) as found:
        node = found.node
        assert [text_of(chat(node, A)), text_of(chat(node, A, B, A))] == right
        assert "".join(streamed(node, A)) == right[0]
        assert node.metric("smg_node_encode_items_total", outcome="ok") == 5
        assert node.metric("smg_node_encode_seconds_count", outcome="ok") == 5
        (encoder,) = found.encoders
        tallies = [each.tally() for each in (encoder, found.prefill, found.decode)]
        assert [each["media_mistakes"] for each in tallies] == [0, 0, 0]
        assert tallies[0]["encoded"] == tallies[0]["handed_over"] == 5
        assert tallies[1]["received"] == 5
        assert tallies[1]["handed_over"] == tallies[2]["taken_over"] == 3


def test_several_answers_have_their_own_rooms(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        answer = chat(found.node, A, n=2).parse()
        said = {choice.message.content for choice in answer.choices}
        assert len(answer.choices) == 2
        assert all(each.startswith("I see 1: ") for each in said)
        assert found.encoders[0].tally()["encoded"] == 2


def test_text_goes_past_the_encoder(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        assert "see" in text_of(chat(found.node)) or text_of(chat(found.node))
        assert found.encoders[0].tally()["requests"] == 0


def test_the_same_picture_goes_to_the_same_encoder(tmp_path: Path) -> None:
    with scene(tmp_path, encoders=((), ())) as found:
        first = encoders_in(steps_of(found.node, chat(found.node, A, B, C)))
        assert len(first) == 3
        again = encoders_in(steps_of(found.node, chat(found.node, C, A, B)))
        assert again == [first[2], first[0], first[1]]
        answer = chat(found.node, A)
        told = steps_of(found.node, answer)
        step = next(each for each in told if each.get("role") == "encode")
        assert (step["note"], step["policy"]) == ("picture 1 of 1", "consistent_hashing")
        assert step["of"] == 2
        admin = ("--url", found.node.url)
        explained = smg_admin(*admin, "explain", answer.headers["x-request-id"]).out
        assert f"chose {first[0]} " in explained
        assert " to encode a picture, " in explained
        shown = smg_admin(*admin, "workers", "list", "--role", "encode").out
        assert all(worker in shown for worker in set(first))
        assert shown.count("encode") == 2
        smg_admin(*admin, "workers", "drain", first[0])
        moved = encoders_in(steps_of(found.node, chat(found.node, A)))
        assert moved
        assert moved != [first[0]]


def test_a_dead_encoder_is_replaced_by_the_other_one(tmp_path: Path) -> None:
    with scene(tmp_path, encoders=((), ())) as found:
        right = text_of(chat(found.node, A, B, C))
        found.encoders[0].process.kill()
        for _ in range(3):
            assert text_of(chat(found.node, A, B, C)) == right
        # All pictures may have gone to the other one, and then nobody has noticed yet.
        ready = "smg_node_workers_ready"
        found.node.process.wait_until(
            lambda: found.node.metric(ready, role="encode") == 1, "noticed", 20
        )
        answer = chat(found.node, A)
        found.encoders[1].process.kill()
        told = chat(found.node, A)
        assert text_of(told) == text_of(answer)
        # How soon a death is known, and a dead one tried again, is the breaker's; no call asks anybody twice.
        asked = encoders_in(steps_of(found.node, told))
        assert len(asked) == len(set(asked)) <= 2


def test_a_picture_that_never_arrives_is_encoded_by_somebody_else(tmp_path: Path) -> None:
    slow = ("--prefill-tokens-per-s", "5")
    with scene(tmp_path, encoders=(slow,)) as found, ThreadPoolExecutor(1) as threads:
        answer = threads.submit(chat, found.node, A)
        count = "smg_node_encode_items_total"
        found.node.process.wait_until(
            lambda: found.node.metric(count, outcome="ok") == 1, "accepted", 20
        )
        found.encoders[0].process.kill()
        assert text_of(answer.result()).startswith("I see 1: ")
        steps = steps_of(found.node, answer.result())
        assert [each["worker"] for each in steps if each["step"] == "broke"]
        assert found.prefill.tally()["pictures"] == 2


def test_without_a_fallback_nobody_else_encodes(tmp_path: Path) -> None:
    flags = ("--no-routing.encode-fallback", "--routing.wait-for-worker-s", "0.5")
    with scene(tmp_path, flags=flags) as found:
        assert text_of(chat(found.node, A)).startswith("I see 1: ")
        found.encoders[0].process.kill()
        with pytest.raises(openai.APIStatusError) as caught:
            chat(found.node, A)
        # Before its death was noticed it is the call that fails, afterwards the placement.
        assert caught.value.status_code in (502, 503)
        assert "no worker that encodes pictures for 'eyes' is ready" in str(caught.value)
        assert text_of(chat(found.node))


@pytest.mark.parametrize("fault", ["refuse:status=INTERNAL,request=1", "hang:request=1"])
def test_an_encoder_that_takes_no_picture_is_not_asked_again(tmp_path: Path, fault: str) -> None:
    flags = ("--routing.encode-timeout-s", "1")
    with scene(tmp_path, encoders=(("--fault", fault),), flags=flags) as found:
        answer = chat(found.node, A)
        assert text_of(answer).startswith("I see 1: ")
        steps = steps_of(found.node, answer)
        (broke,) = [each for each in steps if each["step"] == "broke"]
        assert broke["worker"] == encoders_in(steps)[0]
        assert found.node.metric("smg_node_encode_items_total", outcome="failed") == 1
        # It has had its chance with another request by now.
        assert encoders_in(steps_of(found.node, chat(found.node, B)))


def test_a_client_that_leaves_takes_its_encode_calls_along(tmp_path: Path) -> None:
    with scene(tmp_path, encoders=(("--fault", "hang"),)) as found:
        parts = [{"type": "text", "text": "Look"}, picture_part(data_url(A))]
        body = {"model": "eyes", "messages": [{"role": "user", "content": parts}]}
        asked = urllib.request.Request(
            f"{found.node.url}/v1/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(asked, timeout=1.5)
        count = "smg_node_encode_items_total"
        found.node.process.wait_until(
            lambda: found.node.metric(count, outcome="cancelled") == 1, "cancelled", 20
        )
        assert found.node.metric(count, outcome="ok") == 0
        assert found.prefill.tally()["requests"] == 0
