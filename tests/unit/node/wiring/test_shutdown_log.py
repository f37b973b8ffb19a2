"""A node that leaves says what it waits for, so that whoever waits for it knows."""

import logging
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.http.app import Server
from smg_node.http.ports.drain import OpenWork
from smg_node.wiring import base
from smg_node.wiring.base import running
from support.http.raw_http import until

if TYPE_CHECKING:
    from smg_node.processes.control_process import Controlling

SAID = "draining: 3 streams, 1 requests and 2 background responses are open; cut off in 90 s"


def farewell_with(work: OpenWork) -> Shutdown:
    farewell = Shutdown()
    farewell.server = cast(Server, SimpleNamespace(work=lambda: work))
    return farewell


async def first_line(
    farewell: Shutdown, control: "Controlling | None", caplog: pytest.LogCaptureFixture
) -> str:
    with caplog.at_level(logging.INFO):
        async with running({"farewell": partial(base.log_open_work, farewell, control)}):
            await until(lambda: bool(caplog.messages))
    return caplog.messages[0]


async def test_it_says_what_is_open_and_when_that_is_cut_off(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "OPEN_WORK_LOG_S", 0.001)
    open_here = farewell_with(OpenWork(1, 3, 2, cut_left_s=90.0))
    assert await first_line(open_here, None, caplog) == SAID


async def test_what_other_processes_have_open_counts_and_how_far_they_are(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "OPEN_WORK_LOG_S", 0.001)
    asked: list[OpenWork] = []

    async def of_all(own: OpenWork) -> OpenWork:
        asked.append(own)
        return OpenWork(1, 3, 2, cut_left_s=90.0)

    control = cast("Controlling", SimpleNamespace(open_work=of_all))
    own = OpenWork(background=2, taking=True, settle_left_s=4.0, cut_left_s=1.0)
    assert await first_line(farewell_with(own), control, caplog) == SAID
    assert asked[0] == OpenWork(background=2), "how far the control process itself is says nothing"
