"""Changes of roster at the table: what the log will order, a test orders by hand."""

from collections.abc import Sequence

from quipu.ledger.canonical import encode
from quipu.ledger.epochs import CutRow, EpochDocument, Member, close_hash
from quipu.ledger.event import SignedEvent
from quipu.ledger.inputs import EpochClosed, EpochOpened
from quipu.ledger.inv import decode_inv
from quipu.ledger.words import InvNumber
from tests.conformance.hand import hands
from tests.conformance.table import Seat, Table


def document(
    table: Table,
    members: Sequence[str],
    cut: Sequence[SignedEvent] = (),
    *,
    policy: str = "majority",
    attempt: int = 1,
) -> EpochDocument:
    """The one that follows what the first core has open."""
    epochs = next(iter(table.seats.values())).core.epochs
    numbered = sorted((table.number_of(name), name) for name in members)
    rows = sorted((*table.cord_of(e.header), e.header.seq, e.id) for e in cut)
    return EpochDocument(
        version=1,
        cluster_id=table.cluster_id,
        number=epochs.newest.number + 1,
        previous=epochs.newest_hash,
        attempt=attempt,
        policy=policy,
        members=[Member(no, table.keys[name].node_id, name, []) for no, name in numbered],
        streams_erasable=[],
        cut=[CutRow(*row) for row in rows],
        cut_hlc=max([epochs.cut_hlc, *(event.header.hlc for event in cut)]),
    )


def close(table: Table, following: EpochDocument) -> None:
    for seat in table.seats.values():
        seat.inbox.append(EpochClosed(close_hash(following)))
    table.run(0)


def seal_of(seat: Seat, following: EpochDocument) -> bytes | None:
    """The last Inv of a core, if it names this CLOSE."""
    record = seat.core.receipts.newest.get(seat.number)
    data = seat.store.inv(seat.number, InvNumber(record.number)) if record else None
    if data is None or decode_inv(data).array.close != close_hash(following):
        return None
    return data


def seals(table: Table, following: EpochDocument) -> tuple[bytes, ...]:
    """Of all members of the epoch that ends: the cores' own, and the hands' over nothing."""
    ending = next(iter(table.seats.values())).core.epochs.newest
    given = [seal_of(seat, following) for seat in table.seats.values()]
    for hand in hands(table):
        if hand.number in ending.members:
            inv = hand.inv(epoch=ending.number, close=close_hash(following))
            given.append(inv.data)
    return tuple(seal for seal in given if seal is not None)


def open_epoch(
    table: Table, following: EpochDocument, sealed: tuple[bytes, ...], *names: str
) -> None:
    """OPEN is ordered: at these cores, or at all of them."""
    for name in names or table.seats:
        table[name].inbox.append(EpochOpened(encode(following), sealed))
    table.run(0)


def change(
    table: Table, members: Sequence[str], cut: Sequence[SignedEvent] = (), policy: str = "majority"
) -> EpochDocument:
    """CLOSE, seals and OPEN in one go."""
    following = document(table, members, cut, policy=policy)
    close(table, following)
    open_epoch(table, following, seals(table, following))
    return following
