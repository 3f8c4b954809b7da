"""What `quipu export` does."""

from pathlib import Path

from quipu.cli.admin_socket import running_node
from quipu.cli.progress import Bar
from quipu.cli.remote import fail
from quipu.cli.storing import bar, named_errors, show
from quipu.node.data_directory import open_directory
from quipu.node.exits import Exit
from quipu.node.pruning import note_archived
from quipu.node.settings import Settings

WAY_OUT = "Install what dumps need: pip install 'quipu[dumps]'"


def export(settings: Settings, target: Path, entries: str, as_json: bool) -> None:
    from quipu.dumps.manifest import ENTRIES_CHOICES

    target = target.absolute()
    if entries not in ENTRIES_CHOICES:
        fail(f"--entries is one of: {', '.join(ENTRIES_CHOICES)}", Exit.USAGE)
    node = running_node(settings)
    if node is not None:
        asked = {"target": str(target), "entries": entries}
        show(node.finish(node.ask("POST", "/v1/admin/exports", asked)), as_json)
        return
    try:
        from quipu.storage.export import ExportOrder, export_store
    except ImportError as error:
        fail(f"{error}\n  {WAY_OUT}", Exit.FAILURE)
    from quipu.dumps.manifest import finish
    from quipu.storage.environment import last_commit_ms

    directory = open_directory(settings.node.data_dir, None)
    try:
        with named_errors(), bar() as report:
            store = directory.store_path
            as_of_ms = last_commit_ms(store)
            order = ExportOrder(
                store, target, directory.genesis, entries, as_of_ms, settings.executor_dir
            )
            done = export_store(order, report)
            finish(target, directory.key.sign)
            note_archived(directory.path, done["feed_upto"], target)
    finally:
        directory.close()
    show(done, as_json)


def verify(folder: Path, signatures: bool, as_json: bool) -> Exit:
    try:
        from quipu.dumps.checking import check_contents, check_files
    except ImportError as error:
        fail(f"{error}\n  {WAY_OUT}", Exit.FAILURE)
    shown = Bar()
    checked = check_files(folder, shown.show)
    problems = list(checked.problems)
    if checked.manifest is not None:
        problems += check_contents(checked, signatures)
    shown.end()
    for problem in problems:
        if not as_json:
            print(problem)
    found = checked.manifest
    facts: dict[str, object] = {"dump": str(folder), "problems": len(problems)}
    if found is not None:
        facts |= {
            "cluster_id": found.cluster_id,
            "node_id": found.node_id,
            "number": found.number,
            "events": found.events,
            "read": found.read,
            "taken_ms": found.taken_ms,
        }
    if as_json:
        facts["found"] = [problem._asdict() for problem in problems]
    show(facts, as_json)
    if not problems:
        return Exit.OK
    unreadable = all(problem.is_unreadable for problem in problems)
    return Exit.PARTLY if unreadable else Exit.NOT_VERIFIED
