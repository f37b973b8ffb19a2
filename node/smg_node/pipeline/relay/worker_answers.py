"""Worker answers: which bodies of HTTP workers are answers, and the error that the others are. Pure.

A worker's own error body never reaches a client: its words do, where they are about the client's
input, in this node's one error. A status of 200 proves nothing: what is no answer to the API that
was asked is a failure of the worker like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from smg_node.core.context_limit import (
    TOO_LONG_CODE,
    excess_in,
    is_too_long_message,
    prompt_too_long,
)
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.dialects.chat.listener import NO_REASONS
from smg_node.dialects.worker_errors import WorkerError, error_of, refusal_of
from smg_node.engines.http.status_mapping import failure, is_answer
from smg_node.pipeline.relay.relay_request import Api

REFUSED_CODE: Final = "upstream_refused"
"""Stands for the code of an error whose words are a worker's."""
_NO_ROUTE_WORDS: Final = frozenset(
    {
        "",
        "not found",
        "method not allowed",
        "404 page not found",
        "404 not found",
        "not implemented",
    }
)
"""What servers say of a path they do not have; what they say of a model or an adapter is longer."""
_INPUTS: Final[Mapping[str, str]] = {
    "chat": "messages",
    "completions": "prompt",
    "embeddings": "input",
    "classify": "input",
    "rerank": "query",
}
"""The field that is too long if a request of that API is."""
_TRANSLATED_INPUT: Final = "input"
_BLANKS: Final = b" \t\r\n"
_decode: Final = msgspec.json.Decoder().decode


_ABSENT: Final = (b"", b"null")


class _Choice(msgspec.Struct, gc=False):
    finish_reason: Any = None
    message: msgspec.Raw = msgspec.Raw(b"")
    text: msgspec.Raw = msgspec.Raw(b"")


class _Answer(msgspec.Struct, gc=False):
    """An answer that generates, as far as it is looked at."""

    choices: list[_Choice]
    error: None = None


_answer: Final = msgspec.json.Decoder(_Answer).decode
_Fields: TypeAlias = dict[str, msgspec.Raw] | list[msgspec.Raw]
_fields: Final[Callable[[bytes], _Fields]] = msgspec.json.Decoder(_Fields).decode
_ERROR_FIELDS: Final = ("error", "detail", "object")


def refused(said: WorkerError, status: int, api: Api | None) -> SmgError:
    """Return the error for a request that a worker rejects as its client's mistake.

    `api` is None where the worker was asked in other terms than the client: then the worker's place
    of the mistake is none in the client's request.
    """
    where = said.param if api is not None else ""
    if said.code == TOO_LONG_CODE or is_too_long_message(said.message):
        return _too_long(said, where or (_TRANSLATED_INPUT if api is None else _INPUTS[api.name]))
    large = status == 413
    return SmgError(
        ErrorKind.TOO_LARGE if large else ErrorKind.INVALID_REQUEST,
        said.message or "the worker refused the request and does not say why",
        where=where or None,
        code="request_too_large" if large else said.code or REFUSED_CODE,
    )


def _too_long(said: WorkerError, where: str) -> SmgError:
    """Return the error for a prompt that a worker finds too long, in the words that clients look for."""
    excess = excess_in(said.message)
    if excess is not None:
        return prompt_too_long(excess.tokens, excess.most, where, context=excess.context)
    words = f": {said.message}" if said.message else ""
    return invalid(f"prompt is too long for the worker{words}", where, TOO_LONG_CODE)


def failure_of(said: WorkerError | SmgError, api: Api | None) -> SmgError:
    """Return the error for what a worker said in an answer that it had begun with success."""
    if isinstance(said, SmgError):
        return said
    if 400 <= said.status < 600 and not is_answer(said.status):
        return failure(said.status, {})
    if 400 <= said.status < 500 and said.status not in (404, 405):
        return refused(said, said.status, api)
    return SmgError(ErrorKind.UPSTREAM_FAILED, "the worker failed over its answer")


def lacks_route(said: WorkerError) -> bool:
    """Whether an answer of 404 or 405 means that there is no such API, and not no such model."""
    words = said.message.lower().strip(" .!\n")
    return words in _NO_ROUTE_WORDS and said.code != "model_not_found"


def refusal_words(body: bytes, content_type: str, *, readable: bool) -> WorkerError:
    """Return what a worker says in an answer with an error status, "" for a compressed one."""
    return refusal_of(body, content_type) if readable else WorkerError(0, "", "")


def check_answer(api: Api, body: bytes) -> None:
    """Check a whole answer with a status of success. UPSTREAM_FAILED if it is none; `WorkerError` if
    it is an error.
    """
    if not body.strip(_BLANKS):
        raise _none("is empty")
    if api.generates:
        try:
            choices = _answer(body).choices
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            _check_fields(body)
            choices = []
        _check_choices(choices)
        return
    found = _check_fields(body)
    rows = bytes(found.get("data", b"")) if isinstance(found, dict) else b""
    if api.name == "embeddings" and not rows.startswith(b"["):
        raise _none("has no embeddings")


def _check_choices(choices: Sequence[_Choice]) -> None:
    if not choices:
        raise _none("has no choices")
    for choice in choices:
        if isinstance(choice.finish_reason, str) and choice.finish_reason in NO_REASONS:
            raise SmgError(ErrorKind.UPSTREAM_FAILED, "the worker gave up over its answer")
        if bytes(choice.message) in _ABSENT and bytes(choice.text) in _ABSENT:
            raise _none("has a choice without a message")


def check_beginning(body: bytes) -> None:
    """Check the beginning of an answer that is too large to be held until it is whole."""
    if not body.lstrip(_BLANKS).startswith((b"{", b"[")):
        raise _none("is no JSON")


def check_end(tail: bytes) -> None:
    """Check the last bytes of such an answer."""
    if not tail.rstrip(_BLANKS).endswith((b"}", b"]")):
        raise _none("is no whole JSON")


def _check_fields(body: bytes) -> _Fields:
    """Return a body as an object or a list that is not empty; see `check_answer` for errors."""
    try:
        found = _fields(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _none("is no object of JSON") from None
    if isinstance(found, dict) and any(name in found for name in _ERROR_FIELDS):
        said = error_in(body)
        if said is not None:
            raise said
    if not found:
        raise _none("is an empty object")
    return found


def error_in(body: bytes) -> WorkerError | None:
    """Return the error that a body with a status of success holds, None if there is none."""
    try:
        return error_of(_decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _none(why: str) -> SmgError:
    return SmgError(ErrorKind.UPSTREAM_FAILED, f"the worker's answer {why}")
