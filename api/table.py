"""The endpoints of the node: one table for routes, scopes and documentation."""

from quipu.api import cluster, diff, documents, events, members, ops
from quipu.api.admin_table import ADMIN as ADMIN_ALONE
from quipu.api.bodies import JSON
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.client_table import CLIENTS
from quipu.api.codes import Code
from quipu.api.consumer_table import CONSUMERS
from quipu.api.entry_table import READING, WRITING
from quipu.api.models import (
    ClusterBody,
    EventList,
    EvidenceList,
    ExplanationBody,
    Frontier,
    FrontierDiff,
    HealthBody,
    LeafList,
    MemberList,
    NodeBody,
    QueryResult,
    SignedEventBody,
)
from quipu.api.order_table import JOURNAL, ORDER_ADMIN, SEQUENCES
from quipu.api.tokens import CLUSTER_READ

__all__ = ["ADMIN", "API", "OPS"]

EVENT_CODES = (Code.INVALID_ID, Code.EVENT_NOT_FOUND)

EVENTS = (
    Endpoint(
        "GET",
        "/v1/events/{id}",
        "event",
        "One event: a vertex of the DAG",
        CLUSTER_READ,
        events.event,
        (Answer(200, "The event with its signed header.", SignedEventBody),),
        EVENT_CODES,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/events/{id}/parents",
        "parents",
        "What an event names: prev and parents",
        CLUSTER_READ,
        events.parents,
        (Answer(200, "The events below it.", EventList),),
        EVENT_CODES,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/events/{id}/children",
        "children",
        "What names an event",
        CLUSTER_READ,
        events.children,
        (Answer(200, "The events above it.", EventList),),
        EVENT_CODES,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/events/{id}/ancestors",
        "ancestors",
        "What an event rests on, breadth first",
        CLUSTER_READ,
        events.ancestors,
        (Answer(200, "The events below it, nearest first.", EventList),),
        EVENT_CODES,
        events.AncestorsQuery,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/events/{id}/explain",
        "explain",
        "Why an event is final or not",
        CLUSTER_READ,
        events.explain,
        (Answer(200, "What is missing, and from whom.", ExplanationBody),),
        EVENT_CODES,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/dag/leaves",
        "leaves",
        "Final events that no final event names",
        CLUSTER_READ,
        events.leaves,
        (Answer(200, "Oldest first.", LeafList),),
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/dag/window",
        "window",
        "A piece of the DAG around one event, or the newest",
        CLUSTER_READ,
        events.window,
        (Answer(200, "In the order of this node's feed.", EventList),),
        EVENT_CODES,
        events.WindowQuery,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/dag/frontier",
        "frontier",
        "How far each cord is held and final",
        CLUSTER_READ,
        events.frontier,
        (Answer(200, "Equal on nodes that hold the same.", Frontier),),
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/dag/diff",
        "diff",
        "What this node and another member hold differently",
        CLUSTER_READ,
        diff.diff,
        (Answer(200, "The cords that differ; in a busy cluster, some always do.", FrontierDiff),),
        (Code.PEER_NOT_FOUND, Code.PEER_SILENT, Code.NODE_FULL, Code.DRAINING),
        diff.DiffQuery,
        tag="dag",
    ),
    Endpoint(
        "GET",
        "/v1/node",
        "node",
        "Who this node is, and what it takes",
        CLUSTER_READ,
        cluster.node,
        (Answer(200, "Identity, roster, limits.", NodeBody),),
        tag="node",
    ),
    Endpoint(
        "GET",
        "/v1/evidence",
        "evidence",
        "Proofs of misbehaviour held here",
        CLUSTER_READ,
        cluster.evidence,
        (Answer(200, "One for each culprit and role.", EvidenceList),),
        tag="node",
    ),
)
CLUSTER = (
    Endpoint(
        "GET",
        "/v1/cluster",
        "cluster",
        "Which cluster this is, and what its members confirm by",
        CLUSTER_READ,
        members.cluster,
        (Answer(200, "Identity, epoch, policy.", ClusterBody),),
        tag="cluster",
    ),
    Endpoint(
        "GET",
        "/v1/cluster/members",
        "members",
        "The roster and the live view of this node",
        CLUSTER_READ,
        members.members,
        (Answer(200, "Members by number, then observers.", MemberList),),
        tag="cluster",
    ),
    Endpoint(
        "POST",
        "/v1/cluster/queries",
        "query",
        "Ask all members, and count their answers",
        CLUSTER_READ,
        members.query,
        (Answer(200, "The verdict, and each answer as it was signed.", QueryResult),),
        (
            Code.MALFORMED_BODY,
            Code.INVALID_FIELD,
            Code.UNKNOWN_FIELD,
            Code.BODY_TIMEOUT,
            Code.TOO_LARGE,
            Code.UNSUPPORTED_MEDIA_TYPE,
            Code.NODE_FULL,
            Code.DRAINING,
        ),
        body=RequestBody(members.NewQuery, {JSON: {"question": "version"}}, (JSON,)),
        tag="cluster",
    ),
)
DOCUMENTS = (
    Endpoint(
        "GET",
        "/",
        "front",
        "Where to go on from here",
        None,
        documents.front,
        (Answer(200, "A page for people.", str),),
        offers=(documents.HTML,),
        tag="documents",
    ),
    Endpoint(
        "GET",
        "/openapi.json",
        "openapi",
        "This document",
        None,
        documents.openapi,
        (Answer(200, "OpenAPI 3.1.", dict),),
        offers=(JSON,),
        tag="documents",
    ),
    Endpoint(
        "GET",
        "/problems/{code}",
        "problem",
        "What a problem means and what to do",
        None,
        documents.problem_page,
        (Answer(200, "A page for people, or JSON for programs.", dict),),
        codes=(Code.NOT_FOUND,),
        offers=(documents.HTML, JSON),
        tag="documents",
    ),
)
API = WRITING + READING + CONSUMERS + JOURNAL + SEQUENCES + CLIENTS + EVENTS + CLUSTER + DOCUMENTS
ADMIN = ADMIN_ALONE + ORDER_ADMIN

_HEALTH = (
    Answer(200, "All of it holds.", HealthBody),
    Answer(503, "Something fails: `checks` says what.", HealthBody),
)
OPS = (
    Endpoint(
        "GET", "/livez", "livez", "Is it alive?", None, ops.livez, _HEALTH, (), ops.ProbeQuery
    ),
    Endpoint(
        "GET",
        "/readyz",
        "readyz",
        "Takes it entries?",
        None,
        ops.readyz,
        _HEALTH,
        (),
        ops.ReadyQuery,
    ),
    Endpoint(
        "GET",
        "/startupz",
        "startupz",
        "Has it started?",
        None,
        ops.startupz,
        _HEALTH,
        (),
        ops.ProbeQuery,
    ),
    Endpoint(
        "GET",
        "/metrics",
        "metrics",
        "Figures for Prometheus",
        None,
        ops.metrics,
        (Answer(200, "Text exposition.", str),),
        offers=("text/plain", "application/openmetrics-text"),
    ),
)
