import msgspec
import pytest

from quipu.ledger.canonical import encode
from quipu.ledger.epochs import (
    EpochDocument,
    Member,
    close_hash,
    decode_document,
    decode_genesis,
    genesis_epoch,
)
from quipu.ledger.refusals import Reason, Refused
from tests.small_ledger import SmallLedger, node_id


def changed(document: EpochDocument, **changes: object) -> EpochDocument:
    return msgspec.structs.replace(document, **changes)


def test_founders_are_numbered_in_their_order() -> None:
    epoch = genesis_epoch(decode_genesis(SmallLedger(3).genesis))
    assert epoch.members == {i: node_id(i) for i in (1, 2, 3)}
    assert (epoch.number, epoch.max_confirms, epoch.witnesses_needed) == (1, 1, 2)


def test_an_opened_epoch_is_the_newest_and_its_cut_is_told() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(2)
    document = ledger.document([2, 3, 5], "all", [event])
    epoch, rows = ledger.epochs.open(encode(document))
    assert rows == [(ledger.cord_of(event), 1, event.id)]
    assert ledger.epochs.newest is epoch is ledger.epochs.by_number[epoch.number]
    assert ledger.epochs.cut_hlc == event.header.hlc
    assert ledger.epochs.node_numbers == {node_id(i): i for i in (1, 2, 3, 5)}


def test_erasable_streams_stand_in_genesis_and_documents() -> None:
    ledger = SmallLedger(3)
    genesis = decode_genesis(ledger.genesis)
    declared = msgspec.structs.replace(genesis, streams_erasable=["a", "gdpr"])
    assert genesis_epoch(declared).streams_erasable == {"a", "gdpr"}
    assert ledger.epoch.streams_erasable == set()
    epoch, _ = ledger.epochs.open(encode(ledger.document([1, 2, 3], "majority")))
    assert epoch.streams_erasable == {"gdpr"}
    for streams in (["b", "a"], ["a", "a"], ["A"]):
        with pytest.raises(Refused):
            decode_genesis(encode(msgspec.structs.replace(genesis, streams_erasable=streams)))


def refused(ledger: SmallLedger, document: EpochDocument) -> Reason:
    before = dict(ledger.epochs.node_ids), ledger.epoch
    with pytest.raises(Refused) as caught:
        ledger.epochs.open(encode(document))
    assert (dict(ledger.epochs.node_ids), ledger.epoch) == before
    return caught.value.reason


def test_only_the_next_document_of_this_cluster_opens() -> None:
    ledger = SmallLedger(3)
    good = ledger.document([1, 2, 3], "majority")
    assert refused(ledger, changed(good, cluster_id=bytes(32))) is Reason.WRONG_CLUSTER
    assert refused(ledger, changed(good, number=3)) is Reason.EPOCH_UNKNOWN
    assert refused(ledger, changed(good, previous=bytes(32))) is Reason.EPOCH_UNKNOWN


def test_a_node_number_is_never_used_again() -> None:
    ledger = SmallLedger(3)
    good = ledger.document([1, 2, 3], "majority")
    taken = [*good.members[:2], Member(3, node_id(4), "n4", [])]
    assert refused(ledger, changed(good, members=taken)) is Reason.MALFORMED
    renumbered = [*good.members[:2], Member(4, node_id(3), "n3", [])]
    assert refused(ledger, changed(good, members=renumbered)) is Reason.MALFORMED
    ledger.epochs.open(encode(ledger.document([1, 2], "majority")))
    after_leaving = ledger.document([1, 2], "majority")
    taken = [*after_leaving.members, Member(3, node_id(4), "n4", [])]
    assert refused(ledger, changed(after_leaving, members=taken)) is Reason.MALFORMED
    ledger.epochs.open(encode(ledger.document([1, 2, 3], "majority")))


def test_a_close_promises_everything_but_the_cut() -> None:
    ledger = SmallLedger(3)
    event = ledger.write(1)
    good = ledger.document([1, 2, 3], "majority")
    close = close_hash(good)
    assert close == close_hash(ledger.document([1, 2, 3], "majority", [event]))
    promised: dict[str, object] = {
        "cluster_id": bytes(32),
        "number": 3,
        "previous": bytes(32),
        "attempt": 2,
        "policy": "all",
        "members": good.members[:2],
        "streams_erasable": [],
    }
    for field, value in promised.items():
        assert close_hash(changed(good, **{field: value})) != close, field


def test_two_certified_branches_of_a_cord_may_both_be_cut() -> None:
    ledger = SmallLedger(3)
    first = ledger.write(1)
    both = [ledger.write(1, ["x"], prev=first), ledger.write(1, ["y"], prev=first)]
    document = ledger.document([1, 2, 3], "majority", both)
    assert len(decode_document(encode(document)).cut) == 2
