import os
import subprocess
import sys

import pytest

from smg_node.admin.options import hoisted

_HEAVY = ("aiohttp", "asyncio", "grpc", "http.client", "pydantic", "rich", "ssl", "yaml")


def _python(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (["--help"], []),
        (["--version"], []),
        # typer itself reads the flags in front of a sub-command with pydantic.
        (["workers", "add", "--help"], ["pydantic"]),
    ],
)
def test_help_imports_nothing_heavy(argv: list[str], allowed: list[str]) -> None:
    done = _python(
        "import sys; from smg_node.admin.cli import main\n"
        f"code = main({argv!r})\n"
        f"print('HEAVY', [name for name in {_HEAVY!r} if name in sys.modules])\n"
        "sys.exit(code)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"HEAVY {allowed}"


def test_help_names_every_command() -> None:
    done = _python("from smg_node.admin.cli import main; main(['--help'])")
    for command in ("workers", "models", "status", "loads", "completion", "SMG_ADMIN_URL"):
        assert command in done.stdout


def test_the_shell_is_offered_the_commands_that_fit() -> None:
    done = _python(
        "import sys; from smg_node.admin.cli import main; sys.exit(main([]))",
        _SMG_ADMIN_COMPLETE="complete_bash",
        COMP_WORDS="smg-admin workers dr",
        COMP_CWORD="2",
    )
    assert done.stdout.split() == ["drain"]


def test_bash_understands_the_script() -> None:
    script = _python("from smg_node.admin.cli import main; main(['completion', 'bash'])").stdout
    done = subprocess.run(
        ["bash", "-c", f"{script}\ncomplete -p smg-admin"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "-F _smg_admin_completion smg-admin" in done.stdout


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["workers", "list", "--json"], ["--json", "workers", "list"]),
        (["a", "--url", "u", "b", "--key=k"], ["--url", "u", "--key=k", "a", "b"]),
        (["a", "--timeout"], ["--timeout", "a"]),
        (["a", "--", "--json"], ["a", "--", "--json"]),
    ],
)
def test_global_flags_may_stand_anywhere(argv: list[str], expected: list[str]) -> None:
    assert hoisted(argv) == expected
