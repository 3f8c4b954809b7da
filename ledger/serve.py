"""Answering a GetData (seed 003): from the Model, Unread and fork branches alike, in causal order.

hlc grows along every edge, so events merged by hlc come parents first. At most 1 MiB or one event
an answer; the asker comes again for more.
"""

import heapq
from collections.abc import Iterator

from quipu.ledger import limits
from quipu.ledger.dag import Dag
from quipu.ledger.event import EventMeta
from quipu.ledger.inv import decode_inv
from quipu.ledger.messages import (
    Answer,
    CoverWant,
    EventBytes,
    GetData,
    InvWant,
    RangeWant,
    bytes_of,
)
from quipu.ledger.past import Past
from quipu.ledger.receipts import Receipts
from quipu.ledger.words import Cord, EventId, InvNumber, NodeNo, Seq


class Serve:
    def __init__(self, dag: Dag, past: Past, receipts: Receipts) -> None:
        self._dag = dag
        self._past = past
        self._receipts = receipts

    def answer(self, want: GetData) -> Answer:
        budget = min(want.bytes_max, limits.ANSWER_BYTES_MAX)
        missing: list[bytes] = []
        events: list[EventBytes] = []
        invs, more = self._invs(want, budget)
        budget -= sum(map(len, invs))
        for meta in self._wanted(want, missing):
            is_first = not events and not invs
            if not is_first and (meta.size > budget or len(events) == limits.ANSWER_EVENTS_MAX):
                more = True
                break
            event = self._past.event(meta.id)
            if event is None:
                missing.append(meta.id)
                continue
            budget -= meta.size
            events.append(bytes_of(event))
        return Answer(want.request_id, invs, events, missing[: limits.GET_IDS_MAX], more)

    # --- events ---------------------------------------------------------------------------------
    def _wanted(self, want: GetData, missing: list[bytes]) -> Iterator[EventMeta]:
        """All that is asked for, parents first, each once."""
        single: list[EventMeta] = []
        for identity in want.ids:
            meta = self._past.meta(EventId(identity))
            if meta is None:
                missing.append(identity)
            else:
                single.append(meta)
        single.sort(key=_causal)
        streams = [self._range(wanted) for wanted in want.ranges]
        sent: set[EventId] = set()
        for meta in heapq.merge(single, *streams, key=_causal):
            if meta.id not in sent:
                sent.add(meta.id)
                yield meta

    def _range(self, want: RangeWant) -> Iterator[EventMeta]:
        tip = self._past.meta_by_prefix(want.last)
        if tip is None or tuple(tip.branch.cord) != (want.author_no, want.journal):
            return
        record = self._dag.branches[tip.branch]
        start = 1
        for seq, prefix in want.anchors:
            anchor = self._past.meta_by_prefix(prefix)
            if anchor is not None and anchor.seq == seq and self._dag.is_on_line(anchor, record):
                start = seq + 1
                break
        for seq in range(start, tip.seq + 1):
            yield self._past.held(self._dag.id_on(record, Seq(seq)))

    # --- receipts -------------------------------------------------------------------------------
    def _invs(self, want: GetData, budget: int) -> tuple[list[bytes], bool]:
        """As many as fit, and whether there are more."""
        numbers: dict[tuple[NodeNo, InvNumber], None] = {}
        for inv_want in want.invs:
            numbers.update(dict.fromkeys(self._of_signer(inv_want)))
        for cover in want.covers:
            numbers.update(dict.fromkeys(self._covering(cover)))
        found: list[bytes] = []
        for key in numbers:
            data = self._past.inv(*key)
            if data is None:
                continue
            if found and (len(data) > budget or len(found) == limits.GET_RECEIPTS_MAX):
                return found, True
            budget -= len(data)
            found.append(data)
        return found, False

    def _of_signer(self, want: InvWant) -> Iterator[tuple[NodeNo, InvNumber]]:
        signer = NodeNo(want.signer_no)
        record = self._receipts.newest.get(signer)
        if want.number == 0:
            covered = self._rows_of_newest(signer)
            for branch in self._dag.branches.values():
                seq, number = branch.receipts.get(signer, (Seq(0), InvNumber(0)))
                is_forked = len(self._dag.cords[branch.key.cord]) > 1
                if seq > 0 and (is_forked or covered.get(branch.key.cord, 0) < seq):
                    yield signer, number
        elif self._past.inv(signer, InvNumber(want.number)) is not None:
            yield signer, InvNumber(want.number)  # one that lies between two that were sent
        if record is not None and record.number >= want.number:
            yield signer, record.number

    def _rows_of_newest(self, signer: NodeNo) -> dict[Cord, int]:
        record = self._receipts.newest.get(signer)
        data = self._past.inv(signer, record.number) if record else None
        return {row.cord: row.seq for row in decode_inv(data).rows} if data else {}

    def _covering(self, want: CoverWant) -> Iterator[tuple[NodeNo, InvNumber]]:
        tip = self._past.meta_by_prefix(want.tip)
        if tip is None:
            return
        for record, _ in self._dag.line(self._dag.branches[tip.branch]):
            for signer, (seq, number) in sorted(record.receipts.items()):
                if seq >= min(want.seq, record.held_seq):
                    yield signer, number


def _causal(meta: EventMeta) -> tuple[int, EventId]:
    return (meta.hlc, meta.id)
