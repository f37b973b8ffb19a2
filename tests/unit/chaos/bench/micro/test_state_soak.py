import gc
import json
from pathlib import Path

from typer.testing import CliRunner

from smg_chaos.bench.micro.state_soak import Cost, app, soak


def test_a_soak_does_every_update_and_counts_what_it_cost() -> None:
    found = soak(updates=1_500, owners=3, keys=5, seed=4)
    assert found.change.calls == found.merge.calls == 1_500
    assert found.tend.calls >= 4 * 6
    assert found.exchange.calls > 0
    assert found.dump.calls == 2
    assert found.entries == 15
    assert 0 < found.document_bytes <= found.document_bytes_max < 20_000
    assert 70 < found.wire_bytes / 1_500 < 120
    assert gc.isenabled()


def test_one_seed_is_one_history() -> None:
    one, other = (soak(updates=800, owners=3, keys=5, seed=9) for _ in range(2))
    assert (one.wire_bytes, one.document_bytes) == (other.wire_bytes, other.document_bytes)


def test_the_command_prints_and_writes_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    arguments = ["--updates", "300", "--owners", "2", "--keys", "3", "--json", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert "300 updates, 2 owners x 3 keys, 0 epochs" in result.output
    assert "longest single call" in result.output
    assert json.loads(file.read_bytes())["entries"] == 6


def test_a_call_is_as_long_as_it_took_at_best() -> None:
    one = Cost(calls=9, longest_s=0.030, slow={3: 0.030, 5: 0.004, 7: 0.002})
    one.again(Cost(calls=9, longest_s=0.006, slow={5: 0.003, 7: 0.006, 8: 0.005}))
    assert one.slow == {5: 0.003, 7: 0.002}
    assert one.longest_s == 0.003
    calm = Cost(calls=2, longest_s=0.0009)
    calm.again(Cost(calls=2, longest_s=0.0004))
    assert calm.longest_s == 0.0004
    twice_disturbed = Cost(calls=2, longest_s=0.03, slow={0: 0.03})
    twice_disturbed.again(Cost(calls=2, longest_s=0.02, slow={1: 0.02}))
    assert twice_disturbed.longest_s == 0.001
    assert soak(updates=300, owners=2, keys=3, runs=2).change.calls == 300
