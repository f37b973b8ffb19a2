"""A real API server of Kubernetes with its etcd (tools/kube.sh), as a stage of sources. There are no nodes: tests say what a
kubelet would.
"""

import asyncio
import os
import secrets
import signal
import ssl
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from smg_node.discovery.kubernetes.kube_config import Access
from support.kubernetes.kube_client import MERGE, KubeClient
from support.processes.servers import own_port

PROGRAMS: Final = Path(__file__).parents[3] / ".cache" / "kube" / "bin"
READY_S: Final = 60.0
WATCHER: Final = "watcher"
_RULES: Final = "/apis/rbac.authorization.k8s.io/v1"


class ControlPlane:
    """etcd and an API server in a folder. Who stops or kills one of them starts it again."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.folder = folder
        self.api_port, self.etcd_port, self._peer_port = ports
        self.admin_token, self.watcher_token = secrets.token_hex(16), secrets.token_hex(16)
        self._generation = 0
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._make_files()

    @property
    def base(self) -> str:
        """Where the API is."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def authority(self) -> bytes:
        """What its certificate is trusted by."""
        return (self.folder / "certificates" / "apiserver.crt").read_bytes()

    def trust(self) -> ssl.SSLContext:
        """Return what a client trusts it by."""
        return ssl.create_default_context(cadata=self.authority.decode())

    def is_ready(self) -> bool:
        """Return whether the API server says that it is."""
        headers = {"authorization": f"Bearer {self.admin_token}"}
        try:
            connection = HTTPSConnection(
                "127.0.0.1", self.api_port, context=self.trust(), timeout=READY_S
            )
            with closing(connection):
                connection.request("GET", "/readyz", headers=headers)
                return connection.getresponse().status == 200
        except (OSError, HTTPException):
            return False

    def start_etcd(self) -> None:
        """Start etcd."""
        client, peer = (f"http://127.0.0.1:{it}" for it in (self.etcd_port, self._peer_port))
        self._start(
            "etcd",
            f"--data-dir={self._store_folder}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            "--unsafe-no-fsync",
        )
        self._wait("etcd", ["endpoint", "health"])

    def start_api(self) -> None:
        """Start the API server."""
        self._start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.api_port}",
            f"--cert-dir={self.folder / 'certificates'}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.folder / 'account.key'}",
            f"--service-account-signing-key-file={self.folder / 'account.key'}",
            "--disable-admission-plugins=ServiceAccount",
        )

    def send(self, program: str, what: signal.Signals) -> None:
        """Send one of them a signal; after SIGKILL it is gone when this returns."""
        process = self._processes[program]
        process.send_signal(what)
        if what == signal.SIGKILL:
            process.wait()

    def etcdctl(self, *words: str) -> str:
        """Return what etcdctl says."""
        done = subprocess.run(
            [PROGRAMS / "etcdctl", f"--endpoints=http://127.0.0.1:{self.etcd_port}", *words],
            env={**os.environ, "ETCDCTL_API": "3"},
            check=True,
            capture_output=True,
            text=True,
            timeout=READY_S,
        )
        return done.stdout

    def restore(self, backup: Path) -> None:
        """Kill both, and start both with the store of a backup."""
        self.send("kube-apiserver", signal.SIGKILL)
        self.send("etcd", signal.SIGKILL)
        self._generation += 1
        self.etcdctl("snapshot", "restore", str(backup), f"--data-dir={self._store_folder}")
        self.start_etcd()
        self.start_api()

    def close(self) -> None:
        """Kill both."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    @property
    def _store_folder(self) -> Path:
        return self.folder / f"etcd-{self._generation}"

    def _make_files(self) -> None:
        key = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        text = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (self.folder / "account.key").write_bytes(text)
        (self.folder / "tokens.csv").write_text(
            f'{self.admin_token},admin,1,"system:masters"\n{self.watcher_token},{WATCHER},2\n'
        )

    def _start(self, program: str, *words: str) -> None:
        with (self.folder / f"{program}.log").open("ab") as log:
            self._processes[program] = subprocess.Popen(
                [PROGRAMS / program, *words], stdout=log, stderr=log, start_new_session=True
            )

    def _wait(self, program: str, words: Sequence[str]) -> None:
        until = time.monotonic() + READY_S
        while True:
            try:
                self.etcdctl(*words)
            except subprocess.CalledProcessError:
                assert self._processes[program].poll() is None, f"{program} ended"
                assert time.monotonic() < until, f"{program} is not ready"
                time.sleep(0.1)
            else:
                return


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """Run etcd and an API server, and kill them at the end."""
    with ExitStack() as stack:
        plane = ControlPlane(folder, [stack.enter_context(own_port()) for _ in range(3)])
        stack.callback(plane.close)
        plane.start_etcd()
        plane.start_api()
        yield plane


class RealStage:
    """See `KubeStage`."""

    bookmark_within_s = 65

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.namespace = namespace
        self.plane = plane
        self.client: KubeClient
        self._verbs: tuple[str, ...] = ("list", "watch")

    async def open(self) -> None:
        """Wait for the server; make the namespace and the right to list and watch there."""
        await self._wait()
        await self.client.do("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        inside = f"{_RULES}/namespaces/{self.namespace}"
        await self.client.do(
            "POST",
            f"{inside}/roles",
            {"metadata": {"name": WATCHER}, "rules": _rules("list", "watch")},
        )
        binding = {
            "metadata": {"name": WATCHER},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": WATCHER},
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": WATCHER}
            ],
        }
        await self.client.do("POST", f"{inside}/rolebindings", binding)
        await self._until_allowed()

    def access(self) -> Access:
        """See `KubeStage`."""
        return Access(
            self.plane.base,
            self.namespace,
            authority=self.plane.authority,
            token=self.plane.watcher_token,
        )

    async def allow(self, *verbs: str) -> None:
        """See `KubeStage`. A watch that is open goes on."""
        path = f"{_RULES}/namespaces/{self.namespace}/roles/{WATCHER}"
        await self.client.do("PATCH", path, {"rules": _rules(*verbs)}, kind=MERGE)
        self._verbs = verbs
        await self._until_allowed()

    async def compact(self) -> None:
        """See `KubeStage`. The server keeps the last changes itself, until it is started again."""
        said = await self.client.do("GET", f"/api/v1/namespaces/{self.namespace}/pods?limit=1")
        self.plane.etcdctl("compact", said["metadata"]["resourceVersion"])
        await self.kill()
        await self.start()

    async def pause(self) -> None:
        """See `KubeStage`."""
        self.plane.send("kube-apiserver", signal.SIGSTOP)

    async def go_on(self) -> None:
        """See `KubeStage`."""
        self.plane.send("kube-apiserver", signal.SIGCONT)

    async def kill(self) -> None:
        """See `KubeStage`."""
        self.plane.send("kube-apiserver", signal.SIGKILL)

    async def start(self) -> None:
        """See `KubeStage`."""
        self.plane.start_api()
        await self._wait()
        await self._until_allowed()

    async def backup(self) -> object:
        """See `KubeStage`."""
        path = self.plane.folder / f"backup-{self.namespace}"
        self.plane.etcdctl("snapshot", "save", str(path))
        return path

    async def restore(self, backup: Any) -> None:
        """See `KubeStage`."""
        await asyncio.to_thread(self.plane.restore, backup)
        await self._wait()
        await self._until_allowed()

    async def _wait(self) -> None:
        """Return when the server is ready; its certificate is made when it starts first."""
        until = time.monotonic() + READY_S
        while not await asyncio.to_thread(self.plane.is_ready):
            assert time.monotonic() < until, "the API server is not ready"
            await asyncio.sleep(0.2)
        if not hasattr(self, "client"):
            trust = self.plane.trust()
            self.client = KubeClient(self.plane.base, self.plane.admin_token, trust)

    async def _until_allowed(self) -> None:
        """Return when the server's authorizer knows of the rights: a while after each change and after each start."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            if all([await self._may(verb) == (verb in self._verbs) for verb in ("list", "watch")]):
                return
            await asyncio.sleep(0.1)
        raise AssertionError("the rights are not known")

    async def _may(self, verb: str) -> bool:
        attributes = {"namespace": self.namespace, "verb": verb, "resource": "pods"}
        said = await self.client.do(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {"spec": {"user": WATCHER, "resourceAttributes": attributes}},
        )
        return bool(said["status"]["allowed"])


def _rules(*verbs: str) -> list[dict[str, Any]]:
    return [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs)}] if verbs else []
