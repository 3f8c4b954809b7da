"""What healing must bring about, without any new write: the liveness half of the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quipu.ledger import limits
from quipu.ledger.event import has_valid_signature
from quipu.ledger.words import HLC_SHIFT, EventId
from tests.simulation.clock import US_PER_S
from tests.simulation.record import CordKey, KnownEvent, Record
from tests.simulation.violation import Property, Violation

if TYPE_CHECKING:
    from tests.simulation.node import SimNode
    from tests.simulation.world import World

Findings = list[tuple[Property, str]]
DUE_SLACK_MS = 2_000
BYTES_PER_S = 5_000_000
ROUND_TRIP_US = 20_000
MIB = 1 << 20
QUIET_AFTER_MS = 10_000  # what nobody has was asked of everybody by then
QUIET_PERIODS = 2
REQUESTS_MAX = 2  # a peer and period
IDLE_BYTES_MAX = 512  # a peer and period
GET_DATA = 3  # tag of the message


def transfer_us(world: World) -> int:
    """What the worst-off node lacks, at 5 MB/s and one round trip a MiB."""
    everywhere: dict[EventId, None] = {}
    for node in world.honest():
        everywhere.update(node.shadow.held)
    sizes = {i: world.record.events[i].event.size for i in everywhere}
    total = sum(sizes.values())
    missing = max(
        (total - sum(sizes[i] for i in node.shadow.held) for node in world.honest()), default=0
    )
    return missing * US_PER_S // BYTES_PER_S + (missing // MIB + 1) * ROUND_TRIP_US


class Lawful:
    """Why an event of an honest author may stay Unread after healing; empty: it may not."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._record: Record = world.record
        self._reasons: dict[EventId, str] = {}
        roster = world.record.newest
        self._honest = {node.key.node_id for node in world.nodes if node.honest}
        self._signers = {
            world.record.numbers[node.key.node_id]: node
            for node in world.honest()
            if node.up and node.key.node_id in roster.members.values() and self._can_sign(node)
        }
        walls = sorted(
            node.clock.wall_ms(world.scheduler.now_us)
            for node in world.nodes
            if node.up and node.key.node_id in roster.members.values()
        )
        self._cluster_ms = walls[(len(walls) - 1) // 2] if walls else 0
        self._journals = self._journals_open()
        self._of_living_disks = record_of(world, world.honest())

    def _can_sign(self, node: SimNode) -> bool:
        if not node.disk.is_recovering:
            return True
        others = [
            other
            for other in self._world.honest()
            if other is not node and other.up and not other.disk.is_recovering
        ]
        return len(others) >= self._record.newest.witnesses

    def _journals_open(self) -> dict[int, int]:
        cut = self._record.newest.cut
        cords: dict[CordKey, None] = {}
        for known in self._record.events.values():
            if known.id not in cut:
                cords[known.cord] = None
        counts: dict[int, int] = {}
        for author_no, _ in cords:
            counts[author_no] = counts.get(author_no, 0) + 1
        return counts

    def reason(self, identity: EventId) -> str:
        waiting = [identity]
        while waiting:
            current = waiting[-1]
            if current in self._reasons:
                waiting.pop()
                continue
            known = self._record.events.get(current)
            if known is None:
                self._reasons[current] = "unknown ancestor"
                continue
            open_ones = [a for a in known.ancestors if a not in self._reasons]
            if open_ones:
                waiting.extend(open_ones)
                continue
            own = self._own_reason(known)
            above = next((r for r in (self._reasons[a] for a in known.ancestors) if r), "")
            self._reasons[current] = own or (f"ancestor: {above}" if above else "")
        return self._reasons[identity]

    def _own_reason(self, known: KnownEvent) -> str:
        roster = self._record.newest
        if known.event.header.author not in self._honest:
            return "its author lies"  # what one of the others could certify, all must: see models
        usable = self._of_living_disks.events.get(known.id)
        if usable and self._of_living_disks.certificate(usable, roster.number) is not None:
            return ""
        if known.event.header.hlc >> HLC_SHIFT > self._cluster_ms + DUE_SLACK_MS:
            return "not due"
        if known.author_no not in roster.members:
            return "its author left"
        if known.author_no not in self._signers:
            return "its author is dead or recovers"
        able = [number for number, node in self._signers.items() if not _is_bound(node, known)]
        if len(able) - 1 < roster.confirms:
            return "too few members to confirm"
        if self._journals.get(known.author_no, 0) > limits.JOURNALS_SIGNED_MAX:
            return "journals"
        return ""


def _is_bound(node: SimNode, known: KnownEvent) -> bool:
    """A signer that lost its disk once signed an event of this cord that nobody has any more: it
    cannot know whether what is left lies below that one. The next cut decides (DESIGN 7)."""
    signer = node.world.judge.signers.by_key[node.key.node_id]
    if not signer.disk_lost or known.event.header.author == node.key.node_id:
        return False
    return any(
        slot[:2] == known.cord and identity not in node.shadow.held
        for slot, identity in signer.acknowledged.items()
    )


def record_of(world: World, nodes: list[SimNode]) -> Record:
    """What follows from the disks of these nodes alone."""
    record = Record(world.genesis, world.verify)
    record.rosters, record.numbers = world.record.rosters, world.record.numbers
    for node in nodes:
        for identity in node.shadow.held:
            record.add_event(world.record.events[identity].event, 0)
        for inv_id in node.shadow.invs.values():
            record.add_inv(world.record.invs[inv_id].data)
    return record


@dataclass(slots=True)
class Convergence:
    """Compares all honest nodes; every check answers what differs now."""

    world: World
    strict_losses: bool = True  # not more disks were lost than the policy bears

    def differences(self) -> Findings:
        nodes = self.world.honest()
        for check in (
            self._epochs, self._models, self._rows, self._proofs, self._unread, self._stored,
            self._answered, self._signatures,
        ):  # fmt: skip
            found = check(nodes)
            if found:
                return found
        return []

    def final(self) -> None:
        """What needs to be looked at once, at the end."""
        for node in self.world.honest():
            self._certificates(node)

    def _epochs(self, nodes: list[SimNode]) -> Findings:
        newest = self.world.record.newest.number
        return [
            (Property.EPOCHS_EQUAL, f"{node} is in epoch {node.shadow.epoch} of {newest}")
            for node in nodes
            if node.shadow.epoch != newest
        ]

    def _models(self, nodes: list[SimNode]) -> Findings:
        record = self.world.record
        everywhere: dict[EventId, None] = {}
        for node in nodes:
            everywhere.update(node.shadow.read)
        if self.strict_losses:
            everywhere.update((identity, None) for identity in self.world.history.read_us)
        found: Findings = []
        for node in nodes:
            lacks = [i for i in everywhere if i not in node.shadow.read]
            if lacks:
                known = record.events[lacks[0]]
                held = sum(i in node.shadow.held for i in lacks)
                detail = f"{node} lacks {len(lacks)} Read events ({held} of them held)"
                found.append((Property.MODELS_EQUAL, f"{detail}, first {known.slot}"))
            cut = [i for i in record.newest.cut if i not in node.shadow.read]
            if cut:
                found.append((Property.CUT_READ, f"{node} lacks {len(cut)} events of the cut"))
        return found

    def _honest_rows(self, node: SimNode) -> dict[CordKey, tuple[int, bytes, int]]:
        record = self.world.record
        honest = {record.numbers[k] for k in self.world.judge.signers.by_key if k in record.numbers}
        return {
            (key.author_no, key.journal): (branch.held_seq, branch.held_id, branch.read_seq)
            for key, branch in node.shadow.branches.items()
            if key.author_no in honest
        }

    def _rows(self, nodes: list[SimNode]) -> Findings:
        """Rows of authors who left may differ above their cut: nobody asks for what is void."""
        members = self.world.record.newest.members
        tables = [self._honest_rows(node) for node in nodes]
        found: Findings = []
        for node, table in zip(nodes[1:], tables[1:], strict=True):
            for cord in sorted({*table, *tables[0]}):
                if cord[0] in members and table.get(cord) != tables[0].get(cord):
                    detail = f"{nodes[0]} and {node} differ in {cord}: "
                    detail += f"{_row(tables[0].get(cord))} and {_row(table.get(cord))}"
                    found.append((Property.ROWS_EQUAL, detail))
        return found

    def _proofs(self, nodes: list[SimNode]) -> Findings:
        tables = [node.disk.proofs for node in nodes]
        return [
            (Property.PROOFS_EQUAL, f"{nodes[0]} has {len(tables[0])}, {node} has {len(table)}")
            for node, table in zip(nodes[1:], tables[1:], strict=True)
            if table != tables[0]
        ]

    def _unread(self, nodes: list[SimNode]) -> Findings:
        if all(len(node.shadow.held) == len(node.shadow.read) for node in nodes):
            return []
        lawful = Lawful(self.world)
        found: Findings = []
        for node in nodes:
            for identity in node.shadow.held:
                if identity not in node.shadow.read and not lawful.reason(identity):
                    known = self.world.record.events[identity]
                    signers = {e: sorted(s) for e, s in known.covers.items()}
                    detail = f"{known.slot} stays Unread at {node}; receipts {signers}"
                    found.append((Property.UNREAD_EMPTY, detail))
        return found

    def _stored(self, nodes: list[SimNode]) -> Findings:
        """What an app was told is stored, is held everywhere, unless that disk was lost."""
        found: Findings = []
        members = self.world.record.newest.members.values()
        for submission in self.world.history.submissions.values():
            author = submission.node
            if submission.stored is None or author.lineage != submission.lineage:
                continue
            if author.index in self.world.dead or author.key.node_id not in members:
                continue
            for node in nodes:
                if submission.stored not in node.shadow.held:
                    detail = f"{node} lacks ticket {submission.ticket}, stored at {author}"
                    found.append((Property.STORED_KEPT, detail))
        return found

    def _answered(self, nodes: list[SimNode]) -> Findings:
        return [
            (Property.ANSWERED, f"{s.node} never answers ticket {s.ticket}")
            for s in self.world.history.submissions.values()
            if s.stored is None and s.refused is None and s.boot == s.node.boot and s.node in nodes
        ]

    def _signatures(self, nodes: list[SimNode]) -> Findings:
        """Of events of honest authors; a liar may never have signed what it wrote."""
        honest = self.world.judge.signers.by_key
        found: Findings = []
        for node in nodes:
            for identity in node.shadow.held:
                event = node.disk.history.event(identity)
                if event is None or event.header.author not in honest:
                    continue
                if not has_valid_signature(event, self.world.verify):
                    slot = self.world.record.events[identity].slot
                    found.append((Property.SIGNATURES_GOOD, f"{node} holds {slot} without one"))
        return found

    def _certificates(self, node: SimNode) -> None:
        """From the receipts on this disk alone, each Read event outside of cuts is proven."""
        record = record_of(self.world, [node])
        cut = record.rosters[node.shadow.epoch].cut
        for identity in node.shadow.read:
            known = record.events[identity]
            if identity not in cut and record.certificate(known, node.shadow.epoch) is None:
                detail = f"{node} cannot prove {known.slot} from the receipts that it keeps"
                raise Violation(Property.PROOF_KEPT, detail, self.world.scheduler.now_us)


def quiet(world: World) -> None:
    """With nothing left to do, little is said: this runs the world for some sync periods."""
    world.run_ms(QUIET_AFTER_MS)
    world.network.by_sender.clear()
    world.run_ms(QUIET_PERIODS * limits.SYNC_INTERVAL_MS)
    nodes = world.honest()
    idle = len(nodes) == len(world.nodes) and all(
        len(node.shadow.held) == len(node.shadow.read) for node in nodes
    )
    for node in nodes:
        sent = world.network.by_sender.get(node.index)
        peers = sum(1 for _ in world.neighbours(node))
        if sent is None or not peers:
            continue
        asked = sent.messages.get(GET_DATA, 0)
        if asked > peers * QUIET_PERIODS * REQUESTS_MAX:
            raise Violation(Property.QUIET, f"{node} still asks: {asked} requests in 4 s")
        each = sent.total_bytes // (peers * QUIET_PERIODS)
        if idle and each > IDLE_BYTES_MAX:
            raise Violation(Property.QUIET, f"{node} says {each} bytes a peer and period")


def _row(row: tuple[int, bytes, int] | None) -> str:
    return f"{row[0]}={row[1].hex()[:6]} read {row[2]}" if row else "nothing"
