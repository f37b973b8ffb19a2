"""Installs the Helm chart with the real Helm library into an API server of its own, which writes down what it is given.

No cluster is needed: the server knows the kinds that the chart uses, says yes to all, and calls every Job done. What
arrives there is held against the schemas that Kubernetes publishes, for the oldest and the newest version the chart
is for. Run by `make deploy-check`, with the Python of .cache/deploy.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import helm_sdkpy
import kubernetes_validate
import yaml
from deploy_chart_values import CASES, REFUSED, RIGHTS

_WATCH_S = 0.05
_WATCHES = 400  # longer than Helm waits here
VERSIONS = ("1.27", "1.37")
KINDS = {
    "v1": ["ConfigMap", "Pod", "Secret", "Service", "ServiceAccount"],
    "apps/v1": ["StatefulSet"],
    "autoscaling/v2": ["HorizontalPodAutoscaler"],
    "batch/v1": ["Job"],
    "monitoring.coreos.com/v1": ["ServiceMonitor"],
    "networking.k8s.io/v1": ["NetworkPolicy"],
    "policy/v1": ["PodDisruptionBudget"],
    "rbac.authorization.k8s.io/v1": ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
}
CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding")


def plural(kind: str) -> str:
    """Return what paths call a kind."""
    return f"{kind.lower()[:-1]}ies" if kind.endswith("y") else f"{kind.lower()}s"


class Recorder(ThreadingHTTPServer):
    """The API server: what was created is in `objects`, by its path."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of watchers who left."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.objects: dict[str, dict[str, Any]] = {}
        self.kept: list[dict[str, Any]] = []


class Api(BaseHTTPRequestHandler):
    """One connection to it."""

    protocol_version = "HTTP/1.1"
    server: Recorder

    def log_message(self, *said: object) -> None:
        """Say nothing."""

    def answer(self, code: int, body: dict[str, Any]) -> None:
        """Send JSON."""
        raw = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def missing(self) -> None:
        """Say that there is no such object."""
        self.answer(404, {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404})

    def do_GET(self) -> None:
        """Answer what there is: kinds, an object, a list of them or the changes to it."""
        url = urlsplit(self.path)
        known = discovery(url.path)
        if url.path == "/openapi/v2":
            # An empty document, as protobuf: Helm then looks at nothing by itself, and `wrong_with` does.
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif known is not None:
            self.answer(200, known)
        elif url.path in self.server.objects:
            self.answer(200, self.server.objects[url.path])
        elif url.path.rsplit("/", 1)[-1] in {
            plural(kind) for kinds in KINDS.values() for kind in kinds
        }:
            self.several(url.path, parse_qs(url.query))
        else:
            self.missing()

    def several(self, path: str, query: dict[str, list[str]]) -> None:
        """Answer a list of objects, or a watch that says them once."""
        found = [value for key, value in self.server.objects.items() if key.startswith(f"{path}/")]
        if "watch" not in query:
            kind = {plural(k): (v, k) for v, kinds in KINDS.items() for k in kinds}[
                path.rsplit("/", 1)[-1]
            ]
            body = {
                "kind": f"{kind[1]}List",
                "apiVersion": kind[0],
                "metadata": {"resourceVersion": "1"},
            }
            self.answer(200, {**body, "items": found})
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.changes(path, bookmark="sendInitialEvents" in query)

    def changes(self, path: str, *, bookmark: bool) -> None:
        """Say what there is, that this was all if that is wanted, and then what comes, for as long as Helm waits."""
        said: set[str] = set()
        for _ in range(_WATCHES):
            for key in sorted(set(self.server.objects) - said):
                if key.startswith(f"{path}/"):
                    self.event("ADDED", self.server.objects[key])
                said.add(key)
            if bookmark:
                kind = {plural(k): (v, k) for v, kinds in KINDS.items() for k in kinds}[
                    path.rsplit("/", 1)[-1]
                ]
                marks = {
                    "resourceVersion": "1",
                    "annotations": {"k8s.io/initial-events-end": "true"},
                }
                self.event("BOOKMARK", {"apiVersion": kind[0], "kind": kind[1], "metadata": marks})
                bookmark = False
            time.sleep(_WATCH_S)

    def event(self, kind: str, value: dict[str, Any]) -> None:
        """Send one change; a watcher who has left ends this connection's thread."""
        self.wfile.write(json.dumps({"type": kind, "object": value}).encode() + b"\n")

    def body(self) -> dict[str, Any]:
        """Return what was sent."""
        sent: dict[str, Any] = json.loads(
            self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"
        )
        return sent

    def do_POST(self) -> None:
        """Create an object; a Job is done at once, and so is the pod of a test."""
        made = self.body()
        self.server.kept.append(json.loads(json.dumps(made)))
        made["metadata"] |= {
            "resourceVersion": "1",
            "uid": "1",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if made.get("kind") == "Job":
            made["status"] = {
                "succeeded": 1,
                "conditions": [{"type": "Complete", "status": "True"}],
            }
        if made.get("kind") == "Pod":
            made["status"] = {"phase": "Succeeded"}
        path = f"{urlsplit(self.path).path}/{made['metadata']['name']}"
        self.server.objects[path] = made
        self.answer(201, made)

    def do_PUT(self) -> None:
        """Replace an object."""
        changed = self.body()
        self.server.objects[urlsplit(self.path).path] = changed
        self.answer(200, changed)

    def do_PATCH(self) -> None:
        """Replace an object, as far as Helm can tell."""
        self.do_PUT()

    def do_DELETE(self) -> None:
        """Remove an object."""
        self.body()
        if self.server.objects.pop(urlsplit(self.path).path, None) is None:
            self.missing()
        else:
            self.answer(200, {"kind": "Status", "apiVersion": "v1", "status": "Success"})


def discovery(path: str) -> dict[str, Any] | None:
    """Return what an API server says of itself, if that is asked."""
    groups = [version for version in KINDS if "/" in version]
    if path == "/version":
        return {
            "major": "1",
            "minor": VERSIONS[-1].split(".")[1],
            "gitVersion": f"v{VERSIONS[-1]}.0",
        }
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        listed = [{"groupVersion": name, "version": name.split("/")[1]} for name in groups]
        named = [
            {"name": one["groupVersion"].split("/")[0], "versions": [one], "preferredVersion": one}
            for one in listed
        ]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": named}
    version = path.removeprefix("/apis/").removeprefix("/api/")
    if version not in KINDS:
        return None
    verbs = ["create", "delete", "get", "list", "patch", "update", "watch"]
    resources = [
        {
            "name": plural(kind),
            "singularName": kind.lower(),
            "namespaced": kind not in CLUSTER_WIDE,
            "kind": kind,
            "verbs": verbs,
        }
        for kind in KINDS[version]
    ]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version,
        "resources": resources,
    }


async def install(chart: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what Helm creates for these values, and then to test the release; helm_sdkpy's error says why it would not."""
    server = Recorder()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(kubeconfig(f"http://127.0.0.1:{server.server_port}"), file)
            file.flush()
            config = helm_sdkpy.Configuration(namespace="serving", kubeconfig=file.name)
            run = helm_sdkpy.Install(config).run(
                "gateway", chart, values=values, wait=False, timeout=20
            )
            await asyncio.wait_for(run, 60)
            await asyncio.wait_for(helm_sdkpy.Test(config).run("gateway"), 60)
    finally:
        server.shutdown()
    return server.kept


def kubeconfig(address: str) -> dict[str, Any]:
    """Return the file that leads Helm to the server."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": address}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        "current-context": "here",
    }


def wrong_with(made: dict[str, Any]) -> list[str]:
    """Return what Kubernetes' schemas say against an object; kinds of others are not theirs to judge."""
    if made["apiVersion"].startswith("monitoring.coreos.com/"):
        return []
    found = []
    for version in VERSIONS:
        try:
            kubernetes_validate.validate(made, version, strict=True)
        except Exception as error:  # whatever it raises is what is wrong
            found.append(
                f"{made['kind']} {made['metadata']['name']}, Kubernetes {version}: {error}"[:2000]
            )
    return found


def rights_of(made: list[dict[str, Any]]) -> tuple[list[tuple[str, str, list[str]]], bool]:
    """Return the roles that were made, each bound, with what they let be listed and watched, and whether the token is mounted."""
    roles = []
    for one in made:
        if one["kind"] in ("Role", "ClusterRole"):
            kind, where = f"{one['kind']}Binding", one["metadata"]
            (bound,) = [it for it in made if it["kind"] == kind and it["metadata"] == where]
            assert bound["roleRef"]["name"] == where["name"]
            assert bound["subjects"][0]["namespace"] == "serving"
            assert all(rule["verbs"] == ["list", "watch"] for rule in one["rules"])
            resources = [name for rule in one["rules"] for name in rule["resources"]]
            roles.append((one["kind"], one["metadata"].get("namespace", ""), resources))
    (nodes,) = (one for one in made if one["kind"] == "StatefulSet")
    return sorted(roles), nodes["spec"]["template"]["spec"]["automountServiceAccountToken"]


def tested_by(made: list[dict[str, Any]]) -> list[str]:
    """Return what a release is tested with: a command of one pod, which needs no rights."""
    (pod,) = (one for one in made if one["kind"] == "Pod")
    assert pod["spec"]["automountServiceAccountToken"] is False
    (container,) = pod["spec"]["containers"]
    command: list[str] = container["command"]
    for policy in (one for one in made if one["kind"] == "NetworkPolicy"):
        sources = policy["spec"]["ingress"][0].get("from")
        labels = [one.get("podSelector", {}).get("matchLabels") for one in sources or ()]
        assert sources is None or pod["metadata"]["labels"] in labels, "it is not let in"
    return command


async def main(chart: str, folder: Path) -> int:
    """Check every case, and leave what was rendered in `folder`, which there is; 1 if anything is wrong."""
    # Set before Python starts, because the library reads it as it is loaded: releases are not written to the server.
    assert os.environ.get("HELM_DRIVER") == "memory"
    problems: list[str] = []
    said = await helm_sdkpy.Lint(helm_sdkpy.Configuration(namespace="serving")).run(chart)
    print(f"helm lint: {said}")
    for name, values in CASES.items():
        try:
            made = await install(chart, values)
        except Exception as error:  # whatever Helm raises is what is wrong
            problems.append(f"{name}: {error}")
            continue
        (folder / f"{name.replace(' ', '-')}.yaml").write_text(yaml.safe_dump_all(made))
        for one in made:
            problems += [f"{name}: {problem}" for problem in wrong_with(one)]
        scheme = "https" if "tls" in values else "http"
        asked = ["smg-admin", f"--url={scheme}://gateway-smg-node:30000", "status"]
        if [
            word for word in tested_by(made) if "ca-file" not in word and "server-" not in word
        ] != asked:
            problems.append(f"{name}: it is tested with {tested_by(made)}")
        if rights_of(made) != RIGHTS[name]:
            problems.append(f"{name}: rights {rights_of(made)}, not {RIGHTS[name]}")
        print(f"{name}: {', '.join(one['kind'] for one in made)}")
    for name, values in REFUSED.items():
        try:
            await install(chart, values)
        except Exception as error:  # to be refused is what is wanted
            print(f"refused, as it should be, {name}: {str(error).splitlines()[-1][:160]}")
        else:
            problems.append(f"{name} was not refused")
    sys.stderr.writelines(f"chart: {problem}\n" for problem in problems)
    return 1 if problems else 0


if __name__ == "__main__":
    Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
    sys.exit(asyncio.run(main(sys.argv[1], Path(sys.argv[2]))))
