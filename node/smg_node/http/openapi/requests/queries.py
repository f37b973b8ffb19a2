"""Query parameters in `/openapi.json`, by action and name, as the routes read them."""

from collections.abc import Mapping
from typing import Final

from smg_node.config.worker_url import ROLES
from smg_node.dialects.responses.events.list_bodies import LIMIT, LIMIT_MAX, NUMBER_DIGITS_MAX
from smg_node.dialects.responses.request.output_parameters import INCLUDABLE
from smg_node.http.openapi.requests.makers import Schema
from smg_node.http.openapi.requests.responses import ID_PATTERN
from smg_node.http.ports.usage import ASPECTS
from smg_node.http.query_bounds import (
    AUDIT_ROWS_MAX,
    AUDIT_WORD_CHARACTERS_MAX,
    EVENT_ID_DIGITS_MAX,
    GOOGLE_MODELS,
    MEMBER_STATES,
    METRIC_NAMES_MAX,
    SETTINGS_CHANGES_MAX,
    SWITCH_OFF,
    SWITCH_ON,
    USAGE_NAME_CHARACTERS_MAX,
    USAGE_SPAN_PATTERN,
    WORKER_STATES,
)
from smg_node.telemetry.metrics.cluster_metrics import KNOWN

_TEXT: Final[Schema] = {"type": "string"}
_NAME: Final[Schema] = {"type": "string", "maxLength": USAGE_NAME_CHARACTERS_MAX}
_WORD: Final[Schema] = {"type": "string", "maxLength": AUDIT_WORD_CHARACTERS_MAX}
_OTHER_SPELLINGS: Final = [
    word for word in (*SWITCH_ON, *SWITCH_OFF) if word not in ("true", "false")
]
_SWITCH: Final[Schema] = {"anyOf": [{"type": "boolean"}, {"enum": _OTHER_SPELLINGS}]}
_INCLUDE: Final[Schema] = {"type": "array", "items": {"enum": list(INCLUDABLE)}}
_EVENT: Final[Schema] = {
    "type": "integer",
    "minimum": 0,
    "maximum": 10**EVENT_ID_DIGITS_MAX - 1,
}
_MOMENT: Final[Schema] = {
    "description": "A span such as 24h or 7d before now, or a date or time, of UTC unless it says.",
    "anyOf": [
        {"type": "string", "pattern": f"^{USAGE_SPAN_PATTERN}$"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "format": "date"},
    ],
}


def _number(low: int, high: int, default: int | None = None) -> Schema:
    said = {} if default is None else {"default": default}
    return {"type": "integer", "minimum": low, "maximum": high, **said}


def _list_of(words: tuple[str, ...]) -> Schema:
    return {"type": "array", "items": {"enum": list(words)}}


_PAGE: Final[Mapping[str, Schema]] = {
    "limit": _number(1, LIMIT_MAX, LIMIT),
    "order": {"enum": ["asc", "desc"], "default": "desc"},
    "after": {"type": "string", "pattern": ID_PATTERN},
    "include": _INCLUDE,
}
_GOOGLE_PAGE: Final[Mapping[str, Schema]] = {
    "pageSize": _number(0, 10**9 - 1, GOOGLE_MODELS),
    "pageToken": {**_TEXT, "description": "The `nextPageToken` of the page before."},
}
_USAGE: Final[Mapping[str, Schema]] = {
    "model": _NAME,
    "key": _NAME,
    "server": _NAME,
    "tool": _NAME,
    "from": _MOMENT,
    "to": _MOMENT,
    "by": {**_list_of(ASPECTS), "minItems": 1},
}
_SESSION: Final[Mapping[str, Schema]] = {"model": _TEXT, "tenant": _TEXT}
_PEERS: Final[Mapping[str, Schema]] = {"peers": _SWITCH}
_MODEL: Final[Mapping[str, Schema]] = {"model": _TEXT}

QUERY_SCHEMAS: Final[Mapping[str, Mapping[str, Schema]]] = {
    "realtime_socket": {
        "model": {
            "type": "string",
            "minLength": 1,
            "description": "The session's model; there has to be one.",
        }
    },
    "interaction": {
        "stream": _SWITCH,
        "last_event_id": {"type": "string", "pattern": "^[0-9]{0,18}$"},
        "include_input": _SWITCH,
    },
    "response": {
        "include": _INCLUDE,
        "stream": _SWITCH,
        "starting_after": {
            **_number(0, 10**NUMBER_DIGITS_MAX - 1),
            "description": "Only with `stream`.",
        },
        "include_obfuscation": _SWITCH,
    },
    "input_items": _PAGE,
    "items": _PAGE,
    "own_usage": _USAGE,
    "usage": {**_USAGE, "tenant": _NAME, "provider": _NAME},
    "model_card": _MODEL,
    "generate_content": {"alt": {"enum": ["json", "sse"]}},
    "google_models": _GOOGLE_PAGE,
    "workers": {
        "model": _TEXT,
        "status": {"enum": list(WORKER_STATES)},
        "role": {"enum": list(ROLES)},
    },
    "remove_worker": {"force": _SWITCH},
    "members": {"state": {"enum": list(MEMBER_STATES)}},
    "events": {"after": _EVENT, "stream": _SWITCH},
    "cluster_workers": {"model": _TEXT, "id": _TEXT},
    "state": _PEERS,
    "namespace": _PEERS,
    "settings": {"all": _SWITCH},
    "settings_difference": {"node": _TEXT},
    "settings_history": {
        "key": _TEXT,
        "before": _TEXT,
        "limit": _number(1, SETTINGS_CHANGES_MAX),
    },
    "keys": {"all": _SWITCH},
    "revoke_key": {"force": _SWITCH},
    "define_issuer": {"force": _SWITCH},
    "remove_issuer": {"force": _SWITCH},
    "remove_role": {"force": _SWITCH},
    "remove_provider": {"force": _SWITCH},
    "limits": {"use": _SWITCH},
    "limit": {"rows": _SWITCH, "brief": _SWITCH},
    "numbers": {
        "names": {
            **_list_of(tuple(KNOWN)),
            "minItems": 1,
            "description": f"At most {METRIC_NAMES_MAX}.",
        }
    },
    "audit": {
        **dict.fromkeys(("before", "after", "action", "subject", "who", "node"), _WORD),
        "limit": _number(1, AUDIT_ROWS_MAX),
    },
    "session": _SESSION,
    "end_session": _SESSION,
    "explain": {"node": _TEXT},
}
"""By action, the schema of each parameter of its query."""
SPLIT_BY_COMMAS: Final = frozenset({"by", "names"})
"""Lists that are one parameter with commas; others are repeated."""
