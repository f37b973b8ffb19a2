"""Bounds of pictures in one process: all processes of a node together keep within what the settings name."""

import pytest

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.sections.media import Media
from smg_node.config.settings import Settings
from smg_node.wiring.media_parts import media_options


@pytest.mark.parametrize("processes", [0, 1, 2, 3, 7, 64])
def test_processes_share_the_memory_of_their_node(processes: int) -> None:
    media = Media(cache_bytes=100_000_000, inflight_bytes=90_000_000)
    options = media_options(plain_settings(Settings(media=media, processes=processes)))
    count = max(1, processes)
    assert 0 <= media.cache_bytes - options.own_cache_bytes * count < count
    assert options.cache_bytes == media.cache_bytes
    assert bool(options.shared_folder) is (processes > 1)
    assert 0 <= media.inflight_bytes - options.inflight_bytes * count < count
    assert options.threads >= 1
