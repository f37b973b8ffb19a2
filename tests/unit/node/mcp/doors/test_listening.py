"""What a server says unasked, in the stream by GET of the handshake era."""

from smg_node.mcp.limits import McpLimits
from smg_node.mcp.session.opening import Opened
from smg_node.mcp.tools.tool import ToolList
from support.mcp.faulty_server import pooled, served, target, until


async def test_a_list_that_changed_is_asked_for_again_but_not_at_once() -> None:
    async with served("handshake") as server, pooled(McpLimits(list_ttl_s=3600.0)) as pool:
        at = target(server)
        first = await pool.list_tools(at)
        assert isinstance(first, ToolList)
        await until(lambda: server.book.streams == 1)
        await server.say(method="notifications/tools/list_changed")
        await server.say(id=1, method="ping")
        await until(lambda: len(server.book.answers) == 1)
        again = await pool.list_tools(at)
        assert isinstance(again, ToolList)
        assert again.good_until_s < first.good_until_s - 3000
        assert server.book.methods["tools/list"] == 1, "a server that says so often is no load"


async def test_requests_of_the_server_are_answered_there_too() -> None:
    async with served("handshake") as server, pooled() as pool:
        assert isinstance(await pool.open(target(server)), Opened)
        await until(lambda: server.book.streams == 1)
        await server.say(id="a", method="ping")
        await server.say(id=7, method="sampling/createMessage", params={})
        await until(lambda: len(server.book.answers) == 2)
        assert server.book.answers[0] == {"jsonrpc": "2.0", "id": "a", "result": {}}
        assert server.book.answers[1]["id"] == 7
        assert server.book.answers[1]["error"]["code"] == -32601


async def test_in_the_modern_era_nothing_is_listened_to() -> None:
    async with served("modern") as server, pooled() as pool:
        assert isinstance(await pool.list_tools(target(server)), ToolList)
        assert server.book.streams == 0
