"""What the parameters of paths, queries and headers mean: for /openapi.json and the pages."""

from typing import NamedTuple

from quipu.api.names import NAME_PATTERN


class Place(NamedTuple):
    """The part of a path that varies."""

    pattern: str
    meaning: str


PLACES = {
    "/v1/entries/{id}": Place(
        "^[0-9a-f]{64}:[0-9]{1,5}$", "Of an entry: the id of its event, a colon and its index."
    ),
    "/v1/events/{id}": Place("^[0-9a-f]{64}$", "Of an event: 64 hex digits."),
    "/v1/consumers/{name}": Place(NAME_PATTERN, "Of a consumer, as its first PUT chose it."),
    "/v1/sequences/{name}": Place(
        NAME_PATTERN, "Of a sequence, as its first lock or publish chose it."
    ),
    "/v1/sequences/{name}/{number}": Place("^[0-9]{1,19}$", "One that was published."),
    "/v1/clients/{number}": Place("^[0-9]{1,10}$", "Of a client, as POST /v1/clients gave it."),
    "/problems/{code}": Place("^[a-z-]+$", "A code of the closed list."),
    "/v1/admin/operations/{id}": Place(
        "^[0-9a-f]{16}$", "Of an operation, as the answer that began it gave it."
    ),
}
_IF_MATCH = "The ETag that it must still have, else 412; `*`: it must be there."
_READ_WAIT = "Wait so long until it is final: a duration such as 30s, at most 120s."
_STREAM_OF_OTHERS = "The stream of entries that name none; without it `default`."
MEANINGS = {
    "wait": "For which state to wait: stored, read or ordered.",
    "timeout": "How long to wait for the state: a duration such as 500ms or 30s, at most 120s.",
    "stream": "Only entries of this stream.",
    "author": "Only entries of this member: node id, number or name.",
    "limit": "At most so many items.",
    "verbose": "Show also what holds; any value.",
}
MEANINGS_OF_ONE = {  # where a name means something else at one endpoint
    "submit.stream": _STREAM_OF_OTHERS,
    "submit_batch.stream": _STREAM_OF_OTHERS,
    "submit_batch.atomic": "Store all as one event, or none.",
    "ingest.stream": _STREAM_OF_OTHERS,
    "ingest.content_type": "The media type of entries that name none.",
    "validate.stream": _STREAM_OF_OTHERS,
    "list.after": "Go on after this cursor; without it the list begins at its start.",
    "list.submitter": "Only entries of this submitter: the name of the token that sent them.",
    "list.client": "Only entries of the client with this number.",
    "list.state": "read, or stored: held and not final yet.",
    "list.since": "Only entries of this time (RFC 3339) or later.",
    "list.until": "Only entries before this time (RFC 3339).",
    "list.order": "asc: the oldest first; desc: the newest.",
    "list.wait": "Where the page would be empty, wait so long for something: at most 120s.",
    "list.idempotency_key": "Only the entry that this key was used for, by the caller or "
    "`submitter`, in `stream` (without it `default`).",
    "status.wait": _READ_WAIT,
    "status.state": "What is waited for: read, ordered, or executed (of what a client has signed).",
    "events.prefix": "How the id begins: 4 to 64 hex digits. It is needed.",
    "clients.after": "Only clients with a number above this one.",
    "sequences.after": "Only sequences with a name behind this one.",
    "sequence.consistency": "local: as applied here; linear: as acknowledged anywhere before.",
    "client_messages.wait": "For which state to wait: stored, read, ordered or executed.",
    "client_messages.again": "It may have been submitted before: what it says is not checked, so "
    "that it is ordered once more and answered as it was.",
    "client_results.upto": "Results up to this message id. It is needed.",
    "client_results.have": "The client holds the results up to here: they are deleted.",
    "client_results.signature": "Of the client, over cluster, client, upto and have, in hex. It is "
    "needed.",
    "sql.consistency": "local: as executed here; linear: as acknowledged anywhere before.",
    "journal_entries.after": "Only entries above this index.",
    "follow.from": "now, start, or a cursor; a header Last-Event-ID counts before it.",
    "follow.events": "Of entries, status, members, dag, receipts, with commas. dag tells each "
    "event as it is stored, with its fields, and how its state goes on; receipts tells the rows of "
    "/v1/cluster/receipts, first all, then those that moved, ten times a second at most; members, "
    "dag and receipts need cluster:read.",
    "ancestors.depth": "So many edges away.",
    "window.center": "The id of the event in the middle; without it the newest final one.",
    "window.before": "So many events before it.",
    "window.after": "So many events after it.",
    "diff.peer": "The other member: number, node id or name. It is needed.",
    "journal_propose.timeout": "How long to wait for the end of the change, at most 120s.",
    "diff.timeout": "How long its answer is waited for: more than 0, at most 60s.",
    "prune.keep": "What is younger stays: a duration such as 30d, 12h or 0s. Without it and "
    "`keep_mib` the settings say what is kept.",
    "prune.keep_mib": "The oldest go as long as the store holds more than so many MiB.",
    "prune.dry_run": "Say what would go, and change nothing.",
    "scrub.signatures": "Check every signature, too.",
    "readyz.for": "write: it takes entries; read: finality is possible; store: the last scrub "
    "found nothing wrong.",
}
HEADERS = {
    "submit": {"Idempotency-Key": "The same key and bytes again give the first answer."},
    "validate": {"Idempotency-Key": "As it would be sent with the entry."},
    "get": {"If-None-Match": "The ETag of the entry that you have: 304 where it is the same."},
    "keep_consumer": {
        "If-Match": _IF_MATCH,
        "If-None-Match": "`*`: there must be none yet, else 412.",
    },
    "forget_consumer": {"If-Match": _IF_MATCH},
    "follow": {"Last-Event-ID": "The cursor of the last event that was seen, as SSE sends it."},
}


def meaning_of(operation: str, name: str) -> str:
    """Of a parameter of the query."""
    found = MEANINGS_OF_ONE.get(f"{operation}.{name}") or MEANINGS.get(name)
    assert found is not None, f"{operation} has a parameter {name} without a meaning"
    return found
