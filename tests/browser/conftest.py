"""One real cluster of three and one Chromium for all tests of the page: they run on one worker.

Both end with the last of them: while Playwright is there, its event loop is the one of this thread,
and no other test could run one.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api", reason="no Playwright here: make install brings it")

from playwright.sync_api import Browser, expect

from quipu.devnet import Devnet
from tests.browser.browsing import ANSWER_MS, Tab, chromium, context, launched
from tests.browser.writing import stored

HERE = Path(__file__).parent
expect.set_options(timeout=ANSWER_MS)


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == HERE:
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="package")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Devnet]:
    made = Devnet.make(tmp_path_factory.mktemp("page") / "net", 3, is_tied=True)
    try:
        for node in made.nodes:
            for number in range(5):
                stored(node.api, {"order": number, "by": node.name}, stream="orders")
        yield made
    finally:
        made.down()


@pytest.fixture(scope="package")
def bases(net: Devnet) -> list[str]:
    return [node.api for node in net.nodes]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip("no chromium here: make system installs it")
    with launched() as found:
        yield found


@pytest.fixture
def opened(browser: Browser, bases: list[str]) -> Iterator[Callable[..., Tab]]:
    """Opens tabs, each with how its context is made; none of them may complain of anything."""
    tabs: list[Tab] = []

    def open_tab(base: str = "", **how: object) -> Tab:
        tab = Tab(context(browser, **how).new_page(), base or bases[0])
        tabs.append(tab)
        return tab

    yield open_tab
    for tab in tabs:
        tab.page.context.close()
    assert [trouble for tab in tabs for trouble in tab.troubles] == []


@pytest.fixture
def tab(opened: Callable[..., Tab]) -> Tab:
    return opened()
