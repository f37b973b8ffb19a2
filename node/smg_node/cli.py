"""The `smg-node` command: from a command line to a running node, or to one clear line why not.

Exit codes: 0 stopped as asked, 1 failed, 2 bad usage or configuration. What is imported grows with
what is asked for: `--version` needs nothing, `--help` only the settings, a start everything.
"""

import errno
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smg_node import __version__

if TYPE_CHECKING:
    from smg_node.config.flags import Asked
    from smg_node.config.knob import Schema
    from smg_node.config.load import Loaded
    from smg_node.config.settings import Settings

OK: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2

# What a listening socket can be refused for.
_LISTEN_ERRORS: Final = frozenset(
    {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EAFNOSUPPORT}
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `smg-node` with `argv` (without the program's name; None: the process's own) and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words in (["--version"], ["-V"]):
            print(f"smg-node {__version__}")
            return OK
        code = _run(words)
        # Here and not at exit, where nobody could catch it.
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # `smg-node --help-all | head`: nobody reads on. What is buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        # Before the node took over the signals.
        return FAILED


def _run(words: Sequence[str]) -> int:
    from smg_node.config.flags import parse_flags
    from smg_node.config.knob import Schema
    from smg_node.config.load import load_settings
    from smg_node.config.problem import ConfigurationError
    from smg_node.config.settings import Settings

    schema = Schema(Settings)
    asked = parse_flags(words, schema)
    if asked.action in ("--help", "--help-all", "--version"):
        sys.stdout.write(_page(asked.action, schema))
        return OK
    try:
        loaded = load_settings(asked, os.environ, schema)
        return _act(asked, loaded)
    except ConfigurationError as error:
        return _refuse(error.lines())


def _page(action: str, schema: "Schema") -> str:
    import shutil

    from smg_node.config.help import render_help, render_help_all

    width = shutil.get_terminal_size((100, 24)).columns
    match action:
        case "--help":
            return render_help(schema, version=__version__, width=width)
        case "--help-all":
            return render_help_all(schema, version=__version__, width=width)
        case _:
            return f"smg-node {__version__}\n"


def _act(asked: "Asked", loaded: "Loaded") -> int:
    match asked.action:
        case "--check":
            file = f" ({loaded.file})" if loaded.file is not None else ""
            print(f"The configuration{file} is fine; values given: {len(loaded.origins)}.")
            return OK
        case "--print-config":
            from smg_node.config.show import render_settings

            sys.stdout.write(render_settings(loaded.settings, loaded.origins))
            return OK
        case _:
            return _start(loaded)


def _start(loaded: "Loaded") -> int:
    from smg_node.core.errors import SmgError

    try:
        _make_data_dir(loaded.settings.data_dir)
        _introduce(loaded)
        return _serve(loaded.settings)
    except (OSError, SmgError, BaseExceptionGroup) as error:
        line = _one_line(error)
        if line is None:
            raise
        print(f"smg-node: {line}", file=sys.stderr)
        return FAILED


def _make_data_dir(path: Path) -> None:
    """Create the data dir, readable by its owner only, and try to write to it; INTERNAL if that fails."""
    import tempfile

    from smg_node.core.errors import ErrorKind, SmgError

    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        words = f"cannot write to the data directory {path}: {reason} (--data-dir names another)"
        raise SmgError(ErrorKind.INTERNAL, words) from error


def _introduce(loaded: "Loaded") -> None:
    """Say what starts: a block for a terminal, a log line for a machine."""
    import logging

    from smg_node.config.banner import render_banner, startup_facts
    from smg_node.telemetry.logs import JsonLines

    facts = startup_facts(loaded, version=__version__)
    wanted = loaded.settings.telemetry.log_format
    if wanted == "console" or (wanted == "auto" and sys.stderr.isatty()):
        text = render_banner(facts)
    else:
        record = logging.LogRecord(
            "smg_node.cli", logging.INFO, __file__, 0, "smg-node starts", None, None
        )
        record.fields = {name.replace(" ", "_").lower(): said for name, said in facts.items()}
        text = JsonLines().format(record) + "\n"
    sys.stderr.write(text)
    sys.stderr.flush()


def _serve(settings: "Settings") -> int:
    import asyncio

    # gRPC's core writes lines of its own to stderr (every GOAWAY is one), between our JSON ones.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # The reference encoder would start a thread for every core; encoding in parallel is our business.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

    from smg_node.serve import serve

    try:
        import uvloop
    except ImportError:
        # Not on every platform; the standard loop does the same, slower.
        return asyncio.run(serve(settings))
    return uvloop.run(serve(settings))


def _one_line(error: BaseException) -> str | None:
    """What an operator needs to know of a failed start, or None where a traceback says more."""
    import socket

    from smg_node.core.errors import SmgError

    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, SmgError):
        return error.message
    if isinstance(error, OSError) and (
        error.errno in _LISTEN_ERRORS or isinstance(error, socket.gaierror)
    ):
        return f"{_cannot_listen(error)} (--http and --metrics name other addresses)"
    return None


def _cannot_listen(error: OSError) -> str:
    from smg_node.config.address import join_host_port

    # The event loops say: error while attempting to bind on address ('127.0.0.1', 80): reason
    words = error.strerror or str(error)
    found = re.search(r"address \('([^']*)', (\d+)[^)]*\): (.*)", words, re.DOTALL)
    if found is None:
        return f"cannot listen: {words.lower()}"
    return f"cannot listen on {join_host_port(found[1], int(found[2]))}: {found[3].lower()}"


def _refuse(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"smg-node: {line}", file=sys.stderr)
    print("smg-node: --help shows the flags, --help-all all of them", file=sys.stderr)
    return BAD_USAGE


if __name__ == "__main__":
    sys.exit(main())
