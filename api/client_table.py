"""The endpoints of clients and their executor: one part of the table."""

from quipu.api import clients
from quipu.api.bodies import JSON
from quipu.api.calls import Answer, Endpoint, RequestBody
from quipu.api.client_models import (
    ClientBody,
    ClientList,
    ExecutedBody,
    ExecutorBody,
    NewClient,
    NewRequest,
    NewRights,
    NewSql,
    ResultsBody,
    TableBody,
)
from quipu.api.codes import Code
from quipu.api.order_table import ORDER_CODES
from quipu.api.tokens import ADMIN as ADMIN_SCOPE
from quipu.api.tokens import CLUSTER_READ, ENTRIES_READ, ENTRIES_WRITE

BODY_CODES = (
    Code.MALFORMED_BODY,
    Code.INVALID_FIELD,
    Code.UNKNOWN_FIELD,
    Code.BODY_TIMEOUT,
    Code.TOO_LARGE,
    Code.UNSUPPORTED_MEDIA_TYPE,
)
WHO_CODES = (Code.INVALID_ID, Code.CLIENT_NOT_FOUND, Code.CLIENT_REMOVED)
EXECUTOR_CODES = (Code.NO_EXECUTOR, Code.EXECUTOR_BEHIND)
A_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
A_REQUEST = {
    "message_id": "1",
    "messages_base64": "kZIBxAqSqFNFTEVDVCAxkA==",
    "signature_base64": "A" * 86 + "==",
}

CLIENTS = (
    Endpoint(
        "POST",
        "/v1/clients",
        "new_client",
        "Register a client: its key, and what it may do",
        ADMIN_SCOPE,
        clients.new_client,
        (Answer(201, "It has its number.", ClientBody),),
        (
            *BODY_CODES,
            *ORDER_CODES,
            Code.ACL_NOT_FOUND,
            Code.TOO_MANY_CLIENTS,
            Code.STORAGE_FULL,
        ),
        body=RequestBody(
            NewClient,
            {JSON: {"public_key": A_KEY, "rights": [{"tables": "stock*", "rights": ["read"]}]}},
            (JSON,),
        ),
        tag="clients",
    ),
    Endpoint(
        "GET",
        "/v1/clients",
        "clients",
        "The clients by number",
        CLUSTER_READ,
        clients.clients,
        (Answer(200, "As this node has applied them.", ClientList),),
        query=clients.ClientsQuery,
        tag="clients",
    ),
    Endpoint(
        "GET",
        "/v1/clients/{number}",
        "client",
        "Who a client is, and how far it is",
        CLUSTER_READ,
        clients.client,
        (Answer(200, "As this node has applied it.", ClientBody),),
        (Code.INVALID_ID, Code.CLIENT_NOT_FOUND),
        tag="clients",
    ),
    Endpoint(
        "PUT",
        "/v1/clients/{number}/rights",
        "change_rights",
        "Give a client other rights, from one place in the order on; its ids and results stay",
        ADMIN_SCOPE,
        clients.change_rights,
        (Answer(200, "It has them.", ClientBody),),
        (
            *BODY_CODES,
            *WHO_CODES,
            *ORDER_CODES,
            Code.ACL_NOT_FOUND,
            Code.TOO_MANY_CLIENTS,
            Code.STORAGE_FULL,
        ),
        body=RequestBody(
            NewRights, {JSON: {"rights": [{"tables": "stock*", "rights": ["read"]}]}}, (JSON,)
        ),
        tag="clients",
    ),
    Endpoint(
        "DELETE",
        "/v1/clients/{number}",
        "remove_client",
        "Remove a client, and what is kept of it; its number is never given again",
        ADMIN_SCOPE,
        clients.remove_client,
        (Answer(200, "It is removed.", ClientBody),),
        (*WHO_CODES, *ORDER_CODES, Code.STORAGE_FULL),
        tag="clients",
    ),
    Endpoint(
        "POST",
        "/v1/clients/{number}/messages",
        "client_messages",
        "Submit a request that a client has signed: executed once, in the order of its ids",
        ENTRIES_WRITE,
        clients.client_messages,
        (
            Answer(201, "It has got as far as was asked.", ExecutedBody),
            Answer(200, "It was executed before: what came of it.", ExecutedBody),
            Answer(202, "It is stored, and not that far yet.", ExecutedBody),
        ),
        (
            *BODY_CODES,
            *WHO_CODES,
            *EXECUTOR_CODES,
            Code.BAD_SIGNATURE,
            Code.BAD_MESSAGE_ID,
            Code.TOO_FAR_AHEAD,
            Code.RELEASED,
            Code.RESULTS_UNREAD,
            Code.CLIENT_TERMINATED,
            Code.NOT_DETERMINISTIC,
            Code.STATEMENT_REFUSED,
            Code.NODE_FULL,
            Code.UNREAD_BACKLOG,
            Code.CATCHING_UP,
            Code.NOT_A_MEMBER,
            Code.OVERRULED,
            Code.DRAINING,
            Code.OUTCOME_UNKNOWN,
            Code.TOO_MANY_REQUESTS,
            Code.STORAGE_FULL,
        ),
        clients.MessagesQuery,
        body=RequestBody(NewRequest, {JSON: A_REQUEST}, (JSON,)),
        by_stream=True,
        tag="clients",
    ),
    Endpoint(
        "GET",
        "/v1/clients/{number}/results",
        "client_results",
        "Read results, and say which ones are held: those are deleted",
        ENTRIES_READ,
        clients.client_results,
        (Answer(200, "The outcomes in (have, upto].", ResultsBody),),
        (*WHO_CODES, *ORDER_CODES, *EXECUTOR_CODES, Code.BAD_SIGNATURE, Code.STORAGE_FULL),
        clients.ResultsQuery,
        tag="clients",
    ),
    Endpoint(
        "POST",
        "/v1/sql:query",
        "sql",
        "Read the database of this node's executor",
        ENTRIES_READ,
        clients.sql,
        (Answer(200, "The rows.", TableBody),),
        (
            *BODY_CODES,
            *ORDER_CODES,
            *EXECUTOR_CODES,
            Code.CLIENT_NOT_FOUND,
            Code.CLIENT_REMOVED,
            Code.STATEMENT_REFUSED,
        ),
        clients.SqlQuery,
        body=RequestBody(NewSql, {JSON: {"sql": "SELECT ?", "parameters": [7]}}, (JSON,)),
        tag="clients",
    ),
    Endpoint(
        "GET",
        "/v1/executor",
        "executor",
        "How far the executor of this node is",
        CLUSTER_READ,
        clients.executor,
        (Answer(200, "As it is now.", ExecutorBody),),
        tag="clients",
    ),
)
