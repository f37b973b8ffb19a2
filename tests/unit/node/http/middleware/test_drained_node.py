from support.http.chat_client import CHAT, JSON
from support.http.http_node import chat, node
from support.http.raw_http import ask, connect


async def test_a_node_set_aside_takes_no_work_but_listens_to_its_operator() -> None:
    async with node() as served:
        served.server.set_aside(on=True)
        assert served.server.aside
        ready = await ask(served.port, "GET", "/readiness")
        work = await ask(served.port, "POST", CHAT, chat())
        operator = await ask(served.port, "GET", "/workers")
        alive = await ask(served.port, "GET", "/liveness")
        assert served.generations.runs == []
        served.server.set_aside(on=False)
        back = await ask(served.port, "POST", CHAT, chat())
        ready_again = await ask(served.port, "GET", "/readiness")
    assert (ready.status, work.status, operator.status, alive.status) == (503, 503, 200, 200)
    assert ready.json()["reasons"] == ["the node is draining"]
    assert (work.error()["code"], work.headers["retry-after"]) == ("draining", "1")
    assert "drained by its operator" in work.error()["message"]
    assert (back.status, ready_again.status) == (200, 200)


async def test_work_is_still_taken_while_balancers_have_not_noticed() -> None:
    async with node(settle_s=600.0) as served:
        served.server.set_aside(on=True)
        assert (await ask(served.port, "GET", "/readiness")).status == 503
        assert (await ask(served.port, "POST", CHAT, chat())).status == 200


async def test_a_refused_client_must_connect_anew_and_so_may_find_another_node() -> None:
    async with node() as served, connect(served.port) as client:
        await client.send("GET", "/v1/models")
        assert (await client.response()).status == 200
        served.server.set_aside(on=True)
        await client.send("GET", "/v1/models", headers=JSON)
        refused = await client.response()
        assert (refused.status, refused.headers["connection"]) == (503, "close")
        assert await client.at_end()
