"""Run as user: becomes another user, binds its life to a parent process, and executes a server's
program.

It is run as a file, by a bare interpreter: `run_as_user.py PARENT_PID UID GID PROGRAM ARGUMENT…`; a
parent of 0: the process that started it; ids below zero: the current user. Root of its own user
namespace is not the system's root and cannot become `nobody`: it becomes an ordinary user within a
nested namespace.
"""

import ctypes
import os
import signal
import sys

_SET_DEATH_SIGNAL = 1
_CLONE_NEWUSER = 0x10000000
_ORDINARY = 1000


def main() -> None:
    """Change the user and execute the program."""
    begun_by = os.getppid()
    parent, user, group = map(int, sys.argv[1:4])
    program = sys.argv[4:]
    libc = ctypes.CDLL(None, use_errno=True)
    if user >= 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
    elif os.geteuid() == 0:
        if libc.unshare(_CLONE_NEWUSER):
            sys.exit(f"cannot cease to be root: {os.strerror(ctypes.get_errno())}")
        for name, line in (("uid_map", f"{_ORDINARY} 0 1"), ("gid_map", f"{_ORDINARY} 0 1")):
            if name == "gid_map":
                _write("setgroups", "deny")
            _write(name, line)
    # The kernel forgets whom a process dies with when its user changes, so that comes last.
    if sys.platform == "linux":
        libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != (parent or begun_by):
            sys.exit("whoever started the server is gone")
    os.execv(program[0], program)


def _write(name: str, line: str) -> None:
    with open(f"/proc/self/{name}", "w") as file:
        file.write(line)


if __name__ == "__main__":
    main()
