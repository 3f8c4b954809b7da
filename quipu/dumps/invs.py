"""The signed bytes of a receipt as the columns and rows that they make, decoded with msgpack."""

from typing import NamedTuple

import msgpack

from quipu.dumps.tables import as_long
from quipu.verify.values import tagged

FIELDS = 7

InvRow = tuple[int, int, int, bytes]


class DecodedInv(NamedTuple):
    columns: tuple[bytes, int, int, bytes, bytes]  # signer, number, epoch, cluster id, inv id
    rows: list[InvRow]


def rows_of(preimage: bytes) -> DecodedInv | None:
    """None: not the bytes of a receipt."""
    try:
        fields = msgpack.unpackb(preimage, raw=False)
        if type(fields) is not list or len(fields) != FIELDS:
            return None
        _, cluster_id, signer, epoch, number, _, rows = fields
        columns = (signer, as_long(number), as_long(epoch), cluster_id, tagged("inv", preimage))
        made = [(no, as_long(journal), as_long(seq), event) for no, journal, seq, event in rows]
        if any(type(no) is not int or type(event) is not bytes for no, _, _, event in made):
            return None
        return DecodedInv(columns, made)
    except (ValueError, TypeError, msgpack.UnpackException):
        return None
