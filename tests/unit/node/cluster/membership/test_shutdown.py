import logging
import signal

import pytest

from smg_node.cluster.membership.shutdown import OK, SUPERSEDED, Shutdown
from smg_node.core.errors import SmgError
from support.http.http_node import node


async def test_the_first_reason_to_leave_counts() -> None:
    farewell = Shutdown()
    assert (farewell.leaving, farewell.draining, farewell.code) == (False, False, OK)
    farewell.leave("superseded", code=SUPERSEDED)
    farewell.leave("asked to leave")
    assert (farewell.leaving, farewell.draining, farewell.code) == (True, True, SUPERSEDED)


async def test_a_second_signal_hurries_and_a_first_one_after_an_operators_word_does_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with node() as served:
        farewell = Shutdown()
        farewell.server = served.server
        with caplog.at_level(logging.INFO):
            farewell.leave("asked to leave")
            assert "asked to leave: draining" in caplog.text
            farewell.signalled(signal.SIGTERM)
        assert "SIGTERM again" in caplog.text
        await served.server.drain()


async def test_a_signal_alone_drains_and_is_no_failure() -> None:
    farewell = Shutdown()
    farewell.signalled(signal.SIGINT)
    assert (farewell.leaving, farewell.code) == (True, OK)


async def test_a_node_that_has_no_server_yet_cannot_be_set_aside() -> None:
    farewell = Shutdown()
    assert not farewell.aside
    with pytest.raises(SmgError, match="leaving"):
        farewell.set_aside(on=True)
