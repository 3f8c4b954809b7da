"""What the judge finds: a property, by name, that did not hold."""

from enum import StrEnum


class Property(StrEnum):
    # safety, at every step
    EVENT_VALID = "event-valid"  # id, signature, form, author, epoch, hlc and depth
    ANCESTORS_HELD = "ancestors-held"  # prev and parents of what is held are held
    ANCESTORS_READ = "ancestors-read"
    READ_CERTIFIED = "read-certified"  # author's and MAX_CONFIRMS others' receipts of one epoch
    READ_STAYS = "read-stays"
    RECEIPT_TRUE = "receipt-true"  # who signs "held" holds it durably, and knows it due
    DURABLE_FIRST = "durable-first"  # no message names what a restart would not find
    AUTHOR_ONE_ID = "author-one-id-per-slot"
    SIGNER_ONE_ID = "signer-one-id-per-slot"
    NUMBERS_RISE = "receipt-numbers-rise"
    ONE_BRANCH_READ = "one-branch-read"
    CONVICTED_UNSIGNED = "convicted-not-signed"  # nothing new for an author proven to lie
    HONEST_UNPROVEN = "honest-not-convicted"
    HONEST_TAKEN = "honest-not-refused"  # what honest nodes say is never ill-formed
    BOUNDS = "bounds"
    WAITING_WAITS = "waiting-waits"  # what waits for ancestors lacks one
    MESSAGE_LIMITS = "message-limits"
    NO_SPINNING = "no-spinning"
    ANSWER_TRUE = "answer-true"  # an acknowledged submission is in the event that is named
    # epochs over the log
    ONE_VALUE = "one-value"  # at an index of the log, in order, for all nodes and for ever
    ONE_DOCUMENT = "one-document"  # a number
    NEWEST_CLOSE = "newest-close"  # an OPEN ends what the newest CLOSE began
    CUT_EQUAL = "cut-equal"  # the cut of an OPEN is what the judge computes from the same seals
    CUT_HELD = "cut-held"  # by MAX_CONFIRMS + 1 members of the epoch that begins
    READ_LOST = "read-lost"  # what was Read anywhere lies in the cut, or is proven beside it
    CHANGE_ENDS = "change-ends"  # after healing a change of roster comes to its OPEN
    BUNDLES_HOLD = "bundles-hold"  # across epochs
    # liveness while all goes well but for one lost or late frame
    READ_SOON = "read-soon"  # Read before a SyncEvent could have helped
    # liveness, after healing
    MODELS_EQUAL = "models-equal"
    ROWS_EQUAL = "rows-equal"
    UNREAD_EMPTY = "unread-empty"
    PROOFS_EQUAL = "proofs-equal"
    EPOCHS_EQUAL = "epochs-equal"
    CUT_READ = "cut-read"
    STORED_KEPT = "stored-kept"
    ANSWERED = "answered"
    SIGNATURES_GOOD = "signatures-good"  # those of honest authors' events, on every disk
    PROOF_KEPT = "certificate-kept"  # each node can prove from its own disk what it calls Read
    QUIET = "quiet"  # nothing to do costs little
    # an error of the program itself; no evidence in an ablation
    CORE_ERROR = "core-error"


class Violation(Exception):
    def __init__(self, broken: Property, detail: str, now_us: int = 0) -> None:
        when = f" at {now_us / 1e6:.3f} s" if now_us else ""
        super().__init__(f"{broken}{when}: {detail}")
        self.property = broken
        self.detail = detail
