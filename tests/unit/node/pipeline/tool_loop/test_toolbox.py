"""Toolbox: servers that are away, lists of the client's own, and built-in tools that nothing does."""

import shlex
from typing import Any

import pytest
from typer.main import get_command

from smg_node.admin.cli import build_app
from smg_node.core.errors import ErrorKind
from smg_node.core.generation.events import Fail, Listed
from smg_node.core.generation.request import GenerateRequest, Sampling, TextPrompt
from smg_node.core.generation.tool_serving import (
    AskedBuiltin,
    AskedServer,
    ListedTool,
    ToolServing,
)
from smg_node.mcp.failures import bare_status
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)

TWO = {"a": ["read"], "b": ["write"]}


def failure(listener: Listener) -> Any:
    assert isinstance(listener.events[-1], Fail)
    return listener.events[-1].error


def named_command(message: str) -> list[str]:
    """Return the command that a message names, once it is known that there is such a one with such options."""
    words = shlex.split(message.split("`")[1])
    assert words[0] == "smg-admin"
    command: Any = get_command(build_app())
    for word in words[1:]:
        if not hasattr(command, "commands"):
            break
        command = command.commands[word]
    options = {option for one in command.params for option in one.opts}
    assert {word for word in words if word.startswith("--")} <= options
    return words


async def test_a_server_that_is_away_is_told_and_the_others_go_on() -> None:
    model = Model(speech(calls("write")), speech(said("done")))
    servers = Servers(TWO)
    servers.failing["a"] = bare_status(401)
    listener = await heard(model, servers, request(serving("a", "b")))
    a, b = listener.of(Listed)
    assert (a.server, a.tools) == ("a", ())
    assert "401" in a.error
    assert (b.server, b.error) == ("b", "")
    assert listener.reason() == "stop"


async def test_an_api_that_shows_no_lists_names_a_server_that_is_away_as_ignored() -> None:
    servers = Servers(TWO)
    servers.failing["a"] = bare_status(401)
    for dialect, ignored in (("chat", ("tools[0].a",)), ("responses", ())):
        run = loop(Model(), servers).start(dialect, request(serving("a", "b")), CONTEXT)
        await run.enter()
        assert run.ignored == ignored
        run.leave()


async def test_a_required_server_that_is_away_fails_the_request() -> None:
    servers = Servers(TWO, specs={"a": {"required": True}})
    servers.failing["a"] = bare_status(503)
    listener = await heard(Model(), servers, request(serving("a", "b")))
    error = failure(listener)
    assert (error.status, error.code, error.where) == (424, "http_error", "tools[0]")
    assert len(listener.events) == 1


async def test_messages_fails_before_its_first_byte() -> None:
    servers = Servers(TWO)
    servers.failing["b"] = bare_status(503)
    listener = await heard(Model(), servers, request(serving("a", "b")), dialect="messages")
    assert (failure(listener).status, failure(listener).where) == (502, "tools[1]")


async def test_a_name_that_the_caller_cannot_see_is_refused_with_its_place() -> None:
    listener = await heard(Model(), Servers(TWO), request(serving("a", "x")))
    assert (failure(listener).kind, failure(listener).where) == (
        ErrorKind.INVALID_REQUEST,
        "tools[1]",
    )


async def test_a_label_is_given_once() -> None:
    listener = await heard(Model(), Servers(TWO), request(serving("a", "a")))
    assert failure(listener).where == "tools[1]"


async def test_a_node_without_servers_says_so() -> None:
    listener = await heard(Model(), None, request(serving("a")))
    assert failure(listener).code == "unsupported_tool"
    assert named_command(failure(listener).message) == ["smg-admin", "mcp", "servers", "set"]


async def test_a_list_of_the_clients_own_is_in_force_and_the_server_not_asked() -> None:
    pinned = (ListedTool("write", "mine"),)
    asked = ToolServing((AskedServer("b", pinned=pinned),))
    model = Model(speech(calls("write")), speech(said("done")))
    servers = Servers(TWO)
    listener = await heard(model, servers, request(asked))
    assert not servers.listed
    assert not listener.of(Listed)
    assert model.prompt(0).tools[0].description == "mine"
    assert len(servers.ran) == 1


async def test_an_internal_server_is_not_told_of() -> None:
    model = Model(speech(calls("read")), speech(said("done")))
    servers = Servers(TWO, specs={"a": {"internal": True}})
    listener = await heard(model, servers, request(serving("a", "b")))
    assert [one.server for one in listener.of(Listed)] == ["b"]
    owner = listener.answer().choices[0].blocks[0].owner
    assert owner is not None
    assert owner.hidden


async def test_a_builtin_tool_without_a_server_is_named_as_ignored() -> None:
    builtin = AskedBuiltin("web_search", "web_search_preview", where="tools[2]")
    asked = ToolServing((AskedServer("a"),), (builtin,))
    model = Model(speech(said("done")))
    run = loop(model, Servers(TWO)).start("responses", request(asked), CONTEXT)
    listener = Listener()
    await run.tell(listener.receive)
    assert run.ignored == ("tools[2].web_search_preview",)
    assert [tool.name for tool in model.prompt(0).tools] == ["read"]


@pytest.mark.parametrize("servers", [None, Servers(TWO)])
async def test_a_builtin_tool_that_is_insisted_on_and_missing_is_refused(
    servers: Servers | None,
) -> None:
    builtin = AskedBuiltin("web_search", "web_search", insisted=True, where="tools[0]")
    listener = await heard(Model(), servers, request(ToolServing((), (builtin,))))
    error = failure(listener)
    assert (error.code, error.where) == ("unsupported_tool", "tools[0]")
    assert named_command(error.message)[-2:] == ["--builtin", "web_search=TOOL"]


async def test_the_setting_is_named_for_a_fetch_as_well() -> None:
    builtin = AskedBuiltin("web_fetch", "web_fetch_20250910", insisted=True, where="tools[0]")
    listener = await heard(Model(), Servers(TWO), request(ToolServing((), (builtin,))))
    assert failure(listener).message.startswith("no server does the work of 'web_fetch_20250910': ")
    assert named_command(failure(listener).message)[-2:] == ["--builtin", "web_fetch=TOOL"]


async def test_several_answers_are_refused_with_their_place() -> None:
    sampling = Sampling(n=2, where={"n": "n"})
    listener = await heard(Model(), Servers(TWO), request(serving("a"), sampling=sampling))
    assert (failure(listener).status, failure(listener).where) == (400, "n")


async def test_a_text_is_no_chat() -> None:
    asked = GenerateRequest("m", (TextPrompt("x"),), Sampling(), False, serving=serving("a"))
    listener = await heard(Model(), Servers(TWO), asked)
    assert failure(listener).where == "prompt"


async def test_a_request_that_is_refused_is_refused_when_it_enters() -> None:
    run = loop(Model(), Servers(TWO)).start("chat", request(serving("x")), CONTEXT)
    with pytest.raises(Exception, match="there is no server 'x'"):
        await run.enter()
    run.leave()
