"""Every bound of a devnet, each with its unit and its reason."""

NODES_MAX = 64  # 32 members and as many observers: more processes than a desk machine has use for
READY_S_MAX = 60.0  # from the first process to all linked; some 2 s for three nodes
APPLIED_S_MAX = 10.0  # until a node has read a new list of blocked peers: it looks every 50 ms
END_S_MAX = 15.0  # from SIGTERM to the end; a node ends itself after 10 s
POLL_S = 0.02  # between two looks at something that is awaited
ANSWER_S_MAX = 5.0  # one request to a node on loopback
PORT_FIRST = 18_000  # below the ports that Linux gives to those who dial, so a node that was
PORT_LAST = 31_999  # stopped finds its port free
PORT_TRIES = 1_000  # of one in 14,000 each
LOG_TAIL_LINES = 8  # of a node that did not start, said with the error
STATE_BYTES_MAX = 1 << 20  # a few hundred bytes a node
DEMO_EVENTS_PER_S = 1.4  # of each of the three writers: a picture in which each knot can be told
DEMO_S_MIN = 6.0  # six acts of a second each
DEMO_S_MAX = 3_600.0  # it shall end by itself
