"""The last steps of a world, for people: printed when a property fails."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from quipu.ledger import effects as fx
from quipu.ledger import inputs as ins
from quipu.ledger.effects import Effects
from quipu.ledger.inputs import Input
from quipu.ledger.messages import (
    Answer,
    EventMessage,
    GetData,
    InvMessage,
    SyncEvent,
    decode_message,
)
from quipu.ledger.refusals import Refused

if TYPE_CHECKING:
    from tests.simulation.node import SimNode
    from tests.simulation.world import World

LINES_MAX = 4_000
LINE_CHARS_MAX = 600


class Transcript:
    def __init__(self, world: World, lines_max: int = LINES_MAX) -> None:
        self._world = world
        self.lines: deque[str] = deque(maxlen=lines_max)

    def add(self, now_us: int, node: SimNode | None, text: str) -> None:
        self.lines.append(f"{now_us / 1e6:9.4f} {node or '-'!s:<6} {text}"[:LINE_CHARS_MAX])

    def add_step(self, now_us: int, node: SimNode, inputs: list[Input], effects: Effects) -> None:
        said = [self._input(item) for item in inputs]
        did = [self._durable(effect) for effect in effects.durable]
        spoke = self._spoken_all(effects.spoken)
        if said or did or spoke:
            text = f"{'; '.join(said)} => {'; '.join(did)} -> {'; '.join(spoke)}"
            self.add(now_us, node, text)

    def _name(self, peer: bytes) -> str:
        for node in self._world.nodes:
            if node.key.node_id == peer:
                return node.name.split(":")[0]
        return peer.hex()[:6]

    def _input(self, item: Input) -> str:
        match item:
            case ins.MessageReceived(peer, data):
                return f"{self._name(peer)}:{self.message(data)}"
            case ins.PeerConnected(peer):
                return f"+{self._name(peer)}"
            case ins.PeerLost(peer):
                return f"-{self._name(peer)}"
            case ins.EntriesSubmitted(ticket, entries):
                return f"submit #{ticket} x{len(entries)}"
            case _:
                return type(item).__name__

    def _spoken_all(self, spoken: list[fx.Spoken]) -> list[str]:
        lines: list[str] = []
        last: bytes | None = None
        for effect in spoken:
            if isinstance(effect, fx.SendMessage | fx.SendEarly | fx.AskEarly):
                if effect.data is last:
                    lines[-1] += f",{self._name(effect.peer)}"
                    continue
                last = effect.data
                lines.append(f"{self.message(effect.data)} to {self._name(effect.peer)}")
            else:
                last = None
                lines.append(self._notice(effect))
        return lines

    def _notice(self, effect: fx.Spoken) -> str:
        match effect:
            case fx.EventsRead(ids):
                return f"Read x{len(ids)} {ids[0].hex()[:6]}"
            case fx.EntriesStored(ticket, event, _):
                return f"stored #{ticket} in {event.hex()[:6]}"
            case fx.InputRefused(peer, reason, detail):
                return f"refused {self._name(peer)} {reason} {detail}"
            case fx.NodeConvicted(conviction):
                return f"convicted {self._name(conviction.culprit)}"
            case _:
                return type(effect).__name__

    def _durable(self, effect: fx.Durable) -> str:
        match effect:
            case fx.StoreEvent(event, meta):
                slot = meta.slot
                return (
                    f"E{slot.author_no}.{slot.journal % 1000:03}/{slot.seq}"
                    f"b{slot.number}={event.id.hex()[:6]}"
                )
            case fx.PutBranch(record):
                who = ",".join(f"{no}:{seq}" for no, (seq, _) in record.receipts.items())
                return (
                    f"B{record.key.author_no}.{record.key.journal % 1000:03}b{record.key.number}"
                    f"[held {record.held_seq} read {record.read_seq} signed {record.signed_seq}"
                    f" by {who}]"
                )
            case fx.AppendFeed(ids):
                return "Feed " + ",".join(identity.hex()[:6] for identity in ids)
            case fx.StoreInv(signer_no, inv, newest):
                rows = " ".join(f"{r.author_no}.{r.journal % 1000:03}/{r.seq}" for r in inv.rows)
                return f"Inv{signer_no}{'' if newest else '*'} e{inv.epoch} ({rows})"
            case fx.PutOwnState(journal, recovering):
                return f"own {journal % 1000:03} {'recovering' if recovering else ''}"
            case _:
                return type(effect).__name__

    def message(self, data: bytes) -> str:
        try:
            message = decode_message(data)
        except Refused as refusal:
            return f"?{refusal.reason}"
        match message:
            case EventMessage(event):
                return f"event {len(event.body)}B"
            case InvMessage():
                return "Inv"
            case SyncEvent():
                rows = " ".join(
                    f"{r.author_no}.{r.journal % 1000:03}/{r.seq}r{r.read_seq}"
                    for r in message.rows
                )
                return (
                    f"Sync {message.number}({message.heard},{message.base}) [{rows}]"
                    f"{' recovering' if message.recovering else ''} {message.digest.hex()[:4]}"
                )
            case GetData():
                ranges = " ".join(
                    f"{r.author_no}.{r.journal % 1000:03}..{r.last_seq}" for r in message.ranges
                )
                return (
                    f"Get {message.request_id} ids {len(message.ids)} [{ranges}]"
                    f" invs {len(message.invs)} covers {len(message.covers)}"
                )
            case Answer():
                return (
                    f"Answer {message.request_id} {len(message.events)}e {len(message.invs)}i"
                    f" missing {len(message.missing)}{' more' if message.more else ''}"
                )
            case _:
                return type(message).__name__
