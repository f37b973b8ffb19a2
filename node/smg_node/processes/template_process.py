"""Template process: has read the vocabularies a node needs, and forks its data processes.

What it has read is in pages that all its forks share until they write to them: encoder, table of spellings, and the words
the self-check left in the encoder. It has neither loop nor threads, and its encoders start none (`cli`), so it may fork
after it has encoded. A fork is nobody's child but the supervisor's: the process between them ends at once, and the
system gives orphans to the nearest process above that takes them (`adopt_orphans`).
"""

import ctypes
import gc
import logging
import os
import socket
import sys
from collections.abc import Collection
from typing import Final

from smg_node.config.frozen_settings import Settings
from smg_node.core.errors import SmgError
from smg_node.fleet.models.tokenizer_proofs import KeptProofs
from smg_node.fleet.vocabularies.noted_vocabularies import NotedVocabularies
from smg_node.process_memory import keep, trim
from smg_node.processes.process_role import Orders, Role
from smg_node.processes.template_line import BIRTH_MAX_BYTES, READY, Birth, read_birth
from smg_node.tokens.loaded_tokenizer import LoadedTokenizer
from smg_node.tokens.loader import load

_TASKS: Final = "/proc/self/task"
_CHILD_SUBREAPER: Final = 36
"""`PR_SET_CHILD_SUBREAPER` of Linux's prctl.h."""
_OK: Final = 0
_FAILED: Final = 1

_log = logging.getLogger("smg_node.processes")


def noted_of(settings: Settings) -> NotedVocabularies:
    """Return the notes of the processes of this node."""
    return NotedVocabularies(settings.data_dir / "processes" / settings.name / "vocabularies")


def adopt_orphans() -> bool:
    """Let processes whose parent ends be this one's children; return whether the system can do that."""
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    return bool(library.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def serve_template(settings: Settings, role: Role) -> Role | int:
    """Read what is noted under the role's `keys`, then fork until the supervisor lets go.

    Returns in each forked process with its role, in the template itself with an exit code.
    """
    line, read = role.orders.line, _read(settings, role.keys)
    if len(os.listdir(_TASKS)) != 1:
        _log.warning("the encoders started threads: data processes read vocabularies themselves")
        return _FAILED
    gc.collect()
    keep()
    trim()
    try:
        line.send(READY)
        return _forks(role, line, read)
    except OSError:
        # The supervisor is gone.
        return _OK


def _read(settings: Settings, keys: Collection[str]) -> dict[str, LoadedTokenizer]:
    """Return the tokenizers of all that can be read; what cannot is left to data processes, which say why."""
    noted, proofs = noted_of(settings), KeptProofs(settings.data_dir / "proofs")
    read: dict[str, LoadedTokenizer] = {}
    for key in sorted(keys):
        bundle = noted.read(key)
        if bundle is None:
            continue
        try:
            loaded = load(bundle, encoder=settings.tokens.encoder, trim=trim, proofs=proofs)
            if loaded.faster is not None:
                loaded.take(*loaded.faster())
        except SmgError as error:
            _log.warning("a noted vocabulary cannot be read: %s", error.message)
            continue
        del bundle
        read[key] = loaded
        trim()
    return read


def _forks(role: Role, line: socket.socket, read: dict[str, LoadedTokenizer]) -> Role | int:
    while True:
        content, lines, _flags, _address = socket.recv_fds(line, BIRTH_MAX_BYTES, 1)
        if not content:
            return _OK
        birth = read_birth(content)
        between = os.fork()
        if between == 0:
            if _is_born(line):
                return _role(role, birth, lines[0], read)
            os._exit(_OK)
        os.close(lines[0])
        if os.waitpid(between, 0)[1] != _OK:
            # There will be no answer, for which the supervisor would wait.
            return _FAILED


def _is_born(line: socket.socket) -> bool:
    """Fork, and tell the supervisor of it; True in the new process. Ends this one where that cannot be."""
    try:
        pid = os.fork()
        if pid:
            line.send(str(pid).encode())
            return False
    except OSError:
        os._exit(_FAILED)
    line.close()
    return True


def _role(role: Role, birth: Birth, line: int, read: dict[str, LoadedTokenizer]) -> Role:
    name = f"{birth.number}-{os.getpid()}"
    orders = Orders(socket.socket(fileno=line))
    return Role("data", name, orders, role.place, birth.living, birth.after, read)
