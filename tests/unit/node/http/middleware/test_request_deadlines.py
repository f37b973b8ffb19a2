"""How long a request may take, and who may shorten it."""

import pytest

from support.http.http_node import chat, node
from support.http.raw_http import ask


@pytest.mark.parametrize(
    ("sent", "timeout_s"),
    [
        ({}, 1800),
        ({"x-stainless-read-timeout": "600"}, 600),
        ({"x-smg-timeout-ms": "1500"}, 1.5),
        ({"x-stainless-read-timeout": "20", "x-smg-timeout-ms": "90000"}, 20),
        ({"x-stainless-read-timeout": "99999"}, 1800),
        ({"x-stainless-read-timeout": "soon"}, 1800),
        ({"x-smg-timeout-ms": "-5"}, 1800),
        ({"x-smg-timeout-ms": "nan"}, 1800),
    ],
)
async def test_a_client_can_only_shorten_its_deadline(
    sent: dict[str, str], timeout_s: float
) -> None:
    async with node() as served:
        await ask(served.port, "POST", "/v1/chat/completions", chat(), sent)
        (run,) = served.generations.runs
    assert run.context.deadline_s - run.context.received_s == pytest.approx(timeout_s)


async def test_a_pause_between_bytes_is_no_deadline_for_a_stream() -> None:
    async with node() as served:
        sent = {"x-stainless-read-timeout": "600"}
        await ask(served.port, "POST", "/v1/chat/completions", chat(stream=True), sent)
        (run,) = served.generations.runs
    assert run.context.deadline_s - run.context.received_s == pytest.approx(1800)
