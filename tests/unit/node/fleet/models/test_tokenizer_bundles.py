"""Bundles from folders and from the cache: complete, bounded, and never half."""

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.fleet.models.tokenizer_bundles import (
    BUNDLES_KEPT_MAX,
    BundleCache,
    bundle_from_path,
    digest_of,
)

MEBIBYTE = 1 << 20


def bundle(number: int = 0, **files: bytes) -> TokenizerBundle:
    named = {"tokenizer.json": b"{}" + bytes(number), **files}
    return TokenizerBundle(named, f"{number:064x}", "a test")


def test_a_folder_gives_the_known_files_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    (tmp_path / "config.json").write_bytes(b"{}")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("x")
    found = bundle_from_path(str(tmp_path), max_bytes=MEBIBYTE)
    assert sorted(found.files) == [
        "additional_chat_templates/rag.jinja",
        "config.json",
        "tokenizer.json",
    ]
    assert found.digest == digest_of(dict(found.files))


def test_another_image_processor_is_another_bundle(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    digests = set()
    for name in (
        "preprocessor_config.json",
        "processor_config.json",
        "video_preprocessor_config.json",
    ):
        for content in (b"{}", b'{"size": 1}'):
            (tmp_path / name).write_bytes(content)
            found = bundle_from_path(str(tmp_path), max_bytes=MEBIBYTE)
            assert found.files[name] == content
            digests.add(found.digest)
    assert len(digests) == 6


def test_a_copy_of_an_archive_that_lacks_files_is_kept_anew(tmp_path: Path) -> None:
    cache = BundleCache(tmp_path, max_bytes=MEBIBYTE)
    cache.keep(bundle(1), source="vllm /m")
    more = bundle(1, **{"preprocessor_config.json": b"{}"})
    cache.keep(more, source="vllm /m")
    found = cache.last("vllm /m")
    assert found is not None
    assert found.files == more.files


def test_a_tokenizer_file_brings_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    (tmp_path / "generation_config.json").write_bytes(b"{}")
    found = bundle_from_path(str(tmp_path / "tokenizer.json"), max_bytes=MEBIBYTE)
    assert sorted(found.files) == ["generation_config.json", "tokenizer.json"]


def test_a_tiktoken_file_wins_over_a_tokenizer_json_beside_it(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(b"{}")
    (tmp_path / "qwen.tiktoken").write_bytes(b"IQ== 0")
    found = bundle_from_path(str(tmp_path / "qwen.tiktoken"), max_bytes=MEBIBYTE)
    assert sorted(found.files) == ["qwen.tiktoken"]


@pytest.mark.parametrize("make", ["nothing", "empty"])
def test_no_tokenizer_is_not_found_and_says_where(tmp_path: Path, make: str) -> None:
    place = tmp_path / "model"
    if make == "empty":
        place.mkdir()
    with pytest.raises(SmgError, match=r"no tokenizer at .*model") as caught:
        bundle_from_path(str(place), max_bytes=MEBIBYTE)
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_a_tokenizer_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(bytes(100))
    with pytest.raises(SmgError) as caught:
        bundle_from_path(str(tmp_path), max_bytes=99)
    assert caught.value.kind is ErrorKind.TOO_LARGE


def test_the_cache_gives_back_what_a_source_sent_last(tmp_path: Path) -> None:
    cache = BundleCache(tmp_path / "deep" / "cache", max_bytes=MEBIBYTE)
    assert cache.last("mlx /m") is None
    cache.keep(bundle(1), source="mlx /m")
    cache.keep(bundle(2, **{"config.json": b"{}"}), source="mlx /m")
    cache.keep(bundle(1), source="vllm /m")
    found = cache.last("mlx /m")
    assert found is not None
    assert found.files == bundle(2, **{"config.json": b"{}"}).files
    assert found.digest == bundle(2).digest
    other = cache.last("vllm /m")
    assert other is not None
    assert other.files == bundle(1).files


def test_a_damaged_copy_is_as_good_as_none(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = BundleCache(tmp_path, max_bytes=MEBIBYTE)
    cache.keep(bundle(1), source="s")
    (tmp_path / bundle(1).digest / "tokenizer.json").write_bytes(b"{")
    with caplog.at_level(logging.WARNING):
        assert cache.last("s") is None
    assert "damaged" in caplog.text


@pytest.mark.parametrize("note", [b"", b"../../etc", b"\xff\xfe", b"0" * 64])
def test_a_damaged_note_is_as_good_as_none(tmp_path: Path, note: bytes) -> None:
    cache = BundleCache(tmp_path, max_bytes=MEBIBYTE)
    cache.keep(bundle(1), source="s")
    (found,) = tmp_path.glob("last-*")
    found.write_bytes(note)
    assert cache.last("s") is None


def test_the_oldest_bundles_leave_first(tmp_path: Path) -> None:
    cache = BundleCache(tmp_path, max_bytes=MEBIBYTE)
    for number in range(BUNDLES_KEPT_MAX + 3):
        cache.keep(bundle(number), source=f"s{number}")
    kept = [item for item in tmp_path.iterdir() if item.is_dir()]
    assert len(kept) == BUNDLES_KEPT_MAX
    assert cache.last(f"s{BUNDLES_KEPT_MAX + 2}") is not None


def test_two_workers_of_a_model_keep_its_tokenizer_at_once_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    slow, fast = (BundleCache(tmp_path, max_bytes=MEBIBYTE) for _ in range(2))
    rename = Path.rename

    def overtaken(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "rename", rename)
        fast.keep(bundle(), source="fast")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", overtaken)
    slow.keep(bundle(), source="slow")
    for source in ("slow", "fast"):
        found = slow.last(source)
        assert found is not None
        assert found.files == bundle().files
    assert not caplog.records
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".new-")]


def test_threads_keep_what_one_source_sent_at_once_without_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = BundleCache(tmp_path, max_bytes=MEBIBYTE)
    cache.keep(bundle(), source="one")
    with ThreadPoolExecutor(4) as threads:
        for kept in [threads.submit(cache.keep, bundle(), source="one") for _ in range(400)]:
            kept.result()
    assert not caplog.records
    assert cache.last("one") is not None
    assert not list(tmp_path.glob("*.new"))


def test_a_disk_that_refuses_costs_a_warning_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    cache = BundleCache(tmp_path / "file" / "cache", max_bytes=MEBIBYTE)
    with caplog.at_level(logging.WARNING):
        cache.keep(bundle(1), source="s")
    assert "cannot be written" in caplog.text
    assert cache.last("s") is None
