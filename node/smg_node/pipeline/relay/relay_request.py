"""Relay request: the APIs that are relayed, and a client's body as a worker is sent it. Pure.

Workers validate requests themselves. Only fields that placement needs are read here, and fields
that a client must not set are refused: which engine computes what for which request is the
cluster's decision.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from smg_node.core.errors import invalid, unsupported
from smg_node.core.generation.request import TokenIds, token_ids
from smg_node.core.json_cursor import whole
from smg_node.dialects.json_body import BYTE_ORDER_MARK
from smg_node.routing.kv_index.block_hash import text_ids

TEXT_MAX_CHARACTERS: Final = 1_048_576
"""So much of a prompt is looked at to find who has it cached."""
NAME_MAX_CHARACTERS: Final = 256
LENGTH_MAX: Final = 1 << 40
ANSWERS_MAX: Final = 128
"""So many answers to one request are reckoned with."""
OWNED: Final = (
    "kv_transfer_params",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "bootstrap_pair_key",
    "data_parallel_rank",
    "routed_dp_rank",
    "disagg_prefill_dp_rank",
    "input_embeds",
)
"""Fields by which gateways steer engines."""
LABELS: Final = ("rid", "request_id")
"""Some engines take these for their own id of a request and mix up two that share it: they stay here."""
LENGTHS: Final = ("max_tokens", "max_completion_tokens")
"""How clients say how long an answer may be."""
_BLANKS: Final = b" \t\r\n"
_CHARACTERS_PER_TOKEN: Final = 4
_encode: Final = msgspec.json.Encoder().encode


class Api(msgspec.Struct, frozen=True):
    """One relayed API. `paths` are its spellings, the commonest first; `prompt` the fields that
    hold its text.
    """

    name: str
    paths: tuple[str, ...]
    prompt: tuple[str, ...]
    generates: bool = False
    native: bool = False
    """Whether only models at vendors have it: any other worker is asked in Chat for its clients."""


APIS: Final[Mapping[str, Api]] = {
    api.name: api
    for api in (
        Api("chat", ("/v1/chat/completions",), ("tools", "messages"), generates=True),
        Api("completions", ("/v1/completions",), ("prompt",), generates=True),
        Api("embeddings", ("/v1/embeddings",), ("input", "messages")),
        Api("rerank", ("/v1/rerank", "/rerank"), ("query", "documents")),
        Api("classify", ("/v1/classify", "/classify"), ("input", "text_1", "text_2")),
    )
}

NATIVE: Final[Mapping[str, Api]] = {
    "messages": Api(
        "messages", ("/v1/messages",), ("tools", "system", "messages"), generates=True, native=True
    ),
    "gemini": Api(
        "generate_content",
        ("/v1beta/models",),
        ("tools", "systemInstruction", "contents"),
        generates=True,
        native=True,
    ),
}
"""APIs that are passed on to vendors only, by the name of their dialect."""


class Relayable(msgspec.Struct, frozen=True):
    """A parsed client request. `raw` is its body, `fields` the body's fields.

    `ids` are pseudo-tokens of its prompt for the prefix index, `prompt_tokens` estimates their real
    number.
    """

    api: Api
    model: str
    streamed: bool
    raw: bytes
    fields: Mapping[str, Any]
    ids: TokenIds
    prompt_tokens: int
    shareable: bool = True
    """Whether two workers can share it: one answer to one prompt, and only the answer tells of itself."""

    @property
    def answers(self) -> int:
        """The number of answers: prompts times answers for each, at most 128."""
        prompts = self.fields.get("prompt") if "prompt" in self.api.prompt else None
        count = 1
        if isinstance(prompts, list) and prompts and whole(prompts[0]) is None:
            count = len(prompts)
        each = whole(self.fields.get("n"))
        if each is not None and each > 0:
            count *= each
        return min(count, ANSWERS_MAX)

    def body(
        self,
        name: str,
        more: Mapping[str, object] = MappingProxyType({}),
        *,
        without: Collection[str] = (),
    ) -> bytes:
        """Return the body for a worker that calls the model `name`: the client's bytes, where that
        will do.

        `more` are fields that are put in, in place of the client's own, and those of `without` are
        left out.
        """
        fields = self.fields
        strange = [label for label in LABELS if fields.get(label) is not None]
        left_out = [*strange, *(key for key in without if key in fields)]
        if name == self.model and not left_out and not any(key in fields for key in more):
            return _with_more(self.raw, more) if more else self.raw
        said = {key: value for key, value in fields.items() if key not in left_out}
        return _encode({**said, **more, "model": name})

    def changed(self, more: Mapping[str, object], *, without: Collection[str] = ()) -> "Relayable":
        """Return the request with the fields `more` in place of the client's own, and none of `without`."""
        if not more and not any(key in self.fields for key in without):
            return self
        said = {key: value for key, value in self.fields.items() if key not in without}
        fields = {**said, **more}
        return msgspec.structs.replace(self, raw=_encode(fields), fields=fields)


def _with_more(raw: bytes, more: Mapping[str, object]) -> bytes:
    """Return a non-empty JSON object with fields added at its end; the rest stays byte for byte."""
    head = raw.rstrip(_BLANKS)
    assert head.endswith(b"}"), "it was read as an object"
    return b"".join((head[:-1], b",", _encode(more)[1:]))


def relayable(
    api: Api,
    raw: bytes,
    fields: Mapping[str, Any],
    *,
    model: object = None,
    streamed: bool | None = None,
) -> Relayable:
    """Return a request to be relayed; INVALID_REQUEST with the path of what is wrong.

    `model` and `streamed` are given where the body does not say them.
    """
    for name in OWNED:
        if fields.get(name) is not None:
            raise unsupported(f"{name} is not a client's to say", name)
    if streamed is None:
        streamed = fields.get("stream")
    if streamed is not None and not isinstance(streamed, bool):
        raise invalid("stream must be true or false", "stream")
    text = _text(api, fields)
    return Relayable(
        api,
        model_of(fields if model is None else {"model": model}),
        streamed=bool(streamed) and api.generates,
        raw=raw.removeprefix(BYTE_ORDER_MARK),
        fields=fields,
        ids=text_ids(text) if api.generates else token_ids(),
        prompt_tokens=max(1, len(text) // _CHARACTERS_PER_TOKEN),
        shareable=api.generates and _shareable(api, fields),
    )


def _shareable(api: Api, fields: Mapping[str, Any]) -> bool:
    prompt = fields.get("prompt") if "prompt" in api.prompt else None
    several = isinstance(prompt, list) and len(prompt) > 1 and whole(prompt[0]) is None
    return not (
        several
        or any(fields.get(name) not in (None, 1) for name in ("n", "best_of"))
        or fields.get("use_beam_search")
        # Only the worker that works a prompt off could tell of its tokens.
        or fields.get("prompt_logprobs") is not None
        or (fields.get("echo") and fields.get("logprobs") is not None)
        # There is no answer to draw.
        or any(fields.get(name) == 0 for name in LENGTHS)
    )


def model_of(fields: Mapping[str, Any]) -> str:
    """Return the model that a body names; INVALID_REQUEST if it names none."""
    model = fields.get("model")
    if model is None:
        raise invalid("the request names no model", "model", "missing_required_parameter")
    if not isinstance(model, str) or not 0 < len(model) <= NAME_MAX_CHARACTERS:
        raise invalid(f"model must be a string of 1 to {NAME_MAX_CHARACTERS} characters", "model")
    return model


def _text(api: Api, fields: Mapping[str, Any]) -> str:
    """Return the prompt as text with equal beginnings for equal prompts: turn by turn, tools first."""
    parts: list[str] = []
    left = TEXT_MAX_CHARACTERS
    for name in api.prompt:
        value = fields.get(name)
        if value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            part = item if isinstance(item, str) else _encode(item).decode()
            parts.append(part[:left])
            left -= len(parts[-1])
            if left <= 0:
                return "".join(parts)
    return "".join(parts)


def answer_length(asked: Relayable) -> int | None:
    """Return the maximum tokens of an answer, None where its client did not set it."""
    for name in reversed(LENGTHS):
        value = whole(asked.fields.get(name))
        if value is not None and 0 <= value < LENGTH_MAX:
            return value
    return _google_length(asked.fields)


def _google_length(fields: Mapping[str, Any]) -> int | None:
    """Return the same of a body of generateContent."""
    for config, name in (
        ("generationConfig", "maxOutputTokens"),
        ("generation_config", "max_output_tokens"),
    ):
        said = fields.get(config)
        value = whole(said.get(name)) if isinstance(said, dict) else None
        if value is not None and 0 <= value < LENGTH_MAX:
            return value
    return None
