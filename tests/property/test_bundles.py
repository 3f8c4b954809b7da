"""Bundles: what is built verifies, by both readers alike, and no other bytes prove other things."""

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quipu.ledger.bundle import Finality, check_bundle
from quipu.ledger.bundle_build import build_bundle
from quipu.ledger.epochs import close_hash
from quipu.ledger.event import SignedEvent
from quipu.ledger.inv import decode_inv
from quipu.ledger.quorum import max_confirms, seals_needed
from quipu.ledger.refusals import Refused
from quipu.ledger.signing import verify
from quipu.ledger.words import Cord, EpochNo
from quipu.verify import VerificationFailed, Verified
from quipu.verify import verify as verify_offline
from tests.small_ledger import SmallLedger
from tests.vectors.check import Bad
from tests.vectors.check import bundle as verify_as_stranger
from tests.vectors.generate import World, bundles_of

BUNDLES = bundles_of(World())


def by_ledger(data: bytes) -> Finality | None:
    try:
        return check_bundle(data, verify)
    except Refused:
        return None


def by_stranger(data: bytes) -> dict[str, object] | None:
    try:
        return verify_as_stranger(data)
    except Bad:
        return None


def offline(data: bytes) -> Verified | None:
    try:
        return verify_offline(data)
    except VerificationFailed:
        return None


def agreed(data: bytes) -> Verified | None:
    """What the offline verifier says, after asserting that the other readers say the same."""
    one, other, third = by_ledger(data), offline(data), by_stranger(data)
    assert (one is None) == (other is None) == (third is None)
    if one is None or other is None or third is None:
        return None
    assert (one.cluster_id, one.event, one.entry_index) == (
        other.cluster_id,
        other.event_id,
        other.index,
    )
    assert one.entry.data == other.entry.data
    assert (one.epoch.number, one.required) == (other.epoch, other.required)
    assert list(one.confirmed) == [m.number for m in other.confirmed_by] == third["confirmed"]
    assert one.by_cut == (other.by == "cut") == (third["by"] == "cut")
    assert (third["event"], third["required"]) == (one.event.hex(), one.required)
    return other


@pytest.mark.parametrize("name", BUNDLES)
def test_the_bundles_of_the_vectors(name: str) -> None:
    assert agreed(BUNDLES[name]) is not None


@pytest.mark.parametrize("name", ["one member", "headers between", "by a cut"])
def test_no_single_byte_can_be_another(name: str) -> None:
    """Every byte, three other values each: it proves the same, or nothing."""
    good = BUNDLES[name]
    proven = offline(good)
    for at in range(len(good)):
        for flip in (0x01, 0x80, 0xFF):
            bad = good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :]
            found = offline(bad)
            # The cut is what the document's seals do not sign: another hlc beside it, say.
            assert found is None or found == proven, at
            assert (by_ledger(bad) is None) == (found is None), at


@pytest.mark.parametrize("name", BUNDLES)
@given(st.data())
def test_no_change_proves_anything_else(name: str, data: st.DataObject) -> None:
    good = BUNDLES[name]
    at = data.draw(st.integers(0, len(good) - 1))
    put = data.draw(st.binary(max_size=4))
    bad = good[:at] + put + good[at + data.draw(st.integers(0, 4)) :]
    found = agreed(bad)
    assert found is None or found == offline(good)


class Signers:
    """Members that sign as honest ones do: upwards, and never off the branch they began."""

    def __init__(self, ledger: SmallLedger) -> None:
        self.ledger = ledger
        self.tips: dict[tuple[int, Cord], SignedEvent] = {}

    def sign(self, signer: int, close: bytes | None = None) -> bytes:
        for cord, tip in self.ledger.tips.items():
            last = self.tips.get((signer, cord))
            if last is None or last.id in line_down(self.ledger, tip):
                self.tips[signer, cord] = tip
        rows = [tip for (who, _), tip in self.tips.items() if who == signer]
        return self.ledger.sign(signer, *rows, close=close).data


@st.composite
def histories(draw: st.DrawFn) -> tuple[SmallLedger, list[SignedEvent]]:
    """Members write and sign in any order, on branches too; epochs open in between."""
    policy = draw(st.sampled_from(["majority", "two-thirds", "all"]))
    ledger = SmallLedger(draw(st.integers(1, 5)), policy)
    signers = Signers(ledger)
    events: list[SignedEvent] = []
    for _ in range(draw(st.integers(1, 25))):
        step = draw(st.sampled_from(["write", "write", "sign", "sign", "sign", "fork", "epoch"]))
        someone = draw(st.sampled_from(sorted(ledger.epoch.members)))
        if step == "write":
            events.append(ledger.write(someone, ["a", "b"][: draw(st.integers(1, 2))]))
        elif step == "sign":
            signers.sign(someone)
        elif step == "fork" and events:
            below = draw(st.sampled_from(events))
            author = ledger.cord_of(below).author_no
            if author in ledger.epoch.members:
                events.append(ledger.write(author, [f"fork {len(events)}"], prev=below))
        elif step == "epoch" and len(ledger.documents) < 2:
            open_epoch(draw, signers)
    return ledger, events


def open_epoch(draw: st.DrawFn, signers: Signers) -> None:
    ledger = signers.ledger
    members = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5, unique=True))
    tips = [tip for tip in ledger.tips.values() if draw(st.booleans())]
    policy = draw(st.sampled_from(["majority", "two-thirds"]))
    document = ledger.document(sorted(members), policy, tips)
    sealers = draw(st.permutations(sorted(ledger.epoch.members)))
    needed = seals_needed(ledger.epoch.policy, len(sealers))
    close = close_hash(document)
    chosen = sealers[: draw(st.integers(needed, len(sealers)))]
    ledger.open(document, tuple(signers.sign(i, close) for i in chosen))


@settings(max_examples=150)
@given(histories())
def test_what_is_built_is_what_counting_says(drawn: tuple[SmallLedger, list[SignedEvent]]) -> None:
    """A bundle is built wherever one line of one epoch's receipts, or a cut, makes an event
    final; and what is built, all readers take."""
    ledger, events = drawn
    for event in events:
        if (data := built(ledger, event)) is None:
            assert not certified(ledger, event)
            hypothesis.event("not final")
            continue
        found = agreed(data)
        assert found is not None
        assert found.event_id == event.id
        assert found.author.number == ledger.cord_of(event).author_no
        hypothesis.event(f"final by {found.by}")
        if found.by == "receipts":
            assert certified(ledger, event)
            assert found.required == max_confirms(found.policy, len(found.members))


def built(ledger: SmallLedger, event: SignedEvent) -> bytes | None:
    try:
        return build_bundle(ledger, ledger.lineage, event.id, event.header.entry_count - 1)
    except Refused:
        return None


def certified(ledger: SmallLedger, event: SignedEvent) -> bool:
    """The slow way: every receipt, every line above the event, every epoch."""
    author = ledger.cord_of(event).author_no
    for tip in ledger.events.values():
        line = line_down(ledger, tip)
        if event.id not in line:
            continue
        for number in range(event.header.epoch, ledger.epoch.number + 1):
            epoch = ledger.epochs.by_number[EpochNo(number)]
            signers = {
                no
                for no in epoch.members
                for data in ledger.invs.get(no, {}).values()
                if covers(data, number, line[: line.index(event.id) + 1])
            }
            if author in signers and len(signers) > epoch.max_confirms:
                return True
    return False


def line_down(ledger: SmallLedger, tip: SignedEvent) -> list[bytes]:
    line: list[bytes] = [tip.id]
    while (event := ledger.events.get(tip.id)) and event.header.seq > 1:
        tip = ledger.events[ledger.metas[event.id].prev]
        line.append(tip.id)
    return line


def covers(data: bytes, number: int, line: list[bytes]) -> bool:
    inv = decode_inv(data)
    return inv.epoch == number and any(row.id in line for row in inv.rows)
