"""Every bound of the peer protocol, each with its unit and its reason."""

KIB = 1024
MIB = 1024 * KIB

# --- formats ------------------------------------------------------------------------------------
TEXT_BYTES_MAX = 2**8 - 1  # of DECEN: one octet counts them
PORT_MAX = 2**16 - 1  # TCP
POOLS_MAX = 128  # of one node: their names and HELLO's headers fit the 16-bit n of a frame's header
HEADERS_MAX = 32  # of a HELLO: three times what this version sends
SECRETS_MAX = 3  # held at one time; as many HMACs fit one header of HELLO
VERSION_TEXT_BYTES_MAX = 64  # longer than any release name of ours
HOST_BYTES_MAX = 253  # a DNS name is no longer
CONTENT_BYTES_MAX = 5 * MIB  # libzmq's MAXMSGSIZE; the largest message of the core fits
CONTENT_MESSAGES_MAX = 4_096  # bounds the time of one turn at both ends
FIELDS_MAX = 64  # of a gossip message of a later version; this one has 10
LEAVING_BYTES_MAX = 256  # the form has 180 bytes at most
HOPS_MAX = 16  # 32 members are 7 hops across; the rest is for dead ones on the way
BODY_BYTES_MAX = 128 * KIB  # of a gossip message that is neither of the core nor of a pool
QUESTION_BYTES_MAX = 128  # the name of a question
ARGUMENT_BYTES_MAX = 4 * KIB  # of a question; every member holds it while it answers
ANSWER_BYTES_MAX = 64 * KIB  # the asking node holds one a member
ADDRESSES_MAX = 256  # endpoints in one message: 450 bytes each at most, so 115 KiB

# --- transport: frames --------------------------------------------------------------------------
HEAD_BYTES_MAX = 8 + 65_535  # a 64-bit header and what its 16-bit n can count
QUEUE_BYTES_MAX = 16 * MIB  # waiting for one peer: three of the largest frames
SEND_HWM_FRAMES = 16  # within libzmq, behind that queue: it counts frames, never bytes
RECEIVE_HWM_FRAMES = 16  # of one connection within libzmq; beyond, TCP pushes back
SEND_FRAMES_TURN_MAX = 256  # handed to libzmq before other work gets its turn, about 1 ms
READ_FRAMES_TURN_MAX = 256  # read before other work gets its turn, about 2 ms
READ_BYTES_TURN_MAX = 8 * MIB  # the same for large frames: one of the largest always fits
EVENTS_TURN_MAX = 256  # of connections, taken before other work gets its turn

# --- transport: connections ---------------------------------------------------------------------
INBOUND_CONNECTIONS_MAX = 256  # 32 members and their observers; each holds one descriptor
INBOUND_CONNECTIONS_KEY_MAX = 4  # one is in use; the others are not yet known to have ended
INBOUND_SILENT_MAX = 64  # not heard yet, while strangers can make room: a handshake takes 10 ms
KNOWN_KEYS_MAX = 256  # of those that were dialled last: as many as are let in
BACKLOG_MAX = 256  # not yet accepted: as many as are let in
EVENTS_WAITING_MAX = 100_000  # told by libzmq, not yet read: 1 s of a flood, 10 MB
UNFINISHED_BYTES_MAX = 16 * MIB  # of one connection without a frame: the largest and TCP's buffer
UNFINISHED_ALL_BYTES_MAX = 256 * MIB  # of all: 32 members within the largest frame, and queues
UNCOUNTED_BYTES_MAX = 64 * KIB  # handshake and heartbeats, and what frames weigh on the wire
HANDSHAKE_BYTES_MAX = 8 * KIB  # that come back to whoever dials, which are about 300
HEARTBEAT_BYTES_SECOND_MAX = 512  # the same after the handshake, which are about 70
CONNECT_TIMEOUT_MS = 1_500  # three tries of TCP on a local network, one across the world
HANDSHAKE_TIMEOUT_MS = 5_000  # four messages each way: a loaded node answers within
RESOLVE_TIMEOUT_MS = 5_000  # of a host name: what a resolver takes to try a second server
LINK_HEARTBEAT_INTERVAL_MS = 1_000  # of libzmq, below the machine's own: finds a dead connection
LINK_HEARTBEAT_TIMEOUT_MS = 5_000  # as long as it takes to become SUSPECT
LINGER_MS = 1_000  # what was sent before the end is still delivered within it
SCREEN_INTERVAL_MS = 50  # how soon a partition that a test asks for begins
WATCH_INTERVAL_MS = 250  # how often connections are measured: bounds what a flood can add

# --- membership ---------------------------------------------------------------------------------
HEARTBEAT_INTERVAL_MS = 1_000  # ALIVE to a peer that got no other frame for so long
SUSPECT_AFTER_MS = 5_000  # five heartbeats lost: out of the live view
UNREACHABLE_AFTER_MS = 10_000  # twice that, if witnesses say so too
DEAD_AFTER_MS = 30_000  # queues are freed; dialling goes on
HEALTH_INTERVAL_MS = 2_500  # a suspect is pinged and asked about so often: thrice before 10 s
ASLEEP_AFTER_MS = 2_000  # between two turns: this node slept, the others may have spoken
WITNESSES = 2  # distinct members that miss a peer too, before it is UNREACHABLE
WITNESSES_OF_THREE = 1  # a cluster of three has no more
PEERS_MAX = 1_024  # 32 members and the observers attached here; a peer takes some KiB

# --- links --------------------------------------------------------------------------------------
SEQUENCES = 2**16  # u16 counts the frames of a link
STATUSES = 2**8  # one octet counts the changes of pools
START_SHIFT = 20  # random bits of a start, below its milliseconds
DIAL_FIRST_MS = 100  # doubled at each failure
DIAL_LAST_MS = 1_000  # a peer that came back is found within 3 s
CALLED_AFTER_MS = 3_000  # without a word to it, a link from there is no answer; it is stale
DIAL_DEAD_MS = 2_000  # for ever, else a healed partition never reconnects
DIAL_ANSWER_MS = 10_000  # a transport that tells no outcome by then lost it
HELLO_AGAIN_MS = 1_000  # between two requests for a HELLO of one peer
WAITING_MESSAGES_MAX = 64  # for a peer whose link is being made
CONTENT_BYTES = MIB  # of gossip messages put into one frame; one message may be larger

# --- beacon -------------------------------------------------------------------------------------
DATAGRAM_BYTES_MAX = 1_200  # passes everywhere in one piece: IPv6 carries 1,280 and its headers
BEACON_INTERVAL_MS = 1_000  # whoever comes is found within it; one takes 0.1 ms and 320 octets
BEACONS_SECOND_MAX = 512  # read: 32 members, three secrets each, five times over
BEACON_BUFFER_BYTES = 128 * KIB  # of the system, between two turns

# --- multicast ----------------------------------------------------------------------------------
CAST_PARTS_MAX = 64  # datagrams of one frame: what the smallest receive buffer holds
CAST_BYTES_MAX = 64 * KIB  # of a frame; a larger one goes to each peer by itself
CAST_RECEIVERS_MIN = 2  # for one alone its link is better
CAST_BYTES_MS_MAX = 8 * KIB  # 8 MiB a second: datagrams have no flow control, links have
CAST_BURST_BYTES_MAX = 128 * KIB  # what may go at once after a pause: two of the largest frames
CAST_WINDOW = 1_024  # frames that may overtake each other, and that are kept for repair
CAST_WINDOW_BYTES = 4 * MIB  # of them, kept for repair: half a second at the highest rate
CAST_UNFINISHED_MAX = 64  # frames of one sender of which parts are missing: 4 MiB
CAST_ASKED_MAX = 256  # numbers asked for in one report; more are gone from the window soon
CAST_GAP_MS = 20  # what is missing may only be late: datagrams of one network are rarely so late
CAST_TAIL_MS = 50  # after the last frame an empty one shows whether that one was lost
CAST_REPORT_MS = 1_000  # between two reports, and between two empty frames of a silent sender
CAST_SILENT_MS = 2_500  # two reports lost: frames go over the link again
CAST_LOST_SHARE = 8  # with more than one frame of so many lost, multicast costs more than it saves
CAST_REST_MS = 30_000  # then over the link for so long
CAST_JUDGED_MIN = 16  # frames between two reports, from which on their share of losses counts
CASTS_SECOND_MAX = 65_536  # datagrams read: 32 members cannot send more of use, and a flood stops
CASTS_TURN_MAX = 256  # read before other work gets its turn, about 3 ms
CAST_BUFFER_BYTES = 4 * MIB  # of the system, which may allow less

# --- guests -------------------------------------------------------------------------------------
GUESTS_MAX = 8  # served at one time: a genesis of 1 MiB each at most, and a link
GUEST_INTERVAL_MS = 100  # between two that begin: 10 a second, so 10 MiB a second at most
GUEST_TIME_MS = 5_000  # of one: dialling, handshake, and a genesis over a slow line
GUEST_WAIT_MS = 10_000  # of a guest for its answer: twice what the other side takes

# --- spreading ----------------------------------------------------------------------------------
SPREAD_ALL_MAX = 8  # members to which a message goes straight
SPREAD_ABOVE = 3  # neighbours in larger clusters: two may fail
SEEN_WINDOW = 1_024  # messages of one sender that may overtake each other
SEEN_SENDERS_MAX = 2_048  # twice the peers: members are never forgotten
DISCOVER_FIRST_MS = 1_000  # nobody has acknowledged it, or an address is missing: doubled
DISCOVER_LAST_MS = 3_000  # one message and its answer; 6 s after healing all is to stand
JOINED_WITHIN_MS = 500  # all see a node come at once: whoever hears it told keeps silent
KEEP_INTERVAL_MS = 5_000  # between two writes of what a restart begins with
KEEP_FLOORS_MS = 60_000  # where nothing rose but the numbers of messages
KEPT_BYTES_MAX = 512 * KIB  # 1,024 peers of about 450 bytes each

# --- queries ------------------------------------------------------------------------------------
QUERIES_OPEN_MAX = 64  # asked here at a time; each holds an answer of each member
QUESTIONS_OPEN_MAX = 256  # of others, waiting for the node's answer
QUESTION_AGE_MS = 60_000  # no query takes longer
QUERY_AGAIN_MS = 1_000  # members that are silent are asked again
