"""What a file is by its beginning, and when it is text."""

import wave
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.media.file_types import BEGINNING, file_type, text_in
from support.media.picture_files import FILES


def sound() -> bytes:
    file = BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(8_000)
        written.writeframes(bytes(160))
    return file.getvalue()


def box(brand: bytes) -> bytes:
    return b"\x00\x00\x00\x18ftyp" + brand + b"\x00\x00\x02\x00isommp41"


@pytest.mark.parametrize("name", FILES)
def test_every_picture_that_is_taken_is_known_as_one(name: str) -> None:
    assert file_type(FILES[name][:BEGINNING]).startswith("image/")


@pytest.mark.parametrize(
    ("beginning", "declared", "found"),
    [
        (sound(), "", "audio/wav"),
        (b"ID3\x04\x00", "", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "", "audio/mpeg"),
        (b"fLaC\x00", "", "audio/flac"),
        (b"OggS\x00", "", "audio/ogg"),
        (b"OggS\x00", "video/ogg", "video/ogg"),
        (b"FORM\x00\x00\x00\x10AIFF", "", "audio/aiff"),
        (box(b"isom"), "", "video/mp4"),
        (box(b"isom"), "Audio/mp4", "audio/mp4"),
        (box(b"M4A "), "", "audio/mp4"),
        (box(b"qt  "), "", "video/quicktime"),
        (box(b"avif"), "", "image/avif"),
        (box(b"heic"), "audio/mp4", "image/heic"),
        (b"\x1a\x45\xdf\xa3\x01", "", "video/webm"),
        (b"\x1a\x45\xdf\xa3\x01", "audio/webm", "audio/webm"),
        (b"RIFF\x00\x00\x00\x00AVI LIST", "", "video/x-msvideo"),
        (b"%PDF-1.7\n", "text/plain", "application/pdf"),
        (b"PK\x03\x04\x14", "text/plain", "application/zip"),
        (b"BMW builds cars", "", ""),
        (b"RIFF is a format", "", ""),
        (b"plain words", "image/png", ""),
        (b"%PD", "", ""),
        (b"", "", ""),
    ],
)
def test_the_content_tells_and_not_what_is_declared(
    beginning: bytes, declared: str, found: str
) -> None:
    assert file_type(beginning, declared) == found


@given(st.binary(max_size=BEGINNING), st.sampled_from(["", "audio/x", "video/x", "text/plain"]))
def test_any_beginning_is_of_some_type_or_none(beginning: bytes, declared: str) -> None:
    found = file_type(beginning, declared)
    assert found == "" or found.count("/") == 1


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60))
def test_text_is_read_with_and_without_a_mark(text: str) -> None:
    plain = text.removeprefix("\ufeff")
    assert text_in(plain.encode("utf-8-sig")) == plain
    assert text_in(text.encode("utf-16")) == text


@pytest.mark.parametrize("content", [b"a\0b", b"\xff\xfea", b"\x80", b"caf\xe9"])
def test_what_is_no_text_is_none(content: bytes) -> None:
    assert text_in(content) is None
