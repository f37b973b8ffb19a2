"""The benchmark of signed tokens measures what it says."""

import pytest

from smg_chaos.bench.micro.signed_tokens import ALGORITHMS, Scene, measure, table


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_scene_judges_a_good_token_both_ways(algorithm: str) -> None:
    scene = Scene(algorithm)
    assert scene.new_us() > 0
    assert scene.known_us() > 0
    theirs = scene.pyjwt_us()
    assert theirs is not None
    assert theirs > 0


def test_a_row_tells_all_figures() -> None:
    (row,) = measure(["ES256"], rounds=1)
    assert row["ratio"] == pytest.approx(row["new_us"] / row["pyjwt_us"])
    text = table([row, {**row, "kept": False}, {**row, "ratio": None}])
    assert text.count("ES256") == 3
    assert "MISSED" in text
    assert "not installed" in text
