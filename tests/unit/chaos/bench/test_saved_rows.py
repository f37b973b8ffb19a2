"""The rows of a run are kept, and whoever has them can have its page again."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from smg_chaos.bench.bench import Bench
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.compare import Wish, compare
from smg_chaos.bench.figures.rows import Row
from smg_chaos.bench.gateways import gateways
from smg_chaos.bench.gateways.gateways import EQUIPPED
from smg_chaos.bench.goals import REFERENCE
from smg_chaos.bench.options import Options

FACTS = {
    "at": "2026-11-26T15:12:00+00:00",
    "rounds": 3,
    "laps": 2,
    "duration_s": 6.0,
    "clients": 32,
}


def row(gateway: str, number: int, lap: int, cpu_s: float, part: str = "goals") -> Row:
    return Row(
        workload="short",
        gateway=gateway,
        round=number,
        lap=lap,
        part=part,
        seconds=2.0,
        requests=1_000,
        tokens=8_000,
        gateway_cpu_s=cpu_s,
    )


def kept(folder: Path, rows: list[Row]) -> Path:
    path = folder / "rows.json"
    path.write_bytes(msgspec.json.encode({"facts": FACTS, "rows": rows}))
    return path


def test_a_run_before_is_judged_by_its_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        row(gateway, number, lap, cost_s)
        for number in range(3)
        for lap in range(2)
        for gateway, cost_s in ((EQUIPPED, 0.1), (REFERENCE, 0.2))
    ]
    # Of another part of the run, under the same names.
    rows += [row(EQUIPPED, number, 0, 7.0, part="growth-1") for number in range(2)]
    page = tmp_path / "page.md"
    assert compare(Options(again=kept(tmp_path, rows)), Wish(page, anew=False)) == 1
    text = page.read_text()
    assert text == capsys.readouterr().out.removesuffix("\n")
    assert "| 2026-11-26 15:12 UTC |" in text
    assert "3 of 6.0 s, each in 2 laps" in text
    [short] = [line for line in text.splitlines() if line.startswith("| short chat")]
    assert "| 100 | 200 | µs per request | 0.500 | 0.6 |" in short
    assert short.endswith("| 0% | pass |")
    assert "not measured" in text
    assert "## Growth: clients" in text


def test_what_had_no_result_and_was_measured_anew_counts_as_it_was_then(tmp_path: Path) -> None:
    rows = [row(EQUIPPED, number, 0, cost_s) for number, cost_s in enumerate((0.1, 0.1, 0.2))]
    rows += [row(REFERENCE, number, 0, 0.2) for number in range(3)]
    page = tmp_path / "page.md"
    compare(Options(again=kept(tmp_path, rows)), Wish(page, anew=False))
    assert "| no result: smg-node-equipped spread by 100% |" in page.read_text()
    rows += [
        row(gateway, number, 0, cost_s, part="goals-anew")
        for number in range(3)
        for gateway, cost_s in ((EQUIPPED, 0.11), (REFERENCE, 0.2))
    ]
    compare(Options(again=kept(tmp_path, rows)), Wish(page, anew=False))
    assert "| 110 | 200 | µs per request | 0.550 | 0.6 | 0.35 | 0% | pass (measured anew) |" in (
        page.read_text()
    )


def test_what_had_a_result_is_not_what_was_measured_anew(tmp_path: Path) -> None:
    rows = [row(EQUIPPED, number, 0, 0.1) for number in range(3)]
    rows += [row(REFERENCE, number, 0, 0.2) for number in range(3)]
    rows += [row(EQUIPPED, number, 0, 0.01, part="goals-anew") for number in range(3)]
    page = tmp_path / "page.md"
    compare(Options(again=kept(tmp_path, rows)), Wish(page, anew=False))
    assert "| 100 | 200 | µs per request | 0.500 | 0.6 | 0.35 | 0% | pass |" in page.read_text()


@pytest.mark.parametrize("why", [KeyboardInterrupt, asyncio.CancelledError, BenchError])
def test_a_run_that_does_not_come_to_its_end_keeps_what_it_measured(
    why: type[BaseException],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def run(bench: Bench) -> None:
        for number in range(3):
            for name, cpu_s in ((EQUIPPED, 0.1), (REFERENCE, 0.2)):
                bench._keep(row(name, number, 0, cpu_s, part=""), number, 0)
        raise why

    monkeypatch.setattr(Bench, "run", run)
    monkeypatch.setattr(gateways, "is_installed", lambda *_: True)
    monkeypatch.setattr(gateways, "version_of", lambda *_: "1")
    options = Options(out=tmp_path, rounds=3, laps=1)
    page = tmp_path / "page.md"
    if why is BenchError:
        with pytest.raises(BenchError):
            compare(options, Wish(page))
    else:
        assert compare(options, Wish(page)) == 130
    assert not page.exists()
    [path] = tmp_path.glob("compare-*/rows.json")
    said = capsys.readouterr().err.replace("\n", "")
    assert f"what was measured is kept: smg-chaos compare --again {path}" in said
    compare(Options(again=path), Wish(page, anew=False))
    text = page.read_text()
    assert "| 100 | 200 | µs per request | 0.500 | 0.6 | 0.35 | 0% | pass |" in text
    assert "| smg | SMG in gRPC mode" in text
    assert "| Rounds | 3 of " in text


def test_what_is_measured_anew_is_told_as_such_by_a_run_that_is_stopped_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(bench: Bench) -> None:
        for name in (EQUIPPED, REFERENCE):
            bench._keep(row(name, 0, 0, 0.1, part=""), 0, 0)
        raise asyncio.CancelledError

    monkeypatch.setattr(Bench, "run", run)
    rows = [row(EQUIPPED, number, 0, cost_s) for number, cost_s in enumerate((0.1, 0.1, 0.2))]
    rows += [row(REFERENCE, number, 0, 0.2) for number in range(3)]
    before, out = kept(tmp_path, rows), tmp_path / "out"
    assert compare(Options(again=before, out=out), Wish(None, anew=True)) == 130
    [path] = out.glob("compare-*/rows.json")
    left = msgspec.json.decode(path.read_bytes())
    assert len(left["rows"]) == len(rows) + 2
    assert "UTC, commit " in left["facts"]["anew"]
    assert left["facts"]["at"] == FACTS["at"]


def test_a_run_that_is_stopped_before_its_first_row_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(_: Bench) -> None:
        raise asyncio.CancelledError

    monkeypatch.setattr(Bench, "run", run)
    assert compare(Options(out=tmp_path), Wish(None)) == 130
    assert "nothing was measured" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["", "{}", '{"facts": {}, "rows": []}', '{"facts": 1}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "rows.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"no rows\.json"):
        compare(Options(again=path), Wish(None, anew=False))
