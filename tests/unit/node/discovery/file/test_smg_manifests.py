"""Manifests that are read as SMG 1.13 reads them, or the difference has a reason that stands here."""

from collections.abc import Mapping
from typing import Final

import pytest

from smg_node.config.worker_url import parse_worker_url
from smg_node.discovery.file.manifest import ManifestError, read_manifest
from support.discovery.manifest_cases import CASES, judgements

TAKEN_HERE_ONLY: Final[Mapping[str, str]] = {
    "no version": "a list of ours needs none",
    "workers are texts": "a list of ours",
    "list": "a list of ours",
    "with a query": "it is how a worker is written here",
    "encode": "SMG takes it in a third way of routing; here one node serves all kinds",
    "byte order mark": "editors of some systems write it, and it means nothing",
    "YAML": "files of either form are read",
}
REFUSED_HERE_ONLY: Final[Mapping[str, str]] = {
    "grpc without a port": "there is no port that it would mean",
    "with a password": "a key of a worker is not written into its URL, where logs show it",
    "localhost twice": "one engine under two names is one engine",
    "bootstrap 0": "nobody can meet there",
}


def workers_of(text: str) -> list[str] | None:
    try:
        found = read_manifest(text.encode()).sightings.values()
    except ManifestError:
        return None
    return sorted(f"{one.url.endpoint} {one.url.role}" for one in found)


def as_here(worker: str) -> str:
    """Return a worker of SMG's with its URL as it is written here."""
    url, role = worker.split(" ")
    return f"{parse_worker_url(url).endpoint} {role}"


def test_every_case_was_judged() -> None:
    assert list(judgements()) == list(CASES)
    assert len([one for one in judgements().values() if one.workers is not None]) == 22


@pytest.mark.parametrize("name", sorted(set(CASES) - {*TAKEN_HERE_ONLY, *REFUSED_HERE_ONLY}))
def test_the_workers_of_a_manifest_are_those_that_smg_has_of_it(name: str) -> None:
    theirs = judgements()[name].workers
    expected = None if theirs is None else sorted(map(as_here, theirs))
    assert workers_of(CASES[name]) == expected


@pytest.mark.parametrize("name", sorted(TAKEN_HERE_ONLY))
def test_what_is_taken_here_only_is_refused_by_smg(name: str) -> None:
    assert judgements()[name].workers is None
    assert workers_of(CASES[name]) is not None


@pytest.mark.parametrize("name", sorted(REFUSED_HERE_ONLY))
def test_what_is_refused_here_only_is_taken_by_smg(name: str) -> None:
    assert judgements()[name].workers
    assert workers_of(CASES[name]) is None
