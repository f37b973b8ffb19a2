import subprocess
import sys
from pathlib import Path

from smg_chaos.stores import postgresql, redis
from smg_chaos.stores.process_tree import children_of, is_alive, kill_all


def test_a_family_is_found_and_dies_at_once() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as parent:
        children: list[int] = []
        while not children and parent.poll() is None:
            children = children_of(parent.pid)
        assert len(children) == 1
        kill_all([parent.pid, *children, *children])
        parent.wait(30)
    assert not is_alive(parent.pid)
    assert children_of(parent.pid) == []


def test_a_durable_server_writes_to_the_disk_and_another_does_not() -> None:
    files, initdb = Path("/files"), Path("/bin/initdb")
    quick = postgresql.server_command(initdb, files, port=7)
    safe = postgresql.server_command(initdb, files, port=7, durable=True)
    assert quick[0] == safe[0] == "/bin/postgres"
    assert {"--fsync=off", "--full_page_writes=off"} <= set(quick)
    assert {"--fsync=on", "--full_page_writes=on", "--synchronous_commit=on"} <= set(safe)


def test_redis_keeps_what_it_was_told_to() -> None:
    none = redis.server_command(Path("/bin/redis"), Path("/files"), port=7)
    kept = redis.server_command(Path("/bin/redis"), Path("/files"), port=7, durability="always")
    assert "no" in none[none.index("--appendonly") :][:2]
    assert kept[kept.index("--appendfsync") + 1] == "always"
