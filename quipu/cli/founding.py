"""`quipu init`."""

import json
import sys

from quipu.node import program
from quipu.node.data_directory import GENESIS_FILE, open_directory
from quipu.node.exits import DirectoryTaken
from quipu.node.settings import Settings


def init_node(settings: Settings, as_json: bool) -> None:
    path = settings.node.data_dir
    if (path / GENESIS_FILE).exists():
        raise DirectoryTaken(f"{path} holds a node already", "`quipu run` starts it.")
    directory = open_directory(path, program.founding(settings))
    try:
        program.open_store_of(directory).close()
    finally:
        directory.close()
    facts = {
        "node_id": directory.key.node_id.hex(),
        "cluster_id": directory.cluster_id.hex(),
        "data_dir": str(directory.path),
    }
    if as_json:
        print(json.dumps(facts))
        return
    for name, value in facts.items():
        print(f"{name:<11} {value}")
    print("Keep node.key safe and secret: it is who this node is.", file=sys.stderr)
