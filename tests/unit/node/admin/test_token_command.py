"""`smg-admin --token-command`: a program that prints a token, run as seldom as can be, and never repeated."""

import json
import sys
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.admin.client import AdminError
from smg_node.admin.token_command import OUTPUT_BYTES_MAX, TokenCommand, expiry_of
from support.http.admin_api import Asked, RunAdmin, admin_api

NOW_MS = 1_800_000_000_000
PLANTED = "planted-token-0123456789"


def signed(**claims: Any) -> str:
    part = urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJub25lIn0.{part}.c2ln"


def program(folder: Path, text: str) -> str:
    """A command that runs this Python text, and counts its runs in a file beside it."""
    file = folder / "print token.py"
    file.write_text(
        f"import sys\nwith open({str(folder / 'runs')!r}, 'a') as runs:\n    runs.write('x')\n{text}\n"
    )
    return f"{sys.executable} '{file}'"


def runs(folder: Path) -> int:
    file = folder / "runs"
    return len(file.read_text()) if file.exists() else 0


def fails(command: str, timeout_s: float = 10.0) -> str:
    with pytest.raises(AdminError) as caught:
        TokenCommand(command, lambda: NOW_MS, timeout_s=timeout_s).token()
    assert PLANTED not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_the_program_prints_is_the_token_and_it_runs_once(tmp_path: Path) -> None:
    tokens = TokenCommand(program(tmp_path, f"print('  {PLANTED}')"), lambda: NOW_MS)
    assert (tokens.token(), tokens.token()) == (PLANTED, PLANTED)
    assert runs(tmp_path) == 1
    assert PLANTED not in repr(tokens)
    tokens.renew()
    assert runs(tmp_path) == 2


def test_a_token_whose_end_has_come_is_replaced(tmp_path: Path) -> None:
    ended, good = signed(exp=NOW_MS / 1000), signed(exp=NOW_MS / 1000 + 1)
    tokens = TokenCommand(program(tmp_path, f"print('{ended}')"), lambda: NOW_MS)
    assert (tokens.token(), tokens.token()) == (ended, ended)
    assert runs(tmp_path) == 2
    tokens = TokenCommand(program(tmp_path, f"print('{good}')"), lambda: NOW_MS)
    assert (tokens.token(), tokens.token()) == (good, good)
    assert runs(tmp_path) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "printed no token"),
        (f"print('{PLANTED} {PLANTED}')", "printed something else than one token"),
        (f"print('{PLANTED}\\n{PLANTED}')", "printed something else than one token"),
        ("sys.stdout.buffer.write(b'\\xff' * 20)", "printed something else than one token"),
        (f"print('{PLANTED}'); sys.exit('log\\nin first')", "exit code 1: log in first"),
        (f"print('{PLANTED}' * 100_000)", f"printed more than {OUTPUT_BYTES_MAX} bytes"),
        ("sys.stderr.write('no' * 90_000 + 'the end'); sys.exit(3)", "the end"),
    ],
)
def test_a_program_that_prints_no_token_is_one_line_without_what_it_printed(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in fails(program(tmp_path, text))


def test_a_program_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    began_s = time.monotonic()
    child = f"import subprocess; subprocess.run([{sys.executable!r}, '-c', 'import time; time.sleep(60)'])"
    said = fails(program(tmp_path, child), timeout_s=0.5)
    assert "took longer than 0.5 s" in said
    assert time.monotonic() - began_s < 30


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("", "names no program"),
        ("/nowhere/program x", "cannot run the program of --token-command ('/nowhere/program')"),
        ("program 'unclosed", "no closing quotation"),
    ],
)
def test_a_command_that_is_none_is_one_line(command: str, said: str) -> None:
    assert said in fails(command)


def test_our_own_keys_are_not_told_to_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMG_KEY", PLANTED)
    shown = program(tmp_path, "import os; print(os.environ.get('SMG_KEY', 'none'))")
    assert TokenCommand(shown, lambda: NOW_MS).token() == "none"


def test_a_node_is_asked_with_the_token_and_once_more_with_another_one(
    run: RunAdmin, tmp_path: Path
) -> None:
    command = program(
        tmp_path, f"print('{PLANTED}-' + str(len(open({str(tmp_path / 'runs')!r}).read())))"
    )
    refused = {"error": {"message": "the token has expired"}}

    def script(asked: Asked) -> tuple[int, Any]:
        good = asked.authorization == f"Bearer {PLANTED}-2"
        return (200, {"closed": True, "keys": []}) if good else (401, refused)

    with admin_api(script) as api:
        code, out, err = run("--url", api.url, "keys", "list", "--token-command", command)
    assert (code, out) == (0, "There are no keys.\n"), err
    assert [asked.authorization for asked in api.asked] == [
        f"Bearer {PLANTED}-1",
        f"Bearer {PLANTED}-2",
    ]
    with admin_api(lambda _: (401, refused)) as api:
        code, _, err = run("--url", api.url, "keys", "list", "--token-command", command)
    assert (code, len(api.asked)) == (1, 2)
    assert "the token came from the program of --token-command" in err
    assert PLANTED not in err


def test_a_key_and_a_token_command_are_too_many(run: RunAdmin) -> None:
    code, _, err = run("--key", "k", "--token-command", "c", "keys", "list")
    assert code == 2
    assert "give one of them" in err
    assert "--token-command" in run("--help")[1]


@given(st.text(max_size=80) | st.builds(lambda part: f"ey.{part}.x", st.text(max_size=60)))
def test_any_text_ends_at_some_time_or_says_nothing_of_it(text: str) -> None:
    ends = expiry_of(text)
    assert ends is None or ends > 0


@pytest.mark.parametrize("exp", [True, "1", None, -1, 0, 1e400, [1]])
def test_an_end_that_is_none_is_none(exp: Any) -> None:
    assert expiry_of(signed(exp=exp)) is None
