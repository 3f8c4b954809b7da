"""Each safeguard is taken out, and the judge must notice: by a property, not by a crash.

For each the troubles are named that it is there for; seeds of these are run until one fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace

from quipu.ledger.safeguards import ALL, Safeguards
from tests.simulation.liars import LIARS, Baiter, Liar
from tests.simulation.runs import run_scenario
from tests.simulation.scenario import Scenario, generate
from tests.simulation.violation import Property

SEEDS_MAX = 300
SHORT_MS = 5_000


@dataclass(frozen=True, slots=True)
class Trouble:
    """What brings a safeguard into play."""

    only: str = ""  # the kind of scenario; empty: the whole mixture
    liar: str = ""
    short: bool = False  # it makes so much noise that a few seconds are enough


TROUBLES: dict[str, Trouble] = {
    "distinct_receipts": Trouble("network"),
    "durable_before_spoken": Trouble("disks"),
    "parents_held": Trouble("network"),
    "parents_read": Trouble("network"),
    "event_signature": Trouble("liars", "Forger"),
    "inv_signature": Trouble("liars", "ReceiptForger"),
    "author_is_member": Trouble("liars", "Outsider"),
    "signer_is_member": Trouble("liars", "Outsider"),
    "cluster_id": Trouble("liars", "WrongCluster"),
    "author_receipt": Trouble("network"),
    "window_only_on_admission": Trouble("pause"),
    "release_all_waiting": Trouble("network"),
    "restore_guard": Trouble("losses", "Baiter"),
    "waiting_room_bounded": Trouble("liars", "OrphanFlooder"),
    "one_id_per_slot": Trouble("losses", "Baiter"),
    "conviction_ends_cord": Trouble("liars", "Equivocator"),
    "vouched_branches_only": Trouble("liars", "Brancher"),
    "certified_branches_kept": Trouble("liars", "Equivocator"),
    "rows_need_held_id": Trouble("liars", "GhostReceipts"),
    "parked_rows_kept": Trouble("blips"),
    "one_epoch_certificate": Trouble("epochs"),
    "cut_is_read": Trouble("epochs"),
    "receipts_wait_due": Trouble("liars", "FutureDater"),
    "new_journal_at_start": Trouble("disks"),
    "inv_numbers_rise": Trouble("clocks"),
    "hlc_rises": Trouble("liars", "EdgeCheat"),
    "depth_certified": Trouble("liars", "EdgeCheat"),
    "resend_unread": Trouble("blips"),
    "behind_asks": Trouble("network"),
    "receipts_reconciled": Trouble("network"),
    "asks_another_peer": Trouble("liars", "Withholder"),
    "spared_proven": Trouble("liars", "SignatureJunker"),
    "wants_bounded": Trouble("liars", "GhostReceipts", short=True),
}


@dataclass(frozen=True, slots=True)
class Caught:
    safeguard: str
    broken: Property | None
    seeds: int
    detail: str


def scenario_for(name: str, seed: int) -> Scenario:
    trouble = TROUBLES.get(name, Trouble())
    scenario = generate(seed, trouble.only)
    if trouble.liar:
        named: dict[str, type[Liar]] = {liar.__name__: liar for liar in (*LIARS, Baiter)}
        scenario.liars = [named[trouble.liar]]
    if trouble.short:
        scenario.shorten(SHORT_MS)
    return scenario


def ablate(name: str, seeds_max: int = SEEDS_MAX) -> Caught:
    guards = replace(ALL, **{name: False})
    crashes = 0
    for seed in range(1, seeds_max + 1):
        result = run_scenario(scenario_for(name, seed), guards)
        if result.broken is Property.CORE_ERROR:
            crashes += 1
        elif result.broken is not None:
            return Caught(name, result.broken, seed, result.violation)
    return Caught(name, None, seeds_max, f"{crashes} seeds ended in an error of the core")


def names() -> list[str]:
    return [field.name for field in fields(Safeguards)]


def ablate_all(chosen: list[str], jobs: int) -> Iterator[Caught]:
    if jobs == 1:
        yield from map(ablate, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(ablate, chosen)
