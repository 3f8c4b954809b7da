"""Members that lie about what they sealed, and authors of two branches, each with an honest log:
order bears crashes only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.epochs import decode_document
from quipu.ledger.inv import Inv, InvRow, build_inv, decode_inv
from quipu.ledger.messages import InvMessage, Message, decode_message, encode_message
from quipu.ledger.order.changes import Open, encode_change, read_change
from quipu.ledger.order.registrar import ProposeItem, RosterOrder
from quipu.ledger.words import EventId, InvNumber, Seq
from tests.simulation.epochs.node import EpochNode
from tests.simulation.liars.authors import DeepEquivocator, Equivocator
from tests.simulation.liars.base import Liar, Tip, event_message
from tests.simulation.liars.signers import DoubleSigner, GhostReceipts

if TYPE_CHECKING:
    from quipu.ledger.words import NodeId

Rows = list[InvRow]


class FalseSealer(EpochNode):
    """Its core is honest; its seals are not."""

    honest = False

    def seal_of(self, peer: NodeId, rows: Rows) -> Rows:
        """The rows that this peer is told."""
        raise NotImplementedError

    def _transmit(self, peer: NodeId, data: bytes, early: bool) -> None:
        message = decode_message(data)
        if isinstance(message, InvMessage) and self.world.faults.active:
            inv = decode_inv(message.inv)
            if inv.signer == self.key.node_id and inv.array.close is not None:
                resealed = reseal(self, inv, self.seal_of(peer, list(inv.rows)))
                self.world.record.add_inv(resealed)
                data = encode_message(InvMessage(resealed))
        self.world.judge.on_message(self, data, early=False)
        self.world.send(self, peer, data)


def reseal(liar: EpochNode, inv: Inv, told: Rows) -> bytes:
    rows = [(row.cord, Seq(row.seq), EventId(row.id)) for row in told]
    array = inv.array
    number = InvNumber(array.number + sum(row.seq for row in told) % 4096)  # one for each wording
    return build_inv(liar.key, array.cluster_id, inv.epoch, number, sorted(rows), array.close).data


class EmptySealer(FalseSealer):
    """It has signed for nothing, it says: takes back all that it acknowledged."""

    def seal_of(self, peer: NodeId, rows: Rows) -> Rows:
        return []


class HalfSealer(FalseSealer):
    """Another half of its rows for each peer."""

    def seal_of(self, peer: NodeId, rows: Rows) -> Rows:
        return [row for row in rows if (row.seq + peer[0]) % 2]


class GhostSealer(FalseSealer):
    """Names events that nobody has, above those that there are."""

    def seal_of(self, peer: NodeId, rows: Rows) -> Rows:
        return [
            msgspec.structs.replace(row, seq=row.seq + 1, id=row.id[::-1]) if row.id[0] % 3 else row
            for row in rows
        ]


class FutureSealer(Liar, EpochNode):
    """Writes an event of the next hour, and says in its seal that it may be final."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self._ahead: Tip | None = None

    def act(self) -> None:
        if self._ahead is None:
            event, self._ahead = self.extend(self.new_line(), self.wall_ms + HOUR_MS)
            self.tell_all(event_message(event))

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if isinstance(message, InvMessage) and self._ahead is not None:
            inv = decode_inv(message.inv)
            if inv.signer == self.key.node_id and inv.array.close is not None:
                rows = {row.cord: row for row in inv.rows}
                cord, seq, identity = self.row(self._ahead)
                rows[cord] = InvRow(cord.author_no, cord.journal, seq, identity)
                message = InvMessage(reseal(self, inv, list(rows.values())))
        return [(peer, message)]


class CutLiar(EpochNode):
    """As the master it leaves the highest row out of the cut that it writes."""

    honest = False

    def _carry_out(self, order: RosterOrder) -> None:
        if isinstance(order, ProposeItem):
            item = read_change(order.item)
            if isinstance(item, Open):
                document = decode_document(item.document)
                if document.cut:
                    lower = msgspec.structs.replace(document, cut=document.cut[:-1])
                    item = msgspec.structs.replace(item, document=encode(lower))
                    order = ProposeItem(encode_change(item))
        super()._carry_out(order)


class EpochEquivocator(Equivocator, EpochNode):
    pass


class EpochDeepEquivocator(DeepEquivocator, EpochNode):
    pass


class EpochDoubleSigner(DoubleSigner, EpochNode):
    pass


class EpochGhostReceipts(GhostReceipts, EpochNode):
    pass


HOUR_MS = 3_600_000
LIARS: dict[str, type[EpochNode]] = {
    kind.__name__: kind
    for kind in (
        EmptySealer,
        HalfSealer,
        GhostSealer,
        FutureSealer,
        EpochEquivocator,
        EpochDeepEquivocator,
        EpochDoubleSigner,
        EpochGhostReceipts,
    )
}
