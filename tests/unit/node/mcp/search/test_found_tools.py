"""Found tools as the result of a search, for the model and for the API."""

from smg_node.core.cooperative_steps import whole
from smg_node.core.generation.tool_serving import ListedTool, RunError
from smg_node.dialects.messages.request.tools import functions_text
from smg_node.mcp.search.bm25 import build_index
from smg_node.mcp.search.found_tools import offered, search_result
from smg_node.mcp.search.regex_search import SearchRefusal, build_texts
from smg_node.mcp.search.searched_tool import SearchedTool

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = (
    SearchedTool("meteo__now", ListedTool("now", "The weather", SCHEMA), "meteo"),
    SearchedTool("send_mail", ListedTool("send_mail")),
)


def test_a_model_is_shown_definitions_and_an_api_names() -> None:
    found = whole(build_index(TOOLS)).search("weather")
    result = search_result({"query": "weather"}, found, functions_text)
    assert result.text == (
        '<functions>\n<function>{"description":"The weather","name":"meteo__now","parameters":'
        '{"type":"object","properties":{"city":{"type":"string"}}}}</function>\n</functions>'
    )
    assert [tool.name for tool in result.found] == ["meteo__now"]
    assert result.found_at == ("meteo",)
    assert result.action == {"query": "weather"}
    assert result.error is None


def test_nothing_is_found() -> None:
    result = search_result({"query": "x"}, (), functions_text)
    assert result.text.startswith("No tool fits.")
    assert not result.found
    assert not result.found_at
    assert result.error is None


def test_a_search_that_is_refused_says_why() -> None:
    refused = whole(build_texts(TOOLS)).search("(")
    assert isinstance(refused, SearchRefusal)
    result = search_result({"pattern": "("}, refused, functions_text)
    assert result.text == "tool failed: the pattern cannot be read: unclosed group"
    assert result.error == RunError(
        "mcp_protocol_error", -32602, "the pattern cannot be read: unclosed group"
    )
    late = SearchRefusal("execution_time_exceeded", "the pattern takes too long")
    error = search_result({"pattern": "x"}, late, functions_text).error
    assert error == RunError("http_error", 504, "the pattern takes too long")


def test_a_found_tool_may_be_called_and_is_not_in_the_list() -> None:
    tool = offered(TOOLS[0])
    assert (tool.name, tool.description, tool.parameters) == ("meteo__now", "The weather", SCHEMA)
    assert tool.deferred
    assert offered(TOOLS[1]).description is None
