"""What becomes of cords whose author has lost its disk."""

from quipu.ledger.messages import EventMessage, InvMessage
from tests.conformance.table import Table


def test_what_is_left_of_an_authors_journal_is_receipted_by_it_again() -> None:
    """The only receipt of its own that was heard names event 2, which nobody has any more; event
    1 must not wait for that for ever."""
    table = Table(4)
    table.run(10)
    for name in ("n1", "n2"):
        table.cut("n4", name)
        table.cut("n3", name)
    table.may_pass = lambda sent: isinstance(sent.message, EventMessage) or sent.sender != "n4"
    first = table.write("n4", "one")
    table.run_until(lambda: table["n3"].holds(first), 100)
    table.may_pass = lambda sent: isinstance(sent.message, InvMessage) or sent.sender != "n4"
    second = table.write("n4", "two")
    table.run(100)
    assert not table["n3"].holds(second)
    assert table["n3"].core.receipts.names(second, besides=table["n3"].number)
    table.kill("n4")
    table.may_pass = lambda sent: True
    table.heal()
    table.start("n4", wiped=True)
    table.run_until(lambda: all(seat.is_read(first) for seat in table.seats.values()), 10_000)
    assert not any(seat.holds(second) for seat in table.seats.values())
