"""Why something that a peer sent is not taken: a closed list, each word counted and documented.

A refusal leaves the state as it was. Errors of the program itself are assertions.
"""

from enum import StrEnum
from typing import NoReturn


class Cause(StrEnum):
    # --- octets -----------------------------------------------------------------------------------
    TRUNCATED = "truncated"  # ends before its form does
    TRAILING_BYTES = "trailing-bytes"  # goes on after its form has ended
    BAD_MARKER = "bad-marker"  # a command that does not begin with AA A1
    UNKNOWN_COMMAND = "unknown-command"
    UNSUPPORTED_VERSION = "unsupported-version"  # of a command, or of a gossip message
    BAD_TEXT = "bad-text"  # not UTF-8, or with control characters in it
    MALFORMED = "malformed"  # a field that is not what the form asks for
    NOT_CANONICAL = "not-canonical"  # decodes, but these are not the shortest bytes for it
    TOO_LARGE = "too-large"
    # --- HELLO ------------------------------------------------------------------------------------
    NOT_HELLO = "not-hello"  # the first frame of a link is something else
    WRONG_CLUSTER = "wrong-cluster"
    WRONG_KEY = "wrong-key"  # the key of the link does not belong to the node id that is claimed
    OWN_IDENTITY = "own-identity"  # a copy of this node's key is at work, or it dialled itself
    WRONG_SECRET = "wrong-secret"  # noqa: S105 - a word, not a secret
    NO_COMMON_VERSION = "no-common-version"
    OLDER_START = "older-start"  # a later start of that node was heard
    # --- gossip -----------------------------------------------------------------------------------
    UNKNOWN_KIND = "unknown-kind"
    WRONG_ACTION = "wrong-action"  # another expected action than the one of that kind
    BAD_SIGNATURE = "bad-signature"  # wrong, missing, or where none belongs
    BAD_ENDPOINT = "bad-endpoint"  # no host and port that anybody could dial
    # --- conduct ----------------------------------------------------------------------------------
    REPEATED_SEQUENCE = "repeated-sequence"  # a frame that was here, or was overtaken
    DUPLICATE = "duplicate"  # a gossip message that was here, or of an older start of its sender
    NOT_ITS_OWN = "not-its-own"  # an unsigned message of somebody else than the peer itself
    NOT_UP = "not-up"  # a message of the core by a peer that is not up here yet
    NOT_ASKED = "not-asked"  # answers nothing that this node asks now
    NOT_IN_POOL = "not-in-pool"  # something for a pool that this node is not in
    TOO_MANY_PEERS = "too-many-peers"
    TOO_MANY_GUESTS = "too-many-guests"  # at one time; it greets again
    UNSUPPORTED_BY_PEER = "unsupported-by-peer"  # it did not understand what this node sent
    FOREIGN_BEACON = "foreign-beacon"  # a datagram of the group that no secret opens
    FOREIGN_CAST = "foreign-cast"  # a datagram of the group that no key of a peer opens
    REPEATED_CAST = "repeated-cast"  # one that was here, or was asked for over the link
    STALE_MEMORY = "stale-memory"  # what was kept for this start cannot be read


class FrameRefused(Exception):
    """Something from a peer that is not taken."""

    def __init__(self, cause: Cause, detail: str = "") -> None:
        super().__init__(f"{cause}: {detail}" if detail else str(cause))
        self.cause = cause
        self.detail = detail


def refuse(cause: Cause, detail: str = "") -> NoReturn:
    raise FrameRefused(cause, detail)
