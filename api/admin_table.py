"""The admin endpoints: over the admin socket, or from this machine with a token of scope admin."""

from quipu.api import admin
from quipu.api.bodies import JSON
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.codes import Code
from quipu.api.models import (
    BackupRequest,
    Draining,
    KeyList,
    OperationBody,
    OperationList,
)
from quipu.api.tokens import ADMIN as ADMIN_SCOPE
from quipu.api.tokens import CLUSTER_READ

BODY_CODES = (
    Code.MALFORMED_BODY,
    Code.INVALID_FIELD,
    Code.UNKNOWN_FIELD,
    Code.BODY_TIMEOUT,
    Code.TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
)
BEGUN = Answer(202, "It has begun; `Location` tells how far it is.", OperationBody)
BEGIN_CODES = (Code.OPERATION_RUNNING, Code.DRAINING)

ADMIN = (
    Endpoint(
        "POST",
        "/v1/admin/drain",
        "drain",
        "Finish what was taken, and end the process",
        ADMIN_SCOPE,
        admin.drain,
        (Answer(202, "It takes nothing more, and ends within ten seconds.", Draining),),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "GET",
        "/v1/admin/keys",
        "keys",
        "Which keys the node has: public parts and fingerprints",
        ADMIN_SCOPE,
        admin.keys,
        (Answer(200, "No secret is among them.", KeyList),),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "POST",
        "/v1/admin/backup",
        "backup",
        "Copy the last commit while the node goes on",
        ADMIN_SCOPE,
        admin.backup,
        (BEGUN,),
        (*BODY_CODES, *BEGIN_CODES, Code.STORAGE_FULL),
        body=RequestBody(BackupRequest, {JSON: {"target": "monday"}}, (JSON,)),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "POST",
        "/v1/admin/scrub",
        "scrub",
        "Check every page and record of the store",
        ADMIN_SCOPE,
        admin.scrub,
        (BEGUN,),
        BEGIN_CODES,
        admin.ScrubQuery,
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "GET",
        "/v1/admin/operations",
        "operations",
        "Long work: what runs, and what has ended since the start",
        ADMIN_SCOPE,
        admin.operations,
        (Answer(200, "The newest first, at most 100 that have ended.", OperationList),),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "GET",
        "/v1/admin/operations/{id}",
        "operation",
        "How far one is, or how it has ended",
        ADMIN_SCOPE,
        admin.operation,
        (Answer(200, "Progress, result or error.", OperationBody),),
        (Code.OPERATION_NOT_FOUND,),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "DELETE",
        "/v1/admin/operations/{id}",
        "cancel",
        "End one that runs",
        ADMIN_SCOPE,
        admin.cancel,
        (Answer(200, "As it has ended; one that had ended before stays as it is.", OperationBody),),
        (Code.OPERATION_NOT_FOUND,),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "PUT",
        "/v1/reports/last",
        "publish_report",
        "Keep the last report about the consistency of the cluster",
        ADMIN_SCOPE,
        admin.publish_report,
        (Answer(204, "Kept in place of the one before, durably."),),
        (*BODY_CODES, Code.STORAGE_FULL),
        body=RequestBody(dict, {JSON: {"made": "2026-01-31T12:00:00Z", "findings": []}}, (JSON,)),
        is_local=True,
        tag="admin",
    ),
    Endpoint(
        "GET",
        "/v1/reports/last",
        "report",
        "The last report about the consistency of the cluster",
        CLUSTER_READ,
        admin.report,
        (Answer(200, "Byte for byte as it was published.", dict),),
        (Code.REPORT_NOT_FOUND,),
        offers=(JSON,),
        tag="admin",
    ),
)
