"""What the ledger refuses, as problems."""

from math import ceil

from quipu.api import limits
from quipu.api.codes import Code
from quipu.api.problems import FieldError, Problem, at
from quipu.ledger.order.registry import RegistryRefusal
from quipu.ledger.order.sequences import SequenceRefusal
from quipu.ledger.refusals import Reason, Refused
from quipu.node.change_service import ChangeInFlight, ForceRefused, NomineeRefused
from quipu.node.client_service import ClientRefused, NoExecutor
from quipu.node.config_service import ConfigRefused, NotConfigNode, UnknownNode
from quipu.node.order_service import (
    JournalGone,
    NoQuorum,
    NumberGone,
    OrderUnknown,
    SequenceRefused,
    StateDiffers,
)
from quipu.node.service import (
    Backlogged,
    Draining,
    NotIngestNode,
    NotTaken,
    OutcomeUnknown,
    Overloaded,
    StoreIsFull,
    TooManyConsumers,
)
from quipu.storage.store import StoreError

FAULTS = (
    Refused,
    NotTaken,
    OutcomeUnknown,
    StoreError,
    JournalGone,
    NumberGone,
    NoQuorum,
    OrderUnknown,
    SequenceRefused,
    StateDiffers,
    ChangeInFlight,
    ForceRefused,
    NomineeRefused,
    ConfigRefused,
    NotConfigNode,
    UnknownNode,
    ClientRefused,
    NoExecutor,
)
_RETRIED = frozenset({Code.TOO_FAR_AHEAD, Code.RESULTS_UNREAD})
_CODES = {
    Reason.BAD_ENTRY: Code.INVALID_FIELD,
    Reason.BAD_BODY: Code.TOO_LARGE,
    Reason.TOO_LARGE: Code.TOO_LARGE,
    Reason.UNREAD_BACKLOG: Code.UNREAD_BACKLOG,
    Reason.NOT_A_MEMBER: Code.NOT_A_MEMBER,
    Reason.OVERRULED: Code.OVERRULED,
    Reason.CATCHING_UP: Code.CATCHING_UP,
    Reason.NOT_READ: Code.NOT_READ,
}
_WAIT = frozenset({Code.UNREAD_BACKLOG, Code.CATCHING_UP})


def as_problem(error: BaseException) -> Problem | None:
    """None: not one of `FAULTS`, or a refusal that no request should meet."""
    found = _of_change(error)
    if found is not None:
        return found
    match error:
        case Refused(reason=reason, detail=detail) if reason in _CODES:
            code = _CODES[reason]
            errors = (FieldError("", detail),) if code is Code.INVALID_FIELD else ()
            retry = limits.RETRY_AFTER_S if code in _WAIT else 0
            return Problem(code, detail, errors, retry_after_s=retry)
        case Backlogged(retry_after_s=seconds):
            return Problem(Code.UNREAD_BACKLOG, str(error), retry_after_s=max(1, ceil(seconds)))
        case Overloaded(retry_after_s=seconds):
            return Problem(Code.NODE_FULL, str(error), retry_after_s=max(1, ceil(seconds)))
        case Draining():
            return Problem(Code.DRAINING, str(error), retry_after_s=limits.RETRY_AFTER_S)
        case TooManyConsumers():
            return Problem(Code.CONSUMER_LIMIT, str(error))
        case NoQuorum(retry_after_s=seconds):
            return Problem(Code.NO_QUORUM, str(error), retry_after_s=max(1, ceil(seconds)))
        case OrderUnknown():
            return Problem(Code.ORDER_UNKNOWN, str(error))
        case SequenceRefused(why=why):
            retry = limits.RETRY_AFTER_S if why is SequenceRefusal.LOCKED else 0
            return Problem(Code(why), f"sequence {error}", retry_after_s=retry)
        case ClientRefused() | NoExecutor():
            return _of_clients(error)
        case JournalGone(oldest=oldest) | NumberGone(oldest=oldest):
            code = Code.NUMBER_GONE if isinstance(error, NumberGone) else Code.JOURNAL_GONE
            return Problem(code, str(error), oldest=str(oldest))
        case StoreIsFull():
            return Problem(Code.STORAGE_FULL, str(error), retry_after_s=limits.RETRY_AFTER_S)
        case OutcomeUnknown(ids=ids):
            first = str(ids[0]) if ids else ""
            return Problem(Code.OUTCOME_UNKNOWN, "", entry_id=first)
        case StoreError():
            return Problem(Code.STORAGE_FAILED, "", retry_after_s=limits.RETRY_AFTER_S)
    return None


def _of_change(error: BaseException) -> Problem | None:
    match error:
        case ConfigRefused(why=why):
            return Problem(Code(why), f"the change {error}")
        case NotConfigNode():
            return Problem(Code.NOT_CONFIG_NODE, str(error))
        case UnknownNode():
            return Problem(Code.UNKNOWN_NODE, f"there is no member {error}")
        case StateDiffers():
            return Problem(Code.STATE_DIFFERS, str(error))
        case ChangeInFlight():
            return Problem(Code.ROSTER_IN_FLIGHT, str(error), retry_after_s=limits.RETRY_AFTER_S)
        case NomineeRefused(how=how):
            return Problem(Code(how), str(error), retry_after_s=limits.RETRY_AFTER_S)
        case ForceRefused(why=why):
            return Problem(Code(why), str(error))
        case NotIngestNode():
            return Problem(Code.NOT_INGEST_NODE, str(error))
    return None


def _of_clients(error: ClientRefused | NoExecutor) -> Problem:
    match error:
        case ClientRefused(why=RegistryRefusal.BAD_KEY, detail=detail):
            return at(Code.INVALID_FIELD, "/public_key", detail)
        case ClientRefused(why=why, detail=detail):
            code = Code(why)
            return Problem(code, detail, retry_after_s=limits.RETRY_AFTER_S * (code in _RETRIED))
        case NoExecutor(may_come=True):
            return Problem(Code.EXECUTOR_BEHIND, str(error), retry_after_s=limits.RETRY_AFTER_S)
        case _:
            return Problem(Code.NO_EXECUTOR, str(error))
