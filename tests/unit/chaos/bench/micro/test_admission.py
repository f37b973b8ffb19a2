import json

import pytest

from smg_chaos.bench.micro.admission import CASES, Scene, admission, measure, table


def test_every_case_is_what_its_row_says() -> None:
    for case in CASES:
        scene = Scene(case)
        scene.burst()
        limits = scene.matching("tenant-1", "key1", "model")
        assert len(limits) == case.requests + case.tokens
        spent = [scene.share(limit.key).spent for limit in limits]
        if case.left:
            # What is open at a time is given back, all else stays spent.
            assert all(spent[at] > 0 for at, limit in enumerate(limits) if limit.window_ms)
            assert not any(spent[at] for at, limit in enumerate(limits) if not limit.window_ms)
        else:
            assert not any(spent)


def test_figures_are_told_to_people_and_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = measure(CASES[:2], rounds=2, bursts=2)
    assert [row["case"] for row in rows] == ["no limits", "1 limit"]
    assert all(0 < row["best_us"] <= row["median_us"] <= row["worst_us"] for row in rows)
    assert all(row["case"] in table(rows) for row in rows)
    admission(rounds=1, bursts=1, as_json=True)
    assert len(json.loads(capsys.readouterr().out)) == len(CASES)
    admission(rounds=1, bursts=1, as_json=False)
    assert "6 limits, 3 of tokens" in capsys.readouterr().out
