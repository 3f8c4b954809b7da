"""Every bound of the running node, each with its unit and its reason."""

KIB = 1024
MIB = 1024 * KIB

# --- the inbox -----------------------------------------------------------------------------------
SUBMISSIONS_WAITING_MAX = 4_096  # at 10,000 a second less than half a second of waiting
BYTES_WAITING_MAX = 64 * MIB  # bodies being read and entries not durable yet; 16 events of 4 MiB
PEER_BYTES_WAITING_MAX = 32 * MIB  # messages of peers for one turn; then nobody is read
INPUTS_PER_TURN_MAX = 16_384  # a turn stays some 100 ms even when everything comes at once
RETRY_AFTER_S = 1.0  # said to whom the inbox has no room for: a second drains it many times
BACKLOG_RETRY_AFTER_S = 5.0  # said while too much waits to become Read: peers need that long

# --- the turn ------------------------------------------------------------------------------------
TURN_LATE_S = 5.0  # a commit under way for longer: the writer counts as stuck, livez fails
GIL_SWITCH_S = 0.0005  # how long the writer waits for a busy loop: 5 ms cost 15 % of the rate
GC_THRESHOLDS = (20_000, 10, 100)  # allocations, then rounds: a request leaves no cycles behind
RECEIPTS_WAIT_MS = 20  # those that nobody waits for: so many of one signer are one
FULL_PROBE_INTERVAL_S = 1.0  # how often a full disk is asked whether there is room again
FULL_PROBE_BYTES = 16 * MIB  # room for the largest turn; less than that is still full
REBUILDS_PER_MINUTE_MAX = 10  # more failed turns than that: the node stops and says why
REBUILD_WINDOW_S = 60.0

# --- ordering ------------------------------------------------------------------------------------
ORDER_WAIT_MS = 10  # references that nobody waits for, where no other turn takes them along
ORDER_PACE_MS = 200  # between two log entries that nobody waits for: each costs seven turns
ORDER_PACE_FULL_MS = 50  # the same where the last one was full: 20,000 events a second
ORDER_REFERENCES_MAX = 1_024  # events of one log entry: 56 KiB, a few milliseconds of a turn
ORDER_PROPOSALS_MAX = 16  # on their way at a time: each turn of 2 ms makes one, an answer takes 20
PROPOSALS_WAITING_MAX = 4_096  # operations on sequences, and linear reads, of this node
OUTCOMES_RECENT_MAX = 8_192  # of sequence operations: an answer may come after its entry
PUBLISH_TRIES_MAX = 64  # a log entry gives out one number of a sequence: so many may contend
ORDER_MARK_ENTRIES = 256  # between two marks at which nodes compare: 5 ms with 10,000 sequences
NUMBERS_RECENT_MAX = 16_384  # published numbers whose digests are kept at hand, 5 MiB
CONFIG_LOOK_MS = 100  # how often a master looks whether the change in flight can go on
CONFIG_AGAIN_MS = 1_000  # a stage that was proposed and does not come is proposed again
CONFIG_REST_MS = 1_000  # nothing of a blocked node was behind for so long: what was under way h
CONFIG_WAITING_MAX = 64  # operators who wait for the end of a change: one is in flight at a time
QUORUM_RETRY_AFTER_S = 2.0  # said where there is no master: an election takes 1 to 2 s
LOG_KEPT_ENTRIES = 4_096  # the log keeps one to two times that: a minute or two under full load
LOG_KEPT_BYTES = 4 * MIB  # or one to two times that, where entries are large
APPLIED_PER_TURN_MAX = 4  # log entries: of 1,024 events each some 40 ms of a node that is behind
LOG_HELD_ENTRIES_MAX = 65_536  # for executors that are behind: then they begin from a snapshot
EXECUTED_PER_TURN_MAX = 64  # log entries of one turn of the executor, which is one fsync
EXECUTED_IDLE_MAX = 1_024  # log entries without a command before its applied index is written
EXECUTED_WAIT_S = 30.0  # for an executor that is behind the order, as long as an app waits
EXECUTOR_LOOK_S = 2.0  # between two looks at what other executors say
EXECUTOR_MARK_ENTRIES = 1_024  # log entries after which one says again how far it is
SNAPSHOT_CHUNK_BYTES = 60 * KIB  # of one answer of a peer, which takes 64 KiB
SNAPSHOT_WAIT_S = 60.0  # for executors to make and announce one; then it is asked for again
SNAPSHOT_LOOK_S = 0.2  # between two looks whether they have
SNAPSHOT_ANSWER_S = 10.0  # for one chunk
EXECUTOR_RETRY_S = 1.0  # after a disk that was full or failed
METAS_RECENT_MAX = 8_192  # places of events kept at hand for the log, 4 MiB

# --- stopping ------------------------------------------------------------------------------------
DRAIN_S = 8.0  # what was taken is finished by then; 2 s are left of the ten for closing
STOP_S = 10.0  # SIGTERM to exit, whatever hangs

# --- memory --------------------------------------------------------------------------------------
TIMES_RECENT_MAX = 65_536  # events whose times of arrival and of Read are remembered, 10 MiB
SUBSCRIPTIONS_MAX = 1_024  # as many as the API has connections
SUBSCRIPTION_QUEUE_MAX = 65_536  # news that one of them may ask to have kept for it
QUERY_MS_MAX = 60_000  # as long as the peer machine keeps a question
QUESTION_TIME_STEP_MS = 60_000  # clocks are seconds apart: a minute is the same for most
QUESTION_TIME_DIGITS_MAX = 15  # of milliseconds: 30,000 years
CORDS_ANSWERED_MAX = 400  # branches in one answer: about 48 KiB of the 64 that it may have
QUERIES_MAX = 64  # questions to the cluster at a time, as many as the peer machine keeps
TROUBLES_MAX = 1_024  # of peers that cannot be linked, as many as there are peers
TROUBLE_DETAIL_CHARS = 128  # of what a stranger sent: enough to know it by
TROUBLE_LOOK_S = 3.0  # between two looks for peers that do not greet back: a greeting takes 2
WAITERS_MAX = 65_536  # requests that wait for an event to become Read, 1 KiB each

# --- reading -------------------------------------------------------------------------------------
EXPLAIN_EVENTS_MAX = 16  # Unread ancestors named; more of them explain nothing more
ANCESTORS_MAX = 10_000  # one answer; 1 ms a hundred

# --- measuring -----------------------------------------------------------------------------------
COMMIT_SECONDS_BOUNDS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.25, 1.0)
STEP_SECONDS_BOUNDS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25)

# --- operations ----------------------------------------------------------------------------------
OPERATIONS_KEPT_MAX = 100  # of those that have ended; a screen or two, 1 MiB at the most
WORK_LINE_BYTES_MAX = 1 * MIB  # one line of a process that works for the node: 100 findings
SCRUB_START_DELAY_S = 60.0  # after a start the node has other things to do
SCRUB_RETRY_S = 3_600.0  # after a scrub that could not be done
SCRUB_FILE_BYTES_MAX = 64 * KIB  # the note of the last scrub
REPORT_BYTES_MAX = 1 * MIB  # of the consistency of 128 nodes, with every finding that people read

# --- pruning -------------------------------------------------------------------------------------
PRUNE_STEP_EVENTS = 256  # let go in one turn: some milliseconds of the writer
PRUNE_STEP_INVS = 1_024  # receipts, which are small
EVENT_OVERHEAD_BYTES = 400  # of one event beside its bytes: index, feed, tables, room in pages
PRUNE_INTERVAL_S = 600.0  # between two looks at what may go: as often as there is a checkpoint
PRUNE_ENDS_S = 10.0  # for the last step to be durable before an operator is told
ERASE_LOOK_S = 0.5  # between two looks at what is to be erased, where anything has become Read
ERASE_REST = 50  # times as long as a look took is rested after it: 2 % of a core at most
ERASURES_PER_TURN = 256  # looked at before others have the loop: some milliseconds
PRUNE_PAUSE_S = 0.02  # between two steps: entries of clients come first

# --- changes of roster ---------------------------------------------------------------------------
ROSTER_LOOK_MS = 1_000  # what comes with time alone, as a checkpoint, is looked for so often
CHANGE_SETTLED_S = 30.0  # READYs take 20 s at most; what takes longer is told by its progress
NOMINEE_DIAL_MS = 5_000  # and again, while it is wished for and not linked
MEET_S = 10.0  # for a nominee to say who it is, where it let go of its link a moment ago
MEET_LOOK_S = 0.05
CHANGES_WAITING_MAX = 64  # proposed here and not answered yet: one can be in flight
ROSTER_LOOK_BUSY_MS = 10  # while a change is under way: finality waits for its end

# --- consumers -----------------------------------------------------------------------------------
CONSUMERS_MAX = 1_000  # named cursors, of 8 KiB at most: their list is one answer

# --- open files ----------------------------------------------------------------------------------
SOCKET_PATH_BYTES_MAX = 107  # of a Unix socket: 108 in the kernel with the end mark
OWN_FILES_MAX = 256  # the store, keys, logs, pipes of operations, idle OPS and admin connections

# --- files ---------------------------------------------------------------------------------------
KEY_FILE_BYTES_MAX = 512  # three lines of 84 bytes, with room
INVITATION_BYTES_MAX = 2 * MIB  # a genesis of 1 MiB, with room; twice that as text
INVITATION_URIS_MAX = 32  # as many as there are members
CONFIG_FILE_BYTES_MAX = 1 * MIB  # a page of settings, with room

# --- doctor --------------------------------------------------------------------------------------
DOCTOR_SYNCS = 20  # a fifth of a second on a slow disk
SYNC_SLOW_S = 0.05  # slower than a spinning disk: something is wrong
