import sys
from array import array

import pytest

from smg_node.routing.kv_index.block_hash import (
    BITS,
    Roots,
    chain,
    link,
    raw_ids,
    root_of,
    seed_of,
    text_ids,
)

IDS = array("I", range(1000, 1300))


def test_all_that_sets_prompts_apart_sets_their_roots_apart() -> None:
    roots = [
        root_of("m", "d", seed=1),
        root_of("n", "d", seed=1),
        root_of("m", "e", seed=1),
        root_of("m", "d", adapter="a", seed=1),
        root_of("m", "d", salt="a", seed=1),
        root_of("m", "d", seed=2),
        root_of("md", "", seed=1),
    ]
    assert len(set(roots)) == len(roots)


def test_every_node_of_a_cluster_names_blocks_alike_for_ever() -> None:
    # Nodes of two versions must understand each other: these numbers may never change.
    seed = seed_of("east")
    root = root_of("llama", "f00d", adapter="x", salt="y", seed=seed)
    assert (seed, root) == (281473622053969977, 737162449477765530)
    assert chain(root, IDS)[:2] == [129042906656171409, 1057129690064219807]


def test_only_whole_blocks_are_named() -> None:
    assert chain(1, array("I")) == []
    assert chain(1, IDS[:63]) == []
    assert len(chain(1, IDS[:64])) == 1
    assert len(chain(1, IDS[:127])) == 1
    assert chain(1, IDS, 64, 0) == []


def test_a_difference_shows_in_its_block_and_in_all_behind_it() -> None:
    other = IDS[:]
    other[70] += 1
    ours, theirs = chain(1, IDS), chain(1, other)
    assert [a == b for a, b in zip(ours, theirs, strict=True)] == [True, False, False, False]


def test_hashes_fit_into_sixty_bits() -> None:
    assert all(0 <= one < 1 << BITS for one in chain(2**63, IDS, 1))


def test_a_big_endian_machine_reads_the_same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = array("I", [1, 2, 3])
    monkeypatch.setattr(sys, "byteorder", "big")
    assert bytes(raw_ids(ids)) == b"\0\0\0\1\0\0\0\2\0\0\0\3"
    assert list(ids) == [1, 2, 3]


def test_a_text_stands_for_ids_with_four_bytes_each() -> None:
    assert list(text_ids("ab")) == []
    assert list(text_ids("abcdefgh!")) == [0x64636261, 0x68676665]
    one, two = "a long prompt " * 30, "a long prompt " * 29 + "about something"
    # Blocks of 64 such ids are blocks of 256 bytes.
    ours, theirs = chain(1, text_ids(one)), chain(1, text_ids(two))
    assert len(ours) == len(one) // 256 == 1
    assert ours == theirs
    assert text_ids("\ud800 lone")


def test_ids_are_not_copied() -> None:
    ids = array("I", [1, 2, 3, 4])
    before = chain(1, ids, 4)
    ids[0] = 9
    assert before != chain(1, ids, 4) == [link(1, bytes(raw_ids(ids)))]


def test_roots_of_a_model_are_worked_out_once_and_some_are_forgotten() -> None:
    roots = Roots("m", "d", seed=3)
    assert roots() == root_of("m", "d", seed=3)
    assert roots("a", "s") == roots("a", "s") == root_of("m", "d", adapter="a", salt="s", seed=3)
    for at in range(5000):
        roots("", str(at))
    assert len(roots) <= 4096
    assert roots("a", "s") == root_of("m", "d", adapter="a", salt="s", seed=3)


def test_a_name_that_is_no_unicode_has_a_root() -> None:
    assert root_of("\ud800", "", seed=0) != root_of("", "", seed=0)
