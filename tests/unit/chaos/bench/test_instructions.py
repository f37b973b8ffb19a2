"""Instructions are counted between two requests, by function, and told for one request."""

import asyncio
import sys
from pathlib import Path

import msgspec

from smg_chaos.bench.figures.counted_gateway import Counted, Function, counting
from smg_chaos.bench.gateways.gateways import KINDS, Place, Wanted
from smg_chaos.bench.instructions import counted, told


def work(rounds: int) -> int:
    total = 0
    for one in range(rounds):
        total += one
    return total


async def serve(rounds: int) -> bool:
    return work(rounds) >= 0


def count(tmp_path: Path, rounds: int) -> Counted:
    file = tmp_path / f"{rounds}.json"
    served = counting(serve, file, 2, 5)

    async def main() -> None:
        for _ in range(8):
            assert await served(rounds)

    tracer = sys.gettrace()
    try:
        asyncio.run(main())
    finally:
        sys.settrace(tracer)
    return msgspec.json.decode(file.read_bytes(), type=Counted)


def of(found: Counted, name: str) -> Function:
    return next(one for one in found.functions if one.name == name and one.file == __file__)


def test_what_counts_lies_between_two_requests(tmp_path: Path) -> None:
    few, many = count(tmp_path, 10), count(tmp_path, 110)
    assert few.requests == many.requests == 5
    assert of(few, "work").calls == of(many, "work").calls == 5
    each = (of(many, "work").instructions - of(few, "work").instructions) / 5 / 100
    assert 4 <= each <= 12, "a turn of that loop takes a handful of instructions"
    assert of(few, "serve").calls == 5


def test_a_table_says_what_one_request_takes() -> None:
    found = Counted(
        2, [Function("/x/site-packages/a/b.py", 3, "f", 4, 20), Function("/y/c.py", 1, "g", 2, 4)]
    )
    lines = told(found).splitlines()
    assert lines[0] == "      12 instructions in 3 calls, mean of 2 requests"
    assert "    10.0 a/b.py" in lines
    assert "    10.0   2.0 a/b.py:3 f" in lines
    assert "     2.0   1.0 /y/c.py:1 g" in lines


def test_the_same_node_runs_under_count(tmp_path: Path) -> None:
    place = Place(1, 2, 3, tmp_path, tmp_path)
    plain = Wanted("ours", KINDS["smg-node"])
    command = counted(plain, tmp_path / "f", warm=3, count=4).kind.command(place)
    before = plain.kind.command(place)
    assert command[:7] == [
        sys.executable,
        "-m",
        "smg_chaos.bench.figures.counted_gateway",
        str(tmp_path / "f"),
        "3",
        "4",
        "--",
    ]
    assert command[7:] == before[3:]
