"""An engine's tokenizer archive is treated as hostile."""

import hashlib
import io
import random
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.tokenizer_bundle import TokenizerBundle
from smg_node.engines.tokenizer_archive import FILES_MAX, bundle_from_archive

JSON = b'{"model": {}}'


def packed(*members: tuple[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return target.getvalue()


def opened(data: bytes, *, sha256: str | None = None, max_bytes: int = 10**6) -> TokenizerBundle:
    right = hashlib.sha256(data).hexdigest()
    return bundle_from_archive(
        data, sha256=right if sha256 is None else sha256, origin="a test", max_bytes=max_bytes
    )


def refused(data: bytes, *, sha256: str | None = None, max_bytes: int = 10**6) -> str:
    with pytest.raises(SmgError) as raised:
        opened(data, sha256=sha256, max_bytes=max_bytes)
    assert (raised.value.kind, raised.value.code) == (ErrorKind.UPSTREAM_FAILED, "tokenizer_broken")
    assert "a test" in raised.value.message
    return raised.value.message


def test_the_files_of_a_tokenizer_and_an_image_processor_are_kept_and_nothing_else() -> None:
    data = packed(
        ("tokenizer.json", JSON),
        ("config.json", b"{}"),
        ("additional_chat_templates/tool_use.jinja", b"t"),
        ("chat_template.jinja", b"c"),
        ("qwen.tiktoken", b"q"),
        ("preprocessor_config.json", b"p"),
        ("processor_config.json", b"v5"),
        ("video_preprocessor_config.json", b"v"),
        ("vocab.json", b"not ours"),
        ("model.safetensors", b"weights"),
        ("deep/tokenizer.json", b"elsewhere"),
    )
    bundle = opened(data)
    assert dict(bundle.files) == {
        "tokenizer.json": JSON,
        "config.json": b"{}",
        "additional_chat_templates/tool_use.jinja": b"t",
        "chat_template.jinja": b"c",
        "qwen.tiktoken": b"q",
        "preprocessor_config.json": b"p",
        "processor_config.json": b"v5",
        "video_preprocessor_config.json": b"v",
    }
    assert bundle.digest == hashlib.sha256(data).hexdigest()
    assert bundle.origin == "a test"


def test_a_sum_in_capitals_is_the_same_sum() -> None:
    data = packed(("tokenizer.json", JSON))
    assert opened(data, sha256=hashlib.sha256(data).hexdigest().upper()).files


def test_a_wrong_sum_is_refused() -> None:
    assert "checksum" in refused(packed(("tokenizer.json", JSON)), sha256="0" * 64)


def test_a_missing_sum_is_refused() -> None:
    assert "no checksum" in refused(packed(("tokenizer.json", JSON)), sha256="")


def test_an_empty_archive_is_refused() -> None:
    assert "empty" in refused(b"")
    refused(packed())


@pytest.mark.parametrize("kept", [1, 21, 22, 40, 100])
def test_a_truncated_archive_is_refused(kept: int) -> None:
    refused(packed(("tokenizer.json", JSON * 50))[:-kept])


@pytest.mark.parametrize(
    "name",
    [
        "../tokenizer.json",
        "a/../../tokenizer.json",
        "/etc/passwd",
        "C:/tokenizer.json",
        "..\\tokenizer.json",
        "a/b\\c",
    ],
)
def test_a_name_that_leaves_the_archive_is_refused(name: str) -> None:
    assert "file called" in refused(packed(("tokenizer.json", JSON), (name, b"x")))


def test_a_link_is_refused() -> None:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        link = zipfile.ZipInfo("config.json")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("tokenizer.json", JSON)
    assert "link" in refused(target.getvalue())


def test_a_file_that_explodes_is_refused() -> None:
    bomb = packed(("tokenizer.json", b"\0" * 5_000_000))
    assert "200-fold" in refused(bomb, max_bytes=10**8)


def test_a_small_file_may_be_blank() -> None:
    assert opened(packed(("tokenizer.json", b" " * 900_000))).files


def test_files_that_are_too_large_together_are_refused() -> None:
    noise = random.Random(1).randbytes(60_000)
    data = packed(("tokenizer.json", noise), ("config.json", noise))
    assert "too large" in refused(data, max_bytes=100_000)
    assert len(opened(data, max_bytes=120_000).files) == 2


def test_a_lie_about_the_inflated_size_does_not_help() -> None:
    data = bytearray(packed(("tokenizer.json", b"\0" * 3_000_000)))
    at = data.index(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)  # the directory says: 10 bytes
    refused(bytes(data), max_bytes=10**8)


def test_too_many_files_are_refused() -> None:
    members = [(f"f{number}", b"") for number in range(FILES_MAX)]
    assert "files" in refused(packed(("tokenizer.json", JSON), *members))


def test_a_huge_table_of_contents_is_refused_before_it_is_read() -> None:
    members = [(f"{number:05}" + "x" * 200, b"") for number in range(2000)]
    assert "table of contents" in refused(packed(("tokenizer.json", JSON), *members))


def test_a_table_of_contents_in_the_64_bit_form_is_refused() -> None:
    data = packed(("tokenizer.json", JSON))
    end = data.index(b"PK\x05\x06")
    locator = b"PK\x06\x07" + bytes(16)
    refused(data[:end] + locator + data[end:])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_in_it_twice_is_refused() -> None:
    assert "twice" in refused(packed(("tokenizer.json", JSON), ("tokenizer.json", b"other")))


def test_an_archive_without_a_tokenizer_is_refused() -> None:
    assert "neither" in refused(packed(("config.json", b"{}")))


def test_an_encrypted_file_is_refused() -> None:
    data = bytearray(packed(("tokenizer.json", JSON)))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(signature) + offset] |= 1
    refused(bytes(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_an_upstream_failure(data: bytes) -> None:
    refused(data)


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
def test_any_flipped_byte_gives_a_bundle_or_an_upstream_failure(where: int, value: int) -> None:
    data = bytearray(packed(("tokenizer.json", JSON * 3), ("config.json", b"{}")))
    data[where % len(data)] = value
    try:
        files = opened(bytes(data)).files
    except SmgError as error:
        code = error.code
    else:
        code = "tokenizer_broken" if files else "nothing at all"
    assert code == "tokenizer_broken"
