"""A data process: how long it waits for its workers before it listens."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from smg_node.config.address import Address
from smg_node.processes.process_role import Orders, Place, Role
from smg_node.wiring.data_process import REPLACED_PATIENCE_S, WORKERS_PATIENCE_S, patience_s


@pytest.fixture
def orders() -> Iterator[Orders]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Orders(theirs)


@pytest.mark.parametrize(
    ("living", "after", "wanted_s"),
    [
        ((), "", WORKERS_PATIENCE_S),
        (("1-10",), "", WORKERS_PATIENCE_S),
        ((), "signal 9", WORKERS_PATIENCE_S),
        (("1-10",), "signal 9", REPLACED_PATIENCE_S),
    ],
    ids=["first of all", "one of many", "nobody else serves", "others serve"],
)
def test_a_replacement_waits_longer_where_others_serve_meanwhile(
    orders: Orders, living: tuple[str, ...], after: str, wanted_s: float
) -> None:
    place = Place(Path("/"), Address("127.0.0.1", 1))
    assert patience_s(Role("data", "2-20", orders, place, living, after)) == wanted_s
