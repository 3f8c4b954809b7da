"""Whatever somebody writes stays text: in payloads, streams, names; long, hidden, turned around."""

import base64
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import Tab
from tests.browser.writing import ask, stored

SCRIPT = "<img src=x onerror=window.hit=1><script>window.hit=1</script>'\"`${window.hit=1}"
TURNED = "invoice \u202e0001 RUE\u202c \u200bzero\u200dwidth \u0645\u0631\u062d\u0628\u0627"
LARGE = "x" * (1 << 20)


@pytest.fixture
def hostile(bases: list[str]) -> list[str]:
    items: list[dict[str, object]] = [
        {"data": SCRIPT},
        {"data": {SCRIPT: SCRIPT}},
        {"data_base64": base64.b64encode(SCRIPT.encode()).decode(), "content_type": "text/html"},
        {"data_base64": base64.b64encode(b"\0\xff<script>").decode()},
        {"data": TURNED, "idempotency_key": SCRIPT + TURNED},
        {"data": 1, "content_type": "application/json", "idempotency_key": "javascript:alert(1)"},
    ]
    for item in items:
        item["stream"] = "hostile"
    found = ask(f"{bases[0]}/v1/entries:batch?atomic=true&wait=read", items)
    return [result["id"] for result in found["results"]]


def harmless(tab: Tab) -> None:
    assert tab.page.evaluate("window.hit") is None
    assert tab.page.locator("main img, main script, main iframe").count() == 0


def test_payloads_stay_text_in_every_view(tab: Tab, hostile: list[str]) -> None:
    page = tab.open("entries?stream=hostile")
    expect(page.locator("tbody")).to_contain_text("<img src=x onerror=window.hit=1>")
    expect(page.locator("tbody")).to_contain_text("202e")
    harmless(tab)
    for identity in hostile:
        tab.open(f"entry/{identity}")
        tab.says("What it is")
        page.get_by_role("button", name="Check the proof").click()
        tab.says("Proven: this entry is final.")
        harmless(tab)
    tab.open(f"quipu?at={hostile[0][:64]}")
    tab.says("What was signed")
    harmless(tab)


def test_a_large_value_is_shown_in_part_and_kept_whole(tab: Tab, bases: list[str]) -> None:
    body = {"data_base64": base64.b64encode(LARGE.encode()[:-300]).decode(), "stream": "large"}
    entry = ask(f"{bases[0]}/v1/entries?wait=read", {**body, "content_type": "text/plain"})["id"]
    page = tab.open(f"entry/{entry}")
    tab.says("Keep gives all of it")
    assert page.evaluate("document.querySelector('main').textContent.length") < 100_000
    tab.open("entries?stream=large")
    expect(page.locator("tbody tr")).to_have_count(1)


@pytest.mark.parametrize("place", ["", "quipu", "entries", "cluster", "order", "consistency"])
def test_names_that_a_node_tells_stay_text(
    opened: Callable[..., Tab], bases: list[str], place: str
) -> None:
    """A node of the roster may call itself anything: here every name that the API tells does."""
    tab = opened()

    def renamed(route):  # type: ignore[no-untyped-def]
        answer = route.fetch()
        text = answer.text()
        for name in ("n1", "n2", "n3", "devnet"):
            hostile = SCRIPT.replace("\\", "\\\\").replace('"', '\\"') + TURNED
            text = text.replace(f'"{name}"', f'"{hostile}"')
        route.fulfill(response=answer, body=text)

    for path in ("node", "cluster", "cluster/members", "dag/window*", "journal", "entries*"):
        tab.page.route(f"**/v1/{path}", renamed)
    tab.open(place)
    tab.says("<img src=x" if place != "quipu" else "How to read it")
    harmless(tab)


def test_a_search_and_an_address_stay_text(tab: Tab) -> None:
    page = tab.open("search?q=" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.hit%3D1%3E")
    tab.says("Nothing fits")
    page.goto(f"{tab.base}/ui/#/entry/%3Cscript%3Ewindow.hit=1%3C%2Fscript%3E")
    tab.says("Not found")
    harmless(tab)
    tab.troubles.clear()  # the browser notes the 400


def test_the_policy_stops_markup_made_of_text(tab: Tab) -> None:
    page = tab.open()
    refused = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'taken'; }"
        " catch (error) { return error.name; } }"
    )
    assert refused == "TypeError"
    inline = (
        "() => { const one = document.createElement('script'); try { one.text = 'window.hit=1';"
    )
    inline += " document.body.append(one); } catch {} return window.hit; }"
    assert page.evaluate(inline) is None
    tab.troubles.clear()  # the browser notes what it refused


def test_stored_ids_are_links_to_this_page_alone(tab: Tab, bases: list[str]) -> None:
    stored(bases[0], {"url": "javascript:alert(1)"}, stream="hostile")
    page = tab.open("entries?stream=hostile")
    page.locator("tbody tr").first.wait_for()
    links = page.eval_on_selector_all("main a", "all => all.map((one) => one.getAttribute('href'))")
    assert all(link.startswith("#/") for link in links)
