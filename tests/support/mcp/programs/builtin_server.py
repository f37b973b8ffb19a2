"""A server whose tools do the work of built-in ones, run by stdio; it is of the Python SDK.

Each tool tells of its results in another way that the SDK has: objects, a type, a text, blocks, an error.
"""

import base64
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(3_000)).decode()


class Page(BaseModel):
    """A page that was found."""

    url: str
    title: str
    snippet: str


def pages(query: str, allowed_domains: list[str] | None = None) -> list[dict[str, Any]]:
    """Search, whatever domains are asked for: that is what a careless server does."""
    told = f"about {query}, asked for {allowed_domains}"
    return [
        {"url": "https://a.org/1", "title": "First", "text": told},
        {"url": "https://b.org/2", "title": "Second", "text": told},
    ]


def typed_pages(query: str, user_location: dict[str, str] | None = None) -> list[Page]:
    """Search, with a type for what is found."""
    where = (user_location or {}).get("city", "nowhere")
    return [Page(url="https://a.org/1", title="First", snippet=f"about {query} in {where}")]


def written_pages(query: str) -> str:
    """Search, and write the results for a reader."""
    return f"Title: First\nURL: https://a.org/1\nContent: about {query}"


def linked_pages(query: str) -> CallToolResult:
    """Search, and link what is found."""
    link = ResourceLink(
        type="resource_link", uri="https://a.org/1", name="First", description=f"about {query}"
    )
    return CallToolResult(content=[link])


def passages(query: str, vector_store_ids: list[str]) -> dict[str, Any]:
    """Search files by one query."""
    hit = {"file_id": "file_1", "filename": "plan.txt", "score": 0.5, "content": query}
    return {"data": [hit], "stores": vector_store_ids}


def run(code: str, container: str = "") -> CallToolResult:
    """Pretend to run code: print it, and draw a picture."""
    if code == "1/0":
        said = TextContent(type="text", text="ZeroDivisionError: division by zero")
        return CallToolResult(content=[said], is_error=True)
    printed = TextContent(type="text", text=f"{container}: {code}")
    drawn = ImageContent(type="image", data=PNG, mime_type="image/png")
    return CallToolResult(content=[printed, drawn])


def draw(prompt: str, size: Literal["small", "large"] = "small") -> dict[str, Any]:
    """Make a picture."""
    return {"data": [{"b64_json": PNG, "revised_prompt": f"{prompt}, {size}"}]}


def main() -> None:
    """Serve until somebody ends it."""
    server = MCPServer("builtin")
    for tool in (pages, typed_pages, written_pages, linked_pages, passages, run, draw):
        server.add_tool(tool)
    server.run("stdio")


if __name__ == "__main__":
    main()
