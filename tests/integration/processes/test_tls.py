"""TLS of real nodes, asked by programs nobody here wrote: curl, openssl, OpenAI's library, and our own smg-admin."""

import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageParam

from support.http.certificate_authority import Authority
from support.http.served_tls import write_pair
from support.processes.process import Process, running
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.integration
WAIT_S = 60.0
STREAMS = 24
RENEWALS = 6
PATIENCE_S = 120.0
CERTIFICATE = "x-smg-peer-certificate"
"""How a data process tells the control process of a client's certificate; from a client it means nothing."""
ASKED = '{"model": "sim", "max_tokens": 4, "messages": [{"role": "user", "content": "Why?"}]}'


@dataclass(frozen=True, slots=True)
class Scene:
    """A node that speaks TLS, and the files of its authority and certificate."""

    url: str
    process: Process
    folder: Path
    authority: Authority

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")

    def client(self) -> OpenAI:
        trust = ssl.create_default_context(cafile=self.ca)
        wire = httpx2.Client(verify=trust, timeout=PATIENCE_S)
        url = f"https://localhost:{self.port}/v1"
        return OpenAI(base_url=url, api_key="unused", http_client=wire, max_retries=0)

    def renew(self) -> str:
        """Replace certificate and key, and return what clients are shown from then on."""
        pair = write_pair(self.folder, self.authority, "localhost")
        return ssl.PEM_cert_to_DER_cert(Path(pair.certificate).read_text()).hex()


@contextmanager
def scene(tmp_path: Path, flags: Sequence[str] = ()) -> Iterator[Scene]:
    authority = Authority("a platform team")
    folder = tmp_path / "tls"
    pair = write_pair(folder, authority, "localhost")
    (folder / "ca.pem").write_bytes(authority.certificate)
    script = ("--model", "sim", "--script", "endless", "--itl-ms", "50")
    with running_simulated(tmp_path / "engine", *script) as engines:
        words: list[str | Path] = [
            Path(sys.executable).with_name("smg-node"),
            *("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--drain.settle-s", "0"),
            *("--worker", f"grpc://{engines.address}", "--data-dir", str(tmp_path / "data")),
            *("--tls-cert-path", pair.certificate, "--tls-key-path", pair.key, *flags),
        ]
        with running(words, folder=tmp_path) as process:
            found: re.Match[str] = process.wait_for(
                r"listening on (https://127\.0\.0\.1:[1-9]\d*)", WAIT_S
            )
            one = Scene(found[1], process, folder, authority)
            process.wait_until(lambda: status_of(one, "/readiness") == "200", "ready", WAIT_S)
            yield one


def status_of(scene: Scene, path: str, *flags: str) -> str:
    """Return the status that curl is answered with; 000 if there was no answer."""
    url = f"https://localhost:{scene.port}{path}"
    words = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", scene.ca]
    return subprocess.run([*words, *flags, url], capture_output=True, text=True).stdout


def leaf(scene: Scene) -> str:
    """Return the certificate that a new client is shown."""
    trust = ssl.create_default_context(cafile=scene.ca)
    with (
        socket.create_connection(("127.0.0.1", scene.port), timeout=WAIT_S) as raw,
        trust.wrap_socket(raw, server_hostname="localhost") as shaken,
    ):
        found = shaken.getpeercert(binary_form=True)
        assert found is not None
        return found.hex()


@dataclass
class Streams:
    """Streams that go on until they are told to end; what went wrong with any of them."""

    tokens: list[int] = field(default_factory=lambda: [0] * STREAMS)
    wrong: list[str] = field(default_factory=list)
    end: threading.Event = field(default_factory=threading.Event)

    def follow(self, scene: Scene, number: int) -> None:
        asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": f"Count, {number}."}]
        try:
            stream = scene.client().chat.completions.create(
                model="sim",
                messages=asked,
                stream=True,
                max_tokens=100_000,
            )
            for _ in stream:
                self.tokens[number] += 1
                if self.end.is_set():
                    stream.close()
                    return
            self.wrong.append(f"stream {number} ended after {self.tokens[number]} tokens")
        except Exception as error:
            # Whatever ends a stream is told where it is looked at: threads have nobody who hears them.
            self.wrong.append(f"stream {number}: {error!r}")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_certificates_are_renewed_under_streams_and_new_clients(
    tmp_path: Path, processes: str
) -> None:
    streams = Streams()
    with scene(tmp_path, ("--processes", processes)) as one:
        threads = [
            threading.Thread(target=streams.follow, args=(one, number)) for number in range(STREAMS)
        ]
        for thread in threads:
            thread.start()
        try:
            one.process.wait_until(lambda: all(streams.tokens), "streams", WAIT_S)
            new = ""
            for _ in range(RENEWALS):
                new = one.renew()
                late_s = time.monotonic() + WAIT_S
                # Each data process looks for itself: until all have, either leaf may be shown.
                while {leaf(one) for _ in range(6)} != {new}:
                    assert time.monotonic() < late_s, "the new certificate is not shown"
            other, kept = one.folder / "tls.key", (one.folder / "tls.key").read_bytes()
            other.write_bytes(one.authority.issue("localhost")[1])
            time.sleep(1.5)
            assert {leaf(one) for _ in range(6)} == {new}
            other.write_bytes(kept)
            before = list(streams.tokens)
            one.process.wait_until(
                lambda: all(now > was for now, was in zip(streams.tokens, before, strict=True)),
                "streams that go on",
                WAIT_S,
            )
        finally:
            streams.end.set()
            for thread in threads:
                thread.join(WAIT_S)
        assert streams.wrong == []


def test_programs_of_others_and_our_own_come_in(tmp_path: Path) -> None:
    assert shutil.which("curl"), "curl is needed"
    assert shutil.which("openssl"), "openssl is needed"
    with scene(tmp_path) as one:
        for version in ("--tlsv1.2 --tls-max 1.2", "--tlsv1.3"):
            assert status_of(one, "/v1/models", *version.split()) == "200"
        assert (
            status_of(one, "/v1/models", "--tls-max", "1.1", "--ciphers", "ALL:@SECLEVEL=0")
            == "000"
        )
        plain = ["curl", "-sS", f"http://127.0.0.1:{one.port}/liveness"]
        assert subprocess.run(plain, capture_output=True).returncode != 0
        shown = subprocess.run(
            [
                *("openssl", "s_client", "-connect", f"127.0.0.1:{one.port}", "-brief"),
                *("-servername", "localhost", "-CAfile", one.ca, "-verify_return_error"),
            ],
            capture_output=True,
            text=True,
            input="",
        )
        assert "Verification: OK" in shown.stderr, shown.stderr
        admin = [str(Path(sys.executable).with_name("smg-admin")), "--url", one.url, "--json"]
        named = [*admin, "--ca-file", one.ca, "--server-name", "localhost", "workers", "list"]
        answer = subprocess.run(named, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        unknown = subprocess.run([*admin, "workers", "list"], capture_output=True, text=True)
        assert unknown.returncode == 1
        assert "--ca-file" in unknown.stderr
        wrong = [admin[0], "--url", one.url.replace("https", "http"), "workers", "list"]
        said = subprocess.run(wrong, capture_output=True, text=True)
        assert said.returncode == 1
        assert "https://" in said.stderr


@pytest.mark.parametrize("processes", ["0", "2"])
def test_certificates_of_clients_are_tenants_and_roles_in_every_process(
    tmp_path: Path, processes: str
) -> None:
    """A rule's tenant is charged, an operator may look, and nobody says of himself who he is."""
    clients = Authority("clients")
    believed = tmp_path / "clients.pem"
    believed.write_bytes(clients.certificate)
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "auth:\n  certificates:\n"
        "    ops: {match: 'ops.*', role: admin, tenant: ops}\n"
        "    teams: {match: '*.example', tenant: '{1}'}\n"
    )
    flags = ("--config", str(rules), "--processes", processes, "--http.tls.client", "ask")
    with scene(tmp_path, (*flags, "--http.tls.client-authority", str(believed))) as one:

        def shown(name: str) -> tuple[str, ...]:
            pair = write_pair(tmp_path / name, clients, name)
            return ("--cert", pair.certificate, "--key", pair.key)

        team, ops, nobody = shown("web.example"), shown("ops.alice"), shown("else.where")
        posted = ("-H", "content-type: application/json", "-d", ASKED)
        assert status_of(one, "/v1/chat/completions", *posted) == "401"
        for _ in range(4):
            assert status_of(one, "/v1/chat/completions", *team, *posted) == "200"
        assert status_of(one, "/v1/chat/completions", *nobody, *posted) == "403"
        assert (
            status_of(one, "/v1/chat/completions", *posted, "-H", f"{CERTIFICATE}: 9 ops.alice")
            == "401"
        )
        assert status_of(one, "/workers", *team) == "403"
        assert status_of(one, "/workers", "-H", f"{CERTIFICATE}: 9999999999999 ops.alice") == "401"
        for _ in range(4):
            assert status_of(one, "/workers", *ops) == "200"
        admin = [str(Path(sys.executable).with_name("smg-admin")), "--url", one.url, "--json"]
        trust = ("--ca-file", one.ca, "--server-name", "localhost")
        holder = ("--cert-file", ops[1], "--cert-key-file", ops[3])
        made = [*admin, *trust, *holder, "keys", "create", "--role", "user", "--tenant", "t"]
        answer = subprocess.run(made, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        audit = subprocess.run(
            [*admin, *trust, *holder, "audit"], capture_output=True, text=True, check=True
        )
        assert "certificate:ops.alice" in audit.stdout
        usage = subprocess.run(
            [*admin, *trust, *holder, "usage"], capture_output=True, text=True, check=True
        )
        assert '"web"' in usage.stdout
