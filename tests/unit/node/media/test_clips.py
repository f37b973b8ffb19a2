"""Videos and sound inside of requests: what is handed on as it came, and what is refused with its path."""

import base64
import binascii

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaKind, MediaPart
from smg_node.media import clips
from smg_node.media.clips import check_clip, plain_url

WHERE = "messages[0].content[1].video_url"
FRAME = base64.b64encode(b"\xff\xd8\xff frame").decode()


def size(source: str, kind: MediaKind = "video", bytes_max: int = 1 << 20) -> int:
    return check_clip(MediaPart(kind, source, WHERE), bytes_max=bytes_max)


def refusal(source: str, kind: MediaKind = "video", bytes_max: int = 1 << 20) -> SmgError:
    with pytest.raises(SmgError) as raised:
        size(source, kind, bytes_max)
    assert (raised.value.status, raised.value.where) == (400, WHERE)
    return raised.value


@given(st.binary(min_size=1, max_size=400))
def test_the_bytes_of_a_clip_are_counted_without_decoding_it(content: bytes) -> None:
    encoded = base64.b64encode(content).decode()
    assert size(f"data:video/mp4;base64,{encoded}") == len(content)
    assert size(f"data:audio/wav;codecs=1;base64,{encoded}", "audio") == len(content)


@given(st.text(alphabet="ABab01+/= \n-_,é%", max_size=24), st.sampled_from([4, 1 << 18]))
def test_what_is_taken_is_what_a_decoder_takes(text: str, piece: int) -> None:
    source = f"data:video/mp4;base64,{text}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clips, "_PIECE_CHARACTERS", piece)
        try:
            found = size(source)
        except SmgError:
            return
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        # Bits behind the last whole byte: decoders that are strict about nothing else take them.
        decoded = binascii.a2b_base64(text)
    assert found == len(decoded)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_a_video_may_be_its_frames(count: int) -> None:
    source = f"data:video/jpeg;base64,{','.join([FRAME] * count)}"
    assert size(source) == len(FRAME) // 4 * 3 * count


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("data:video/mp4;base64,", "video", "has no data"),
        ("data:video/mp4,AAAA", "video", "must be base64: data:video/mp4;base64,…"),
        ("data:audio/wav,AAAA", "audio", "must be base64: data:audio/wav;base64,…"),
        ("data:video/mp4;base64", "video", "must be base64"),
        ("data:video/mp4;base64,AAA", "video", "no multiple of 4"),
        ("data:video/mp4;base64,AA=A", "video", "a character that base64 does not have"),
        ("data:video/mp4;base64,A===", "video", "a character that base64 does not have"),
        ("data:video/mp4;base64,AA A", "video", "a character that base64 does not have"),
        ("data:video/mp4;base64,AAA\ud800", "video", "a character that base64 does not have"),
        (f"data:video/mp4;base64,{FRAME},{FRAME}", "video", "base64"),
        (f"data:audio/jpeg;base64,{FRAME},{FRAME}", "audio", "base64"),
        (f"data:video/jpeg;base64,{FRAME},", "video", "a frame's length"),
        (f"data:video/jpeg;base64,,{FRAME}", "video", "a frame's length"),
        ("data:video/jpeg;base64,", "video", "a frame's length"),
        (f"data:video/jpeg;base64,{FRAME},AA-A", "video", "a character"),
    ],
)
def test_what_is_no_data_is_refused_with_its_path(source: str, kind: MediaKind, words: str) -> None:
    assert words in refusal(source, kind).message


@pytest.mark.parametrize(
    ("kind", "source", "words"),
    [
        ("video", f"data:video/mp4;base64,{FRAME}", "a video may have at most 4 bytes"),
        ("video", f"data:video/jpeg;base64,{FRAME},{FRAME}", "a video may have at most 4 bytes"),
        ("audio", f"data:audio/wav;base64,{FRAME}", "a sound may have at most 4 bytes"),
    ],
)
def test_what_is_too_large_names_its_own_setting(kind: MediaKind, source: str, words: str) -> None:
    error = refusal(source, kind, bytes_max=4)
    assert error.code == "media_too_large"
    assert words in error.message
    assert f"(media.{kind}_bytes_max)" in error.message


def test_a_thread_rests_between_pieces() -> None:
    rests: list[None] = []
    source = f"data:video/mp4;base64,{'AAAA' * (1 << 17)}"
    part = MediaPart("video", source, WHERE)
    check_clip(part, bytes_max=1 << 30, rest=lambda: rests.append(None))
    assert len(rests) == 1


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        ("DATA:Video/MP4;BASE64,AbCd", "data:video/mp4;base64,AbCd"),
        ("data:video/mp4;base64,AbCd", "data:video/mp4;base64,AbCd"),
        ("HTTPS://x/A,B", "HTTPS://x/A,B"),
        ("DATA:", "DATA:"),
    ],
)
def test_engines_read_the_head_of_a_data_url_in_small_letters(address: str, plain: str) -> None:
    assert plain_url(address) == plain
