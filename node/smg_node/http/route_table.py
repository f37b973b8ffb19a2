"""Route table: every route of the node as a literal; source of the router and `/openapi.json`.

A path's last part may be `{name}` (one segment) or `{name+}` (the rest, slashes included). `action`
names the function that answers (`route_actions`). `body` and `answer` name schemas of
`openapi/schemas`, `status` is that of a success; without `answer_types` it has no content. `headers` are request headers that a client should send, or may, if there is a
`?` behind the name.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

import msgspec

from smg_node.core.errors import ErrorKind, SmgError

Access: TypeAlias = Literal["public", "data", "view", "admin"]
"""Who may ask: anyone; any tenant; operators and administrators; administrators."""
By: TypeAlias = Literal["control", "data"]
"""Which process of a node answers where it has several; the control process answers what is not often asked."""


BY_CLIENT: Final = "*"
"""In place of a dialect: the request's headers tell whose client it is."""


_GOOGLES: Final = ("/v1beta/", "/v1alpha/", "/v1/tunedModels")
"""How paths begin that only Google's clients ask for."""
_OTHER_VENDORS: Final = frozenset({"messages", "gemini", "interactions"})
"""Dialects of APIs that are not OpenAI's."""


class Route(msgspec.Struct, frozen=True):
    """One method of one path. `dialect` names the error envelope; "" is the OpenAI one."""

    method: str
    path: str
    access: Access
    summary: str
    action: str
    body: str = ""
    answer: str = ""
    status: int = 200
    answer_types: tuple[str, ...] = ("application/json",)
    dialect: str = ""
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    by: By = "control"


def is_openais(route: Route | None) -> bool:
    """Return whether the path is of OpenAI's API, or of none, so that its answers have that API's headers."""
    return route is None or route.dialect not in _OTHER_VENDORS


class Found(msgspec.Struct, frozen=True):
    """A route and the values of its path parameters."""

    route: Route
    values: Mapping[str, str]


NO_VALUES: Final[Mapping[str, str]] = {}


class WrongMethodError(SmgError):
    """The path exists, but not for this method; `allow` lists its methods, `access` are those who may use
    one of them.
    """

    def __init__(
        self, method: str, path: str, allow: Sequence[str], access: frozenset[Access] = frozenset()
    ) -> None:
        self.allow = ", ".join(allow)
        self.access = access
        super().__init__(
            ErrorKind.INVALID_REQUEST,
            f"{path} does not take {method[:16]}; it takes {self.allow}",
            code="method_not_allowed",
            status=405,
        )


METRICS_TEXT: Final = ("text/plain", "application/openmetrics-text")
"""What a scraper prefers of these."""

# fmt: off
ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", "/v1/chat/completions", "data", "Answer a conversation", "chat", "ChatRequest", "ChatCompletion", dialect="chat", by="data"),
    Route("POST", "/v1/completions", "data", "Continue a text", "completions", "CompletionRequest", "Completion", dialect="completions", by="data"),
    Route("POST", "/v1/messages", "data", "Answer a conversation, as Anthropic's API does", "messages", "MessagesRequest", "MessagesAnswer", dialect="messages", by="data"),
    Route("POST", "/v1/messages/count_tokens", "data", "Count the tokens of a prompt, as Anthropic's API does", "count_tokens", "CountTokensRequest", "CountedTokens", dialect="messages", by="data"),
    Route("POST", "/v1/responses", "data", "Answer items, and remember it", "create_response", "ResponseRequest", "Response", headers=("Idempotency-Key?",)),
    Route("POST", "/v1/responses/input_tokens", "data", "Count the tokens of a prompt, with its history", "input_tokens", "ResponseRequest", "InputTokens"),
    Route("POST", "/v1/responses/compact", "data", "Sum up a history", "compact", "ResponseRequest", "Compaction"),
    Route("GET", "/v1/responses/{id}", "data", "Show a response, or its events from any of them on", "response", answer="Response", query=("include", "stream", "starting_after", "include_obfuscation")),
    Route("DELETE", "/v1/responses/{id}", "data", "Forget a response", "delete_response", answer="Deleted"),
    Route("POST", "/v1/responses/{id}/cancel", "data", "End a response that is made in the background", "cancel_response", answer="Response"),
    Route("GET", "/v1/responses/{id}/input_items", "data", "List what a response was given itself", "input_items", answer="ItemList", query=("limit", "order", "after", "include")),
    Route("POST", "/v1/interactions", "data", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1/interactions/{id}", "data", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1/interactions/{id}", "data", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1/interactions/{id}/cancel", "data", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1beta/interactions", "data", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1beta/interactions/{id}", "data", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1beta/interactions/{id}", "data", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1beta/interactions/{id}/cancel", "data", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1alpha/interactions", "data", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1alpha/interactions/{id}", "data", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1alpha/interactions/{id}", "data", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1alpha/interactions/{id}/cancel", "data", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1/conversations", "data", "Begin a conversation", "create_conversation", "NewConversation", "Conversation"),
    Route("GET", "/v1/conversations/{id}", "data", "Show a conversation", "conversation", answer="Conversation"),
    Route("POST", "/v1/conversations/{id}", "data", "Replace the metadata of a conversation", "change_conversation", "ConversationChange", "Conversation"),
    Route("DELETE", "/v1/conversations/{id}", "data", "Forget a conversation; its responses stay", "delete_conversation", answer="Deleted"),
    Route("GET", "/v1/conversations/{id}/items", "data", "List the items of a conversation", "items", answer="ItemList", query=("limit", "order", "after", "include")),
    Route("POST", "/v1/conversations/{id}/items", "data", "Append items to a conversation", "add_items", "NewItems", "ItemList"),
    Route("GET", "/v1/conversations/{id}/items/{item}", "data", "Show an item of a conversation", "item", answer="Item"),
    Route("DELETE", "/v1/conversations/{id}/items/{item}", "data", "Take an item out of a conversation", "delete_item", answer="Conversation"),
    Route("POST", "/v1/embeddings", "data", "Turn texts into vectors", "embeddings", "EmbeddingsRequest", "Embeddings", by="data"),
    Route("POST", "/v1/rerank", "data", "Order documents by what they have to say to a query", "rerank", "RerankRequest", "Reranked", by="data"),
    Route("POST", "/rerank", "data", "Same as /v1/rerank", "rerank", "RerankRequest", "Reranked", by="data"),
    Route("POST", "/v1/classify", "data", "Say which class a text belongs to", "classify", "ClassifyRequest", "Classified", by="data"),
    Route("POST", "/classify", "data", "Same as /v1/classify", "classify", "ClassifyRequest", "Classified", by="data"),
    Route("POST", "/v1/tokenize", "data", "Turn text or messages into token ids", "tokenize", "TokenizeRequest", "Tokenized", by="data"),
    Route("POST", "/tokenize", "data", "Same as /v1/tokenize", "tokenize", "TokenizeRequest", "Tokenized", by="data"),
    Route("POST", "/v1/detokenize", "data", "Turn token ids into text", "detokenize", "DetokenizeRequest", "Detokenized", by="data"),
    Route("POST", "/detokenize", "data", "Same as /v1/detokenize", "detokenize", "DetokenizeRequest", "Detokenized", by="data"),
    Route("POST", "/parse/function_call", "admin", "Find the calls in what a model printed", "parse_calls", "ParseCallsRequest", "ParsedCalls", by="data"),
    Route("POST", "/parse/reasoning", "admin", "Find the thoughts in what a model printed", "parse_reasoning", "ParseReasoningRequest", "ParsedReasoning", by="data"),
    Route("POST", "/v1/models/{id+}", "data", "Answer contents or count their tokens, as Google's API does: MODEL:generateContent, :streamGenerateContent, :countTokens", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("POST", "/v1beta/models/{id+}", "data", "Same as POST /v1/models/{id}", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("POST", "/v1alpha/models/{id+}", "data", "Same as POST /v1/models/{id}", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("GET", "/v1/models", "data", "List the served models and their aliases, in the shape that the client's headers ask for", "models", answer="ModelList", dialect=BY_CLIENT, by="data"),
    Route("GET", "/v1/models/{id+}", "data", "Show one model", "model", answer="Model", dialect=BY_CLIENT, by="data"),
    Route("GET", "/v1beta/models", "data", "List the served models and their aliases, as Google's API does", "google_models", answer="GoogleModelList", dialect="gemini", query=("pageSize", "pageToken"), by="data"),
    Route("GET", "/v1beta/models/{id+}", "data", "Show one model, as Google's API does", "google_model", answer="GoogleModel", dialect="gemini", by="data"),
    Route("GET", "/v1alpha/models", "data", "Same as GET /v1beta/models", "google_models", answer="GoogleModelList", dialect="gemini", query=("pageSize", "pageToken"), by="data"),
    Route("GET", "/v1alpha/models/{id+}", "data", "Same as GET /v1beta/models/{id}", "google_model", answer="GoogleModel", dialect="gemini", by="data"),
    Route("POST", "/mcp", "data", "Use the tools of all servers by the Model Context Protocol", "serve_mcp", "McpMessage", "McpReply", by="data"),
    Route("POST", "/mcp/{server}", "data", "Use the tools of one server by the Model Context Protocol", "serve_mcp", "McpMessage", "McpReply", by="data"),
    Route("GET", "/v1/usage", "data", "Sum up what the requests of the tenant used whose key asks", "own_usage", answer="Usage", query=("model", "key", "server", "tool", "from", "to", "by")),
    Route("GET", "/get_model_info", "view", "Show the only model, or the one asked for", "model_card", answer="ModelCard", query=("model",), by="data"),
    Route("GET", "/model_info", "view", "Same as /get_model_info", "model_card", answer="ModelCard", query=("model",), by="data"),
    Route("GET", "/get_server_info", "view", "Show the configuration, without secrets", "server_card", answer="ServerCard"),
    Route("GET", "/server_info", "view", "Same as /get_server_info", "server_card", answer="ServerCard"),
    Route("GET", "/workers", "view", "List the workers", "workers", answer="WorkerList", query=("model", "status", "role")),
    Route("POST", "/workers", "admin", "Add a worker", "add_worker", "WorkerRequest", "Accepted", status=202),
    Route("GET", "/workers/{id}", "admin", "Show one worker", "worker", answer="Worker"),
    Route("PUT", "/workers/{id}", "admin", "Replace all that is said of a worker but its URL", "replace_worker", "WorkerRequest", "Worker"),
    Route("PATCH", "/workers/{id}", "admin", "Change priority, cost, labels, key or status of a worker", "patch_worker", "WorkerPatch", "Worker"),
    Route("DELETE", "/workers/{id}", "admin", "Drain and forget a worker", "remove_worker", answer="Removed", query=("force",)),
    Route("POST", "/workers/{id}/drain", "admin", "Send a worker no new work", "drain_worker", answer="Worker"),
    Route("POST", "/workers/{id}/undrain", "admin", "Send a worker work again", "undrain_worker", answer="Worker"),
    Route("POST", "/workers/{id}/probe", "admin", "Look at a worker now", "probe_worker", answer="Worker"),
    Route("GET", "/get_loads", "admin", "Ask every worker for its load", "loads", answer="Loads"),
    Route("GET", "/v1/cluster", "view", "Show the cluster as this node sees it", "cluster", answer="Cluster"),
    Route("GET", "/v1/cluster/members", "view", "List the members and their states", "members", answer="MemberList", query=("state",)),
    Route("GET", "/v1/cluster/members/{name}", "view", "Show one member", "member", answer="Member"),
    Route("GET", "/v1/cluster/members/{name}/drain", "view", "Tell how far that member is with taking no more work", "member_drain", answer="MemberDrain"),
    Route("POST", "/v1/cluster/members/{name}/drain", "admin", "Let that member take no new work; its process stays", "drain_member", answer="Member"),
    Route("POST", "/v1/cluster/members/{name}/undrain", "admin", "Let that member take work again", "undrain_member", answer="Member"),
    Route("POST", "/v1/cluster/members/{name}/forget", "admin", "Drop the row of a dead member on every node", "forget_member", answer="Forgotten"),
    Route("POST", "/v1/cluster/join", "admin", "Look for other nodes, for ever", "join", "JoinRequest", "Joining", status=202),
    Route("POST", "/v1/cluster/leave", "admin", "Drain this node, say goodbye and stop it", "leave", answer="Leaving", status=202),
    Route("GET", "/v1/cluster/events", "view", "Tell what happened to members, once or as it comes", "events", answer="EventList", query=("after", "stream")),
    Route("GET", "/v1/cluster/keyring", "admin", "List the fingerprints of the keyring on every member", "keyring", answer="Keyring"),
    Route("POST", "/v1/cluster/keyring", "admin", "Install, use or remove a key on every member", "change_keyring", "KeyringRequest", "Keyring"),
    Route("GET", "/v1/cluster/workers", "view", "List the workers with what each node says of them", "cluster_workers", answer="ClusterWorkerList", query=("model", "id")),
    Route("GET", "/v1/cluster/state", "view", "Show digests and sizes of the replicated state, here and at peers", "state", answer="State", query=("peers",)),
    Route("GET", "/v1/cluster/state/{namespace}", "view", "Show one namespace of the replicated state", "namespace", answer="NamespaceState", query=("peers",)),
    Route("GET", "/v1/cluster/settings", "view", "List the settings of the cluster, set or all that could be", "settings", answer="SettingList", query=("all",)),
    Route("GET", "/v1/cluster/settings/diff", "view", "Show where own words differ from the cluster's, or two nodes", "settings_difference", answer="SettingDifferences", query=("node",)),
    Route("GET", "/v1/cluster/settings/history", "view", "List the latest changes of settings", "settings_history", answer="SettingHistory", query=("key", "before", "limit")),
    Route("POST", "/v1/cluster/settings/validate", "view", "Say what is wrong with settings, without effect", "validate_settings", "SettingValues", "Validation"),
    Route("POST", "/v1/cluster/settings/rollback", "admin", "Undo a change of settings, or all after one", "rollback_settings", "RollbackRequest", "Restored"),
    Route("GET", "/v1/cluster/settings/{key+}", "view", "Show one setting: the cluster's word, this node's, which counts", "setting", answer="Setting"),
    Route("PUT", "/v1/cluster/settings/{key+}", "admin", "Set it on every node", "change_setting", "SettingRequest", "Setting", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/settings/{key+}", "admin", "Let every node go back to its own word", "unset_setting", answer="Setting", headers=("If-Match",)),
    Route("GET", "/v1/cluster/providers", "view", "List the providers, never their secrets, with the state of their models", "providers", answer="ProviderList"),
    Route("POST", "/v1/cluster/providers/explain", "view", "Tell how each target of a model is asked, and what it would ignore or refuse of a request", "explain_targets", "ProviderQuestion", "ProviderExplained"),
    Route("GET", "/v1/cluster/providers/{name}", "view", "Show one provider, never its secrets", "provider", answer="Provider"),
    Route("PUT", "/v1/cluster/providers/{name}", "admin", "Define a provider on every node; secrets that are left out stay", "put_provider", "ProviderRequest", "Provider", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/providers/{name}", "admin", "Take a provider away on every node", "remove_provider", answer="ProviderRemoved", query=("force",), headers=("If-Match",)),
    Route("GET", "/v1/cluster/routes", "view", "List the routes over models at providers", "routes", answer="ProviderRouteList"),
    Route("GET", "/v1/cluster/routes/{name+}", "view", "Show one route and the state of its targets", "route", answer="ProviderRoute"),
    Route("PUT", "/v1/cluster/routes/{name+}", "admin", "Define a route on every node", "put_route", "ProviderRouteRequest", "ProviderRoute", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/routes/{name+}", "admin", "Take a route away on every node", "remove_route", answer="ProviderRouteRemoved", headers=("If-Match",)),
    Route("GET", "/v1/cluster/shadows/{name+}", "admin", "Show what became of the copies that a route made on this node", "shadows", answer="RouteShadows"),
    Route("GET", "/v1/cluster/prices", "view", "List the prices of models and of providers' models", "prices", answer="PriceList"),
    Route("GET", "/v1/cluster/prices/{name+}", "view", "Show one price", "price", answer="Price"),
    Route("PUT", "/v1/cluster/prices/{name+}", "admin", "Say on every node what a model, or PROVIDER/MODEL, costs", "put_price", "PriceRequest", "Price", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/prices/{name+}", "admin", "Take a price away on every node", "remove_price", answer="PriceRemoved", headers=("If-Match",)),
    Route("GET", "/v1/mcp/servers", "view", "List the servers of tools, never their secrets", "mcp_servers", answer="ToolServerList"),
    Route("POST", "/v1/mcp/servers", "admin", "Define a server of tools that is not defined yet, on every node", "create_mcp_server", "NamedToolServerRequest", "ToolServer", status=201),
    Route("GET", "/v1/mcp/servers/{name}", "view", "Show one server of tools, never its secrets", "mcp_server", answer="ToolServer"),
    Route("PUT", "/v1/mcp/servers/{name}", "admin", "Define a server of tools on every node; secrets that are left out stay", "put_mcp_server", "ToolServerRequest", "ToolServer", headers=("If-Match",)),
    Route("DELETE", "/v1/mcp/servers/{name}", "admin", "Take a server of tools away on every node", "remove_mcp_server", answer="ToolServerRemoved", headers=("If-Match",)),
    Route("GET", "/v1/mcp/servers/{name}/tools", "admin", "Ask a server for its tools now, and say which are left out", "mcp_tools", answer="ServerTools"),
    Route("POST", "/v1/mcp/servers/{name}/call", "admin", "Call a tool as an operator", "call_mcp_tool", "ToolCallRequest", "ToolCallOutcome"),
    Route("GET", "/v1/mcp/approvals", "admin", "List the runs of tools that wait for an operator's word, on all nodes", "tool_approvals", answer="ApprovalList"),
    Route("GET", "/v1/mcp/approvals/{id}", "admin", "Show one run that waits for an operator's word, with its arguments", "tool_approval", answer="ApprovalShown"),
    Route("POST", "/v1/mcp/approvals/{id}", "admin", "Allow or deny a run that waits, on whichever node it does", "answer_tool_approval", "ApprovalAnswer", "ApprovalAnswered"),
    Route("GET", "/v1/cluster/keys", "admin", "List the API keys, never their secrets", "keys", answer="KeyList", query=("all",)),
    Route("POST", "/v1/cluster/keys", "admin", "Make an API key; it is shown in this answer and never again", "create_key", "KeyRequest", "NewKey", status=201),
    Route("DELETE", "/v1/cluster/keys/{id}", "admin", "Make an API key worthless on every node", "revoke_key", answer="RevokedKey", query=("force",)),
    Route("GET", "/v1/cluster/access/issuers", "view", "List the issuers of tokens with the state of their keys", "access_issuers", answer="TokenIssuerList"),
    Route("PUT", "/v1/cluster/access/issuers/{name}", "admin", "Define an issuer of tokens on every node", "define_issuer", "TokenIssuerRequest", "TokenIssuer", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/access/issuers/{name}", "admin", "Take the cluster's definition of an issuer away", "remove_issuer", answer="TokenIssuerRemoved", headers=("If-Match",)),
    Route("GET", "/v1/cluster/access/denials", "view", "List the subjects whose tokens are refused", "access_denials", answer="DenialList"),
    Route("POST", "/v1/cluster/access/denials", "admin", "Refuse the tokens of a subject on every node", "deny_access", "DenialRequest", "Denial"),
    Route("DELETE", "/v1/cluster/access/denials/{issuer}/{subject+}", "admin", "Refuse the tokens of a subject no longer", "undo_denial", answer="Denial"),
    Route("GET", "/v1/cluster/limits", "view", "List the limits of the cluster", "limits", answer="LimitList", query=("use",)),
    Route("GET", "/v1/cluster/limits/{scope+}", "view", "Show one limit, and what is spent of it everywhere", "limit", answer="LimitUse", query=("rows", "brief")),
    Route("PUT", "/v1/cluster/limits/{scope+}", "admin", "Set a limit on every node", "change_limit", "LimitRequest", "Limit", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/limits/{scope+}", "admin", "Take a limit away on every node", "unset_limit", answer="LimitUnset", headers=("If-Match",)),
    Route("GET", "/v1/cluster/usage", "view", "Sum up what requests used on all nodes, by hour, day, tenant, key, model, provider, server or tool", "usage", answer="Usage", query=("tenant", "model", "key", "provider", "server", "tool", "from", "to", "by")),
    Route("GET", "/v1/cluster/metrics", "view", "Tell what every node counts, in one answer", "numbers", answer="Numbers", query=("names",)),
    Route("GET", "/v1/cluster/audit", "view", "List who changed what, on any node, newest first", "audit", answer="AuditList", query=("before", "after", "action", "subject", "who", "node", "limit")),
    Route("GET", "/v1/cluster/sessions/{key}", "view", "Show where the requests of a routing key go", "session", answer="Session", query=("model", "tenant")),
    Route("DELETE", "/v1/cluster/sessions/{key}", "admin", "Forget where the requests of a routing key go", "end_session", answer="SessionEnded", query=("model", "tenant")),
    Route("GET", "/v1/cluster/explain/{id}", "view", "Tell what became of a request: candidates, costs, attempts, on any node", "explain", answer="Explained", query=("node",)),
    Route("GET", "/version", "public", "Show name and version", "version", answer="Version"),
    Route("GET", "/openapi.json", "public", "Show this document", "openapi", answer="Document", by="data"),
    Route("GET", "/liveness", "public", "Whether the process turns", "liveness", answer="Probe", by="data"),
    Route("GET", "/readiness", "public", "Whether to send work here", "readiness", answer="Probe", by="data"),
    Route("GET", "/health", "public", "Whether any worker is ready", "health", answer="Probe", by="data"),
    Route("GET", "/health_generate", "view", "Generate one token with every model", "health_generate", answer="Generated", by="data"),
    Route("GET", "/metrics", "view", "Metrics in the Prometheus text format", "metrics", answer_types=METRICS_TEXT),
    Route("GET", "/", "public", "Nothing, for clients that look here first", "root", answer_types=(), by="data"),
)

METRICS_ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/metrics", "public", "Metrics in the Prometheus text format", "metrics", answer_types=METRICS_TEXT),
    Route("GET", "/liveness", "public", "Whether the process turns", "liveness", answer="Probe"),
    Route("GET", "/readiness", "public", "Whether to send work here", "readiness", answer="Probe"),
)
# fmt: on


class Router:
    """Finds the route of a request. HEAD is answered by GET routes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._exact: dict[str, dict[str, Route]] = {}
        self._plain: dict[tuple[str, str], Found] = {}
        self._patterns: list[tuple[tuple[str, ...], dict[str, Route]]] = []
        self._dialects: dict[str, str] = {}
        for route in routes:
            if route.dialect:
                self._dialects[route.path] = route.dialect
            if "{" not in route.path:
                self._exact.setdefault(route.path, {})[route.method] = route
                self._plain[route.method, route.path] = Found(route, NO_VALUES)
            else:
                self._add_pattern(route)

    def find(self, method: str, path: str) -> Found:
        """Return the route for `path` as it stands in the request line, without its query.

        NOT_FOUND `unknown_url` if there is no such path; `WrongMethodError` if there is, for others.
        """
        found = self._plain.get((method, path))
        if found is not None:
            return found
        methods = self._exact.get(path)
        if methods is not None:
            return Found(_chosen(methods, method, path), NO_VALUES)
        plain = unquote(path)
        methods = self._exact.get(plain)
        if methods is not None:
            return Found(_chosen(methods, method, plain), NO_VALUES)
        for pattern, methods in self._patterns:
            values = _match(pattern, path)
            if values is not None:
                return Found(_chosen(methods, method, plain), values)
        raise SmgError(
            ErrorKind.NOT_FOUND,
            f"there is nothing at {method[:16]} {path[:200]}{self._hint(method, path)}",
            code="unknown_url",
        )

    def dialect_of(self, path: str) -> str:
        """Return the dialect of a path that has no route for a request, by the routes at it or above it; "" without one."""
        plain = unquote(path).rstrip("/")
        while plain:
            dialect = self._dialects.get(plain)
            if dialect is not None:
                return dialect
            plain = plain.rpartition("/")[0]
        return "gemini" if path.startswith(_GOOGLES) else ""

    def _hint(self, method: str, path: str) -> str:
        """Return `; did you mean METHOD PATH?`, "" where nothing is near."""
        # Imported here: most nodes never need it.
        from smg_node.http.route_suggestions import nearest_route

        exact = [(tuple(known[1:].split("/")), methods) for known, methods in self._exact.items()]
        patterns = [(parts[1:], methods) for parts, methods in self._patterns]
        meant = nearest_route(method, path, [*exact, *patterns])
        return f"; did you mean {meant}?" if meant else ""

    def _add_pattern(self, route: Route) -> None:
        parts = tuple(route.path.split("/"))
        for pattern, methods in self._patterns:
            if pattern == parts:
                methods[route.method] = route
                return
        self._patterns.append((parts, {route.method: route}))


def _chosen(methods: Mapping[str, Route], method: str, path: str) -> Route:
    route = methods.get("GET" if method == "HEAD" else method)
    if route is None:
        allow = sorted(methods) + (["HEAD"] if "GET" in methods else []) + ["OPTIONS"]
        access = frozenset(each.access for each in methods.values())
        raise WrongMethodError(method, path[:200], allow, access)
    return route


def _match(pattern: Sequence[str], path: str) -> dict[str, str] | None:
    """Return the path parameters; a client may percent-encode the slashes of one."""
    parts = path.split("/")
    values: dict[str, str] = {}
    for index, expected in enumerate(pattern):
        if expected.endswith("+}"):
            rest = unquote("/".join(parts[index:]))
            return {**values, expected[1:-2]: rest} if rest else None
        if index >= len(parts):
            return None
        if expected.startswith("{"):
            values[expected[1:-1]] = unquote(parts[index])
            if not parts[index]:
                return None
        elif expected != parts[index]:
            return None
    return values if len(parts) == len(pattern) else None
