"""Whether a log is signed as far as it says: ACCEPTED of a majority of those who vote there."""

from collections.abc import Mapping
from typing import NamedTuple

import msgpack

from quipu.verify.values import is_signed

FIELDS = 6


class Newest(NamedTuple):
    """The row of `journal` that has the certificate."""

    at: int  # its index
    digest: bytes  # its message_hash
    certificate: bytes
    serializers: bytes | None


def flaw_of(newest: Newest, cluster_id: bytes, keys: Mapping[int, bytes]) -> str | None:
    """What is wrong with it. `keys`: of members, by node number. An ACCEPTED of a higher index
    covers this one as well; its digest is of a log that the dump does not have."""
    try:
        statements = [msgpack.unpackb(one) for one in msgpack.unpackb(newest.certificate)]
        sets = msgpack.unpackb(newest.serializers or b"\x90")
        signers = set()
        for statement in statements:
            *said, signature = statement
            epoch, signer, regime, index, digest = said
            if index < newest.at:
                continue
            text = msgpack.packb([cluster_id, epoch, signer, regime, index, digest])
            if not is_signed(keys.get(signer, b""), "accepted", text, signature):
                return f"the signature of {signer} is not valid"
            if index == newest.at and digest != newest.digest:
                return f"{signer} signed another log"
            signers.add(signer)
        if not sets:
            return "nobody votes there"
        lacking = [numbers for numbers in sets if len(signers & {*numbers}) <= len(numbers) // 2]
    except (ValueError, TypeError, msgpack.UnpackException):
        return "it does not decode"
    if lacking:
        return f"signed by {sorted(signers)}, which is no majority of {lacking[0]}"
    return None
