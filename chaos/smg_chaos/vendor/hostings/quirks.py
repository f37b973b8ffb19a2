"""Quirks of vendors with OpenAI's API: what each does otherwise, by name, and the vendors that are sets of them."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from smg_chaos.vendor.errors.envelopes import Family
from smg_chaos.vendor.hostings.hosting import LimitStyle

QUIRKS: Final[Mapping[str, str]] = {
    "call_counter": "ids of calls begin anew in each answer: call_0, call_1",
    "call_ids_empty": 'calls have the id "", and signatures in extra_content',
    "cached_at_top": "cached tokens stand as num_cached_tokens at the top of the usage",
    "comments": "comment lines before the first chunk and between chunks",
    "content_filters": "results of content filters: first in a chunk without choices",
    "content_null": "content is null where there is none, and beside reasoning",
    "data_first": "named events have their data before their name",
    "finish_optional": "no finish_reason at all",
    "finish_twice": "the finish comes twice, the second time with the usage in the same choice",
    "hit_tokens": "cached tokens stand as prompt_cache_hit_tokens, with prompt_cache_miss_tokens",
    "moderation": "a chunk with moderation results and no choices after the usage",
    "needs_api_version": "the query must have api-version",
    "new_ids": "every chunk has a new id",
    "reasoning": "thoughts stand in `reasoning`, with signatures in reasoning_details",
    "reasoning_content": "thoughts stand in reasoning_content",
    "reservation": "answers have x-amzn-usage-reservation headers",
    "strict_fields": "unknown fields are refused",
    "thinking_parts": "content is a list with parts of thinking",
    "usage_apart": "completion_tokens leaves the reasoning tokens out",
    "usage_in_finish": "the usage stands in the finishing chunk, asked for or not",
    "usage_unsaid": "completion_tokens leaves the reasoning out, and nothing says how much it was",
    "x_groq": "the usage stands in x_groq of the last chunk only",
}
"""Every quirk, and what it is."""


class Vendor(NamedTuple):
    """One vendor with OpenAI's API."""

    quirks: frozenset[str]
    family: Family = "openai"
    limits: LimitStyle = "none"


VENDORS: Final[Mapping[str, Vendor]] = {
    "groq": Vendor(
        frozenset(("new_ids", "x_groq", "reasoning", "strict_fields")), "groq", "openai"
    ),
    "mistral": Vendor(
        frozenset(("usage_in_finish", "cached_at_top", "thinking_parts", "strict_fields")),
        "mistral",
    ),
    "deepseek": Vendor(
        frozenset(("usage_in_finish", "content_null", "hit_tokens", "reasoning_content"))
    ),
    "openrouter": Vendor(frozenset(("comments", "finish_twice", "reasoning")), "openrouter"),
    "snowflake": Vendor(frozenset(("finish_optional",)), "snowflake"),
    "zai": Vendor(frozenset(("usage_in_finish", "content_null", "reasoning_content"))),
    "gemini_door": Vendor(frozenset(("call_ids_empty", "usage_unsaid"))),
    "together": Vendor(frozenset(("usage_in_finish",)), limits="together"),
    "huggingface": Vendor(frozenset(), limits="huggingface"),
}
"""Vendors that `--quirk` names as one."""
