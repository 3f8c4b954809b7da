"""Counts ACCEPTED: which index is chosen. Every node counts for itself, from signatures alone.

Only statements of one regime count together, only as far as their digest is that of one's own
log, and only through an entry of that regime: entries of older ones are chosen below it.
"""

from dataclasses import dataclass, field

from quipu.ledger import limits
from quipu.ledger.canonical import encode
from quipu.ledger.log.quorum import Voters, reached
from quipu.ledger.log.safeguards import ALL, LogSafeguards
from quipu.ledger.log.statements import Accepted
from quipu.ledger.log.suffix import Suffix
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.words import NodeNo

Counted = dict[NodeNo, Accepted]


@dataclass(slots=True)
class Tally:
    """Of each signer and regime: the newest statement that fits the log, and the newest that does
    not, for it may fit later. Signatures were verified before."""

    guards: LogSafeguards = ALL
    _fitting: dict[Regime, Counted] = field(default_factory=dict)
    _unfit: dict[Regime, Counted] = field(default_factory=dict)

    def add(self, statement: Accepted, log: Suffix) -> None:
        regime = Regime(statement.regime)
        newest = self._fitting.setdefault(regime, {})
        unfit = self._unfit.setdefault(regime, {})
        self._bound()
        self._place(statement, newest, unfit, log)

    def settle(self, log: Suffix) -> None:
        """The log has changed: what did not fit may fit now, and the other way round."""
        for regime in sorted(self._fitting):
            newest, unfit = self._fitting[regime], self._unfit[regime]
            statements = [*newest.values(), *unfit.values()]
            newest.clear()
            unfit.clear()
            for statement in statements:
                self._place(statement, newest, unfit, log)

    def chosen(self, log: Suffix, known: Index) -> tuple[Index, list[Accepted]]:
        """The highest chosen index, not below the one known, and what proves it."""
        best, proof = known, list[Accepted]()
        for regime in sorted(self._fitting):
            newest = self._fitting[regime]
            index = self._reached(log, newest, known)
            if index <= best or (self.guards.own_regime_first and log.regime_at(index) != regime):
                continue
            best, proof = index, [s for _, s in sorted(newest.items())]
        return best, proof

    def newest(self, regime: Regime) -> tuple[bytes, ...]:
        """What shows others how far this regime has come."""
        counted = self._fitting.get(regime, {})
        return tuple(encode(statement) for _, statement in sorted(counted.items()))

    def _reached(self, log: Suffix, newest: Counted, known: Index) -> Index:
        levels = {number: statement.index for number, statement in newest.items()}
        at = known
        segments = log.segments
        for segment, following in zip(segments, [*segments[1:], None], strict=True):
            end = log.last_index if following is None else Index(following.start - 1)
            if end <= at:
                continue
            voters = segment.voters
            if not self.guards.joint_majority:
                voters = Voters(voters.sets[-1])
            level = min(reached(voters, levels), end)
            at = Index(max(at, level))
            if level < end:
                break
        return at

    def _place(self, statement: Accepted, newest: Counted, unfit: Counted, log: Suffix) -> None:
        signer = NodeNo(statement.signer)
        fits = log.digest_at(statement.index) == statement.digest
        target = newest if fits else unfit
        before = target.get(signer)
        if before is None or before.index < statement.index:
            target[signer] = statement

    def _bound(self) -> None:
        while len(self._fitting) > limits.LOG_REGIMES_COUNTED:
            oldest = min(self._fitting)
            del self._fitting[oldest]
            self._unfit.pop(oldest, None)
