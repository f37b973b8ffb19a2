"""Addresses of media: data URLs in their one form, places elsewhere, and everything else."""

import base64
import binascii
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.media import sources
from smg_node.media.pixels import kernels
from smg_node.media.sources import (
    URL_CHARACTERS_MAX,
    InlineSource,
    RemoteSource,
    decoded,
    source_of,
)

MAX = 1 << 20
WHERE = "messages[0].content[1].image_url"


def part(source: str, kind: MediaKind = "image") -> MediaPart:
    return MediaPart(kind, source, WHERE)


def read(asked: MediaPart, bytes_max: int) -> bytes:
    found = source_of(asked, bytes_max=bytes_max)
    if isinstance(found, RemoteSource):
        return b""
    whole = decoded(found, asked)
    assert len(whole) == found.size <= bytes_max
    return whole


def content_of(source: str, bytes_max: int = MAX) -> bytes:
    return read(part(source), bytes_max)


def refusal(source: str, bytes_max: int = MAX, kind: MediaKind = "image") -> SmgError:
    asked = part(source, kind)
    with pytest.raises(SmgError) as raised:
        read(asked, bytes_max)
    assert raised.value.where == WHERE
    return raised.value


@pytest.mark.parametrize(
    "head",
    ["data:image/png;base64,", "data:;base64,", "DATA:Image/PNG;BASE64,", "data:a/b;x=y;base64,"],
)
def test_a_data_url_is_its_bytes_whatever_it_says_of_them(head: str) -> None:
    assert content_of(f"{head}iVBORw0KGgo=") == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("data:image/png,abc", "must be base64"),
        ("data:image/png;base64", "must be base64"),
        ("data:" + "x" * 300 + ";base64,QUJD", "must be base64"),
        ("data:image/png;base64,", "has no data"),
        ("data:image/png;base64,QUI", "no multiple of 4"),
        ("data:image/png;base64,QUJD\n", "no multiple of 4"),
        ("data:image/png;base64,QU JDRU=", "a character that base64 does not have"),
        ("data:image/png;base64,QU\nJDRU=", "a character that base64 does not have"),
        ("data:image/png;base64,-_-_", "a character that base64 does not have"),
        ("data:image/png;base64,QUJ\u00e9", "a character that base64 does not have"),
        ("data:image/png;base64,QUJ%", "a character that base64 does not have"),
        ("data:image/png;base64,QQ==QUJD", "its padding is not at its end"),
        ("data:image/png;base64,====", "its padding is not at its end"),
    ],
)
def test_other_forms_of_data_urls_are_refused(source: str, words: str) -> None:
    error = refusal(source)
    assert error.code == "invalid_image"
    assert words in error.message
    assert "QU" not in error.message


def test_data_that_is_too_large_is_refused_before_it_is_decoded() -> None:
    source = "data:;base64," + base64.b64encode(bytes(1000)).decode()
    assert len(content_of(source, 1000)) == 1000
    error = refusal(source, 999)
    assert error.code == "media_too_large"
    assert error.message == (
        "a picture may have at most 999 bytes, and has 1000 (media.image_bytes_max)"
    )
    # Nothing was decoded: it is not even base64.
    assert refusal("data:;base64," + "!" * 2000, 999).code == "media_too_large"


@pytest.mark.parametrize("url", ["http://a/b.png", "https://a/b.png", "HTTPS://A/"])
def test_http_urls_lead_elsewhere(url: str) -> None:
    assert source_of(part(url), bytes_max=MAX) == RemoteSource(url)


def test_a_url_has_an_end() -> None:
    url = "https://a/".ljust(URL_CHARACTERS_MAX, "x")
    assert source_of(part(url), bytes_max=MAX) == RemoteSource(url)
    assert str(URL_CHARACTERS_MAX) in refusal(url + "x").message


@pytest.mark.parametrize(
    "source", ["file:///etc/passwd", "ftp://a/b", "//a/b", "a.png", "", "iVBORw0KGgo=", " http://a"]
)
def test_nothing_else_is_an_address(source: str) -> None:
    assert refusal(source).message == "it must be an http, https or data URL"


def test_what_is_no_picture_has_another_code() -> None:
    assert refusal("data:audio/wav,x", kind="audio").code == "invalid_value"
    assert "a sound may" in refusal("data:;base64,QUJD", 1, "audio").message


@given(st.binary(min_size=1, max_size=200))
def test_every_file_comes_out_as_it_was_put_in(content: bytes) -> None:
    assert content_of("data:;base64," + base64.b64encode(content).decode()) == content


@given(st.text(max_size=60))
def test_any_text_is_a_source_or_refused_at_its_path(text: str) -> None:
    for source in (text, f"data:{text}", f"data:;base64,{text}", f"http://{text}"):
        failed = None
        try:
            read(part(source), 40)
        except SmgError as error:
            failed = error
        assert failed is None or failed.where == WHERE


@given(
    st.text(alphabet="AZaz09+/=_é", max_size=60),
    st.binary(max_size=40),
    st.integers(0, 60),
    st.booleans(),
)
def test_data_are_decoded_in_pieces_as_they_are_whole(
    text: str, data: bytes, at: int, compiled: bool
) -> None:
    encoded = base64.b64encode(data).decode()
    for odd in (encoded, text, encoded[:at] + text + encoded[at:]):
        if len(odd) % 4:
            # It is refused before; the standard library takes a sign of padding too much.
            continue
        part = MediaPart("image", f"data:;base64,{odd}", "x")
        source = InlineSource(part.source, len(part.source) - len(odd), 0)
        try:
            whole: bytes | None = binascii.a2b_base64(odd, strict_mode=True)
        except ValueError:
            whole = None
        if len(odd) % 4:
            whole = None  # the decoder takes a sign of padding too many
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "_PIECE_CHARACTERS", 8)
            if compiled and kernels.KERNELS is not None:
                rests = 0
            else:
                patch.setattr(kernels, "KERNELS", None)
                rests = max(0, (len(odd) - 1) // 8)
            if whole is None:
                with pytest.raises(SmgError):
                    decoded(source, part)
            else:
                rest = Mock()
                assert decoded(source, part, rest) == whole
                assert rest.call_count == rests
