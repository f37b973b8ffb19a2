"""Client of an API server for tests: makes, changes and ends pods, as a deployment and a kubelet would."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from typing import Any

from aiohttp import ClientSession, TCPConnector

MERGE = "application/merge-patch+json"
NODE = "node-1"


class KubeClient:
    """Speaks with the API server at `base`, as whom the token is of."""

    def __init__(self, base: str, token: str = "", trust: ssl.SSLContext | None = None) -> None:
        self.base = base
        self._headers = {"authorization": f"Bearer {token}"} if token else {}
        self._session = ClientSession(connector=TCPConnector(ssl=trust or True))

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def ask(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        """Return the status and the answer."""
        headers = {**self._headers, "content-type": kind}
        async with self._session.request(
            method, self.base + path, json=body, headers=headers
        ) as answer:
            return answer.status, await answer.json(content_type=None)

    async def do(
        self, method: str, path: str, body: Any = None, *, kind: str = "application/json"
    ) -> dict[str, Any]:
        """Return the answer, which is none of a refusal."""
        status, said = await self.ask(method, path, body, kind=kind)
        assert status < 300, f"{method} {path}: {status} {said.get('message', '')}"
        return said

    async def lines(self, path: str, *, at_most_s: float = 30.0) -> list[dict[str, Any]]:
        """Return all lines of a watch until the server ends it."""
        async with asyncio.timeout(at_most_s):
            async with self._session.get(self.base + path, headers=self._headers) as answer:
                assert answer.status == 200, await answer.text()
                return [json.loads(line) async for line in answer.content]

    async def pod(
        self,
        name: str,
        *,
        namespace: str,
        labels: Mapping[str, str],
        ip: str = "",
        is_ready: bool = True,
        annotations: Mapping[str, str] | None = None,
        node: str = NODE,
        port: int = 50051,
    ) -> dict[str, Any]:
        """Make a pod; with an address it runs there, ready or not."""
        made = await self.do(
            "POST",
            f"/api/v1/namespaces/{namespace}/pods",
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "labels": dict(labels),
                    "annotations": dict(annotations or {}),
                },
                "spec": {
                    **({"nodeName": node} if node else {}),
                    "containers": [
                        {
                            "name": "engine",
                            "image": "engine:1",
                            "ports": [{"name": "grpc", "containerPort": port}],
                        }
                    ],
                },
            },
        )
        if ip:
            made = await self.runs(namespace, name, ip=ip, is_ready=is_ready)
        return made

    async def runs(
        self, namespace: str, name: str, *, ip: str, is_ready: bool, phase: str = "Running"
    ) -> dict[str, Any]:
        """Let a pod be there, as its kubelet would say."""
        conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
        status = {"phase": phase, "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        return await self.do("PATCH", path, {"status": status}, kind=MERGE)

    async def mark(
        self,
        namespace: str,
        name: str,
        *,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
    ) -> None:
        """Change labels and annotations; None takes one away."""
        metadata = {"labels": dict(labels or {}), "annotations": dict(annotations or {})}
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        await self.do("PATCH", path, {"metadata": metadata}, kind=MERGE)

    async def delete(self, namespace: str, name: str, *, grace_s: int | None = None) -> None:
        """Order a pod to end; with a grace of 0 it is gone at once, as when its kubelet has ended it."""
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        await self.do("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", body)

    async def delete_all(self, namespace: str) -> None:
        """End all pods of a namespace."""
        listed = await self.do("GET", f"/api/v1/namespaces/{namespace}/pods")
        names = [pod["metadata"]["name"] for pod in listed["items"]]
        await asyncio.gather(*(self.delete(namespace, name, grace_s=0) for name in names))
