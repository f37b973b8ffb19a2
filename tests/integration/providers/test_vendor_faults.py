"""Vendors that fail: every break is an error in the client's API with its class, and never a clean end.

Planted secrets, the key and the account of the provider, stand in no answer, header, log line or metric.
"""

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from support.processes.node import RunningNode, running_node
from support.providers.stand_ins import KEY, StandIn, running_stand_ins

pytestmark = pytest.mark.integration

KEYS = {"keys": [KEY], "timeouts": {"first_event_s": 2.0, "stall_s": 2.0}}
VENDORS: dict[str, tuple[dict[str, Any], str]] = {
    "openai": ({**KEYS, "organization": "org-planted"}, "gpt-4.1-mini"),
    "anthropic": (KEYS, "claude-sonnet-5"),
    "gemini": (KEYS, "gemini-2.5-flash"),
}
SECRETS = (KEY, "org-planted")
TEXT = "words=12"


class Said(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True)
class World:
    node: RunningNode
    vendors: Mapping[str, StandIn]

    def ask(self, path: str, body: Any) -> Said:
        host = urlsplit(self.node.url)
        connection = http.client.HTTPConnection(str(host.hostname), host.port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            answer = connection.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            try:
                raw = answer.read()
            except http.client.IncompleteRead as cut:
                raw = cut.partial + b"[cut]"
            return Said(answer.status, headers, raw.decode())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    scratch = tmp_path_factory.mktemp("faults")
    kinds = [word for kind in VENDORS for word in ("--kind", kind)]
    with running_stand_ins(scratch, *kinds, "--model", "*") as (stands, _):
        vendors = dict(zip(VENDORS, stands, strict=True))
        said = {
            kind: {"kind": kind, "base": vendors[kind].base, **more}
            for kind, (more, _) in VENDORS.items()
        }
        routes = {
            f"{kind}-{n}": {"targets": [f"{kind}/{model}"]}
            for kind, (_, model) in VENDORS.items()
            for n in range(2)
        }
        file = scratch / "providers.json"
        file.write_text(json.dumps({"providers": said, "routes": routes}))
        flags = (
            *("--providers", str(file)),
            *("--readiness.min-workers", str(2 * len(VENDORS))),
            *("--retry.attempts", "1"),
            # One target alone: what is judged here are errors, and not who is asked next.
            *("--breaker.enabled", "false"),
        )
        with running_node(scratch / "node", flags=flags) as node:
            node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
            yield World(node, vendors)


@pytest.fixture
def world(running: World) -> Iterator[World]:
    yield running
    for vendor in running.vendors.values():
        vendor.admin("/faults", {"faults": []}, "PUT")


def fault(world: World, kind: str, spec: str) -> None:
    world.vendors[kind].admin("/faults", {"faults": [spec]}, "PUT")


def chat(model: str, *, stream: bool) -> tuple[str, Any]:
    messages = [{"role": "user", "content": TEXT}]
    return "/v1/chat/completions", {"model": model, "messages": messages, "stream": stream}


def messages(model: str, *, stream: bool) -> tuple[str, Any]:
    said = [{"role": "user", "content": TEXT}]
    body = {"model": model, "max_tokens": 500, "messages": said, "stream": stream}
    return "/v1/messages", body


def contents(model: str, *, stream: bool) -> tuple[str, Any]:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{method}", {"contents": [{"parts": [{"text": TEXT}]}]}


APIS = {"chat": chat, "messages": messages, "contents": contents}
# What ends a stream in each API where it is whole.
ENDS = {"chat": "[DONE]", "messages": "message_stop", "contents": '"finishReason":"STOP"'}
WAYS = [(kind, api) for kind in VENDORS for api in APIS]
BREAKS = [
    *(f"cut:after={n}" for n in (0, 1, 2, 4)),
    *(f"garbage:after={n}" for n in (0, 1, 3)),
    "no-end",
    "error:after=0,reason=overloaded",
    "error:after=3,reason=overloaded",
    "html",
    "stall:after=2",
]


def check_clean(said: Said) -> None:
    told = said.body + json.dumps(dict(said.headers))
    assert [secret for secret in SECRETS if secret in told] == []


# Gemini's last words and its end are one event: without the end there is a cut, which is another case.
@pytest.mark.parametrize(
    ("kind", "api", "spec"),
    [(*way, spec) for way in WAYS for spec in BREAKS if (way[0], spec) != ("gemini", "no-end")],
)
def test_a_broken_stream_never_ends_cleanly(world: World, kind: str, api: str, spec: str) -> None:
    fault(world, kind, spec)
    said = world.ask(*APIS[api](f"{kind}-0", stream=True))
    check_clean(said)
    assert ENDS[api] not in said.body
    if said.status == 200:
        assert "error" in said.body
    else:
        assert said.status in (429, 502, 503, 504, 529), said.body


NATIVE = [("openai", "chat"), ("anthropic", "messages"), ("gemini", "contents")]
ANSWERS = [
    (kind, api, spec) for kind, api in WAYS for spec in ("html", "cut:after=0", "garbage:after=0")
]


# A stream of a vendor that is whole by its own word stays so, whatever its length was said to be; a body does not.
@pytest.mark.parametrize(
    ("kind", "api", "spec"), [*ANSWERS, *((*way, "length:by=5") for way in NATIVE)]
)
def test_a_broken_answer_is_an_error(world: World, kind: str, api: str, spec: str) -> None:
    fault(world, kind, spec)
    said = world.ask(*APIS[api](f"{kind}-0", stream=False))
    check_clean(said)
    assert said.status in (502, 503, 504), said.body


REFUSALS = [
    ("invalid", {400}),
    ("too-long", {400}),
    ("content-filter", {400}),
    ("server", {502}),
    ("unavailable", {503, 529}),
    ("overloaded", {503, 529}),
    ("timeout", {504}),
]


@pytest.mark.parametrize(("reason", "statuses"), REFUSALS)
@pytest.mark.parametrize(("kind", "api"), WAYS)
def test_a_refusal_has_the_status_of_its_class(
    world: World, kind: str, api: str, reason: str, statuses: set[int]
) -> None:
    fault(world, kind, f"status:reason={reason}")
    said = world.ask(*APIS[api](f"{kind}-1", stream=False))
    check_clean(said)
    assert said.status in statuses, said.body


def test_logs_and_metrics_hold_no_secret(world: World) -> None:
    with urlopen(f"{world.node.metrics_url}/metrics", timeout=10) as answer:
        told = world.node.process.said() + answer.read().decode()
    assert [secret for secret in SECRETS if secret in told] == []
