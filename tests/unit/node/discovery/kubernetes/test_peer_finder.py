"""A peer finder in front of answers that are none."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.mesh import Address, FindError
from smg_node.discovery.kubernetes import peer_finder as module
from smg_node.discovery.kubernetes.api_server import AskFailedError
from smg_node.discovery.kubernetes.kube_config import Access
from smg_node.discovery.kubernetes.peer_finder import PeerFinder, PeerOptions
from smg_node.engines.http.transport import HttpAnswer
from smg_node.engines.transport.transport import StatusCode, TransportError
from support.kubernetes.pod_text import a_list, pod

OPTIONS = PeerOptions(" app=smg-node ", "", "sglang.ai/mesh-port", 7946)


class Answer:
    """One answer, in pieces; fulfils `HttpAnswer`."""

    def __init__(self, body: bytes, status: int = 200, *, cut: bool = False) -> None:
        self.status = status
        self.headers: Sequence[tuple[str, str]] = ()
        self.closed = 0
        self._pieces = [body[at : at + 100] for at in range(0, len(body), 100)]
        self._cut = cut

    async def read(self) -> bytes:
        if not self._pieces and self._cut:
            raise TransportError(StatusCode.UNAVAILABLE, "the connection was lost")
        return self._pieces.pop(0) if self._pieces else b""

    def close(self) -> None:
        self.closed += 1


class Api:
    """Gives one answer; fulfils `Api`."""

    def __init__(self, answer: Answer | None) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.closed = 0

    async def access(self) -> Access:
        return Access("https://api", "gateways")

    async def get(self, path: str) -> HttpAnswer:
        self.asked.append(path)
        if self.answer is None:
            raise AskFailedError("https://api: failed to connect")
        return self.answer

    async def close(self) -> None:
        self.closed += 1


def find(api: Api) -> Sequence[Address]:
    finder = PeerFinder(OPTIONS, api, monotonic_s=lambda: 0.0)

    async def found() -> Sequence[Address]:
        return await finder.find()

    return asyncio.run(found())


def test_the_servers_memory_is_asked_in_the_nodes_own_namespace() -> None:
    api = Api(Answer(a_list(pod(ip="10.1.0.1"))))
    assert find(api) == [Address("10.1.0.1", 7946)]
    assert api.asked == [
        "/api/v1/namespaces/gateways/pods?labelSelector=app%3Dsmg-node&limit=500&resourceVersion=0"
    ]
    assert api.answer is not None
    assert api.answer.closed == 1


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "failed to connect"),
        (Answer(a_list(pod()), cut=True), "the connection was lost"),
        (Answer(b"<html>"), "not a list"),
        (Answer(b'{"metadata": {}}'), "list"),
        (Answer(b"", 200), "not a list"),
        (Answer(b"nonsense", 503), "503: list of pods in the namespace gateways: no reason given"),
        (Answer(a_list(pod(ip=""))), "it selects no pod"),
    ],
)
def test_whatever_is_no_list_of_peers_is_said_in_words(answer: Answer | None, why: str) -> None:
    with pytest.raises(FindError, match=why):
        find(Api(answer))
    assert answer is None or answer.closed == 1


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_MAX_BYTES", 1000)
    answer = Answer(a_list(*(pod(f"smg-{number}") for number in range(10))))
    with pytest.raises(FindError, match="more than 1000 bytes"):
        find(Api(answer))
    assert answer.closed == 1


def test_a_name_for_operators_is_short_and_printable() -> None:
    options = PeerOptions("app in (\n" + "x" * 500 + ")", "", "a", 1)
    text = PeerFinder(options, Api(None), monotonic_s=lambda: 0.0).text
    assert text.isprintable()
    assert len(text) < 200


@given(st.binary(max_size=300), st.sampled_from([200, 204, 301, 401, 404, 500]))
def test_any_answer_is_addresses_or_a_reason(body: bytes, status: int) -> None:
    with pytest.raises(FindError, match=r".+"):
        find(Api(Answer(body, status)))
