"""One step a turn: what goes in, what comes out, and what a core is after a start."""

from dataclasses import replace

import msgspec
import pytest

from quipu.ledger import limits
from quipu.ledger.core import Core
from quipu.ledger.effects import (
    EntriesStored,
    PutBranch,
    PutOwnState,
    SendEarly,
    SendMessage,
    StoreEvent,
    StoreInv,
)
from quipu.ledger.evidence import prove_author
from quipu.ledger.inputs import MessageReceived
from quipu.ledger.inv import build_inv, decode_inv
from quipu.ledger.messages import (
    Answer,
    EventMessage,
    GetData,
    InvMessage,
    InvWant,
    bytes_of,
    decode_message,
    encode_message,
)
from quipu.ledger.recovery import State
from quipu.ledger.refusals import Reason
from quipu.ledger.safeguards import ALL
from quipu.ledger.words import EpochNo, InvNumber, NodeId, Seq, hlc_at
from quipu.storage.memory_store import MemoryStore
from tests.conformance.hand import Hand, alone_with, greet
from tests.conformance.state import differing, state_of
from tests.conformance.table import Seat, Table, key_of


def bad_messages(table: Table, n1: Seat, n2: Hand, n3: Hand) -> dict[str, tuple[Reason, bytes]]:
    """Messages that are refused, by what is wrong with them; events have a list of their own in
    tests/conformance."""
    event = n2.event("never sent")
    row = (table.cord_of(event.header), Seq(1), event.id)
    inv = n3.inv(event)
    proof = prove_author(
        (event.header_bytes, event.signature, event.id),
        (event.header_bytes, event.signature, event.id),
    )

    def signed(**changes: object) -> bytes:
        fields: dict[str, object] = {
            "key": n3.key,
            "cluster_id": table.cluster_id,
            "epoch": EpochNo(1),
            "number": InvNumber(table.hlc),
            "rows": [row],
        }
        return build_inv(**{**fields, **changes}).data  # type: ignore[arg-type]

    return {
        "nothing": (Reason.MALFORMED, b""),
        "noise": (Reason.MALFORMED, b"\xc1\xff\x00"),
        "cut short": (Reason.MALFORMED, encode_message(InvMessage(inv.data))[:-3]),
        "a longer number": (Reason.NOT_CANONICAL, b"\x92\xcc\x02\xc4\x00"),
        "kind": (Reason.UNKNOWN_KIND, b"\x92\x7f\xc4\x00"),
        "nested deeply": (Reason.MALFORMED, b"\x91" * 5_000 + b"\x90"),
        "long": (Reason.TOO_LARGE, bytes(limits.MESSAGE_BYTES_MAX + 1)),
        "Inv: noise": (Reason.MALFORMED, encode_message(InvMessage(b"\x90"))),
        "Inv: signature": (
            Reason.BAD_SIGNATURE,
            encode_message(InvMessage(inv.data[:-1] + bytes([inv.data[-1] ^ 1]))),
        ),
        "Inv: cluster": (
            Reason.WRONG_CLUSTER,
            encode_message(InvMessage(signed(cluster_id=bytes(32)))),
        ),
        "Inv: signer": (
            Reason.NOT_A_MEMBER,
            encode_message(InvMessage(signed(key=key_of("stranger")))),
        ),
        "Inv: epoch": (
            Reason.EPOCH_UNKNOWN,
            encode_message(InvMessage(signed(key=key_of("stranger"), epoch=EpochNo(2)))),
        ),
        "Inv: rows": (
            Reason.BAD_ROWS,
            encode_message(InvMessage(signed(rows=[row, row]))),
        ),
        "Inv: seq 0": (
            Reason.BAD_ROWS,
            encode_message(InvMessage(signed(rows=[(row[0], Seq(0), event.id)]))),
        ),
        "evidence": (Reason.NO_PROOF, b"\x92\x06" + msgspec.msgpack.encode(proof)),
        "an answer to nothing": (Reason.UNREQUESTED, encode_message(Answer(9, [], [], [], False))),
    }


BAD = [
    "nothing", "noise", "cut short", "a longer number", "kind", "nested deeply", "long",
    "Inv: noise", "Inv: signature", "Inv: cluster", "Inv: signer", "Inv: epoch", "Inv: rows",
    "Inv: seq 0", "evidence", "an answer to nothing",
]  # fmt: skip


@pytest.mark.parametrize("fault", BAD)
def test_a_refused_message_changes_nothing(fault: str) -> None:
    table, n1, (n2, n3) = alone_with(2)
    n2.push("n1", n2.event())
    table.run(50)
    messages = bad_messages(table, n1, n2, n3)
    assert list(messages) == BAD
    reason, data = messages[fault]
    n1.core.step([], table.now(n1))
    before, turns = state_of(n1.core), len(n1.turns)
    table.tell("n3", "n1", data)
    table.run(0)
    assert n1.refusals() == [reason]
    (turn,) = n1.turns[turns:]
    assert turn.durable == []
    assert len(turn.spoken) == 1
    assert differing(before, state_of(n1.core)) == []


def test_who_is_not_connected_is_not_listened_to() -> None:
    table, n1, (n2, _) = alone_with(2)
    event = n2.event()
    table.part("n1", "n2")
    table.run(0)
    n1.core.step([], table.now(n1))
    before = state_of(n1.core)
    n2.push("n1", event)
    n1.inbox.append(MessageReceived(NodeId(b"s" * 32), b""))
    table.run(0)
    assert n1.refusals() == [Reason.UNREQUESTED] * 2
    assert differing(before, state_of(n1.core)) == []


def test_extreme_numbers_of_a_peer_do_no_harm() -> None:
    top = 2**64 - 1
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n2.push("n1", event)
    table.run(10)
    cord = table.cord_of(event.header)
    n3.sync(
        "n1",
        event,
        number=top - 1,
        heard=top,
        base=0,
        leaf_count=top,
        epoch=top,
        wall_ms=top,
        receipts=[(2**32 - 1, top)],
        read_seq=top,
    )
    n2.sync("n1", wall_ms=top)
    rows = [(cord._replace(journal=top), Seq(top), event.id)]  # type: ignore[arg-type]
    inv = build_inv(n3.key, table.cluster_id, EpochNo(1), InvNumber(top), rows)
    n3.say("n1", InvMessage(inv.data))
    late = build_inv(n3.key, table.cluster_id, EpochNo(top), InvNumber(top), rows)
    n3.say("n1", InvMessage(late.data))
    n3.say("n1", GetData(top, [], [], [InvWant(2**32 - 1, top)], [], top))
    n3.push("n1", n3.event(hlc=top), n3.event(journal=top))
    n3.push("n1", n3.signed_header(n3.event(journal=5), seq=top, prev=bytes(32), depth=top))
    table.run(100)
    table.submit("n1")
    table.run(10_000)
    assert len(n1.stored) == 1
    table.kill("n1")
    table.start("n1")
    greet(n2)
    table.run(10_000)
    table.submit("n1")
    table.run(10)
    assert len(n1.stored) == 2


def test_of_an_answer_what_is_good_is_taken_and_the_rest_refused() -> None:
    table, n1, (n2, n3) = alone_with(2)
    good, bad = n2.event("good"), n2.event("bad", journal=2)
    n3.sync("n1", good, bad)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)
    answer = Answer(
        n3.requests()[-1].request_id,
        [b"\x90", n2.inv(good).data],
        [bytes_of(bad._replace(signature=bytes(64))), bytes_of(good)],
        [],
        False,
    )
    n3.say("n1", answer)
    table.run(0)
    assert n1.refusals() == [Reason.MALFORMED, Reason.BAD_SIGNATURE]
    assert n1.is_read(good.id)
    assert not n1.holds(bad.id)


# --- the order of effects ---------------------------------------------------------------------
def test_what_is_durable_is_told_by_whole_records_at_the_end() -> None:
    table, n1, (n2, _) = alone_with(2)
    turns = len(n1.turns)
    n2.push("n1", *n2.chain(3))
    table.run(0)
    (turn,) = n1.turns[turns:]
    kinds = [type(effect) for effect in turn.durable]
    assert kinds == [StoreEvent] * 3 + [StoreInv, PutBranch]
    record = n1.core.dag.branches[n1.durable(PutBranch)[-1].record.key]
    assert n1.durable(PutBranch)[-1].record == record
    assert n1.durable(PutBranch)[-1].record is not record  # a copy: the core goes on with its own


def test_only_ones_own_new_event_goes_early() -> None:
    table = Table(3)
    table.run(50)
    table.submit("n1")
    table.run(2_100)
    early = [e for seat in table.seats.values() for t in seat.turns for e in t.spoken]
    kinds = {type(decode_message(effect.data)) for effect in early if isinstance(effect, SendEarly)}
    later = {
        type(decode_message(effect.data)) for effect in early if isinstance(effect, SendMessage)
    }
    assert kinds == {EventMessage}
    assert InvMessage in later
    assert any(isinstance(effect, EntriesStored) for effect in early)


def test_the_own_state_is_stored_when_it_changes() -> None:
    table, n1, players = alone_with(2)
    assert n1.durable(PutOwnState) == []
    journal = n1.event(table.write("n1")).header.journal
    table.write("n1")
    assert n1.durable(PutOwnState) == [PutOwnState(journal, False)]  # type: ignore[arg-type]
    table.kill("n1")
    table.start("n1")
    assert n1.core.author.newest_journal == journal
    greet(*players)
    assert len(n1.durable(PutOwnState)) == 1


def test_a_core_says_when_it_wants_to_be_called() -> None:
    table, n1, _ = alone_with(2)
    table.run(limits.SYNC_DIFFERENCE_AGE_MS)  # then it asks for what was found different
    assert n1.core.next_deadline() == limits.SYNC_INTERVAL_MS
    turns = len(n1.turns)
    table.run(limits.SYNC_INTERVAL_MS - table.now_ms - 1)
    assert len(n1.turns) == turns
    table.run(1)
    assert len(n1.turns) == turns + 1


def recovery_of(seat: Seat) -> State:
    return seat.core.recovery.state


# --- starts -----------------------------------------------------------------------------------
def test_with_an_intact_directory_a_node_waits_three_seconds_at_most_and_goes_on() -> None:
    table = Table(3)
    table.run(50)
    event = table.write("n1")
    table.run(50)
    for name in table.seats:
        table.kill(name)
    table.run(1_000)
    for name in ("n1", "n2"):
        table.start(name)
    start_ms = table.now_ms
    later = table.write("n1")
    table.run_until(lambda: table["n2"].is_read(later), 10_000)
    assert limits.START_WAIT_MS <= table.now_ms - start_ms <= limits.START_WAIT_MS + 100
    assert table["n1"].is_read(event)
    assert recovery_of(table["n1"]) == State.READY


def test_all_killed_at_once_and_started_again_read_at_once() -> None:
    table = Table(3)
    table.run(50)
    event = table.write("n1")
    for name in table.seats:
        table.kill(name)
    for name in table.seats:
        table.start(name)
    later = table.write("n2")
    ids = [event, later]
    table.run_until(
        lambda: all(seat.is_read(i) for seat in table.seats.values() for i in ids), 1_000
    )


def test_what_waits_for_receipts_at_a_stop_becomes_read_after_it() -> None:
    table, n1, (n2, n3) = alone_with(2)
    event = n2.event()
    n3.confirm("n1", n3.event("unknown here", journal=4), event)
    n2.push("n1", event)
    table.run(10)
    table.kill("n1")
    table.start("n1")
    greet(n2, n3)
    table.run(10)
    assert n1.core.resend.next_deadline() is not None  # sent again, for it is Unread
    assert n1.core.receipts.names_cord(table.cord_of(n3.event(journal=4).header), n3.number)
    n2.confirm("n1", event)
    table.run(10)
    assert n1.is_read(event.id)
    numbers = [effect.inv.number for effect in n1.durable(StoreInv) if effect.signer_no == 1]
    assert numbers == sorted(set(numbers))


def test_after_a_start_the_core_is_what_it_was() -> None:
    table = Table(3)
    table.run(50)
    for number in range(10):
        table.submit(f"n{number % 3 + 1}", str(number))
        table.run(3)
    table.run(5_000)
    n1 = table["n1"]
    dag = n1.core.dag
    before = (dag.branches, dag.leaves, n1.core.receipts.newest, n1.digest())
    number = n1.core.confirmer.last_number
    table.kill("n1")
    table.start("n1")
    table.run(0)
    dag = n1.core.dag
    assert (dag.branches, dag.leaves, n1.core.receipts.newest, n1.digest()) == before
    assert n1.core.confirmer.last_number == number
    assert n1.turns[-1].durable == []


# --- lost disks -------------------------------------------------------------------------------
def test_a_node_that_lost_its_disk_signs_nothing_before_it_knows_what_it_said() -> None:
    table = Table(3)
    table.run(50)
    events = [table.write("n1", str(number)) for number in range(5)]
    table.run(1_000)
    n2 = table["n2"]
    spoken_number = n2.core.confirmer.last_number
    table.kill("n2")
    table.start("n2", wiped=True)
    assert recovery_of(n2) == State.RECOVERING
    count = len(n2.turns)
    table.run(5_000)
    assert recovery_of(n2) == State.READY
    assert all(n2.is_read(event) for event in events)
    assert all(n2.branch(event).signed_seq == 5 for event in events)  # taken over
    assert n2.core.confirmer.last_number >= spoken_number
    recovered = [e for t in n2.turns[count:] for e in t.durable if isinstance(e, PutOwnState)]
    assert [effect.recovering for effect in recovered] == [
        False
    ]  # the store was created with the mark
    later = table.write("n1", "later")
    table.run(50)
    assert n2.is_read(later)


def test_recovering_outlives_a_restart_and_the_silence_of_the_others() -> None:
    table = Table(3)
    table.run(50)
    table.write("n1")
    table.run(100)
    table.kill("n3")
    table.kill("n2")
    table.start("n2", wiped=True)
    n2 = table["n2"]
    table.run(20_000)
    assert recovery_of(n2) == State.RECOVERING  # one of two others is not enough
    table.kill("n2")
    table.start("n2")
    assert recovery_of(n2) == State.RECOVERING
    later = table.write("n1", "later")
    table.run(20_000)
    assert n2.holds(later)
    assert [e for e in n2.durable(StoreInv) if e.signer_no == 2 and e.inv.epoch != 1] == []
    assert not table["n1"].is_read(later)
    table.start("n3")
    table.run(10_000)
    assert recovery_of(n2) == State.READY
    assert table["n1"].is_read(later)


def test_a_directory_set_back_is_noticed_by_an_own_receipt_it_does_not_know() -> None:
    table = Table(3)
    table.run(50)
    table.write("n1", "before")
    table.run(100)
    n2 = table["n2"]
    image = n2.store.image()
    after = table.write("n1", "after")
    table.run(100)
    table.kill("n2")
    table.start("n2", image=image)
    assert recovery_of(n2) == State.LISTENING
    states = [State.LISTENING]
    number = n2.core.receipts.newest[n2.number].number
    while table.now_ms < 10_000:
        table.run(10)
        if n2.core.recovery.state is not states[-1]:
            states.append(n2.core.recovery.state)
    assert states == [State.LISTENING, State.RECOVERING, State.READY]
    assert n2.is_read(after)
    assert n2.core.confirmer.last_number > number


def test_a_node_set_back_never_signs_another_id_for_a_slot_it_has_signed() -> None:
    table, n1, (liar, n3, n4) = alone_with(3)
    image = n1.store.image()
    one, other = liar.event("one"), liar.event("other")
    liar.push("n1", one)
    table.run(10)
    said = decode_inv(table.messages(InvMessage, "n1", "n3")[-1].inv)
    assert [row.id for row in said.rows] == [one.id]
    table.kill("n1")
    table.start("n1", image=image)
    liar.push("n1", other)
    for hand in (liar, n3, n4):
        hand.sync("n1", receipts=[(1, said.number)] if hand is n3 else [])
    table.run(0)
    assert n1.branch(other.id).signed_seq == 0
    n3.answer("n1", n3.requests()[-1], invs=[said])
    table.run(5_000)
    assert recovery_of(n1) == State.RECOVERING
    for hand in (n3, n4):
        hand.sync("n1", receipts=[(1, said.number)])
        table.run(0)
        hand.answer("n1", hand.requests()[-1], one, invs=[said])
        table.run(0)
    assert recovery_of(n1) == State.READY
    table.run(5_000)
    assert n1.branch(one.id).signed_seq == 1
    assert n1.branch(other.id).signed_seq == 0


def test_without_the_safeguard_a_node_set_back_signs_at_once() -> None:
    table, n1, (liar, n3) = alone_with(2, guards=replace(ALL, restore_guard=False))
    table.kill("n1")
    table.start("n1", wiped=True)
    assert recovery_of(n1) == State.LISTENING
    greet(liar, n3)
    n3.say("n1", InvMessage(Hand(table, "n1").inv(number=table.hlc + hlc_at(9_000)).data))
    table.run(0)
    assert recovery_of(n1) == State.READY


def test_a_node_fetches_and_signs_what_peers_hold_of_its_own_past() -> None:
    table = Table(3)
    table.run(50)
    n1 = table["n1"]
    image = n1.store.image()
    lost = table.write("n1", "pushed, and then the disk went")
    table.may_pass = lambda s: not (s.sender == "n1" and isinstance(s.message, InvMessage))
    table.run(10)
    table.kill("n1")
    table.heal()
    table.start("n1", image=image)
    table.run_until(lambda: all(seat.is_read(lost) for seat in table.seats.values()), 10_000)
    assert lost in n1.feed()


def test_a_new_store_for_an_old_key_is_recovering_and_says_so_durably() -> None:
    table, n1, _ = alone_with(2)
    config = replace(n1.core.config, key_existed=True)
    store = MemoryStore(table.owner(n1))
    core = Core(config, store.saved(), store, table.now(n1))
    assert core.recovery.state is State.RECOVERING
    store.commit(core.step([], table.now(n1)).durable)
    assert store.saved().recovering
    again = Core(replace(config, key_existed=False), store.saved(), store, table.now(n1))
    assert again.recovery.state is State.RECOVERING


def receipts_sent(table: Table, name: str) -> dict[str, bool]:
    """By whom they went to; whether it had time."""
    return {
        table.name_of(effect.peer): effect.has_time
        for turn in table[name].turns
        for effect in turn.spoken
        if isinstance(effect, SendMessage) and isinstance(decode_message(effect.data), InvMessage)
    }


def test_a_receipt_goes_at_once_to_the_author_of_what_it_covers_alone() -> None:
    table = Table(3)
    table.run(2_100)
    for seat in table.seats.values():
        seat.turns.clear()
    table.write("n1")
    table.run(50)
    assert receipts_sent(table, "n1") == {"n2": True, "n3": True}
    assert receipts_sent(table, "n2") == {"n1": False, "n3": True}
    assert receipts_sent(table, "n3") == {"n1": False, "n2": True}


def test_where_more_than_one_other_has_to_confirm_receipts_go_to_all_at_once() -> None:
    table = Table(4)
    table.run(2_100)
    for seat in table.seats.values():
        seat.turns.clear()
    table.write("n1")
    table.run(50)
    assert receipts_sent(table, "n2") == {"n1": False, "n3": False, "n4": False}
