import asyncio

import pytest

from smg_node.admission.usage.usage_book import UsageBook
from smg_node.admission.usage.usage_lines import Line
from smg_node.core.prices.price_list import PriceList
from smg_node.processes.reports.usage_messages import pack_used, read_used
from smg_node.processes.reports.usage_sender import UsageSender
from support.http.raw_http import until
from support.http.request_usage import Wall, outcome


def book() -> UsageBook:
    return UsageBook(PriceList(), now_ms=Wall().now_ms, life="a")


async def test_what_was_used_is_sent_together_and_soon() -> None:
    usage, whole = book(), book()
    sender = UsageSender(usage, every_s=0.01)
    sent: list[bytes] = []
    sender.link(sent.append)
    for _ in range(100):
        usage.record(outcome())
    assert sent == []
    await until(lambda: sent)
    usage.record(outcome(key_id="k2"))
    await until(lambda: len(sent) == 2)
    for content in sent:
        whole.take(read_used(content))
    assert {one.who: one.requests for one in whole.lines()} == {
        ("acme", "k1", "m", "", ""): 100,
        ("acme", "k2", "m", "", ""): 1,
    }


async def test_without_a_control_process_it_is_kept_until_there_is_one() -> None:
    usage = book()
    sender = UsageSender(usage, every_s=0.0)
    sent: list[bytes] = []
    usage.record(outcome())
    sender.link(sent.append)
    assert len(sent) == 1
    sender.cut()
    usage.record(outcome())
    usage.record(outcome())
    sender.send()
    await asyncio.sleep(0.01)
    assert len(sent) == 1
    sender.link(sent.append)
    [line] = read_used(sent[1])
    assert line.requests == 2


async def test_nothing_is_sent_where_nothing_was_used() -> None:
    usage = book()
    sent: list[bytes] = []
    sender = UsageSender(usage, every_s=0.0)
    sender.link(sent.append)
    await asyncio.sleep(0.01)
    sender.send()
    assert sent == []


@pytest.mark.parametrize(
    "garbage",
    [
        pack_used([Line("a", 0, "", "", "", run_ms=-1)]),
        b"",
        b"\xc1",
        b"\x91\x90",
        b"\x91\xa1x",
        pack_used([Line("a", 0, "", "", "", answer=-1)]),
    ],
)
def test_garbage_is_refused(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="not what requests used"):
        read_used(garbage)
