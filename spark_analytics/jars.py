"""The GraphFrames jar: the user's, the cached one, or fetched by the Ivy that comes with Spark.

Upstream first; where that is not to be had, Apache Sedona's bundle, which carries the same classes.
Spark finds a repository as it always does: by its own defaults, or by the user's Ivy settings.
"""

import os
import shutil
import subprocess
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from quipu.spark_analytics import limits
from quipu.spark_analytics.requirements import Missing, java_command

MARKER = "org/graphframes/GraphFrame.class"
IVY_SETTINGS_VARIABLE = "QUIPU_IVY_SETTINGS"


class Artifact(NamedTuple):
    group: str
    name: str
    version: str
    sha256: str  # empty: not known beforehand; that of the first fetch is kept and held to

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


ARTIFACTS = (
    Artifact("io.graphframes", "graphframes-spark4_2.13", "0.9.3", ""),
    Artifact(
        "org.apache.sedona",
        "sedona-spark-shaded-4.0_2.13",
        "1.8.0",
        "c847cec67cd06b43c7a2f67086fa56fd6044564a539128e598cf68262fe53a2f",
    ),
)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "quipu" / "jars"


def graphframes_jar(chosen: Path | None = None, cache: Path | None = None) -> Path:
    """A jar that has GraphFrames in it. Raises `Missing`."""
    if chosen is not None:
        return _checked(chosen.absolute())
    folder = cache or cache_folder()
    for artifact in ARTIFACTS:
        if (folder / artifact.file).exists():
            return _held_to_hash(folder / artifact.file, artifact)
    refusals = []
    for artifact in ARTIFACTS:
        try:
            return _fetched(artifact, folder)
        except Missing as missing:
            refusals.append(f"{artifact}: {missing.what}")
    raise Missing(
        "no GraphFrames jar is to be had: " + "; ".join(refusals),
        f"Put {ARTIFACTS[0].file} into {folder}, or name one with --jar; or --engine dataframe, "
        "which needs none.",
    )


def _checked(path: Path) -> Path:
    try:
        with zipfile.ZipFile(path) as archive:
            archive.getinfo(MARKER)
    except (OSError, zipfile.BadZipFile) as error:
        raise Missing(f"{path} is no jar: {error}", "Name another with --jar.") from error
    except KeyError as error:
        what = f"{path} holds no GraphFrames ({MARKER})"
        raise Missing(what, f"Name one that does, such as {ARTIFACTS[0].file}.") from error
    return path


def _held_to_hash(path: Path, artifact: Artifact) -> Path:
    noted = path.with_name(path.name + ".sha256")
    expected = artifact.sha256 or (noted.read_text().strip() if noted.exists() else "")
    found = sha256(path.read_bytes()).hexdigest()
    if found != expected:
        raise Missing(
            f"{path} has SHA-256 {found}, expected {expected or 'one noted beside it'}",
            "Remove it, and it is fetched anew; or name a jar that you trust with --jar.",
        )
    return _checked(path)


def _fetched(artifact: Artifact, folder: Path) -> Path:
    """Whole and checked, or not there."""
    with tempfile.TemporaryDirectory(prefix="quipu-jars-") as scratch:
        fetched = _ask_ivy(artifact, Path(scratch))
        found = sha256(fetched.read_bytes()).hexdigest()
        if artifact.sha256 and found != artifact.sha256:
            raise Missing(f"what was fetched has SHA-256 {found}, not {artifact.sha256}", "")
        _checked(fetched)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{artifact.file}.sha256").write_text(found + "\n")
        partial = folder / f".{artifact.file}.{os.getpid()}"
        shutil.copy(fetched, partial)
        partial.replace(folder / artifact.file)
    return folder / artifact.file


def _ask_ivy(artifact: Artifact, scratch: Path) -> Path:
    """Ivy checks the repository's own checksums."""
    command = [java_command(), "-jar", str(_ivy_jar())]
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    command += ["-settings", settings] if settings else []
    command += ["-cache", str(scratch / "cache"), "-types", "jar", "-notransitive"]
    command += ["-dependency", artifact.group, artifact.name, artifact.version]
    command += ["-retrieve", str(scratch / "[artifact]-[revision].[ext]")]
    try:
        subprocess.run(  # noqa: S603  # Java with what stands above
            command, capture_output=True, timeout=limits.DOWNLOAD_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Missing(f"not there after {limits.DOWNLOAD_S:.0f} s", "") from error
    path = scratch / artifact.file
    if not path.exists():
        raise Missing("not to be had from the repositories that Ivy knows", "")
    return path


def _ivy_jar() -> Path:
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise Missing("this pyspark has no Ivy among its jars", "Name a jar with --jar.")
    return found[0]
