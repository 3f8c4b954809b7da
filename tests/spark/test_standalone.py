"""A Spark master with two workers on loopback, and the job out of an installed wheel."""

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from quipu.spark_analytics.requirements import java_command
from tests.process.cluster import wait_until
from tests.spark.conftest import QUICK_JVM
from tests.spark.ledgers import World, write_all
from tests.wheels import built_wheel

SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
STARTED_S, SUBMITTED_S = 300.0, 900.0  # six JVMs, on a machine that does other things as well
PLACE = re.compile(r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")


def environment(site: Path) -> dict[str, str]:
    """The package comes from the wheel: by the path that is looked at first."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK", "QUIPU"))}
    return kept | {
        "JAVA_HOME": str(Path(java_command()).resolve().parent.parent),
        "PYTHONPATH": str(site),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def daemon(folder: Path, role: str, *arguments: str, **environ: str) -> Iterator[Path]:
    """A master or a worker, ended whatever happens; what it says is in this file."""
    said = folder / f"{role}-{len(list(folder.glob('*.log')))}.log"
    name = f"org.apache.spark.deploy.{role}.{role.capitalize()}"
    command = [str(SPARK_HOME / "bin" / "spark-class"), name, "--host", "127.0.0.1"]
    with said.open("w") as log:
        process = subprocess.Popen(
            [*command, "--port", "0", "--webui-port", "0", *arguments],
            env=environ,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield said
        finally:
            process.terminate()
            process.wait()


def says(log: Path, form: re.Pattern[str]) -> str:
    def is_said() -> bool:
        return form.search(log.read_text()) is not None

    wait_until(is_said, f"{form.pattern} in {log.name}", STARTED_S)
    found = form.search(log.read_text())
    assert found is not None
    return found[found.re.groups]


@contextmanager
def standalone(folder: Path, environ: dict[str, str]) -> Iterator[tuple[str, list[Path]]]:
    """The master's address, and where its workers keep what their executors said."""
    homes = [folder / f"worker-{number}" for number in range(WORKERS)]
    given = ("--cores", "1", "--memory", "700m")
    with daemon(folder, "master", **environ) as log:
        master = says(log, PLACE)
        with (
            daemon(folder, "worker", *given, "-d", str(homes[0]), master, **environ) as one,
            daemon(folder, "worker", *given, "-d", str(homes[1]), master, **environ) as other,
        ):
            for worker in (one, other):
                says(worker, re.compile("Successfully registered with master"))
            yield master, homes


@pytest.mark.timeout(1_800)
@pytest.mark.usefixtures("java")
def test_a_job_from_a_wheel_on_two_workers(tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(built_wheel(tmp_path)) as wheel:
        wheel.extractall(site)
    job = site / "quipu" / "spark_analytics" / "__main__.py"
    world = World()
    world.live(2)
    dumps = world.dumps()
    lost = world.read[-1].id
    dumps[1].drop(lost)
    paths = write_all(world, dumps, tmp_path / "dumps")
    environ, out = environment(site), tmp_path / "out"
    settings = {
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": QUICK_JVM,
        "spark.driver.extraJavaOptions": QUICK_JVM,
        "spark.driver.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(site),
    }
    with standalone(tmp_path, environ) as (master, homes):
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", master]
        submit += [
            part for name, value in settings.items() for part in ("--conf", f"{name}={value}")
        ]
        done = subprocess.run(
            [*submit, str(job), *map(str, paths), "--engine", "dataframe", "--out", str(out)],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SUBMITTED_S,
        )
        assert done.returncode == 9, done.stderr[-3_000:]
        assert f"copies.missing n2 {lost.hex()}" in done.stdout
        said = json.loads((out / "report.json").read_text())
        assert {copy["copy"] for copy in said["copies"]} == {"n1", "n2", "n3"}
        for home in homes:  # each has run an executor
            assert list(home.glob("app-*/*/stderr"))
