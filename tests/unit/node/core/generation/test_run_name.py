"""How limits and accounts name tools."""

from smg_node.core.generation.run_name import CLIENT_GIVEN, run_name, server_of


def test_a_tool_of_a_defined_server_is_named_by_both() -> None:
    assert run_name("search", "repos/list") == "search/repos/list"
    assert server_of("search/repos/list") == "search"


def test_tools_at_servers_of_clients_have_one_name_that_no_definition_can_have() -> None:
    assert run_name("", "web") == run_name("", "other") == CLIENT_GIVEN
    assert server_of(CLIENT_GIVEN) == "@client"
