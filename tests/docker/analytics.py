"""The analytics image in use: a cluster that runs from it, and a Spark job over its nodes' dumps.

`make analytics-test`, as root. It builds a base and both images, which fetches Java and Spark once,
starts three nodes, submits to each, and judges the job by what `docker/analyse` says and ends with.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

from tests.docker.conftest import DOCKER
from tests.docker.engine import engine, images_folder, lacking
from tests.docker.test_containers import NAMES, Containers

ENTRIES = 5  # at each node
AGREE = re.compile(r"3 copies of \d+ events agree; every check passed")


def main() -> int:
    lack = lacking()
    if lack:
        print(f"make analytics-test: {lack}", file=sys.stderr)
        return 2
    images = images_folder()
    with tempfile.TemporaryDirectory(prefix="quipu-analytics-") as folder:
        authority = Path(folder) / "bundle.crt"
        given = os.environ.get("PIP_CERT")
        trusted: list[str | Path] = ["--ca", authority] if given else []
        if given:
            authority.write_bytes(Path(given).read_bytes())
        with engine(images, is_apart=False) as builder:
            base = builder.run(DOCKER / "base").stdout.strip()
            build: list[str | Path] = [DOCKER / "build", "--base", base, "--analytics", *trusted]
            print(builder.run(*build).stdout.strip(), flush=True)
        with engine(images, is_apart=True) as running:
            running.docker("container", "prune", "--force")
            running.docker("volume", "prune", "--force")
            print(running.run(DOCKER / "up", "--analytics").stdout.strip(), flush=True)
            told = running.run(DOCKER / "compose", "exec", "-T", "n1", "cat", "/founding/app.token")
            three = Containers(running, told.stdout.strip())
            ids = [three.submit(name, order) for name in NAMES for order in range(ENTRIES)]
            for name in NAMES:
                three.read_at(name, ids[-1])
            done = running.run(DOCKER / "analyse", check=False)
            print(done.stdout, done.stderr, sep="\n", flush=True)
            running.run(DOCKER / "compose", "down", "--volumes")
    if done.returncode != 0 or AGREE.search(done.stdout + done.stderr) is None:
        print("the job did not find that the copies agree", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
