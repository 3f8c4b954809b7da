"""The documents keep up with the tree."""

import re
from pathlib import PurePosixPath

import pytest

from quipu.node import failpoints
from tests import dumps_page, settings_page, torture_page, tree

DOCUMENTS = tuple(n for n in tree.text_files() if n.endswith(".md"))
RECORDS = tuple(n for n in DOCUMENTS if re.fullmatch(r"docs/adr/\d{4}-.*\.md", n))
LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(name: str) -> set[str]:
    titles = HEADING.findall(FENCED.sub("", tree.read(name)))
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}


def make_targets() -> list[str]:
    return re.findall(r"^([a-z][a-z-]*):", tree.read("Makefile"), re.MULTILINE)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_resolve(name: str) -> None:
    for link in LINK.findall(FENCED.sub("", tree.read(name))):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = tree.ROOT / PurePosixPath(name).parent / path if path else tree.ROOT / name
        assert target.exists(), f"{name} links to {link}"
        if anchor:
            inside = target.resolve().relative_to(tree.ROOT).as_posix()
            assert anchor in anchors(inside), f"{name} links to {link}"


def test_tests_that_documents_name_are_there() -> None:
    for name in DOCUMENTS:
        for file in re.findall(r"`(tests/[a-z_/]+\.py)`", tree.read(name)):
            assert (tree.ROOT / file).is_file(), f"{name}: {file}"


def test_every_make_target_is_described() -> None:
    described = tree.read("README.md") + tree.read("docs/development.md")
    assert make_targets()
    missing = [t for t in make_targets() if not re.search(rf"make {t}(?![\w-])", described)]
    assert missing == []


def test_no_document_names_a_missing_make_target() -> None:
    targets = set(make_targets())
    for name in DOCUMENTS:
        for command in re.findall(r"`make ([a-z][a-z-]*)[^`]*`", tree.read(name)):
            assert command in targets, f"{name}: make {command}"


def test_make_help_lists_every_target() -> None:
    listed = re.findall(r"^([a-z][a-z-]*):.*## ", tree.read("Makefile"), re.MULTILINE)
    assert listed == make_targets()


def test_every_decision_is_in_the_index() -> None:
    index = tree.read("docs/adr/README.md")
    assert RECORDS
    for number, name in enumerate(sorted(RECORDS), 1):
        file = name.removeprefix("docs/adr/")
        assert file.startswith(f"{number:04d}-"), "numbers have no holes"
        title = tree.read(name).splitlines()[0].removeprefix("# ")
        assert f"[{title}]({file})" in index


@pytest.mark.parametrize("name", RECORDS)
def test_decisions_have_their_parts(name: str) -> None:
    for part in ("Status", "Context", "Decision", "Consequences"):
        assert f"\n## {part}\n" in tree.read(name)


def test_changelog_has_an_unreleased_section() -> None:
    assert "\n## Unreleased\n" in tree.read("CHANGELOG.md")


def test_every_document_is_reached_from_the_readme() -> None:
    reached, waiting = set[str](), ["README.md"]
    while waiting:
        name = waiting.pop()
        if name in reached or not name.endswith(".md"):
            continue
        reached.add(name)
        for link in LINK.findall(tree.read(name)):
            path = (tree.ROOT / PurePosixPath(name).parent / link.partition("#")[0]).resolve()
            if path.is_relative_to(tree.ROOT) and path.is_file():
                waiting.append(path.relative_to(tree.ROOT).as_posix())
    unreached = {n for n in DOCUMENTS if n.startswith("docs/")} - reached
    assert unreached - {"docs/adr/template.md"} == set()


def test_the_page_of_settings_is_what_the_code_says() -> None:
    assert tree.read(settings_page.PAGE) == settings_page.page(), "make figures writes it anew"


@pytest.mark.parametrize("name", dumps_page.PARTS)
def test_tables_and_checks_are_what_the_code_says(name: str) -> None:
    assert tree.read(name) == dumps_page.page(name), "make figures writes it anew"


def test_each_promise_of_the_threat_model_has_a_test() -> None:
    text = tree.read("docs/threat-model.md").partition("## What holds")[2]
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line][1:]
    assert rows
    for row in rows:
        named = re.search(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", row)
        assert named is not None, row
        assert f"def {named[2]}(" in tree.read(named[1]), row


def test_harms_and_misdeeds_are_what_the_code_says() -> None:
    assert tree.read(torture_page.PAGE) == torture_page.page(), "make figures writes it anew"


def test_every_failpoint_is_described() -> None:
    described = tree.read("docs/development.md")
    for site, meaning in failpoints.SITES.items():
        assert f"| `{site}` | {meaning} |" in described
