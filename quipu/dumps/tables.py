"""The tables of a dump: columns and their types, with the unit last in each name.

Numbers of 64 bits are LONGs of the same bits; ids and hashes are 32 bytes.
"""

from typing import TYPE_CHECKING, NamedTuple

from quipu.dumps.limits import EID_BITS, U63_MAX, U64_SPAN

if TYPE_CHECKING:
    import pyarrow as pa

ID, LONG, INT, TEXT, BYTES, BOOL, BYTES_LIST = (
    "id",
    "long",
    "int",
    "text",
    "bytes",
    "bool",
    "list of bytes",
)


class Column(NamedTuple):
    name: str
    kind: str
    meaning: str
    optional: bool = False


def _c(name: str, kind: str, meaning: str) -> Column:
    return Column(name.rstrip("?"), kind, meaning, name.endswith("?"))


_SLOT = (
    _c("author_no", INT, "node number of the author"),
    _c("journal", LONG, "the author's journal"),
    _c("seq", LONG, "position in the journal, from 1"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "events": (
        _c("id", ID, "SHA-256 of the tagged header"),
        _c("eid", LONG, "its first 63 bits"),
        _c("author", ID, "node id of the author"),
        *_SLOT,
        _c("branch", INT, "0, or the number of a second branch of the cord"),
        _c("epoch", LONG, "roster in which it was written"),
        _c("prev", ID, "the event before it in the cord; the cluster id at seq 1"),
        _c("hlc", LONG, "milliseconds << 16 | counter"),
        _c("depth", LONG, "1 + the greatest depth below"),
        _c("kind", INT, "0: entries"),
        _c("entry_count", INT, "entries in its body"),
        _c("body_bytes", LONG, "size of its body"),
        _c("entries_root", ID, "RFC 6962 root over its entries"),
        _c("header", BYTES, "the signed header, verbatim"),
        _c("signature", BYTES, "Ed25519 by the author"),
        _c("state", TEXT, "`read` or `unread`, when this file was written"),
        _c("read_confirms", INT, "receipts of others in the newest epoch, at that time"),
        _c(
            "feed_pos?",
            LONG,
            "the node's own number; null while Unread, or pruned",
        ),
        _c("first_seen_us?", LONG, "when it came; null: this node does not keep it"),
        _c("read_us?", LONG, "when it became Read; null: this node does not keep it"),
    ),
    "edges": (
        _c("child", ID, "the event that names"),
        _c("parent", ID, "the event named"),
        _c("ceid", LONG, "first 63 bits of the child"),
        _c("peid", LONG, "first 63 bits of the parent"),
        _c("ordinal", INT, "0: prev; 1 to 7: parents in their order"),
    ),
    "entries": (
        _c("event", ID, "its event"),
        _c("eid", LONG, "first 63 bits of that"),
        _c("position", INT, "its place in the event, from 0"),
        _c("stream", TEXT, "name of the stream; empty: the entry was erased"),
        _c("client_id?", LONG, "of a numbered client"),
        _c("message_id?", LONG, "the client's number for it"),
        _c("time_ms", LONG, "as the app gave it, else the event's"),
        _c("content_type", TEXT, "media type of the data"),
        _c("data_bytes", LONG, "size of the data"),
        _c("leaf_hash", ID, "its leaf in the event's Merkle tree"),
        _c("data?", BYTES, "the data, where the dump was asked for it"),
    ),
    "receipts": (
        _c("signer_no", INT, "node number of the signer"),
        _c("number", LONG, "of the Inv: milliseconds << 16 | counter"),
        _c("epoch", LONG, "in which it was signed"),
        *_SLOT,
        _c("event", ID, "the event named: it and all below it in the cord are held"),
        _c("eid", LONG, "first 63 bits of that"),
    ),
    "invs": (
        _c("signer", ID, "node id of the signer"),
        _c("signer_no", INT, "its node number"),
        _c("number", LONG, "strictly increasing for each signer"),
        _c("epoch", LONG, "in which it was signed"),
        _c("row_count", INT, "rows of `receipts` that it makes"),
        _c("inv_id", ID, "hash of the preimage"),
        _c("preimage", BYTES, "what is signed, verbatim"),
        _c("signature", BYTES, "Ed25519 by the signer"),
        _c("received_us?", LONG, "when it came; null: this node does not keep it"),
    ),
    "config": (
        _c("epoch", LONG, "number of the epoch"),
        _c("document", BYTES, "the genesis (epoch 1) or the epoch document, verbatim"),
        _c("seals", BYTES_LIST, "the seals that opened it"),
    ),
    "members": (
        _c("epoch", LONG, "number of the epoch"),
        _c("node_no", INT, "node number"),
        _c("node_id", ID, "public key"),
        _c("name", TEXT, "its name"),
        _c("confirms", INT, "MAX_CONFIRMS of that epoch"),
    ),
    "cuts": (
        _c("epoch", LONG, "the epoch that this cut opens"),
        *_SLOT,
        _c("event", ID, "the last event of the cord that the cut makes Read"),
    ),
    "frontier": (
        _c("author_no", INT, "node number of the author"),
        _c("journal", LONG, "the author's journal"),
        _c("branch", INT, "0, or the number of a second branch"),
        _c("held_seq", LONG, "highest that the node holds"),
        _c("held", ID, "the event there"),
        _c("read_seq", LONG, "highest that is Read; 0: none"),
        _c("cut_seq", LONG, "highest that a cut contains"),
    ),
    "evidence": (
        _c("culprit", ID, "node id of who signed two things"),
        _c("as_signer", BOOL, "of receipts; else of events"),
        _c("data", BYTES, "the proof"),
    ),
    "journal": (
        _c("regime", LONG, "in which the entry was first proposed"),
        _c("index", LONG, "index in the log; the first one follows its base"),
        _c("position", INT, "place of the item within the index, from 0"),
        _c("author_no?", INT, "node number of the author; null: the item orders no event"),
        _c("journal?", LONG, "the author's journal"),
        _c("seq?", LONG, "position in the journal, from 1"),
        _c("event?", ID, "the event that is ordered"),
        _c("message_hash", ID, "running digest of the log with this index"),
        _c("prev_hash", ID, "that before it; within an index that of the index"),
        _c("certificate?", BYTES, "at the newest: signatures of a majority, as an array"),
        _c("serializers?", BYTES, "there: one array of node numbers, or two while sets change"),
    ),
    "clients": (
        _c("client_id", LONG, "the client"),
        _c("key?", ID, "its public key"),
        _c("watermark", LONG, "all up to this message are executed"),
        _c("released", LONG, "all up to this result the client holds: they are gone"),
        _c("ended", BOOL, "it signed two requests under one number"),
    ),
    "results": (
        _c("client_id", LONG, "the client"),
        _c("message_id", LONG, "its message"),
        _c("request", ID, "digest of the request"),
        _c("digest", ID, "of the result, without its words for people"),
        _c("result", BYTES, "what it was answered: msgpack `[code, results, words]`"),
    ),
    "executed": (
        _c("log_index", LONG, "the executor had applied the log up to here"),
        _c("digest", ID, "its running digest of requests and results then"),
    ),
    "refused": (
        _c("id", ID, "an event that was not taken"),
        _c("reason", TEXT, "why"),
        _c("seen_us", LONG, "when"),
    ),
}

WITHOUT_SOURCE = ("refused",)  # a store keeps nothing of what it refused
OF_EXECUTORS = ("clients", "executed", "results")  # left out where a node has run none


def eid_of(identity: bytes) -> int:
    """What graphs use in place of an id."""
    return int.from_bytes(identity[:8], "big") >> (64 - EID_BITS)


def as_long(number: int) -> int:
    """The LONG of the same bits."""
    return number if number <= U63_MAX else number - U64_SPAN


def as_u64(number: int) -> int:
    return number if number >= 0 else number + U64_SPAN


def arrow_schema(table: str) -> "pa.Schema":
    import pyarrow as pa

    kinds = {
        ID: pa.binary(32),
        LONG: pa.int64(),
        INT: pa.int32(),
        TEXT: pa.string(),
        BYTES: pa.binary(),
        BOOL: pa.bool_(),
        BYTES_LIST: pa.list_(pa.binary()),
    }
    return pa.schema([pa.field(c.name, kinds[c.kind], c.optional) for c in TABLES[table]])
