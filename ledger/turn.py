"""One turn: its stamp, and the effects that pile up while the inputs are taken."""

from dataclasses import dataclass, field

from quipu.ledger.effects import (
    AskEarly,
    Durable,
    Effects,
    InputRefused,
    SendEarly,
    SendMessage,
    Spoken,
)
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import Inv
from quipu.ledger.messages import Message, encode_message
from quipu.ledger.refusals import Reason, Refused
from quipu.ledger.words import Hlc, NodeId, NodeNo, Now


@dataclass(slots=True)
class Turn:
    now: Now
    cluster_now: Hlc
    due_until: Hlc
    durable: list[Durable] = field(default_factory=list)
    spoken: list[Spoken] = field(default_factory=list)
    events: list[SignedEvent] = field(default_factory=list)  # new, and not asked for
    receipts: dict[NodeNo, Inv] = field(default_factory=dict)  # of others; the last of each

    def keep(self, effect: Durable) -> None:
        self.durable.append(effect)

    def say(self, effect: Spoken) -> None:
        self.spoken.append(effect)

    def send(self, peer: NodeId, message: Message) -> None:
        self.spoken.append(SendMessage(peer, encode_message(message)))

    def send_all(self, peers: list[NodeId], message: Message) -> None:
        data = encode_message(message) if peers else b""
        self.spoken.extend(SendMessage(peer, data) for peer in peers)

    def send_first(self, peers: list[NodeId], message: Message) -> None:
        """Ahead of everything else of this turn."""
        data = encode_message(message)
        self.spoken[:0] = [SendMessage(peer, data) for peer in peers]

    def send_early(self, peers: list[NodeId], message: Message) -> None:
        data = encode_message(message) if peers else b""  # of a lone node's event a long one
        self.spoken.extend(SendEarly(peer, data) for peer in peers)

    def ask_early(self, peer: NodeId, message: Message) -> None:
        self.spoken.append(AskEarly(peer, encode_message(message)))

    def refuse(self, peer: NodeId, refusal: Refused) -> None:
        self.spoken.append(InputRefused(peer, refusal.reason, refusal.detail))

    def note(self, peer: NodeId, reason: Reason, detail: str = "") -> None:
        self.spoken.append(InputRefused(peer, reason, detail))

    def effects(self) -> Effects:
        return Effects(self.durable, self.spoken)
