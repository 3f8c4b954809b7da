"""Events with an erased entry: where they come from, and where nobody takes them."""

from quipu.ledger.canonical import encode
from quipu.ledger.entry import ContentType, data_entry, decode_entry
from quipu.ledger.erasures import Erasure, erasure_entry, is_erasable, read_erasure
from quipu.ledger.event import SignedEvent, decode_body
from quipu.ledger.holes import hole_of, is_hole
from quipu.ledger.inputs import EntryErased
from quipu.ledger.messages import EventMessage, bytes_of, encode_message
from quipu.ledger.refusals import Reason
from quipu.ledger.words import EventId
from tests.conformance.table import Seat, Table
from tests.unit.ledger.test_pruning import FAR_MS, checkpoint, history, prune


def is_erased(seat: Seat, identity: EventId, index: int = 0) -> bool:
    event = seat.event(identity)
    return is_hole(decode_body(event.header, event.body)[index])


def erase(table: Table, identity: EventId, *names: str) -> None:
    for name in names:
        table[name].inbox.append(EntryErased(identity, 0))
    table.run(10)


def hollow(event: SignedEvent) -> SignedEvent:
    return event._replace(body=encode([hole_of(leaf) for leaf in event.leaves]))


def test_it_goes_once_a_cut_contains_it() -> None:
    table, written = history(epochs=1)
    fresh = table.write("n1")
    table.run(500)
    for identity in (written[0], fresh):
        erase(table, identity, "n1")
        table["n1"].inbox.append(EntryErased(identity, 7))  # there is no such entry
        table["n1"].inbox.append(EntryErased(EventId(bytes(32)), 0))
        table.run(10)
    assert [is_erased(table["n1"], one) for one in (written[0], fresh)] == [True, False]
    assert table.are_equal()
    checkpoint(table)
    erase(table, fresh, "n1")
    assert is_erased(table["n1"], fresh)


def test_who_comes_later_takes_what_the_others_have_left() -> None:
    table, written = history(epochs=2)
    erase(table, written[1], "n1", "n2")
    table.kill("n3")
    table.start("n3", wiped=True)
    table.run_until(lambda: table.are_equal() and table["n3"].is_read(written[-1]), FAR_MS)
    assert is_erased(table["n3"], written[1])
    assert not is_erased(table["n3"], written[2])
    fresh = [table.write(name) for name in ("n1", "n2", "n3")]
    table.run_until(lambda: all(table["n3"].is_read(one) for one in fresh), FAR_MS)


def test_the_tip_of_a_cut_may_be_erased_where_history_begins_with_it() -> None:
    table, _ = history(writes=30)
    tip = table["n1"].core.dag.branches
    (cord,) = (record for key, record in tip.items() if key.author_no == 1)
    identity = table["n1"].core.dag.id_on(cord, cord.cut_seq)
    erase(table, identity, "n1", "n2")
    prune(table, "n1", "n2", epoch=3)
    table.kill("n3")
    table.start("n3", wiped=True)
    table.run_until(lambda: table.are_equal() and not table["n3"].core.known.entry_points, FAR_MS)
    assert is_erased(table["n3"], identity)


def test_nobody_takes_a_hole_in_what_no_cut_contains() -> None:
    """Else an author could have confirmed what it never showed."""
    table, _ = history(epochs=1)
    table.isolate("n3")
    event = table["n1"].event(table.write("n1"))
    table.run(500)
    table.tell("n1", "n3", encode_message(EventMessage(bytes_of(hollow(event)))))
    table.run(10)
    assert table["n3"].refusals()[-1] == Reason.HOLLOW
    assert not table["n3"].holds(event.id)
    liar = table["n1"].store
    whole = liar.run
    liar.run = lambda first, last, bytes_max: [  # type: ignore[method-assign]
        held._replace(data=bytes_of(hollow(table["n1"].event(held.id))))
        for held in whole(first, last, bytes_max)
    ]
    table.heal()
    table.cut("n2", "n3")
    table.run(5_000)
    assert Reason.HOLLOW in table["n3"].refusals()
    assert not table["n3"].holds(event.id)
    table.heal()
    table.run_until(lambda: table["n3"].holds(event.id), FAR_MS)
    assert not is_erased(table["n3"], event.id)


def test_what_asks_for_it_and_what_may_be_erased() -> None:
    wanted = Erasure(EventId(b"e" * 32), 3)
    asked = decode_entry(erasure_entry(wanted))
    assert read_erasure(asked) == wanted
    by_an_app = data_entry(
        asked.data, stream=asked.stream, content_type=ContentType.MSGPACK, idempotency_key="erase"
    )
    assert read_erasure(by_an_app) is None
    assert not is_erasable(asked)
    assert is_erasable(data_entry(b"x", salt=bytes(16)))
    assert not is_erasable(data_entry(b"x"))
