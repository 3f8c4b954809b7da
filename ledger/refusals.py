"""Why something from outside is refused: a closed list, each word counted and documented.

A refusal leaves the state as it was. Errors of the program itself are assertions.
"""

from enum import StrEnum
from typing import NoReturn


class Reason(StrEnum):
    MALFORMED = "malformed"  # not the array that the format asks for, or cut short
    NOT_CANONICAL = "not-canonical"  # decodes, but these are not the shortest bytes for it
    TOO_LARGE = "too-large"
    UNKNOWN_VERSION = "unknown-version"
    UNKNOWN_KIND = "unknown-kind"
    WRONG_CLUSTER = "wrong-cluster"
    BAD_SIGNATURE = "bad-signature"
    NOT_A_MEMBER = "not-a-member"
    EPOCH_UNKNOWN = "epoch-unknown"  # of an epoch that has not been opened here yet
    EPOCH_FALLS = "epoch-falls"  # below that of prev or a parent
    CORD_ENDED = "cord-ended"  # above the cut, of an author who left
    BAD_SEQ = "bad-seq"
    BAD_PREV = "bad-prev"
    BAD_PARENTS = "bad-parents"  # not sorted, doubled, too many, of the own cord
    BAD_HLC = "bad-hlc"  # not greater than that of prev and parents
    BAD_DEPTH = "bad-depth"
    BAD_BODY = "bad-body"  # size or count is not what the header says
    BAD_ROOT = "bad-root"
    BAD_ENTRY = "bad-entry"
    BAD_ROWS = "bad-rows"  # rows not sorted, doubled, or of unknown members
    NOT_DUE = "not-due"  # too many events of that cord wait for their time already
    TOO_OLD = "too-old"  # unasked and older than ten minutes: SyncEvent brings it
    FORKED = "forked"  # a second event for a slot that nobody but its author vouches for
    NO_PROOF = "no-proof"  # evidence, seals or a bundle that prove nothing
    NOT_READ = "not-read"  # asked to prove an event for which no certificate is held
    UNREAD_BACKLOG = "unread-backlog"
    OVERRULED = "overruled"  # the cluster went on by force, without this node
    CATCHING_UP = "catching-up"  # a new member writes once its Model contains the cut
    ROOM_FULL = "room-full"
    UNREQUESTED = "unrequested"
    HOLLOW = "hollow"  # an entry is missing, and no cut says that a quorum had held it
    PRUNED = "pruned"  # at or below what has been let go of that cord: its cut is final
    # --- the log ---
    BAD_INDEX = "bad-index"  # not the next one, or not in the log that it is said to be in
    BAD_REGIME = "bad-regime"  # promised to another node, or falls along the log
    BAD_DIGEST = "bad-digest"  # the running digest is not that of the entries beside it
    CHOSEN_DIFFERS = "chosen-differs"  # another entry where one was chosen
    NOT_A_VOTER = "not-a-voter"
    CHANGE_IN_FLIGHT = "change-in-flight"  # another CLOSE waits for its OPEN


class Refused(Exception):
    """Outside input that is not taken."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason
        self.detail = detail


def refuse(reason: Reason, detail: str = "") -> NoReturn:
    raise Refused(reason, detail)
