import logging
from pathlib import Path

import pytest

from smg_node.history.peers import thread_owners as form
from smg_node.history.peers.thread_owners import ThreadOwners
from smg_storage.ids import HOLDER_CHARS, holder_of, holder_tag, new_id, new_thread
from support.history.peer_histories import Net


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def roster_of(net: Net, name: str = "a") -> tuple[ThreadOwners, Clock]:
    clock = Clock()
    return ThreadOwners(name, net.peers(name), now_s=clock), clock


def test_an_id_tells_who_holds_it() -> None:
    import random

    chance = random.Random(1)
    made = new_id("resp", new_thread(chance, holder=holder_tag("b")), now_ms=1, chance=chance)
    assert holder_of(made) == holder_tag("b")
    assert len(holder_tag("b")) == HOLDER_CHARS
    assert len(made) == 5 + 48
    for nobodys in ("msg_x", "", made + "0", made.upper(), made.replace("resp_", "resp-")):
        assert holder_of(nobodys) == ""


def test_every_known_node_has_its_tag_whatever_became_of_it() -> None:
    net = Net(states={"b": "alive", "c": "suspect", "d": "dead", "e": "left"})
    roster, _ = roster_of(net)
    for name in "bcde":
        assert roster.elsewhere(holder_tag(name)) == name
        assert roster.knows(holder_tag(name))
    assert roster.elsewhere(holder_tag("a")) == ""
    assert roster.knows(holder_tag("a"))
    assert roster.elsewhere("") == ""
    assert not roster.knows("")


def test_others_are_looked_for_once_a_second_at_most() -> None:
    net = Net()
    roster, clock = roster_of(net)
    assert roster.elsewhere(holder_tag("b")) == ""
    net.states["b"] = "alive"
    assert roster.elsewhere(holder_tag("b")) == ""
    clock.now_s = form.LOOK_S
    assert roster.elsewhere(holder_tag("b")) == "b"


def test_a_node_that_the_cluster_forgot_is_still_known() -> None:
    net = Net(states={"b": "dead"})
    roster, clock = roster_of(net)
    assert roster.elsewhere(holder_tag("b")) == "b"
    del net.states["b"]
    clock.now_s = 10 * form.LOOK_S
    roster.others()
    assert roster.elsewhere(holder_tag("b")) == "b"


def test_who_was_there_is_known_to_the_next_process(tmp_path: Path) -> None:
    notes = tmp_path / "holders" / "a"
    net = Net(states={"b": "alive", "ü": "dead"})
    first = ThreadOwners("a", net.peers("a"), now_s=Clock(), notes=notes)
    first.others()
    written = notes.stat().st_mtime_ns
    first.others()
    assert notes.stat().st_mtime_ns == written
    again = ThreadOwners("a", Net().peers("a"), now_s=Clock(), notes=notes)
    assert again.elsewhere(holder_tag("b")) == "b"
    assert again.elsewhere(holder_tag("ü")) == "ü"
    assert again.others() == {}


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe\x00\nb\n"])
def test_notes_that_make_no_sense_do_no_harm(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    roster = ThreadOwners(
        "a", Net(states={"c": "alive"}).peers("a"), now_s=Clock(), notes=tmp_path / "a"
    )
    assert roster.elsewhere(holder_tag("c")) == "c"
    assert roster.elsewhere(holder_tag("b")) == ("b" if b"b" in content else "")


def test_a_disk_that_takes_no_notes_is_only_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "holders").write_bytes(b"a file, no folder")
    for notes in (tmp_path / "holders" / "a", tmp_path):
        roster = ThreadOwners(
            "a", Net(states={"b": "alive"}).peers("a"), now_s=Clock(), notes=notes
        )
        assert roster.elsewhere(holder_tag("b")) == "b"
    assert "cannot be" in caplog.text


def test_there_are_never_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "KNOWN_MAX", 3)
    net = Net(states={f"n{number}": "alive" for number in range(5)})
    roster, clock = roster_of(net)
    clock.now_s = 5
    known = [name for name in net.states if name != "a" and roster.elsewhere(holder_tag(name))]
    assert len(roster._names) == 3
    assert known


def test_names_that_cannot_be_told_apart_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "holder_tag", lambda name: "abcdef" if name != "c" else "cccccc")
    net = Net(states={"b": "alive", "c": "alive"})
    roster, _ = roster_of(net)
    roster.others()
    assert roster.alike == ("b",)
    assert roster.elsewhere("abcdef") == ""
    assert roster.elsewhere("cccccc") == "c"


def test_all_nodes_draw_the_same_home_for_a_key_and_not_one_for_all() -> None:
    net = Net(states=dict.fromkeys("abc", "alive"))
    rosters = {name: roster_of(net, name)[0] for name in "abc"}
    homes = []
    for number in range(60):
        drawn = {name: rosters[name].home_of_key("acme", str(number)) or name for name in "abc"}
        assert len(set(drawn.values())) == 1
        homes.append(drawn["a"])
    assert set(homes) == {"a", "b", "c"}


def test_who_left_looks_after_no_key_and_who_died_does() -> None:
    net = Net(states=dict.fromkeys("abc", "alive"))
    roster = roster_of(net)[0]
    keys = [str(number) for number in range(60)]
    before = [roster.home_of_key("acme", key) for key in keys]
    net.states["b"] = "dead"
    assert [roster.home_of_key("acme", key) for key in keys] == before
    net.states["b"] = "left"
    after = [roster.home_of_key("acme", key) for key in keys]
    assert "b" not in after
    moved = [key for key, one, other in zip(keys, before, after, strict=True) if one != other]
    assert moved == [key for key, one in zip(keys, before, strict=True) if one == "b"]


def test_it_is_said_once_that_there_are_others(caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    roster, _ = roster_of(net)
    with caplog.at_level(logging.WARNING):
        roster.others()
        assert not caplog.records
        net.states["b"] = "alive"
        roster.others()
        roster.others()
    assert len(caplog.records) == 1
    assert "--store" in caplog.text
