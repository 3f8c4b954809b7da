"""The bundle: what it proves, or why it does not."""

from collections.abc import Sequence
from dataclasses import dataclass

from quipu.verify.events import (
    Event,
    VerifiedEntry,
    check_path,
    read_entry,
    read_event,
    read_header,
)
from quipu.verify.rosters import CutRow, Epoch, Lineage, Member, read_genesis, read_inv
from quipu.verify.values import (
    BUNDLE_BYTES_MAX,
    CHAIN_MAX,
    DOCUMENTS_MAX,
    MEMBERS_MAX,
    U64,
    array_of,
    bytes_of,
    decoded,
    fail,
    int_of,
    list_of,
    need,
    tagged,
)


@dataclass(frozen=True, slots=True)
class Verified:
    """What the bundle proves."""

    cluster_id: bytes
    cluster_name: str
    event_id: bytes
    index: int
    author: Member
    journal: int
    seq: int
    hlc: int
    event_epoch: int
    entry: VerifiedEntry
    epoch: int  # whose members confirmed
    policy: str
    members: tuple[Member, ...]
    by: str  # "receipts", or "cut": through the seals that ended the epoch
    confirmed_by: tuple[Member, ...]  # by receipts: beside the author, whose own is there too
    required: int  # how many of these would have done
    forced: tuple[int, ...]  # epochs on the way that an operator opened by force


def verify(bundle: bytes, genesis: bytes | None = None) -> Verified:
    """What `bundle` proves, or VerificationFailed.

    `genesis` pins the cluster: its genesis, or the 32 bytes of its cluster id. Without it the
    bundle proves what the members of the cluster that it brings along say, whoever they are.
    """
    fields = array_of(decoded(bundle, BUNDLE_BYTES_MAX, "bundle"), 10, "bundle")
    version, founding, documents, header_bytes, signature, position, *rest = fields
    entry, path, chain, invs = rest
    index = int_of(position, U64, "entry index")
    need(int_of(version, U64, "bundle version") == 1, f"bundle version {version} is unknown")
    cluster_id, name, first = read_genesis(bytes_of(founding, "genesis"))
    if genesis is not None:
        pinned = genesis if len(genesis) == 32 else tagged("genesis", genesis)
        need(cluster_id == pinned, "the bundle is of another cluster")
    lineage = Lineage(cluster_id, first)
    for document in list_of(documents, DOCUMENTS_MAX, "epoch documents"):
        lineage.follow(document)
    event = read_event(bytes_of(header_bytes, "header"), signature, lineage)
    opened = read_entry(bytes_of(entry, "entry"), event)
    check_path(entry, index, path, event)
    line = read_line(list_of(chain, CHAIN_MAX, "chain"), event)
    receipts = list_of(invs, MEMBERS_MAX, "receipts")
    prove = _by_receipts if receipts else _by_cut
    epoch, numbers, required = prove(receipts, line, event, lineage)
    author_no = lineage.number_of[event.author]
    return Verified(
        cluster_id=cluster_id,
        cluster_name=name,
        event_id=event.id,
        index=index,
        author=lineage.epochs[event.epoch].members[author_no],
        journal=event.journal,
        seq=event.seq,
        hlc=event.hlc,
        event_epoch=event.epoch,
        entry=opened,
        epoch=epoch.number,
        policy=epoch.policy,
        members=tuple(epoch.members.values()),
        by="receipts" if receipts else "cut",
        confirmed_by=tuple(epoch.members[number] for number in numbers),
        required=required,
        forced=tuple(lineage.forced),
    )


Proven = tuple[Epoch, tuple[int, ...], int]  # whose epoch, who confirmed, how many would do


def read_line(chain: Sequence[object], event: Event) -> list[bytes]:
    """The ids of the cord from the event upwards."""
    ids = [event.id]
    for item in chain:
        above = read_header(bytes_of(item, "header"))
        place = (above.cluster_id, above.author, above.journal, above.seq, above.prev)
        wanted = (event.cluster_id, event.author, event.journal, event.seq + len(ids), ids[-1])
        need(place == wanted, "the headers are no chain")
        ids.append(above.id)
    return ids


def _highest(rows: list[CutRow], line: list[bytes], event: Event, author_no: int) -> int:
    """The highest place on the line that one of the rows names; -1: none does."""
    places = [
        seq - event.seq
        for number, journal, seq, identity in rows
        if (number, journal) == (author_no, event.journal)
        and 0 <= seq - event.seq < len(line)
        and line[seq - event.seq] == identity
    ]
    return max(places, default=-1)


def _by_receipts(
    receipts: list[object], line: list[bytes], event: Event, lineage: Lineage
) -> Proven:
    epoch, author_no = lineage.newest, lineage.number_of[event.author]
    signers: list[int] = []
    highest = 0
    for item in receipts:
        inv = read_inv(item, lineage.cluster_id, epoch)
        place = _highest(inv.rows, line, event, author_no)
        need(place >= 0, "a receipt does not cover the event")
        need(not signers or inv.number > signers[-1], "receipts are not sorted, one a member")
        signers.append(inv.number)
        highest = max(highest, place)
    need(highest == len(line) - 1, "headers above the highest row")
    own = event.author in epoch.numbers and author_no in signers
    need(own, "the author's own receipt is missing")
    others = tuple(number for number in signers if number != author_no)
    need(len(others) >= epoch.confirms, f"{len(others)} receipts, {epoch.confirms} needed")
    return epoch, others, epoch.confirms


def _by_cut(_: list[object], line: list[bytes], event: Event, lineage: Lineage) -> Proven:
    """By a row of the last document's cut. No seal signs the cut, so the row must be one that
    these seals allow: with who did not seal, and the liars the policy bears, a certificate was
    possible."""
    epoch = lineage.epochs.get(lineage.newest.number - 1)
    if epoch is None or event.epoch > epoch.number:
        fail("neither receipts nor a cut above the event")
    author_no = lineage.number_of[event.author]
    cut = _highest(lineage.cut, line, event, author_no)
    need(cut >= 0, "no row of the cut covers the event")
    places = {
        number: _highest(seal.rows, line, event, author_no)
        for number, seal in sorted(lineage.seals.items())
    }
    covering = tuple(number for number, place in places.items() if place >= cut)
    n = len(epoch.members)
    liars = (n - 1) // 3 if epoch.policy == "two-thirds" else 0
    required = max(1, epoch.confirms + 1 - (n - len(lineage.seals)) - liars)
    need(len(covering) >= required, f"{len(covering)} seals cover the cut, {required} needed")
    highest = max([cut, *(places[number] for number in covering)])
    need(highest == len(line) - 1, "headers above the highest row")
    return epoch, covering, required
