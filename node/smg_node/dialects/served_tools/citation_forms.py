"""Citation forms: one source cited in a text, as Responses has it; other APIs make their own form of that. Pure."""

from typing import Any

from smg_node.core.generation.citations import Citation


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
