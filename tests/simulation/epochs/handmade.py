"""Worlds made by hand, for troubles that chance seldom makes.

Each runs to its end where all safeguards are on, and shows a violation where its own is out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quipu.ledger.inv import build_inv
from quipu.ledger.log.serializers import Stage
from quipu.ledger.messages import Answer, EventMessage, decode_message
from quipu.ledger.order.changes import Open, read_change
from quipu.ledger.order.cut import CutTerms, compute_cut
from quipu.ledger.order.registrar import ProposeItem, RosterOrder
from quipu.ledger.order.safeguards import ALL, RosterSafeguards
from quipu.ledger.words import Cord, EventId, InvNumber, Journal, NodeNo, Seq
from tests.simulation.calm import START_MS, all_read, until, write
from tests.simulation.clock import START_WALL_MS
from tests.simulation.epochs.liars import CutLiar
from tests.simulation.epochs.node import EpochNode
from tests.simulation.epochs.slow_cut import SlowCut
from tests.simulation.epochs.world import LOG_HEAD, EpochWorld, candidates_of
from tests.simulation.node import SimNode
from tests.simulation.violation import Property, Violation

ELECTION_MS = 8_000
OPEN_MS = 12_000
STALE_MS = 62_000
LYING_MS = 8_000
FETCH_MS = 7_000
LOST_MS = 1_000


def started(
    guards: RosterSafeguards, kinds: Sequence[type[EpochNode]], seed: str = "by hand"
) -> EpochWorld:
    world = EpochWorld(seed, len(kinds), "majority", guards)
    world.add_founders(list(kinds))
    for node in world.nodes:
        node.start()
    world.run_ms(START_MS)
    until(world, lambda: world.master() is not None, ELECTION_MS)
    return world


def make_master(world: EpochWorld, wanted: EpochNode) -> None:
    """Others that are elected lose their power, until it is this one."""
    while world.master() is not wanted:
        master = world.master()
        if master is not None:
            master.crash()
            world.run_ms(2_500)
            master.start()
        world.run_ms(500)
    until(world, lambda: wanted.circumstances().is_master, ELECTION_MS)


def wish(world: EpochWorld, members: Sequence[EpochNode]) -> None:
    master = world.master()
    assert master is not None
    master.wish(candidates_of(members), "majority")


# --- a master that lies -------------------------------------------------------------------------
def a_master_lies_about_the_cut(guards: RosterSafeguards = ALL) -> EpochWorld:
    """It leaves a row out of the cut; nobody accepts that entry while it is master."""
    world = started(guards, [EpochNode, EpochNode, CutLiar])
    liar = world.members()[2]
    for node in world.nodes:
        write(world, node, 3)
    make_master(world, liar)
    wish(world, world.members())
    world.run_ms(LYING_MS)
    return world


# --- a row that does not resolve ----------------------------------------------------------------
def a_seal_names_what_the_master_lacks(guards: RosterSafeguards = ALL) -> EpochWorld:
    """n3's event is Read at n2 and n3; n3 dies, and the way from n2 to n1 loses events alone. n1
    restarts after it has written OPEN: n2 takes from a later regime what it did not accept."""
    world = started(guards, [EpochNode] * 3, "lacking")
    n1, n2, n3 = world.members()
    make_master(world, n1)
    world.drops = lambda sender, receiver, data: (
        receiver == n1.key.node_id and sender is not n1 and _carries_events(data)
    )
    made = world.workload.submit(n3, 1)
    until(world, lambda: made.stored in n2.shadow.read, 3_000)
    assert made.stored not in n1.shadow.held
    n3.crash()
    world.dead[n3.index] = None
    world.run_ms(500)
    make_master(world, n1)
    wish(world, [n1, n2])
    world.run_ms(FETCH_MS)
    n1.crash()
    n1.start()
    world.run_ms(FETCH_MS)
    world.drops = lambda sender, receiver, data: False
    until(world, lambda: world.record.newest.number == 2, OPEN_MS)
    assert made.stored in world.record.newest.cut
    return world


def _carries_events(data: bytes) -> bool:
    if data.startswith(LOG_HEAD):
        return False
    message = decode_message(data)
    return isinstance(message, EventMessage) or (
        isinstance(message, Answer) and bool(message.events)
    )


# --- an OPEN that comes late --------------------------------------------------------------------
class LateOpener(EpochNode):
    """Its OPENs lie somewhere on their way, until they are let go."""

    held: list[ProposeItem]

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.held, self.holds_back = [], True

    def _carry_out(self, order: RosterOrder) -> None:
        item = read_change(order.item) if isinstance(order, ProposeItem) else None
        if self.holds_back and isinstance(order, ProposeItem) and isinstance(item, Open):
            self.held.append(order)
            return
        super()._carry_out(order)

    def let_go(self) -> None:
        self.holds_back = False
        for order in self.held:
            super()._carry_out(order)


def an_open_of_an_older_attempt(guards: RosterSafeguards = ALL) -> EpochWorld:
    """A CLOSE without three of its members is replaced by one with all of them; then its OPEN
    comes after all."""
    world = started(guards, [LateOpener] * 3, "late")
    nodes = world.members()
    for node in nodes:
        write(world, node, 2)
    wish(world, nodes[:2])
    until(world, lambda: any(_held(node) for node in nodes), OPEN_MS)
    world.run_ms(STALE_MS)
    wish(world, nodes)
    until(world, lambda: all(_attempt(node) == 2 for node in nodes), OPEN_MS)
    for node in nodes:
        if isinstance(node, LateOpener):
            node.let_go()
    until(world, lambda: world.record.newest.number == 2, OPEN_MS)
    return world


def _held(node: SimNode) -> bool:
    return isinstance(node, LateOpener) and bool(node.held)


def _attempt(node: EpochNode) -> int:
    pending = node.book.state.pending
    return 0 if pending is None else pending.document.attempt


# --- seals made by hand -------------------------------------------------------------------------
def seals_without_a_parent(guards: RosterSafeguards = ALL) -> EpochWorld:
    """All seals name a child and none its parent, whatever made their signers do so."""
    world, parent, child = _parent_and_child(guards)
    assert parent in world.record.events[child].ancestors
    _compare(world, child, START_WALL_MS + world.scheduler.now_ms + 4_000)
    return world


def seals_of_what_comes_after_due(guards: RosterSafeguards = ALL) -> EpochWorld:
    """All seals name an event that is later than `due`."""
    world, parent, _ = _parent_and_child(guards)
    _compare(world, parent, START_WALL_MS)
    return world


def _parent_and_child(guards: RosterSafeguards) -> tuple[EpochWorld, EventId, EventId]:
    world = started(guards, [EpochNode] * 3, "sealed by hand")
    ids: list[EventId] = []
    for node in world.nodes[:2]:
        (made,) = write(world, node)
        until(world, lambda made=made: all_read([made], world.nodes), 3_000)  # type: ignore[misc]
        assert made.stored is not None
        ids.append(made.stored)
    return world, ids[0], ids[1]


def _compare(world: EpochWorld, named: EventId, due_ms: int) -> None:
    """The cut of seals that name this event, against the slow twin's."""
    core, record = world.nodes[0].core, world.record
    assert core is not None
    slot = record.events[named].slot
    row = (Cord(NodeNo(slot[0]), Journal(slot[1])), Seq(slot[2]), named)
    epoch = core.epochs.newest
    seals = {
        NodeNo(number): build_inv(
            node.key, record.cluster_id, epoch.number, InvNumber(1), [row], bytes(32)
        )
        for number, node in enumerate(world.nodes, start=1)
        if number != slot[0]  # with the author's they would be a certificate
    }
    cut = compute_cut(CutTerms(epoch, seals, due_ms), core.known, world.roster_guards)
    slow = SlowCut(record, record.newest, list(seals.values()), [], due_ms, {})
    rows = [(row.author_no, row.journal, row.seq, row.id) for row in cut.rows]
    if rows != slow.rows():
        raise Violation(Property.CUT_EQUAL, f"{rows}, not {slow.rows()}")


WORLDS: dict[str, Callable[[RosterSafeguards], EpochWorld]] = {
    "a_master_lies_about_the_cut": a_master_lies_about_the_cut,
    "a_seal_names_what_the_master_lacks": a_seal_names_what_the_master_lacks,
    "an_open_of_an_older_attempt": an_open_of_an_older_attempt,
    "seals_without_a_parent": seals_without_a_parent,
    "seals_of_what_comes_after_due": seals_of_what_comes_after_due,
}


# --- a voter that leaves ------------------------------------------------------------------------
def the_last_word_of_a_leaver_is_late(guards: RosterSafeguards = ALL) -> EpochWorld:
    """Confirm needs the word of n2, which leaves with it; it is lost for longer than the registrar
    takes to look again."""
    world = started(guards, [EpochNode] * 2, "leaving")
    n1, n2 = world.members()
    make_master(world, n1)
    wish(world, [n1])

    def confirms() -> bool:
        assert n1.machine is not None
        state = n1.machine.state
        change = state.log.newest_change
        return change is not None and change.stage is Stage.CONFIRM and change.index > state.chosen

    world.drops = lambda sender, receiver, data: (
        sender is n2 and data.startswith(LOG_HEAD) and confirms()
    )
    until(world, confirms, OPEN_MS)
    world.run_ms(LOST_MS)
    assert confirms()
    world.drops = lambda sender, receiver, data: False
    until(world, lambda: not confirms(), ELECTION_MS)
    made = world.workload.submit(n1, 1)
    until(world, lambda: made.stored in n1.shadow.read, OPEN_MS)
    return world
