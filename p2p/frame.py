"""The head of a frame: 64 bits (seed 000), then the n octets of one DECEN command.

A frame is one ZeroMQ message of two parts: this head, and the content, which is not looked at here.
"""

import struct
from typing import NamedTuple

from quipu.ledger.words import NodeNo
from quipu.p2p.refusals import Cause, refuse

_HEADER = struct.Struct("!IHH")  # node number, metadata, n
HEADER_BYTES = _HEADER.size


class Head(NamedTuple):
    node_no: NodeNo
    metadata: int  # kept free: carried, never looked at
    command: bytes


def encode_head(node_no: NodeNo, command: bytes, metadata: int = 0) -> bytes:
    return _HEADER.pack(node_no, metadata, len(command)) + command


def decode_head(data: bytes) -> Head:
    if len(data) < HEADER_BYTES:
        refuse(Cause.TRUNCATED, f"{len(data)} octets, the header has {HEADER_BYTES}")
    node_no, metadata, size = _HEADER.unpack_from(data)
    command = data[HEADER_BYTES:]
    if len(command) < size:
        refuse(Cause.TRUNCATED, f"{len(command)} octets of command, n is {size}")
    if len(command) > size:
        refuse(Cause.TRAILING_BYTES, f"{len(command)} octets of command, n is {size}")
    return Head(NodeNo(node_no), metadata, command)


def split_frame(data: bytes) -> tuple[bytes, bytes]:
    """Head and content of a frame that comes in one piece."""
    if len(data) < HEADER_BYTES:
        refuse(Cause.TRUNCATED, f"{len(data)} octets, the header has {HEADER_BYTES}")
    end = HEADER_BYTES + int(_HEADER.unpack_from(data)[2])
    return data[:end], data[end:]
