"""Google's official client as judge of refusals: what is tried again, when, and what is not.

The node is in this process, and says what a script says; nothing else is played.
"""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from google.genai._interactions_errors import APIStatusError

from smg_node.core.context_limit import prompt_too_long
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event, Fail
from support.clients.genai_client import client_of
from support.history.fake_runs import FakeRun
from support.http.history_routes import Here, carried
from support.http.http_node import hello, node
from support.http.raw_http import ask

pytestmark = pytest.mark.conformance

LATE_S = 2.5
"""So much later than it was told to, a client may come again on a busy machine."""


class Failing:
    """A generation that fails so often, and then says hello; when it was asked for is in `asked_s`."""

    def __init__(self, failure: SmgError, times: int) -> None:
        self._failure = failure
        self._left = times
        self.asked_s: list[float] = []

    async def script(self, run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        self.asked_s.append(time.monotonic())
        if self._left:
            self._left -= 1
            yield [Fail(self._failure)]
            return
        async for batch in hello(run):
            yield batch


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("kind", "after_s"),
    [(ErrorKind.RATE_LIMITED, 1.0), (ErrorKind.OVERLOADED, 0.7)],
)
async def test_what_may_pass_is_tried_again_when_we_said(
    kind: ErrorKind, after_s: float, streamed: bool
) -> None:
    failing = Failing(SmgError(kind, "not now", retry_after_s=after_s), times=1)
    here = Here()
    async with (
        node(failing.script, history=here) as served,
        carried(served, here),
        client_of(f"http://127.0.0.1:{served.port}").aio as client,
    ):
        made = await client.interactions.create(model="m", input="hi", stream=streamed)
        said = made.output_text if not streamed else await text_of(made)
    assert said == "Hello world"
    first_s, second_s = failing.asked_s
    assert after_s <= second_s - first_s < after_s + LATE_S


async def text_of(stream: Any) -> str:
    return "".join([e.delta.text async for e in stream if e.event_type == "step.delta"])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (SmgError(ErrorKind.INVALID_REQUEST, "wrong"), 400),
        (prompt_too_long(12, 10, "input"), 400),
        (SmgError(ErrorKind.UPSTREAM_FAILED, "no engine can", status=501), 400),
        (SmgError(ErrorKind.FORBIDDEN, "not yours"), 403),
        (SmgError(ErrorKind.NOT_FOUND, "no such model"), 404),
    ],
)
async def test_what_stays_wrong_is_not_tried_again(
    failure: SmgError, status: int, streamed: bool
) -> None:
    failing = Failing(failure, times=9)
    here = Here()
    async with (
        node(failing.script, history=here) as served,
        carried(served, here),
        client_of(f"http://127.0.0.1:{served.port}").aio as client,
    ):
        with pytest.raises(APIStatusError) as caught:
            await client.interactions.create(model="m", input="hi", stream=streamed)
    assert caught.value.status_code == status
    assert len(failing.asked_s) == 1


@pytest.mark.parametrize(
    ("path", "dialect"),
    [
        ("/v1beta/interactions", True),
        ("/v1/interactions/int_none", True),
        ("/v1beta/models/m:generateContent", True),
        ("/v1beta/models", True),
        ("/v1/chat/completions", False),
    ],
)
async def test_a_key_in_a_query_counts_on_googles_routes_and_is_not_logged(
    path: str, dialect: bool
) -> None:
    here = Here()
    async with node(hello, history=here) as served:
        made = await ask(served.port, "POST", "/v1/cluster/keys", {"role": "admin"})
        key = made.json()["key"]
        body = {
            "model": "m",
            "input": "hi",
            "store": False,
            "contents": [{"parts": [{"text": "hi"}]}],
        }
        method = "GET" if path.endswith(("none", "models")) else "POST"
        statuses = [
            (
                await ask(served.port, method, f"{path}{query}", body if method == "POST" else b"")
            ).status
            for query in ("", f"?key={key}", "?key=sk-wrong", f"?alt=json&key={key}x")
        ]
        logged = b"".join(served.access.lines)
    assert [status == 401 for status in statuses] == [True, not dialect, True, True]
    assert key.encode() not in logged
    assert path.encode() in logged
