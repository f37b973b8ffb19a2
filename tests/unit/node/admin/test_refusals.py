import re
import socket
from typing import Any

import pytest

from support.http.admin_api import Asked, RunAdmin, admin_api


def _no_workers(_: Asked) -> tuple[int, Any]:
    return 200, {"workers": [], "stats": {}}


def test_the_key_is_sent_as_a_bearer_token_and_comes_from_the_environment_too(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    with admin_api(_no_workers) as api:
        run("--url", api.url, "--key", "k1", "workers", "list")
        monkeypatch.setenv("SMG_ADMIN_URL", api.url)
        monkeypatch.setenv("SMG_ADMIN_KEY", "k2")
        run("workers", "list")
        monkeypatch.delenv("SMG_ADMIN_KEY")
        run("workers", "list")
    assert [asked.authorization for asked in api.asked] == ["Bearer k1", "Bearer k2", ""]


def test_proxies_of_the_environment_are_not_used(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with admin_api(_no_workers) as api:
        assert run("--url", api.url, "workers", "list")[0] == 0


def test_a_refusal_shows_the_nodes_own_words(run: RunAdmin) -> None:
    body = {"error": {"message": "worker URL 'x': it needs a scheme", "code": "invalid_worker_url"}}
    with admin_api(lambda _: (400, body)) as api:
        found = run("--url", api.url, "workers", "add", "x")
    assert found == (1, "", "smg-admin: worker URL 'x': it needs a scheme\n")


def test_a_refused_stranger_is_told_about_keys(run: RunAdmin) -> None:
    with admin_api(lambda _: (403, {"error": {"message": "admin only"}})) as api:
        _, _, err = run("--url", api.url, "workers", "list")
    assert err.startswith("smg-admin: admin only (--key, SMG_KEY or --key-file")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, b"<html>"), "answered 200 with something that is not JSON; is it an smg-node?"),
        ((502, b""), "the node answered 502 without saying why"),
        ((500, {"error": {}}), "the node answered 500 without saying why"),
        ((500, {"error": "plain words"}), "plain words"),
        ((500, []), "the node answered 500 without saying why"),
        ((200, b"[" * 100_000), "not JSON"),
    ],
)
def test_an_answer_that_is_none_is_one_line(
    run: RunAdmin, answer: tuple[int, Any], words: str
) -> None:
    with admin_api(lambda _: answer) as api:
        code, out, err = run("--url", api.url, "workers", "list")
    assert (code, out) == (1, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_node_that_does_not_run_is_one_line(run: RunAdmin) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        found = run("--url", url, "status")
    assert found == (1, "", f"smg-admin: no node answers at {url}; is smg-node running?\n")


def test_a_node_that_is_silent_is_given_up(run: RunAdmin) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found = run("--url", url, "--timeout", "0.1", "status")
    assert found == (1, "", f"smg-admin: {url} did not answer within 0.1 s\n")


def test_a_host_nobody_knows_is_one_line(run: RunAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    code, _, err = run("--url", "http://nowhere.invalid:1", "status")
    assert code == 1
    assert err == "smg-admin: cannot talk to http://nowhere.invalid:1: name or service not known\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--url", "127.0.0.1:port", "status"], "is not a URL"),
        (["--url", "ftp://127.0.0.1:30000", "status"], "is not a URL"),
        (["--url", "", "status"], "is not a URL"),
        (["--url", "http://[::1", "status"], "is not a URL"),
        (["--url", "http://h:99999", "status"], "is not a URL"),
        (["--url", "http://me:pw@h:1", "status"], "must be plain"),
        (["--url", "http://h:1?x=1", "status"], "must be plain"),
        (["--key", "schlüssel", "status"], "the key holds characters that no key has"),
    ],
)
def test_options_nobody_can_use_are_one_line(run: RunAdmin, argv: list[str], words: str) -> None:
    code, _, err = run(*argv)
    assert code == 1
    assert words in err
    assert "pw" not in err


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["tops"],
        ["top", "--pane", "colours"],
        ["top", "--interval", "0"],
        ["cluster"],
        ["limits"],
        ["keys"],
        ["db"],
        ["config"],
        ["workers"],
        ["workers", "lst"],
        ["workers", "show"],
        ["workers", "add", "grpc://h:1", "--label", "nothing"],
        ["workers", "list", "--bogus"],
        ["--timeout", "0", "status"],
        ["--timeout", "soon", "status"],
        ["completion", "tcsh"],
    ],
)
def test_bad_usage_is_2(run: RunAdmin, argv: list[str]) -> None:
    assert run(*argv)[0] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(run: RunAdmin, shell: str) -> None:
    code, out, _ = run("completion", shell)
    assert code == 0
    assert "smg-admin" in out
    assert "_SMG_ADMIN_COMPLETE" in out


def test_a_url_without_a_scheme_is_one_of_http(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    with admin_api(_no_workers) as api:
        bare = api.url.removeprefix("http://")
        assert run("--url", bare, "workers", "list")[0] == 0
        assert run("--url", f"{bare}/", "workers", "list")[0] == 0
        monkeypatch.setenv("SMG_ADMIN_URL", bare)
        assert run("workers", "list")[0] == 0
        assert len(api.asked) == 3
    assert f"no node answers at {api.url};" in run("--url", bare, "status")[2]


@pytest.mark.parametrize(
    "group",
    [
        [],
        *([one] for one in ("workers", "cluster", "config", "db", "keys", "limits", "models")),
        ["sessions"],
        ["cluster", "keyring"],
        ["db", "dead"],
    ],
    ids=" ".join,
)
def test_help_lists_commands_with_whole_sentences(
    run: RunAdmin, monkeypatch: pytest.MonkeyPatch, group: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, said, _ = run(*group, "--help")
    listed = said.partition("Commands:\n")[2].partition("\n\n")[0]
    rows = re.split(r"\n(?=  \S)", listed.rstrip())
    assert code == 0
    assert listed
    assert [row for row in rows if not row.endswith(".") or row.endswith("...")] == []
    assert max(map(len, said.splitlines())) <= 80
