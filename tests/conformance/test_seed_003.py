"""Seed 003, clause by clause, on real cores with real messages (docs/protocols.md says how each
clause is read). Nodes that only a test moves are hands: they sign whatever they are told to.
"""

from collections import Counter

import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.effects import (
    AppendFeed,
    EntriesStored,
    PutBranch,
    SendEarly,
    SendMessage,
    StoreEvent,
    StoreInv,
)
from quipu.ledger.event import Header, SignedEvent
from quipu.ledger.inputs import EntriesSubmitted, MessageReceived
from quipu.ledger.inv import decode_inv
from quipu.ledger.messages import (
    Answer,
    EventMessage,
    GetData,
    InvMessage,
    SyncEvent,
    decode_message,
)
from quipu.ledger.refusals import Reason
from quipu.ledger.words import HLC_SHIFT, EventId, InvNumber
from tests.conformance.clauses import clause
from tests.conformance.hand import Hand, alone_with, hands
from tests.conformance.state import differing, state_of
from tests.conformance.table import Sent, Table

TURN_MS = 1  # from one node to the next
SOON_MS = 50  # a few turns: pushed, confirmed, Read

# The page says these numbers, so they stand here once more.
PERIOD_MS = 2_000  # between two SyncEvents to a peer
RELAY_MS = 500  # a holder sends on what a member does not show by then
WANT_MS = 100  # an event that only an Inv has named is asked for after this
AHEAD_MS = 2_000  # beyond cluster now: an event waits for its receipt
AGE_MS = 600_000  # ten minutes: unasked events that are older are left to SyncEvent
GOSSIP_MS = 500  # younger differences are still on their way
LEAVES = 64
FAN_OUT = 8
MIB = 1024 * 1024


def ready(count: int) -> Table:
    """Cores that have heard of each other and may sign."""
    table = Table(count)
    table.run(SOON_MS)
    return table


def read_everywhere(table: Table, *ids: EventId) -> bool:
    return all(seat.is_read(identity) for seat in table.seats.values() for identity in ids)


def own_invs(table: Table, name: str) -> list[InvMessage]:
    """What this node has sent of its own signing, each once."""
    return list(dict.fromkeys(table.messages(InvMessage, sender=name)))


# --- what Read means --------------------------------------------------------------------------
@clause("003-01")
def test_an_event_enters_the_model_only_when_it_has_spread() -> None:
    table = ready(3)
    # Of the author only the bare event gets out: the others hold it and have told each other.
    table.may_pass = lambda s: s.sender != "n1" or isinstance(s.message, EventMessage)
    event = table.write("n1")
    table.run(5 * PERIOD_MS)
    for name in ("n2", "n3"):
        assert table[name].holds(event)
        assert table[name].read_confirms(event) == 2
        assert not table[name].is_read(event)  # the author has not said that it holds it
    table.heal()
    table.run_until(lambda: read_everywhere(table, event), 3 * PERIOD_MS)


@clause("003-02")
def test_read_confirms_are_distinct_members_whose_receipts_are_held() -> None:
    table, n1, (n2, n3, n4) = alone_with(3, "all")
    event = n2.event()
    assert not [name for name in Header.__struct_fields__ if "confirm" in name]
    n2.push("n1", event)
    table.run(0)
    assert n1.read_confirms(event.id) == 1  # its own
    n2.confirm("n1", event)  # the author's does not count
    inv = n3.confirm("n1", event)
    n4.say("n1", InvMessage(inv.data))  # the same one again, by another way
    n3.confirm("n1", event)
    table.run(0)
    assert n1.read_confirms(event.id) == 2
    forged = n4.inv(event)
    n3.say("n1", InvMessage(forged.data[:-1] + bytes([forged.data[-1] ^ 1])))
    stranger = Hand(Table(5), "n5")
    stranger.table.genesis = table.genesis
    n3.say("n1", InvMessage(_signed_by_a_stranger(table, event)))
    table.run(0)
    assert n1.refusals() == [Reason.BAD_SIGNATURE, Reason.NOT_A_MEMBER]
    assert n1.read_confirms(event.id) == 2
    assert not n1.is_read(event.id)


def _signed_by_a_stranger(table: Table, event: SignedEvent) -> bytes:
    from quipu.ledger.inv import build_inv
    from quipu.ledger.words import EpochNo, Seq
    from tests.conformance.table import key_of

    rows = [(table.cord_of(event.header), Seq(event.header.seq), event.id)]
    number = InvNumber(table.hlc)
    return build_inv(key_of("stranger"), table.cluster_id, EpochNo(1), number, rows).data


@clause("003-03")
def test_the_class_of_an_event_follows_from_receipts_not_from_what_a_peer_says() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n2.push("n1", event)
    n2.sync("n1", event, read_seq=1, leaves=[event.id])  # "it is Read, and a leaf of my Model"
    n3.sync("n1", event, read_seq=1, leaves=[event.id])
    table.run(PERIOD_MS)
    assert not n1.is_read(event.id)
    (want,) = n2.requests()
    assert [(cover.seq, cover.tip) for cover in want.covers] == [(1, event.id[:16])]
    n2.answer("n1", want, invs=[n2.inv(event)])  # and here is why
    table.run(0)
    assert n1.is_read(event.id)


@clause("003-04")
def test_below_max_confirms_an_event_is_unread() -> None:
    table, n1, (n2, n3, _, _) = alone_with(4, "two-thirds")
    event = n2.event()
    n2.push("n1", event)
    n2.confirm("n1", event)
    n3.confirm("n1", event)
    table.run(SOON_MS)
    assert n1.core.epochs.newest.max_confirms == 3
    assert n1.read_confirms(event.id) == 2
    assert n1.holds(event.id)
    assert not n1.is_read(event.id)
    assert n1.feed() == []


@clause("003-05")
@pytest.mark.parametrize(
    ("policy", "members", "needed"),
    [("majority", 3, 1), ("majority", 5, 2), ("two-thirds", 5, 3), ("all", 5, 4), ("2", 6, 2)],
)
def test_at_max_confirms_of_the_epoch_an_event_is_read(
    policy: str, members: int, needed: int
) -> None:
    table, n1, (author, *others) = alone_with(members - 1, policy)
    event = author.event()
    author.push("n1", event)
    author.confirm("n1", event)
    table.run(0)
    for confirms, other in enumerate(others, start=1):
        assert n1.read_confirms(event.id) == confirms
        assert n1.is_read(event.id) == (confirms >= needed)
        other.confirm("n1", event)
        table.run(0)
    assert n1.is_read(event.id)


@clause("003-06")
def test_a_receiver_counts_once_with_its_own_receipt() -> None:
    table, n1, (n2, n3) = alone_with(2, "all")
    event = n2.event()
    n2.push("n1", event)
    table.run(0)
    assert n1.read_confirms(event.id) == 1
    n2.push("n1", event)
    n3.push("n1", event)
    table.run(SOON_MS)
    assert n1.read_confirms(event.id) == 1
    (inv,) = n1.durable(StoreInv)  # one receipt was signed, whatever came again
    assert [row.id for row in inv.inv.rows] == [event.id]
    assert {decode_inv(message.inv).id for message in own_invs(table, "n1")} == {inv.inv.id}


@clause("003-07")
def test_a_received_event_is_durable_and_unread_before_anything_is_said_of_it() -> None:
    table, n1, (n2, _) = alone_with(2)
    events = n2.chain(3)
    n2.push("n1", *events)
    table.run(0)
    assert all(n1.holds(event.id) and not n1.is_read(event.id) for event in events)
    held: dict[EventId, None] = {}
    spoken = 0
    for turn in n1.turns:
        held.update((e.event.id, None) for e in turn.durable if isinstance(e, StoreEvent))
        for effect in turn.spoken:
            assert not isinstance(effect, SendEarly)  # the event is another's
            if isinstance(effect, SendMessage):
                message = decode_message(effect.data)
                if isinstance(message, InvMessage):
                    spoken += 1
                    assert all(EventId(row.id) in held for row in decode_inv(message.inv).rows)
    assert spoken == 2  # one to each
    table.kill("n1")
    table.start("n1")
    table.run(SOON_MS)
    assert all(n1.holds(event.id) and not n1.is_read(event.id) for event in events)


@clause("003-08")
def test_an_event_with_enough_receipts_is_read_in_the_turn_in_which_it_arrives() -> None:
    table, n1, (n2, n3, n4) = alone_with(3)
    event = n2.event()
    for hand in (n2, n3, n4):
        hand.confirm("n1", event)
    table.run(0)
    assert not n1.holds(event.id)
    turns = len(n1.turns)
    n2.push("n1", event)
    table.run(0)
    (turn,) = n1.turns[turns:]
    assert AppendFeed((event.id,)) in turn.durable
    assert n1.is_read(event.id)


# --- spreading --------------------------------------------------------------------------------
@clause("003-09")
def test_a_holder_sends_on_once_and_only_to_members_that_do_not_show_it() -> None:
    table, n1, (n2, n3, n4, n5) = alone_with(4, "all")
    event = n2.event()
    n2.push("n1", event)
    table.run(0)
    since_ms = table.now_ms
    n3.sync("n1", event)  # n3 shows it in a row
    table.run(RELAY_MS - 1)
    n4.confirm("n1", event)  # n4 by a receipt: but then n4 may be the one who sends it on
    table.run(0)
    assert table.messages(EventMessage, sender="n1") == []
    table.run(20_000)
    assert n3.events_heard(since_ms) == n4.events_heard(since_ms) == []
    assert n2.events_heard(since_ms) == []  # the author
    holder = n1.core.resend
    part = holder.is_my_part(
        n5.number, [(n1.number, n1.key.node_id), (n4.number, n4.key.node_id)], n1.meta(event.id).seq
    )
    assert len(n5.events_heard(since_ms)) == int(part)


@clause("003-09")
def test_of_all_holders_one_sends_on() -> None:
    table = Table(5, "all")
    table.run(SOON_MS)
    table.cut("n1", "n5")
    table.may_pass = lambda s: not isinstance(s.message, GetData)  # nobody helps himself
    event = table.write("n1")
    table.run_until(lambda: table["n5"].holds(event), RELAY_MS + 10)
    table.run(SOON_MS)
    pushed = [s for s in table.sent if isinstance(s.message, EventMessage)]
    assert Counter(s.receiver for s in pushed) == {"n2": 1, "n3": 1, "n4": 1, "n5": 2}


def _drop_first_push(sent: Sent) -> bool:
    return not (isinstance(sent.message, EventMessage) and sent.sender == "n1")


def _leave_only_resending(sent: Sent) -> bool:
    if isinstance(sent.message, EventMessage):
        return sent.sender == "n1" and (sent.receiver != "n3" or sent.at_ms > 900)
    return isinstance(sent.message, InvMessage)


def _drop_all_pushes(sent: Sent) -> bool:
    return not isinstance(sent.message, EventMessage | InvMessage)


@clause("003-10")
@pytest.mark.parametrize("passes", [_drop_first_push, _leave_only_resending, _drop_all_pushes])
def test_every_node_gets_every_event_whatever_is_lost(passes: object) -> None:
    table = Table(3, "all")
    table.run(SOON_MS)
    assert callable(passes)
    table.may_pass = passes
    events = [table.write("n1", str(number)) for number in range(3)]
    table.run_until(lambda: all(table["n3"].holds(event) for event in events), 4 * PERIOD_MS)
    table.run_until(lambda: read_everywhere(table, *events), 4 * PERIOD_MS)


# --- an event of one's own --------------------------------------------------------------------
@clause("003-11")
def test_an_event_just_created_is_unread() -> None:
    table = Table(3)
    event = table.write("n1")
    assert table["n1"].holds(event)
    assert not table["n1"].is_read(event)
    assert table["n1"].branch(event).receipts == {}
    lone = Table(1)
    event = lone.write("n1")
    (turn,) = [turn for turn in lone["n1"].turns if AppendFeed((event,)) in turn.durable]
    (inv,) = [effect.inv for effect in turn.durable if isinstance(effect, StoreInv)]
    assert [row.id for row in inv.rows] == [event]  # Read by its one member's own receipt


@clause("003-12")
def test_the_authors_own_receipt_is_not_among_read_confirms() -> None:
    table, n1, (n2, _) = alone_with(2)
    event = table.write("n1")
    table.run(SOON_MS)
    assert n1.branch(event).receipts.keys() == {n1.number}
    assert n1.read_confirms(event) == 0
    assert not n1.is_read(event)
    n2.confirm("n1", n1.event(event))
    table.run(0)
    assert n1.read_confirms(event) == 1


@clause("003-13")
def test_an_event_is_in_unread_before_it_is_sent_and_a_lost_commit_harms_nobody() -> None:
    table = ready(3)
    n1 = table["n1"]
    first = table.write("n1", "kept")
    (turn,) = [t for t in n1.turns if any(isinstance(e, EntriesStored) for e in t.spoken)]
    assert [e.event.id for e in turn.durable if isinstance(e, StoreEvent)] == [first]
    early = [e for e in turn.spoken if isinstance(e, SendEarly)]
    assert len(early) == 2
    assert {type(decode_message(e.data)) for e in early} == {EventMessage}
    table.run(SOON_MS)

    # Power goes between the early send and the end of the fsync.
    entries = (encode([None, 0, "default", None, None, None, None, None, 2, b"lost", 0, None]),)
    effects = n1.core.step([EntriesSubmitted(table.submit("n2"), entries)], table.now(n1))
    (lost,) = [e.event for e in effects.durable if isinstance(e, StoreEvent)]
    for pushed in [e for e in effects.spoken if isinstance(e, SendEarly)]:
        receiver = table.seats[table.name_of(pushed.peer)]
        receiver.inbox.append(MessageReceived(n1.key.node_id, pushed.data))
    table.kill("n1")
    table.run(SOON_MS)
    assert table["n2"].holds(lost.id)
    assert not table["n2"].is_read(lost.id)  # without the author's receipt
    assert not n1.holds(lost.id)

    table.start("n1")
    after = table.write("n1", "after")
    table.run_until(lambda: read_everywhere(table, first, lost.id, after), 5 * PERIOD_MS)
    assert n1.meta(after).branch.cord != n1.meta(lost.id).branch.cord  # no slot is used twice
    assert all(seat.convicted == [] for seat in table.seats.values())


@clause("003-14")
def test_a_new_event_goes_once_to_each_member_up_to_sixteen() -> None:
    table, n1, players = alone_with(15)
    assert len(n1.core.epochs.newest.members) == 16
    table.write("n1")
    table.run(900)
    sent = [s.receiver for s in table.sent if isinstance(s.message, EventMessage)]
    assert sorted(sent) == sorted(hand.name for hand in players)


@clause("003-14")
def test_a_new_event_goes_to_eight_members_from_seventeen_on() -> None:
    table, n1, players = alone_with(16)
    assert len(n1.core.epochs.newest.members) == 17
    for hand in players:
        hand.sync("n1", recovering=False)
    chosen = []
    for number in range(3):
        since = len(table.sent)
        table.write("n1", str(number))
        sent = [s.receiver for s in table.sent[since:] if isinstance(s.message, EventMessage)]
        assert len(set(sent)) == len(sent) == FAN_OUT
        chosen.append(tuple(sorted(sent)))
    assert len(set(chosen)) > 1  # other ones each time


# --- Inv --------------------------------------------------------------------------------------
@clause("003-15")
def test_an_inv_is_a_signed_receipt_for_all_of_a_cord_that_is_held() -> None:
    table, n1, (n2, n3, n4, _) = alone_with(4, "all")
    events = n2.chain(4)
    n2.push("n1", *events[:3])
    table.run(0)
    inv = n3.inv(events[2])
    n3.say("n1", InvMessage(inv.data[:-1] + bytes([inv.data[-1] ^ 1])))
    table.run(0)
    assert n1.refusals() == [Reason.BAD_SIGNATURE]
    assert [n1.read_confirms(event.id) for event in events[:3]] == [1, 1, 1]
    n3.say("n1", InvMessage(inv.data))
    n4.confirm("n1", events[3])  # says nothing here until that event is held
    table.run(0)
    assert [n1.read_confirms(event.id) for event in events[:3]] == [2, 2, 2]
    n2.push("n1", events[3])
    table.run(TURN_MS)
    assert [n1.read_confirms(event.id) for event in events[:3]] == [3, 3, 3]
    table.run(SOON_MS)
    assert n1.read_confirms(events[3].id) == 2  # n4 and n1 itself; n3 stands at the third


@clause("003-16")
def test_what_only_an_inv_has_named_is_asked_for_after_a_while() -> None:
    table, n1, (n2, n3, n4) = alone_with(3)
    event = n2.event()
    n3.confirm("n1", event)
    n4.confirm("n1", event)
    table.run(0)
    since_ms = table.now_ms
    table.run(WANT_MS - 1)
    assert table.messages(GetData, since_ms=since_ms) == []
    table.run(1)
    (want,) = table.messages(GetData, since_ms=since_ms)  # one request in flight
    assert n3.requests() == [want]  # the first signer first
    assert want.ids == [event.id]
    n3.answer("n1", want, event)
    table.run(SOON_MS)
    assert n1.holds(event.id)
    assert n1.read_confirms(event.id) == 3
    n3.confirm("n1", event)  # one that is held is not missing
    table.run(10_000)
    assert len(table.messages(GetData, since_ms=since_ms)) == 1


@clause("003-17")
def test_a_receipt_counts_by_signer_and_for_the_ancestors_too() -> None:
    table, n1, (n2, n3, n4, _) = alone_with(4, "all")
    events = n2.chain(3)
    n2.push("n1", *events)
    table.run(0)
    n3.confirm("n1", events[2])
    table.run(0)
    n3.confirm("n1", events[2])
    table.run(0)
    n3.confirm("n1", events[0])  # a lower row takes nothing back
    table.run(0)
    assert [n1.read_confirms(event.id) for event in events] == [2, 2, 2]
    n4.confirm("n1", events[1])
    table.run(0)
    assert [n1.read_confirms(event.id) for event in events] == [3, 3, 2]


@clause("003-18")
@pytest.mark.parametrize(("members", "policy"), [(3, "majority"), (5, "majority"), (4, "all")])
def test_an_event_is_read_at_max_confirms_and_not_beyond(members: int, policy: str) -> None:
    table, n1, others = alone_with(members - 1, policy)
    event = table.write("n1")
    table.run(SOON_MS)
    needed = n1.core.epochs.newest.max_confirms
    for hand in others[: needed - 1]:
        hand.confirm("n1", n1.event(event))
    table.run(0)
    assert n1.read_confirms(event) == needed - 1
    assert not n1.is_read(event)
    others[needed - 1].confirm("n1", n1.event(event))
    table.run(0)
    assert n1.read_confirms(event) == needed
    assert n1.is_read(event)


@clause("003-19")
def test_an_event_turned_read_leaves_unread_in_the_same_turn() -> None:
    table, n1, (n2, _) = alone_with(2)
    event = n2.event()
    n2.push("n1", event)
    table.run(0)
    assert n1.branch(event.id).held_seq - n1.branch(event.id).read_seq == 1
    turns = len(n1.turns)
    n2.confirm("n1", event)
    table.run(0)
    (turn,) = n1.turns[turns:]
    (put,) = [effect.record for effect in turn.durable if isinstance(effect, PutBranch)]
    assert (put.held_seq, put.read_seq, put.read_id) == (1, 1, event.id)
    assert AppendFeed((event.id,)) in turn.durable
    table.kill("n1")
    table.start("n1")
    table.run(SOON_MS)
    assert n1.is_read(event.id)
    assert n1.feed() == [event.id]  # once


@clause("003-20")
def test_an_event_turned_read_enters_the_model_with_all_that_waited_for_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    first = n2.event("first")
    line = [first]
    for number in range(40):  # from one cord to the other and back
        writer = n3 if number % 2 == 0 else n2
        own = [event for event in line if event.header.author == writer.key.node_id]
        line.append(writer.event(str(number), prev=own[-1] if own else None, parents=[line[-1]]))
    by_n2 = [event for event in line if event.header.author == n2.key.node_id]
    by_n3 = [event for event in line if event.header.author == n3.key.node_id]
    n2.push("n1", *line)
    n3.confirm("n1", by_n3[-1])  # n3's own: with n1's receipt that would do for its cord
    table.run(SOON_MS)
    assert n1.feed() == []
    turns = len(n1.turns)
    n2.confirm("n1", by_n2[-1])
    table.run(0)
    (turn,) = n1.turns[turns:]
    assert AppendFeed(tuple(event.id for event in line)) in turn.durable


@clause("003-21")
def test_an_inv_goes_from_its_signer_to_all_and_not_round_again() -> None:
    table = ready(5)
    event = table.write("n1")
    table.run(20_000)
    assert read_everywhere(table, event)
    carried = Counter(
        (table.name_of(decode_inv(s.message.inv).signer), s.sender, s.receiver)
        for s in table.sent
        if isinstance(s.message, InvMessage)
    )
    assert all(signer == sender for signer, sender, _ in carried)
    assert set(carried.values()) == {1}
    assert len(carried) == 5 * 4


@clause("003-21")
def test_where_no_link_is_a_receipt_comes_by_another_node() -> None:
    table = ready(3)
    table.part("n1", "n3")
    table.run(SOON_MS)
    event = table.write("n1")
    table.run(3 * PERIOD_MS)
    assert read_everywhere(table, event)
    n3 = table["n3"]
    assert n3.branch(event).receipts.keys() == {1, 2, 3}
    relayed = [inv for m in table.messages(Answer, "n2", "n3") for inv in m.invs]
    assert Counter(decode_inv(inv).signer for inv in relayed)[table.keys["n1"].node_id] == 1


@clause("003-22")
def test_a_receiver_answers_with_one_inv_for_all_that_it_holds() -> None:
    table, _, (n2, n3, n4) = alone_with(3)
    many, few = n2.chain(20), n3.chain(5)
    since_ms = table.now_ms
    n2.push("n1", *many)
    n3.push("n1", *few)
    table.run(SOON_MS)
    for hand in (n2, n3, n4):  # authors and all others alike
        (message,) = table.messages(InvMessage, "n1", hand.name, since_ms)
        rows = decode_inv(message.inv).rows
        assert {(row.seq, row.id) for row in rows} == {(20, many[-1].id), (5, few[-1].id)}


# --- GetData ----------------------------------------------------------------------------------
@clause("003-23")
def test_what_is_asked_for_is_served_from_the_model() -> None:
    table, n1, (n2, n3) = alone_with(2)
    events = n2.chain(3)
    n2.push("n1", *events)
    n2.confirm("n1", events[-1])
    table.run(SOON_MS)
    assert all(n1.is_read(event.id) for event in events)
    unknown = n2.event("unknown", journal=2).id
    ids: list[bytes] = [events[2].id, unknown, events[0].id]
    n3.say("n1", GetData(7, ids, [], [], [], MIB))
    table.run(0)
    (answer,) = table.messages(Answer, "n1", "n3")
    assert answer.request_id == 7
    assert [(e.header, e.signature, e.body) for e in answer.events] == [
        (event.header_bytes, event.signature, event.body) for event in (events[0], events[2])
    ]
    assert answer.missing == [unknown]
    assert not answer.more


@clause("003-24")
def test_what_is_asked_for_is_served_from_unread_and_from_fork_branches() -> None:
    table, n1, (n2, n3) = alone_with(2)
    one, other = n2.event("one"), n2.event("other")
    n2.push("n1", one)
    table.run(0)
    n3.confirm("n1", other)  # n3 vouches for the second branch
    table.run(0)
    n2.push("n1", other)
    table.run(0)
    assert n1.meta(one.id).slot.number != n1.meta(other.id).slot.number
    assert not n1.is_read(one.id)
    assert not n1.is_read(other.id)
    n3.say("n1", GetData(1, [one.id, other.id], [], [], [], MIB))
    table.run(0)
    (answer,) = table.messages(Answer, "n1", "n3")
    assert {e.header for e in answer.events} == {one.header_bytes, other.header_bytes}
    assert answer.missing == []


# --- ancestors --------------------------------------------------------------------------------
@clause("003-25")
def test_an_event_names_prev_and_up_to_seven_parents() -> None:
    table, n1, players = alone_with(9, "1")  # the author's receipt and that of n1 make it Read
    leaves = []
    for hand in players:
        leaves.append(hand.event())
        hand.push("n1", leaves[-1])
        hand.confirm("n1", leaves[-1])
        table.run(10)  # each a little later than the one before
    assert all(n1.is_read(event.id) for event in leaves)
    first = n1.event(table.write("n1")).header
    second = n1.event(table.write("n1")).header
    assert first.prev == table.cluster_id
    assert first.parents == sorted(event.id for event in leaves[:7])  # the oldest first
    assert second.prev == n1.core.dag.id_on(
        n1.branch(EventId(second.prev)), n1.meta(EventId(second.prev)).seq
    )
    assert second.parents == sorted(event.id for event in leaves[7:])
    assert first.hlc > max(event.header.hlc for event in leaves[:7])
    assert (first.depth, second.depth) == (2, 3)


@clause("003-26")
def test_an_event_enters_the_model_only_after_prev_and_parents() -> None:
    table, n1, (n2, n3, n4) = alone_with(3)
    parent = n3.event("parent")
    child = n2.event("child", parents=[parent])
    above = n2.event("above", prev=child)
    n2.push("n1", parent, child, above)
    for hand in (n2, n4):
        hand.confirm("n1", above)
    table.run(SOON_MS)
    assert n1.read_confirms(above.id) == 2
    assert not n1.is_read(child.id)  # its parent is not
    assert not n1.is_read(above.id)  # nor, then, its prev
    n3.confirm("n1", parent)
    n4.confirm("n1", parent, above)
    table.run(0)
    assert n1.feed() == [parent.id, child.id, above.id]


@clause("003-27")
def test_a_missing_ancestor_is_asked_for_and_its_child_waits() -> None:
    table, n1, (n2, n3) = alone_with(2)
    parent = n3.event("parent")
    prev = n2.event("prev")
    child = n2.event("child", prev=prev, parents=[parent])
    n2.push("n1", child)
    table.run(0)
    assert not n1.holds(child.id)
    (want,) = n2.requests()
    assert sorted(want.ids) == sorted([prev.id, parent.id])
    n2.answer("n1", want, parent, prev)
    table.run(0)
    assert n1.holds(child.id)
    n2.push("n1", n2.event("next", prev=child))  # held and Unread: no request
    table.run(10_000)
    assert len(table.messages(GetData)) == 1


# --- validity ---------------------------------------------------------------------------------
def _faults(
    table: Table, n2: Hand, base: SignedEvent, other: SignedEvent
) -> dict[str, tuple[Reason, SignedEvent]]:
    """Events above `base` of n2, each wrong in one way; `other` is another cord's."""
    good = n2.event("good", prev=base)
    header = good.header

    def changed(**changes: object) -> SignedEvent:
        return n2.signed_header(good, **changes)

    return {
        "signature": (Reason.BAD_SIGNATURE, good._replace(signature=bytes(64))),
        "short signature": (Reason.MALFORMED, good._replace(signature=bytes(63))),
        "cluster": (Reason.WRONG_CLUSTER, changed(cluster_id=bytes(32))),
        "version": (Reason.UNKNOWN_VERSION, changed(version=2)),
        "kind": (Reason.UNKNOWN_KIND, changed(kind=9)),
        "author": (Reason.NOT_A_MEMBER, changed(author=bytes(32))),
        "epoch": (Reason.EPOCH_UNKNOWN, changed(epoch=2)),
        "seq 0": (Reason.BAD_SEQ, changed(seq=0)),
        "seq": (Reason.BAD_PREV, changed(seq=header.seq + 1)),
        "journal": (Reason.BAD_PREV, changed(journal=77)),
        "prev of another": (Reason.BAD_PREV, changed(prev=other.id)),
        "prev of seq 1": (Reason.BAD_PREV, changed(seq=1)),
        "parents doubled": (Reason.BAD_PARENTS, changed(parents=[other.id, other.id])),
        "parent in the cord": (Reason.BAD_PARENTS, changed(journal=78, seq=1, depth=2)),
        "eight parents": (
            Reason.BAD_PARENTS,
            changed(parents=[bytes([n]).ljust(32) for n in range(8)]),
        ),
        "hlc": (Reason.BAD_HLC, changed(hlc=base.header.hlc)),
        "depth": (Reason.BAD_DEPTH, changed(depth=header.depth + 1)),
        "no entries": (Reason.BAD_BODY, changed(entry_count=0)),
        "entry count": (Reason.BAD_BODY, changed(entry_count=2)),
        "body size": (Reason.BAD_BODY, changed(body_size=header.body_size + 1)),
        "body too large": (Reason.TOO_LARGE, changed(body_size=4 * MIB + 1)),
        "root": (Reason.BAD_ROOT, changed(entries_root=bytes(32))),
        "body": (Reason.NOT_CANONICAL, good._replace(body=b"\xdc\x00\x01" + good.body[1:])),
        "header": (Reason.MALFORMED, good._replace(header_bytes=good.header_bytes[:-1])),
    }


FAULTS = [
    "signature", "short signature", "cluster", "version", "kind", "author", "epoch", "seq 0", "seq",
    "journal", "prev of another", "prev of seq 1", "parents doubled", "eight parents", "hlc",
    "depth", "no entries", "entry count", "body size", "body too large", "root", "header",
]  # fmt: skip


@clause("003-28")
@pytest.mark.parametrize("fault", FAULTS)
def test_an_event_that_is_not_well_formed_is_refused_and_changes_nothing(fault: str) -> None:
    table, n1, (n2, n3) = alone_with(2)
    base, other = n2.event("base"), n3.event("other")
    n2.push("n1", base)
    n3.push("n1", other)
    table.run(SOON_MS)
    reason, event = _faults(table, n2, base, other)[fault]
    n1.core.step([], table.now(n1))
    before, turns = state_of(n1.core), len(n1.turns)
    n2.push("n1", event)
    table.run(0)
    assert n1.refusals() == [reason]
    (turn,) = n1.turns[turns:]
    assert turn.durable == []
    assert len(turn.spoken) == 1
    n1.core.intake.refused.clear()  # the memory of what was refused for good is all there is
    assert differing(before, state_of(n1.core)) == []
    assert not n1.holds(event.id)


@clause("003-28")
def test_a_nodes_own_event_passes_the_same_checks() -> None:
    table = ready(3)
    n1 = table["n1"]
    for entries, reason in (
        ((), Reason.BAD_BODY),
        ((b"\x90",), Reason.MALFORMED),
        ((encode([None, 0, "Not A Stream", *[None] * 5, 2, b"", 0, None]),), Reason.BAD_ENTRY),
        ((b"\xc4" * (MIB + 1),), Reason.TOO_LARGE),
    ):
        turns = len(n1.turns)
        n1.inbox.append(EntriesSubmitted(table.submit("n2"), entries))
        table["n2"].inbox.clear()
        table.run(0)
        assert n1.not_stored.pop().reason == reason
        assert [t.durable for t in n1.turns[turns:]] == [[]]


@clause("003-29")
def test_an_event_ahead_of_its_time_waits_for_its_receipt() -> None:
    table, n1, (n2, _) = alone_with(2)
    ahead_ms = 10_000
    event = n2.event(hlc=table.hlc + (ahead_ms << HLC_SHIFT))
    n2.push("n1", event)
    table.run(ahead_ms - AHEAD_MS - 1)
    assert n1.holds(event.id)
    assert n1.read_confirms(event.id) == 0
    n2.confirm("n1", event)
    table.run(1)  # due: cluster now + 2 s has reached it
    assert n1.read_confirms(event.id) == 1
    assert n1.is_read(event.id)


@clause("003-29")
def test_a_clock_ten_seconds_ahead_leaves_all_models_equal() -> None:
    table = ready(3)
    table["n3"].clock_offset_ms = 10_000
    table.run(PERIOD_MS)
    event = table.write("n3")
    table.run(15_000)
    assert read_everywhere(table, event)
    assert table.are_equal()


@clause("003-30")
def test_old_events_are_left_to_those_who_ask_for_them() -> None:
    table, n1, (n2, _) = alone_with(2)
    long_ago = table.hlc - ((AGE_MS + 1) << HLC_SHIFT)
    old = n2.event("old", hlc=long_ago)
    young = n2.event("young", journal=2, hlc=table.hlc - (AGE_MS << HLC_SHIFT))
    n2.push("n1", old, young)
    table.run(0)
    assert n1.refusals() == [Reason.TOO_OLD]
    assert n1.holds(young.id)
    n2.sync("n1", old)
    table.run(GOSSIP_MS)
    (want,) = n2.requests()
    n2.answer("n1", want, old)
    n2.confirm("n1", old)
    table.run(SOON_MS)
    assert n1.is_read(old.id)


@clause("003-30")
def test_a_node_that_was_away_for_an_hour_gets_it_all() -> None:
    table = ready(3)
    table.kill("n3")
    events = [table.write("n1", str(number)) for number in range(5)]
    table.run(3_600_000 // 60)
    table.now_ms += 3_600_000
    table.start("n3")
    table.run_until(lambda: read_everywhere(table, *events), 3 * PERIOD_MS)


# --- resending --------------------------------------------------------------------------------
@clause("003-31")
def test_unread_events_go_again_to_members_whose_receipt_is_missing() -> None:
    table, n1, (n2, _) = alone_with(2, "all")
    event = table.write("n1")
    n2.confirm("n1", n1.event(event))
    start_ms = table.now_ms
    table.run(130_000)
    assert [s.at_ms for s in table.sent if isinstance(s.message, EventMessage)][:2] == [
        start_ms
    ] * 2
    assert len(n2.events_heard()) == 1
    times = [s.at_ms - start_ms for s in table.sent if isinstance(s.message, EventMessage)][2:]
    waits = [later - earlier for earlier, later in zip([0, *times], times, strict=False)]
    expected = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]
    assert len(waits) in (len(expected) - 1, len(expected))
    for wait_ms, interval_ms in zip(waits, expected, strict=False):
        assert interval_ms <= wait_ms <= interval_ms * 9 // 8


@clause("003-31")
def test_a_holder_resends_when_the_author_is_away() -> None:
    table, _, (n2, n3) = alone_with(2, "all")
    event = n2.event()
    n2.push("n1", event)
    n3.sync("n1", event)  # so that it is not sent on at first
    table.run(900)
    n3.sync("n1", rows=[])
    table.run(5_000)
    assert n3.events_heard() == []  # the author is there
    table.part("n1", "n2")
    table.run(9_000)
    assert len(n3.events_heard()) >= 1


@clause("003-32")
def test_a_read_event_is_not_sent_again() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = table.write("n1")
    n2.confirm("n1", n1.event(event))
    table.run(0)
    assert n1.is_read(event)
    assert len(n3.events_heard()) == 1
    table.run(120_000)
    assert len(n3.events_heard()) == 1  # though n3 has never said that it has it
    assert n1.core.resend.next_deadline() is None


# --- SyncEvent --------------------------------------------------------------------------------
@clause("003-33")
def test_after_healing_all_nodes_hold_and_have_read_the_same() -> None:
    table = ready(5)
    for one in ("n1", "n2"):
        for other in ("n3", "n4", "n5"):
            table.cut(one, other)
    for number in range(20):
        table.submit("n1", f"one side {number}")
        table.submit("n4", f"other side {number}")
        table.run(7)
    table.kill("n5")
    table.run(30_000)
    assert not table.are_equal("n1", "n3")
    table.heal()
    table.start("n5")
    table.run_until(table.are_equal, 3 * PERIOD_MS)  # with no new write
    table.run_until(lambda: all(len(s.feed()) == 40 for s in table.seats.values()), 3 * PERIOD_MS)
    assert len({frozenset(seat.feed()) for seat in table.seats.values()}) == 1
    assert table.are_equal()


@clause("003-34")
def test_sync_events_go_to_each_peer_on_connecting_and_every_two_seconds() -> None:
    table, _, (n2, n3) = alone_with(2)
    table.run(10_000)
    table.part("n1", "n2")
    table.run(999)
    table.join("n1", "n2")
    table.run(6_000)
    rejoined_ms = 10 + 10_000 + 999
    times = {
        hand.name: [
            s.at_ms
            for s in table.sent
            if isinstance(s.message, SyncEvent) and s.receiver == hand.name
        ]
        for hand in (n2, n3)
    }
    assert times["n3"] == list(range(0, table.now_ms + 1, PERIOD_MS))
    assert times["n2"] == [
        *range(0, 10_001, PERIOD_MS),
        *range(rejoined_ms, table.now_ms + 1, PERIOD_MS),
    ]


@clause("003-35")
def test_a_sync_event_holds_the_oldest_leaves_their_count_and_rows() -> None:
    table, n1, (n2, n3) = alone_with(2)
    events = []
    for journal in range(1, 71):
        events.append(n2.event(journal=journal))
        table.run(1)
    n2.push("n1", *events)
    n2.confirm("n1", *events)
    n3.confirm("n1", *events)
    table.run(PERIOD_MS)
    assert all(n1.is_read(event.id) for event in events)
    message = table.messages(SyncEvent, "n1", "n2")[-1]
    assert message.leaves == [event.id for event in events[:LEAVES]]
    assert message.leaf_count == 70
    assert [
        (row.author_no, row.journal, row.seq, row.id, row.read_seq) for row in message.rows
    ] == [(n2.number, event.header.journal, 1, event.id[:16], 1) for event in events]
    assert message.digest == n1.digest()


@clause("003-36")
def test_equal_leaves_are_not_answered_and_unequal_ones_find_what_is_lacking() -> None:
    table = ready(3)
    event = table.write("n1")
    table.run(5 * PERIOD_MS)
    assert table.are_equal()
    since_ms = table.now_ms
    table.run(10 * PERIOD_MS)
    idle = [s for s in table.sent if s.at_ms > since_ms]
    assert {type(s.message) for s in idle} == {SyncEvent}
    assert max(s.size for s in idle) <= 512
    assert read_everywhere(table, event)

    table, n1, (n2, _) = alone_with(2)
    lacking = n2.event()
    n2.sync("n1", lacking, digest=n1.digest())  # equal, so there is nothing to find out
    table.run(PERIOD_MS)
    assert n2.requests() == []
    n2.sync("n1", lacking)
    table.run(GOSSIP_MS - 1)
    assert n2.requests() == []  # it may be on its way
    table.run(1)
    (want,) = n2.requests()
    assert [(r.author_no, r.last_seq, r.last) for r in want.ranges] == [
        (n2.number, 1, lacking.id[:16])
    ]


def _side_branch(n3: Hand) -> tuple[list[SignedEvent], list[SignedEvent]]:
    """One holds X -> Y, the other X -> Y and X -> Z: Y has no children at the other."""
    x = n3.event("x", journal=1)
    y = n3.event("y", journal=2, parents=[])
    z = n3.event("z", prev=x)
    return [x, y], [x, y, z]


def _side_behind(n3: Hand) -> tuple[list[SignedEvent], list[SignedEvent]]:
    line = n3.chain(10)
    return line[:4], line


def _deep_chain(n3: Hand) -> tuple[list[SignedEvent], list[SignedEvent]]:
    line = n3.chain(1_000)
    return line[:1], line


@clause("003-37")
@pytest.mark.parametrize("case", [_side_branch, _side_behind, _deep_chain])
def test_who_is_behind_asks_and_is_level_after_one_round_trip(case: object) -> None:
    table = Table(2, played=["n3"])
    (n3,) = hands(table)
    table.run(SOON_MS)
    table.cut("n1", "n2")
    assert callable(case)
    fewer, more = case(n3)
    n3.push("n2", *fewer)
    n3.push("n1", *more)
    table.run(SOON_MS)
    table.part("n1", "n3")
    table.part("n2", "n3")
    table.run(SOON_MS)
    table.heal()
    table.part("n1", "n2")
    table.join("n1", "n2")
    since_ms = table.now_ms
    table.run_until(table.are_equal, PERIOD_MS)
    asked = table.messages(GetData, since_ms=since_ms)
    assert asked == table.messages(GetData, "n2", "n1", since_ms)
    assert len(asked) == 1
    (answer,) = table.messages(Answer, "n1", "n2", since_ms)
    assert len(answer.events) == len(more) - len(fewer)  # nothing that is held comes again
    assert table.messages(EventMessage, since_ms=since_ms) == []  # and nobody pushes history
    assert msgspec.msgpack.encode(answer)
