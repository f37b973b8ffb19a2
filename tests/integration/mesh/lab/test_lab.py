"""The lab: places that reach each other through the switch, weather as asked for, and no leftovers."""

import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from smg_chaos.bench.figures.process_accounting import tree_of
from smg_chaos.gameday.lab.lab import Lab, LabError, Program, opened
from smg_chaos.gameday.lab.link_rules import BLOCKED, LinkRule, cut
from support.processes.lab import running_lab
from support.processes.process import running

pytestmark = pytest.mark.integration

PORT = 7
WAIT_S = 20.0
HOST_INTERFACES = Path("/sys/class/net")


@contextmanager
def receiving(lab: Lab, place: str, *, other: bool = False) -> Iterator[socket.socket]:
    with lab.socket(place, socket.SOCK_DGRAM) as receiver:
        receiver.bind((lab.address(place, other=other), PORT))
        receiver.settimeout(WAIT_S)
        yield receiver


def trips_ms(lab: Lab, count: int) -> list[float]:
    """Send datagrams from a to b, one after the other; return how long each took."""
    taken = []
    with receiving(lab, "b") as receiver, lab.socket("a", socket.SOCK_DGRAM) as sender:
        for number in range(count):
            since_s = time.monotonic()
            sender.sendto(number.to_bytes(4), (lab.address("b"), PORT))
            assert receiver.recv(100) == number.to_bytes(4)
            taken.append((time.monotonic() - since_s) * 1000)
    return taken


def arrived(lab: Lab, count: int) -> list[int]:
    """Send numbered datagrams from a to b, reading along; return what came, in order."""
    came = []
    with receiving(lab, "b") as receiver, lab.socket("a", socket.SOCK_DGRAM) as sender:
        for number in range(count):
            sender.sendto(number.to_bytes(4), (lab.address("b"), PORT))
            last = number == count - 1
            while select.select([receiver], [], [], 0.5 if last else 0.0005)[0]:
                came.append(int.from_bytes(receiver.recv(100)))
    return came


def eventually(condition: Callable[[], bool]) -> bool:
    end_s = time.monotonic() + WAIT_S
    while not condition() and time.monotonic() < end_s:
        time.sleep(0.02)
    return condition()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(program: Program) -> int:
    assert eventually(lambda: program.ended() is not None)
    code = program.ended()
    assert code is not None
    return code


def test_places_reach_each_other_at_both_addresses_and_themselves() -> None:
    with running_lab(["a", "b"]) as lab, lab.socket("a", socket.SOCK_DGRAM) as sender:
        for other in (False, True):
            with receiving(lab, "b", other=other) as receiver:
                sender.sendto(b"hello", (lab.address("b", other=other), PORT))
                content, where = receiver.recvfrom(100)
                assert (content, where[0]) == (b"hello", lab.address("a"))
        with lab.socket("a") as server, lab.socket("a") as client:
            server.bind(("127.0.0.1", PORT))
            server.listen()
            client.settimeout(WAIT_S)
            client.connect(("127.0.0.1", PORT))


def test_tcp_passes_in_bulk_also_when_frames_are_lost_doubled_and_out_of_order() -> None:
    content = os.urandom(300_000)
    with running_lab(["a", "b"]) as lab, lab.socket("b") as server, lab.socket("a") as client:
        bad = LinkRule(loss=0.02, duplicate=0.02, reorder=0.02)
        lab.set_rules({"*": bad})
        server.bind((lab.address("b"), PORT))
        server.listen()
        client.settimeout(WAIT_S)
        client.connect((lab.address("b"), PORT))
        accepted, _ = server.accept()
        with accepted:
            accepted.settimeout(WAIT_S)
            received, sent = bytearray(), 0
            while len(received) < len(content):
                if sent < len(content):
                    sent += client.send(content[sent : sent + 8192])
                received += accepted.recv(65536)
    assert received == content


def test_the_host_is_not_touched_and_a_place_sees_only_the_lab(tmp_path: Path) -> None:
    before = sorted(path.name for path in HOST_INTERFACES.iterdir())
    with running_lab(["a", "b"]) as lab:
        assert sorted(path.name for path in HOST_INTERFACES.iterdir()) == before
        output = tmp_path / "routes"
        with output.open("wb") as out:
            code = ended(lab.spawn("a", ["cat", "/proc/net/route"], out, folder=tmp_path))
        assert code == 0
        routes = [line.split()[0] for line in output.read_text().splitlines()[1:]]
        assert routes == ["mesh0"]
        with lab.socket("a") as client, pytest.raises(OSError, match="unreachable"):
            client.connect(("192.0.2.1", 80))
    assert sorted(path.name for path in HOST_INTERFACES.iterdir()) == before


def test_the_asked_for_delay_is_there_in_its_direction_only() -> None:
    with running_lab(["a", "b"]) as lab:
        quick = min(trips_ms(lab, 50))
        lab.set_rules({"b>a": LinkRule(delay_ms=40)})
        assert min(trips_ms(lab, 20)) < 20
        lab.set_rules({"a>b": LinkRule(delay_ms=40)})
        slow = trips_ms(lab, 20)
    assert quick < 20  # a tenth of a millisecond on a quiet machine
    assert 40 <= min(slow) < 60


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_asked_for_share_of_datagrams_is_lost(share: float) -> None:
    with running_lab(["a", "b"]) as lab:
        lab.set_rules({"a>b": LinkRule(loss=share)})
        came = arrived(lab, 3000)
        lost = lab.traffic()["a"].lost
    assert len(came) == 3000 - lost
    assert lost == pytest.approx(3000 * share, abs=120)


def test_datagrams_come_twice_and_out_of_order_where_that_is_asked_for() -> None:
    with running_lab(["a", "b"]) as lab:
        lab.set_rules({"a>b": LinkRule(duplicate=0.1, reorder=0.1)})
        came = arrived(lab, 1000)
    assert len(came) == pytest.approx(1100, abs=50)
    assert sorted(set(came)) == list(range(1000))
    assert came != sorted(came)


def test_two_labs_with_one_seed_have_the_same_weather() -> None:
    came = []
    for seed in (1, 1, 2):
        with running_lab(["a", "b"], seed=seed) as lab:
            lab.set_rules({"*": LinkRule(loss=0.5)})
            came.append(arrived(lab, 200))
    assert came[0] == came[1]
    assert came[0] != came[2]


def test_a_block_is_one_way_and_can_be_lifted() -> None:
    with running_lab(["a", "b"]) as lab, receiving(lab, "b") as receiver:
        lab.set_rules({"a>b": BLOCKED})
        assert arrived_at(lab, receiver) is False
        with receiving(lab, "a") as back, lab.socket("b", socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", (lab.address("a"), PORT))
            assert back.recv(10) == b"x"
        lab.set_rules({})
        assert arrived_at(lab, receiver) is True


def arrived_at(lab: Lab, receiver: socket.socket) -> bool:
    with lab.socket("a", socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (lab.address("b"), PORT))
    return bool(select.select([receiver], [], [], 0.3)[0]) and receiver.recv(10) == b"x"


def test_what_places_send_is_counted() -> None:
    with running_lab(["a", "b"]) as lab:
        before = lab.traffic()["a"]
        assert len(arrived(lab, 10)) == 10
        after = lab.traffic()["a"]
        idle = lab.traffic()["b"]
    assert after.packets - before.packets == 10
    assert after.bytes - before.bytes == 10 * (20 + 8 + 4)  # IP, UDP, the number
    assert idle.packets == 0


def test_who_speaks_is_told_from_a_kernel_that_refuses() -> None:
    with running_lab(["a", "b"]) as lab, lab.socket("a") as client:
        since_us = time.monotonic_ns() // 1000
        with pytest.raises(ConnectionRefusedError):
            client.connect((lab.address("b"), PORT))
        with lab.socket("a", socket.SOCK_DGRAM) as sender:
            sender.connect((lab.address("b"), PORT))
            sender.send(b"x")
            assert eventually(lambda: lab.traffic()["b"].packets == 2)  # a reset, an ICMP
        assert lab.spoken_us(lab.address("b")) is None
        spoken_us = lab.spoken_us(lab.address("a"))
        assert spoken_us is not None
        assert since_us <= spoken_us <= time.monotonic_ns() // 1000
        assert lab.spoken_us(lab.address("a", other=True)) is None
        lab.mark()
        assert lab.spoken_us(lab.address("a")) is None


def test_rules_for_every_pair_of_a_hundred_places_are_taken() -> None:
    names = [f"n{number}" for number in range(100)]
    with running_lab(names) as lab:
        lab.set_rules(cut(names[:50], names[50:]))
        with lab.socket("n0", socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", (lab.address("n99"), PORT))
            sender.sendto(b"x", (lab.address("n49"), PORT))
        assert eventually(lambda: lab.traffic()["n49"].received_packets == 1)
        assert lab.traffic()["n99"].received_packets == 0


def test_a_program_is_stopped_continued_killed_and_its_end_known(tmp_path: Path) -> None:
    with running_lab(["a"]) as lab, (tmp_path / "log").open("wb") as out:
        program = lab.spawn("a", ["sleep", "100"], out, folder=tmp_path)
        assert program.ended() is None
        assert os.path.realpath(f"/proc/{program.pid}/cwd") == str(tmp_path.resolve())
        state = Path(f"/proc/{program.pid}/stat")
        program.signal(signal.SIGSTOP)
        assert eventually(lambda: ") T " in state.read_text())
        program.signal(signal.SIGCONT)
        assert eventually(lambda: ") S " in state.read_text())
        program.signal(signal.SIGKILL)
        assert ended(program) == -signal.SIGKILL
        program.signal(signal.SIGKILL)
        assert ended(lab.spawn("a", ["false"], out, folder=tmp_path)) == 1
        assert ended(lab.spawn("a", ["no-such-program"], out, folder=tmp_path)) != 0


def test_nothing_survives_the_lab_not_even_what_is_stopped(tmp_path: Path) -> None:
    with running_lab(["a"]) as lab, (tmp_path / "log").open("wb") as out:
        programs = [lab.spawn("a", ["sleep", "100"], out, folder=tmp_path) for _ in range(2)]
        programs[0].signal(signal.SIGSTOP)
        assert all(is_alive(program.pid) for program in programs)
    assert not any(is_alive(program.pid) for program in programs)


USER = """
import sys, time
from pathlib import Path
from smg_chaos.gameday.lab.lab import opened
with opened(["a", "b"]) as lab, open("program.log", "wb") as out:
    program = lab.spawn("a", ["sleep", "100"], out, folder=Path("."))
    print("pid", program.pid, flush=True)
    time.sleep(100)
"""


@pytest.mark.parametrize("victim", ["user", "keeper", "switch"])
def test_nothing_survives_whoever_is_killed(victim: str, tmp_path: Path) -> None:
    with running_lab(["probe"]):
        pass
    with running([sys.executable, "-c", USER], folder=tmp_path) as process:
        pid = int(process.wait_for(r"pid (\d+)", WAIT_S)[1])
        keeper, switch = keeper_and_switch(process.pid)
        everything = [keeper, switch, pid]
        assert all(map(is_alive, everything))
        os.kill({"user": process.pid, "keeper": keeper, "switch": switch}[victim], signal.SIGKILL)
        if victim == "switch":  # only the network is gone; who uses the lab is told, and ends it
            assert eventually(lambda: not is_alive(switch))
            process.stop()
        assert eventually(lambda: not any(map(is_alive, everything)))


def keeper_and_switch(user: int) -> tuple[int, int]:
    """Return the keeper that `user` started, and the switch that the keeper forked."""
    pair = [pid for pid in tree_of(user) if b"smg_chaos.gameday.lab.lab_process" in command_of(pid)]
    (keeper,) = (pid for pid in pair if parent_of(pid) == user)
    (switch,) = (pid for pid in pair if parent_of(pid) == keeper)
    return keeper, switch


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("victim", ["keeper", "switch"])
def test_who_uses_a_lab_of_which_a_part_died_is_told(victim: str) -> None:
    with running_lab(["a"]) as lab:
        keeper, switch = keeper_and_switch(os.getpid())
        killed = keeper if victim == "keeper" else switch
        os.kill(killed, signal.SIGKILL)
        assert eventually(lambda: not is_alive(killed))
        ask = lab.traffic if victim == "switch" else partial(lab.socket, "a")
        with pytest.raises(LabError, match=f"{victim} of the lab"):
            ask()


@pytest.mark.parametrize(
    ("places", "why"),
    [([], "1 to 250 places"), (["a", "a"], "of its own"), ([f"p{n}" for n in range(251)], "250")],
)
def test_a_lab_that_cannot_be_is_refused(places: list[str], why: str) -> None:
    with pytest.raises(LabError, match=why), opened(places):
        pass


def test_a_rule_for_a_place_that_does_not_exist_is_refused() -> None:
    with running_lab(["a"]) as lab, pytest.raises(LabError, match="'a>z' is no link"):
        lab.set_rules({"a>z": BLOCKED})


NO_NAMESPACES = """
import ctypes, os
from pathlib import Path
from smg_chaos.gameday.lab.lab import unavailable
user = os.geteuid()
assert not ctypes.CDLL(None).unshare(0x10000000)  # into a user namespace of its own
Path("/proc/self/uid_map").write_text(f"0 {user} 1")
Path("/proc/sys/user/max_net_namespaces").write_text("0")
print("why:", unavailable())
"""


def test_a_machine_that_gives_no_namespaces_says_so_in_one_line(tmp_path: Path) -> None:
    with running_lab(["probe"]):
        pass
    with running([sys.executable, "-c", NO_NAMESPACES], folder=tmp_path) as process:
        assert process.wait(WAIT_S) == 0, process.said()
        said = process.said()
    assert said == "why: no network namespace can be made: unshare: No space left on device\n"
