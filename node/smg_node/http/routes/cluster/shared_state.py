"""Shared state routes: digests and sizes of the replicated state, and sticky sessions."""

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.message.field_reader import query_switch
from smg_node.http.message.http_request import HttpRequest
from smg_node.http.message.reply import Reply, json_reply
from smg_node.http.middleware.audit_caller import caller_of
from smg_node.http.ports.shared_state import AuditService, SessionService, StateService


class StateRoutes:
    """Serves the state that all nodes share."""

    def __init__(self, state: StateService, sessions: SessionService, audit: AuditService) -> None:
        self._state = state
        self._sessions = sessions
        self._audit = audit

    async def state(self, request: HttpRequest) -> Reply:
        """Show every namespace, and with `?peers=true` which members have the same contents."""
        return json_reply(await self._state.state(peers=query_switch(request, "peers")))

    async def namespace(self, request: HttpRequest) -> Reply:
        """Show one namespace."""
        wanted = request.values["namespace"]
        view = await self._state.state(peers=query_switch(request, "peers"))
        for row in view.namespaces:
            if row.name == wanted:
                members = {
                    name: {
                        "same": wanted not in peer.differs and not peer.error,
                        "error": peer.error,
                    }
                    for name, peer in view.members.items()
                }
                return json_reply(
                    {"node": view.node, "held": view.held, "namespace": row, "members": members}
                )
        raise SmgError(
            ErrorKind.NOT_FOUND,
            f"no namespace is called {wanted[:64]!r}",
            where="namespace",
            code="namespace_not_found",
        )

    async def session(self, request: HttpRequest) -> Reply:
        """Show the worker of a routing key, and which node wrote that."""
        key, model, tenant = _session(request)
        return json_reply(self._sessions.session(key, model=model, tenant=tenant))

    async def end_session(self, request: HttpRequest) -> Reply:
        """Forget the worker of a routing key, on every node."""
        key, model, tenant = _session(request)
        ended = self._sessions.end_session(key, model=model, tenant=tenant)
        self._audit.record(caller_of(request), "session.end", ended.id, before=ended)
        return json_reply({"status": "ended", "session": ended})


def _session(request: HttpRequest) -> tuple[str, str, str]:
    query = request.query
    return request.values["key"], query.get("model", ""), query.get("tenant", "")
