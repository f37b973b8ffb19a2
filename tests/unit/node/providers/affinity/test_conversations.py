"""Conversations over several nodes and accounts read nearly all that one account alone would; against stand-ins."""

from typing import Any

import pytest

from support.providers.caches.cache_world import CacheWorld, replayed
from support.providers.caches.cached_conversations import chat_body, messages_body

TALKS, TURNS, APART_S = 200, 10, 30.0
MODELS = {"anthropic": "claude-sonnet-5", "openai": "gpt-4.1-mini"}
BODIES = {"anthropic": messages_body, "openai": chat_body}
Turn = tuple[float, int, dict[str, Any]]


def turns_of(kind: str, talks: int = TALKS, turns: int = TURNS) -> list[Turn]:
    """Return every turn of every conversation: one conversation after the other, `APART_S` between its turns."""
    body = BODIES[kind]
    step_s = APART_S / talks
    return [
        (turn * APART_S + talk * step_s, talk, body(MODELS[kind], talk, turn))
        for turn in range(turns)
        for talk in range(talks)
    ]


def run(world: CacheWorld, turns: list[Turn], *, restart_at: int = -1) -> None:
    """Send all turns, each turn of a conversation to another node; all nodes begin anew once, at that turn."""
    for number, (now_s, talk, body) in enumerate(turns):
        world.time.now_s = now_s
        if number == restart_at:
            for at in range(len(world.nodes)):
                world.restart(at)
        world.ask((number + number // TALKS) % len(world.nodes), talk, body)


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
def test_three_nodes_and_accounts_read_what_one_account_alone_would(kind: str) -> None:
    turns = turns_of(kind)
    alone, _ = replayed(kind, turns, lambda _now_s, _talk: 0, 1)
    world = CacheWorld(kind, 3, 3, MODELS[kind])
    run(world, turns)
    assert alone > 2_000_000
    assert world.read() >= 0.95 * alone
    assert world.went.moves == 0
    assert sorted(set(world.went.at.values())) == [0, 1, 2]


def test_a_node_that_begins_anew_loses_less_than_two_percent() -> None:
    turns = turns_of("anthropic")
    whole, again = (CacheWorld("anthropic", 3, 3, MODELS["anthropic"]) for _ in range(2))
    run(whole, turns)
    run(again, turns, restart_at=len(turns) // 2)
    assert again.read() >= 0.98 * whole.read()


@pytest.mark.parametrize("full_from_s", [0.0, 100.0])
def test_where_an_account_is_full_the_bill_is_about_the_best_of_replays(full_from_s: float) -> None:
    turns = turns_of("anthropic")
    world = CacheWorld("anthropic", 3, 3, MODELS["anthropic"])
    for number, (now_s, talk, body) in enumerate(turns):
        world.time.now_s = now_s
        if now_s >= full_from_s:
            world.full = {0}
        world.ask((number + number // TALKS) % 3, talk, body)

    def stays(now_s: float, talk: int) -> int:
        """Stay, and leave the full account once, as whoever does not know beforehand must."""
        home = talk % 3
        return 1 + talk % 2 if home == 0 and now_s >= full_from_s else home

    def spreads(now_s: float, talk: int) -> int:
        """Go to the next account at every turn."""
        at = (talk + int(now_s // APART_S)) % 3
        return 1 + talk % 2 if at == 0 and now_s >= full_from_s else at

    costs = [replayed("anthropic", turns, place, 3)[1] for place in (stays, spreads)]
    assert world.pico() <= 1.05 * min(costs)
    assert min(costs) < 0.7 * max(costs)


def test_conversations_that_had_to_leave_stay_where_their_prompts_are_now() -> None:
    turns = turns_of("anthropic")
    world = CacheWorld("anthropic", 3, 3, MODELS["anthropic"])
    homes: dict[int, int] = {}
    for number, (now_s, talk, body) in enumerate(turns):
        world.time.now_s = now_s
        world.full = {0} if 100.0 <= now_s < 160.0 else set()
        world.ask((number + number // TALKS) % 3, talk, body)
        if now_s < APART_S:
            homes[talk] = world.went.at[talk]
    left = sum(home == 0 for home in homes.values())
    assert left > 40
    assert world.went.moves == left
