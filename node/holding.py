"""Which turns may wait for the next commit, so that an entry costs few of them.

The receipts of others come one by one, behind the event that they are for. As long as nobody at
this node waits for what they make Read, and nothing is said that rests on them, they ride with the
next commit: what is spoken is durable before, there is only nothing to speak.
"""

from collections.abc import Callable, Sequence

from quipu.ledger.effects import AppendFeed, Effects, EventsRead, InputRefused, PutBranch, StoreInv
from quipu.ledger.words import EventId, NodeId

IsAwaited = Callable[[Sequence[EventId]], bool]


def may_wait(effects: Effects, me: NodeId, is_awaited: IsAwaited) -> bool:
    for spoken in effects.spoken:
        if not isinstance(spoken, EventsRead | InputRefused):
            return False
    for durable in effects.durable:
        match durable:
            case PutBranch():
                pass
            case StoreInv(inv=inv) if inv.signer != me and inv.array.close is None:
                pass
            case AppendFeed(ids) if not is_awaited(ids):
                pass
            case _:
                return False
    return True


def joined(first: Effects | None, then: Effects) -> Effects:
    if first is None:
        return then
    return Effects(first.durable + then.durable, first.spoken + then.spoken)
