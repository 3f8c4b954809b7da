"""The vocabulary: one word, one thing, on the wire, on disk, in code and in the docs."""

from typing import NamedTuple, NewType

NodeId = NewType("NodeId", bytes)  # Ed25519 public key, 32 bytes
NodeNo = NewType("NodeNo", int)  # u32 given by genesis and epoch documents; 0 = not a member
EventId = NewType("EventId", bytes)  # SHA-256 of the header, 32 bytes
Journal = NewType("Journal", int)  # u64: one unbroken chain of an author's events
Seq = NewType("Seq", int)  # u64 >= 1: position in a journal
Hlc = NewType("Hlc", int)  # u64: milliseconds << 16 | counter
EpochNo = NewType("EpochNo", int)  # number of a roster; the genesis is epoch 1
InvNumber = NewType("InvNumber", int)  # u64, strictly increasing for each signer
Ticket = NewType("Ticket", int)  # names one submission between the shell and the core

HLC_SHIFT = 16
GENESIS_EPOCH = EpochNo(1)
NOT_A_MEMBER = NodeNo(0)


class Now(NamedTuple):
    """The one stamp of a turn."""

    wall_ms: int
    monotonic_ms: int


class Cord(NamedTuple):
    """One journal of one author."""

    author_no: NodeNo
    journal: Journal


class BranchKey(NamedTuple):
    """One unforked line of a cord; number 0 is the line stored first."""

    author_no: NodeNo
    journal: Journal
    number: int

    @property
    def cord(self) -> Cord:
        return Cord(self.author_no, self.journal)


class Slot(NamedTuple):
    """Where an event lies: an honest author signs one event for (author, journal, seq), ever."""

    author_no: NodeNo
    journal: Journal
    seq: Seq
    number: int  # the branch

    @property
    def branch(self) -> BranchKey:
        return BranchKey(self.author_no, self.journal, self.number)


def hlc_at(wall_ms: int) -> Hlc:
    return Hlc(wall_ms << HLC_SHIFT)
