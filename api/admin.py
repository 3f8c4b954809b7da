"""Admin verbs: what an operator asks a running node to do."""

import os
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
from aiohttp import web

from quipu.api.bodies import JSON, decoded, media_type_of
from quipu.api.calls import Call, Response
from quipu.api.codes import Code
from quipu.api.models import (
    BackupRequest,
    Draining,
    ExportRequest,
    KeyBody,
    KeyList,
    LogLevelBody,
    LogLevelRequest,
    OperationBody,
    OperationList,
    Reloaded,
)
from quipu.api.problems import Problem, at, problem
from quipu.api.times import time_text
from quipu.api.tokens import is_token_name
from quipu.node import limits
from quipu.node.administration import BACKUP_FOLDER, DUMP_FOLDER, Administration
from quipu.node.operations import Operation, OperationRuns
from quipu.node.pruning import retention_of
from quipu.node.settings import StoreSettings
from quipu.storage.backup import BackupFailed

FOR_NOW = {"Cache-Control": "no-store"}
Asked = TypeVar("Asked", BackupRequest, ExportRequest, LogLevelRequest)
_backups = msgspec.json.Decoder(BackupRequest)
_levels = msgspec.json.Decoder(LogLevelRequest)
_exports = msgspec.json.Decoder(ExportRequest)
_reports = msgspec.json.Decoder(dict[str, msgspec.Raw])


class ScrubQuery(msgspec.Struct, kw_only=True):
    signatures: bool = False


def _administration(call: Call) -> Administration:
    administration = call.face.administration
    assert administration is not None  # these endpoints are listed where there is one
    return administration


# --- the node -------------------------------------------------------------------------------------
async def drain(call: Call) -> Response:
    _administration(call).drain()
    return call.answer(Draining(draining=True, pid=os.getpid()), 202, FOR_NOW)


async def reload(call: Call) -> Response:
    return call.answer(Reloaded(_administration(call).reload()), headers=FOR_NOW)


async def set_log_level(call: Call) -> Response:
    threshold = _administration(call).threshold
    asked = await _asked(call, _levels)
    before = threshold.level
    threshold.move(asked.level)
    return call.answer(LogLevelBody(asked.level, before), headers=FOR_NOW)


async def keys(call: Call) -> Response:
    items = [KeyBody(**row._asdict()) for row in _administration(call).key_rows()]
    return call.answer(KeyList(items), headers=FOR_NOW)


# --- operations -----------------------------------------------------------------------------------
async def backup(call: Call) -> Response:
    administration = _administration(call)
    asked = await _asked(call, _backups)
    target = _target(call, BACKUP_FOLDER, asked.target)
    try:
        return _begun(call, administration.backup(target))
    except BackupFailed as error:
        raise at(Code.INVALID_FIELD, "/target", str(error)) from error
    except OperationRuns as other:
        raise Problem(Code.OPERATION_RUNNING, str(other)) from other


async def export(call: Call) -> Response:
    administration = _administration(call)
    asked = await _asked(call, _exports)
    target = _target(call, DUMP_FOLDER, asked.target)
    try:
        return _begun(call, administration.export(target, asked.entries))
    except OperationRuns as other:
        raise Problem(Code.OPERATION_RUNNING, str(other)) from other


async def _asked(call: Call, requests: "msgspec.json.Decoder[Asked]") -> Asked:
    if call.body_type != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{call.body_type} is not read here, {JSON} is")
    return decoded(requests, await call.read_body(call.face.settings.body_bytes_max))


def _target(call: Call, folder: str, target: str) -> Path:
    """Who has a token writes nowhere but in the data directory."""
    if is_token_name(target):
        return _administration(call).place(folder, target)
    path = Path(target)
    if "\0" in target or not (call.is_private and path.is_absolute()):
        detail = "a name (letters, digits and . _ @ -), or over the admin socket an absolute path"
        raise at(Code.INVALID_FIELD, "/target", detail)
    return path


async def scrub(call: Call) -> Response:
    query = call.query(ScrubQuery)
    try:
        return _begun(call, _administration(call).scrub(query.signatures))
    except OperationRuns as other:
        raise Problem(Code.OPERATION_RUNNING, str(other)) from other


class PruneQuery(msgspec.Struct, kw_only=True):
    """Without `keep` and `keep_mib`: as the settings say."""

    keep: Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,9}(ms|s|m|h|d)$")] | None = None
    keep_mib: Annotated[int, msgspec.Meta(ge=1)] | None = None
    dry_run: bool = False


async def prune(call: Call) -> Response:
    query = call.query(PruneQuery)
    pruner = _administration(call).pruner
    assert pruner is not None  # of every node that runs
    retention = pruner.retention
    if query.keep is not None or query.keep_mib is not None:
        retention = retention_of(StoreSettings(), query.keep, query.keep_mib)
    if not retention.prunes:
        raise at(Code.INVALID_PARAMETER, "keep", "is needed: no setting says what is to be kept")
    try:
        return _begun(call, pruner.prune(retention, query.dry_run))
    except OperationRuns as other:
        raise Problem(Code.OPERATION_RUNNING, str(other)) from other


async def operations(call: Call) -> Response:
    listed = _administration(call).operations.list()
    return call.answer(OperationList([_shown(one) for one in listed]), headers=FOR_NOW)


async def operation(call: Call) -> Response:
    return call.answer(_shown(_found(call)), headers=FOR_NOW)


async def cancel(call: Call) -> Response:
    found = _found(call)
    await _administration(call).operations.cancel(found)
    return call.answer(_shown(found), headers=FOR_NOW)


def _found(call: Call) -> Operation:
    found = _administration(call).operations.get(call.argument)
    if found is None:
        problem(Code.OPERATION_NOT_FOUND, f"{call.argument[:40]} is not known")
    return found


def _begun(call: Call, begun: Operation) -> web.Response:
    headers = {**FOR_NOW, "Location": f"/v1/admin/operations/{begun.id}"}
    return call.answer(_shown(begun), 202, headers)


def _shown(one: Operation) -> OperationBody:
    return OperationBody(
        id=one.id,
        kind=one.kind,
        state=one.state,
        phase=one.phase,
        done=str(one.done),
        total=str(one.total),
        started=time_text(one.started_ms),
        ended=None if one.ended_ms is None else time_text(one.ended_ms),
        result=one.result,
        error=one.error,
    )


# --- the report -----------------------------------------------------------------------------------
async def publish_report(call: Call) -> Response:
    """Kept byte for byte, and given to whoever may look at the cluster."""
    kind = media_type_of(call.request.headers.get("Content-Type", JSON))
    if kind != JSON:
        problem(Code.UNSUPPORTED_MEDIA_TYPE, f"{kind} is not read here, {JSON} is")
    body = await call.read_body(limits.REPORT_BYTES_MAX)
    decoded(_reports, body)
    await _administration(call).keep_report(body)
    return web.Response(status=204)


async def report(call: Call) -> Response:
    found = _administration(call).report()
    if found is None:
        problem(Code.REPORT_NOT_FOUND)
    return web.Response(body=found, content_type=JSON, headers={"Cache-Control": "no-cache"})
