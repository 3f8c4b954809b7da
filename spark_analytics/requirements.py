"""What has to be there before Spark starts, each thing that is missing in one sentence."""

import os
import re
import shutil
import subprocess

from quipu.spark_analytics import limits


class Missing(Exception):
    """What is missing, and what to do next."""

    def __init__(self, what: str, next_step: str) -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


def java_command() -> str:
    """The Java that Spark will use. Raises `Missing`."""
    home = os.environ.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java")
    step = (
        f"Install a Java runtime {limits.JAVA_OLDEST}: apt-get install "
        f"openjdk-{limits.JAVA_OLDEST}-jre-headless; or set JAVA_HOME."
    )
    if found is None or not os.access(found, os.X_OK):
        raise Missing(f"there is no Java{f' in JAVA_HOME={home}' if home else ''}", step)
    command = [found, "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    said = done.stderr
    version = re.search(r'version "(\d+)', said)
    if version is None:
        raise Missing(f"{found} says no version", step)
    if int(version[1]) < limits.JAVA_OLDEST:
        raise Missing(f"{found} is Java {version[1]}, Spark needs {limits.JAVA_OLDEST}", step)
    return found


def check_pyspark() -> None:
    """Raises `Missing`."""
    step = "pip install 'quipu[analytics]'"
    try:
        import pyspark
    except ImportError as error:
        raise Missing("pyspark is not installed", step) from error
    if not pyspark.__version__.startswith(f"{limits.SPARK_SERIES}."):
        what = f"pyspark is {pyspark.__version__}, the GraphFrames jar is for {limits.SPARK_SERIES}"
        raise Missing(what, step)


def check_graphframes() -> None:
    """Raises `Missing`."""
    try:
        import graphframes  # noqa: F401  # whether it is there is the question
    except ImportError as error:
        raise Missing(
            "graphframes-py is not installed", "pip install 'quipu[analytics]'"
        ) from error
