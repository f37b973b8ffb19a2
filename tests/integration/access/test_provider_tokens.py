"""Tokens of a certified provider at a real node, of one process and of several: the right ones pass, the others are named."""

import hmac
import json
import os
import re
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from smg_node.access.tokens.claims import key_id_of
from support.access.signed_tokens import encoded
from support.oidc.provider import SIGNATURES, Client, OidcProvider, running_provider
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
TALK = [{"role": "user", "content": "Why?"}]
LINKED = re.compile(r"data process \d+-(\d+) is linked")
OPS = Client("a-secret-of-the-operators-client", {"realm_access": {"roles": ["gateway-admin"]}})
WEB = Client("a-secret-of-the-web-client-of-acme", {"team": "acme"})
STRANGE = Client("a-secret-of-a-client-with-an-odd-team", {"team": "no tenant"})
SETTINGS = """
auth:
  issuers:
    judge:
      issuer: {issuer}
      audiences: [smg]
      roles: /realm_access/roles
      role_map: {{gateway-admin: admin, "*": user}}
      tenant: /team
      leeway_s: {leeway_s}
"""


@dataclass(frozen=True)
class Answer:
    """What a node answered."""

    status: int
    code: str
    challenge: str
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Scene:
    """A node, and the provider whose tokens it takes."""

    node: RunningNode
    provider: OidcProvider

    def ask(self, token: str | None, path: str = "/v1/models", body: Any = None) -> Answer:
        """Ask with a token, on a connection of its own."""
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        data = None if body is None else json.dumps(body).encode()
        headers |= {} if data is None else {"content-type": "application/json"}
        request = urllib.request.Request(self.node.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return Answer(answer.status, "", "", json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                told = json.load(error)
            code = error.headers["x-smg-error-code"]
            return Answer(error.code, code, error.headers.get("www-authenticate", ""), told)

    def refused(self, token: str) -> tuple[int, str]:
        """Return status and code of a refusal, whose text holds nothing of the token."""
        answer = self.ask(token)
        assert all(len(part) < 8 or part not in str(answer.body) for part in token.split("."))
        return answer.status, answer.code


@contextmanager
def scene(
    tmp_path: Path, *flags: str, leeway_s: int = 30, script: Sequence[str] = ()
) -> Iterator[Scene]:
    clients = {"ops": OPS, "web": WEB, "strange": STRANGE}
    (tmp_path / "node").mkdir()
    with (
        running_provider(tmp_path / "provider", clients) as provider,
        running_simulated(tmp_path / "engine", "--model", "sim", *script) as engines,
    ):
        settings = tmp_path / "node.yaml"
        settings.write_text(SETTINGS.format(issuer=provider.issuer, leeway_s=leeway_s))
        words = ("--config", str(settings), *flags)
        workers = (f"grpc://{engines.address}",)
        with running_node(tmp_path / "node", workers=workers, flags=words) as node:
            yield Scene(node, provider)
            said = node.process.said()
            assert "Traceback" not in said
            assert all(part not in said for one in provider.issued for part in one.split(".")[-2:])


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("one")) as found:
        yield found


@pytest.mark.parametrize("signature", SIGNATURES)
def test_a_token_of_each_signature_passes(one: Scene, signature: str) -> None:
    assert one.ask(one.provider.token("web", signature)).status == 200
    asked = {"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": "Why?"}]}
    found = one.ask(one.provider.token("web", signature), "/v1/chat/completions", asked)
    assert found.body["choices"][0]["message"]["content"]


def test_roles_of_the_provider_open_what_they_are_mapped_to(one: Scene) -> None:
    admin, user = one.provider.token("ops"), one.provider.token("web")
    assert one.ask(admin, "/workers").status == 200
    refused = one.ask(user, "/workers")
    assert (refused.status, refused.challenge) == (403, 'Bearer error="insufficient_scope"')
    (entry, *_) = one.ask(admin, "/usage").body.get("usage", [{}])
    assert "secret" not in str(entry)


def test_what_is_wrong_with_a_token_is_named(one: Scene) -> None:
    provider = one.provider
    assert one.refused(provider.token("web", audience="account")) == (401, "wrong_audience")
    assert one.refused(provider.token("strange")) == (403, "tenant_not_usable")
    assert one.refused(provider.token("web", "opaque")) == (401, "invalid_api_key")
    assert one.ask(None).status == 401
    good = provider.token("web", "ES256").split(".")
    other = provider.token("ops", "ES256").split(".")
    assert one.refused(".".join((good[0], other[1], good[2]))) == (401, "bad_signature")
    cut = one.refused(".".join((good[0], good[1], good[2][:-4])))
    # Whether what is left is whole bytes is up to its last character.
    assert cut in {(401, "bad_signature"), (401, "invalid_token")}
    assert one.refused(".".join((*good[:2], ""))) == (401, "bad_signature")
    assert one.refused(".".join((good[0], good[1][:-4], good[2])))[0] == 401


def test_the_providers_own_public_key_is_no_secret_and_no_signature_is_none(one: Scene) -> None:
    provider = one.provider
    _, payload, _ = provider.token("ops").split(".")
    (public,) = [key for key in json.loads(provider.key_set())["keys"] if key["alg"] == "RS256"]
    for algorithm in ("HS256", "none"):
        header = encoded(json.dumps({"alg": algorithm, "kid": public["kid"]}).encode())
        text = f"{header}.{payload}"
        for secret in (json.dumps(public).encode(), public["n"].encode(), b""):
            mac = hmac.digest(secret, text.encode(), "sha256") if algorithm == "HS256" else b""
            refused = one.refused(f"{text}.{encoded(mac)}")
            assert refused == (401, "algorithm_not_allowed")


def test_the_challenge_says_why(one: Scene) -> None:
    refused = one.ask(one.provider.token("web", audience="account"))
    assert refused.challenge == 'Bearer error="invalid_token", error_description="wrong audience"'
    assert "'account'" in refused.body["error"]["message"]


def test_an_expired_token_is_refused_also_on_a_kept_connection(tmp_path: Path) -> None:
    with scene(tmp_path, leeway_s=0) as one:
        headers = {"authorization": f"Bearer {one.provider.token('web', seconds=4)}"}
        connection = HTTPConnection(one.node.url.removeprefix("http://"), timeout=60)
        answers: list[tuple[int, str | None, bytes]] = []
        ends_s = time.monotonic() + 60
        while not answers or answers[-1][0] == 200:
            assert time.monotonic() < ends_s
            connection.request("GET", "/v1/models", headers=headers)
            answer = connection.getresponse()
            answers.append((answer.status, answer.headers["www-authenticate"], answer.read()))
            time.sleep(0.1)
        connection.close()
        assert len(answers) > 1
        status, challenge, body = answers[-1]
        assert (status, json.loads(body)["error"]["code"]) == (401, "expired_token")
        assert challenge == 'Bearer error="invalid_token", error_description="expired"'


def test_a_stream_that_began_goes_on_when_its_token_expires(tmp_path: Path) -> None:
    script = ("--script", "endless", "--itl-ms", "50")
    with scene(tmp_path, leeway_s=0, script=script) as one:
        token = one.provider.token("web", seconds=3)
        connection = HTTPConnection(one.node.url.removeprefix("http://"), timeout=60)
        asked = {"model": "sim", "max_tokens": 160, "stream": True, "messages": TALK}
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        connection.request("POST", CHAT, json.dumps(asked), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        seen = answer.readline()
        ends_s = time.monotonic() + 60
        while one.ask(token).status == 200:
            assert time.monotonic() < ends_s
            time.sleep(0.2)
        seen += answer.read()
        connection.close()
        assert seen.rstrip().endswith(b"data: [DONE]")


def test_clients_are_told_whose_tokens_are_good(one: Scene) -> None:
    told = one.ask(None, "/.well-known/oauth-protected-resource").body
    assert told["authorization_servers"] == [one.provider.issuer]


def test_what_an_operator_does_by_a_token_is_told_with_the_subject(one: Scene) -> None:
    admin = one.provider.token("ops")
    made = one.ask(admin, "/v1/cluster/keys", {"tenant": "acme", "name": "by-token"})
    assert made.status == 201
    told = one.ask(admin, "/v1/cluster/audit?who=token:judge/ops").body
    assert "by-token" in str(told)
    assert "by-token" not in str(one.ask(admin, "/v1/cluster/audit?who=token:judge/web").body)


def test_new_keys_are_found_by_the_first_token_of_theirs(one: Scene) -> None:
    old = one.provider.token("web")
    assert one.ask(old).status == 200
    one.provider.rotate()
    new = one.provider.token("web")
    found = one.ask(new)
    ends_s = time.monotonic() + 60
    # Whoever fetched within five seconds does not again.
    while found.status != 200:
        assert (found.status, found.code) == (401, "unknown_key")
        assert time.monotonic() < ends_s
        time.sleep(0.5)
        found = one.ask(new)
    assert one.refused(old) == (401, "unknown_key")


def callers(node: RunningNode) -> set[tuple[int, str, str]]:
    """Return status, tenant and key of the chats in a node's access log."""
    found = set()
    for line in node.process.said().splitlines():
        if line.startswith("{") and f'"path":"{CHAT}"' in line:
            told = json.loads(line)
            found.add((told["status"], told.get("tenant", ""), told.get("key_id", "")))
    return found


def control_pid(node: RunningNode) -> int:
    """Return the child of a node that is none of its data processes."""
    nursery = node.process.pid
    children = Path(f"/proc/{nursery}/task/{nursery}/children").read_text().split()
    data = {found[1] for found in LINKED.finditer(node.process.said())}
    [control] = set(children) - data
    return int(control)


def test_the_same_token_is_the_same_caller_in_every_process_and_without_control(
    tmp_path: Path,
) -> None:
    with scene(tmp_path, "--processes", "2", "--telemetry.log-format", "json") as one:
        tokens = [one.provider.token("web", signature) for signature in SIGNATURES]
        admin = one.provider.token("ops")
        asked = {"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": "Hi"}]}
        for token in tokens * 3:
            # Each by a connection of its own, which any of the processes takes; it passes on what is an admin's.
            assert one.ask(token, CHAT, asked).status == 200
            assert one.ask(token, "/workers").status == 403
            assert one.ask(admin, "/workers").status == 200
            assert one.ask(token + "x").status == 401
        control = control_pid(one.node)
        os.kill(control, signal.SIGSTOP)
        try:
            fresh = [one.provider.token("web", signature) for signature in SIGNATURES]
            for token in (*tokens, *fresh):
                assert one.ask(token, CHAT, asked).status == 200
        finally:
            os.kill(control, signal.SIGCONT)
        whose = (200, "acme", key_id_of(one.provider.issuer, "web"))
        one.node.process.wait_until(lambda: bool(callers(one.node)), "access lines", 60)
        assert callers(one.node) == {whose}
