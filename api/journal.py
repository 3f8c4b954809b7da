"""GET /v1/journal and its entries: the one order of the cluster (seed 001)."""

from typing import Annotated

import msgspec

from quipu.api import limits
from quipu.api.calls import Call, Response
from quipu.api.events import FOR_NOW
from quipu.api.order_models import JournalBody, JournalEntry, JournalItem, JournalPage
from quipu.api.reading import PageSize
from quipu.ledger.epochs import decode_document
from quipu.ledger.log.serializers import SerializerSet, read_set
from quipu.ledger.log.words import Index, Regime
from quipu.ledger.order.changes import Close, Open, RosterItem, read_change
from quipu.ledger.order.client_items import (
    AccessList,
    AddClient,
    ChangeRights,
    ReadResults,
    RemoveClient,
    acl_id,
    read_client_item,
)
from quipu.ledger.order.config_items import ConfigChange, read_config
from quipu.ledger.order.items import (
    EventReference,
    Lock,
    LockAndPublish,
    Publish,
    Release,
    read_item,
)
from quipu.ledger.order.marks import ExecutorMark, SnapshotMade, SnapshotWanted, read_mark
from quipu.ledger.order.wishes import Wish, WishEnded, wish_id
from quipu.ledger.words import NodeNo
from quipu.node.order_service import OrderedEntry


class JournalQuery(msgspec.Struct, kw_only=True):
    after: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    limit: PageSize = limits.PAGE_DEFAULT


async def journal(call: Call) -> Response:
    found, shapes = call.ledger.order.status(), call.face.shapes
    body = JournalBody(
        role=found.role,  # type: ignore[arg-type]  # the names of the roles, which a test holds
        regime=found.regime,
        master=None if found.master is None else shapes.member(found.master),
        serializers=shapes.members(found.serializers),
        next_serializers=None
        if found.next_serializers is None
        else shapes.members(found.next_serializers),
        base=str(found.base),
        applied=str(found.applied),
        chosen=str(found.chosen),
        last=str(found.last),
        digest=found.digest.hex(),
        events=str(found.events),
        events_behind=found.events_behind,
        state=found.state,  # type: ignore[arg-type]
    )
    return call.answer(body, headers=FOR_NOW)


async def entries(call: Call) -> Response:
    query = call.query(JournalQuery)
    order = call.ledger.order
    found = order.entries(query.after, query.limit)
    last = found[-1].log_index if found else query.after
    items = [_entry(call, one) for one in found]
    more = order.status().applied > last
    return call.answer(JournalPage(items, str(last), more), headers=FOR_NOW)


async def recover(call: Call) -> Response:
    call.ledger.order.force_recovery()
    return await journal(call)


def _entry(call: Call, entry: OrderedEntry) -> JournalEntry:
    return JournalEntry(
        str(entry.log_index),
        entry.regime,
        call.face.shapes.member(entry.master_no),
        entry.final,
        entry.digest.hex(),
        [_item(call, entry, number) for number in range(len(entry.items))],
    )


def _item(call: Call, entry: OrderedEntry, at: int) -> JournalItem:
    data = entry.items[at]
    found = read_set(data) or read_item(data) or read_config(data)
    match found:
        case SerializerSet(stage=stage, nodes=nodes):
            return JournalItem("serializers", stage=stage.name.lower(), nodes=nodes)  # type: ignore[arg-type]
        case ConfigChange(kind=kind, stage=step, nodes=nodes):
            return JournalItem("config", stage=step.name.lower(), change=kind.word, nodes=nodes)  # type: ignore[arg-type]
        case EventReference():
            author = call.face.shapes.member(NodeNo(found.node_no))
            place = (str(found.journal), str(found.seq))
            return JournalItem("event", found.id.hex(), author, *place)
        case Lock(name=name, holder=holder, count=count, over=over):
            return JournalItem("lock", name=name, holder=holder, count=count, token=str(over))
        case Publish(name=name, holder=holder):
            token, number, digest = str(found.token), str(found.number), found.digest.hex()
            return JournalItem(
                "publish", name=name, holder=holder, token=token, number=number, digest=digest
            )
        case LockAndPublish(name=name, holder=holder):
            digest = found.digest.hex()
            return JournalItem("lock-and-publish", name=name, holder=holder, digest=digest)
        case Release(name=name, holder=holder):
            return JournalItem("release", name=name, holder=holder, token=str(found.token))
    change = read_change(data)
    return _client_item(entry, at) if change is None else _change(change)


def _change(item: RosterItem) -> JournalItem:
    match item:
        case Close(document=data) | Open(document=data):
            document = decode_document(data)
            nodes = [member.node_no for member in document.members]
            epoch, attempt = str(document.number), str(document.attempt)
            kind = "close" if isinstance(item, Close) else "open"
            return JournalItem(kind, nodes=nodes, epoch=epoch, attempt=attempt)  # type: ignore[arg-type]
        case Wish():
            return JournalItem("wish", name=wish_id(item).hex())
        case WishEnded(wish=wish):
            return JournalItem("wish-ended", name=wish.hex())


def _client_item(entry: OrderedEntry, number: int) -> JournalItem:
    match read_client_item(entry.items[number]):
        case AccessList():
            place = (Regime(entry.regime), Index(entry.log_index), number)
            return JournalItem("access-list", acl_id=acl_id(*place).hex())
        case AddClient(acl=acl, public=public):
            return JournalItem("add-client", acl_id=acl.hex(), public_key=public.hex())
        case RemoveClient(client_id=client):
            return JournalItem("remove-client", client=client)
        case ChangeRights(client_id=client, acl=acl):
            return JournalItem("change-rights", client=client, acl_id=acl.hex())
        case ReadResults(client_id=client, upto=upto, have=have):
            return JournalItem("read-results", client=client, upto=str(upto), have=str(have))
    return _executor_item(entry.items[number])


def _executor_item(data: bytes) -> JournalItem:
    match read_mark(data):
        case ExecutorMark(node_no=node, at=at, digest=digest):
            return JournalItem("executor", holder=node, number=str(at), digest=digest.hex())
        case SnapshotWanted(node_no=node):
            return JournalItem("snapshot-wanted", holder=node)
        case SnapshotMade(node_no=node, at=at, tables=tables):
            return JournalItem("snapshot", holder=node, number=str(at), digest=tables.hex())
    return JournalItem("unknown")
