import contextlib
import json

import pytest
import typer

from smg_chaos.bench.micro.messages_read import Case, Scene, measure, messages_read, table

SMALL = Case("small", 40_000, 1_000.0)


def test_a_body_has_about_the_length_that_its_row_says() -> None:
    for characters in (50_000, 200_000):
        raw = Scene(Case("x", characters, None)).raw
        assert characters * 0.8 < len(raw) < characters * 1.2
        body = json.loads(raw)
        assert len(body["tools"]) == 12
        assert body["messages"][-1]["content"][0]["type"] == "tool_result"


def test_figures_are_told_to_people_and_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = measure([SMALL], rounds=2)
    assert [row["case"] for row in rows] == ["small"]
    assert 0 < rows[0]["read_ms"] <= rows[0]["worst_ms"]
    assert rows[0]["longest_slice_ms"] > 0
    assert "small" in table(rows)
    missed = measure([Case("small", 40_000, 0.0)], rounds=1)
    assert not missed[0]["kept"]
    assert "MISSED" in table(missed)
    with contextlib.suppress(typer.Exit):  # on a machine that is busy with something else
        messages_read(rounds=1, as_json=True)
    assert [row["case"] for row in json.loads(capsys.readouterr().out)] == ["50 KB", "2 MB"]
