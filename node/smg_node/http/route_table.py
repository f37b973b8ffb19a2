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

from smg_node.core.access.permissions import ACCESS, Access, Needed, Permission
from smg_node.core.errors import ErrorKind, SmgError

By: TypeAlias = Literal["control", "data"]
"""Which process of a node answers where it has several; the control process answers what is not often asked."""


BY_CLIENT: Final = "*"
"""In place of a dialect: the request's headers tell whose client it is."""


_GOOGLES: Final = ("/v1beta/", "/v1alpha/", "/v1/tunedModels")
"""How paths begin that only Google's clients ask for."""
_OTHER_VENDORS: Final = frozenset({"messages", "gemini", "interactions"})
"""Dialects of APIs that are not OpenAI's."""


class Route(msgspec.Struct, frozen=True):
    """One method of one path. `dialect` names the error envelope; "" is the OpenAI one.

    `permission` is what a caller needs; where `own` is a permission too, that suffices for what is of the caller's own
    tenant.
    """

    method: str
    path: str
    permission: Needed
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
    own: Permission | None = None

    @property
    def access(self) -> Access:
        """The group of routes it is of."""
        return ACCESS[self.permission]

    @property
    def upgrades(self) -> bool:
        """Whether it is a WebSocket: then its answer is 101."""
        return self.status == 101

    @property
    def label(self) -> str:
        """Its name in metrics: how long a WebSocket lives is told apart from how long an answer takes."""
        return f"{self.path} (socket)" if self.upgrades else self.path


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


class UpgradeRequiredError(SmgError):
    """What is here speaks WebSocket only; `headers` tell how to ask for it."""

    def __init__(self, message: str, headers: Mapping[str, str]) -> None:
        self.headers = headers
        super().__init__(
            ErrorKind.INVALID_REQUEST, message, code="websocket_upgrade_required", status=426
        )


METRICS_TEXT: Final = ("text/plain", "application/openmetrics-text")
"""What a scraper prefers of these."""

# fmt: off
ROUTES: Final[tuple[Route, ...]] = (
    Route("POST", "/v1/chat/completions", "generate", "Answer a conversation", "chat", "ChatRequest", "ChatCompletion", dialect="chat", by="data"),
    Route("POST", "/v1/completions", "generate", "Continue a text", "completions", "CompletionRequest", "Completion", dialect="completions", by="data"),
    Route("POST", "/v1/messages", "generate", "Answer a conversation, as Anthropic's API does", "messages", "MessagesRequest", "MessagesAnswer", dialect="messages", by="data"),
    Route("POST", "/v1/messages/count_tokens", "generate", "Count the tokens of a prompt, as Anthropic's API does", "count_tokens", "CountTokensRequest", "CountedTokens", dialect="messages", by="data"),
    Route("POST", "/v1/responses", "generate", "Answer items, and remember it", "create_response", "ResponseRequest", "Response", headers=("Idempotency-Key?",)),
    Route("POST", "/v1/responses/input_tokens", "generate", "Count the tokens of a prompt, with its history", "input_tokens", "ResponseRequest", "InputTokens"),
    Route("POST", "/v1/responses/compact", "generate", "Sum up a history", "compact", "ResponseRequest", "Compaction"),
    Route("GET", "/v1/responses/{id}", "history", "Show a response, or its events from any of them on", "response", answer="Response", query=("include", "stream", "starting_after", "include_obfuscation")),
    Route("GET", "/v1/responses", "generate", "Make responses over a WebSocket", "responses_socket", status=101, answer_types=(), by="data"),
    Route("GET", "/v1/realtime", "generate", "Talk with a model over a WebSocket, as OpenAI's Realtime API does", "realtime_socket", status=101, answer_types=(), query=("model",), by="data"),
    Route("DELETE", "/v1/responses/{id}", "history", "Forget a response", "delete_response", answer="Deleted"),
    Route("POST", "/v1/responses/{id}/cancel", "history", "End a response that is made in the background", "cancel_response", answer="Response"),
    Route("GET", "/v1/responses/{id}/input_items", "history", "List what a response was given itself", "input_items", answer="ItemList", query=("limit", "order", "after", "include")),
    Route("POST", "/v1/interactions", "generate", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1/interactions/{id}", "history", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1/interactions/{id}", "history", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1/interactions/{id}/cancel", "history", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1beta/interactions", "generate", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1beta/interactions/{id}", "history", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1beta/interactions/{id}", "history", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1beta/interactions/{id}/cancel", "history", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1alpha/interactions", "generate", "Answer steps, and remember it", "create_interaction", "InteractionRequest", "Interaction", dialect="interactions"),
    Route("GET", "/v1alpha/interactions/{id}", "history", "Show an interaction, or its events from any of them on", "interaction", answer="Interaction", dialect="interactions", query=("stream", "last_event_id", "include_input")),
    Route("DELETE", "/v1alpha/interactions/{id}", "history", "Forget an interaction", "delete_interaction", answer="InteractionDeleted", dialect="interactions"),
    Route("POST", "/v1alpha/interactions/{id}/cancel", "history", "End an interaction that is being made", "cancel_interaction", answer="Interaction", dialect="interactions"),
    Route("POST", "/v1/conversations", "history", "Begin a conversation", "create_conversation", "NewConversation", "Conversation"),
    Route("GET", "/v1/conversations/{id}", "history", "Show a conversation", "conversation", answer="Conversation"),
    Route("POST", "/v1/conversations/{id}", "history", "Replace the metadata of a conversation", "change_conversation", "ConversationChange", "Conversation"),
    Route("DELETE", "/v1/conversations/{id}", "history", "Forget a conversation; its responses stay", "delete_conversation", answer="Deleted"),
    Route("GET", "/v1/conversations/{id}/items", "history", "List the items of a conversation", "items", answer="ItemList", query=("limit", "order", "after", "include")),
    Route("POST", "/v1/conversations/{id}/items", "history", "Append items to a conversation", "add_items", "NewItems", "ItemList"),
    Route("GET", "/v1/conversations/{id}/items/{item}", "history", "Show an item of a conversation", "item", answer="Item"),
    Route("DELETE", "/v1/conversations/{id}/items/{item}", "history", "Take an item out of a conversation", "delete_item", answer="Conversation"),
    Route("POST", "/v1/embeddings", "generate", "Turn texts into vectors", "embeddings", "EmbeddingsRequest", "Embeddings", by="data"),
    Route("POST", "/v1/rerank", "generate", "Order documents by what they have to say to a query", "rerank", "RerankRequest", "Reranked", by="data"),
    Route("POST", "/rerank", "generate", "Same as /v1/rerank", "rerank", "RerankRequest", "Reranked", by="data"),
    Route("POST", "/v1/classify", "generate", "Say which class a text belongs to", "classify", "ClassifyRequest", "Classified", by="data"),
    Route("POST", "/classify", "generate", "Same as /v1/classify", "classify", "ClassifyRequest", "Classified", by="data"),
    Route("POST", "/v1/tokenize", "generate", "Turn text or messages into token ids", "tokenize", "TokenizeRequest", "Tokenized", by="data"),
    Route("POST", "/tokenize", "generate", "Same as /v1/tokenize", "tokenize", "TokenizeRequest", "Tokenized", by="data"),
    Route("POST", "/v1/detokenize", "generate", "Turn token ids into text", "detokenize", "DetokenizeRequest", "Detokenized", by="data"),
    Route("POST", "/detokenize", "generate", "Same as /v1/detokenize", "detokenize", "DetokenizeRequest", "Detokenized", by="data"),
    Route("POST", "/parse/function_call", "parsers", "Find the calls in what a model printed", "parse_calls", "ParseCallsRequest", "ParsedCalls", by="data"),
    Route("POST", "/parse/reasoning", "parsers", "Find the thoughts in what a model printed", "parse_reasoning", "ParseReasoningRequest", "ParsedReasoning", by="data"),
    Route("POST", "/v1/models/{id+}", "generate", "Answer contents or count their tokens, as Google's API does: MODEL:generateContent, :streamGenerateContent, :countTokens", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("POST", "/v1beta/models/{id+}", "generate", "Same as POST /v1/models/{id}", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("POST", "/v1alpha/models/{id+}", "generate", "Same as POST /v1/models/{id}", "generate_content", "GenerateContentRequest", "GenerateContentAnswer", dialect="gemini", query=("alt",), by="data"),
    Route("GET", "/v1/models", "models", "List the served models and their aliases, in the shape that the client's headers ask for", "models", answer="ModelList", dialect=BY_CLIENT, by="data"),
    Route("GET", "/v1/models/{id+}", "models", "Show one model", "model", answer="Model", dialect=BY_CLIENT, by="data"),
    Route("GET", "/v1beta/models", "models", "List the served models and their aliases, as Google's API does", "google_models", answer="GoogleModelList", dialect="gemini", query=("pageSize", "pageToken"), by="data"),
    Route("GET", "/v1beta/models/{id+}", "models", "Show one model, as Google's API does", "google_model", answer="GoogleModel", dialect="gemini", by="data"),
    Route("GET", "/v1alpha/models", "models", "Same as GET /v1beta/models", "google_models", answer="GoogleModelList", dialect="gemini", query=("pageSize", "pageToken"), by="data"),
    Route("GET", "/v1alpha/models/{id+}", "models", "Same as GET /v1beta/models/{id}", "google_model", answer="GoogleModel", dialect="gemini", by="data"),
    Route("POST", "/mcp", "tools.use", "Use the tools of all servers by the Model Context Protocol", "serve_mcp", "McpMessage", "McpReply", by="data"),
    Route("POST", "/mcp/{server}", "tools.use", "Use the tools of one server by the Model Context Protocol", "serve_mcp", "McpMessage", "McpReply", by="data"),
    Route("GET", "/v1/usage", "usage.own", "Sum up what the requests of the tenant used whose key asks", "own_usage", answer="Usage", query=("model", "key", "server", "tool", "from", "to", "by")),
    Route("GET", "/get_model_info", "look", "Show the only model, or the one asked for", "model_card", answer="ModelCard", query=("model",), by="data"),
    Route("GET", "/model_info", "look", "Same as /get_model_info", "model_card", answer="ModelCard", query=("model",), by="data"),
    Route("GET", "/get_server_info", "look", "Show the configuration, without secrets", "server_card", answer="ServerCard"),
    Route("GET", "/server_info", "look", "Same as /get_server_info", "server_card", answer="ServerCard"),
    Route("GET", "/workers", "look", "List the workers", "workers", answer="WorkerList", query=("model", "status", "role")),
    Route("POST", "/workers", "workers", "Add a worker", "add_worker", "WorkerRequest", "Accepted", status=202),
    Route("GET", "/workers/{id}", "workers", "Show one worker", "worker", answer="Worker"),
    Route("PUT", "/workers/{id}", "workers", "Replace all that is said of a worker but its URL", "replace_worker", "WorkerRequest", "Worker"),
    Route("PATCH", "/workers/{id}", "workers", "Change priority, cost, labels, key or status of a worker", "patch_worker", "WorkerPatch", "Worker"),
    Route("DELETE", "/workers/{id}", "workers", "Drain and forget a worker", "remove_worker", answer="Removed", query=("force",)),
    Route("POST", "/workers/{id}/drain", "workers", "Send a worker no new work", "drain_worker", answer="Worker"),
    Route("POST", "/workers/{id}/undrain", "workers", "Send a worker work again", "undrain_worker", answer="Worker"),
    Route("POST", "/workers/{id}/probe", "workers", "Look at a worker now", "probe_worker", answer="Worker"),
    Route("GET", "/get_loads", "engines", "Ask every worker for its load", "loads", answer="Loads"),
    Route("GET", "/v1/cluster", "look", "Show the cluster as this node sees it", "cluster", answer="Cluster"),
    Route("GET", "/v1/cluster/members", "look", "List the members and their states", "members", answer="MemberList", query=("state",)),
    Route("GET", "/v1/cluster/members/{name}", "look", "Show one member", "member", answer="Member"),
    Route("GET", "/v1/cluster/members/{name}/drain", "look", "Tell how far that member is with taking no more work", "member_drain", answer="MemberDrain"),
    Route("POST", "/v1/cluster/members/{name}/drain", "members", "Let that member take no new work; its process stays", "drain_member", answer="Member"),
    Route("POST", "/v1/cluster/members/{name}/undrain", "members", "Let that member take work again", "undrain_member", answer="Member"),
    Route("POST", "/v1/cluster/members/{name}/forget", "members", "Drop the row of a dead member on every node", "forget_member", answer="Forgotten"),
    Route("POST", "/v1/cluster/join", "members", "Look for other nodes, for ever", "join", "JoinRequest", "Joining", status=202),
    Route("POST", "/v1/cluster/leave", "members", "Drain this node, say goodbye and stop it", "leave", answer="Leaving", status=202),
    Route("GET", "/v1/cluster/events", "look", "Tell what happened to members, once or as it comes", "events", answer="EventList", query=("after", "stream")),
    Route("GET", "/v1/cluster/keyring", "keyring", "List the fingerprints of the keyring on every member", "keyring", answer="Keyring"),
    Route("POST", "/v1/cluster/keyring", "keyring", "Install, use or remove a key on every member", "change_keyring", "KeyringRequest", "Keyring"),
    Route("GET", "/v1/cluster/workers", "look", "List the workers with what each node says of them", "cluster_workers", answer="ClusterWorkerList", query=("model", "id")),
    Route("GET", "/v1/cluster/discovery", "look", "List the sources of workers, who watches them, and what they come to", "discovery", answer="Discovery"),
    Route("PUT", "/v1/cluster/discovery/{kind}/{name}", "workers", "Define a source of workers on every node", "define_source", "WorkerSourceRequest", "WorkerSource", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/discovery/{kind}/{name}", "workers", "Take the cluster's definition of a source of workers away", "remove_source", answer="WorkerSourceRemoved", headers=("If-Match",)),
    Route("GET", "/v1/cluster/state", "look", "Show digests and sizes of the replicated state, here and at peers", "state", answer="State", query=("peers",)),
    Route("GET", "/v1/cluster/state/{namespace}", "look", "Show one namespace of the replicated state", "namespace", answer="NamespaceState", query=("peers",)),
    Route("GET", "/v1/cluster/settings", "look", "List the settings of the cluster, set or all that could be", "settings", answer="SettingList", query=("all",)),
    Route("GET", "/v1/cluster/settings/diff", "look", "Show where own words differ from the cluster's, or two nodes", "settings_difference", answer="SettingDifferences", query=("node",)),
    Route("GET", "/v1/cluster/settings/history", "look", "List the latest changes of settings", "settings_history", answer="SettingHistory", query=("key", "before", "limit")),
    Route("POST", "/v1/cluster/settings/validate", "look", "Say what is wrong with settings, without effect", "validate_settings", "SettingValues", "Validation"),
    Route("POST", "/v1/cluster/settings/rollback", "settings", "Undo a change of settings, or all after one", "rollback_settings", "RollbackRequest", "Restored"),
    Route("GET", "/v1/cluster/settings/{key+}", "look", "Show one setting: the cluster's word, this node's, which counts", "setting", answer="Setting"),
    Route("PUT", "/v1/cluster/settings/{key+}", "settings", "Set it on every node", "change_setting", "SettingRequest", "Setting", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/settings/{key+}", "settings", "Let every node go back to its own word", "unset_setting", answer="Setting", headers=("If-Match",)),
    Route("GET", "/v1/cluster/providers", "look", "List the providers, never their secrets, with the state of their models", "providers", answer="ProviderList"),
    Route("POST", "/v1/cluster/providers/explain", "look", "Tell how each target of a model is asked, and what it would ignore or refuse of a request", "explain_targets", "ProviderQuestion", "ProviderExplained"),
    Route("GET", "/v1/cluster/providers/{name}", "look", "Show one provider, never its secrets", "provider", answer="Provider"),
    Route("PUT", "/v1/cluster/providers/{name}", "providers", "Define a provider on every node; secrets that are left out stay", "put_provider", "ProviderRequest", "Provider", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/providers/{name}", "providers", "Take a provider away on every node", "remove_provider", answer="ProviderRemoved", query=("force",), headers=("If-Match",)),
    Route("GET", "/v1/cluster/routes", "look", "List the routes over models at providers", "routes", answer="ProviderRouteList"),
    Route("GET", "/v1/cluster/routes/{name+}", "look", "Show one route and the state of its targets", "route", answer="ProviderRoute"),
    Route("PUT", "/v1/cluster/routes/{name+}", "providers", "Define a route on every node", "put_route", "ProviderRouteRequest", "ProviderRoute", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/routes/{name+}", "providers", "Take a route away on every node", "remove_route", answer="ProviderRouteRemoved", headers=("If-Match",)),
    Route("GET", "/v1/cluster/shadows/{name+}", "providers", "Show what became of the copies that a route made on this node", "shadows", answer="RouteShadows"),
    Route("GET", "/v1/cluster/prices", "look", "List the prices of models and of providers' models", "prices", answer="PriceList"),
    Route("GET", "/v1/cluster/prices/{name+}", "look", "Show one price", "price", answer="Price"),
    Route("PUT", "/v1/cluster/prices/{name+}", "prices", "Say on every node what a model, or PROVIDER/MODEL, costs", "put_price", "PriceRequest", "Price", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/prices/{name+}", "prices", "Take a price away on every node", "remove_price", answer="PriceRemoved", headers=("If-Match",)),
    Route("GET", "/v1/mcp/servers", "look", "List the servers of tools, never their secrets", "mcp_servers", answer="ToolServerList"),
    Route("POST", "/v1/mcp/servers", "tools", "Define a server of tools that is not defined yet, on every node", "create_mcp_server", "NamedToolServerRequest", "ToolServer", status=201),
    Route("GET", "/v1/mcp/servers/{name}", "look", "Show one server of tools, never its secrets", "mcp_server", answer="ToolServer"),
    Route("PUT", "/v1/mcp/servers/{name}", "tools", "Define a server of tools on every node; secrets that are left out stay", "put_mcp_server", "ToolServerRequest", "ToolServer", headers=("If-Match",)),
    Route("DELETE", "/v1/mcp/servers/{name}", "tools", "Take a server of tools away on every node", "remove_mcp_server", answer="ToolServerRemoved", headers=("If-Match",)),
    Route("GET", "/v1/mcp/servers/{name}/tools", "tools", "Ask a server for its tools now, and say which are left out", "mcp_tools", answer="ServerTools"),
    Route("POST", "/v1/mcp/servers/{name}/call", "tools", "Call a tool as an operator", "call_mcp_tool", "ToolCallRequest", "ToolCallOutcome"),
    Route("GET", "/v1/mcp/approvals", "approvals", "List the runs of tools that wait for an operator's word, on all nodes", "tool_approvals", answer="ApprovalList"),
    Route("GET", "/v1/mcp/approvals/{id}", "approvals", "Show one run that waits for an operator's word, with its arguments", "tool_approval", answer="ApprovalShown"),
    Route("POST", "/v1/mcp/approvals/{id}", "approvals", "Allow or deny a run that waits, on whichever node it does", "answer_tool_approval", "ApprovalAnswer", "ApprovalAnswered"),
    Route("GET", "/v1/cluster/keys", "keys", "List the API keys, never their secrets", "keys", answer="KeyList", query=("all",), own="keys.own"),
    Route("POST", "/v1/cluster/keys", "keys", "Make an API key; it is shown in this answer and never again", "create_key", "KeyRequest", "NewKey", status=201, own="keys.own"),
    Route("POST", "/v1/cluster/keys/import", "keys", "Make keys of another gateway good on every node, by their SHA-256; those that are there stay as they are", "import_keys", "KeyImportRequest", "KeyImport"),
    Route("DELETE", "/v1/cluster/keys/{id}", "keys", "Make an API key worthless on every node", "revoke_key", answer="RevokedKey", query=("force",), own="keys.own"),
    Route("GET", "/v1/cluster/access/issuers", "look", "List the issuers of tokens with the state of their keys", "access_issuers", answer="TokenIssuerList"),
    Route("PUT", "/v1/cluster/access/issuers/{name}", "access", "Define an issuer of tokens on every node", "define_issuer", "TokenIssuerRequest", "TokenIssuer", query=("force",), headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/access/issuers/{name}", "access", "Take the cluster's definition of an issuer away", "remove_issuer", answer="TokenIssuerRemoved", query=("force",), headers=("If-Match",)),
    Route("GET", "/v1/cluster/access/denials", "look", "List the subjects whose tokens are refused", "access_denials", answer="DenialList"),
    Route("POST", "/v1/cluster/access/denials", "access", "Refuse the tokens of a subject on every node", "deny_access", "DenialRequest", "Denial"),
    Route("DELETE", "/v1/cluster/access/denials/{issuer}/{subject+}", "access", "Refuse the tokens of a subject no longer", "undo_denial", answer="Denial"),
    Route("GET", "/v1/cluster/access/roles", "look", "List the roles with the permissions of each", "access_roles", answer="RoleList"),
    Route("PUT", "/v1/cluster/access/roles/{name}", "access", "Define a role on every node", "define_role", "RoleRequest", "Role", headers=("If-Match",)),
    Route("DELETE", "/v1/cluster/access/roles/{name}", "access", "Take the cluster's definition of a role away", "remove_role", answer="RoleRemoved", query=("force",), headers=("If-Match",)),
    Route("GET", "/v1/cluster/limits", "look", "List the limits of the cluster", "limits", answer="LimitList", query=("use",), own="limits.own"),
    Route("GET", "/v1/cluster/limits/{scope+}", "look", "Show one limit, and what is spent of it everywhere", "limit", answer="LimitUse", query=("rows", "brief"), own="limits.own"),
    Route("PUT", "/v1/cluster/limits/{scope+}", "limits", "Set a limit on every node", "change_limit", "LimitRequest", "Limit", headers=("If-Match",), own="limits.own"),
    Route("DELETE", "/v1/cluster/limits/{scope+}", "limits", "Take a limit away on every node", "unset_limit", answer="LimitUnset", headers=("If-Match",)),
    Route("GET", "/v1/cluster/usage", "look", "Sum up what requests used on all nodes, by hour, day, tenant, key, model, provider, server or tool", "usage", answer="Usage", query=("tenant", "model", "key", "provider", "server", "tool", "from", "to", "by")),
    Route("GET", "/v1/cluster/metrics", "look", "Tell what every node counts, in one answer", "numbers", answer="Numbers", query=("names",)),
    Route("GET", "/v1/cluster/audit", "look", "List who changed what, on any node, newest first", "audit", answer="AuditList", query=("before", "after", "action", "subject", "who", "node", "limit")),
    Route("GET", "/v1/cluster/sessions/{key}", "look", "Show where the requests of a routing key go", "session", answer="Session", query=("model", "tenant")),
    Route("DELETE", "/v1/cluster/sessions/{key}", "sessions", "Forget where the requests of a routing key go", "end_session", answer="SessionEnded", query=("model", "tenant")),
    Route("GET", "/v1/cluster/explain/{id}", "look", "Tell what became of a request: candidates, costs, attempts, on any node", "explain", answer="Explained", query=("node",)),
    Route("GET", "/version", "public", "Show name and version", "version", answer="Version"),
    Route("GET", "/openapi.json", "public", "Show this document", "openapi", answer="Document", by="data"),
    Route("GET", "/liveness", "public", "Whether the process turns", "liveness", answer="Probe", by="data"),
    Route("GET", "/readiness", "public", "Whether to send work here", "readiness", answer="Probe", by="data"),
    Route("GET", "/health", "public", "Whether any worker is ready", "health", answer="Probe", by="data"),
    Route("GET", "/health_generate", "look", "Generate one token with every model", "health_generate", answer="Generated", by="data"),
    Route("GET", "/metrics", "look", "Metrics in the Prometheus text format", "metrics", answer_types=METRICS_TEXT),
    Route("GET", "/.well-known/oauth-protected-resource", "public", "Show which issuers' tokens are good here (RFC 9728)", "protected_resource", answer="ProtectedResource", by="data"),
    Route("GET", "/.well-known/oauth-protected-resource/{path+}", "public", "Same, of one path, such as mcp", "protected_resource", answer="ProtectedResource", by="data"),
    Route("GET", "/", "public", "Nothing, for clients that look here first", "root", answer_types=(), by="data"),
)

METRICS_ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/metrics", "public", "Metrics in the Prometheus text format", "metrics", answer_types=METRICS_TEXT),
    Route("GET", "/liveness", "public", "Whether the process turns", "liveness", answer="Probe"),
    Route("GET", "/readiness", "public", "Whether to send work here", "readiness", answer="Probe"),
)
# fmt: on
OPERATORS: Final[frozenset[Access]] = frozenset({"view", "admin"})
"""Access of routes that only operators and administrators use."""


def public_routes(*, apart: bool) -> Sequence[Route]:
    """Return the routes at the public address: all of them, or those of clients where operators' are `apart`."""
    return [route for route in ROUTES if route.access not in OPERATORS] if apart else ROUTES


def operators_routes() -> Sequence[Route]:
    """Return the routes of a listener for operators: all but those that tenants use."""
    return [route for route in ROUTES if route.access != "data"]


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
        raise nothing_at(method, path, self._hint(method, path))

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


def nothing_at(method: str, path: str, hint: str = "") -> SmgError:
    """Return the error for a path that is none here; `hint` follows what it says."""
    return SmgError(
        ErrorKind.NOT_FOUND,
        f"there is nothing at {method[:16]} {path[:200]}{hint}",
        code="unknown_url",
    )


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
