"""How much of the machine was left: between two looks, and at least."""

from pathlib import Path

import pytest

from smg_chaos.gameday.limits.headroom import Headroom


def test_the_idle_share_is_of_what_passed_since_the_last_look(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 100 300 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
    headroom = Headroom(stat)
    assert headroom.look() == 1.0
    stat.write_text("cpu  150 0 120 320 10 0 0 0 99 99\n")
    assert headroom.look() == pytest.approx(0.3)
    stat.write_text("cpu  150 0 120 420 10 0 0 0 99 99\n")
    assert headroom.look() == 1.0
    assert headroom.least == pytest.approx(0.3)


def test_the_kernel_tells_it() -> None:
    assert 0.0 <= Headroom().look() <= 1.0
