"""`smg-admin mcp probe` as people run it, against `smg-chaos mcp-server` by every transport."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.mcp.counting_process import counting_server, counts_of

pytestmark = pytest.mark.integration

PROGRAMS = Path(sys.executable).parent


def probe(*words: str, exits: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [PROGRAMS / "smg-admin", "mcp", "probe", *words],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == exits, done.stdout + done.stderr
    return done


def test_it_says_what_a_server_speaks_and_runs_only_what_is_asked(tmp_path: Path) -> None:
    with counting_server(tmp_path / "modern") as url:
        said = probe(url).stdout
        assert "protocol      2026-07-28 (modern)" in said
        assert "routed  [region]" in said
        assert counts_of(url)["runs"] == {}
        called = probe(url, "--call", "add", "--arguments", '{"a": 1, "b": 2}')
        assert called.stdout.splitlines()[-1] == "3"
        assert counts_of(url)["runs"] == {"add": 1}
        older = probe(url, "--protocol", "2025-06-18").stdout
        assert "protocol      2025-06-18 (handshake)" in older
        assert "session       kept by the server" in older
        old = probe(url.replace("/mcp", "/sse"), "--json").stdout
        assert json.loads(old)["transport"] == "sse"


def test_failures_are_one_line_and_an_exit_code(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("# of the tools\nright-token\n")
    (tmp_path / "wrong").write_text("wrong-token\n")
    with counting_server(tmp_path / "server", "--token", "right-token") as url:
        refused = probe(url, exits=1)
        assert (
            refused.stderr == "smg-admin: the server answered 401 Unauthorized (http_error 401)\n"
        )
        assert "wrong-token" not in probe(url, "--bearer-file", f"{tmp_path}/wrong", exits=1).stderr
        let_in = ("--bearer-file", f"{tmp_path}/token")
        failed = probe(url, *let_in, "--call", "fail", exits=1)
        assert "the tool says that it failed\n" in failed.stdout
        assert "mcp_tool_execution_error" in failed.stderr
        bad = probe(url, *let_in, "--call", "add", "--arguments", "[1]", exits=1)
        assert "mcp_protocol_error -32602" in bad.stderr
        document = json.loads(probe(url, *let_in, "--call", "fail", "--json", exits=1).stdout)
        assert document["call"]["error"]["type"] == "mcp_tool_execution_error"
    assert "failed to connect" in probe(url, exits=1).stderr
    probe("not a url", exits=2)
    probe(exits=2)
    probe(url, "--command", "true", exits=2)
    probe(url, "--header", "cookie", exits=2)


def test_a_program_is_run_and_ended(tmp_path: Path) -> None:
    arguments = tmp_path / "arguments.json"
    arguments.write_text('{"text": "from a file"}')
    command = f"{PROGRAMS / 'smg-chaos'} mcp-server --transport stdio --era handshake"
    words = ("--call", "echo", "--arguments", f"@{arguments}")
    said = probe("--command", command, *words).stdout
    assert "transport     stdio" in said
    assert said.splitlines()[-1] == "from a file"
    absent = probe("--command", str(tmp_path / "absent"), exits=1)
    assert "cannot be run: no such file" in absent.stderr


def test_why_a_program_ended_is_shown_by_its_own_words(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text("raise SystemExit('the database file is missing')")
    failed = probe("--command", f"{sys.executable} {program}", exits=1)
    shown, why = failed.stderr.splitlines()
    assert shown == "probed: the database file is missing"
    assert why.startswith("smg-admin: its process ")
