"""Three vendors' official clients at once on one node and one store, under faults: no event of one in another."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from threading import Event
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from google.genai._interactions_errors import GeminiNextGenAPIClientError
from google.genai.errors import APIError, ContinuationInterruptedError, UnknownApiResponseError

from support.clients.genai_client import client_of
from support.processes.cutting_proxy import CuttingProxy, cutting_proxy
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated
from support.stores.redis_server import Redis, running_redis

pytestmark = pytest.mark.integration

TURNS = 4
FAULTS = ("error:after=4,every=9", "reset:after=3,every=13", "stall:after=5,every=40")
PAUSE_S = 0.3
"""So long the store hangs, now and then."""
FAILURES = (
    openai.APIError,
    anthropic.APIError,
    GeminiNextGenAPIClientError,
    APIError,
    ContinuationInterruptedError,
    UnknownApiResponseError,
    httpx2.TransportError,
)
"""What users of these clients must be ready for."""


class BrokenError(Exception):
    """A stream that said that it failed."""


@dataclass
class Chain:
    """One conversation of one user. Its engine says the first question again, which nobody else asks."""

    mark: str
    previous: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list)

    def question(self, turn: int) -> str:
        return f"{self.mark} asks number {turn}"

    def check(self, text: str) -> None:
        """Check that this is an answer to its own first question, all of it.

        An engine that goes on for another one says what that had said once more.
        """
        question = self.question(0)
        assert text.endswith(question), (self.mark, text)
        for begun in text.removesuffix(question).split("user"):
            assert f"\n{question}".startswith(begun), (self.mark, text)


class User:
    """A user of one vendor's client."""

    _client: Any

    def close(self) -> None:
        self._client.close()

    def say(self, chain: Chain, turn: int) -> str:
        """Ask the next question; return the text of the answer."""
        raise NotImplementedError


class OpenaiUser(User):
    """Responses, streamed and stored."""

    def __init__(self, url: str) -> None:
        self._client = openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=1, timeout=30)

    def say(self, chain: Chain, turn: int) -> str:
        more = {} if chain.previous is None else {"previous_response_id": chain.previous}
        stream = self._client.responses.create(
            model="parrot", input=chain.question(turn), stream=True, **more
        )
        text, ids = "", set()
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.completed":
                chain.previous = event.response.id
                ids.add(event.response.id)
                assert event.response.output_text == text
            elif event.type in ("response.created", "response.in_progress"):
                ids.add(event.response.id)
            elif event.type in ("response.failed", "error"):
                raise BrokenError
        assert len(ids) == 1
        assert all(one.startswith("resp_") for one in ids)
        return text


class AnthropicUser(User):
    """Messages, streamed, with the history in each request."""

    def __init__(self, url: str) -> None:
        self._client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=1, timeout=30)

    def say(self, chain: Chain, turn: int) -> str:
        asked = {"role": "user", "content": chain.question(turn)}
        messages: Any = [*chain.history, asked]
        with self._client.messages.stream(model="parrot", max_tokens=64, messages=messages) as told:
            text = "".join(told.text_stream)
            final = told.get_final_message()
        assert final.id.startswith("msg_")
        chain.history += [asked, {"role": "assistant", "content": text}]
        return text


class GoogleUser(User):
    """Interactions, streamed and stored."""

    def __init__(self, url: str) -> None:
        self._client = client_of(url, timeout=30_000)

    def say(self, chain: Chain, turn: int) -> str:
        more = {} if chain.previous is None else {"previous_interaction_id": chain.previous}
        stream = self._client.interactions.create(
            model="parrot", input=chain.question(turn), stream=True, **more
        )
        text, ids, status = "", set(), ""
        for event in stream:
            match event.event_type:
                case "step.delta":
                    text += event.delta.text
                case "interaction.status_update":
                    ids.add(event.interaction_id)
                case "interaction.created":
                    ids.add(event.interaction.id)
                case "interaction.completed":
                    ids.add(event.interaction.id)
                    status = event.interaction.status
                case "error":
                    raise BrokenError
                case _:
                    pass
        assert len(ids) == 1
        assert all(one.startswith("int_") for one in ids)
        if status == "failed":
            raise BrokenError
        assert status == "completed"
        (chain.previous,) = ids
        return text


class GeminiUser(User):
    """generateContent, streamed, with the history in each request."""

    def __init__(self, url: str) -> None:
        self._client = client_of(url, timeout=30_000)

    def say(self, chain: Chain, turn: int) -> str:
        asked = {"role": "user", "parts": [{"text": chain.question(turn)}]}
        stream = self._client.models.generate_content_stream(
            model="parrot", contents=[*chain.history, asked]
        )
        text, finished = "", False
        for chunk in stream:
            text += chunk.text or ""
            finished = finished or bool(chunk.candidates and chunk.candidates[0].finish_reason)
        if not finished:
            # This API has no other sign of a stream that was cut.
            raise BrokenError
        chain.history += [asked, {"role": "model", "parts": [{"text": text}]}]
        return text


USERS: dict[str, Callable[[str], User]] = {
    "responses": OpenaiUser,
    "messages": AnthropicUser,
    "interactions": GoogleUser,
    "gemini": GeminiUser,
}


@dataclass(frozen=True)
class Place:
    node: RunningNode
    store: Redis


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    with ExitStack() as stack:
        faults: Sequence[tuple[str, ...]] = (FAULTS, ())
        workers = []
        for number, odd in enumerate(faults):
            scratch = folder / f"engine-{number}"
            scratch.mkdir()
            how = ("--script", "echo", "--model", "parrot", "--itl-ms", "4", "--server", "h2")
            engine = stack.enter_context(running_simulated(scratch, *how, faults=odd))
            workers.append(f"grpc://{engine.address}")
        store = stack.enter_context(running_redis(folder, own=True))
        flags = ("--store", store.url, "--policy", "random", "--engine.stall-s", "1")
        node = stack.enter_context(running_node(folder / "node", workers=workers, flags=flags))
        yield Place(node, store)


def user(api: str, number: int, proxy: CuttingProxy, until_s: float) -> Counter[str]:
    """Talk until then, in one conversation after the other, over connections that break; return how it went."""
    went: Counter[str] = Counter()
    chance = Random(f"{api} {number}")
    proxy.ending = "reset"
    for talk in count():
        chain = Chain(f"{api} {number} {talk} {chance.getrandbits(64):x}")
        with closing(USERS[api](proxy.url)) as speaker:
            for turn in range(TURNS):
                if time.monotonic() > until_s:
                    return went
                if chance.random() < 0.2:
                    proxy.cuts = [chance.randrange(100, 6_000)]
                try:
                    text = speaker.say(chain, turn)
                except (BrokenError, *FAILURES):
                    went["broke"] += 1
                    break
                chain.check(text)
                went["whole"] += 1
    raise AssertionError


@contextmanager
def hanging_now_and_then(store: Redis) -> Iterator[None]:
    """Let the store hang for a moment, again and again."""
    over = Event()

    def hang() -> None:
        while not over.wait(4 * PAUSE_S):
            store.server.pause()
            over.wait(PAUSE_S)
            store.server.go_on()

    with ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(hang)
        try:
            yield
        finally:
            over.set()
            hanging.result()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seconds", [12, pytest.param(600, marks=pytest.mark.long)])
def test_no_event_of_one_client_reaches_another(place: Place, seconds: int) -> None:
    each = 2
    went: dict[str, Counter[str]] = {api: Counter() for api in USERS}
    port = int(place.node.url.rpartition(":")[2])
    with ExitStack() as stack:
        proxies = [stack.enter_context(cutting_proxy(port)) for _ in range(each * len(USERS))]
        threads = stack.enter_context(ThreadPoolExecutor(len(proxies)))
        stack.enter_context(hanging_now_and_then(place.store))
        until_s = time.monotonic() + seconds
        users = [
            (api, threads.submit(user, api, number, proxies.pop(), until_s))
            for api in USERS
            for number in range(each)
        ]
        for api, talking in users:
            went[api] += talking.result()
    sys.stdout.write(f"{seconds} s: {went}\n")
    assert all(counts["whole"] > counts["broke"] for counts in went.values()), went
    assert sum(counts["broke"] for counts in went.values()) > 0
    assert "Traceback" not in place.node.process.said()
