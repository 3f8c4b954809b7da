"""What is wrong with some copies, a fourth time: SQL over the Parquet files, in DuckDB.

What a header or a receipt says in msgpack, Merkle trees and Ed25519 are beyond SQL: the checks that
rest on them are left to the other three (`BEYOND_SQL`).
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from quipu.dumps.manifest import BUCKETS_TABLE, read_manifest
from quipu.dumps.tables import TABLES
from quipu.spark_analytics.findings import CHECKS

Triple = tuple[str, str, str]

BEYOND_SQL = frozenset(
    {
        *("files", "config.chain", "config.members", "events.columns", "events.signature"),
        *("events.root", "receipts.columns", "receipts.signature"),
        *("order.certificate", "results.digest"),
    }
)
KINDS = {
    "id": "BLOB",
    "long": "BIGINT",
    "int": "INTEGER",
    "text": "VARCHAR",
    "bytes": "BLOB",
    "bool": "BOOLEAN",
    "list of bytes": "BLOB[]",
}
TOP = "(-9223372036854775808)"  # turned over, it orders LONGs as unsigned

VIEWS = """
CREATE TABLE pairs AS SELECT e.copy, e.child, e.parent, e.ordinal,
    c.seq, c.author_no, c.journal, c.depth, c.hlc, c.epoch, c.state, c.feed_pos,
    p.seq AS p_seq, p.author_no AS p_author_no, p.journal AS p_journal, p.depth AS p_depth,
    p.hlc AS p_hlc, p.epoch AS p_epoch, p.feed_pos AS p_feed_pos
  FROM edges e LEFT JOIN events c ON c.copy = e.copy AND c.id = e.child
    LEFT JOIN events p ON p.copy = e.copy AND p.id = e.parent;
CREATE TABLE forked AS SELECT DISTINCT author_no, journal FROM events
  GROUP BY author_no, journal, seq HAVING count(DISTINCT id) > 1;
CREATE TABLE shared_cuts AS SELECT epoch, author_no, journal, seq, event FROM cuts
  GROUP BY ALL HAVING count(DISTINCT copy) = (SELECT count(*) FROM copies);
CREATE TABLE named AS SELECT r.copy, r.epoch, r.signer_no, r.author_no, r.journal, r.seq, confirms,
    r.number >> 16 <= (SELECT min(as_of_ms) - $settle_ms FROM copies) AS is_early
  FROM receipts r
    JOIN events h ON h.copy = r.copy AND h.eid = r.eid AND h.id = r.event
    JOIN members m ON m.copy = r.copy AND m.epoch = r.epoch AND m.node_no = r.signer_no;
CREATE MACRO proven(which) AS TABLE
  WITH highest AS (SELECT copy, epoch, author_no, journal, signer_no, max(seq) AS seq,
      max(confirms) AS confirms FROM named WHERE is_early OR which = 'ever'
      GROUP BY copy, epoch, author_no, journal, signer_no),
    signed AS (SELECT copy, author_no, journal, max(confirms) AS confirms,
      max(seq) FILTER (signer_no = author_no) AS own,
      coalesce(list_reverse_sort(list(seq) FILTER (signer_no <> author_no)), []) AS others
      FROM highest GROUP BY copy, epoch, author_no, journal)
  SELECT copy, author_no, journal,
      CASE WHEN confirms = 0 THEN own ELSE least(own, others[confirms]) END AS upto
    FROM signed WHERE own IS NOT NULL AND len(others) >= confirms
  UNION ALL SELECT copy, author_no, journal, seq FROM cuts WHERE which = 'ever'
  UNION ALL SELECT '', author_no, journal, seq FROM shared_cuts WHERE which <> 'ever';
CREATE TABLE final AS SELECT author_no, journal, max(upto) AS upto FROM proven('early')
  ANTI JOIN forked USING (author_no, journal) GROUP BY ALL;
CREATE TABLE places AS SELECT copy, event, min(struct_pack(i := index, p := position)) AS place
  FROM journal WHERE event IS NOT NULL GROUP BY ALL;
CREATE TABLE following AS SELECT j.*, b.message_hash AS before, b.regime AS regime_before
  FROM journal j JOIN journal b ON b.copy = j.copy AND (
    (b.index = j.index AND b.position + 1 = j.position) OR
    (b.index + 1 = j.index AND j.position = 0 AND b.position =
      (SELECT max(position) FROM journal l WHERE l.copy = b.copy AND l.index = b.index)));
"""

SLOT = "concat_ws('/', signer_no, author_no, journal, seq)"
QUERIES = {
    "events.id": """SELECT copy, lower(hex(id)) FROM events
        WHERE unhex(sha256('quipu/event/1'::BLOB || '\\x00'::BLOB || header)) <> id
        OR ('0x' || hex(id)[1:16])::UBIGINT >> 1 <> eid""",
    "events.author": """SELECT copy, lower(hex(id)) FROM events e WHERE NOT EXISTS (FROM members m
        WHERE m.copy = e.copy AND m.epoch = e.epoch AND node_id = author
          AND node_no = author_no)""",
    "receipts.conflict": f"""SELECT '*', {SLOT} FROM receipts
        GROUP BY signer_no, author_no, journal, seq HAVING count(DISTINCT event) > 1
        UNION ALL SELECT '*', concat_ws('/', signer_no, number) FROM invs
        GROUP BY signer_no, number HAVING count(DISTINCT inv_id) > 1""",
    "receipts.lacking": """SELECT r.copy, lower(hex(r.event)) FROM receipts r
        JOIN copies o ON o.name = r.copy
        WHERE EXISTS (FROM members m WHERE m.copy = r.copy AND m.node_id = o.node_id
          AND m.node_no = r.signer_no)
        AND NOT EXISTS (FROM events h WHERE h.copy = r.copy AND h.eid = r.eid
          AND h.id = r.event)""",
    "dag.duplicate": """SELECT copy, lower(hex(id)) FROM events GROUP BY copy, id
        HAVING count(*) > 1""",
    "dag.stray-edge": "SELECT copy, lower(hex(child)) FROM pairs WHERE seq IS NULL",
    "dag.missing-parent": """SELECT copy, lower(hex(child)) FROM pairs
        WHERE seq IS NOT NULL AND p_seq IS NULL""",
    "dag.prev": """SELECT copy, lower(hex(child)) FROM pairs WHERE ordinal = 0
        AND (p_author_no, p_journal, p_seq) <> (author_no, journal, seq - 1)
        AND p_seq IS NOT NULL AND seq IS NOT NULL""",
    "dag.root": """SELECT copy, lower(hex(id)) FROM events e WHERE (seq <> 1 OR prev <> $cluster_id)
        AND NOT EXISTS (FROM edges d WHERE d.copy = e.copy AND child = id AND ordinal = 0)""",
    "dag.depth": """SELECT copy, lower(hex(id)) FROM events e LEFT JOIN (SELECT copy, child AS id,
          max(p_depth) AS below, bool_and(p_seq IS NOT NULL) AS is_whole FROM pairs
          GROUP BY copy, child) b USING (copy, id)
        WHERE coalesce(is_whole, true) AND depth <> 1 + coalesce(below, 0)""",
    "dag.loop": """WITH RECURSIVE inner_pairs AS (SELECT DISTINCT copy, child, parent FROM pairs
          WHERE seq IS NOT NULL AND p_seq IS NOT NULL),
        walk AS (SELECT copy, child AS start, parent AS here FROM inner_pairs
          WHERE (copy, child) IN (SELECT (copy, parent) FROM inner_pairs)
          UNION SELECT w.copy, start, parent FROM walk w
            JOIN inner_pairs p ON p.copy = w.copy AND p.child = w.here)
        SELECT copy, lower(hex(start)) FROM walk WHERE start = here""",
    "dag.causality": f"""SELECT copy, lower(hex(child)) FROM pairs
        WHERE p_epoch > epoch OR xor(p_hlc, {TOP}) >= xor(hlc, {TOP})""",
    "dag.feed": """SELECT copy, lower(hex(child)) FROM pairs WHERE state = 'read'
          AND p_seq IS NOT NULL AND (p_feed_pos IS NULL OR p_feed_pos >= feed_pos)
        UNION ALL SELECT copy, copy FROM events WHERE state = 'read' GROUP BY copy
          HAVING count(DISTINCT feed_pos) <> count(*) OR max(feed_pos) <> count(*)
            OR min(feed_pos) <> 1""",
    "dag.fork": """WITH twins AS (SELECT author_no, journal, prev, list(DISTINCT id) AS ids
          FROM events GROUP BY ALL HAVING count(DISTINCT id) > 1)
        SELECT '*', lower(hex(unnest(ids))) FROM twins""",
    "dag.island": """WITH RECURSIVE both_ways AS (SELECT child AS one, parent AS other FROM edges
          WHERE child IN (SELECT id FROM events) AND parent IN (SELECT id FROM events)
          UNION SELECT parent, child FROM edges
          WHERE child IN (SELECT id FROM events) AND parent IN (SELECT id FROM events)),
        land AS (SELECT id FROM events WHERE seq = 1 AND prev = $cluster_id
          UNION SELECT other FROM land JOIN both_ways ON one = id)
        SELECT string_agg(DISTINCT copy, ' ' ORDER BY copy), lower(hex(id)) FROM events
          ANTI JOIN land USING (id) GROUP BY id""",
    "copies.buckets": """WITH ids AS (SELECT DISTINCT copy, id,
          ('0x' || hex(id)[1:4])::UBIGINT >> 4 AS bucket FROM events WHERE state = 'read'),
        made AS (SELECT copy, bucket, sha256(unhex(string_agg(hex(id), '' ORDER BY id))) AS made
          FROM ids GROUP BY ALL),
        said AS (SELECT name AS copy, unnest(range(4096)) AS bucket, unnest(digests) AS said
          FROM copies)
        SELECT copy, bucket::VARCHAR FROM said LEFT JOIN made USING (copy, bucket)
          WHERE said <> coalesce(made, sha256(''))""",
    "copies.bytes": """SELECT '*', lower(hex(id)) FROM events
        GROUP BY id HAVING count(DISTINCT (header, signature, body_bytes)) > 1""",
    "copies.missing": """WITH due AS (SELECT DISTINCT id FROM events
          JOIN final USING (author_no, journal) WHERE seq <= upto)
        SELECT name, lower(hex(id)) FROM due, copies
          WHERE NOT EXISTS (FROM events e WHERE e.copy = name AND e.id = due.id)""",
    "copies.stuck": """SELECT copy, lower(hex(id)) FROM events JOIN final USING (author_no, journal)
        WHERE seq <= upto AND state = 'unread'""",
    "copies.unproven": """SELECT copy, lower(hex(id)) FROM events ANTI JOIN forked
          USING (author_no, journal)
        LEFT JOIN (SELECT copy, author_no, journal, max(upto) AS upto FROM proven('ever')
          GROUP BY ALL) p USING (copy, author_no, journal)
        WHERE state = 'read' AND seq > coalesce(upto, 0)""",
    "copies.shrunk": """WITH newer AS (SELECT o.name AS was, n.name AS is_now FROM copies o
          JOIN copies n USING (node_id) WHERE n.number = (SELECT min(number) FROM copies l
          WHERE l.node_id = o.node_id AND l.number > o.number))
        SELECT is_now, lower(hex(o.id)) FROM newer JOIN events o ON o.copy = was
          LEFT JOIN events n ON n.copy = is_now AND n.id = o.id
        WHERE n.id IS NULL OR (o.state = 'read' AND n.state <> 'read')
          OR o.feed_pos <> n.feed_pos""",
    "order.gap": """WITH held AS (SELECT copy, index, max(position) AS last, count(*) AS times,
          count(DISTINCT position) AS kinds FROM journal GROUP BY copy, index)
        SELECT copy, index::VARCHAR FROM held WHERE times <> last + 1 OR kinds <> times
        UNION ALL SELECT copy, (index + 1)::VARCHAR FROM held h
          WHERE index < (SELECT max(index) FROM held l WHERE l.copy = h.copy)
          AND NOT EXISTS (FROM held n WHERE n.copy = h.copy AND n.index = h.index + 1)""",
    "order.chain": """SELECT copy, index || '/' || position FROM following
        WHERE prev_hash <> before""",
    "order.regime": """SELECT copy, index || '/' || position FROM following
        WHERE regime < regime_before""",
    "order.diverges": """SELECT '*', index || '/' || position FROM journal GROUP BY index, position
        HAVING count(DISTINCT (event, message_hash, regime)) > 1
        ORDER BY index, position LIMIT 1""",
    "order.extension": """SELECT e.copy, lower(hex(e.child)) FROM edges e
          JOIN places c ON c.copy = e.copy AND c.event = e.child
          LEFT JOIN places p ON p.copy = e.copy AND p.event = e.parent
          WHERE p.place >= c.place OR (p.place IS NULL
            AND (SELECT min(index) FROM journal j WHERE j.copy = e.copy) = 1)
        UNION ALL SELECT copy, lower(hex(event)) FROM journal WHERE event IS NOT NULL
          GROUP BY copy, event HAVING count(*) > 1""",
    "order.unknown": """SELECT copy, lower(hex(event)) FROM journal j
        WHERE event IS NOT NULL AND NOT EXISTS
        (FROM events e WHERE e.copy = j.copy AND e.id = j.event AND state = 'read')""",
    "clients.key": """SELECT '*', client_id::VARCHAR FROM clients
        GROUP BY client_id HAVING count(DISTINCT key) > 1""",
    "results.gap": """WITH due AS (SELECT copy, client_id,
            unnest(range(released + 1, watermark + 1))
          AS message_id FROM clients),
        both_ways AS (SELECT * FROM due ANTI JOIN results USING (copy, client_id, message_id)
          UNION ALL SELECT copy, client_id, message_id FROM results
          ANTI JOIN due USING (copy, client_id, message_id)
          UNION ALL SELECT copy, client_id, message_id FROM results
          GROUP BY ALL HAVING count(*) > 1)
        SELECT copy, client_id::VARCHAR FROM both_ways""",
    "results.differ": """SELECT '*', concat_ws('/', client_id, message_id) FROM results
        GROUP BY client_id, message_id HAVING count(DISTINCT (request, digest)) > 1""",
    "results.state": """SELECT '*', log_index::VARCHAR FROM executed GROUP BY log_index
        HAVING count(DISTINCT digest) > 1 ORDER BY log_index LIMIT 1""",
}
TOGETHER = ("copies.missing", "copies.stuck", "copies.shrunk")  # silent about a single copy
assert {*QUERIES} | BEYOND_SQL == {*CHECKS}


def findings(
    dumps: Sequence[Path],
    names: Sequence[str],
    settle_s: float,
    checks: Collection[str] = tuple(QUERIES),
) -> set[Triple]:
    with duckdb.connect() as db:
        cluster_id = _load(db, dumps, names)
        given = {"cluster_id": cluster_id, "settle_ms": int(settle_s * 1_000)}
        for statement in VIEWS.split(";\n"):
            _run(db, statement, given)
        found: set[Triple] = set()
        for check in checks:
            if len(dumps) > 1 or check not in TOGETHER:
                rows = _run(db, QUERIES[check], given).fetchall()
                found.update((check, copy, subject) for copy, subject in rows)
        return found


def _run(
    db: duckdb.DuckDBPyConnection, statement: str, given: dict[str, object]
) -> duckdb.DuckDBPyConnection:
    used = {name: value for name, value in given.items() if f"${name}" in statement}
    return db.execute(statement, used or None)


def _load(db: duckdb.DuckDBPyConnection, dumps: Sequence[Path], names: Sequence[str]) -> bytes:
    db.execute("SET threads = 1")
    for table, columns in TABLES.items():
        kinds = ", ".join(f"{column.name} {KINDS[column.kind]}" for column in columns)
        db.execute(f"CREATE TABLE {table} ({kinds}, copy VARCHAR)")
    known = "name VARCHAR, node_id BLOB, number INT, as_of_ms BIGINT, digests VARCHAR[]"
    db.execute(f"CREATE TABLE copies ({known})")
    cluster_id = ""
    for folder, name in zip(dumps, names, strict=True):
        manifest = read_manifest(folder)
        cluster_id = manifest.cluster_id
        for file in manifest.files:
            path = str(folder / file.name)
            if file.table == BUCKETS_TABLE:
                node_id, data = bytes.fromhex(manifest.node_id), (folder / file.name).read_bytes()
                digests = " ".join(data[at : at + 32].hex() for at in range(0, len(data), 32))
                row = [name, node_id, manifest.number, manifest.as_of_ms, digests]
                db.execute("INSERT INTO copies VALUES (?, ?, ?, ?, string_split(?, ' '))", row)
            else:
                given = [name, path]
                db.execute(f"INSERT INTO {file.table} SELECT *, ? FROM read_parquet(?)", given)
    return bytes.fromhex(cluster_id)
