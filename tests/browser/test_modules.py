"""The modules that decide, one by one, in the browser itself: against the vectors of the formats."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.browsing import Tab
from tests.vectors.check import refused_cases

VECTORS = Path(__file__).parent.parent / "vectors"
BYTES = (
    "const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (two) => parseInt(two, 16));"
)


def read(name: str) -> Any:
    return json.loads((VECTORS / f"{name}.json").read_text())


@pytest.fixture
def blank(tab: Tab) -> Tab:
    tab.page.goto(f"{tab.base}/ui/knot.svg")
    return tab


def run(tab: Tab, body: str, argument: object = None) -> Any:
    """With `load`, which imports a module of the page."""
    script = f"""async (given) => {{
        const load = (name) => import("{tab.base}/ui/" + name);
        {BYTES}
        {body}
    }}"""
    return tab.page.evaluate(script, argument)


def test_every_bundle_of_the_vectors_proves_what_it_should(blank: Tab) -> None:
    cases = [
        (item["hex"], f"{item['proves']['event']}:{item['proves']['index']}")
        for item in read("bundles")
    ]
    body = """const { check } = await load("proof.js"), told = [];
        for (const [hex, id] of given) {
            const steps = [];
            const found = await check(bytes(hex), id, (step) => steps.push(step.why));
            told.push([found.holds, steps.at(-1)]);
        }
        return told;"""
    assert [told for told in run(blank, body, cases) if not told[0]] == []


def test_every_bundle_that_must_be_refused_is(blank: Tab) -> None:
    """Under whatever id it brings: what is refused is the bundle, not that it is another one."""
    cases = [
        (name, inputs[0].hex())
        for name, kind, _, inputs in refused_cases(read("refused"))
        if kind == "bundle" and len(inputs[0]) < 100_000 and " at " not in name
    ]
    assert len(cases) > 50
    body = """const { check } = await load("proof.js"), taken = [];
        for (const [name, hex] of given) {
            const data = bytes(hex);
            let id = "";
            const peek = await check(data, "", (step) => { const found = /SHA-256 of the header is/.test(step.why); if (found) id = step.why; });
            for (const wanted of await ids(data)) if ((await check(data, wanted, () => {})).holds) taken.push(name);
        }
        async function ids(data) {
            const { decode } = await load("msgpack.js"), { tagged, hex } = await load("crypto.js");
            try { const fields = decode(data); return [`${hex(await tagged("event", fields[3]))}:${fields[5]}`]; } catch { return ["x:0"]; }
        }
        return taken;"""
    assert run(blank, body, cases) == []


def test_merkle_paths_of_the_vectors(blank: Tab) -> None:
    cases = [
        (row["size"], place, path, row["root"])
        for row in read("merkle")
        if row.get("leaves") is None
        for place, path in enumerate(row["paths"])
    ]
    if not cases:
        pytest.fail("the vectors hold no paths")


@pytest.mark.parametrize(
    "hex_bytes",
    ["cc7f", "cd00ff", "ce0000ffff", "cf00000000ffffffff", "c50001aa", "d90161", "dc000101",
     "ca00000000", "81a16101", "c1", "93", "c402aa", "a1ff", "0000", "d0ff", "91" * 20],
)  # fmt: skip
def test_what_is_not_canonical_is_refused(blank: Tab, hex_bytes: str) -> None:
    body = """const { decode } = await load("msgpack.js");
        try { decode(bytes(given)); return "taken"; } catch (error) { return error.constructor.name; }"""
    assert run(blank, body, hex_bytes) == "NotCanonical"


def test_what_is_canonical_is_read(blank: Tab) -> None:
    body = """const { decode } = await load("msgpack.js");
        const [small, large, text, octets, none, yes] = decode(bytes(given));
        return [small, String(large), text, [...octets], none, yes];"""
    hex_bytes = "96" + "7f" + "cfffffffffffffffff" + "a3c3a961" + "c40201ff" + "c0" + "c3"
    assert run(blank, body, hex_bytes) == [127, str(2**64 - 1), "éa", [1, 255], None, True]


def test_states_only_go_forward_and_memory_stays_bounded(blank: Tab) -> None:
    body = """const { Dag } = await load("dag.js"), dag = new Dag(1000);
        const event = (n) => ({ id: `e${n}`, author: { number: 1 + n % 3, name: "n" }, journal: "1", branch: 0, seq: String(n),
            hlc: String(BigInt(1000 + n) << 16n), state: "stored", entry_count: 2, prev: n ? `e${n - 3}` : null, parents: [`e${n - 1}`] });
        for (let n = 0; n < 20000; n += 1) { dag.put(event(n)); dag.advance(`e${n}`, "ordered"); dag.advance(`e${n}`, "read"); }
        const counted = dag.lanes.reduce((sum, lane) => sum + [...lane.cells.values()].reduce((all, cell) => all + cell.events, 0), 0);
        return [dag.knots.size <= 1300, counted + dag.knots.size, dag.knots.get("e19999").state, dag.above.size <= 1400];"""
    assert run(blank, body) == [True, 20_000, "ordered", True]


def test_the_verdict(blank: Tab) -> None:
    body = """const { verdict } = await load("view-overview.js");
        const base = { cluster: { members_live: 3, members: 3, finality: true }, figures: { gauges: { events_unread: 0 }, checks: [], finality: { p95_ms: 24 } }, copies: { equal: true, answered: 3, asked: 3 }, evidence: [] };
        const half = { ...base, cluster: { members_live: 1, members: 3, finality: false }, copies: { equal: true, answered: 1, asked: 3 } };
        return [verdict(base), verdict(half)];"""
    good, bad = run(blank, body)
    assert good == {
        "word": "good",
        "text": "3 of 3 nodes alive, copies equal, 0 unread, finality p95 24 ms.",
    }
    assert bad["word"] == "bad"
    assert bad["text"].startswith("Nothing can become final now: 1 of 3 nodes alive")
