import gzip
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.codecs.compression import Decompressor, content_encoding
from service.errors import MalformedBodyError, MediaTypeError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "zstd": zstd.compress,
}
ENCODINGS = st.sampled_from(sorted(COMPRESS))


def whole(encoding, body, most=1000):
    source = Decompressor(encoding, body)
    pieces = []
    while piece := source.read(most):
        assert len(piece) <= most
        pieces.append(piece)
    return b"".join(pieces)


@given(ENCODINGS, st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 400))
def test_what_was_compressed_comes_out_again_in_pieces_of_any_size(encoding, parts, most):
    # Members and frames may follow one another, and are one body.
    body = b"".join(COMPRESS[encoding](part) for part in parts)
    assert whole(encoding, body, most) == b"".join(parts)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_of_many_slices_comes_out_again(encoding):
    content = bytes(zlib.crc32(i.to_bytes(4, "big")) & 0xFF for i in range(300_000))
    assert whole(encoding, COMPRESS[encoding](content) * 2, 100_000) == content * 2


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_that_unpacks_to_much_gives_no_more_than_is_asked_for(encoding):
    source = Decompressor(encoding, COMPRESS[encoding](bytes(50_000_000)))
    assert source.read(10) == bytes(10)
    assert len(source.read(70_000)) == 70_000


@given(ENCODINGS, st.binary(min_size=1, max_size=200), st.data())
def test_a_body_that_is_cut_off_is_refused(encoding, content, data):
    body = COMPRESS[encoding](content)
    with pytest.raises(MalformedBodyError, match="cut off"):
        whole(encoding, body[: data.draw(st.integers(0, len(body) - 1))])


@given(ENCODINGS, st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(encoding, body):
    with suppress(MalformedBodyError):
        whole(encoding, body)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_what_follows_and_is_of_no_encoding_is_refused(encoding):
    with pytest.raises(MalformedBodyError, match=f"a {encoding} body, as Content-Encoding says"):
        whole(encoding, COMPRESS[encoding](b"{}") + b"and more, which is none")


def test_a_frame_that_wants_a_large_window_is_refused():
    options: dict[int, int] = {zstd.CompressionParameter.window_log: 25}
    compressor = zstd.ZstdCompressor(options=options)
    body = compressor.compress(bytes(100)) + compressor.flush()
    with pytest.raises(MalformedBodyError, match="zstd"):
        whole("zstd", body)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_endless_empty_streams_are_refused(encoding):
    with pytest.raises(MalformedBodyError, match="at most 2048"):
        whole(encoding, COMPRESS[encoding](b"") * 2049)


@given(ENCODINGS, st.lists(st.binary(max_size=300), min_size=1, max_size=3), st.integers(1, 400))
def test_one_stream_can_be_read_alone_and_the_rest_afterwards(encoding, parts, most):
    body = b"".join(COMPRESS[encoding](part) for part in parts)
    source = Decompressor(encoding, body)
    first = source.read(most, most_streams=1)
    assert first == parts[0][:most]
    if len(parts) > 1:
        assert not source.is_through
    elif len(parts[0]) < most:
        assert source.is_through
    pieces = [first]
    while piece := source.read(most):
        pieces.append(piece)
    assert b"".join(pieces) == b"".join(parts)
    assert source.is_through


@pytest.mark.parametrize("header", [None, "", "identity", " Identity "])
def test_a_body_may_have_no_coding(header):
    assert content_encoding(header) == "identity"


def test_a_coding_is_named_in_any_case():
    assert content_encoding(" GZip ") == "gzip"


@pytest.mark.parametrize("header", ["br", "deflate", "gzip, zstd", "gzip;q=1"])
def test_another_coding_or_several_are_refused_with_those_that_are_read(header):
    with pytest.raises(MediaTypeError, match="gzip or zstd") as caught:
        content_encoding(header)
    assert caught.value.headers == {"Accept-Encoding": "gzip, zstd"}
