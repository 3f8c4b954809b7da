"""One node from start to stop: directory, store, loop, faces, signals, drain.

The faces (HTTP and health) are given by who composes the program: this layer knows none.
"""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from quipu.ledger.signing import Verifier
from quipu.ledger.words import NOT_A_MEMBER, NodeId, NodeNo
from quipu.node import damage, limits, notify
from quipu.node.administration import HOUR_S, Administration
from quipu.node.clock import clock, wall_ms
from quipu.node.consumers import KeptConsumers
from quipu.node.data_directory import (
    PEERS_FILE,
    DataDirectory,
    open_directory,
)
from quipu.node.eraser import Eraser
from quipu.node.execution import Execution, OpenExecutor
from quipu.node.exits import BadSetting, CannotStart, DirectoryTaken, Exit, StoreUnusable
from quipu.node.failpoints import passing
from quipu.node.founding import (
    CLUSTER_KEY_FILE,
    RANDOM_BYTES,
    Asking,
    FirstStart,
    Founding,
    Joining,
    parse_founder,
    read_cluster_secrets,
)
from quipu.node.guest import guest_of
from quipu.node.inbox import Inbox
from quipu.node.invitation import read_invitation
from quipu.node.joining import check_advertised, join_network
from quipu.node.key_list import KeyRow, key_rows
from quipu.node.logs import Log
from quipu.node.machine import Machine, OpenStore, Surroundings
from quipu.node.measures import Measures
from quipu.node.network import Network
from quipu.node.news import Newsroom
from quipu.node.operations import Operations
from quipu.node.order_service import OrderUnknown
from quipu.node.pruner import Pruner
from quipu.node.pruning import retention_of
from quipu.node.questions import Answers
from quipu.node.running import RunningLedger
from quipu.node.service import Draining, PeerMoved
from quipu.node.settings import Settings
from quipu.node.soundness import Soundness
from quipu.node.turns import Outlets, Turns
from quipu.node.writer import InlineWriter, ThreadWriter, Writer
from quipu.p2p.addresses import SCHEME
from quipu.p2p.effects import StateChanged
from quipu.storage.environment import StoreDamaged, StoreLocked, has_room
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.lmdb_store import open_store
from quipu.storage.ownership import FormatTooNew, FormatTooOld, StoreForeign
from quipu.storage.store import Owner, Store, StoreCorrupt, StoreError, StoreFull

ENTROPY_BITS = 64


class Faces(Protocol):
    """What listens: started with the ledger, stopped before it."""

    def reload(self) -> list[str]:
        """Reads tokens and certificate again; says what could not be read."""

    async def stop(self, grace_s: float) -> None:
        """No new connection; streams are said goodbye to; what is under way is finished."""


def first_start(settings: Settings) -> FirstStart:
    """What a directory without a node becomes. Raises `CannotStart`."""
    given, random = settings.node, secrets.token_bytes(RANDOM_BYTES)
    if given.join is not None:
        if given.join.startswith(SCHEME):
            return Asking(guest_of(settings), random)
        return Joining(read_invitation(Path(given.join)), random)
    return Founding(
        given.name,
        given.cluster_name,
        clock().wall_ms,
        random,
        given.streams_erasable,
        given.policy,
        tuple(map(parse_founder, given.founders)),
    )


@dataclass(slots=True)
class Node:
    """An open node: the ledger it offers, and how to end it."""

    settings: Settings
    directory: DataDirectory
    ledger: RunningLedger
    administration: Administration
    log: Log
    stopping: asyncio.Event
    failure: str = ""

    def ask_stop(self, why: str) -> None:
        if not self.stopping.is_set():
            self.log.info("stopping", reason=why)
            self.stopping.set()

    def read_secrets(self) -> list[str]:
        """The cluster's secrets again, for links that are made from now on; says what is wrong."""
        try:
            found = read_cluster_secrets(self.directory.path / CLUSTER_KEY_FILE)
        except (CannotStart, OSError) as error:
            return [f"{CLUSTER_KEY_FILE}: {error}"]
        self.directory.cluster_secrets = found
        self.ledger.network.secrets_changed(found)
        return []

    def give_up(self, why: str) -> None:
        self.failure = why
        self.stopping.set()

    async def drain(self) -> None:
        """Takes nothing more; what was taken is committed, receipts for it too."""
        ledger = self.ledger
        ledger.inbox.is_draining = True
        passing("drain.begun")
        ledger.end_waiting("draining")
        await self.administration.close()
        try:
            async with asyncio.timeout(limits.DRAIN_S):
                await ledger.turns.idle()
        except TimeoutError:
            waiting = len(ledger.inbox.pending)
            self.log.warning("not everything was finished in time", waiting=waiting)
            ledger.inbox.fail_all(Draining("the node stopped before this was stored"))
        await ledger.comparing.stop()
        await ledger.execution.stop()

    def close(self) -> None:
        self.ledger.turns.stop()
        self.ledger.writer.stop()
        self.ledger.machine.close()
        self.directory.close()


def open_data(settings: Settings) -> DataDirectory:
    """Made where it is not there yet. Raises `CannotStart`."""
    return open_directory(settings.node.data_dir, first_start(settings))


def open_node(
    settings: Settings, log: Log, loop: asyncio.AbstractEventLoop, *, is_process: bool = False
) -> Node:
    """Raises `CannotStart`."""
    check_advertised(settings)
    directory = open_data(settings)
    measures = Measures()
    try:
        machine = _open_machine(directory, measures.verify, log, is_process)
        try:
            _check_erasable(settings, machine)
        except BaseException:
            machine.close()
            raise
    except BaseException:
        directory.close()
        raise
    passing("start.store")
    writer: Writer = ThreadWriter(loop) if settings.store.writer == "thread" else InlineWriter(loop)
    inbox = Inbox()
    turns = Turns(machine, writer, inbox, Outlets(), measures, log)
    network = Network(inbox, clock, log, directory.path / PEERS_FILE)
    ledger = RunningLedger(
        settings.node.name,
        machine,
        inbox,
        turns,
        writer,
        Newsroom(),
        measures,
        Soundness.of(directory.path, wall_ms),
        time.monotonic,
        network,
        _consumers(directory, log),
        Execution(machine, _executor_opener(settings, machine), settings.executor_dir, log),
    )
    administration = _administration(settings, directory, ledger, log)
    node = Node(settings, directory, ledger, administration, log, asyncio.Event())
    _connect(node)
    turns.wake()
    return node


def _executor_opener(settings: Settings, machine: Machine) -> OpenExecutor | None:
    if settings.executor.engine == "off":
        return None
    cluster_id = machine.surroundings.owner.cluster_id
    adopt = settings.executor.adopt
    return partial(SqliteExecutor, settings.executor_dir, cluster_id, adopt=adopt)


def _consumers(directory: DataDirectory, log: Log) -> KeptConsumers:
    found = KeptConsumers.of(directory.path, wall_ms)
    if found.unreadable:
        log.error("consumers that cannot be read are left alone", files=found.unreadable)
    return found


def _administration(
    settings: Settings, directory: DataDirectory, ledger: RunningLedger, log: Log
) -> Administration:
    def keys() -> list[KeyRow]:
        return key_rows(settings, directory, ledger.endpoint)

    def forget_dead_readers() -> None:
        ledger.machine.store.forget_dead_readers()  # the store may be another by then

    operations, kept = Operations(wall_ms, log), settings.store
    pruner = Pruner(
        directory.path,
        ledger,
        operations,
        log,
        retention_of(kept),
        kept.prune_archived_only,
        wall_ms,
    )
    return Administration(
        directory.path,
        keys,
        directory.key.sign,
        lambda: None,
        forget_dead_readers,
        operations,
        ledger.soundness,
        log,
        pruner=pruner,
        executor_dir=settings.executor_dir,
        eraser=Eraser(ledger, log),
    )


def _connect(node: Node) -> None:
    """Who hears of what: the parts themselves do not know each other."""
    ledger, network = node.ledger, node.ledger.network

    def is_backlogged() -> bool:
        return ledger.machine.core.author.is_backlogged()  # the core may be another by then

    def signed_at_ms(now_ms: int) -> int:
        return ledger.machine.core.signed_at_ms(now_ms)

    def count_overload() -> None:
        ledger.measures.overloaded += 1

    ledger.inbox.wake, ledger.inbox.wake_later = ledger.turns.wake, ledger.turns.wake_later
    ledger.inbox.may_wait, ledger.inbox.is_awaited = ledger.may_wait, ledger.is_awaited
    ledger.inbox.signed_at_ms = signed_at_ms
    ledger.inbox.is_backlogged = is_backlogged
    ledger.inbox.takes_entries = ledger.order.config.takes_entries
    ledger.inbox.refused = count_overload
    node.administration.drain = lambda: node.ask_stop("asked to drain")

    def peer_moved(change: StateChanged) -> None:
        ledger.tell([PeerMoved(change.peer, change.before, change.after, change.why)])

    def number_of(peer: NodeId) -> NodeNo:
        return ledger.machine.view.epochs.node_numbers.get(peer, NOT_A_MEMBER)

    network.tell = peer_moved
    network.number_of = number_of
    network.answer = Answers(ledger, clock, ledger.catching_up.chunk).answer
    ledger.machine.ordering.is_awaited = ledger.order.is_awaited
    ledger.order.is_live = ledger.is_live
    ledger.turns.outlets = _outlets(node)
    ledger.execution.start()
    ledger.comparing.start()


def _outlets(node: Node) -> Outlets:
    ledger, network, path = node.ledger, node.ledger.network, node.directory.store_path

    def store_has_room() -> bool:
        return has_room(path, limits.FULL_PROBE_BYTES)

    def epoch_opened() -> None:
        network.roster_changed(tuple(ledger.machine.view.epoch.members.values()))
        ledger.machine.roster_changed()
        ledger.roster.epoch_opened()

    def core_rebuilt() -> None:
        network.core_rebuilt()
        ledger.order.core_rebuilt()
        ledger.roster.fail_all(OrderUnknown("the node had to begin anew from its disk"))
        ledger.execution.pump()

    return Outlets(
        network.send,
        network.send_log,
        network.send_soon,
        network.flush,
        ledger.tell,
        ledger.hear_order,
        epoch_opened,
        core_rebuilt,
        store_has_room,
        node.give_up,
    )


def open_store_of(directory: DataDirectory) -> Store:
    """Raises `CannotStart`."""
    with _explained():
        store = _opener(directory)(Owner(directory.cluster_id, directory.key.node_id))
    directory.store_made()
    return store


def _open_machine(
    directory: DataDirectory, verify: Verifier, log: Log, is_process: bool
) -> Machine:
    surroundings = Surroundings(
        directory.key,
        directory.genesis,
        _opener(directory, notes_crashes=is_process),
        clock,
        lambda: secrets.randbits(ENTROPY_BITS),
        verify,
    )
    with _explained():
        try:
            machine = Machine.open(surroundings)
        except (StoreDamaged, StoreCorrupt) as error:
            if not damage.has_others(directory):
                raise
            damage.put_aside(directory, log, error)
            machine = Machine.open(surroundings)
    directory.store_made()
    return machine


def _check_erasable(settings: Settings, machine: Machine) -> None:
    """Entries without a salt in a stream that somebody believes erasable would stay guessable."""
    wanted, declared = settings.node.streams_erasable, machine.view.epoch.streams_erasable
    if wanted and set(wanted) != declared:
        found = ", ".join(sorted(declared)) or "none"
        raise BadSetting(
            f"node.streams_erasable differs from what the cluster declares ({found})",
            "They are declared when a cluster is made: leave the setting out, or make a new one.",
        )


def _opener(directory: DataDirectory, notes_crashes: bool = False) -> OpenStore:
    has_signed = not directory.is_unsigned

    def opened(owner: Owner) -> Store:
        """Where it is made new for a key that has signed, nobody knows what."""
        path = directory.store_path
        return open_store(path, owner, recovering=has_signed, notes_crashes=notes_crashes)

    return opened


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except StoreForeign as error:
        raise DirectoryTaken(
            str(error), "Put back the store that belongs to these keys."
        ) from error
    except StoreLocked as error:
        raise DirectoryTaken(str(error), "End that process, or name another --data-dir.") from error
    except (FormatTooNew, FormatTooOld) as error:
        raise StoreUnusable(
            str(error), "Start the program that wrote it: a newer or an older version of this one."
        ) from error
    except (StoreDamaged, StoreCorrupt) as error:
        raise damage.refused(error) from error
    except StoreFull as error:
        raise StoreUnusable(
            f"no room on the disk: {error}", "Make room and start again."
        ) from error
    except StoreError as error:
        raise StoreUnusable(str(error), "The log of the system may say more.") from error


@asynccontextmanager
async def opened(settings: Settings, log: Log) -> AsyncIterator[Node]:
    """A node without faces, as tests and tools use it."""
    node = open_node(settings, log, asyncio.get_running_loop())
    try:
        yield node
    finally:
        await node.drain()
        node.close()


StartFaces = Callable[[Node], Awaitable[Faces]]


async def run(settings: Settings, log: Log, start_faces: StartFaces) -> Exit:
    """Until SIGTERM or SIGINT. Raises `CannotStart`."""
    loop = asyncio.get_running_loop()
    node = open_node(settings, log, loop, is_process=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, node.ask_stop, signal.Signals(number).name)
    loop.add_signal_handler(signal.SIGHUP, _reload, node)
    faces: Faces | None = None
    try:
        node.ledger.endpoint = join_network(
            settings, node.directory, node.ledger.machine.view, node.ledger.network
        )
        faces = await start_faces(node)
        node.administration.scrub_every(settings.store.scrub_interval_h * HOUR_S)
        node.administration.prune_on()
        notify.notify(notify.READY)
        async with _watched(node):
            await node.stopping.wait()
    finally:
        notify.notify(notify.STOPPING)
        watchdog = loop.call_later(limits.STOP_S, _stop_hard, log)
        begun = time.monotonic()
        await node.drain()
        await node.ledger.network.stop()
        if faces is not None:
            await faces.stop(max(limits.STOP_S - 1 - (time.monotonic() - begun), 0.0))
        node.close()
        watchdog.cancel()
    if node.failure:
        log.error("stopped by a failure", reason=node.failure)
        return Exit.FAILURE
    log.info("stopped")
    return Exit.OK


def _reload(node: Node) -> None:
    """What this means is known once the faces are there."""
    node.administration.reload()


@asynccontextmanager
async def _watched(node: Node) -> AsyncIterator[None]:
    """The service manager, where it waits for signs of life, gets them while the node is live."""
    period_s = notify.watchdog_s()
    if not period_s:
        yield
        return

    def is_live() -> bool:
        return all(check.passes for check in node.ledger.health().live)

    signs = asyncio.create_task(notify.keep_alive(is_live, period_s))
    try:
        yield
    finally:
        signs.cancel()


def _stop_hard(log: Log) -> None:
    """Nothing acknowledged is lost by this: it was durable before it was acknowledged."""
    log.error("stopping took too long: ended as it is")
    os._exit(Exit.FAILURE)
