"""Bugs to plant: each takes one check out of a decoder, or bends it, as a slip would.

A bug is a piece of a function's source and what stands there in its place. The changed function
takes the place of the true one wherever it is named, until the test is over.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from quipu.api import bodies as api_bodies
from quipu.api import cursors, ingest_frames
from quipu.client import frames
from quipu.dumps import manifest
from quipu.ledger import (
    bundle,
    canonical,
    entry,
    epochs,
    event,
    evidence,
    inv,
    merkle,
    ready,
    seals,
)
from quipu.ledger.log import entry as log_entry
from quipu.ledger.log import evidence as log_evidence
from quipu.ledger.log import statements, suffix
from quipu.ledger.order import config_items, journal, wishes
from quipu.p2p import addresses, bodies, cast, decen, forms, frame, gossip, hello, link_keys
from quipu.storage import event_blob, records
from quipu.storage.executors import interpreter
from quipu.verify import bundle as offline_bundle
from quipu.verify import values


@dataclass(frozen=True)
class Bug:
    name: str
    function: Callable[..., Any]
    old: str
    new: str

    @property
    def nearest(self) -> str:
        """The target that meets it soonest."""
        return NEAREST[self.function]


# Looks into the value first, of whatever form it is.
GENERIC = """
    try:
        msgspec.msgpack.decode(data)
    except (msgspec.DecodeError, ValueError):
        pass
"""
BUGS = [
    Bug(
        "canonical check skipped",
        canonical.Canonical.decode,
        "_encoder.encode(value) != data",
        "False",
    ),
    Bug("text that is not UTF-8 crashes", canonical.Canonical.decode, ", UnicodeDecodeError", ""),
    Bug(
        "recursion guard missing",
        canonical.Canonical.decode,
        "    try:\n",
        GENERIC + "    try:\n",
    ),
    Bug("event version ignored", event.decode_header, "header.version != EVENT_VERSION", "False"),
    Bug("parents may be unsorted", event._check_parents, "a >= b for", "a == b for"),
    Bug("a parent may stand twice", event._check_parents, "a >= b for", "a > b for"),
    Bug("eight parents", event._check_parents, "limits.PARENTS_MAX", "limits.PARENTS_MAX + 1"),
    Bug("prev may be a parent", event._check_parents, "header.prev in parents", "False"),
    Bug("seq 0", event.decode_header, "header.seq < 1", "header.seq < 0"),
    Bug("prev of seq 1 unchecked", event.decode_header, "header.seq == 1 and", "False and"),
    Bug(
        "count of entries unchecked",
        event.read_body,
        "len(entries) != header.entry_count",
        "False",
    ),
    Bug("size of body unchecked", event.read_body, "len(body) == header.body_size", "True"),
    Bug(
        "root of large events unchecked",
        event.read_body,
        "if merkle.root_of(",
        "if len(entries) <= 16 and merkle.root_of(",
    ),
    Bug("entries undecoded", event.read_body, "check_entries(left)", "pass"),
    Bug(
        "length of signature unchecked",
        event.decode_event,
        "len(signature) != signing.SIGNATURE_BYTES",
        "False",
    ),
    Bug(
        "stream may end in a line break",
        entry.decode_entry,
        "is_stream_name(entry.stream)",
        "is_stream_name(entry.stream.removesuffix('\\n'))",
    ),
    Bug("texts bounded in characters", canonical.fits_bytes, "len(text.encode())", "len(text)"),
    Bug("content type with line breaks", entry._is_media_type, " and text.isprintable()", ""),
    Bug("rows of receipts may be unsorted", inv.decode_inv, "a >= b for", "a == b for"),
    Bug("receipt for seq 0", inv.decode_inv, "row.seq < 1", "row.seq < 0"),
    Bug("a member may stand twice", epochs._check_roster, "!= len(members)", "> len(members)"),
    Bug("cut rows may be unsorted", epochs.decode_document, "sorted(set(rows)) != rows", "False"),
    Bug("path may be too long", merkle.root_from_path, "used != len(path)", "False"),
    Bug(
        "proof of two slots",
        evidence._check_author,
        "(low.author, low.journal, low.seq) !=",
        "(low.author, low.journal, high.seq) !=",
    ),
    Bug(
        "receipts of two signers convict one",
        evidence._check_signer,
        "low_inv.signer != high_inv.signer",
        "False",
    ),
    Bug("a member counts twice", bundle.check_receipts, "sorted(set(signers)) != signers", "False"),
    Bug("receipts of any epoch", bundle.check_receipts, "inv.epoch != epoch.number", "False"),
    Bug("author's receipt left out", bundle.check_receipts, "author_no not in signers", "False"),
    Bug("seals uncounted", seals.read_seals, "len(sealed) < needed", "False"),
    Bug("seals of another roster", seals.read_seals, "seal.array.close != close", "False"),
    Bug(
        "numbers of a frame may end beyond u64",
        ingest_frames.read_frame,
        "frame.first > _NUMBER_MAX - len(frame.entries) + 1",
        "False",
    ),
    Bug(
        "text of a frame that is not UTF-8 crashes",
        ingest_frames.read_frame,
        "except UnicodeDecodeError",
        "except KeyError",
    ),
    Bug("offline: signatures unread", values.is_signed, "return False", "return True"),
    Bug("offline: canonical check skipped", values.decoded, "again == data", "True"),
    Bug(
        "offline: one receipt too few",
        offline_bundle._by_receipts,
        "len(others) >= epoch.confirms,",
        "len(others) >= epoch.confirms - 1,",
    ),
    Bug("frame: n may be too small", frame.decode_head, "len(command) > size", "False"),
    Bug("frame: n may be too large", frame.decode_head, "len(command) < size", "False"),
    Bug("marker half read", decen.decode_command, "len(MARKER)) != MARKER", "2)[0] != MARKER[0]"),
    Bug("command version ignored", decen.decode_command, "version != COMMAND_VERSION", "False"),
    Bug("octets after a command", decen._Octets.end, "self._at < len(self._data)", "False"),
    Bug("command cut short", decen._Octets.take, "len(taken) < count", "count and not taken"),
    Bug("pool without a name", decen._Octets.pool, "not text", "False"),
    Bug("129 pools", decen._Octets.several, "count > count_max", "count > count_max + 1"),
    Bug("header without =", decen._Octets.pair, "not name or not equals", "not name"),
    Bug("text is mended", decen._Octets.text, "data.decode()", 'data.decode(errors="replace")'),
    Bug("escapes in texts", forms.has_control, "_CONTROL.search(text) is not None", "False"),
    Bug("key of the link unread", hello.verify_hello, "link_key_of(peer) != key", "False"),
    Bug("a copy of oneself", hello.verify_hello, "peer == card.node_id", "False"),
    Bug("HMAC unread", hello._check_macs, "if any(", "if True or any("),
    Bug("HMAC of any start", hello.hello_mac, ' + start.to_bytes(8, "big")', ""),
    Bug("only later versions", hello._highest_common, "common < max", "highest < max"),
    Bug(
        "leading zeros",
        hello._Headers.number,
        "not _NUMBER.fullmatch(value)",
        "not value.isdigit()",
    ),
    Bug("hex in capitals", hello._octets, "not _HEX.fullmatch(text)", "text.strip() != text"),
    Bug(
        "a node id that is no key", link_keys.link_key_of, "except CryptoError", "except TypeError"
    ),
    Bug(
        "endpoint: signature unread",
        addresses.check_endpoint,
        "if not verify(",
        "if False and verify(",
    ),
    Bug("endpoint: everywhere", addresses.is_host, "not address.is_unspecified and ", ""),
    Bug("endpoint: a number as name", addresses.is_host, "not is_number and ", ""),
    Bug("any expected action", gossip.rule_of, "message.action != rule.action", "False"),
    Bug(
        "signature where none belongs",
        gossip.rule_of,
        "(message.signature is not None) != rule.is_signed",
        "rule.is_signed and message.signature is None",
    ),
    Bug("leaving in any form", gossip.rule_of, "decode_leaving(encode(message))", "pass"),
    Bug("body unsigned", gossip._signed_part, "            message.body,\n", ""),
    Bug("signed for any cluster", gossip._signed_part, "TAG_GOSSIP + cluster_id", "TAG_GOSSIP"),
    Bug("text of a body unread", bodies.decode_body, "not is_text(text, bytes_max)", "False"),
    Bug("cast: a short part in the midst", cast.open_piece, "is_full or part == parts - 1", "True"),
    Bug("cast: parts beyond the last", cast.open_piece, "part < parts <=", "parts <="),
    Bug("cast: any count of parts", cast.open_piece, "parts <= limits.CAST_PARTS_MAX", "parts"),
    Bug(
        "cast: number outside of the nonce",
        cast.open_piece,
        "head + _NONCE_END",
        "head[:8] + bytes(8) + head[16:] + _NONCE_END",
    ),
    Bug(
        "leaving of a later version unread",
        gossip._one_of_any_version,
        "beginning.kind == LEAVING_KIND",
        "False",
    ),
    Bug(
        "malformed passes as later",
        gossip._one_of_any_version,
        "beginning.version == GOSSIP_VERSION",
        "False",
    ),
    Bug(
        "a promise that ends before it begins",
        statements.decode_promise,
        "promise.last_index < promise.base_index",
        "False",
    ),
    Bug(
        "lives of a node stand twice",
        statements.decode_promise,
        "numbers != sorted(set(numbers))",
        "numbers != sorted(numbers)",
    ),
    Bug("a log without serializers", suffix.decode_base, "not base.old or ", ""),
    Bug("entry at index 0", log_entry.decode_log_entry, "entry.index < 1", "entry.index < 0"),
    Bug(
        "a promise hides nothing",
        log_evidence.contradiction,
        "accepted.regime >= other.regime",
        "accepted.regime > other.regime",
    ),
    Bug("READY unsigned", ready.check_ready, "if not verify(", "if False and verify("),
    Bug(
        "config item of many nodes",
        config_items.read_config,
        "is_sorted and is_single",
        "is_sorted",
    ),
    Bug("a candidate twice", wishes.check_wish, "len(nodes) != len(wish.candidates)", "False"),
    Bug(
        "parts in any order",
        journal.decode_record,
        "names != sorted(set(names))",
        "len(names) != len(set(names))",
    ),
    Bug(
        "record: checksum unread", records.unguarded, "value[: _CHECKSUM.size] != expected", "False"
    ),
    Bug(
        "record that does not decode crashes",
        records.decode_signer,
        "except msgspec.DecodeError",
        "except KeyError",
    ),
    Bug("blob: checksum unread", event_blob._checked_parts, "checksum != crc32", "0 != 0 * crc32"),
    Bug(
        "blob: root unread", event_blob._checked_entries, "(leaves[0] if", "False and (leaves[0] if"
    ),
    Bug("blob: id unread", event_blob._checked_parts, "event_id(header) != identity", "False"),
    Bug("manifest in any form", manifest.from_bytes, "to_bytes(found) != data", "False"),
    Bug("cursor unchecked", cursors.read_opaque, '.to_bytes(_CHECK_BYTES, "big") != check', " < 0"),
    Bug(
        "msgpack text that is not UTF-8 crashes",
        api_bodies.decoded,
        "UnicodeDecodeError, ",
        "",
    ),
    Bug("NaN as a parameter", interpreter._refuse_unfit, "not math.isnan(value)", "True"),
    Bug(
        "integers beyond 64 bits", interpreter._refuse_unfit, "<= limits.INTEGER_MAX:", "<= 2**64:"
    ),
    Bug("a client fails at a text", frames.decode_answer, "UnicodeDecodeError", "KeyError"),
    Bug("port 0 in a URI", addresses.parse_endpoint, "not 0 < int(port)", "not 0 <= int(port)"),
]


NEAREST: dict[Callable[..., Any], str] = {
    canonical.Canonical.decode: "entry",
    canonical.fits_bytes: "entry",
    entry.decode_entry: "entry",
    entry._is_media_type: "entry",
    event.decode_header: "header",
    event._check_parents: "header",
    event.read_body: "body",
    event.decode_event: "event",
    inv.decode_inv: "inv",
    epochs._check_roster: "document",
    epochs.decode_document: "document",
    evidence._check_author: "proof",
    evidence._check_signer: "proof",
    merkle.root_from_path: "bundle",
    bundle.check_receipts: "bundle",
    seals.read_seals: "bundle",
    ingest_frames.read_frame: "ingest-frame",
    values.is_signed: "bundle-offline",
    values.decoded: "bundle-offline",
    offline_bundle._by_receipts: "bundle-offline",
    cast.open_piece: "cast",
    frame.decode_head: "frame",
    decen.decode_command: "command",
    decen._Octets.end: "command",
    decen._Octets.take: "command",
    decen._Octets.pool: "command",
    decen._Octets.several: "command",
    decen._Octets.pair: "command",
    decen._Octets.text: "command",
    forms.has_control: "command",
    hello.verify_hello: "hello",
    hello._check_macs: "hello",
    hello.hello_mac: "hello",
    hello._highest_common: "hello",
    hello._Headers.number: "hello",
    hello._octets: "hello",
    link_keys.link_key_of: "hello",
    addresses.check_endpoint: "endpoint",
    addresses.is_host: "endpoint",
    gossip.rule_of: "gossip",
    gossip._signed_part: "gossip",
    bodies.decode_body: "gossip",
    gossip._one_of_any_version: "content",
    statements.decode_promise: "promise",
    suffix.decode_base: "log-base",
    log_entry.decode_log_entry: "log-entry",
    log_evidence.contradiction: "log-proof",
    ready.check_ready: "ready",
    config_items.read_config: "config-item",
    wishes.check_wish: "roster-item",
    journal.decode_record: "journal-record",
    records.unguarded: "branch-record",
    records.decode_signer: "signer-record",
    event_blob._checked_parts: "event-blob",
    event_blob._checked_entries: "event-blob",
    manifest.from_bytes: "manifest",
    cursors.read_opaque: "cursor-text",
    api_bodies.decoded: "packed-entry",
    interpreter._refuse_unfit: "statement",
    frames.decode_answer: "ingest-answer",
    addresses.parse_endpoint: "uri",
}


@contextmanager
def planted(bug: Bug) -> Iterator[None]:
    changed = changed_function(bug)
    places = list(_places(bug.function))
    assert places, bug.name
    try:
        for owner, name in places:
            setattr(owner, name, changed)
        yield
    finally:
        for owner, name in places:
            setattr(owner, name, bug.function)


def changed_function(bug: Bug) -> Callable[..., Any]:
    source = textwrap.dedent(inspect.getsource(bug.function))
    assert source.count(bug.old) == 1, (
        f"{bug.name}: {bug.old!r} stands {source.count(bug.old)} times"
    )
    module = sys.modules[bug.function.__module__]
    scope = dict(vars(module))
    exec(compile(source.replace(bug.old, bug.new), bug.name, "exec"), scope)
    made: Callable[..., Any] = scope[bug.function.__name__]
    return made


def _places(function: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    """Wherever the function is named in the product: modules, and the class it is a method of."""
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("quipu"):
            continue
        for key, value in list(vars(module).items()):
            if value is function:
                yield module, key
            elif isinstance(value, type) and value.__module__ == name:
                yield from ((value, k) for k, v in vars(value).items() if v is function)
