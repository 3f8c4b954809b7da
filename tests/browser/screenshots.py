"""`make screenshots`: each view light, dark and on a phone, and the states that are seldom seen.

Real nodes; only what no desk machine has (32 members) and what must not last (a node that does not
answer) is told to the page in the node's place.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from playwright.sync_api import Browser, Page, Route

from quipu.devnet import Devnet
from tests import tree
from tests.browser.browsing import Tab, context, launched
from tests.browser.writing import ask, stored, writing
from tests.process.cluster import wait_until
from tests.process.command import quipu

FOLDER = tree.ROOT / "docs" / "screenshots"
SETTLED_MS = 1_800
WIDE, PHONE = {"width": 1200, "height": 740}, {"width": 360, "height": 780}
MEMBERS = 32
VIEWS = {
    "overview": "",
    "quipu": "quipu",
    "entries": "entries",
    "cluster": "cluster",
    "order": "order",
    "consistency": "consistency",
}

# What is there once a view has been told all that it asks for: no picture is of a page that waits.
LOADED = {
    "cluster": ["● sees", "● all"],
    "order": ["● none", "● running", "● active"],
    "consistency": ["hold the same in"],
}
WAITS = "() => !/Asking the|Reading/.test(document.querySelector('#view').innerText)"


def take(page: Page, name: str) -> None:
    page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
    print(f"docs/screenshots/{name}.png", file=sys.stderr)


def views(browser: Browser, base: str, looks: dict[str, dict[str, Any]]) -> None:
    entry = ask(f"{base}/v1/entries?order=desc&limit=1")["items"][0]["id"]
    for look, how in looks.items():
        tab = Tab(context(browser, **how).new_page(), base)
        for name, place in VIEWS.items():
            page = tab.open(place)
            for text in LOADED.get(name, []):
                tab.says(text)
            tab.until(WAITS)
            page.wait_for_timeout(SETTLED_MS)
            take(page, f"{name}-{look}")
        page = tab.open(f"entry/{entry}")
        page.get_by_role("button", name="Check the proof").click()
        tab.says("Proven: this entry is final.")
        page.get_by_role("heading", name="Proof", exact=True).scroll_into_view_if_needed()
        take(page, f"proof-{look}")
        page.goto(f"{base}/docs")
        page.wait_for_timeout(SETTLED_MS)
        take(page, f"docs-{look}")
        page.context.close()


def chosen(browser: Browser, base: str) -> None:
    """A knot with its cones."""
    event = ask(f"{base}/v1/dag/window?before=12")["items"][4]["id"]
    tab = Tab(context(browser, viewport=WIDE).new_page(), base)
    page = tab.open(f"quipu?at={event}")
    page.wait_for_timeout(SETTLED_MS)
    take(page, "quipu-chosen")
    page.context.close()


def one(browser: Browser, base: str, name: str, place: str, told: Callable[[Page], None]) -> None:
    tab = Tab(context(browser, viewport=WIDE).new_page(), base)
    told(tab.page)
    page = tab.open(place)
    page.wait_for_timeout(SETTLED_MS)
    take(page, name)
    page.context.close()


def many(page: Page) -> None:
    """As a cluster of 32 would tell of itself: six of them not alive."""
    answer: dict[str, Any] = {}

    def members(route: Route) -> None:
        items = route.fetch().json()["items"]
        rows = [
            {
                **items[place % len(items)],
                "number": place + 1,
                "name": f"n{place + 1}",
                "node_id": f"{place + 1:02x}" * 32,
                "is_self": place == 0,
                "state": "dead" if place % 6 == 5 else "alive",
            }
            for place in range(MEMBERS)
        ]
        answer["rows"] = rows
        route.fulfill(json={"items": rows})

    def window(route: Route) -> None:
        told = route.fetch().json()
        for place, event in enumerate(told["items"]):
            number = place * 7 % MEMBERS + 1
            event["author"] = {**event["author"], "number": number, "name": f"n{number}"}
        route.fulfill(json=told)

    def cluster(route: Route) -> None:
        told = route.fetch().json()
        route.fulfill(json={**told, "members": MEMBERS, "members_live": 27, "max_confirms": 16})

    page.route("**/v1/cluster/members", members)
    page.route("**/v1/dag/window*", window)
    page.route("**/v1/cluster", cluster)


def broken(page: Page) -> None:
    page.route("**/v1/**", lambda route: route.abort())


def slow(page: Page) -> None:
    page.route("**/v1/**", lambda route: None)


def refused(page: Page) -> None:
    body = {"title": "No token", "status": 401, "detail": "the request has no bearer token"}
    said = json.dumps({**body, "code": "unauthenticated", "retryable": False})
    page.route("**/v1/**", lambda route: route.fulfill(status=401, body=said))


def is_published(base: str) -> bool:
    try:
        ask(f"{base}/v1/sequences/invoices:publish", {"data": "invoice 1"})
    except HTTPError:
        return False
    return True


def client_of_the_order(net: Devnet) -> None:
    """One that has done something, on all executors."""
    with tempfile.TemporaryDirectory() as folder:
        state = str(Path(folder) / "client.json")
        for words in (
            ("client", "new", "--state", state, "--allow", "stock*=read,write,schema"),
            ("client", "execute", "CREATE TABLE stock (item TEXT)", "--state", state),
            ("client", "execute", "INSERT INTO stock VALUES (?)", "wool", "--state", state),
        ):
            done = quipu(*words, "--url", net.nodes[0].api)
            assert done.returncode == 0, (words, done.stderr)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        lone = Devnet.make(Path(folder) / "lone", 1, is_tied=True)
        try:
            one(browser, lone.nodes[0].api, "empty", "quipu", lambda page: None)
            for number in range(12):
                stored(lone.nodes[0].api, {"order": number}, stream="orders")
            one(browser, lone.nodes[0].api, "one-node", "", lambda page: None)
        finally:
            lone.down()
        net = Devnet.make(Path(folder) / "net", 3, is_tied=True)
        bases = [node.api for node in net.nodes]
        wait_until(lambda: is_published(bases[0]), "somebody leads the order")
        client_of_the_order(net)
        for number in range(20):
            stored(bases[number % 3], {"order": number, "item": "wool"}, stream="orders")
        try:
            with writing(bases, per_s=3, entries=4):
                looks: dict[str, dict[str, Any]] = {
                    "light": {"viewport": WIDE},
                    "dark": {"viewport": WIDE, "color_scheme": "dark"},
                    "phone": {"viewport": PHONE},
                }
                views(browser, bases[0], looks)
                chosen(browser, bases[0])
            one(browser, bases[0], "many-nodes", "quipu", many)
            one(browser, bases[0], "error", "", broken)
            one(browser, bases[0], "loading", "", slow)
            one(browser, bases[0], "no-token", "entries", refused)
        finally:
            net.down()


if __name__ == "__main__":
    main()
