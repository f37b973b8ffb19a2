"""Process guard of the lab: binds a process to the keeper's life, enters its place, and executes
the program.

It is run as a file, by a bare interpreter, so it imports nothing that has to be looked for:
`process_guard.py KEEPER_PID NAMESPACE_FD PROGRAM ARGUMENT…`.
"""

import ctypes
import os
import signal
import sys

_SET_DEATH_SIGNAL = 1
_CLONE_NEWNET = 0x40000000


def main() -> None:
    """Bind this process to the keeper's life and execute the program."""
    keeper, namespace, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != keeper:  # it ended before this process was bound to it
        sys.exit("the keeper of the lab is gone")
    if libc.setns(namespace, _CLONE_NEWNET):
        sys.exit(f"cannot enter the place: {os.strerror(ctypes.get_errno())}")
    os.close(namespace)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
