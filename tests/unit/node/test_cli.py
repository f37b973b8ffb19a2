import asyncio
import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType

import pytest

from smg_node import __version__
from smg_node.cli import main
from smg_node.config.schema.problems import ConfigurationError, Problem
from smg_node.config.settings import Settings
from smg_node.core.errors import ErrorKind, SmgError

Serve = Callable[[Settings], Awaitable[int]]
Install = Callable[[Serve], None]


@pytest.fixture(autouse=True)
def _no_smg_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SMG_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a serve of the test's own in the place of the wiring's."""

    def put(serve: Serve) -> None:
        module = ModuleType("smg_node.wiring.node_process")
        vars(module)["serve"] = serve
        monkeypatch.setitem(sys.modules, "smg_node.wiring.node_process", module)

    return put


def _failing(error: BaseException) -> Serve:
    async def serve(settings: Settings, **_: object) -> int:
        raise error

    return serve


@pytest.mark.parametrize("argv", [["--version"], ["-V"], ["--demo", "--version"]])
def test_version_prints_the_version(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    assert capsys.readouterr().out == f"smg-node {__version__}\n"


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--help-all"], ["--help", "--no-such-flag"]])
def test_help_is_an_answer_and_no_error(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 0
    said = capsys.readouterr()
    assert "--worker" in said.out
    assert said.err == ""


def test_help_follows_the_width_of_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = []
    for columns in ("64", "104"):
        monkeypatch.setenv("COLUMNS", columns)
        main(["--help"])
        lengths.append(len(capsys.readouterr().out.splitlines()))
    assert lengths[0] > lengths[1]


def test_check_says_that_a_configuration_is_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--port", "5"]) == 0
    assert "fine" in capsys.readouterr().out


@pytest.mark.parametrize("action", [[], ["--check"], ["--print-config"]])
def test_a_wrong_configuration_is_2_and_one_line_each(
    action: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*action, "--mash", "x", "--limits.n-max", "0"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert (
        lines[0] == "smg-node: --mash: there is no such flag; did you mean --mesh? (command line)"
    )
    assert lines[1].startswith("smg-node: limits.n_max: 0 is out of range 1..1024")
    assert len(lines) == 3


def test_print_config_prints_what_would_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMG_NAME", "n1")
    assert main(["--print-config", "--port", "5"]) == 0
    page = capsys.readouterr().out
    (tmp_path / "again.yaml").write_text(page, encoding="utf-8")
    monkeypatch.delenv("SMG_NAME")
    assert main(["--print-config", "--config", str(tmp_path / "again.yaml")]) == 0
    again = capsys.readouterr().out
    assert [line.partition("  #")[0] for line in again.splitlines()] == [
        line.partition("  #")[0] for line in page.splitlines()
    ]


@pytest.mark.parametrize("code", [0, 1])
def test_a_start_serves_the_settings_and_returns_their_code(
    code: int, install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = []

    async def serve(settings: Settings, **_: object) -> int:
        served.append((settings, type(asyncio.get_running_loop()).__module__))
        return code

    install(serve)
    data_dir = tmp_path / "a" / "b"
    argv = ["--name", "n1", "--http", "127.0.0.1:0", "--data-dir", str(data_dir)]
    assert main([*argv, "--telemetry.log-format", "console"]) == code
    ((settings, loop),) = served
    assert settings.name == "n1"
    assert loop.startswith("uvloop" if sys.platform != "win32" else "asyncio")
    assert data_dir.is_dir()
    assert data_dir.stat().st_mode & 0o077 == 0
    banner = capsys.readouterr().err
    assert f"smg-node {__version__}\n" in banner
    assert "answers loopback only, until an admin key exists" in banner


def test_without_uvloop_the_standard_loop_serves(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = []

    async def serve(settings: Settings, **_: object) -> int:
        loops.append(type(asyncio.get_running_loop()).__module__)
        return 0

    install(serve)
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert main(["--data-dir", str(tmp_path)]) == 0
    assert loops[0].startswith("asyncio")


def test_the_start_is_one_json_line_where_logs_are_json(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(settings: Settings, **_: object) -> int:
        return 0

    install(serve)
    assert main(["--data-dir", str(tmp_path), "--telemetry.log-format", "json"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert record["message"] == "smg-node starts"
    assert record["admin_api"].startswith("answers loopback only, until an admin key exists")


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_an_address_in_use_is_one_line(
    loop: str,
    install: Install,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if loop == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def serve(settings: Settings, **_: object) -> int:
        address = settings.http.listen
        async with asyncio.TaskGroup():
            await asyncio.get_running_loop().create_server(
                asyncio.Protocol, address.host, address.port
            )
        return 0

    install(serve)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["--http", f"127.0.0.1:{port}", "--data-dir", str(tmp_path)]) == 1
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith(f"smg-node: cannot listen on 127.0.0.1:{port}: address already in use (")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address"),
            "smg-node: cannot listen: cannot assign requested address (--http and --metrics name"
            " other addresses)",
        ),
        (
            socket.gaierror(-2, "Name or service not known"),
            "smg-node: cannot listen: name or service not known (--http and --metrics name other"
            " addresses)",
        ),
        (
            SmgError(ErrorKind.NOT_FOUND, "no policy is called 'x'"),
            "smg-node: no policy is called 'x'",
        ),
        (
            ExceptionGroup("", [SmgError(ErrorKind.INTERNAL, "the demo engine died")]),
            "smg-node: the demo engine died",
        ),
    ],
)
def test_a_start_that_fails_is_one_line_and_1(
    error: Exception,
    line: str,
    install: Install,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install(_failing(error))
    assert main(["--data-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == line


def test_a_configuration_only_the_wiring_can_judge_is_2_as_well(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(_failing(ConfigurationError([Problem("routing.policy", "no policy is called 'x'")])))
    assert main(["--data-dir", str(tmp_path)]) == 2
    assert "smg-node: routing.policy: no policy is called 'x'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), OSError(errno.ENOSPC, "full"), ExceptionGroup("", [KeyError("x")])],
)
def test_a_bug_keeps_its_traceback(error: Exception, install: Install, tmp_path: Path) -> None:
    install(_failing(error))
    with pytest.raises(type(error)):
        main(["--data-dir", str(tmp_path)])


def test_an_interrupt_before_the_node_runs_is_1(install: Install, tmp_path: Path) -> None:
    install(_failing(KeyboardInterrupt()))
    assert main(["--data-dir", str(tmp_path)]) == 1


def test_a_data_directory_nobody_can_write_to_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert main(["--data-dir", str(file / "below")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"smg-node: cannot write to the data directory {file / 'below'}: not a directory"
        " (--data-dir names another)"
    )


def _start(*argv: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "smg_node", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_module_runs_like_the_command() -> None:
    out, err = _start("--check").communicate(timeout=60)
    assert "fine" in out
    assert err == ""


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    process = _start("--help-all")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) in (1, -signal.SIGPIPE)
    assert said == ""


def test_help_imports_neither_server_nor_engine_libraries() -> None:
    code = (
        "import sys; from smg_node.cli import main; main(['--help'])\n"
        "print('HEAVY', [n for n in ('aiohttp', 'grpc', 'yaml', 'tokenizers') if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_the_program_itself_refuses_a_wrong_configuration_like_the_function() -> None:
    out, err = _start("--mash", "x", "--limits.n-max", "0").communicate(timeout=60)
    assert out == ""
    assert [line.partition(":")[0] for line in err.splitlines()] == ["smg-node"] * 3
    process = _start("--limits.n-max", "0")
    process.communicate(timeout=60)
    assert process.returncode == 2


def test_the_program_itself_refuses_what_only_the_wiring_can_judge(tmp_path: Path) -> None:
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    process = _start(*listen, "--policy", "x", "--data-dir", str(tmp_path))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "smg-node: routing.policy: no policy is called 'x'" in err


def test_a_program_whose_configuration_cannot_be_read_to_its_end_is_one_line_and_1(
    tmp_path: Path,
) -> None:
    # The child that reads the configuration is killed while it waits for the file.
    file = tmp_path / "smg.yaml"
    os.mkfifo(file)
    process = _start("--config", str(file))
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    with file.open("wb"):
        (child,) = children.read_text(encoding="ascii").split()
        os.kill(int(child), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    (line,) = err.splitlines()
    assert line == (
        "smg-node: cannot read the configuration: the child process was killed by signal 9"
    )
