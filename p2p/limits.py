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
HOPS_MAX = 16  # 3 random nodes a hop reach 100 in 5 hops
BODY_BYTES_MAX = 128 * KIB  # of a gossip message that is neither of the core nor of a pool
QUESTION_BYTES_MAX = 128  # the name of a question
ARGUMENT_BYTES_MAX = 4 * KIB  # of a question; every member holds it while it answers
ANSWER_BYTES_MAX = 64 * KIB  # the asking node holds one a member
ADDRESSES_MAX = 256  # endpoints in one message: 450 bytes each at most, so 115 KiB
