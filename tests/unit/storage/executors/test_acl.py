"""What a client may do, by table."""

import pytest

from quipu.ledger.refusals import Refused
from quipu.storage.executors import limits
from quipu.storage.executors.acl import ALL, EVERYTHING, Acl, Right, Rule, decode_acl, encode_acl
from quipu.storage.executors.outcome import Code
from quipu.storage.executors.reader import QueryFailed
from tests.executing import Executed

READER, WRITER, OWNER, OTHER = 2, 3, 4, 5


@pytest.fixture
def shared(executed: Executed) -> Executed:
    executed.run(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, who TEXT)",
        "CREATE TABLE secret (a)",
        "CREATE VIEW peek AS SELECT a FROM secret",
        "CREATE TABLE parents (id INTEGER PRIMARY KEY)",
        "CREATE TABLE child (id REFERENCES parents (id) ON DELETE CASCADE)",
    )
    read_write = Right.READ | Right.WRITE
    executed.add(READER, Acl((Rule("orders", Right.READ), Rule("peek", Right.READ))))
    executed.add(WRITER, Acl((Rule("ORDERS", read_write), Rule("parents", read_write))))
    executed.add(OWNER, Acl((Rule("mine_*", int(ALL)),)))
    executed.add(OTHER, Acl())
    return executed


@pytest.mark.parametrize(
    ("client", "sql", "granted"),
    [
        (READER, "SELECT item FROM orders", True),
        (READER, "SELECT item FROM Orders AS o", True),
        (READER, "SELECT count(*) FROM orders", True),
        (READER, "WITH orders_now AS (SELECT 1) SELECT count(*) FROM orders_now", True),
        (READER, "INSERT INTO orders (item) VALUES ('a')", False),
        (READER, "UPDATE orders SET item = 'a'", False),
        (READER, "DELETE FROM orders", False),
        (READER, "SELECT a FROM secret", False),
        (READER, "SELECT count(*) FROM secret", False),
        (READER, "SELECT 1 FROM secret", False),
        (READER, "SELECT item FROM orders WHERE id IN (SELECT a FROM secret)", False),
        (READER, "SELECT item FROM orders ORDER BY (SELECT max(a) FROM secret)", False),
        (READER, "SELECT item FROM orders UNION SELECT a FROM secret", False),
        (READER, "SELECT a FROM peek", False),  # a view gives nobody more than he has
        (READER, "WITH secret AS (SELECT 1 AS a) SELECT count(*) FROM secret", False),
        (WRITER, "INSERT INTO orders (item) VALUES ('a') RETURNING id", True),
        (WRITER, "UPDATE orders SET item = 'b' WHERE id = 1", True),
        (WRITER, "INSERT INTO orders (item) SELECT a FROM secret", False),
        (WRITER, "UPDATE orders SET item = (SELECT a FROM secret)", False),
        (WRITER, "DELETE FROM orders", True),
        (WRITER, "DELETE FROM parents", False),  # it would delete from child
        (WRITER, "CREATE TABLE t (a)", False),
        (WRITER, "DROP TABLE orders", False),
        (WRITER, "ALTER TABLE orders ADD COLUMN b", False),
        (WRITER, "CREATE INDEX i ON orders (item)", False),
        (WRITER, "CREATE TRIGGER g AFTER INSERT ON orders BEGIN SELECT 1; END", False),
        (OWNER, "CREATE TABLE mine_first (a)", True),
        (OWNER, "CREATE VIEW mine_view AS SELECT a FROM secret", True),
        (OWNER, "CREATE TABLE mine_copy AS SELECT a FROM secret", False),
        (OWNER, "CREATE TABLE theirs (a)", False),
        (OWNER, "CREATE VIEW theirs AS SELECT 1", False),
        (OWNER, "DROP TABLE secret", False),
        (OTHER, "SELECT 1", True),
        (OTHER, "SELECT item FROM orders", False),
    ],
)
def test_rights_decide(shared: Executed, client: int, sql: str, granted: bool) -> None:
    outcome = shared.run(sql, client=client)
    assert outcome.code is (Code.OK if granted else Code.NO_RIGHT), outcome
    shared.reopen()
    assert shared.refused(sql, client=client) in (
        # What was made by then is no longer missing.
        {None, Code.BAD_SQL} if granted else {Code.NO_RIGHT}
    )


def test_writing_a_parent_looks_at_its_children(shared: Executed) -> None:
    """With the guard of rowids SQLite asks for it at single rows too; a check has no guards."""
    assert shared.refused("INSERT INTO parents VALUES (1)", client=WRITER) is None
    assert shared.run("INSERT INTO parents VALUES (1)", client=WRITER).code is Code.NO_RIGHT


def test_a_trigger_runs_with_the_rights_of_whoever_fires_it(shared: Executed) -> None:
    shared.run("CREATE TRIGGER g AFTER INSERT ON orders BEGIN INSERT INTO secret VALUES (1); END")
    insert = "INSERT INTO orders (item) VALUES ('a')"
    assert shared.run(insert, client=WRITER).code is Code.NO_RIGHT
    assert shared.run(insert).code is Code.OK


def test_a_view_reads_with_the_rights_of_whoever_asks(shared: Executed) -> None:
    shared.run("CREATE VIEW mine_view AS SELECT a FROM secret", client=OWNER)
    assert shared.run("SELECT a FROM mine_view", client=OWNER).code is Code.NO_RIGHT


def test_a_table_does_not_leave_its_owner_by_a_new_name(shared: Executed) -> None:
    shared.run("CREATE TABLE mine_first (a)", client=OWNER)
    rename = "ALTER TABLE mine_first RENAME TO orders_too"
    assert shared.run(rename, client=OWNER).code is Code.NO_RIGHT
    inside = "ALTER TABLE mine_first RENAME TO mine_second"
    assert shared.run(inside, client=OWNER).code is Code.OK


def test_a_new_list_holds_from_its_place_in_the_order(shared: Executed) -> None:
    assert shared.run("SELECT item FROM orders", client=READER).code is Code.OK
    shared.add(READER, Acl())
    assert shared.run("SELECT item FROM orders", client=READER).code is Code.NO_RIGHT
    shared.reopen()
    assert shared.run("SELECT item FROM orders", client=READER).code is Code.NO_RIGHT


def test_queries_are_held_to_rights_as_well(shared: Executed) -> None:
    query = shared.executor.reader.query
    rights = Acl((Rule("orders", Right.READ),))
    assert query("SELECT count(*) FROM orders", rights=rights).rows == ((0,),)
    with pytest.raises(QueryFailed) as caught:
        query("SELECT a FROM secret", rights=rights)
    assert caught.value.code is Code.NO_RIGHT


def test_lists_have_one_form_and_bounds() -> None:
    acl = Acl((Rule("a*", 3), Rule("b", 4)))
    assert decode_acl(encode_acl(acl)) == acl
    assert EVERYTHING.grants("anything", ALL)
    assert acl.grants("Ab", Right.WRITE)
    assert not acl.grants("ab", Right.SCHEMA)
    assert not acl.grants("bb", Right.SCHEMA)
    long = encode_acl(Acl((Rule("x" * (limits.TABLE_NAME_BYTES_MAX + 1), 1),)))
    many = encode_acl(Acl((Rule("x", 1),) * (limits.RULES_PER_CLIENT_MAX + 1)))
    unknown = encode_acl(Acl((Rule("x", 8),)))
    for data in (b"", b"\x90", long, many, unknown, encode_acl(acl) + b"\0"):
        with pytest.raises(Refused):
            decode_acl(data)
