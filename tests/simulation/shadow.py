"""What a disk must hold, kept by the judge beside the disk itself."""

from dataclasses import dataclass, field

from quipu.ledger.history import BranchRecord
from quipu.ledger.words import BranchKey, EventId


@dataclass(slots=True)
class Shadow:
    """The durable state of one disk: it grows at commits and follows wipes, images and clones."""

    held: dict[EventId, None] = field(default_factory=dict)
    read: dict[EventId, None] = field(default_factory=dict)  # in the order of the feed
    invs: dict[tuple[int, int], bytes] = field(default_factory=dict)  # (signer, number) -> inv id
    branches: dict[BranchKey, BranchRecord] = field(default_factory=dict)
    epoch: int = 1
    own_number: int = 0  # the newest receipt of the node itself
    convicted: dict[bytes, int] = field(default_factory=dict)  # authors; when it was stored

    def image(self) -> "Shadow":
        return Shadow(
            dict(self.held),
            dict(self.read),
            dict(self.invs),
            dict(self.branches),
            self.epoch,
            self.own_number,
            dict(self.convicted),
        )
