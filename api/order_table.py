"""The endpoints of the order: one part of the table."""

from quipu.api import config_changes, journal, sequences
from quipu.api.bodies import JSON
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.codes import Code
from quipu.api.config_models import ConfigBody, ConfigChange, ConfigProposed
from quipu.api.order_models import (
    JournalBody,
    JournalPage,
    LockBody,
    PublishedBody,
    SequenceBody,
)
from quipu.api.tokens import ADMIN as ADMIN_SCOPE
from quipu.api.tokens import CLUSTER_READ, ENTRIES_READ, ENTRIES_WRITE

JOURNAL = (
    Endpoint(
        "GET",
        "/v1/journal",
        "journal",
        "How far the one order of the cluster is, and who leads it",
        CLUSTER_READ,
        journal.journal,
        (Answer(200, "As this node sees it.", JournalBody),),
        tag="order",
    ),
    Endpoint(
        "GET",
        "/v1/journal/entries",
        "journal_entries",
        "The entries of the log, equal on all nodes",
        CLUSTER_READ,
        journal.entries,
        (Answer(200, "Those above `after`, in order.", JournalPage),),
        (Code.JOURNAL_GONE,),
        journal.JournalQuery,
        tag="order",
    ),
    Endpoint(
        "GET",
        "/v1/journal/config",
        "journal_config",
        "The roster, its serializers, and the change that is under way",
        CLUSTER_READ,
        config_changes.config,
        (Answer(200, "As this node sees it.", ConfigBody),),
        tag="order",
    ),
)
ORDER_CODES = (Code.NO_QUORUM, Code.ORDER_UNKNOWN, Code.NODE_FULL, Code.DRAINING)
WRITE_CODES = (
    Code.INVALID_ID,
    Code.MALFORMED_BODY,
    Code.INVALID_FIELD,
    Code.UNKNOWN_FIELD,
    Code.BODY_TIMEOUT,
    Code.TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.NOT_HOLDER,
    Code.STORAGE_FULL,
    *ORDER_CODES,
)
CHANGE_CODES = (
    Code.MALFORMED_BODY,
    Code.INVALID_FIELD,
    Code.UNKNOWN_FIELD,
    Code.BODY_TIMEOUT,
    Code.TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
    Code.CHANGE_IN_FLIGHT,
    Code.ALREADY_A_MEMBER,
    Code.MEMBER_UNKNOWN,
    Code.LAST_MEMBER,
    Code.ROSTER_FULL,
    Code.POLICY_UNFIT,
    Code.NOMINEE_UNREACHABLE,
    Code.NOMINEE_BEHIND,
)
MAKING_CODES = (Code.LOCKED, Code.TOO_MANY_SEQUENCES, Code.EXHAUSTED)
SEQUENCES = (
    Endpoint(
        "GET",
        "/v1/sequences/{name}",
        "sequence",
        "How far a sequence is, and who holds its lock",
        ENTRIES_READ,
        sequences.sequence,
        (Answer(200, "As this node has applied it.", SequenceBody),),
        (Code.INVALID_ID, Code.SEQUENCE_NOT_FOUND, *ORDER_CODES),
        sequences.SequenceQuery,
        by_stream=True,
        tag="order",
    ),
    Endpoint(
        "POST",
        "/v1/sequences/{name}:publish",
        "sequence_publish",
        "Publish the next number: under a lock, or lock and publish in one",
        ENTRIES_WRITE,
        sequences.publish,
        (Answer(201, "It stands for ever.", PublishedBody),),
        (*WRITE_CODES, *MAKING_CODES, Code.OLD_TOKEN, Code.NOT_NEXT),
        body=RequestBody(sequences.NewNumber, {JSON: {"data": {"order": 7}}}, (JSON,)),
        by_stream=True,
        tag="order",
    ),
    Endpoint(
        "POST",
        "/v1/sequences/{name}:lock",
        "sequence_lock",
        "Lock the next 1 to 64 numbers",
        ENTRIES_WRITE,
        sequences.lock,
        (Answer(201, "They are for this token alone.", LockBody),),
        (*WRITE_CODES, *MAKING_CODES),
        body=RequestBody(sequences.NewLock, {JSON: {"count": 3}}, (JSON,)),
        by_stream=True,
        tag="order",
    ),
    Endpoint(
        "POST",
        "/v1/sequences/{name}:release",
        "sequence_release",
        "Give a lock back: its numbers that were not published are free",
        ENTRIES_WRITE,
        sequences.release,
        (Answer(200, "The sequence after it.", SequenceBody),),
        (*WRITE_CODES, Code.OLD_TOKEN),
        body=RequestBody(sequences.NewRelease, {JSON: {"token": "17"}}, (JSON,)),
        by_stream=True,
        tag="order",
    ),
)
ORDER_ADMIN = (
    Endpoint(
        "POST",
        "/v1/journal/config:propose",
        "propose_config",
        "Change who is a member: add, remove, replace; or the policy; or make a checkpoint",
        ADMIN_SCOPE,
        config_changes.propose_config,
        (Answer(202, "Its members are ready, and the epoch that there is ends.", ConfigProposed),),
        (*CHANGE_CODES, *ORDER_CODES),
        body=RequestBody(ConfigChange, {JSON: {"change": "checkpoint"}}, (JSON,)),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "POST",
        "/v1/admin/journal/recover",
        "journal_recover",
        "Let this node vote again, whatever its lost disk has said",
        ADMIN_SCOPE,
        journal.recover,
        (Answer(200, "It has been told so.", JournalBody),),
        is_local=True,
        tag="admin",
    ),
)
