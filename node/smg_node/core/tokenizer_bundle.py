"""Tokenizer bundle: the files of a tokenizer by name, from wherever they came, and their digest."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TokenizerBundle:
    """File name to content, and a digest over all of it.

    Known names: tokenizer.json, tokenizer_config.json, config.json, generation_config.json,
    chat_template.jinja, chat_template.json, special_tokens_map.json, *.tiktoken,
    additional_chat_templates/*.jinja, and those of image processors: preprocessor_config.json,
    processor_config.json, video_preprocessor_config.json. `digest` is the hex SHA-256 of the bundle; two workers of
    one model must agree on it, so that those with another image processor are kept apart as well. `origin` says
    where it came from, for logs.
    """

    files: Mapping[str, bytes]
    digest: str
    origin: str
