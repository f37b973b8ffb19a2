"""Citation forms: one source cited in a text, as Responses, Chat and Messages have it. Pure."""

from typing import Any, Final

from smg_node.core.generation.citations import Citation

_CITED_CHARACTERS_MAX: Final = 150
"""As much as Messages shows of a source."""


def responses_annotation(citation: Citation) -> dict[str, Any] | None:
    """Return the annotation of an output text in Responses; None for what has neither address nor file."""
    source = citation.source
    if source.file_id:
        return {
            "type": "file_citation",
            "file_id": source.file_id,
            "filename": source.title or source.file_id,
            "index": citation.start,
        }
    if not source.url:
        return None
    return {
        "type": "url_citation",
        "start_index": citation.start,
        "end_index": citation.end,
        "url": source.url,
        "title": source.title or source.url,
    }


def chat_annotation(citation: Citation) -> dict[str, Any] | None:
    """Return the annotation of a message in Chat Completions, which knows addresses only."""
    source = citation.source
    if not source.url:
        return None
    span = {
        "start_index": citation.start,
        "end_index": citation.end,
        "url": source.url,
        "title": source.title or source.url,
    }
    return {"type": "url_citation", "url_citation": span}


def messages_citation(citation: Citation, *, encrypted_index: str) -> dict[str, Any] | None:
    """Return the citation of a text block in Messages; `encrypted_index` is ours, and comes back as it is."""
    source = citation.source
    if not source.url:
        return None
    return {
        "type": "web_search_result_location",
        "url": source.url,
        "title": source.title or None,
        "cited_text": source.text[:_CITED_CHARACTERS_MAX],
        "encrypted_index": encrypted_index,
    }
