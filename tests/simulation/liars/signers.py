"""Liars as signers: receipts forged, doubled, by the hundred, of epochs to come, or none at all."""

from __future__ import annotations

import msgspec

from quipu.ledger.canonical import encode
from quipu.ledger.inv import InvRow, decode_inv
from quipu.ledger.messages import Answer, InvMessage, Message
from quipu.ledger.words import Cord, EventId, Journal, NodeId, NodeNo, Seq
from tests.simulation.liars.base import Liar, Rows, event_message, newest_rows

FLOOD = 30


class ReceiptForger(Liar):
    """Signs as others, changes what others signed, signs wrongly as itself."""

    def act(self) -> None:
        rows = newest_rows(self)
        if not rows:
            return
        inv = self.receipt(rows)
        victim = self.dice.choice(self.peers())
        as_other = msgspec.structs.replace(inv.array, signer=victim)
        broken = msgspec.structs.replace(inv.array, signature=bytes(64))
        for array in (as_other, broken):
            self.tell_all(InvMessage(encode(array)))
        self._raise_real_one(rows)

    def _raise_real_one(self, rows: Rows) -> None:
        """A true receipt of somebody, with more in it than was signed."""
        for signer_no, newest in self.disk.newest_invs.items():
            if signer_no == self.number:
                continue
            real = decode_inv(newest)
            table = [InvRow(cord.author_no, cord.journal, seq, i) for cord, seq, i in rows]
            more = msgspec.structs.replace(real.array, number=real.number + 1, rows=table)
            self.tell_all(InvMessage(encode(more)))


class ReceiptFlooder(Liar):
    """Many receipts in a turn, again and again, and each one several times."""

    def act(self) -> None:
        rows = newest_rows(self)
        for _ in range(FLOOD):
            inv = InvMessage(self.receipt(rows).data)
            peer = self.dice.choice(self.peers())
            self.say(peer, inv)
            self.say(peer, inv)


class DoubleSigner(Liar):
    """Acknowledges every branch of whoever has two, each to other peers; forks a cord itself."""

    def act(self) -> None:
        for cord, seq in sorted(self.world.record.forked.items()):
            sides = self.some_peers()
            tips = self.world.record.by_slot.get((*cord, seq), [])
            for identity, peers in zip(tips, sides, strict=False):
                row = (Cord(NodeNo(cord[0]), Journal(cord[1])), Seq(seq), EventId(identity))
                for peer in peers:
                    self.say(peer, InvMessage(self.receipt([row]).data))
        if self.dice.random() < 0.1:
            self._fork_own()

    def _fork_own(self) -> None:
        root = self.new_line()
        for peers in self.some_peers():
            event, tip = self.extend(root)
            for peer in peers:
                self.say(peer, event_message(event))
                self.say(peer, InvMessage(self.receipt([self.row(tip)]).data))


class PrematureEpoch(Liar):
    """Receipts and events of epochs that nobody has opened."""

    def act(self) -> None:
        rows = newest_rows(self)
        for ahead in (1, 2, 1_000):
            self.tell_all(InvMessage(self.receipt(rows, epoch=self.epoch + ahead).data))
        event, tip = self.extend(self.new_line())
        self.tell_all(event_message(self.altered(event, epoch=self.epoch + 1)))
        self.tell_all(event_message(self.altered(event, epoch=0)))
        del tip


class SilentMember(Liar):
    """Takes everything and never signs for anything."""

    def bend(self, peer: NodeId, message: Message) -> list[tuple[NodeId, Message]]:
        if isinstance(message, InvMessage):
            return []
        if isinstance(message, Answer):
            message = msgspec.structs.replace(message, invs=[])
        return [(peer, message)]


class GhostReceipts(Liar):
    """Signs for events and journals that nobody has, beside real ones."""

    def act(self) -> None:
        rows = newest_rows(self)
        numbers = sorted(self.world.record.newest.members)
        for _ in range(self.dice.randint(1, 20)):
            journal = Journal((self.wall_ms << 20) | self.dice.getrandbits(20))
            cord = Cord(NodeNo(self.dice.choice(numbers)), journal)
            rows.append((cord, Seq(self.dice.randint(1, 500)), EventId(self.dice.randbytes(32))))
        for number, (cord, seq, _) in enumerate(rows):
            if self.dice.random() < 0.1:
                rows[number] = (cord, Seq(seq + 1), EventId(self.dice.randbytes(32)))
        self.tell_all(InvMessage(self.receipt(rows).data))
