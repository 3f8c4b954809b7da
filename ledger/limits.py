"""Every bound of the ledger, each with its unit and its reason.

Limits marked (version 1) are part of the event version: all nodes must agree on them, so they
are constants and never settings. The others are conduct of one node.
"""

KIB = 1024
MIB = 1024 * KIB

# --- formats (version 1) ------------------------------------------------------------------------
HEADER_BYTES_MAX = 4 * KIB  # 14 fields, 7 parents: under 600 B; the rest is room for version 2
ENTRY_BYTES_MAX = 1 * MIB  # one entry is held in memory whole by clients and executors
EVENT_BYTES_MAX = 4 * MIB  # one event is one frame; libzmq's MAXMSGSIZE is 5 MiB
EVENT_ENTRIES_MAX = 10_000  # bounds hashing at a receiver to about 10 ms
PARENTS_MAX = 7  # merges 8 cords an event; 31 leaves of a full roster merge in 5 events
SUBMITTER_BYTES_MAX = 128  # name of a token
IDEMPOTENCY_KEY_BYTES_MAX = 256  # room for a UUID with a prefix, or a CloudEvents source + id
CONTENT_TYPE_BYTES_MAX = 128  # media types in use are shorter
ENTRY_SIGNATURE_BYTES_MAX = 512  # the largest signature kind an entry may carry
MEMBERS_MAX = 32  # receipts cost n^2 a turn; observers are without limit
POLICY_BYTES_MAX = 16  # `two-thirds`, or a number
NAME_BYTES_MAX = 128  # cluster and node names
STREAMS_ERASABLE_MAX = 256  # named in the epoch document, which every node holds in memory
CUT_ROWS_MAX = 4096  # cords that rose between two checkpoints: 32 members x 16, with room
EPOCH_BYTES_MAX = 1 * MIB  # a document with 4,096 cut rows is about 250 KiB
SEALS_MAX = 32  # one a member
BUNDLE_HEADERS_MAX = 1024  # from an event to the rows used: INV_STRIDE, 4 times for late receipts
BUNDLE_DOCUMENTS_MAX = 4096  # epochs from the genesis on: a change a day for eleven years
BUNDLE_BYTES_MAX = 16 * MIB  # a bundle is read whole, by a client, never by a peer

# --- receipts -----------------------------------------------------------------------------------
INV_ROWS_MAX = 1024  # 32 authors x 16 open journals, twice
INV_BYTES_MAX = 128 * KIB  # 1,024 rows of about 60 B, with room
JOURNALS_SIGNED_MAX = 16  # journals of an author above the cut that get receipts
CHECKPOINT_JOURNALS = 8  # open journals of an author: half of what gets receipts
FEED_NUMBER_MAX = 2**63 - 1  # of what became Read at one node: never reached
CHECKPOINT_EVENTS = 100_000  # between two checkpoints: what a pruned node keeps whole
CHECKPOINT_INTERVAL_MS = 600_000  # between two checkpoints while there is anything new
CHECKPOINT_GAP_MS = 10_000  # after an epoch was opened: what can never be in a cut asks for none
INV_STRIDE = 256  # seqs between two kept Invs of a signer: a proof needs at most 256 headers
INVS_SCANNED_MAX = 4096  # receipts of one signer looked through at a time for a bundle
BUNDLE_SEARCH_FACTOR = 32  # a search for receipts begins 2 s before, 64 s, 34 min, 18 h ...
INV_INTERVAL_FLOOR_MS = 5  # one Inv a turn; under load at most one in max(5, n - 1) ms
CORD_OPEN_MS = 10_000  # a row that has not moved for 10 s and is Read may be left out
PARKED_ROWS_PER_SIGNER_MAX = 1024  # two a cord; a flooder of ghosts is held at one Inv's worth

# --- changes of epoch ---------------------------------------------------------------------------
READY_BYTES_MAX = 256  # a key, a signature and two numbers
READY_EVENTS_LACKING_MAX = 1_000  # who lacks more would keep the next epoch waiting
READY_AGE_MS_MAX = 10_000  # of a READY when its CLOSE is written: who was there is there
READY_WAIT_MS = 20_000  # a change that finds no READYs is refused after this: time to dial twice
CLOSE_STALE_MS = 60_000  # a CLOSE without an OPEN may be replaced after this
OPEN_DUE_AHEAD_MS = 4_000  # `due` above the master's cluster now: what is signed now is below it
OPEN_DUE_AHEAD_MS_MAX = 6_000  # and above that of a voter: its clock may be 2 s behind
OPEN_RECEIPTS_MAX = 4 * MEMBERS_MAX  # that complete seals: of forked cords, and late events
SEAL_FETCH_MS = 5_000  # what a seal names is fetched for so long before it is left out
OFFER_MS = 5_000  # a cut that finds no receipts by then is computed from other seals
ROSTER_PACE_MS = 500  # questions, offers and proposals without an answer are said again
SEAT_WAIT_MS = 2_000  # a member that answers for so long becomes a voter, where there is room
CHANGE_STATE_BYTES_MAX = 1 * MIB  # members of all rosters, and a CLOSE: 400 B a member

# --- admission ----------------------------------------------------------------------------------
CLOCK_AHEAD_MS = 2_000  # a receipt waits until hlc <= cluster now + 2 s
CLOCK_SAMPLE_AGE_MS = 5_000  # a member's wall clock counts for 5 s after it was heard
EVENTS_NOT_DUE_PER_CORD_MAX = 1_000  # stored Unread ahead of their time, a cord
EVENT_AGE_MS_MAX = 600_000  # unasked events older than 10 min are left to SyncEvent

# --- waiting for parents ------------------------------------------------------------------------
WAITING_EVENTS_MAX = 10_000  # 64 MiB of typical events; SyncEvent finds again what is dropped
WAITING_BYTES_MAX = 64 * MIB  # memory a node gives to events that it cannot place yet
WAITING_PER_CORD_MAX = 1_000  # one author cannot take the room of all

# --- forks --------------------------------------------------------------------------------------
BRANCHES_PER_CORD_MAX = 64  # one a member that can sign one, twice
BRANCHES_PER_LENDER_MAX = 1  # branches that rest on the word of one peer alone
PROOF_HEADERS_MAX = 256  # headers between a row and the fork; rows rise by at most INV_STRIDE

# --- sending again ------------------------------------------------------------------------------
SEND_UNREAD_INTERVAL_MS = 1_000  # SEND_UNREAD_EVENTS_INTERVAL of the seed
SEND_UNREAD_INTERVAL_MAX_MS = 30_000  # doubled up to this
RELAY_AFTER_MS = 500  # a holder sends on what a member does not show by then
RESEND_BYTES_MAX = 1 * MIB  # to one member at one time
RESEND_EVENTS_MAX = 256  # to one member at one time
FANOUT_ALL_MAX = 16  # an author sends to every member up to this roster
FANOUT_ABOVE = 8  # and to this many above it; holders send on to the others
ATTACHMENTS = 3  # members that an observer keeps links to: two may fail
OBSERVERS_BYTES_MAX = 4 * MIB  # sent on in a turn, over all observers; SyncEvent says the rest

# --- reconciliation -----------------------------------------------------------------------------
SYNC_INTERVAL_MS = 2_000  # seed 003: every 2 seconds
SYNC_DIFFERENCE_AGE_MS = 500  # younger differences are gossip still on its way
SYNC_LEAVES_MAX = 64  # rows and digest say the rest
SYNC_ROWS_MAX = 4_096  # the open cords of 32 members, with room
SYNC_RECEIPTS_MAX = 256  # one a signer: members of eight rosters
GET_IDS_MAX = 256  # 8 KiB of ids
GET_RANGES_MAX = 64  # cords asked for at once
GET_ANCHORS_MAX = 32  # steps back double: reaches 2^31 events
GET_ANCHOR_BRANCHES = 4  # of a forked cord: the lines that anchors are taken from
GET_RECEIPTS_MAX = 256  # receipt wants in one request
GET_BYTES_MAX = 64 * KIB  # one request
ANSWER_BYTES_MAX = 1 * MIB  # one answer, or one event if that is larger
ANSWER_READS = 16  # an answer is read in parts: what is read of each cord and not sent is in vain
ANSWER_EVENTS_MAX = 4_096  # bounds the time of one turn at both ends
ANSWER_EVENTS_USUAL = 2_048  # an answer ends here; further on where no good signature is
ANSWER_EVENTS_PRESSED = 128  # while entries of clients come: a millisecond of a turn
ANSWER_BYTES_PRESSED = 128 * KIB  # the same for large events
SERVE_PACE_MS = 20  # between two such answers: a twentieth of a core, and still 6 MB/s
REQUEST_RETRY_MS = 1_000  # without an answer: another peer is asked as well
REQUEST_TIMEOUT_MS = 5_000  # a later answer is not taken
REQUESTS_PER_PEER_MAX = 8  # waited for at one time
SYNC_SENT_KEPT = 8  # SyncEvents on one link that the peer may still acknowledge
SYNC_NUMBER_TAKEN_MAX = 1 << 63  # a peer pushes our count no further: there is room to go on
WALL_MS_MAX = (1 << 44) - 1  # the year 2527: a journal is 64 bits, 20 of them random
WANT_AFTER_INV_MS = 100  # an event that only an Inv has named is asked for after this
WANTS_MAX = 10_000  # ids wanted at one time

# --- signatures that ranges were spared ---------------------------------------------------------
PROVED_MAX = 32  # at a time: 2 ms of a turn
PROVE_PACE_MS = 3  # between two times: two fifths of a core at most
PROVED_PRESSED_MAX = 16  # while entries of clients come: 1 ms of a turn
PROVE_PACE_PRESSED_MS = 20  # the same: a twentieth of a core
RESIGN_INTERVAL_MS = 2_000  # a good signature that nobody had is asked for again after this
RESIGN_INTERVAL_MAX_MS = 600_000  # doubled up to this

# --- what can wait ------------------------------------------------------------------------------
PRESSED_MS = 100  # how long a live event shows that more of them come

# --- author -------------------------------------------------------------------------------------
ENTRY_OVERHEAD_BYTES = 8  # array and bin heads of one entry in a body, with room
UNREAD_ENTRIES_OWN_MAX = 1_000_000  # above: refused with `unread-backlog`
UNREAD_BYTES_OWN_MAX = 2 * 1024 * MIB  # above: refused with `unread-backlog`
JOURNAL_RANDOM_BITS = 20  # two starts in one millisecond collide once in a million

# --- recovery -----------------------------------------------------------------------------------
START_WAIT_MS = 3_000  # how long a start listens before it signs

# --- memory of one node -------------------------------------------------------------------------
READ_PER_TURN_MAX = 8_192  # events made final: 60 ms of a turn; the next turn goes on
METAS_PER_READ = 256  # summaries read under one hold of the store's lock, a millisecond
METAS_RECENT_MAX = 8_192  # summaries of events kept at hand; older ones are read from History
MESSAGE_BYTES_MAX = 5 * MIB  # one message of any kind: an event with its envelope fits
PEERS_MAX = 1_024  # members and observers attached to one node
REFUSED_RECENT_MAX = 1_024  # ids refused for good, remembered so that they are not fetched again

# --- the log (version 1) ------------------------------------------------------------------------
LOG_ENTRY_BYTES_MAX = 4 * MIB  # one index; an OPEN with seals and Invs of 32 members fits
LOG_ITEMS_MAX = 4_096  # of one log entry: u24 in an ACL id; bounds the work of one index
SERIALIZERS_MAX = 7  # three may die; each more costs a signature an entry and helps no one
REGIME_MAX = 2**32 - 1  # u32: one change of master a second for 136 years

# --- the log (conduct) --------------------------------------------------------------------------
LOG_STATEMENT_BYTES_MAX = 4 * KIB  # a PROMISE with 32 lives is under 1 KiB
LOG_STATEMENTS_MAX = 4 * SERIALIZERS_MAX  # of two certificates, each of both sets of a change
LOG_LIVES_MAX = 64  # members whose disk was ever replaced, told in a PROMISE
LOG_ELECTION_MS = 1_000  # silence of the master before another is looked for
LOG_ELECTION_SPREAD_MS = 1_000  # drawn on top, so that two seldom try at once
LOG_HEARTBEAT_MS = 250  # four may be lost before anybody looks for another master
LOG_ASK_AGAIN_MS = 300  # PREPARE and recovery questions without an answer are sent again
LOG_QUORUM_MS = 2_000  # a master without a majority for this long steps down
LOG_WINDOW_ENTRIES = 256  # proposed and not yet chosen, or sent and not yet answered
LOG_WINDOW_BYTES = 2 * MIB  # the same in bytes: what a PROMISE has to carry stays one frame
LOG_PROMISE_BYTES_MAX = 4 * MIB + 512 * KIB  # a window, what was chosen meanwhile, or one entry
LOG_PROMISE_ENTRIES_MAX = 4_096  # of one frame: 16 windows of small entries
LOG_ACCEPT_BYTES = 1 * MIB  # entries of one ACCEPT, or one entry if that is larger
LOG_BATCH_BYTES = 256 * KIB  # items that wait become entries of about this size
LOG_WAITING_ITEMS_MAX = 65_536  # items that a master has taken and not yet written
LOG_WAITING_BYTES_MAX = 16 * MIB  # memory that a master gives to them
LOG_PARKED_MAX = 64  # ACCEPTs of a voter that wait until what they name is in its Model
LOG_STATEMENTS_KEPT = 64  # of one signer, to be compared with what it signs later
LOG_CATCH_UP_ENTRIES = 1_000  # a nominee this near to the end may vote
LOG_CATCH_UP_MS = 60_000  # and it has this long to get there
LOG_HAND_OVER_MS = 500  # a hand-over that nobody took is offered again
LOG_STATE_BYTES_MAX = 4 * MIB  # the state that goes with a base: one frame
LOG_TICKETS_MAX = 65_536  # proposals and reads of one node that wait for an answer
LOG_TICKET_MS = 5_000  # after this an answer says that the outcome is not known
LOG_REGIMES_COUNTED = 8  # regimes whose ACCEPTED are counted side by side

# --- state machines over the log (version 1) ----------------------------------------------------
ORDER_ITEM_BYTES_MAX = 1 * KIB  # references and sequence operations; config documents are larger
SEQUENCE_NAME_BYTES_MAX = 128  # as streams
SEQUENCE_LOCK_MAX = 64  # numbers of one lock: a holder that dies blocks no more than these
SEQUENCES_MAX = 10_000  # 2 MB of the state that goes with a base; a further name is refused
SEQUENCE_NUMBER_MAX = 2**63  # of one sequence: there is room above it in u64
CLIENT_AHEAD_MAX = 64  # requests of a client that wait for the ids before them
CLIENT_KEPT_MAX = 4_096  # requests of a client above what it says it holds: 1 MiB of memory
CLIENT_ID_MAX = 2**32 - 1  # u32
CLIENTS_MAX = 10_000  # ever added: 1 MB of the state that goes with a base; ids are never reused
ACCESS_LISTS_MAX = 10_000  # ever given: 170 KB of that state; many clients may share one
ACCESS_LIST_BYTES_MAX = 128 * KIB  # 1,000 rules over names of a usual length
CLIENT_ITEM_BYTES_MAX = ACCESS_LIST_BYTES_MAX + KIB  # the list and its head
ACL_ID_BYTES = 15  # seed 001: regime u32, index u64, number in the entry u24
CLIENT_KEY_BYTES_MAX = 128  # Ed25519 has 32; room for another kind
NEIGHBOURS_MAX = 256  # named in one DSCRES: members, and those that were
MARKS_KEPT = 4  # newest marks at which nodes compare what the log has led to
DISCOVERY_BYTES_MAX = 64 * KIB  # a certificate of 28 statements and 256 neighbours are 20
DISCOVER_MS = 300  # DSCREQ and SEQRES that found no answer are sent again
COMPARE_MS = 10_000  # between two looks of a node at work whether it is still as the others
EXECUTOR_MARKS_MAX = 256  # indexes of which executors said what digest they had
SNAPSHOTS_TOLD_MAX = 8  # indexes as of which executors made snapshots
ENGINE_CHARACTERS_MAX = 256  # version, processor, build and interpreter of an executor
ROLES_MAX = 1_024  # of nodes that are not as every member is: 32 members have 96 at a time
JOURNAL_PARTS_MAX = 32  # state machines whose state goes with a base
