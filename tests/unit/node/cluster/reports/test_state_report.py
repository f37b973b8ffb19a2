from support.state.fake_shared_state import FakeNamespaceState, SharedWorld


async def test_members_that_hold_the_same_differ_or_do_not_answer_are_told_apart() -> None:
    world = SharedWorld("a", "b", "c", "d", "e")
    desks = {name: world.desks(name) for name in "abcd"}
    world.nodes["c"].states["workers"] = FakeNamespaceState("ffff")
    del world.nodes["c"].states["settings"]
    world.meshes["a"].silent.add("d")
    world.nodes["a"].held = False
    view = await desks["a"].state.state(peers=True)
    assert view.held is False
    assert list(view.members) == ["b", "c", "d", "e"]
    assert view.members["b"].same
    assert view.members["c"].differs == ("settings", "workers")
    assert "no answer in time" in view.members["d"].error
    assert "no member is called 'e'" in view.members["e"].error
    assert not any(view.members[name].same for name in "cde")


async def test_a_kind_of_state_that_is_empty_is_the_same_as_one_that_a_peer_does_not_know() -> None:
    world = SharedWorld("a", "b")
    desks = {name: world.desks(name) for name in "ab"}
    world.nodes["a"].states["prompt_caches"] = FakeNamespaceState("0" * 16)
    view = await desks["a"].state.state(peers=True)
    assert view.members["b"].same
    view = await desks["b"].state.state(peers=True)
    assert view.members["a"].same


async def test_a_peer_that_makes_no_sense_cannot_be_compared_with() -> None:
    world = SharedWorld("a", "b")
    desks = world.desks("a")

    async def nonsense(payload: bytes, caller: str) -> bytes:
        return b'{"workers": "\xff"}'

    world.answers["b"] = {"node.state": nonsense}
    view = await desks.state.state(peers=True)
    assert (view.members["b"].same, view.members["b"].error) == (
        False,
        "it says nothing that is understood here",
    )


async def test_nobody_is_asked_unless_it_is_wanted() -> None:
    world = SharedWorld("a", "b")
    view = await world.desks("a").state.state(peers=False)
    assert view.members == {}
    assert [row.name for row in view.namespaces] == ["settings", "workers"]
