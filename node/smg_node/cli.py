"""CLI of a node, the `smg-node` command: reads the configuration, then runs or prints why not.

Exit codes: 0 stopped as asked, 1 failed, 2 bad usage or configuration, 3 another process keeps this
node's name (`cluster/membership/shutdown`). What is imported grows with
what is asked for: `--version` needs nothing, `--help` only the settings, a start everything but these:
a node's own process has its configuration read by a child, because the libraries that check it would
stay in memory for as long as the node runs (11 MB), and imports the rest meanwhile.
"""

import errno
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from smg_node import __version__

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from smg_node.config.schema.knob import Schema
    from smg_node.config.settings import Settings
    from smg_node.config.sources.command_line import CommandLine
    from smg_node.config.sources.loader import Loaded

OK: Final = 0
FAILED: Final = 1
BAD_USAGE: Final = 2

# What is asked for instead of a start; nothing of it outlives its answer.
_QUESTIONS: Final = frozenset(
    {"--help", "-h", "--help-all", "--check", "--print-config", "--version", "-V"}
)

# What a listening socket can be refused for.
_LISTEN_ERRORS: Final = frozenset(
    {errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES, errno.EAFNOSUPPORT}
)


class _Start(NamedTuple):
    """Parameters of a start: the settings, and what the node logs before it is up."""

    settings: "Settings"
    introduction: str


def main(argv: Sequence[str] | None = None) -> int:
    """Run `smg-node` with `argv` (without the program's name; None: the process's own) and return its exit code.

    The process's own command line is read in a child process where there can be one; a given one here.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    apart = argv is None and hasattr(os, "fork") and _QUESTIONS.isdisjoint(words)
    return _guarded(lambda: _start_apart(words) if apart else _run(words))


def _guarded(run: Callable[[], int]) -> int:
    try:
        code = run()
        # Here and not at exit, where it could not be caught.
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # `smg-node --help-all | head`: the reader is gone. What is buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        # Before the node took over the signals.
        return FAILED


def _run(words: Sequence[str]) -> int:
    if list(words) in (["--version"], ["-V"]):
        print(f"smg-node {__version__}")
        return OK
    read = _read(words)
    return read if isinstance(read, int) else _start(read)


def _start_apart(words: Sequence[str]) -> int:
    from smg_node.config.child_process import ChildProcess

    child: ChildProcess[_Start] = ChildProcess(lambda: _read_quietly(words))
    # What every node needs whatever its settings say; done when the child is, where there are two cores.
    _import_wiring()
    try:
        read = child.result()
    except ChildProcessError as error:
        print(f"smg-node: cannot read the configuration: {error}", file=sys.stderr)
        return FAILED
    return read if isinstance(read, int) else _start(read)


def _read_quietly(words: Sequence[str]) -> "_Start | int":
    """Read the configuration; an interrupt is for the parent to tell of."""
    try:
        return _read(words)
    except KeyboardInterrupt:
        return FAILED


def _read(words: Sequence[str]) -> "_Start | int":
    """Return what the command line, the environment and a file say to start with.

    An exit code where they ask for something else, which is answered then, or cannot be used.
    """
    from smg_node.config.schema.knob import Schema
    from smg_node.config.schema.problems import ConfigurationError
    from smg_node.config.settings import Settings
    from smg_node.config.sources.command_line import parse_flags
    from smg_node.config.sources.loader import load_settings

    schema = Schema(Settings)
    asked = parse_flags(words, schema)
    if asked.action in ("--help", "--help-all", "--version"):
        sys.stdout.write(_page(asked.action, schema))
        return OK
    try:
        return _act(asked, load_settings(asked, os.environ, schema))
    except ConfigurationError as error:
        return _refuse(error.lines())


def _page(action: str, schema: "Schema") -> str:
    import shutil

    from smg_node.config.output.help import render_help, render_help_all

    width = shutil.get_terminal_size((100, 24)).columns
    match action:
        case "--help":
            return render_help(schema, version=__version__, width=width)
        case "--help-all":
            return render_help_all(schema, version=__version__, width=width)
        case _:
            return f"smg-node {__version__}\n"


def _act(asked: "CommandLine", loaded: "Loaded") -> "_Start | int":
    match asked.action:
        case "--check":
            for warning in loaded.warnings:
                print(f"smg-node: warning: {warning}", file=sys.stderr)
            said = loaded.settings.providers.definitions
            if said and (trouble := _provider_trouble(said)):
                return _refuse([f"providers.file: {trouble}"])
            said = loaded.settings.mcp.definitions
            if said and (trouble := _server_trouble(said)):
                return _refuse([f"mcp.file: {trouble}"])
            _check_keys(loaded.settings)
            file = f" ({loaded.file})" if loaded.file is not None else ""
            print(f"The configuration{file} is fine; values given: {len(loaded.origins)}.")
            return OK
        case "--print-config":
            from smg_node.config.output.effective_config import render_settings

            sys.stdout.write(render_settings(loaded.settings, loaded.origins, loaded.files))
            return OK
        case _:
            from smg_node.config.frozen_settings import plain_settings

            return _Start(plain_settings(loaded.settings), _introduction(loaded))


def _check_keys(settings: "Settings") -> None:
    """Return if the keys that the settings name can be used; ConfigurationError if not."""
    if settings.auth.gives_keys or settings.auth.admin_key_file is not None:
        from smg_node.cluster.service_factory import check_keys

        check_keys(settings)


def _provider_trouble(definitions: str) -> str:
    """Return what is wrong with a file of providers, "" for nothing."""
    from smg_node.cluster.providers.definitions import read_own
    from smg_node.core.errors import SmgError

    try:
        read_own(definitions)
    except SmgError as error:
        return error.message
    return ""


def _server_trouble(definitions: str) -> str:
    """Return what is wrong with a file of servers of tools, "" for nothing."""
    from smg_node.cluster.mcp.definitions import read_own
    from smg_node.core.errors import SmgError

    try:
        read_own(definitions)
    except SmgError as error:
        return error.message
    return ""


def _start(start: _Start) -> int:
    from smg_node.config.schema.problems import ConfigurationError
    from smg_node.core.errors import SmgError

    try:
        _check_keys(start.settings)
        _make_data_dir(start.settings.data_dir)
        sys.stderr.write(start.introduction)
        sys.stderr.flush()
        return _serve(start.settings)
    except ConfigurationError as error:
        # What only the wiring can judge, such as the name of a policy.
        return _refuse(error.lines())
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


def _introduction(loaded: "Loaded") -> str:
    """Return what starts, in words: a block for a terminal, a log line for a machine."""
    import logging

    from smg_node.config.output.startup_banner import render_banner, startup_facts
    from smg_node.telemetry.logs.logs import JsonLines

    facts = startup_facts(loaded, version=__version__)
    wanted = loaded.settings.telemetry.log_format
    if wanted == "console" or (wanted == "auto" and sys.stderr.isatty()):
        return render_banner(facts) + "".join(f"  warning: {one}\n" for one in loaded.warnings)

    def record_of(level: int, message: str) -> logging.LogRecord:
        return logging.LogRecord("smg_node.cli", level, __file__, 0, message, None, None)

    record = record_of(logging.INFO, "smg-node starts")
    record.fields = {name.replace(" ", "_").lower(): said for name, said in facts.items()}
    records = [record, *(record_of(logging.WARNING, one) for one in loaded.warnings)]
    return "".join(JsonLines().format(one) + "\n" for one in records)


def _import_wiring() -> "Callable[..., Coroutine[Any, Any, int]]":
    # gRPC's core writes lines of its own to stderr (every GOAWAY is one), between our JSON ones.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # The reference encoder would start a thread for every core; encoding in parallel is our business.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # The fast encoder as well, with 16 MB of words in each: beside the memory, two of them took 1.5 times the CPU time
    # of one for a text of a megabyte, and twice the time by the clock.
    os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")

    from smg_node.wiring.node_process import serve

    return serve


def _import_framework() -> None:
    """Import the web framework, which a node needs for HTTP workers and may use as its server, before there are threads."""
    from smg_node.process_memory import without_certificates

    with without_certificates():
        import aiohttp  # noqa: F401 - only to have it, before other code imports it with them


def _import_for_workers() -> None:
    """Import what the first worker needs; a node that starts without one does so when it gets one."""
    import smg_node.engines.grpc.contract_detection
    import smg_node.fleet.models.model_assembly  # noqa: F401 - both only to have them


def _serve(settings: "Settings") -> int:
    serve = _import_wiring()
    if settings.http.server == "aiohttp" or any(
        not worker.startswith("grpc") for worker in settings.workers.listed
    ):
        _import_framework()
    if settings.demo or settings.workers.listed:
        _import_for_workers()
    if settings.processes:
        return _serve_in_processes(settings)
    return _loop(serve(settings, stopping=_stopping))


def _serve_in_processes(settings: "Settings") -> int:
    """Return the exit code of this process, be it the supervisor or one that it forked."""
    from smg_node.process_memory import give_back_large, keep
    from smg_node.processes.listen_endpoints import listen_endpoints
    from smg_node.processes.supervisor import Supervisor
    from smg_node.processes.template_process import adopt_orphans, noted_of, serve_template
    from smg_node.system_clock import SystemClock
    from smg_node.wiring.data_process import serve_clients
    from smg_node.wiring.node_process import serve

    give_back_large()
    _import_for_workers()
    with suppress(ImportError):
        import uvloop  # noqa: F401 - only to have it, before there are several processes that would import it
    keep()
    noted = noted_of(settings) if settings.processes > 1 and adopt_orphans() else None
    with listen_endpoints(settings.data_dir, settings.name, settings.http.listen) as place:
        if noted is not None:
            # Now that nobody else listens there: a start that fails takes nothing from the node that runs.
            noted.begin()
        role = Supervisor(
            settings.processes,
            place,
            SystemClock().monotonic_s,
            noted=noted.names if noted is not None else None,
        ).run()
        if not isinstance(role, int) and role.kind == "template":
            role = serve_template(settings, role)
        if isinstance(role, int):
            return role
        if role.kind == "data":
            return _loop(serve_clients(settings, role, stopping=_stopping))
        return _loop(serve(settings, role, stopping=_stopping))


def _stopping(code: int) -> None:
    """See to it that this process ends, now that nothing but that is left."""
    # Imported now: a node that runs for months has no need of it.
    from smg_node.process_end import EndGuard

    EndGuard().begin(code)


def _loop(running: "Coroutine[Any, Any, int]") -> int:
    import asyncio

    try:
        import uvloop
    except ImportError:
        # Not on every platform; the standard loop does the same, slower.
        return asyncio.run(running)
    return uvloop.run(running)


def _one_line(error: BaseException) -> str | None:
    """Return what an operator needs to know of a failed start, None if a traceback says more."""
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
