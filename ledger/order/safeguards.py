"""The safeguards of epochs over the log, one switch each.

All are on, always. Tests alone turn one off, to show that the simulator notices.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RosterSafeguards:
    cut_recomputed: bool = True  # a voter accepts only the cut that it computes itself
    rows_wait: bool = True  # a seal counts once all that it names is held
    older_attempt_void: bool = True  # an OPEN names the newest CLOSE
    cut_held_first: bool = True  # MAX_CONFIRMS + 1 members of the next epoch hold the cut
    lowered: bool = True  # prev and parents of all in the cut are in it
    silent_counted: bool = True  # who did not seal may have signed
    forks_left_out: bool = True  # without a certificate nothing at or above a fork is in the cut
    due_bounds_cut: bool = True  # nor what comes after `due`


ALL = RosterSafeguards()
