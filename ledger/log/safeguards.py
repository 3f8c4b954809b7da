"""The safeguards of the log, one switch each.

All are on, always. Tests alone turn one off, to show that the simulator notices.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogSafeguards:
    durable_before_spoken: bool = True  # nothing is said before its transaction is committed
    one_promise_a_regime: bool = True  # a regime is promised to one node only
    own_regime_first: bool = True  # chosen only through an entry of the master's own regime
    drop_from_difference: bool = True  # never an equal entry, whatever the message reaches to
    greatest_log_adopted: bool = True  # by (own regime, index) of its last entry
    joint_majority: bool = True  # from Implement to Confirm
    promises_counted_again: bool = True  # under the log that is adopted
    lower_regime_refused: bool = True  # after a promise nothing of a lower regime is accepted
    recovery_waits: bool = True  # a voter that lost its disk votes for nothing yet
    lives_compared: bool = True  # a PROMISE of a disk that is gone does not count
    reads_confirmed: bool = True  # a master asks a majority before it says how far to read
    model_checked: bool = True  # a voter accepts only events of its own Model


ALL = LogSafeguards()
