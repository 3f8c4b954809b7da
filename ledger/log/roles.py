"""What a node is in the log, and what makes it another: the table, and nothing besides."""

from enum import StrEnum


class Role(StrEnum):
    RECOVERING = "recovering"  # its disk was lost: it learns, and votes for nothing
    FOLLOWER = "follower"  # takes what the master sends; votes if it is a serializer
    ASKING = "asking"  # PreVote: would a majority promise?
    CANDIDATE = "candidate"  # PREPARE is out
    MASTER = "master"


class Cause(StrEnum):
    SILENCE = "silence"  # no master for 1 to 2 s, or no majority of answers
    WELCOME = "welcome"  # a majority would promise
    HANDED_OVER = "handed-over"  # the master asks this node to take the next regime
    ELECTED = "elected"  # a majority has promised
    MASTER_HEARD = "master-heard"  # an ACCEPT that has to be taken
    HIGHER_REGIME = "higher-regime"  # promised to another node
    NO_QUORUM = "no-quorum"  # a master that no majority answers
    RECOVERED = "recovered"
    DISK_LOST = "disk-lost"  # somebody shows what this node signed and does not know


TRANSITIONS: dict[tuple[Role, Cause], Role] = {
    (Role.RECOVERING, Cause.RECOVERED): Role.FOLLOWER,
    (Role.RECOVERING, Cause.MASTER_HEARD): Role.RECOVERING,
    (Role.FOLLOWER, Cause.SILENCE): Role.ASKING,
    (Role.FOLLOWER, Cause.MASTER_HEARD): Role.FOLLOWER,
    (Role.FOLLOWER, Cause.HIGHER_REGIME): Role.FOLLOWER,
    (Role.FOLLOWER, Cause.HANDED_OVER): Role.CANDIDATE,
    (Role.FOLLOWER, Cause.DISK_LOST): Role.RECOVERING,
    (Role.ASKING, Cause.SILENCE): Role.ASKING,
    (Role.ASKING, Cause.WELCOME): Role.CANDIDATE,
    (Role.ASKING, Cause.MASTER_HEARD): Role.FOLLOWER,
    (Role.ASKING, Cause.HIGHER_REGIME): Role.FOLLOWER,
    (Role.ASKING, Cause.DISK_LOST): Role.RECOVERING,
    (Role.CANDIDATE, Cause.SILENCE): Role.ASKING,
    (Role.CANDIDATE, Cause.ELECTED): Role.MASTER,
    (Role.CANDIDATE, Cause.MASTER_HEARD): Role.FOLLOWER,
    (Role.CANDIDATE, Cause.HIGHER_REGIME): Role.FOLLOWER,
    (Role.CANDIDATE, Cause.DISK_LOST): Role.RECOVERING,
    (Role.MASTER, Cause.HIGHER_REGIME): Role.FOLLOWER,
    (Role.MASTER, Cause.NO_QUORUM): Role.FOLLOWER,
    (Role.MASTER, Cause.DISK_LOST): Role.RECOVERING,
}
