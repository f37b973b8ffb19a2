"""A provider where nobody listens is told soon, with its name, and another target answers in its place; so does another key
in the place of one that is to rest.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.process import reserved_port
from support.providers.stand_ins import KEY, running_stand_ins

pytestmark = pytest.mark.integration

RESTS = "sk-rests"
"""A key that its vendor asks to rest for `REST_S` each time."""
REST_S = 60
SOON_S = 3.0
"""Far below two waits of 2 s each for an engine to come back, and far above what it takes."""


@dataclass(frozen=True)
class Said:
    status: int
    body: Any
    took_s: float


def ask(node: RunningNode, model: str) -> Said:
    body = {"model": model, "messages": [{"role": "user", "content": "words=2"}]}
    request = Request(
        f"{node.url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    began_s = time.monotonic()
    try:
        with urlopen(request, timeout=60) as answer:
            status, raw = answer.status, answer.read()
    except HTTPError as error:
        status, raw = error.code, error.read()
    return Said(status, json.loads(raw), time.monotonic() - began_s)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    scratch = tmp_path_factory.mktemp("unreachable")
    with (
        running_stand_ins(
            scratch, "--kind", "openai", "--model", "*", "--key", KEY, "--key", RESTS
        ) as ((well,), _),
        reserved_port() as port,
    ):
        away = {"kind": "openai", "base": f"http://127.0.0.1:{port}/v1", "keys": [KEY]}
        both = ["away/gpt-4.1-mini", {"to": "well/gpt-4.1-mini", "on": ["broken", "full"]}]
        said = {
            "providers": {
                "away": away,
                "well": {"kind": "openai", "base": well.base, "keys": [KEY]},
                "pool": {"kind": "openai", "base": well.base, "keys": [RESTS, KEY]},
            },
            "routes": {
                "alone": {"targets": ["away/gpt-4.1-mini"]},
                "both": {"targets": both},
                "pooled": {"targets": ["pool/gpt-4.1-mini"]},
            },
        }
        file = scratch / "providers.json"
        file.write_text(json.dumps(said))
        rests = f"status:reason=rate,retry_after={REST_S},key={RESTS}"
        well.admin("/faults", {"faults": [rests]}, "PUT")
        flags = ("--providers", str(file), "--readiness.min-workers", "4")
        with running_node(scratch / "node", flags=flags) as node:
            node.process.wait_until(lambda: node.status("/readiness") == 200, "ready", 60)
            yield node


def test_its_clients_are_told_soon_with_its_name(node: RunningNode) -> None:
    first = ask(node, "alone")
    assert (first.status, first.body["error"]["code"]) == (502, "provider_unreachable")
    assert "the provider 'away' cannot be reached" in first.body["error"]["message"]
    later = [ask(node, "alone") for _ in range(8)]
    for said in (first, *later):
        assert said.took_s < SOON_S
        assert "'away'" in said.body["error"]["message"]
        assert said.status in (502, 503)
    assert "provider_unavailable" in {said.body["error"]["code"] for said in later}


def test_another_target_answers_in_its_place(node: RunningNode) -> None:
    for _ in range(12):
        said = ask(node, "both")
        assert said.status == 200, said
        assert said.took_s < SOON_S


def test_another_key_goes_on_in_the_place_of_one_that_is_to_rest(node: RunningNode) -> None:
    """The vendor is as well as before: its target is neither left alone nor waited for."""
    for _ in range(12):
        said = ask(node, "pooled")
        assert said.status == 200, said
        assert said.took_s < SOON_S
