"""Nurseries with real processes, which do nothing but live, and die when they are told to."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PROGRAM = """
import os, signal, sys, time
from pathlib import Path
from smg_node.config.address import Address
from smg_node.processes.supervisor import Supervisor
from smg_node.processes.process_role import LEAVE, LEAVING, UP, Place

if "early" in sys.argv:
    fork = os.fork

    def interrupted():
        pid = fork()
        if pid:
            # The signal comes between the birth and whatever the parent does with it.
            os.kill(os.getpid(), signal.SIGTERM)
        return pid

    os.fork = interrupted
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


SHARING = """
import os, sys, time
from pathlib import Path
from smg_node.config.address import Address
from smg_node.processes.process_role import LEAVING, SHARE, UP, Place
from smg_node.processes.supervisor import Supervisor
from smg_node.processes.template_line import READY
from smg_node.processes.template_process import _forks, adopt_orphans

notes = Path(sys.argv[1])
assert adopt_orphans()
fork, birthplace = os.fork, os.getpid()

def limited():
    crowded = "crowded" in sys.argv and os.getpid() != birthplace and os.getppid() != birthplace
    if crowded or (notes / "full").exists():
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()

os.fork = limited
noted = lambda: frozenset(os.listdir(notes))
place = Place(Path("/"), Address("127.0.0.1", 1))
role = Supervisor(2, place, time.monotonic, noted=noted).run()
if not isinstance(role, int) and role.kind == "template":
    os.write(1, ("template %d %s\\n" % (os.getpid(), ",".join(sorted(role.keys)))).encode())
    if "torn" in sys.argv:
        sys.exit(1)
    if "reads" in sys.argv:
        role.orders.line.recv(1)
    role.orders.line.send(READY)
    # Its end closes the line, at which the supervisor ends this process, before it could say so.
    template = role
    try:
        role = _forks(role, role.orders.line, dict.fromkeys(role.keys))
    except OSError:
        # As `serve_template` does: the supervisor ended before it read that the last one was born.
        role = 0
if isinstance(role, int):
    os.write(1, b"over %d\\n" % role)
    sys.exit(role)
# Who asks says so before it is known to be up, so that what is replaced is what asked.
if role.kind == "data" and "one" not in role.read and "asks" in sys.argv:
    if "notes" in sys.argv:
        (notes / "one").touch()
    if "swaps" in sys.argv:
        # Room for one: whoever notes what it lacks has another one dropped.
        if "two" not in role.read:
            (notes / "two").touch()
        elif (notes / "two").exists():
            os.replace(notes / "two", notes / "three")
    role.orders.say(SHARE)
said = " ".join([role.kind, str(os.getpid()), role.name, ",".join(role.read) or "-"])
if "dies" in sys.argv and role.read:
    os.write(1, said.encode() + b"\\n")
    sys.exit(1)
role.orders.say(UP)
os.write(1, said.encode() + b"\\n")
try:
    heard = role.orders.line.recv(1)
except OSError:
    heard = b""
if "drains" in sys.argv and role.kind == "control" and heard:
    os.write(1, b"drains\\n")
    while role.orders.line.recv(1):
        pass
role.orders.say(LEAVING)
os.write(1, b"leaves %d %b\\n" % (os.getpid(), heard or b"orphan"))
if heard == b"N":
    role.orders.line.recv(1)
sys.exit(0)
"""


@contextmanager
def sharing(notes: Path, *words: str) -> Iterator[Family]:
    command = [sys.executable, "-c", SHARING, str(notes), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield Family(process, process.stdout)
        finally:
            process.kill()


def test_data_processes_are_forked_from_a_template_where_something_was_noted(
    tmp_path: Path,
) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path) as nursery:
        born = nursery.born(4)
        assert [one[0] for one in born] == ["control", "data", "data", "template"]
        assert [one[3] for one in born[1:3]] == ["one", "one"]
        os.kill(int(born[1][1]), signal.SIGKILL)
        [again] = nursery.born(1)
        assert again[::3] == ["data", "one"], "and those that take a place as well"
        assert again[2].split("-") == [born[1][2].split("-")[0], again[1]]


def test_without_notes_there_is_no_template(tmp_path: Path) -> None:
    with sharing(tmp_path) as nursery:
        assert [one[0] for one in nursery.born(3)] == ["control", "data", "data"]


def test_those_that_ask_are_replaced_by_forks_of_a_template_that_has_it(tmp_path: Path) -> None:
    with sharing(tmp_path, "asks", "notes") as nursery:
        words = nursery.born(8)
        assert [one[0] for one in words] == [
            *("control", "data", "data", "data", "data", "leaves", "leaves", "template")
        ]
        posts = [(one[2].split("-")[0], one[3]) for one in words if one[0] == "data"]
        assert sorted(posts) == [("1", "-"), ("1", "one"), ("2", "-"), ("2", "one")]
        asked = {one[1] for one in words if one[0] == "data" and one[3] == "-"}
        assert {one[1] for one in words if one[0] == "leaves"} == asked
        assert [one[2] for one in words if one[0] == "leaves"] == ["Y", "Y"]


def test_who_asks_for_what_its_own_template_could_not_read_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    with sharing(tmp_path, "asks") as nursery:
        words = nursery.born(6)
        assert [one[0] for one in words] == [
            *("control", "data", "data", "leaves", "leaves", "template")
        ]
        assert [one[2] for one in words if one[0] == "leaves"] == ["N", "N"]


def test_a_template_that_ends_costs_the_sharing_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path, "torn") as nursery:
        born = nursery.born(4)
        assert [one[0] for one in born] == ["control", "data", "data", "template"]
        assert [one[3] for one in born[1:3]] == ["-", "-"], "forked by the supervisor"


def test_a_template_that_is_killed_later_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path) as nursery:
        _, one, two, template = nursery.born(4)
        os.kill(int(template[1]), signal.SIGKILL)
        born = []
        for dead in (one, two):
            os.kill(int(dead[1]), signal.SIGKILL)
            born += nursery.born(1)
        assert [again[0] for again in born] == ["data", "data"]
        assert born[1][3] == "-", "the supervisor's own"


def test_a_supervisor_that_dies_is_the_end_of_its_template_too(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path) as nursery:
        *_, template = nursery.born(4)
        nursery.process.kill()
        words = sorted(nursery.line() for _ in range(4))
        assert [one[::2] for one in words[:3]] == [["leaves", "orphan"]] * 3
        assert words[3] == ["over", "0"], f"template {template[1]}: nobody is there to fork for"


def test_a_node_that_leaves_takes_its_template_with_it(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path) as nursery:
        *_, template = nursery.born(4)
        nursery.process.send_signal(signal.SIGTERM)
        assert sorted(nursery.line()[0] for _ in range(4)) == ["leaves", "leaves", "leaves", "over"]
        assert nursery.process.wait(10) == 0
        assert not Path(f"/proc/{template[1]}").exists()


def test_a_missing_process_is_forked_when_it_is_due_although_the_one_it_replaces_lives(
    tmp_path: Path,
) -> None:
    with sharing(tmp_path, "asks", "notes", "dies") as nursery:
        words = [nursery.line()]
        while sum(one[0] == "data" for one in words) < 10:
            words.append(nursery.line())
        posts = [one[2].split("-")[0] for one in words if one[0] == "data" and one[3] == "one"]
        assert posts.count("1") > 2 or posts.count("2") > 2, (
            "nothing but a timer had it forked again"
        )


def test_a_supervisor_waits_in_peace_for_a_control_process_that_drains(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path, "drains") as nursery:
        _, one, *_ = nursery.born(4)
        nursery.process.send_signal(signal.SIGTERM)
        assert nursery.line()[0] == "drains"
        os.kill(int(one[1]), signal.SIGKILL)
        time.sleep(0.2)
        before = cpu_ticks(nursery.process.pid)
        time.sleep(1.0)
        assert cpu_ticks(nursery.process.pid) - before < os.sysconf("SC_CLK_TCK") / 10


def cpu_ticks(pid: int) -> int:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(words[11]) + int(words[12])


def test_a_death_is_seen_while_a_template_reads(tmp_path: Path) -> None:
    with sharing(tmp_path, "asks", "notes", "reads") as nursery:
        born = nursery.born(4)
        control, *_, template = born
        assert [one[0] for one in born] == ["control", "data", "data", "template"]
        # Whatever wakes the supervisor, it does not wait for the template.
        os.kill(int(control[1]), signal.SIGKILL)
        asked_s = time.monotonic()
        assert nursery.line()[0] == "control"
        assert time.monotonic() - asked_s < 4.0, "the template is silent for longer than that"
        os.kill(int(template[1]), signal.SIGKILL)
        assert [nursery.line()[2] for _ in range(2)] == ["N", "N"]


def test_who_cannot_fork_tries_again(tmp_path: Path) -> None:
    with sharing(tmp_path, "full") as nursery:
        _, one, two = nursery.born(3)
        (tmp_path / "full").touch()
        os.kill(int(one[1]), signal.SIGKILL)
        time.sleep(0.5)
        assert nursery.process.poll() is None, "the others of the node go on"
        (tmp_path / "full").unlink()
        [again] = nursery.born(1)
        assert again[2].split("-")[0] == one[2].split("-")[0]
        assert Path(f"/proc/{two[1]}").exists()


def test_a_template_that_cannot_fork_costs_the_sharing_and_no_time(tmp_path: Path) -> None:
    (tmp_path / "one").touch()
    with sharing(tmp_path, "crowded") as nursery:
        words = nursery.born(2)
        began_s = time.monotonic()
        words += nursery.born(3)
        assert time.monotonic() - began_s < 4.0, (
            "the supervisor would wait for an answer for longer than that"
        )
        assert sorted(one[0] for one in words) == ["control", "data", "data", "over", "template"]
        assert {one[3] for one in words if one[0] == "data"} == {"-"}, "forked by the supervisor"


def test_more_vocabularies_than_are_noted_end_in_processes_that_read_for_themselves(
    tmp_path: Path,
) -> None:
    with sharing(tmp_path, "asks", "swaps") as nursery:
        words = [nursery.line()]
        while sum(one[0] == "leaves" and one[2] == "N" for one in words) < 2:
            words.append(nursery.line())
        assert sum(one[0] == "template" for one in words) < 3


def test_a_signal_that_comes_while_one_is_forked_reaches_it() -> None:
    with family("early") as nursery:
        words = [nursery.line() for _ in range(3)]
        assert words[0][0] == "control"
        assert words[1] == ["leaves", words[0][1], "T"]
        assert words[2][0] == "over"
        assert nursery.process.wait(10) == 5
