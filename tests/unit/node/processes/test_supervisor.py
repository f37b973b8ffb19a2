"""Nurseries with real processes, which do nothing but live, and die when they are told to."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

PROGRAM = """
import os, sys, time
from pathlib import Path
from smg_node.config.address import Address
from smg_node.processes.supervisor import Supervisor
from smg_node.processes.process_role import LEAVE, LEAVING, UP, Place

role = Supervisor(2, Place(Path("/"), Address("127.0.0.1", 1)), time.monotonic).run()
if isinstance(role, int):
    os.write(1, b"over %d\\n" % role)
    sys.exit(role)
if "sick" in sys.argv and role.kind == "control":
    sys.exit(3)
said = " ".join([role.kind, str(os.getpid()), role.name, ",".join(role.living) or "-", role.after or "-"])
os.write(1, said.encode() + b"\\n")
line = role.orders._line
role.orders.say(UP)
try:
    heard = line.recv(1)
except OSError:
    heard = b""
role.orders.say(LEAVING)
os.write(1, b"leaves %d %b\\n" % (os.getpid(), heard or b"orphan"))
sys.exit(5 if role.kind == "control" else 0)
"""


class Family:
    """A nursery and those it raised, by what they say of themselves."""

    def __init__(self, process: "subprocess.Popen[bytes]", out: IO[bytes]) -> None:
        self.process = process
        self.out = out

    def line(self) -> list[str]:
        return self.out.readline().decode().split()

    def born(self, count: int) -> list[list[str]]:
        return sorted(self.line() for _ in range(count))


@contextmanager
def family(*words: str) -> Iterator[Family]:
    command = [sys.executable, "-c", PROGRAM, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Family(process, process.stdout)
        finally:
            process.kill()


def test_a_process_that_dies_is_replaced_and_the_others_do_not_notice() -> None:
    with family() as nursery:
        control, one, two = nursery.born(3)
        assert [control[0], one[0], two[0]] == ["control", "data", "data"]
        os.kill(int(one[1]), signal.SIGKILL)
        [again] = nursery.born(1)
        assert again[0] == "data"
        assert again[2].split("-")[0] == one[2].split("-")[0], "it has the place of the dead"
        assert again[2] != one[2], "and another name"
        os.kill(int(control[1]), signal.SIGKILL)
        [other] = nursery.born(1)
        assert other[0] == "control"
        assert sorted(other[3].split(",")) == sorted([two[2], again[2]]), "it knows who lives"
        assert other[4:] == ["signal", "9"]


def test_a_signal_goes_to_the_control_process_and_its_end_is_that_of_all() -> None:
    with family() as nursery:
        control, *_ = nursery.born(3)
        nursery.process.send_signal(signal.SIGTERM)
        assert nursery.line() == ["leaves", control[1], "T"]
        left = [nursery.line()[0] for _ in range(2)]
        assert left == ["leaves", "leaves"]
        assert nursery.line() == ["over", "5"]
        assert nursery.process.wait(10) == 5


def test_who_is_told_to_leave_by_itself_is_not_replaced() -> None:
    with family() as nursery:
        nursery.born(3)
        nursery.process.send_signal(signal.SIGINT)
        assert [nursery.line()[0] for _ in range(4)] == ["leaves", "leaves", "leaves", "over"]


def test_a_nursery_that_dies_is_the_end_of_all() -> None:
    with family() as nursery:
        nursery.born(3)
        nursery.process.kill()
        assert [nursery.line()[::2] for _ in range(3)] == [["leaves", "orphan"]] * 3


def test_a_control_process_that_never_comes_up_ends_the_node_with_its_exit_code() -> None:
    with family("sick") as nursery:
        words = [nursery.line() for _ in range(5)]
        assert ["over", "3"] in words
        assert nursery.process.wait(10) == 3
