"""Engines behind gateways: what the one of a row with pictures takes."""

import json
from pathlib import Path

import pytest

from smg_chaos.bench.gateways.engines import EngineChoice, grpc_command
from smg_chaos.bench.load.workloads import chosen
from smg_chaos.engine.scripts.bundle import tiny_bundle


def test_rows_of_bfloat16_have_an_engine_that_does_not_normalise() -> None:
    choice, script = EngineChoice(vision="qwen3_vl", halves=True), Path("script.txt")
    command = " ".join(grpc_command(choice, port=1, script=script, step_ms=0))
    assert "--no-media-normalizes --media-dtype bfloat16 --media-area-max 1048576" in command
    plain = " ".join(
        grpc_command(EngineChoice(vision="qwen3_vl"), port=1, script=script, step_ms=0)
    )
    assert "media" not in plain
    rows = {one.name: one.behind for one in chosen(["pictures"], [])}
    assert {name for name, behind in rows.items() if behind == "halves"} == {
        "picture-bf16",
        "picture-bf16-screen",
    }


@pytest.mark.parametrize(("family", "most"), [("qwen3_vl", 16777216), ("qwen2_5_vl", 12845056)])
def test_the_largest_area_stands_in_the_processors_files(family: str, most: int) -> None:
    for area_max, said in ((0, most), (1 << 20, 1 << 20)):
        bundle = tiny_bundle("m", vocabulary=4160, context=64, vision=family, area_max=area_max)
        files = json.loads(bundle.files["preprocessor_config.json"])
        assert (files.get("max_pixels") or files["size"]["longest_edge"]) == said
