"""Member query: a question to one member over the mesh, and the error where none answers."""

from collections.abc import Mapping
from typing import Final, Protocol

from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.mesh_port import Answer
from smg_node.cluster.membership.shutdown import LEAVING_CODE
from smg_node.core.errors import ErrorKind, SmgError

ASK_S: Final = 5.0
_KINDS: Final[Mapping[str, tuple[ErrorKind, str]]] = {
    LEAVING_CODE: (ErrorKind.CONFLICT, LEAVING_CODE),
    "timeout": (ErrorKind.UPSTREAM_TIMEOUT, "member_silent"),
    "deadline": (ErrorKind.UPSTREAM_TIMEOUT, "member_silent"),
}


class MemberQueries(Protocol):
    """Port to queries between members; a mesh has it."""

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        """Ask a member; LookupError for an unknown one, AskError if it refuses or is silent."""
        ...

    def answer(self, topic: str, reply: Answer) -> None:
        """Register the answerer of members' questions about `topic`."""
        ...


async def query_member(
    mesh: MemberQueries, name: str, topic: str, payload: bytes = b"", *, deadline_s: float = ASK_S
) -> bytes:
    """Return a member's answer; NOT_FOUND for an unknown one, else the error that says why there is
    none.
    """
    # Imported here: a standalone node has no members to ask, and does not load the transport for it.
    from smg_mesh.mesh import AskError

    try:
        return await mesh.ask(name, topic, payload, deadline_s=deadline_s)
    except LookupError:
        raise no_member(name) from None
    except AskError as error:
        kind, code = _KINDS.get(error.code, (ErrorKind.UPSTREAM_FAILED, "member_refused"))
        raise SmgError(kind, f"{name}: {error}", code=code) from error
