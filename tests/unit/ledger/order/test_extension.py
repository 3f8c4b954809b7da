"""The order of events is a linear extension of the DAG, and a voter holds what it orders."""

from dataclasses import dataclass, field

from quipu.ledger.log.entry import decode_log_entry
from quipu.ledger.log.words import Index
from quipu.ledger.order.extension import JournalGate, ModelEvent
from quipu.ledger.order.items import EventReference, LockAndPublish, encode_item
from quipu.ledger.words import EventId
from tests.unit.ledger.log.made import entry


def name(letter: str) -> EventId:
    return EventId(letter.encode() * 32)


@dataclass(slots=True)
class Held:
    """A Model in a dict: a <- b <- c are one cord, d ties to b."""

    events: dict[EventId, ModelEvent] = field(
        default_factory=lambda: {
            name("a"): ModelEvent(1, 7, 1, ()),
            name("b"): ModelEvent(1, 7, 2, (name("a"),)),
            name("c"): ModelEvent(1, 7, 3, (name("b"),)),
            name("d"): ModelEvent(2, 8, 1, (name("b"),)),
        }
    )
    ordered: dict[EventId, None] = field(default_factory=dict)

    def event(self, identity: EventId) -> ModelEvent | None:
        return self.events.get(identity)

    def is_gone(self, reference: EventReference) -> bool:
        return False

    def was_ordered(self, identity: EventId) -> bool:
        return identity in self.ordered

    def items(self, letters: str) -> list[bytes]:
        found = []
        for letter in letters:
            event = self.events.get(name(letter), ModelEvent(9, 9, 9, ()))
            place = (event.node_no, event.journal, event.seq)
            found.append(encode_item(EventReference(*place, name(letter))))
        return found


def admitted(letters: str, held: Held | None = None, before: str = "") -> bool:
    model = held or Held()
    gate = JournalGate(model)
    entries = [decode_log_entry(entry(1, 1, *model.items(before)))] if before else []
    return gate.after(entries).admits(model.items(letters))


def test_prev_and_parents_come_before() -> None:
    assert admitted("a")
    assert admitted("abcd")
    assert admitted("abdc")
    assert not admitted("b")
    assert not admitted("ba")
    assert not admitted("abca")


def test_what_entries_below_name_counts_and_so_does_what_is_applied() -> None:
    assert admitted("cd", before="ab")
    assert not admitted("a", before="ab")
    held = Held(ordered={name("a"): None, name("b"): None})
    assert admitted("d", held)
    assert not admitted("a", held)


def test_entries_that_are_applied_are_not_looked_at_again() -> None:
    held = Held()
    gate = JournalGate(held)
    gate.applied = Index(1)
    below = [decode_log_entry(entry(1, 1, *held.items("a")))]
    assert gate.after(below).admits(held.items("a"))


def test_only_events_of_the_own_model_by_their_true_places() -> None:
    assert not admitted("x")
    wrong = encode_item(EventReference(1, 7, 2, name("a")))
    assert not JournalGate(Held()).after([]).admits([wrong])


def test_a_refused_batch_names_nothing_and_an_adopted_one_does() -> None:
    held = Held()
    passage = JournalGate(held).after([])
    assert not passage.admits(held.items("ax"))
    assert passage.admits(held.items("a"))
    passage.passes(held.items("b"))
    assert passage.admits(held.items("d"))


def test_other_items_need_no_model() -> None:
    assert JournalGate(Held()).after([]).admits([encode_item(LockAndPublish("s", 1, bytes(32)))])
