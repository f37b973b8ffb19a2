"""Pictures of several tenants: shared by default, and nobody's but one's own where tenants are kept apart."""

from pathlib import Path

import pytest

from smg_node.config.frozen_settings import plain_settings
from smg_node.config.sections.media import Media
from smg_node.config.settings import Settings
from smg_node.core.generation.request import Sampling
from smg_node.media.engine_media import TensorBatch
from smg_node.pipeline.media.media_options import MediaOptions
from smg_node.wiring.media_parts import media_options
from support.media.pictured_bench import chat, picture, pictured, seeing

A = "https://x/a"
FILES = {A: "30x2:a"}
SHORT = Sampling(max_tokens=10)


@pytest.mark.parametrize("apart", [False, True])
async def test_equal_pictures_of_two_tenants_are_one_unless_they_are_kept_apart(
    tmp_path: Path, *, apart: bool
) -> None:
    engine = seeing()
    options = MediaOptions(tenants_apart=apart)
    async with pictured(tmp_path, FILES, {"one": engine}, options=options) as it:
        for tenant in ("acme", "zoo", "acme", "zoo"):
            await it.bench.answer(SHORT, prompts=chat("look", picture(A)), tenant=tenant)
        media = [request.media for request in engine.requests]
        digests = [each.ranges[0].digest for each in media if isinstance(each, TensorBatch)]
        assert len(digests) == 4
        assert digests[:2] == digests[2:], "a tenant's own caches serve it"
        assert (digests[0] != digests[1]) is apart
        assert it.source.decodes == (2 if apart else 1)


def test_the_setting_is_off_unless_it_is_said() -> None:
    apart = Settings(media=Media(tenants_apart=True))
    assert media_options(plain_settings(apart)).tenants_apart
    assert not media_options(plain_settings(Settings())).tenants_apart
