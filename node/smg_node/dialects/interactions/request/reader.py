"""Reader of Interactions bodies: a table of parameters; the tenant's signatures of thoughts are opened."""

from collections.abc import Mapping
from typing import Any, Final

from smg_node.core.generation.request import Thinking, ToolChoice
from smg_node.core.json_cursor import Cursor, quoted
from smg_node.dialects.dialect import UNKNOWN, Caller
from smg_node.dialects.interactions.request.generation_config import (
    take_config,
    take_format,
    take_mime_type,
    take_modalities,
)
from smg_node.dialects.interactions.request.input_steps import Opened, read_input
from smg_node.dialects.interactions.request.interaction_request import InteractionRequest
from smg_node.dialects.interactions.request.tool_parameters import settle_tool_choice, take_tools
from smg_node.dialects.openai.extras import take_model
from smg_node.dialects.openai.part_limits import PartCounter
from smg_node.dialects.openai.request_draft import Draft, Take, problems_for, refused, take_all
from smg_node.dialects.openai.sampling import sampling_of, settle_sampling
from smg_node.dialects.openai.streaming import take_stream
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.items.item_state import seal_in
from smg_node.dialects.thought_seals import ThoughtSeals
from smg_storage.ids import is_id

ID_PREFIX: Final = "int_"
_LABELS_MAX: Final = 64
_LABEL_CHARACTERS_MAX: Final = 63
_TIERS: Final = ("flex", "standard", "priority", "deferred")
_HARMLESS: Final = frozenset({"block_none", "off", "harm_block_threshold_unspecified"})


class InteractionsReader:
    """Reads Interactions bodies; `seals` are those of the node."""

    def __init__(self, options: ReaderOptions, seals: ThoughtSeals) -> None:
        self._options = options
        self._seals = seals

    def read(self, body: dict[str, Any], caller: Caller = UNKNOWN) -> InteractionRequest:
        """Return the parsed body; INVALID_REQUEST names everything that is wrong with it."""
        draft = Draft(self._options)
        cursor = Cursor(body, problems_for(self._options))
        draft.request["opened"] = self._opened(body, caller)
        take_all(draft, cursor, PARAMETERS)
        _settle(draft, cursor)
        cursor.problems.check()
        wanted, prompt = draft.request, draft.prompt
        return InteractionRequest(
            sampling=sampling_of(draft),
            metadata=draft.view.get("labels", {}),
            tools=prompt.get("tools", ()),
            choice=prompt.get("choice", ToolChoice()),
            thinking=prompt.get("thinking", Thinking()),
            ignored=draft.ignored_in(cursor.problems),
            echo=draft.view,
            **wanted,
        )

    def _opened(self, body: Mapping[str, Any], caller: Caller) -> Opened:
        model = body.get("model")

        def opened(signature: str) -> str | None:
            text = seal_in(signature)
            if text is None or type(model) is not str:
                return None
            return self._seals.opened(text, tenant=caller.tenant, model=model)

        return opened


def take_input(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `input`."""
    counter = PartCounter(draft.options)
    draft.request["items"] = read_input(cursor, key, counter, draft.request["opened"])


def take_instruction(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `system_instruction`; an earlier interaction's is not inherited."""
    value = cursor.text(key)
    if value is not None:
        draft.request["instructions"] = draft.view[key] = value


def take_previous(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take the id of the previous interaction; one that another API made is none."""
    value = cursor.text(key, characters_min=1)
    if value is None:
        return
    if value.startswith("resp_"):
        why = f"{quoted(value)} was made by the Responses API; it is continued there"
        cursor.problem(key, why, "previous_interaction_not_found")
    elif not is_id(value) or not value.startswith(ID_PREFIX):
        why = f"there is no interaction {quoted(value)}"
        cursor.problem(key, why, "previous_interaction_not_found")
    else:
        draft.request["previous_response_id"] = draft.view[key] = value


def take_labels(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take up to 64 labels, which the answer repeats."""
    labels = cursor.object(key)
    if labels is None:
        return
    if len(labels.values) > _LABELS_MAX:
        cursor.problem(key, f"must have at most {_LABELS_MAX} labels, has {len(labels.values)}")
        return
    for name in labels.values:
        if not 0 < len(name) <= _LABEL_CHARACTERS_MAX:
            labels.problem(name, f"a key must have 1 to {_LABEL_CHARACTERS_MAX} characters")
        if labels.values[name] is None:
            labels.problem(name, "must be a string, not null", "invalid_type")
        labels.text(name, characters_max=_LABEL_CHARACTERS_MAX)
    draft.view[key] = labels.values


def take_tier(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `service_tier`, which the answer repeats; every tier is served as the standard one."""
    tier = cursor.word(key, _TIERS)
    if tier is not None:
        draft.view[key] = tier
        if tier != "standard":
            draft.ignore(key)


def take_safety(draft: Draft, cursor: Cursor, key: str) -> None:
    """Take `safety_settings`: one that asks to block is refused, since it is never dropped silently."""
    for setting in cursor.objects(key):
        threshold = setting.text("threshold") or ""
        if threshold.lower() not in _HARMLESS:
            why = "cannot be honoured here, and a wish to block is never dropped silently"
            setting.unsupported("threshold", why)
    draft.ignore(key)


def _take_cached(draft: Draft, cursor: Cursor, key: str) -> None:
    if cursor.text(key) is not None:
        draft.ignore(key)


def _switch(name: str) -> Take:
    def take(draft: Draft, cursor: Cursor, key: str) -> None:
        value = cursor.flag(key)
        if value is not None:
            draft.request[name] = value

    return take


_NO_AGENTS: Final = refused("there are no agents here; name a model")

PARAMETERS: Final[Mapping[str, Take]] = {
    "model": take_model,
    "input": take_input,
    "system_instruction": take_instruction,
    "previous_interaction_id": take_previous,
    "tools": take_tools,
    "generation_config": take_config,
    "response_format": take_format,
    "response_mime_type": take_mime_type,
    "response_modalities": take_modalities,
    "stream": take_stream,
    "store": _switch("store"),
    "background": _switch("background"),
    "labels": take_labels,
    "service_tier": take_tier,
    "safety_settings": take_safety,
    "cached_content": _take_cached,
    "agent": _NO_AGENTS,
    "agent_config": _NO_AGENTS,
    "environment": refused("there are no environments here"),
    "webhook_config": refused("there are no webhooks here"),
}


def _settle(draft: Draft, cursor: Cursor) -> None:
    """Check what depends on several parameters."""
    draft.request.pop("opened")
    settle_sampling(draft, cursor)
    settle_tool_choice(draft, cursor)
    if "model" not in draft.request and not cursor.has("agent"):
        cursor.raw("model", required=True)
    if not cursor.values.get("input"):
        why = "must be given: a text, contents or steps"
        cursor.problem("input", why, "missing_required_parameter")
    if draft.request.get("background") and draft.request.get("store") is False:
        cursor.problem("background", "is only allowed when store is true")
