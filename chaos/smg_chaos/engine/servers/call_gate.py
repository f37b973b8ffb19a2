"""Call gate of a simulated engine: logs each call, and refuses those without the API key."""

from collections.abc import Callable, Mapping

from smg_chaos.engine.protocol.rpc_call import Call, Code, refused


class Door:
    """Gate of one engine, whose port is `port` once it listens.

    `api_key` is what every call has to carry as `authorization: Bearer …`, "" for none. `say` gets
    the lines about callers and methods; None: calls are not logged.
    """

    def __init__(self, api_key: str = "", say: Callable[[str], None] | None = None) -> None:
        self.port = 0
        self._word = f"Bearer {api_key}" if api_key else ""
        self._say = say

    def refusal(self, method: str, peer: str, headers: Mapping[str, str]) -> Call | None:
        """Return the end of a call without the key, or None. `peer` is gRPC's name of the
        caller.
        """
        known = not self._word or headers.get("authorization") == self._word
        if self._say is not None:
            name = method.rpartition("/")[2]
            host = peer.partition(":")[2].rpartition(":")[0]
            turned = "" if known else " and is turned away"
            self._say(f"call of {name} at {self.port} from {host}{turned}")
        return None if known else refused(Code.UNAUTHENTICATED, "the API key is wrong or missing")
