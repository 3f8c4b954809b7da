"""No row may take the greatest rowid: above it SQLite chooses rowids at random.

For each table a temporary trigger refuses that one value. Temporary: it belongs to this connection
and stands in no snapshot. A look at the table afterwards would not do: within one statement a row
can take the greatest rowid, the next one a random one, and a third replace the first.
"""

from quipu.storage.executors import limits
from quipu.storage.executors.connection import Connection
from quipu.storage.executors.gate import GUARD

ROWID_SPENT = "quipu: rowids are spent"
_ALIASES = ("rowid", "_rowid_", "oid")


def guard_rowids(connection: Connection, *, anew: bool = False) -> None:
    """Gives each table of the apps its guards that has none yet; SQLite drops them with it. `anew`:
    all, for a column may have got a name by which a guard knew the rowid."""
    if anew:
        for (name,) in list(connection.execute("SELECT name FROM sqlite_temp_schema")):
            connection.execute(f"DROP TRIGGER temp.{quoted(name)}")
    guarded = {
        table
        for (table,) in connection.execute(
            "SELECT tbl_name FROM sqlite_temp_schema WHERE type = 'trigger'"
        )
    }
    number = _next_number(connection)
    for table in rowid_tables(connection):
        if table in guarded:
            continue
        alias, key = rowid_names(connection, table)
        if alias is None:  # its rowid has no name: no statement can set it
            continue
        _guard(connection, f"{GUARD}{number}", f"INSERT ON main.{quoted(table)}", alias)
        if key is not None:
            event = f"UPDATE OF {quoted(key)} ON main.{quoted(table)}"
            _guard(connection, f"{GUARD}{number}_key", event, alias)
        number += 1


def rowid_tables(connection: Connection) -> list[str]:
    """The apps' tables that have rowids, by name."""
    return sorted(
        name
        for schema, name, kind, _columns, without_rowid, _strict in connection.execute(
            "PRAGMA table_list"
        )
        if schema == "main" and kind == "table" and not without_rowid and not _own(name)
    )


def rowid_names(connection: Connection, table: str) -> tuple[str | None, str | None]:
    """A name for a table's rowid, unless all are taken by columns; its INTEGER PRIMARY KEY."""
    columns = list(connection.execute("SELECT name, type, pk FROM pragma_table_xinfo(?)", (table,)))
    primary = [(name, kind) for name, kind, pk in columns if pk]
    key = None
    if len(primary) == 1 and primary[0][1].upper() == "INTEGER":
        key = primary[0][0]
    taken = {name.lower() for name, _, _ in columns}
    free = next((alias for alias in _ALIASES if alias not in taken), key)
    return free and quoted(free), key


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _guard(connection: Connection, name: str, event: str, alias: str) -> None:
    connection.execute(
        f"CREATE TEMP TRIGGER {name} AFTER {event} WHEN new.{alias} = {limits.INTEGER_MAX} "
        f"BEGIN SELECT RAISE(ABORT, '{ROWID_SPENT}'); END"
    )


def _next_number(connection: Connection) -> int:
    names = connection.execute("SELECT name FROM sqlite_temp_schema WHERE type = 'trigger'")
    return 1 + max((int(n.removeprefix(GUARD).removesuffix("_key")) for (n,) in names), default=0)


def _own(name: str) -> bool:
    return name.lower().startswith(("quipu_", "sqlite_"))
