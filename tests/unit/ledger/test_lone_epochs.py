"""Epochs of a member that is alone: o is an observer, whom nobody tells of them but its peer."""

from collections.abc import Callable

import msgspec

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.epochs import CutRow, EpochDocument
from quipu.ledger.messages import EpochMessage, encode_message
from quipu.ledger.refusals import Reason
from tests.conformance.roster import close, document, open_epoch, seals
from tests.conformance.table import Seat, Table

SYNC_MS = 2 * limits.SYNC_INTERVAL_MS


def lone_and_observer() -> tuple[Table, Seat, Seat]:
    table = Table(1, outsiders=1)
    table.run(SYNC_MS)
    return table, table["n1"], table["n2"]


def checkpoint(table: Table, only: str) -> EpochDocument:
    """As the member alone makes it: its cut is what its seal covers."""
    n1 = table[only]
    tips = [n1.event(branch.held_id) for branch in n1.core.dag.branches.values()]
    fresh = [tip for tip in tips if n1.branch(tip.id).cut_seq < tip.header.seq]
    following = document(table, [only], fresh)
    close(table, following)
    open_epoch(table, following, seals(table, following), only)
    return following


def test_an_observer_goes_on_across_checkpoints() -> None:
    table, n1, n2 = lone_and_observer()
    for _ in range(3):
        last = table.write("n1", "x")
        table.run(SYNC_MS)
        checkpoint(table, "n1")
        table.run(SYNC_MS)
        assert n2.is_read(last)
    last = table.write("n1", "y")
    table.run(SYNC_MS)
    assert n2.core.epochs.newest.number == n1.core.epochs.newest.number == 4
    assert n2.is_read(last)
    assert n2.refusals() == []


def test_one_that_comes_late_takes_them_one_after_the_other() -> None:
    table, n1, n2 = lone_and_observer()
    table.isolate("n2")
    for _ in range(5):
        table.write("n1", "x")
        table.run(50)
        checkpoint(table, "n1")
    last = table.write("n1", "y")
    table.heal()
    table.run_until(lambda: n2.is_read(last), 3 * SYNC_MS)
    assert n2.core.epochs.newest_hash == n1.core.epochs.newest_hash


def offered(change_it: Callable[[EpochDocument], EpochDocument]) -> list[Reason]:
    """What the observer says of a document that its peer has changed."""
    table, n1, n2 = lone_and_observer()
    table.write("n1", "x")
    table.write("n1", "y")
    table.run(SYNC_MS)
    table.cut("n1", "n2")
    genuine = checkpoint(table, "n1")
    held = n1.store.epoch_document(n1.core.epochs.newest.number)
    assert held is not None
    forged = change_it(genuine)
    message = EpochMessage(encode(forged), list(held[1]))
    table.heal()
    table.tell("n1", "n2", encode_message(message))
    table.run(0)
    assert n2.core.epochs.newest.number == 1
    return n2.refusals()


def test_a_cut_that_the_seal_does_not_give_is_refused() -> None:
    def lower(document: EpochDocument) -> EpochDocument:
        return msgspec.structs.replace(document, cut=[], cut_hlc=0)

    def later(document: EpochDocument) -> EpochDocument:
        return msgspec.structs.replace(document, cut_hlc=document.cut_hlc + 1)

    def other(document: EpochDocument) -> EpochDocument:
        rows = [CutRow(r.author_no, r.journal, r.seq, bytes(32)) for r in document.cut]
        return msgspec.structs.replace(document, cut=rows)

    for change_it in (lower, later, other):
        assert offered(change_it) == [Reason.BAD_ROWS]


def test_an_epoch_of_several_is_taken_from_so_many_members_that_one_of_them_is_honest() -> None:
    table = Table(4, policy="two-thirds", outsiders=1)
    table.run(SYNC_MS)
    members, n5 = ["n1", "n2", "n3", "n4"], table["n5"]
    following = document(table, members, policy="two-thirds")
    close(table, following)
    sealed = seals(table, following)
    for name in members[:-1]:
        table.cut(name, "n5")
    open_epoch(table, following, sealed, *members)
    table.run(SYNC_MS)
    assert n5.core.epochs.newest.number == 1  # n4 alone says so
    table.tell("n4", "n5", encode_message(EpochMessage(encode(following), list(sealed))))
    table.run(0)
    assert n5.core.epochs.newest.number == 1  # again and again
    table.tell("n3", "n5", encode_message(EpochMessage(encode(following), list(sealed))))
    table.run(0)
    assert n5.core.epochs.newest.number == 2


def test_too_few_seals_are_refused_whoever_brings_the_document() -> None:
    table = Table(3, outsiders=1)
    table.run(SYNC_MS)
    following = document(table, ["n1", "n2"])
    close(table, following)
    sealed = seals(table, following)[:1]
    table.tell("n1", "n4", encode_message(EpochMessage(encode(following), list(sealed))))
    table.run(0)
    assert table["n4"].refusals() == [Reason.NO_PROOF]
    assert table["n4"].core.epochs.newest.number == 1
