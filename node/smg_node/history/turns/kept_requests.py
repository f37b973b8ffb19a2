"""Kept requests: which approved calls a node has asked about, by the output of the stored responses that did so.

Items of a conversation and of a response's input are the client's own words, whatever their type and their id. Where
an operator's rule asks for approval, only what a model has called and a node has stored can be approved.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import structs

from smg_node.core.generation.request import GenerateRequest
from smg_node.core.generation.tool_serving import ApprovedCall
from smg_node.dialects.responses.items.item_types import APPROVAL_REQUEST
from smg_node.history.errors import asking_store, corrupt
from smg_storage.ids import made_ms
from smg_storage.records import Access, StoredResponse
from smg_storage.store import HistoryStore

RESPONSES_MAX: Final = 16
"""So many responses are read for the approvals of one request: nearly always one response has asked for all of them."""


class _Asked(msgspec.Struct):
    type: Any = None
    id: Any = None
    server_label: Any = None
    name: Any = None
    arguments: Any = None


class _Response(msgspec.Struct):
    output: list[_Asked] = []


_response: Final = msgspec.json.Decoder(_Response).decode


async def with_kept_requests(
    store: HistoryStore, access: Access, wish: GenerateRequest
) -> GenerateRequest:
    """Return the request with `kept` set on every approved call that a stored response asks for, just as it is."""
    serving = wish.serving
    # Ids of items that a node has made are of its own form.
    asked = [
        one.approval
        for one in (() if serving is None else serving.answered)
        if one.approve and made_ms(one.approval) is not None
    ]
    if serving is None or not asked:
        return wish
    kept: dict[str, _Asked] = {}
    with asking_store():
        found = await store.find_items(access, asked)
        responses = dict.fromkeys(item.response_id for item in found.values() if item.response_id)
        for response_id in list(responses)[:RESPONSES_MAX]:
            record = await store.get_response(access, response_id)
            if record is not None:
                kept |= _requests(record)
    answered = tuple(
        structs.replace(one, kept=True) if _is_kept(one, kept) else one for one in serving.answered
    )
    return structs.replace(wish, serving=structs.replace(serving, answered=answered))


def _requests(record: StoredResponse) -> dict[str, _Asked]:
    """Return the requests for approval in a response's output, by their ids."""
    try:
        output = _response(record.response).output
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise corrupt(f"response {record.id}") from error
    return {str(one.id): one for one in output if one.type == APPROVAL_REQUEST}


def _is_kept(call: ApprovedCall, kept: Mapping[str, _Asked]) -> bool:
    one = kept.get(call.approval)
    said = None if one is None else (one.server_label, one.name, one.arguments)
    return said == (call.server, call.tool, call.arguments)
