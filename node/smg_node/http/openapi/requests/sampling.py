"""Sampling and constraint parameters in `/openapi.json`, as the OpenAI dialects share them."""

from collections.abc import Mapping
from typing import Final

from smg_node.dialects.openai.json_schema import TYPES
from smg_node.dialects.options import ReaderOptions
from smg_node.http.openapi.requests.makers import (
    FLAG,
    INT32_MAX,
    OBJECT,
    TOKEN_ID,
    Schema,
    array,
    described,
    either,
    integer,
    keyed,
    number,
    only,
    optional,
    text,
    word,
)

_LIMITS: Final = ReaderOptions()
_REASON: Final = "Not supported by the engines behind this gateway."
_KEY_IS_ID: Final = (
    "^([0-9]{1,9}|[0-3][0-9]{9}|4[01][0-9]{8}|42[0-8][0-9]{7}|429[0-3][0-9]{6}|4294[0-8][0-9]{5}"
    "|42949[0-5][0-9]{4}|429496[0-6][0-9]{3}|4294967[01][0-9]{2}|42949672[0-8][0-9]|429496729[0-5])$"
)

JSON_SCHEMA: Final[Schema] = described(
    keyed(type=either({"enum": sorted(TYPES)}, array({"enum": sorted(TYPES)}, 1, required=True))),
    "A JSON Schema.",
)
"""A schema's own schema, to its first level; the rest is checked by the same rules."""
_SCHEMA: Final = {"$ref": "#/components/schemas/JsonSchema"}
_SPELLED_SCHEMA: Final = described(optional(_SCHEMA), "A JSON Schema, or its JSON text.")

SAMPLING_SCHEMAS: Final[Mapping[str, Schema]] = {
    "max_completion_tokens": integer(1),
    "max_tokens": described(integer(1), "`max_completion_tokens` goes before it."),
    "temperature": number(0, 2),
    "top_p": number(0, 1, low_excluded=True),
    "top_k": described(integer(-1, INT32_MAX), "-1 and 0 are off."),
    "min_p": number(0, 1),
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "repetition_penalty": number(0, 2, low_excluded=True),
    "n": integer(1, _LIMITS.n_max),
    "seed": integer(-(2**63), 2**63 - 1),
    "stop": described(
        either(text(1), array(text(1, required=True), 0, _LIMITS.stop_max, required=True)),
        f"At most {_LIMITS.stop_max_bytes} bytes each.",
    ),
    "stop_token_ids": array(TOKEN_ID, 0, 1_024),
    "ignore_eos": FLAG,
    "min_tokens": described(integer(0, INT32_MAX), "At most `max_tokens`."),
    "no_stop_trim": FLAG,
    "include_stop_str_in_output": described(FLAG, "Another name of `no_stop_trim`."),
    "skip_special_tokens": FLAG,
    "spaces_between_special_tokens": FLAG,
    "logit_bias": {
        "type": ["object", "null"],
        "description": "Biases by token id.",
        "propertyNames": {"pattern": _KEY_IS_ID},
        "additionalProperties": {"type": "number", "minimum": -100, "maximum": 100},
        "maxProperties": _LIMITS.logit_bias_max,
    },
    "prompt_logprobs": described(integer(0, 20), "Not with `stream`."),
    "lora_path": text(1, 256),
    "lora_id": described(text(1, 256), "Another name of `lora_path`."),
}

_PATTERN: Final[Schema] = {"type": ["string", "null"], "minLength": 1, "format": "regex"}
_GRAMMAR: Final[Schema] = described(text(1), "A grammar in GBNF or Lark form.")
_CHOICE: Final = array(text(required=True), 1)
_TAG: Final = described(OBJECT, "A structural tag, or its JSON text.")
_HINT: Final[Schema] = {"description": "Has no effect, and is named as ignored."}

_FORMAT: Final = either(
    keyed(("type",), type={"const": "text"}),
    keyed(("type",), type={"const": "json_object"}, schema=optional(_SCHEMA), strict=FLAG),
    keyed(
        ("type", "json_schema"),
        type={"const": "json_schema"},
        json_schema=keyed(
            ("name", "schema"),
            name=text(1, 64, required=True),
            description=text(),
            strict=FLAG,
            schema=_SCHEMA,
        ),
    ),
    {"type": "null"},
)

CONSTRAINT_SCHEMAS: Final[Mapping[str, Schema]] = {
    "response_format": _FORMAT,
    "structured_outputs": described(
        optional(keyed(regex=_PATTERN, choice=_CHOICE, json_object=FLAG)),
        "One of `json`, `regex`, `choice`, `grammar`, `json_object` and `structural_tag`.",
    ),
    "json_schema": _SPELLED_SCHEMA,
    "guided_json": _SPELLED_SCHEMA,
    "regex": _PATTERN,
    "guided_regex": _PATTERN,
    "ebnf": _GRAMMAR,
    "grammar": _GRAMMAR,
    "guided_grammar": _GRAMMAR,
    "choice": _CHOICE,
    "guided_choice": _CHOICE,
    "guided_json_object": FLAG,
    "structural_tag": _TAG,
    "guided_decoding_backend": _HINT,
    "guided_whitespace_pattern": _HINT,
}

_NOTHING: Final[tuple[object, ...]] = (False, 0, "", [], {})
_LABEL: Final = text(0, 128)
_GATEWAYS: Final = only(why="Decided by the gateway.")

EXTRA_SCHEMAS: Final[Mapping[str, Schema]] = {
    "model": {**text(1, 256, required=True), "examples": ["llama-3.1-8b"]},
    "metadata": {
        "type": ["object", "null"],
        "propertyNames": {"maxLength": 64},
        "additionalProperties": {"type": "string", "maxLength": 512},
        "maxProperties": _LIMITS.metadata_max,
    },
    "service_tier": word("auto", "default", "flex", "scale", "priority", "fast"),
    "store": FLAG,
    "truncate_prompt_tokens": either({"const": -1}, integer(1)),
    "prompt_cache_key": text(0, 256),
    "prompt_cache_options": OBJECT,
    "prompt_cache_retention": _LABEL,
    "user": _LABEL,
    "safety_identifier": _LABEL,
    "rid": _LABEL,
    "request_id": _LABEL,
    "session_id": _LABEL,
    "session_params": only(*_NOTHING, why=_REASON),
    "priority": integer(-(2**31), INT32_MAX),
    "mm_processor_kwargs": OBJECT,
    "media_io_kwargs": OBJECT,
    "prediction": OBJECT,
    "return_token_ids": FLAG,
    "return_tokens_as_token_ids": FLAG,
    "moderation": only(why="Cannot be honoured here."),
    "web_search_options": described(
        OBJECT, "The engines cannot search the web: it is named as ignored."
    ),
    "return_hidden_states": only(*_NOTHING, why=_REASON),
    "bad_words": only(*_NOTHING, why=_REASON),
    "allowed_token_ids": only(why=_REASON),
    "logits_processors": only(*_NOTHING, why=_REASON),
    "custom_logit_processor": only(*_NOTHING, why=_REASON),
    "custom_params": only(*_NOTHING, why=_REASON),
    "best_of": only(1, why="Only as many as `n`."),
    "use_beam_search": only(*_NOTHING, why=_REASON),
    "length_penalty": only(1, why="Only works with beam search."),
    "thinking_token_budget": only(why=_REASON),
    "cache_salt": only(why="The engines' caches are not separated by it."),
    "extra_key": only(why="The engines' caches are not separated by it."),
    "kv_transfer_params": _GATEWAYS,
    "data_parallel_rank": _GATEWAYS,
    "input_embeds": only(why="Engines are only sent token ids."),
    "prompt_embeds": only(why="Engines are only sent token ids."),
}

STREAM_SCHEMAS: Final[Mapping[str, Schema]] = {
    "stream": FLAG,
    "stream_options": described(
        optional(keyed(include_usage=FLAG, continuous_usage_stats=FLAG, include_obfuscation=FLAG)),
        "Only with `stream`.",
    ),
}
