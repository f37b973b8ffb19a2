"""Keys of a certified provider in a cluster: fetched once for all, new ones at once, and good while the provider is away."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.oidc.provider import OPAQUE, Client, OidcProvider, running_provider
from support.oidc.token_nodes import TokenNodes, invented, token_nodes
from support.processes.mesh_nodes import until

pytestmark = pytest.mark.integration

NAMES = ("a", "b", "c")
SECRET = "a-secret-of-the-web-client"
CLIENTS = {"web": Client(SECRET, {"team": "acme"})}
SETTINGS = """
auth:
  issuers:
    judge:
      issuer: {issuer}
      audiences: [smg]
      role_map: {{"*": user}}
      tenant: /team
      introspection:
        url: {issuer}/token/introspection
        client_id: web
        client_secret_file: {secret}
"""


@contextmanager
def cluster(folder: Path, names: tuple[str, ...]) -> Iterator[tuple[TokenNodes, OidcProvider]]:
    (folder / "provider").mkdir()
    (folder / "secret").write_text(f"{SECRET}\n")
    with running_provider(folder / "provider", CLIENTS) as provider:
        settings = SETTINGS.format(issuer=provider.issuer, secret=folder / "secret")
        with token_nodes(folder, settings, names) as nodes:
            nodes.await_keys()
            yield nodes, provider


def statuses(nodes: TokenNodes, token: str) -> list[int]:
    """Ask all nodes at the same moment."""
    names = sorted(nodes.nodes)
    with ThreadPoolExecutor(len(names)) as threads:
        return [found.status for found in threads.map(lambda name: nodes.ask(name, token), names)]


@pytest.fixture(scope="module")
def three(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[TokenNodes, OidcProvider]]:
    with cluster(tmp_path_factory.mktemp("three"), NAMES) as found:
        yield found


def test_one_node_fetches_for_all(three: tuple[TokenNodes, OidcProvider]) -> None:
    nodes, provider = three
    assert statuses(nodes, provider.token("web")) == [200] * 3
    seen = [nodes.issuer(name) for name in NAMES]
    assert len({one["refreshed_by"] for one in seen}) == 1
    assert len({one["fetched_by"] for one in seen}) == 1
    assert provider.asked()["/jwks"] <= 2
    table = nodes.command("b", "access", "issuers")
    assert table.code == 0, table.err
    assert "judge" in table.out


def test_the_first_token_of_a_new_key_passes_on_every_node_after_one_or_two_fetches(
    three: tuple[TokenNodes, OidcProvider],
) -> None:
    nodes, provider = three
    nodes.await_quiet()
    before = provider.asked()["/jwks"]
    provider.rotate()
    # The door waits two seconds for keys and no longer: 200 says that they were there by then.
    assert statuses(nodes, provider.token("web", "ES256")) == [200] * 3
    assert provider.asked()["/jwks"] - before <= 2


def test_invented_keys_cause_few_fetches_and_good_tokens_go_on(
    three: tuple[TokenNodes, OidcProvider],
) -> None:
    nodes, provider = three
    nodes.await_quiet()
    good, before = provider.token("web"), provider.asked()["/jwks"]
    began_s = time.monotonic()

    def ask(number: int) -> tuple[bool, int]:
        name = NAMES[number % 3]
        if number % 5:
            return False, nodes.ask(name, invented(provider.issuer, number)).status
        return True, nodes.ask(name, good).status

    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(ask, range(1_500)))
    minutes = 1 + (time.monotonic() - began_s) // 60
    assert {status for is_good, status in found if is_good} == {200}
    assert {status for is_good, status in found if not is_good} <= {401, 503}
    assert provider.asked()["/jwks"] - before <= 7 * minutes


def test_opaque_tokens_are_asked_about_once(three: tuple[TokenNodes, OidcProvider]) -> None:
    nodes, provider = three
    token, signed = provider.token("web", OPAQUE), provider.token("web")
    before = provider.asked().get("/token/introspection", 0)
    assert [nodes.ask("a", token).status for _ in range(5)] == [200] * 5
    assert provider.asked()["/token/introspection"] == before + 1
    refused = nodes.ask("a", "opaque-and-of-nobody")
    assert (refused.status, refused.code) == (401, "inactive_token")
    other = nodes.ask("a", provider.token("web", OPAQUE, audience="account"))
    assert (other.status, other.code) == (401, "wrong_audience")
    # A signed token is never sent there, good or not.
    before = provider.asked()["/token/introspection"]
    nodes.ask("a", signed)
    nodes.ask("a", signed[:-4])
    nodes.ask("a", invented("https://elsewhere.example", 1))
    assert provider.asked()["/token/introspection"] == before


def test_a_denied_subject_is_refused_on_all_nodes_until_it_is_taken_back(
    three: tuple[TokenNodes, OidcProvider],
) -> None:
    nodes, provider = three
    token, opaque = provider.token("web"), provider.token("web", OPAQUE)
    assert statuses(nodes, token) == [200] * 3
    assert nodes.ask("c", opaque).status == 200
    words = ("access", "deny", "judge", "--sub", "web", "--for", "24h")
    said = nodes.command("a", *words)
    assert said.code == 0, said.err
    until(lambda: statuses(nodes, token) == [401] * 3, "denied everywhere")
    assert nodes.ask("b", token).code == "denied_token"
    assert nodes.ask("c", opaque).code == "denied_token"
    assert "web" in nodes.command("c", "access", "denied").out
    assert nodes.command("c", "access", "undo", "judge", "--sub", "web").code == 0
    until(lambda: statuses(nodes, token) == [200] * 3, "let in again")
    rows = nodes.look("b", "/v1/cluster/audit")["rows"]
    assert [row["action"] for row in rows if row["action"].startswith("access.")] == [
        "access.undo",
        "access.deny",
    ]
    wrong = nodes.command("a", "access", "deny", "nobody", "--sub", "x", "--for", "1h")
    assert wrong.code == 1
    assert "no issuer is called 'nobody' here" in wrong.err


def test_denying_what_was_issued_before_now_lets_in_who_signs_in_again(
    three: tuple[TokenNodes, OidcProvider],
) -> None:
    nodes, provider = three
    old = provider.token("web")
    time.sleep(1.1)
    words = ("access", "deny", "judge", "--sub", "web", "--before", "now", "--for", "1h")
    assert nodes.command("b", *words).code == 0
    until(lambda: statuses(nodes, old) == [401] * 3, "denied everywhere")
    time.sleep(1.1)
    assert statuses(nodes, provider.token("web")) == [200] * 3
    assert nodes.command("b", "access", "undo", "judge", "--sub", "web").code == 0


def test_good_tokens_pass_while_the_provider_is_away(tmp_path: Path) -> None:
    with cluster(tmp_path, NAMES) as (nodes, provider):
        token, opaque = provider.token("web", seconds=3_000), provider.token("web", OPAQUE)
        provider.process.kill()
        assert statuses(nodes, token) == [200] * 3
        nodes.stop("b")
        nodes.start("b")
        # It was killed before this one began, which never reached it.
        nodes.start("d")
        nodes.await_keys()
        assert statuses(nodes, token) == [200] * 4
        away = nodes.ask("d", opaque)
        assert (away.status, away.code, away.retry_after) == (503, "issuer_unreachable", "2")
        for name in ("a", "c"):
            nodes.stop(name)
        assert statuses(nodes, token) == [200] * 2


def test_a_node_without_any_keys_says_503_and_takes_api_keys(tmp_path: Path) -> None:
    with cluster(tmp_path, ("a",)) as (nodes, provider):
        token = provider.token("web", seconds=3_000)
        provider.process.kill()
        # Another cluster: it has nothing of this one's.
        settings = nodes.config.read_text()
        (tmp_path / "alone").mkdir()
        with token_nodes(tmp_path / "alone", settings, ("x",)) as alone:
            refused = alone.ask("x", token)
            assert (refused.status, refused.code) == (503, "issuer_unreachable")
            assert refused.retry_after == "2"
            assert alone.ask("x", alone.admin.read_text().strip()).status == 200
            seen = alone.issuer("x")
            assert (seen["state"], seen["keys"], seen["fetched_ms"]) == ("never", [], None)
            assert "cannot be reached" in seen["last_error"]
            told = alone.command("x", "access", "issuers")
            assert "its keys could not be fetched" in told.err


def test_data_processes_take_new_keys_at_once_and_denials_soon(tmp_path: Path) -> None:
    with cluster(tmp_path, ()) as (nodes, provider):
        nodes.start("a", "--processes", "2")
        nodes.await_keys()
        nodes.await_quiet()
        provider.rotate()
        token = provider.token("web")
        # A connection each, which either of the processes takes.
        assert [nodes.ask("a", token).status for _ in range(12)] == [200] * 12
        assert provider.asked()["/jwks"] <= 3
        words = ("access", "deny", "judge", "--sub", "web", "--for", "1h")
        assert nodes.command("a", *words).code == 0
        until(
            lambda: [nodes.ask("a", token).status for _ in range(8)] == [401] * 8,
            "denied in all processes",
        )


LIVE = """
issuer: {issuer}
audiences: [smg]
roles: /{pointer}
role_map: {{gateway: operator}}
tenant: /team
"""


def test_an_issuer_is_defined_and_changed_on_all_nodes_while_they_run(tmp_path: Path) -> None:
    clients = {"web": Client(SECRET, {"team": "acme", "one": "gateway", "two": ["gateway"]})}
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    with (
        running_provider(tmp_path / "first", clients) as first,
        running_provider(tmp_path / "second", clients) as second,
        token_nodes(tmp_path, "", ("a", "b")) as nodes,
    ):
        nodes.start("c", "--processes", "2")
        issuers = {"one": first, "two": second}

        def define(node: str, name: str, pointer: str) -> None:
            file = tmp_path / f"{name}.yaml"
            file.write_text(LIVE.format(issuer=issuers[name].issuer, pointer=pointer))
            said = nodes.command(node, "access", "define", name, "--file", str(file))
            assert said.code == 0, said.err

        tokens = {name: provider.token("web") for name, provider in issuers.items()}
        # A node that has just joined says 503 until it holds what the others know of credentials.
        until(lambda: statuses(nodes, tokens["one"]) == [401] * 3, "known on no node")
        define("a", "one", "one")
        define("b", "two", "two")
        for token in tokens.values():
            until(lambda token=token: statuses(nodes, token) == [200] * 3, "known on all nodes")  # type: ignore[misc]  # bound now
        # Another pointer: the token names no role there.
        define("b", "one", "nowhere")
        until(lambda: statuses(nodes, tokens["one"]) == [403] * 3, "changed on all nodes")
        assert statuses(nodes, tokens["two"]) == [200] * 3
        nodes.stop("a")
        nodes.start("a")
        until(lambda: nodes.ask("a", tokens["two"]).status == 200, "known after a restart")
        assert nodes.command("c", "access", "remove", "two").code == 0
        until(lambda: statuses(nodes, tokens["two"]) == [401] * 3, "gone on all nodes")
        assert statuses(nodes, nodes.admin.read_text().strip()) == [200] * 3
