"""`python -m quipu.verify FILE`: 0 verified, 9 not verified, 2 wrong usage."""

import argparse
import base64
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from quipu.verify.bundle import Verified, verify
from quipu.verify.events import ERASED
from quipu.verify.rosters import Member
from quipu.verify.values import VerificationFailed

EXIT_VERIFIED, EXIT_USAGE, EXIT_FAILED = 0, 2, 9


def _shown(member: Member) -> dict[str, object]:
    return {"number": member.number, "node_id": member.node_id.hex(), "name": member.name}


def as_json(verified: Verified) -> dict[str, object]:
    entry = verified.entry
    return {
        "verified": True,
        "cluster_id": verified.cluster_id.hex(),
        "cluster_name": verified.cluster_name,
        "entry_id": f"{verified.event_id.hex()}:{verified.index}",
        "author": _shown(verified.author),
        "journal": verified.journal,
        "seq": verified.seq,
        "hlc": verified.hlc,
        "event_epoch": verified.event_epoch,
        "epoch": verified.epoch,
        "policy": verified.policy,
        "members": [_shown(member) for member in verified.members],
        "by": verified.by,
        "confirmed_by": [_shown(member) for member in verified.confirmed_by],
        "confirmed": len(verified.confirmed_by),
        "required": verified.required,
        "forced_epochs": list(verified.forced),
        "kind": entry.kind,
        "stream": entry.stream,
        "submitter": entry.submitter,
        "client_id": entry.client_id,
        "message_id": entry.message_id,
        "idempotency_key": entry.idempotency_key,
        "time_ms": entry.time_ms,
        "content_type": entry.content_type,
        "leaf_hash": entry.leaf_hash.hex(),
        "data_base64": base64.b64encode(entry.data).decode(),
    }


def _as_text(verified: Verified, pinned: bool) -> str:
    entry = verified.entry
    names = ", ".join(ascii(member.name) for member in verified.confirmed_by) or "nobody else"
    beside = "receipts beside the author's" if verified.by == "receipts" else "seals over the cut"
    return "\n".join(
        [
            f"entry      {verified.event_id.hex()}:{verified.index}",
            f"cluster    {verified.cluster_id.hex()} {verified.cluster_name!a}"
            + ("" if pinned else " (not pinned: give --genesis to check it)"),
            f"author     {verified.author.number} {verified.author.name!a}",
            f"place      journal {verified.journal}, seq {verified.seq}",
            f"stream     {entry.stream}, {len(entry.data)} bytes, {entry.content_type}"
            if entry.kind != ERASED
            else f"erased     its leaf hash was {entry.leaf_hash.hex()}",
            f"confirmed  by {len(verified.confirmed_by)} {beside}: {names}",
            f"required   {verified.required}",
            *([f"forced     epoch {_numbers(verified.forced)}"] if verified.forced else []),
            f"epoch      {verified.epoch}, policy {verified.policy}, members "
            + ", ".join(ascii(member.name) for member in verified.members),
            "final      yes",
        ]
    )


def _numbers(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _pinned(data: bytes) -> bytes:
    """A genesis file, or a cluster id in hex."""
    text = data.strip()
    if re.fullmatch(rb"[0-9a-fA-F]{64}", text):
        return bytes.fromhex(text.decode())
    return data


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="quipu.verify", description="verify a finality bundle")
    parser.add_argument("file", type=Path, help="the bundle")
    parser.add_argument("--genesis", type=Path, help="the cluster's genesis, or its id in hex")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args(arguments)
    try:
        bundle = chosen.file.read_bytes()
        genesis = None if chosen.genesis is None else _pinned(chosen.genesis.read_bytes())
    except OSError as error:
        print(f"cannot read {error.filename}: {error.strerror}", file=sys.stderr)
        return EXIT_USAGE
    try:
        verified = verify(bundle, genesis)
    except VerificationFailed as failure:
        if chosen.json:
            print(json.dumps({"verified": False, "reason": str(failure)}))
        else:
            print(f"not verified: {failure}", file=sys.stderr)
        return EXIT_FAILED
    if chosen.json:
        print(json.dumps(as_json(verified)))
    else:
        print(_as_text(verified, genesis is not None))
    return EXIT_VERIFIED


if __name__ == "__main__":
    sys.exit(main())
