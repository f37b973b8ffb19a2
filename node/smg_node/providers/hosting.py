"""Hostings: where each kind of provider is, which dialects it speaks, and how a request is dressed for it. Pure.

One row a kind: the base, a route for each dialect in order of preference, how a caller says who it is. A vendor that
has the OpenAI API and a key of its own needs no row: that is `openai_like` with a base.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

CHAT: Final = "chat"
COMPLETIONS: Final = "completions"
EMBEDDINGS: Final = "embeddings"
RESPONSES: Final = "responses"
MESSAGES: Final = "messages"
GENERATE_CONTENT: Final = "generate_content"
INTERACTIONS: Final = "interactions"
CONVERSE: Final = "converse"
COUNT_MESSAGES: Final = "messages/count"
COUNT_CONTENT: Final = "generate_content/count"
GENERATING: Final = (RESPONSES, MESSAGES, GENERATE_CONTENT, CONVERSE, CHAT)
"""Dialects that any chat can be written in, the one that says most first."""

ANTHROPIC_VERSION: Final = "2026-10-21"
"""What Anthropic's client of autumn 2026 says, in headers and in bodies alike."""


class Auth(Enum):
    """How a caller says who it is. The named header of `KEY_HEADERS`; a token is a Bearer one everywhere."""

    BEARER = "bearer"
    X_GOOG_API_KEY = "x-goog-api-key"
    API_KEY = "api-key"
    BOTH_API_KEYS = "x-api-key and api-key"
    OAUTH = "oauth"
    SIGV4 = "sigv4"


KEY_HEADERS: Final[Mapping[Auth, Sequence[str]]] = MappingProxyType(
    {
        Auth.BEARER: (),
        Auth.X_GOOG_API_KEY: ("x-goog-api-key",),
        Auth.API_KEY: ("api-key",),
        Auth.BOTH_API_KEYS: ("x-api-key", "api-key"),
        Auth.OAUTH: (),
        Auth.SIGV4: (),
    }
)
"""Headers that a key stands in as it is; where there are none it is a Bearer token."""


class Version(Enum):
    """Where Anthropic's version stands."""

    NOWHERE = ""
    HEADER = "header"
    BODY = "body"


class Dress(msgspec.Struct, frozen=True):
    """What differs in a body: `model` and `stream` stay in it or not, `betas` are told in it and not by a header.

    `usage`: the usage of a stream must be asked for. `counted`: the body goes as the one that Bedrock counts.
    """

    model: bool = True
    stream: bool = True
    version: Version = Version.NOWHERE
    betas: bool = False
    usage: bool = False
    counted: bool = False


class Route(msgspec.Struct, frozen=True):
    """Path and query of one dialect below a base, with `{model}` and fields of the site; `streamed` where a streamed
    answer has a path of its own.
    """

    path: str
    streamed: str = ""
    query: str = ""
    streamed_query: str = ""
    dress: Dress = Dress()


class Hosting(msgspec.Struct, frozen=True):
    """One kind of provider. `needs` are fields that it cannot do without; those in `base_needs` only make its base.

    `service` is the name that AWS signs for. `account` names fields that tell whose account it is: the header of
    each. `versions` are what `{api_version}` is where nobody says another.
    """

    kind: str
    base: str
    routes: Mapping[str, Route]
    auth: Auth
    needs: tuple[str, ...] = ()
    base_needs: tuple[str, ...] = ()
    service: str = ""
    account: tuple[tuple[str, str], ...] = ()
    api_version: str = ""
    location: str = ""
    framed: bool = False
    """Whether streams are frames of AWS, not events."""
    google_models: str = ""
    """How a model's name becomes a path at Google: the collection that a bare name lies in."""

    @property
    def dialects(self) -> Sequence[str]:
        """Dialects that a chat can be written in, in order of preference."""
        return [name for name in self.routes if name in GENERATING]


_PLAIN: Final = Dress()
_CLAUDE: Final = Dress(version=Version.HEADER)
_CLAUDE_VERTEX: Final = Dress(model=False, version=Version.BODY)
_CLAUDE_INVOKE: Final = Dress(model=False, stream=False, version=Version.BODY, betas=True)
_MODEL_IN_PATH: Final = Dress(model=False, stream=False)


def _openai(prefix: str = "", query: str = "") -> dict[str, Route]:
    """Return the routes of the OpenAI API; `{model}` may stand in `prefix`, but not before Responses."""
    return {
        RESPONSES: Route("/responses", query=query),
        CHAT: Route(f"{prefix}/chat/completions", query=query, dress=Dress(usage=True)),
        COMPLETIONS: Route(f"{prefix}/completions", query=query, dress=Dress(usage=True)),
        EMBEDDINGS: Route(f"{prefix}/embeddings", query=query),
    }


def _claude(prefix: str = "") -> dict[str, Route]:
    return {
        MESSAGES: Route(f"{prefix}/v1/messages", dress=_CLAUDE),
        COUNT_MESSAGES: Route(f"{prefix}/v1/messages/count_tokens", dress=_CLAUDE),
    }


def _google(path: str) -> dict[str, Route]:
    return {
        GENERATE_CONTENT: Route(
            f"{path}/{{model}}:generateContent",
            f"{path}/{{model}}:streamGenerateContent",
            streamed_query="alt=sse",
            dress=_MODEL_IN_PATH,
        ),
        COUNT_CONTENT: Route(f"{path}/{{model}}:countTokens", dress=_MODEL_IN_PATH),
    }


_VERTEX: Final = "/{api_version}/projects/{project}/locations/{location}"
_VERTEX_CLAUDE: Final = f"{_VERTEX}/publishers/anthropic/models"
_BEDROCK: Final = "https://bedrock-runtime.{region}.{aws}"

_ROWS: Final = (
    Hosting(
        "openai",
        "https://{region.}api.openai.com/v1",
        _openai(),
        Auth.BEARER,
        account=(("organization", "openai-organization"), ("project", "openai-project")),
    ),
    Hosting("anthropic", "https://api.anthropic.com", _claude(), Auth.BEARER),
    Hosting(
        "gemini",
        "https://generativelanguage.googleapis.com",
        {**_google("/{api_version}"), INTERACTIONS: Route("/{api_version}/interactions")},
        Auth.X_GOOG_API_KEY,
        api_version="v1beta",
        google_models="models",
    ),
    Hosting(
        "vertex",
        "https://{vertex}",
        _google(_VERTEX),
        Auth.OAUTH,
        needs=("project", "location"),
        api_version="v1",
        google_models="publishers/google/models",
    ),
    Hosting(
        "vertex_anthropic",
        "https://{vertex}",
        {
            MESSAGES: Route(
                f"{_VERTEX_CLAUDE}/{{model}}:rawPredict",
                f"{_VERTEX_CLAUDE}/{{model}}:streamRawPredict",
                dress=_CLAUDE_VERTEX,
            ),
            COUNT_MESSAGES: Route(
                f"{_VERTEX_CLAUDE}/count-tokens:rawPredict", dress=Dress(version=Version.BODY)
            ),
        },
        Auth.OAUTH,
        needs=("project", "location"),
        api_version="v1",
    ),
    Hosting(
        "bedrock",
        _BEDROCK,
        {
            CONVERSE: Route(
                "/model/{model}/converse", "/model/{model}/converse-stream", dress=_MODEL_IN_PATH
            ),
        },
        Auth.SIGV4,
        needs=("region",),
        service="bedrock",
        framed=True,
    ),
    Hosting(
        "bedrock_invoke",
        _BEDROCK,
        {
            MESSAGES: Route(
                "/model/{model}/invoke",
                "/model/{model}/invoke-with-response-stream",
                dress=_CLAUDE_INVOKE,
            ),
            COUNT_MESSAGES: Route(
                "/model/{model}/count-tokens",
                dress=Dress(
                    model=False, stream=False, version=Version.BODY, betas=True, counted=True
                ),
            ),
        },
        Auth.SIGV4,
        needs=("region",),
        service="bedrock",
        framed=True,
    ),
    Hosting(
        "mantle",
        "https://bedrock-mantle.{region}.api.aws",
        {
            RESPONSES: Route("/openai/v1/responses"),
            MESSAGES: Route("/anthropic/v1/messages", dress=_CLAUDE),
            CHAT: Route("/openai/v1/chat/completions", dress=Dress(usage=True)),
        },
        Auth.SIGV4,
        needs=("region",),
        service="bedrock-mantle",
    ),
    Hosting(
        "azure",
        "https://{resource}.openai.azure.com/openai/v1",
        _openai(query="api-version={api_version?}"),
        Auth.API_KEY,
        base_needs=("resource",),
    ),
    Hosting(
        "azure_dated",
        "https://{resource}.openai.azure.com/openai",
        _openai("/deployments/{model}", "api-version={api_version?}"),
        Auth.API_KEY,
        needs=("api_version",),
        base_needs=("resource",),
    ),
    Hosting(
        "foundry",
        "https://{resource}.services.ai.azure.com/anthropic",
        _claude(),
        Auth.BOTH_API_KEYS,
        base_needs=("resource",),
    ),
    Hosting(
        "claude_aws",
        "https://aws-external-anthropic.{region}.api.aws",
        _claude(),
        Auth.SIGV4,
        needs=("region", "workspace"),
        service="aws-external-anthropic",
        account=(("workspace", "anthropic-workspace-id"),),
    ),
    Hosting(
        "claude_gcp",
        "https://claude.googleapis.com/v1/projects/{project}/locations/{location}"
        "/workspaces/{workspace}/invoke",
        _claude(),
        Auth.OAUTH,
        base_needs=("project", "workspace"),
        location="global",
    ),
    Hosting(
        "xai",
        "https://api.x.ai/v1",
        {RESPONSES: Route("/responses"), CHAT: _openai()[CHAT]},
        Auth.BEARER,
    ),
    Hosting("openai_like", "", _openai(), Auth.BEARER, needs=("base",)),
)

HOSTINGS: Final[Mapping[str, Hosting]] = MappingProxyType({row.kind: row for row in _ROWS})
"""All kinds of providers, by name."""
