"""Checkpoints stand behind what was said, as often as is set, and last where the node drains."""

import pytest

from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.http.routes.stored.checkpoints import Checkpoints


class Stage:
    def __init__(self, every_ms: int) -> None:
        self.now_s = 5.0
        self.draining = False
        self.checkpoints = Checkpoints(
            lambda number, leaving: b"<%d!>" % number if leaving else b"<%d>" % number,
            every_ms=every_ms,
            now_s=lambda: self.now_s,
            drains=lambda: self.draining,
        )

    def told(self, *types: str, first: int = 0) -> bytes:
        return self.checkpoints.behind(
            [NumberedEvent(first + at, kind, b"{}") for at, kind in enumerate(types)]
        )


@pytest.mark.parametrize(
    ("kind", "passed_s", "expected"),
    [
        ("step.delta", 0.249, b""),
        ("step.delta", 0.25, b"<1>"),
        ("step.start", 0.0, b""),
        ("step.stop", 0.0, b"<1>"),
        ("interaction.completed", 9.0, b""),
    ],
)
def test_one_is_due_behind_a_step_and_after_its_time(
    kind: str, passed_s: float, expected: bytes
) -> None:
    stage = Stage(every_ms=250)
    assert stage.told("interaction.created") == b"<0>"
    stage.now_s += passed_s
    assert stage.told(kind, first=1) == expected


def test_with_no_time_between_them_one_is_behind_every_write() -> None:
    stage = Stage(every_ms=0)
    assert [stage.told("step.delta", first=at) for at in range(3)] == [b"<0>", b"<1>", b"<2>"]


def test_a_stream_can_leave_from_its_first_event_to_its_last() -> None:
    stage = Stage(every_ms=250)
    stage.draining = True
    assert stage.checkpoints.can_leave()
    assert stage.checkpoints.farewell() == b"<-1!>"
    stage.draining = False
    stage.told("interaction.created", "step.start", "step.delta")
    assert stage.checkpoints.can_leave()
    assert stage.checkpoints.farewell() == b""
    stage.draining = True
    assert stage.checkpoints.farewell() == b"<2!>"
    stage.told("step.stop", "interaction.completed", first=3)
    assert not stage.checkpoints.can_leave()
    assert stage.checkpoints.farewell() == b""


def test_what_is_told_while_the_node_drains_is_the_last_and_has_one_behind_it() -> None:
    stage = Stage(every_ms=10_000)
    stage.told("interaction.created")
    assert not stage.checkpoints.leaves
    stage.draining = True
    assert stage.told("step.delta", first=1) == b"<1!>"
    assert stage.checkpoints.leaves
