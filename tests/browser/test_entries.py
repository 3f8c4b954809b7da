"""Entries: filters, live, writing one, and its proof checked in the browser."""

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.browsing import Tab
from tests.browser.writing import ask, stored


def test_filters_stand_in_the_address(tab: Tab, bases: list[str]) -> None:
    stored(bases[1], {"needle": 1}, stream="hay")
    page = tab.open("entries")
    page.get_by_label("Stream", exact=True).fill("hay")
    page.get_by_label("Node", exact=True).fill("n2")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile(r"stream=hay&author=n2"))
    rows = page.locator("tbody tr")
    expect(rows.first).to_contain_text("needle")
    page.reload()
    expect(page.get_by_label("Stream", exact=True)).to_have_value("hay")
    expect(rows.first).to_contain_text("needle")
    page.get_by_label("Node", exact=True).fill("nobody")
    page.get_by_role("button", name="Show").click()
    tab.says("no member has that id, number or name")
    assert all("400" in trouble for trouble in tab.troubles)
    tab.troubles.clear()


def test_pages_lead_on_and_back(tab: Tab, bases: list[str]) -> None:
    items = [{"data": number, "stream": "pages"} for number in range(70)]
    ask(f"{bases[0]}/v1/entries:batch?atomic=true&wait=read", items)
    page = tab.open("entries?stream=pages&order=asc")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next page").click()
    expect(rows).to_have_count(20)
    page.get_by_role("button", name="Back").click()
    expect(rows).to_have_count(50)


def test_live_shows_what_becomes_final(tab: Tab, bases: list[str]) -> None:
    page = tab.open("entries?stream=orders")
    page.get_by_role("button", name="Live").click()
    tab.says("Live: entries appear")
    stored(bases[2], {"seen": "live"}, stream="orders")
    stored(bases[2], {"not": "this"}, stream="others")
    expect(page.locator("tbody")).to_contain_text('{"seen":"live"}')
    expect(page.locator("tbody")).not_to_contain_text("not")


def test_an_entry_is_written_and_watched(tab: Tab) -> None:
    page = tab.open("submit")
    page.get_by_label("Stream", exact=True).fill("orders")
    page.get_by_label("Data", exact=True).fill('{"order": 8, "large": 12345678901234567890}')
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".way .done")).to_have_count(3)
    expect(page.locator("main")).to_contain_text("Confirmed by")
    page.locator("h2 a.id").click()
    tab.says("What it says")
    page.goto(f"{tab.base}/ui/#/submit")
    page.get_by_label("Data", exact=True).fill("{broken")
    page.get_by_role("button", name="Submit").click()
    tab.says("The data is no JSON")
    page.locator("select[name=type]").select_option("text/plain")
    page.get_by_label("Data", exact=True).fill("plain words ✓")
    page.get_by_role("button", name="Submit").click()
    page.locator("h2 a.id").click()
    tab.says("plain words ✓")


def test_data_is_shown_byte_for_byte(tab: Tab, bases: list[str]) -> None:
    text = '{"n": 12345678901234567890123, "s":  "a,\\"data\\":}"}'
    import base64

    body = {
        "data_base64": base64.b64encode(text.encode()).decode(),
        "content_type": "application/json",
    }
    entry = ask(f"{bases[0]}/v1/entries?wait=read", body)["id"]
    page = tab.open(f"entry/{entry}")
    tab.says(f"({len(text)} bytes)")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Keep", exact=True).click()
    assert saved.value.path().read_text() == text


def test_a_proof_is_checked_here(tab: Tab, bases: list[str]) -> None:
    items = [{"data": {"order": number}, "stream": "orders"} for number in range(9)]
    results = ask(f"{bases[1]}/v1/entries:batch?atomic=true&wait=read", items)["results"]
    page = tab.open(f"entry/{results[6]['id']}")
    page.get_by_role("button", name="Check the proof").click()
    tab.says("Proven: this entry is final.")
    steps = page.locator(".steps li")
    text = " ".join(steps.all_inner_texts())
    for words in ("SHA-256 of the genesis", "Ed25519 of n2", "leaf 6 of 9: 4 hashes", "Receipt 1"):
        assert words in text
    assert steps.locator(".sign.bad").count() == 0
    cluster = ask(f"{bases[0]}/v1/node")["cluster_id"]
    expect(page.locator("main")).to_contain_text(cluster)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Keep the proof").click()
    from quipu.verify import verify

    assert verify(saved.value.path().read_bytes()).index == 6


def test_a_forged_proof_is_refused(tab: Tab, bases: list[str]) -> None:
    entry = stored(bases[0], {"order": "forged"})

    def forged(route):  # type: ignore[no-untyped-def]
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.body().replace(b"forged", b"gefort"))

    tab.page.route("**/proof", forged)
    page = tab.open(f"entry/{entry}")
    page.get_by_role("button", name="Check the proof").click()
    tab.says("Not proven")
    expect(page.locator(".steps li").last).to_contain_text("the path leads to another root")


def test_a_browser_without_cryptography_says_the_way_out(
    opened: Callable[..., Tab], bases: list[str]
) -> None:
    tab = opened()
    tab.page.add_init_script("Object.defineProperty(crypto, 'subtle', { value: undefined })")
    page = tab.open(f"entry/{stored(bases[0], 1)}")
    page.get_by_role("button", name="Check the proof").click()
    tab.says("ssh -L 8470:localhost:8470")


def test_a_browser_without_ed25519_says_so(opened: Callable[..., Tab], bases: list[str]) -> None:
    tab = opened()
    tab.page.add_init_script(
        "crypto.subtle.importKey = () => "
        "Promise.reject(new DOMException('no', 'NotSupportedError'))"
    )
    page = tab.open(f"entry/{stored(bases[0], 1)}")
    page.get_by_role("button", name="Check the proof").click()
    tab.says("this browser knows no Ed25519")
