"""Multicast (seed 002, open task): a frame that several peers get, sealed, in datagrams.

`stream (8), number (8), part, parts`, then NaCl's secretbox of a piece of the frame, whose nonce is
these 18 octets. Each sender has a key of its own, derived from the cluster's secret and its node
key; only peers that greeted it are told. Numbers begin anew with each start, as the key does.
"""

import hmac
from hashlib import sha256
from struct import Struct
from typing import NamedTuple

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from quipu.ledger.signing import KeyPair
from quipu.ledger.words import NodeId
from quipu.p2p import limits
from quipu.p2p.refusals import Cause, refuse
from quipu.p2p.words import Start, StreamId

TAG_CAST_KEY = b"quipu/cast-key/1\0"
TAG_CAST_STREAM = b"quipu/cast-stream/1\0"
TAG_SIG_CAST = b"quipu/sig/cast/1\0"

_HEAD = Struct(">8sQBB")
_NONCE_END = bytes(SecretBox.NONCE_SIZE - _HEAD.size)
_PIECE_BYTES = limits.DATAGRAM_BYTES_MAX - _HEAD.size - SecretBox.MACBYTES


class Stream(NamedTuple):
    id: StreamId
    key: bytes


class Piece(NamedTuple):
    stream: StreamId
    number: int  # of the frame
    part: int
    parts: int
    data: bytes


def cast_key(secret: bytes, key: KeyPair, cluster_id: bytes, start: Start) -> bytes:
    """Nobody else can derive it, other holders of the secret neither."""
    signature = key.sign(TAG_CAST_KEY + cluster_id + start.to_bytes(8, "big"))
    return hmac.digest(secret, TAG_CAST_KEY + signature, sha256)


def stream_of(sender: NodeId, key: bytes) -> Stream:
    """One key told by two nodes makes two streams: nobody takes another one's place."""
    return Stream(StreamId(sha256(TAG_CAST_STREAM + sender + key).digest()[:8]), key)


def seal_frame(stream: Stream, number: int, frame: bytes) -> list[bytes]:
    """The datagrams of a frame; of an empty one too, which says that the one before was sent."""
    assert len(frame) <= limits.CAST_PARTS_MAX * _PIECE_BYTES, "its sender bounds it"
    box = SecretBox(stream.key)
    cuts = range(0, max(len(frame), 1), _PIECE_BYTES)
    sealed: list[bytes] = []
    for part, at in enumerate(cuts):
        head = _HEAD.pack(stream.id, number, part, len(cuts))
        piece = box.encrypt(frame[at : at + _PIECE_BYTES], head + _NONCE_END).ciphertext
        sealed.append(head + piece)
    return sealed


def stream_named(datagram: bytes) -> StreamId:
    """As it says itself."""
    if len(datagram) > limits.DATAGRAM_BYTES_MAX:
        refuse(Cause.TOO_LARGE, "of a multicast")
    return StreamId(datagram[:8])


def open_piece(datagram: bytes, key: bytes) -> Piece:
    stream_named(datagram)
    head = datagram[: _HEAD.size]
    try:
        data = bytes(SecretBox(key).decrypt(datagram[_HEAD.size :], head + _NONCE_END))
    except CryptoError:  # also where it is shorter than its beginning
        refuse(Cause.FOREIGN_CAST)
    stream, number, part, parts = _HEAD.unpack(head)
    is_full = len(data) == _PIECE_BYTES
    if not (part < parts <= limits.CAST_PARTS_MAX and (is_full or part == parts - 1)):
        refuse(Cause.MALFORMED, f"part {part} of {parts}")
    return Piece(StreamId(stream), number, part, parts, data)


def signed_part(cluster_id: bytes, stream: StreamId, number: int, frame: bytes) -> bytes:
    """Of a frame that proves nothing by itself: whoever was told the key could have made it."""
    return TAG_SIG_CAST + cluster_id + stream + number.to_bytes(8, "big") + frame
