"""Any body that names servers, toolsets or server tools is read or refused by its paths, and prints no secret."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from support.answers.run_blocks import GO, request, text
from support.tools.example_counts import example_count

SECRET = "s3cret-token"
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "docs", "a b"]),
    lambda inside: (
        st.lists(inside, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "name", "enabled", "input_schema"]), inside)
    ),
    max_leaves=4,
)


def filled(kind: str, *keys: str, **usual: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects of a type with any of these keys, their values usual or anything at all."""
    fields = {key: st.just(usual[key]) | values if key in usual else values for key in keys}
    return st.fixed_dictionaries({"type": st.just(kind) | values}, optional=fields)


configs = st.dictionaries(
    st.sampled_from(["find", "read"]),
    filled("x", "enabled", "defer_loading", enabled=False, defer_loading=True),
    max_size=2,
)
servers = filled(
    "url", "name", "url", "authorization_token", "tool_configuration",
    name="docs", url="https://docs.test", authorization_token=SECRET,
)  # fmt: skip
tools = filled(
    "mcp_toolset", "mcp_server_name", "default_config", "configs", "tools", mcp_server_name="docs"
) | st.builds(
    lambda wanted: {"type": "mcp_toolset", "mcp_server_name": "docs", "configs": wanted}, configs
)
searches = filled(
    "web_search_20250305", "name", "max_uses", "allowed_domains", "blocked_domains", "user_location",
    name="web_search", max_uses=1, allowed_domains=["a"], user_location={"type": "approximate"},
)  # fmt: skip
blocks = (
    filled("mcp_tool_use", "id", "name", "server_name", "input", id="a", name="f", server_name="docs", input={})
    | filled("mcp_tool_result", "tool_use_id", "content", "is_error", tool_use_id="a", content="x")
    | filled("server_tool_use", "id", "name", "input", id="s", name="web_search", input={})
    | filled("web_search_tool_result", "tool_use_id", "content", tool_use_id="s", content=[])
    | filled("code_execution_tool_result", "tool_use_id", "content", tool_use_id="s")
    | filled("mcp_tool_listing", "mcp_server_name", "tools", mcp_server_name="docs", tools=[])
    | st.just(text("So"))
)  # fmt: skip


@settings(deadline=None, max_examples=example_count(600))
@given(
    st.lists(servers, max_size=2) | values,
    st.lists(tools | searches, max_size=3) | values,
    st.lists(blocks, max_size=5) | values,
)
def test_any_body_is_read_or_refused(named: Any, declared: Any, content: Any) -> None:
    try:
        shown = repr(request(GO, ("assistant", content), mcp_servers=named, tools=declared).serving)
    except SmgError as error:
        shown = error.message
    assert shown
    assert SECRET not in shown
