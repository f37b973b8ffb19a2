"""The mesh's key is rotated under traffic, and with it the certificates that nodes make from it."""

import base64
import json
from typing import Any

from smg_chaos.gameday.agent import AgentError
from smg_chaos.gameday.whole.faults.fault import Fault


class Rotation(Fault):
    """In three steps, as `smg-admin cluster keyring` does it: install, use, remove; through any node."""

    async def begin(self) -> None:
        """Bring a new key to everybody and take the old one away; AgentError if a step is refused."""
        key = base64.b64encode(self.scene.stage.rng.randbytes(32)).decode()
        old = (await self._step("GET", {}))["primary"]
        installed = await self._step("POST", {"operation": "install", "key": key})
        known = [str(one["fingerprint"]) for one in installed["keys"]]
        (new,) = [one for one in known if one != old]
        await self._step("POST", {"operation": "use", "key": new})
        await self._step("POST", {"operation": "remove", "key": old})

    async def end(self) -> None:
        """Do nothing: it is done."""

    async def _step(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        node = self.scene.stage.rng.choice(self.scene.nodes)
        content = json.dumps(body).encode() if body else b""
        status, said = await node.ask(method, "/v1/cluster/keyring", content)
        if status != 200:
            raise AgentError(f"{node.name} does not rotate keys: {status} {said[:300]!r}")
        answer: dict[str, Any] = json.loads(said)
        bad = {name: word for name, word in answer["members"].items() if word != "ok"}
        if bad:
            raise AgentError(f"{body.get('operation', 'list')} of a key did not reach all: {bad}")
        return answer
