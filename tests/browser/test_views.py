"""Every view shows what the cluster is, and every control of the frame does what it says."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from quipu.devnet import Devnet
from quipu.ledger.signing import KeyPair
from tests.browser.browsing import Tab
from tests.browser.writing import ask, stored, writing

VIEWS = {
    "": "3 of 3 nodes alive",
    "quipu": "How to read it",
    "entries": "orders",
    "cluster": "● sees",
    "order": "leads regime",
    "consistency": "hold the same in",
    "submit": "New entry",
}


@pytest.mark.parametrize(("place", "text"), VIEWS.items())
def test_a_view_says_what_is(tab: Tab, place: str, text: str) -> None:
    tab.open(place)
    tab.says(text)


def test_the_bar_leads_to_every_view_and_says_where_one_is(tab: Tab) -> None:
    page = tab.open()
    for name in ("Quipu", "Entries", "Cluster", "Order", "Consistency", "Overview"):
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page).to_have_title(f"{name} · Quipu")
        expect(page.locator("#views a[aria-current]")).to_have_text(name)


def test_the_verdict_counts_and_the_tiles_move(tab: Tab, bases: list[str]) -> None:
    page = tab.open()
    expect(page.locator("h1.verdict")).to_contain_text("copies equal")
    before = page.locator(".tile .figure").first.inner_text()
    with writing(bases):
        expect(page.locator(".tile .figure").first).not_to_have_text(before)
    expect(page.locator(".sparkline")).to_have_count(6)


def test_theme_is_chosen_and_kept(tab: Tab) -> None:
    page = tab.open()
    theme = page.get_by_role("button", name=re.compile("^Theme"))
    seen = set()
    for _ in range(3):
        theme.click()
        seen.add((theme.inner_text(), page.evaluate("document.documentElement.dataset.theme")))
    assert seen == {("Light", "light"), ("Dark", "dark"), ("Auto", "light")}
    theme.click()
    theme.click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_token_is_kept_for_the_tab_and_sent(tab: Tab) -> None:
    page = tab.open()
    page.get_by_role("button", name="Token").click()
    page.get_by_label("Bearer token").fill("a-secret")
    with page.expect_request(
        lambda request: request.headers.get("authorization") == "Bearer a-secret"
    ):
        page.get_by_role("button", name="Keep").click()
    expect(page.locator("#token-open")).to_have_text("Token ✓")
    page.get_by_role("button", name="Token").click()
    page.get_by_role("button", name="Forget").click()
    expect(page.locator("#token-open")).to_have_text("Token")
    assert page.evaluate("sessionStorage.length") == 0


def test_search_finds_whatever_is_pasted(tab: Tab, bases: list[str]) -> None:
    entry = stored(bases[1], "find me", stream="needles")
    page = tab.open()
    box = page.get_by_role("searchbox")
    for text, leads_to in (
        (entry, f"#/entry/{entry}"),
        (entry[:64], f"#/quipu?at={entry[:64]}"),
        (entry[:14], f"#/quipu?at={entry[:64]}"),
    ):
        box.fill(text)
        box.press("Enter")
        page.wait_for_url(f"**/{leads_to}")
    for text, found in (("needl", "needles"), ("n2", "in the cluster"), ("zz-no", "Nothing fits")):
        page.keyboard.press("Escape")
        box.fill(text)
        box.press("Enter")
        tab.says(found)


def test_the_order_shows_its_entries_and_sequences(tab: Tab, bases: list[str]) -> None:
    ask(f"{bases[0]}/v1/sequences/invoices:publish", {"data": "invoice 1"})
    tab.open("order")
    tab.says("invoices")
    expect(tab.page.get_by_role("table", name="Nodes in the order")).to_contain_text("master")
    rows = tab.page.get_by_role("table", name=re.compile("Entries of the log")).locator("tbody tr")
    assert rows.count() > 3


def test_executors_and_clients_stand_beside_the_order(tab: Tab, bases: list[str]) -> None:
    page = tab.open("order")
    tab.says("None yet. A client signs numbered requests")
    key = KeyPair.from_seed(b"looked at".ljust(32, b"."))
    rights = [{"tables": "<b>stock*", "rights": ["read", "write"]}]
    ask(f"{bases[1]}/v1/clients", {"public_key": key.node_id.hex(), "rights": rights})
    rows = page.get_by_role("table", name="Clients of the order").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("● active")
    expect(rows).to_contain_text("<b>stock*: read, write")
    executors = page.get_by_role("table", name="Executors").locator("tbody tr")
    expect(executors.get_by_text("● running")).to_have_count(3)
    expect(page.get_by_role("table", name="Executors")).not_to_contain_text("differs")


def test_an_executor_that_differs_is_marked(tab: Tab) -> None:
    page = tab.open("order")
    script = """async (base) => {
        const { executorRows } = await import(base + "view-order.js");
        const at = (digest) => ({ executor: "running", applied: 9, executed: 9, digest });
        const rows = [[{ name: "n1" }, at("aa")], [{ name: "n2" }, at("bb")],
            [{ name: "n3" }, null], [{ name: "n4" }, { ...at("cc"), executed: 7 }]];
        const text = (cell) => cell.textContent ?? String(cell);
        return executorRows(rows).map((row) => row.map(text).join(" | "));
    }"""
    told = page.evaluate(script, f"{tab.base}/ui/")
    assert ["differs" in row for row in told] == [True, True, False, False]
    assert "does not answer" in told[2]
    assert " | 2 | " in told[3]


def test_the_matrices_show_who_hears_and_who_lags(tab: Tab) -> None:
    page = tab.open("cluster")
    seen = page.get_by_role("table", name="Who sees whom")
    expect(seen.get_by_text("● sees")).to_have_count(6)
    receipts = page.get_by_role("table", name=re.compile("Receipts"))
    expect(receipts.get_by_text("● all")).to_have_count(9)


def test_a_published_report_is_shown(tab: Tab, net: Devnet, bases: list[str]) -> None:
    from quipu.cli.admin_socket import AdminSocket

    event = stored(bases[0], 1)[:64]
    check = {"check": "copies.missing", "meaning": "nothing is missing", "count": 1}
    report = {
        "verdict": "3 copies of 7 events: 1 finding in copies.missing.",
        "exit_code": 9,
        "made_ms": 1_790_000_000_000,
        "engine": "dataframe",
        "checks": [{**check, "examples": [{"check": "copies.missing", "event": event}]}],
    }
    node = AdminSocket(net.data_of(net.node(1)) / "admin.sock", "n1")
    page = tab.open("consistency")
    tab.says("None was published yet")
    node.ask("PUT", "/v1/reports/last", report)
    page.reload()
    tab.says("1 finding in copies.missing")
    expect(page.get_by_role("link", name=event[:8])).to_be_visible()


def test_docs_reads_the_interface(tab: Tab) -> None:
    tab.page.goto(f"{tab.base}/docs#submit")
    expect(tab.page.locator("#submit")).to_contain_text("POST")
    expect(tab.page.locator("#submit pre").first).to_contain_text('"order": 7')
    listed = len([1 for path in ask(f"{tab.base}/openapi.json")["paths"].values() for _ in path])
    expect(tab.page.locator(".operation")).to_have_count(listed)


def test_it_works_behind_a_path(tab: Tab, bases: list[str]) -> None:
    """As a proxy would: everything below /ledger/ is handed on without it."""
    tab.page.route(
        "**/ledger/**",
        lambda route: route.fulfill(
            response=route.fetch(url=route.request.url.replace("/ledger/", "/"))
        ),
    )
    tab.page.goto(f"{bases[0]}/ledger/ui/#/entries")
    tab.says("orders")
    tab.page.goto(f"{bases[0]}/ledger/docs")
    tab.says("Store one entry")


def test_what_is_wrong_is_said(opened: Callable[..., Tab]) -> None:
    tab = opened()
    tab.open("entry/" + "ab" * 32 + ":0")
    tab.says("Not found")
    expect(tab.page.get_by_role("link", name="What this means and what to do")).to_be_visible()
    assert all("404" in trouble for trouble in tab.troubles)
    tab.troubles.clear()
