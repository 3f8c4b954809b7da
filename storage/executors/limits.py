"""Every bound of the executors, each with its unit and its reason.

Limits marked (outcome) decide results: executors that differ in one of them differ in what they
answer, so they are constants and never settings. The others are conduct of one node.
"""

from quipu.ledger.limits import ACCESS_LIST_BYTES_MAX

KIB = 1024
MIB = 1024 * KIB

# --- requests (outcome) --------------------------------------------------------------------------
MESSAGES_PER_REQUEST_MAX = 1_000  # a request is held under one savepoint and in one result
SQL_BYTES_MAX = 256 * KIB  # one statement's text; values belong into its parameters
PARAMETERS_MAX = 10_000  # values of one statement; rows of a thousand columns fit ten times
INTEGER_MAX = 2**63 - 1  # what SQLite stores as INTEGER, and its greatest rowid

# --- work (outcome) ------------------------------------------------------------------------------
# Counted in virtual machine steps, never in time: a slow machine gives up at the same step.
REQUEST_STEPS_MAX = 5_000_000  # about a quarter of a second of one core, which all others wait for
STEPS_PER_COUNT = 1_000  # steps between two counts; a statement below that many costs nothing
EXPRESSION_DEPTH_MAX = 200  # parsing recurses, and the stack of a thread is small
COMPOUND_SELECTS_MAX = 100  # terms of a UNION; each is code of its own
COLUMNS_MAX = 1_000  # of a table or a result
TRIGGER_DEPTH_MAX = 32  # triggers that fire triggers; a cycle ends here
FUNCTION_ARGUMENTS_MAX = 100  # SQLite's own bound is 127
LIKE_PATTERN_BYTES_MAX = 1_000  # a pattern that is compared with each row

# --- results (outcome) ---------------------------------------------------------------------------
RESULT_ROWS_MAX = 10_000  # rows of all results of one request
RESULT_BYTES_MAX = 1 * MIB  # encoded rows of one request: kept until the client has them
VALUE_BYTES_MAX = 2 * MIB  # one text, blob or row; a kept result is a row as well
KEPT_BYTES_PER_CLIENT_MAX = 64 * MIB  # results a client has not taken; above it nothing is run
DETAIL_CHARACTERS_MAX = 500  # words of a failure, for people
READ_BYTES_MAX = 4 * MIB  # results handed out by one READ; the next READ gives the next ones

# --- access lists (outcome) ----------------------------------------------------------------------
RULES_PER_CLIENT_MAX = 1_000  # looked through at each table of a statement
TABLE_NAME_BYTES_MAX = 128  # longer names are refused in rules
ACL_BYTES_MAX = ACCESS_LIST_BYTES_MAX  # 1,000 rules over names of a usual length

# --- comparison ----------------------------------------------------------------------------------
MARK_STRIDE = 64  # log indexes between two kept digests: executors are never level
MARKS_KEPT = 4_096  # 262,144 indexes back, two minutes at 2,000 a second

DIGESTS_RECENT_MAX = 16_384  # indexes with commands whose digest is at hand: 2 MiB

# --- local reading -------------------------------------------------------------------------------
QUERY_ROWS_MAX = 10_000  # rows of one answer
QUERY_BYTES_MAX = 4 * MIB  # encoded rows of one answer
QUERY_TIME_S_MAX = 5.0  # local, so a clock may end it
QUERY_STEPS_PER_LOOK = 10_000  # virtual machine steps between two looks at the clock: under 1 ms

# --- one process ---------------------------------------------------------------------------------
CACHE_KIB = 16 * KIB  # pages held by one connection; fixed, for sorters spill by it
LISTS_DECODED_MAX = 64  # access lists of clients that ask again and again: 4 MiB at most
STATEMENTS_CHECKED_MAX = 1_024  # texts that were found fit, until tables or rights are others
CHECKED_AT_ONCE_BYTES = 4 * KIB  # a request of that size is checked in half a millisecond
CHECKED_AT_ONCE_MESSAGES = 16
ANSWERS_OF_GATE_MAX = 1_024  # what SQLite asks about one kind of statement: its columns
WAL_PAGES = 4_096  # 16 MiB are written before they go to the file: a synced copy costs 10 ms
STATEMENTS_PARSED_MAX = 1_024  # texts whose words are remembered
STATEMENT_KEPT_CHARACTERS_MAX = 4_096  # longer ones are read anew: 4 MiB remembered at most
BUSY_TIMEOUT_S = 5.0  # a checkpoint of another connection may hold the file that long
SNAPSHOT_PAGES_PER_STEP = 1_024  # 4 MiB copied at a time
SET_ASIDE_MAX = 1_000  # databases kept beside the one in use; somebody ought to look at them
FILE_BYTES_PER_READ = 1 * MIB  # of a snapshot as it is hashed
SQLITE_VERSION_LEAST = (3, 37, 0)  # the first with STRICT and with the list of tables
