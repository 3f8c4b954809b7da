"""Every bound of the HTTP face, each with its unit and its reason."""

KIB = 1024
MIB = 1024 * KIB

# --- bodies ---------------------------------------------------------------------------------------
BODY_BYTES_MAX = 3 * MIB // 2  # one entry of 1 MiB as base64, with its fields; a line of NDJSON
BATCH_BYTES_MAX = 16 * MIB  # a batch that is held in memory whole: JSON array, atomic
BATCH_ITEMS_MAX = 10_000  # as many as one event holds
BATCH_CHUNK_ITEMS = 256  # items of a streamed batch that are in flight together
LINGER_BYTES_MAX = (
    32 * MIB
)  # a refused body is read to its end, so that the answer is seen; no more
LINGER_S = 2.0  # and for no longer
DRAIN_STEP_S = 0.005  # between two pieces of refused bodies, of 256 KiB and 250 us at most
BODY_AWAITED_BYTES_MAX = 128 * KIB  # aiohttp reads on to here; 1,000 connections: 125 MiB
QUERY_BYTES_MAX = 4 * KIB  # an event id or cursor is under 200 B; filters are names
HEADER_BYTES_MAX = 16 * KIB  # a token, a cursor and what proxies add
REQUEST_ID_BYTES_MAX = 64  # a caller's own id of a request is echoed up to here

# --- deadlines ------------------------------------------------------------------------------------
FIRST_HEADER_S = 10.0  # aiohttp alone waits for ever for the first request of a connection
BODY_S = 30.0  # 1.5 MiB in 30 s is 50 KiB a second
KEEPALIVE_S = 75.0  # above the usual 60 s of a proxy, so that the proxy closes first
WAIT_DEFAULT_MS = 30_000  # how long an answer may be waited for when nothing is said
WAIT_MS_MAX = 120_000  # beyond this, proxies between cut the connection
HEARTBEAT_S = 15.0  # a quiet stream says that it lives; below the 30 s of most proxies
DRAIN_S = 10.0  # SIGTERM to exit, with streams open

# --- connections ----------------------------------------------------------------------------------
CONNECTIONS_MAX = 1_000  # connection 1,001 waits unread in the backlog
CONNECTIONS_PER_ADDRESS_MAX = 256  # one address cannot take them all; not held against loopback
IDLE_S = 1.0  # a connection silent for so long leaves where others wait to be read
IDLE_LOOK_S = 0.1  # how often all are looked through for silent ones; 0.3 ms
ROOM_LOOK_S = 0.005  # how often silent ones are closed while others wait
ROOM_PER_LOOK = 2  # of them at one time: 400 a second, in 1.3 % of the loop's time
BACKLOG = 1_024  # connections that the kernel keeps for us; it answers no more than these
ACCEPTS_PER_TURN = 4  # of the event loop: 0.2 ms in which nobody else is served
CONNECTIONS_PER_S_MAX = (
    500.0  # 80 us to open and close one, 130 us with a slow body: 7 % of the loop
)
ACCEPTS_BURST = 64.0  # taken as fast as they come before that holds
REFUSAL_COST = 0.25  # of a connection that is accepted and closed at once, in accepts
TLS_COST = 4.0  # of a handshake, 0.5 to 1 ms, in accepts
ACCEPT_PAUSE_S = 1.0  # when the process may open no more files
PIPELINED_S = 0.015  # a request with others behind it waits so long: a pipeline has no hurry

# --- pressure -------------------------------------------------------------------------------------
IN_FLIGHT_MAX = 4_096  # requests being served; above: 503 before the body is read
IN_FLIGHT_BYTES_MAX = 256 * MIB  # bodies being read or waited on together
IN_FLIGHT_PER_CALLER_MAX = 1_024  # of one token: above: 429
IN_FLIGHT_STANDING_MAX = 160  # for longer than a burst: as many keep it busy, more wait longer
BURST_S = 0.25  # submissions may be above it for that long; they are queued
CALM_S = 2.0  # without reaching it for so long, what comes is a new burst; above RETRY_AFTER_S
RETRY_AFTER_S = 1  # what a refused caller waits at least
REST_SHARE = 0.9  # of that time its connection is not read: one that keeps it is never early
EARLY_S = 0.05  # what is read so soon after was sent before the time was over

# --- reading --------------------------------------------------------------------------------------
PAGE_DEFAULT = 100  # items of a page when nothing is said
PAGE_MAX = 1_000  # items of a page; 1 MiB of typical entries
PAGE_BYTES_MAX = 8 * MIB  # a page ends early here, whatever it holds
PAGE_SCANNED_MAX = 10_000  # entries looked at for one page of a narrow filter
SEEK_EVENTS_MAX = 100_000  # looked back at for a cursor of another node: 1 s, in many turns
FILTER_BYTES_MAX = 256  # value of one filter
ANCESTORS_DEFAULT = 1  # depth when nothing is said
ANCESTORS_DEPTH_MAX = 64  # steps back in the DAG in one answer
EVENTS_ANSWERED_MAX = 1_000  # events in one answer about the DAG
PREFIX_DIGITS_MIN = 4  # of an id that is looked for: with fewer, any busy ledger has too many
PREFIX_FOUND_MAX = 20  # events with one prefix that are shown; more digits tell them apart
RECEIPT_ROWS_MAX = 128  # branches in one answer: 32 members, four journals each
FINALITY_SAMPLES = 1_000  # last events whose delay is told: enough for p99, 60 us to sort
CURSOR_BYTES_MAX = 8 * KIB  # 32 members x 16 cords of a vector, encoded

# --- streams --------------------------------------------------------------------------------------
STREAM_QUEUE_ITEMS = 256  # what one reader may lag behind before it reads from the store again
STREAM_WRITE_BYTES = 256 * KIB  # unsent bytes of one reader before it is left behind
RECEIPTS_EVERY_S = 0.1  # who looks sees them come; at most ten small messages a second
STREAMS_MAX = 256  # readers of streams at one time

# --- consumers ------------------------------------------------------------------------------------
CONSUMER_TTL_MS_MAX = 30 * 86_400_000  # a month: what is forgotten must not hold back for ever

# --- tokens ---------------------------------------------------------------------------------------
TOKEN_SECRET_BYTES = 32  # random bits of a token, 256 of them
TOKENS_MAX = 10_000  # tokens in one file
TOKEN_FILE_BYTES_MAX = 4 * MIB  # 10,000 of them
TOKEN_CHECK_S = 1.0  # how soon a revoked token is seen at the latest

# --- counting -------------------------------------------------------------------------------------
STREAMS_COUNTED_MAX = 10_000  # names of streams kept with their counts, 1 MiB of memory
STREAM_COUNT_STEP = 32  # events counted before the loop gets its turn

# --- stream ingest --------------------------------------------------------------------------------
INGESTS_MAX = 64  # connections of /v1/ingest at one time, each with its window
INGEST_FRAME_BYTES_MAX = 2 * MIB  # one message: an entry of 1 MiB, or 2,048 of 1 KiB
INGEST_FRAME_ENTRIES_MAX = 2_048  # with names and keys at their longest they still fit one event
INGEST_WINDOW_ENTRIES = 8_192  # taken and not acknowledged; 40,000 a second at a sync of 200 ms
INGEST_WINDOW_BYTES = 8 * MIB  # of frames, likewise
INGEST_WINDOW_FRAMES = 64  # likewise: 64 connections fill the inbox and no more
INGEST_ROWS_MAX = 1_024  # runs in one acknowledgement frame: with long details under 512 KiB
INGEST_DETAIL_CHARS_MAX = 200  # of one refusal: what a frame of refusals holds is bounded
INGEST_MOLDS_MAX = 1_024  # pairs of stream and content type that a connection is quick with
INGEST_ROOM_S = 0.005  # how soon a full inbox is asked again; two commits
INGEST_CLOSE_S = 2.0  # how long a producer has for its half of the goodbye

# --- clients -------------------------------------------------------------------------------------
CLIENT_DIGITS_MAX = 10  # of the number of a client, u32
