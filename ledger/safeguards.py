"""The safeguards of the core, one switch each.

All are on, always. Tests alone turn one off, to show that the simulator notices: the ablation
table in docs/simulation.md names for each the property that breaks.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Safeguards:
    distinct_receipts: bool = True  # a member counts once, however often it is heard
    durable_before_spoken: bool = True  # nothing is said before its transaction is committed
    parents_held: bool = True  # an event is held only when prev and parents are
    parents_read: bool = True  # an event is Read only when prev and parents are
    event_signature: bool = True
    inv_signature: bool = True
    author_is_member: bool = True
    signer_is_member: bool = True
    cluster_id: bool = True  # only events and receipts of this cluster
    author_receipt: bool = True  # Read demands the author's own receipt
    window_only_on_admission: bool = True  # asked-for history is taken, however old
    release_all_waiting: bool = True  # a parent frees every waiting child, of every generation
    restore_guard: bool = True  # a recovering signer listens before it signs
    waiting_room_bounded: bool = True
    one_id_per_slot: bool = True  # a signer acknowledges one id for a slot, ever
    conviction_ends_cord: bool = True  # nothing new is signed for a convicted author
    vouched_branches_only: bool = True  # a second branch is stored only if somebody vouches
    certified_branches_kept: bool = True  # a branch that others certified is fetched and counted
    rows_need_held_id: bool = True  # a row counts once the event with that id is held
    parked_rows_kept: bool = True  # and it counts then, without being sent again
    one_epoch_certificate: bool = True
    cut_is_read: bool = True  # everything in the cut of an opened epoch is Read
    receipts_wait_due: bool = True  # no receipt for an event from the future
    new_journal_at_start: bool = True
    inv_numbers_rise: bool = True
    hlc_rises: bool = True  # along every edge
    depth_certified: bool = True  # depth = 1 + greatest of prev and parents
    resend_unread: bool = True
    behind_asks: bool = True  # SyncEvent differences are asked for
    receipts_reconciled: bool = True  # missing receipts are asked for
    asks_another_peer: bool = True  # a request that is not answered goes to another peer
    wants_bounded: bool = True  # what nobody has is not asked for for ever
    spared_proven: bool = True  # signatures that a range spared are verified later


ALL = Safeguards()
