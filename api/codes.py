"""The closed list of what can go wrong, with what each code means and what to do next.

Each code has a status, a page at /problems/{code}, a look-up on the command line and a test that
triggers it. A code is never used again for something else.
"""

from enum import StrEnum
from typing import NamedTuple

from quipu.api.client_codes import CLIENT_KINDS


class Code(StrEnum):
    MALFORMED_BODY = "malformed-body"
    INVALID_FIELD = "invalid-field"
    UNKNOWN_FIELD = "unknown-field"
    INVALID_PARAMETER = "invalid-parameter"
    UNKNOWN_PARAMETER = "unknown-parameter"
    INVALID_ID = "invalid-id"
    INVALID_CURSOR = "invalid-cursor"
    INVALID_HEADER = "invalid-header"
    BAD_REQUEST = "bad-request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not-found"
    ENTRY_NOT_FOUND = "entry-not-found"
    EVENT_NOT_FOUND = "event-not-found"
    OPERATION_NOT_FOUND = "operation-not-found"
    REPORT_NOT_FOUND = "report-not-found"
    CONSUMER_NOT_FOUND = "consumer-not-found"
    PEER_NOT_FOUND = "peer-not-found"
    SEQUENCE_NOT_FOUND = "sequence-not-found"
    NUMBER_NOT_FOUND = "number-not-found"
    NUMBER_GONE = "number-gone"
    CLIENT_NOT_FOUND = "client-not-found"
    ACL_NOT_FOUND = "acl-not-found"
    METHOD_NOT_ALLOWED = "method-not-allowed"
    NOT_ACCEPTABLE = "not-acceptable"
    BODY_TIMEOUT = "body-timeout"
    NOT_READ = "not-read"
    NOT_ERASABLE = "not-erasable"
    KEY_IN_FLIGHT = "key-in-flight"
    OPERATION_RUNNING = "operation-running"
    CONSUMER_LIMIT = "consumer-limit"
    LOCKED = "locked"
    OLD_TOKEN = "old-token"  # noqa: S105 - a code, no secret
    NOT_NEXT = "not-next"
    NOT_HOLDER = "not-holder"
    TOO_MANY_SEQUENCES = "too-many-sequences"
    EXHAUSTED = "exhausted"
    CHANGE_IN_FLIGHT = "change-in-flight"
    ALREADY_SO = "already-so"
    NOT_CAUGHT_UP = "not-caught-up"
    LAST_NODE = "last-node"
    WRONG_STAGE = "wrong-stage"
    UNKNOWN_NODE = "unknown-node"
    NOT_CONFIG_NODE = "not-config-node"
    TOO_MANY_CLIENTS = "too-many-clients"
    CLIENT_TERMINATED = "client-terminated"
    TOO_FAR_AHEAD = "too-far-ahead"
    RESULTS_UNREAD = "results-unread"
    RELEASED = "released"
    CLIENT_REMOVED = "client-removed"
    CURSOR_GONE = "cursor-gone"
    PRUNED = "pruned"
    ERASED = "erased"
    JOURNAL_GONE = "journal-gone"
    CONSUMER_CHANGED = "consumer-changed"
    TOO_LARGE = "too-large"
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type"
    KEY_REUSED = "key-reused"
    BAD_SIGNATURE = "bad-signature"
    BAD_MESSAGE_ID = "bad-message-id"
    NOT_DETERMINISTIC = "not-deterministic"
    STATEMENT_REFUSED = "statement-refused"
    UPGRADE_REQUIRED = "upgrade-required"
    TOO_MANY_REQUESTS = "too-many-requests"
    INTERNAL = "internal"
    NODE_FULL = "node-full"
    UNREAD_BACKLOG = "unread-backlog"
    CATCHING_UP = "catching-up"
    NOT_A_MEMBER = "not-a-member"
    OVERRULED = "overruled"
    NOT_INGEST_NODE = "not-ingest-node"
    DRAINING = "draining"
    OUTCOME_UNKNOWN = "outcome-unknown"
    NO_QUORUM = "no-quorum"
    ORDER_UNKNOWN = "order-unknown"
    STATE_DIFFERS = "state-differs"
    ROSTER_IN_FLIGHT = "roster-in-flight"
    ALREADY_A_MEMBER = "already-a-member"
    MEMBER_UNKNOWN = "member-unknown"
    LAST_MEMBER = "last-member"
    ROSTER_FULL = "roster-full"
    POLICY_UNFIT = "policy-unfit"
    NOMINEE_UNREACHABLE = "nominee-unreachable"
    NOMINEE_BEHIND = "nominee-behind"
    QUORUM_ANSWERS = "quorum-answers"
    CANNOT_FORCE = "cannot-force"
    NO_EXECUTOR = "no-executor"
    EXECUTOR_BEHIND = "executor-behind"
    PEER_SILENT = "peer-silent"
    STORAGE_FULL = "storage-full"
    STORAGE_FAILED = "storage-failed"


class Kind(NamedTuple):
    """What a code means, for whoever meets it."""

    status: int
    retryable: bool
    title: str
    meaning: str
    remedy: str


KINDS: dict[Code, Kind] = {
    Code.MALFORMED_BODY: Kind(
        400,
        False,
        "The body cannot be read",
        "The bytes of the body are not the format that Content-Type names.",
        "Check that the body is complete, is UTF-8, and is of the type that its header says.",
    ),
    Code.INVALID_FIELD: Kind(
        400,
        False,
        "A field has a wrong value",
        "A field of the body has a type, size or form that is not taken.",
        "`errors` names each field by its JSON pointer and says what is needed.",
    ),
    Code.UNKNOWN_FIELD: Kind(
        400,
        False,
        "A field is not known",
        "The body has a field that this version does not know. Nothing is ignored silently.",
        "Correct its spelling or leave it out; /openapi.json lists the fields.",
    ),
    Code.INVALID_PARAMETER: Kind(
        400,
        False,
        "A query parameter has a wrong value",
        "A parameter of the URL has a value that is not taken.",
        "`errors` names the parameter. Durations carry their unit: 500ms, 30s, 2m.",
    ),
    Code.UNKNOWN_PARAMETER: Kind(
        400,
        False,
        "A query parameter is not known",
        "The URL has a parameter that this endpoint does not know.",
        "Correct its spelling or leave it out; /openapi.json lists the parameters.",
    ),
    Code.INVALID_ID: Kind(
        400,
        False,
        "That is no id",
        "An entry's id is 64 hex digits, a colon and its index; an event's is the 64 hex digits.",
        "Copy the id whole from the answer or the Location header that gave it.",
    ),
    Code.INVALID_CURSOR: Kind(
        400,
        False,
        "That is no cursor",
        "The cursor was cut short, changed, or made by something else than a Quipu node.",
        "Use a cursor unchanged, as an answer gave it; leave it out to begin at the start.",
    ),
    Code.INVALID_HEADER: Kind(
        400,
        False,
        "A header has a wrong value",
        "A request header has a value that is not taken.",
        "`errors` names the header and says what is needed.",
    ),
    Code.BAD_REQUEST: Kind(
        400,
        False,
        "The request cannot be read",
        "What came is not well-formed HTTP, or its headers are too large.",
        "Check the client, and any proxy between; headers may take 16 KiB.",
    ),
    Code.UNAUTHENTICATED: Kind(
        401,
        False,
        "A valid token is needed",
        "There is no token in the request, or it is not known, revoked or expired.",
        "Send `Authorization: Bearer …`; make a token with `quipu token new`.",
    ),
    Code.FORBIDDEN: Kind(
        403,
        False,
        "The token does not allow this",
        "The token is known, and its scopes do not cover this request.",
        "Use a token with the scope that `detail` names, or ask an operator for one.",
    ),
    Code.NOT_FOUND: Kind(
        404,
        False,
        "There is nothing at this path",
        "No endpoint of this node has that path.",
        "/openapi.json lists what there is. A problem page exists for each code of the list.",
    ),
    Code.ENTRY_NOT_FOUND: Kind(
        404,
        False,
        "This node does not hold that entry",
        "The id is well-formed, and no entry with it is held here.",
        "On another node it may be there already: gossip takes milliseconds, an outage longer.",
    ),
    Code.EVENT_NOT_FOUND: Kind(
        404,
        False,
        "This node does not hold that event",
        "The id is well-formed, and no event with it is held here.",
        "On another node it may be there already: gossip takes milliseconds, an outage longer.",
    ),
    Code.OPERATION_NOT_FOUND: Kind(
        404,
        False,
        "There is no such operation",
        "No operation with that id is under way, or is among the last 100 since the start.",
        "GET /v1/admin/operations lists those that are known; the log has the others.",
    ),
    Code.REPORT_NOT_FOUND: Kind(
        404,
        False,
        "There is no report yet",
        "Nobody has published a report about the consistency of the cluster to this node.",
        "PUT /v1/reports/last publishes one.",
    ),
    Code.CONSUMER_NOT_FOUND: Kind(
        404,
        False,
        "There is no such consumer",
        "No consumer of that name is kept here for this caller: never was, or its ttl is over.",
        "A consumer is kept by the one node that it was put to. PUT makes a new one.",
    ),
    Code.PEER_NOT_FOUND: Kind(
        404,
        False,
        "There is no such member",
        "No member of the newest epoch has that number, node id or name.",
        "GET /v1/cluster/members lists the members.",
    ),
    Code.SEQUENCE_NOT_FOUND: Kind(
        404,
        False,
        "There is no such sequence",
        "Nothing was ever locked or published under that name, as far as this node has applied.",
        "The first lock or publish makes it. `consistency=linear` asks for the newest.",
    ),
    Code.NUMBER_NOT_FOUND: Kind(
        404,
        True,
        "Nothing is published under that number yet",
        "Numbers begin at 1 and follow each other; this one is above what this node has applied.",
        "Ask again, or for the sequence itself: `number` is its highest.",
    ),
    Code.NUMBER_GONE: Kind(
        410,
        False,
        "What stood under that number is not held any more",
        "Digests of single numbers are kept as long as the log entry that published them, some "
        "thousands. The running digest of the sequence covers them for ever.",
        "Compare your own list of digests with the running digest of a number from `oldest` on.",
    ),
    Code.METHOD_NOT_ALLOWED: Kind(
        405,
        False,
        "The path does not take that method",
        "The path exists, for other methods.",
        "The Allow header lists them.",
    ),
    Code.NOT_ACCEPTABLE: Kind(
        406,
        False,
        "None of the accepted types can be given",
        "The endpoint offers none of the media types that Accept asks for.",
        "Ask for application/json, or leave Accept out.",
    ),
    Code.BODY_TIMEOUT: Kind(
        408,
        True,
        "The body came too slowly",
        "The whole body of a request must come within 30 seconds; nothing of it was stored.",
        "Send it again over a better line, or in smaller parts.",
    ),
    Code.NOT_READ: Kind(
        409,
        True,
        "The entry is not final yet",
        "A proof exists once enough members have confirmed the entry; so far too few have.",
        "Wait with GET /v1/entries/{id}/status?wait=30s; /v1/events/{id}/explain says who lacks.",
    ),
    Code.NOT_ERASABLE: Kind(
        409,
        False,
        "This entry cannot be erased",
        "Its stream was not declared erasable when it was written, so it has no salt and its hash "
        "could be matched with a guess; or a client has signed it, and executors may have to read "
        "it; or it is no entry of an app.",
        "Declare streams when the cluster is made: `quipu init --erasable STREAM`.",
    ),
    Code.KEY_IN_FLIGHT: Kind(
        409,
        True,
        "The same key is being stored right now",
        "Another request with this Idempotency-Key is under way with other bytes.",
        "Wait for its answer. Use one key for one submission.",
    ),
    Code.OPERATION_RUNNING: Kind(
        409,
        True,
        "One of that kind is under way",
        "The node does one piece of long work of a kind at a time.",
        "`detail` names it: wait for its end, or cancel it with DELETE.",
    ),
    Code.CONSUMER_LIMIT: Kind(
        409,
        False,
        "No more consumers are kept",
        "The node keeps as many named cursors as it takes.",
        "Delete one with DELETE /v1/consumers/{name}, or wait for the end of a ttl.",
    ),
    Code.LOCKED: Kind(
        409,
        True,
        "Somebody else holds the lock",
        "The next numbers of the sequence are for the holder of another token.",
        "GET /v1/sequences/{name} says who. It is free when they are used up or released; the "
        "lock of a node that is gone is taken over by the next who asks.",
    ),
    Code.OLD_TOKEN: Kind(
        409,
        False,
        "The lock is not yours any more",
        "The token is not that of the lock that stands: used up, released or taken over.",
        "Nothing was published. Lock again.",
    ),
    Code.NOT_NEXT: Kind(
        409,
        False,
        "That is not the next number",
        "A sequence is published number by number: one above the highest published.",
        "GET /v1/sequences/{name}?consistency=linear says which is the highest.",
    ),
    Code.NOT_HOLDER: Kind(
        409,
        False,
        "Another node holds the lock",
        "The token stands, and it was given to another node than the one that was asked.",
        "Publish and release through the node that locked.",
    ),
    Code.TOO_MANY_SEQUENCES: Kind(
        409,
        False,
        "No more sequences are kept",
        "The cluster keeps as many sequences as it takes; each stays for ever.",
        "Use the names that there are.",
    ),
    Code.EXHAUSTED: Kind(
        409,
        False,
        "The sequence is at its end",
        "Its numbers end at 2^63.",
        "Begin another one.",
    ),
    Code.CHANGE_IN_FLIGHT: Kind(
        409,
        True,
        "Another change is in flight",
        "The config stream makes one change at a time, and one has begun that has not ended.",
        "GET /v1/journal/config says which and how far it is. Propose again when it has ended.",
    ),
    Code.ALREADY_SO: Kind(
        409,
        False,
        "It is so already",
        "The set is the present one, or the node has that role, or has not.",
        "Nothing is left to do.",
    ),
    Code.NOT_CAUGHT_UP: Kind(
        409,
        True,
        "A node of the change did not get there",
        "The master timed it out: within a minute it was not near the end of the log, or silent.",
        "See in `quipu members` whether it runs; propose again when it has caught up.",
    ),
    Code.LAST_NODE: Kind(
        409,
        False,
        "It is the last of its kind",
        "Without it nobody could take entries, or changes of the configuration.",
        "Add another one first.",
    ),
    Code.WRONG_STAGE: Kind(
        409,
        True,
        "The change has ended meanwhile",
        "A stage of a change came when that change was not in flight any more.",
        "GET /v1/journal/config says what became of it. Propose again if it is still wanted.",
    ),
    Code.UNKNOWN_NODE: Kind(
        404,
        False,
        "No member is called so",
        "A node of the change is no member of the newest epoch.",
        "`quipu members` lists names and numbers.",
    ),
    Code.NOT_CONFIG_NODE: Kind(
        403,
        False,
        "This node takes no changes",
        "It was removed from the config nodes.",
        "Propose at another one: GET /v1/journal/config says which are.",
    ),
    Code.CURSOR_GONE: Kind(
        410,
        False,
        "The cursor leads to what this node does not have",
        "The node was set back, restored or pruned since it gave that cursor.",
        "Go on from `oldest`, and treat what lies between as a gap; another node may hold it.",
    ),
    Code.PRUNED: Kind(
        410,
        False,
        "This was pruned here",
        "It was final, lay below a checkpoint, and the retention of this node has let it go. A "
        "proof that was taken before is as good as ever.",
        "A node that keeps more may have it, and so may a dump or a backup: GET /v1/node says with "
        'which checkpoint the history of a node begins (`history_from`, "0": it has all).',
    ),
    Code.ERASED: Kind(
        410,
        False,
        "This entry was erased",
        "An operator has had it erased, on every node. That it was here, when, by which node, and "
        "that it was final stays: its status, its event and its proof are given.",
        "Nobody can give it back. GET /v1/entries/{id}/proof proves its place and its leaf hash; a "
        "proof that was taken before has the entry itself, and is as good as ever.",
    ),
    Code.JOURNAL_GONE: Kind(
        410,
        False,
        "These log entries are not held any more",
        "A log keeps its newest entries, some thousands; what older ones led to is kept.",
        "Go on from `oldest`, and treat what lies between as a gap.",
    ),
    Code.CONSUMER_CHANGED: Kind(
        412,
        False,
        "The consumer is not as you believe",
        "Somebody else has put or deleted it since, or its ttl is over.",
        "Two processes must not use one consumer: look with GET, and go on from what is there.",
    ),
    Code.TOO_LARGE: Kind(
        413,
        False,
        "Too large",
        "The body, an entry of it, or the number of entries is above a limit.",
        "One entry takes 1 MiB, one request 1.5 MiB, a batch 16 MiB, an atomic batch 4 MiB and "
        "10,000 entries. Store large things elsewhere and submit their hash.",
    ),
    Code.UNSUPPORTED_MEDIA_TYPE: Kind(
        415,
        False,
        "That Content-Type is not taken here",
        "The endpoint does not read bodies of that media type or encoding.",
        "Use application/json, application/msgpack, application/cloudevents+json, or for batches "
        "application/x-ndjson; send bodies uncompressed.",
    ),
    Code.KEY_REUSED: Kind(
        422,
        False,
        "The key was used for other bytes",
        "An entry with this Idempotency-Key is stored in this stream, and its bytes differ.",
        "`entry_id` names that entry. Use a new key for a new submission.",
    ),
    Code.UPGRADE_REQUIRED: Kind(
        426,
        False,
        "This endpoint speaks WebSocket",
        "The request is no WebSocket upgrade, or not of version 13.",
        "Connect with a WebSocket client; for plain HTTP there is /v1/entries:batch.",
    ),
    Code.TOO_MANY_REQUESTS: Kind(
        429,
        True,
        "Your share of this node is used up",
        "One caller has too many requests under way. The body was not read.",
        "Wait for Retry-After seconds; send fewer at a time, or batches.",
    ),
    Code.INTERNAL: Kind(
        500,
        True,
        "A fault of the node",
        "Something happened that should not. It is logged with the request id.",
        "Try again; if it stays, report it with the request id.",
    ),
    Code.NODE_FULL: Kind(
        503,
        True,
        "The node is busy",
        "More waits to be stored than the node takes at one time. The body was not read.",
        "Wait for Retry-After seconds, or use another node.",
    ),
    Code.UNREAD_BACKLOG: Kind(
        503,
        True,
        "Too much waits for confirmation",
        "The node holds so many entries that are not final that it takes no more.",
        "Too few members answer: see /v1/events/{id}/explain. What was accepted is safe.",
    ),
    Code.CATCHING_UP: Kind(
        503,
        True,
        "The node is catching up",
        "The node has joined or returned, and writes once it holds what the others hold.",
        "Wait, or use another node.",
    ),
    Code.NOT_A_MEMBER: Kind(
        503,
        False,
        "This node may not write",
        "The node replicates and serves reads; the roster does not name it as a member.",
        "Submit to a member: /v1/node says which they are.",
    ),
    Code.OVERRULED: Kind(
        503,
        False,
        "The cluster went on without this node",
        "An operator has recovered it by force at another member, while this one was away. What "
        "this node signed or ordered now would be another ledger of the same name, so it does not.",
        "Write to the member that went on. `quipu members recover --force` here lets this node "
        "follow it; then `quipu members add` there takes it in again.",
    ),
    Code.NOT_INGEST_NODE: Kind(
        503,
        False,
        "This node takes no entries",
        "It was removed from the ingest nodes, or is being removed.",
        "Use another node: GET /v1/journal/config says which take entries.",
    ),
    Code.DRAINING: Kind(
        503,
        True,
        "The node is stopping",
        "The node finishes what it has accepted and takes nothing new.",
        "Use another node, or wait for Retry-After seconds.",
    ),
    Code.OUTCOME_UNKNOWN: Kind(
        503,
        False,
        "It may be stored or not",
        "The disk failed at the last word of a commit: only a restart of the node tells.",
        "Do not submit again blindly: ask for `entry_id`, or for the idempotency key, later.",
    ),
    Code.NO_QUORUM: Kind(
        503,
        True,
        "There is no majority to order it",
        "This node knows of no master that a majority of serializers follows. Nothing was done.",
        "Wait for Retry-After seconds: an election takes 1 to 2. If it stays, this node is cut off "
        "from the others, or too few of them run: use another node, see `quipu members`.",
    ),
    Code.ORDER_UNKNOWN: Kind(
        503,
        False,
        "It may be ordered or not",
        "The master did not say in time what became of it, or this node had to begin anew.",
        "Look at the sequence with `consistency=linear` before you try again.",
    ),
    Code.STATE_DIFFERS: Kind(
        503,
        False,
        "This node differs from the others",
        "A majority of serializers has another digest over the sequences than this node (ERR).",
        "Use another node. Its disk or its program is at fault: `quipu store verify`, then give it "
        "a new store, which it fills from the others.",
    ),
    Code.PEER_SILENT: Kind(
        504,
        True,
        "The member did not answer",
        "This node has asked the other one, and no answer that it can read has come in time.",
        "GET /v1/cluster/members says whether it is linked; ask again, or with a longer timeout.",
    ),
    Code.ROSTER_IN_FLIGHT: Kind(
        409,
        True,
        "Another change of the roster is under way",
        "One change is in flight at a time, on every node alike. Nothing was done.",
        "`quipu members changes` says how far it is. Where its CLOSE finds no OPEN, because too "
        "many members are gone, another change may take its place 60 seconds after it.",
    ),
    Code.ALREADY_A_MEMBER: Kind(
        409,
        False,
        "The node is a member already",
        "It stands in the roster of the newest epoch.",
        "`quipu members` lists the roster.",
    ),
    Code.MEMBER_UNKNOWN: Kind(
        409,
        False,
        "There is no such member",
        "Neither a node id nor a name of the newest roster is so written.",
        "`quipu members` lists the roster.",
    ),
    Code.LAST_MEMBER: Kind(
        409,
        False,
        "It is the last member",
        "A cluster without a member could never write again.",
        "Replace it by another node, or stop it for good.",
    ),
    Code.ROSTER_FULL: Kind(
        409,
        False,
        "The roster is full",
        "Each more member costs every other one a receipt for each event.",
        "Observers are without limit: they hold all and answer every read.",
    ),
    Code.POLICY_UNFIT: Kind(
        409,
        False,
        "That roster cannot meet the policy",
        "The number of confirmations that the policy asks for does not fit so many members.",
        "Give another --policy in the same change: majority, two-thirds, all, or a number below "
        "that of the members.",
    ),
    Code.NOMINEE_UNREACHABLE: Kind(
        409,
        True,
        "The node that shall be a member cannot be reached",
        "It has to run and to be linked when it becomes a member: a roster with a dead newcomer "
        "would be weaker than the one before. Nothing was done.",
        "Start it with `quipu run --join`, see `quipu members` for its trouble, and name it by its "
        "URI, which `quipu keys` shows there.",
    ),
    Code.NOMINEE_BEHIND: Kind(
        409,
        True,
        "The node that shall be a member does not hold enough yet",
        "It did not say within 20 seconds that it holds all but the last 1,000 events; what it "
        "lacks would keep the cluster waiting. Nothing was done.",
        "Wait until it has caught up (`quipu status` there), and ask again.",
    ),
    Code.QUORUM_ANSWERS: Kind(
        409,
        False,
        "So many members answer that no force is needed",
        "Force is for a cluster whose members are lost for ever, beyond what it bears. Here enough "
        "of them answer to change the roster with all promises kept. Nothing was done.",
        "Use `quipu members remove` or `quipu members replace`.",
    ),
    Code.CANNOT_FORCE: Kind(
        409,
        False,
        "This node cannot go on alone",
        "It is no member, its disk was lost and it may not sign, or it lacks events of the newest "
        "cut, which the other members held. Nothing was done.",
        "Look at the other members that are left: `quipu members recover --force` on the one that "
        "has most.",
    ),
    Code.STORAGE_FULL: Kind(
        507,
        True,
        "The disk of the node is full",
        "Nothing of the request was stored. Reads go on.",
        "The operator frees space; writing goes on without a restart. Use another node meanwhile.",
    ),
    Code.STORAGE_FAILED: Kind(
        503,
        True,
        "The disk of the node fails",
        "The store answered with an error; nothing of the request was stored.",
        "Use another node; the operator looks at the log and runs `quipu store verify`.",
    ),
}
KINDS |= {Code(name): Kind(*told) for name, told in CLIENT_KINDS.items()}
assert set(KINDS) == set(Code)
