"""One seed, one history, under any hash seed."""

import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

from smg_mesh.swim.messages import Rank
from support.mesh.small_cluster import SmallCluster

ROOT = Path(__file__).parents[4]


def history(seed: int) -> str:
    """Return the digest of all that a small cluster did in some bad weather."""
    cluster = SmallCluster(seed=seed)
    trace = blake2b(digest_size=16)
    cluster.overhear = lambda effects: trace.update(repr((cluster.now_ms, effects)).encode())
    nodes = cluster.joined(7)
    nodes[2].up = False
    left = {node.address for node in nodes[:4]}
    cluster.run(8_000)
    cluster.cut = lambda sender, to: (sender in left) != (to in left)
    cluster.run(15_000)
    cluster.cut = lambda sender, to: False
    cluster.do(nodes[5], nodes[5].swim.say("load", "", b"x", now_ms=cluster.now_ms))
    cluster.do(nodes[6], nodes[6].swim.leave(now_ms=cluster.now_ms))
    cluster.run(15_000)
    assert cluster.all_hold(Rank.DEAD, "n2")
    assert cluster.all_hold(Rank.LEFT, "n6")
    return trace.hexdigest()


def test_one_seed_is_one_history_and_another_another() -> None:
    assert history(1) == history(1) != history(2)


def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    code = (
        f"import runpy, sys; sys.path[:0] = [{str(ROOT / 'tests')!r}]; "
        f"print(runpy.run_path({__file__!r})['history'](3))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout.strip()
        for hash_seed in ("0", "1", "4242")
    ]
    assert outputs == [history(3)] * 3
