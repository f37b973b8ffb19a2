"""Cache marks: what this node puts into a request so that its vendor caches the prompt. Pure.

A body that was written here gets one mark for the whole prompt, where its vendor caches only what is marked. The
client's own marks do not pass a translation, so there is never one beside them. A body whose requests are kept
together by a key gets one, if its client gave none.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from smg_node.engines.http.vendor_cache import MarkForm
from smg_node.providers.affinity.prompt_beginning import PromptBeginning
from smg_node.providers.wire.json_members import edited, member_in, members

CACHE_KEY: Final = "prompt_cache_key"
_MARK: Final = {"type": "ephemeral"}
_POINT: Final = {"cachePoint": {"type": "default"}}
_UNMARKED: Final = frozenset({"thinking", "redacted_thinking"})
"""Blocks that Anthropic's API lets nobody mark."""
_KEY_BYTES: Final = 16
_FIRST_BLOCKS: Final = 4
"""The first KiB of a prompt."""


def marked_fields(fields: Mapping[str, Any], form: MarkForm) -> Mapping[str, Any]:
    """Return a written body with one mark for the whole prompt; the body itself where there is no place for one."""
    if form == "top":
        return {**fields, "cache_control": _MARK}
    messages = fields.get("messages")
    if not form or not messages or not messages[-1].get("content"):
        return fields
    last, content = messages[-1], messages[-1]["content"]
    if not isinstance(content, list):
        return fields
    if form == "point":
        content = [*content, _POINT]
    elif content[-1].get("type") in _UNMARKED:
        return fields
    else:
        content = [*content[:-1], {**content[-1], "cache_control": _MARK}]
    return {**fields, "messages": [*messages[:-1], {**last, "content": content}]}


def cache_key_of(prompt: PromptBeginning, *, tenant: str, conversation: str) -> str:
    """Return the key that keeps requests of one conversation together, or of one first KiB, of one tenant only."""
    whole = blake2b(digest_size=_KEY_BYTES)
    for part in (tenant, conversation):
        whole.update(f"{len(part)}:{part}".encode("utf-8", "surrogatepass"))
    if not conversation:
        blocks = prompt.hashes[:_FIRST_BLOCKS]
        first = blocks[-1] if blocks else prompt.ends[-1].hash if prompt.ends else 0
        whole.update(first.to_bytes(8, "big"))
    return whole.hexdigest()


def keyed_bytes(raw: bytes, key: str) -> bytes:
    """Return a client's own body with that key and all else as it came; the body itself if it names one."""
    there = members(raw)
    if member_in(there, CACHE_KEY) is not None:
        return raw
    return edited(raw, {}, added={CACHE_KEY: msgspec.json.encode(key)}, there=there)
