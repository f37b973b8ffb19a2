"""Dressing: a body made fit for one hosting, and nothing else about it changed. Pure.

    native       the client's bytes; the model's name is replaced, what the hosting wants in or out is put in or taken out
    translated   the fields that a writer made, to the same rules

What is added for accounting is taken out of the answer again by `answer_undressing`.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from smg_node.providers.hosting import Dress, Version
from smg_node.providers.wire.json_members import Member, edited, member, member_in, members

_INCLUDE: Final = "include_usage"
_OPTIONS: Final = "stream_options"
_COUNTED_TOKENS: Final = b"1"
"""Bedrock counts what could be sent, and a Claude request without `max_tokens` could not."""
_encode: Final = msgspec.json.Encoder().encode


class Dressed(NamedTuple):
    """A body as it goes out. `usage_added`: the client did not ask for the usage of its stream, and gets none."""

    body: bytes
    usage_added: bool = False


def dress_native(
    body: bytes,
    dress: Dress,
    *,
    model: str,
    streamed: bool,
    version: str,
    betas: Sequence[str] = (),
) -> Dressed:
    """Return a client's own bytes for the vendor's `model`; INVALID_REQUEST `invalid_json` if they are no object.

    `betas` are those that the client names in a header; where it names some in the body, these count.
    """
    named = _encode(model)
    replaced = {"model": named} if dress.model else {}
    removed = _removed(dress)
    found = members(body)
    there = {one.key for one in found}
    added: dict[str, bytes] = {} if not dress.model or "model" in there else {"model": named}
    if dress.version is Version.BODY and "anthropic_version" not in there:
        added["anthropic_version"] = _encode(version)
    if dress.betas and betas and "anthropic_beta" not in there:
        added["anthropic_beta"] = _encode(list(betas))
    if dress.counted and "max_tokens" not in there:
        added["max_tokens"] = _COUNTED_TOKENS
    usage_added = False
    if dress.usage and streamed:
        options = _options_with_usage(body, member_in(found, _OPTIONS))
        if options is not None:
            added[_OPTIONS], usage_added = options, True
    new = edited(body, replaced, removed, added=added, there=found)
    return Dressed(_framed(new, dress), usage_added)


def dress_written(
    fields: Mapping[str, Any],
    dress: Dress,
    *,
    model: str,
    version: str,
    betas: Sequence[str] = (),
) -> Dressed:
    """Return the bytes of a writer's fields for the vendor's `model`."""
    removed = _removed(dress)
    body = {key: value for key, value in fields.items() if key not in removed}
    if dress.model:
        body["model"] = model
    if dress.version is Version.BODY:
        body.setdefault("anthropic_version", version)
    if dress.betas and betas:
        body.setdefault("anthropic_beta", list(betas))
    if dress.counted:
        body.setdefault("max_tokens", 1)
    if dress.usage and body.get("stream"):
        body[_OPTIONS] = {**(body.get(_OPTIONS) or {}), _INCLUDE: True}
    return Dressed(_framed(_encode(body), dress))


def _removed(dress: Dress) -> Sequence[str]:
    gone = (("model", not dress.model), ("stream", not dress.stream))
    return [name for name, is_gone in gone if is_gone]


def _options_with_usage(body: bytes, options: Member | None) -> bytes | None:
    """Return the `stream_options` that ask for the usage; None where they do already."""
    said = b"null" if options is None else body[options.value : options.end]
    if not said.startswith(b"{"):
        return b'{"include_usage":true}'
    asked = member(said, (_INCLUDE,))
    if asked is not None and said[asked.value : asked.end] == b"true":
        return None
    return edited(said, {}, added={_INCLUDE: b"true"})


def _framed(body: bytes, dress: Dress) -> bytes:
    if dress.counted:
        return b'{"input":{"invokeModel":{"body":"' + base64.b64encode(body) + b'"}}}'
    return body
