"""Key rotation under traffic: the mesh's key changes, and the certificates derived from it."""

import base64
import json
from typing import Any, Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.whole.faults.fault import Fault

_STEP_S: Final = 25.0
"""As patient as `smg-admin cluster keyring`."""


def _known(ring: dict[str, Any]) -> list[str]:
    """Return the fingerprints of a ring that a node tells."""
    return [str(one["fingerprint"]) for one in ring["keys"]]


class Rotation(Fault):
    """In three steps, as `smg-admin cluster keyring` does it: install, use, remove; through any node."""

    async def begin(self) -> None:
        """Install a new key on all nodes and remove the old one.

        AgentError if a step is refused.
        """
        key = base64.b64encode(self.scene.stage.rng.randbytes(32)).decode()
        before = _known(await self._step("GET", {}))
        installed = _known(await self._step("POST", {"operation": "install", "key": key}))
        new = [one for one in installed if one not in before]
        if len(new) != 1:
            raise AgentError(f"a ring of {before} and one new key is told as {installed}")
        await self._step("POST", {"operation": "use", "key": new[0]})
        # All that were there: one is left over where an earlier rotation did not come to its end.
        for old in before:
            await self._step("POST", {"operation": "remove", "key": old})

    async def end(self) -> None:
        """Do nothing: it is done."""

    async def _step(self, method: str, body: dict[str, Any]) -> dict[str, Any]:
        node = self.scene.stage.rng.choice(self.scene.nodes)
        content = json.dumps(body).encode() if body else b""
        status, said = await node.ask(method, "/v1/cluster/keyring", content, timeout_s=_STEP_S)
        if status != 200:
            raise AgentError(f"{node.name} does not rotate keys: {status} {said[:300]!r}")
        answer: dict[str, Any] = json.loads(said)
        bad = {name: word for name, word in answer["members"].items() if word != "ok"}
        if bad:
            raise AgentError(f"{body.get('operation', 'list')} of a key did not reach all: {bad}")
        return answer
