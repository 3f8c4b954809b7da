"""Exit codes, and the errors that end a start: what is wrong, and what to do next."""

from enum import IntEnum


class Exit(IntEnum):
    OK = 0
    FAILURE = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    REJECTED = 5
    CONFLICT = 6
    AUTH = 7
    WAITED = 8
    NOT_VERIFIED = 9
    PARTLY = 10


class CannotStart(Exception):
    """The node does not run: one sentence of what is wrong, one of what to do next."""

    code = Exit.FAILURE

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


class BadSetting(CannotStart):
    code = Exit.USAGE


class KeyExposed(CannotStart):
    """Others may read a secret file, or it is not what a key file holds."""

    code = Exit.AUTH


class NotAdmitted(CannotStart):
    """The cluster did not let this node in."""

    code = Exit.AUTH


class SeedUnreachable(CannotStart):
    code = Exit.UNREACHABLE


class BadInvitation(CannotStart):
    code = Exit.USAGE


class DirectoryTaken(CannotStart):
    """Locked by another process, or of another node or cluster, or not a data directory."""

    code = Exit.CONFLICT


class PortTaken(CannotStart):
    code = Exit.CONFLICT


class StoreUnusable(CannotStart):
    pass
