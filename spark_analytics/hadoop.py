"""Dumps on whatever file system Hadoop knows: `hdfs:`, `s3a:`, `viewfs:` and the like.

Files are hashed in the JVM, where they are read: their bytes never come through Python.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from quipu.spark_analytics.requirements import Missing

NOT_FOUND = "java.io.FileNotFoundException"
UNKNOWN_SCHEME = ("UnsupportedFileSystemException", "ClassNotFoundException", "No FileSystem for")

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def is_of_hadoop(dump: str | Path) -> bool:
    """Whether it is an address that another file system than this machine's answers."""
    return ADDRESS.match(str(dump)) is not None


class HadoopPlace:
    """A directory under an address such as hdfs://namenode/dumps/n1."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        """Raises `Missing` where Hadoop does not know such addresses, or cannot reach them."""
        self._address = address.rstrip("/")
        self._jvm: Any = spark._jvm  # noqa: SLF001  # what pyspark itself reaches Hadoop by
        scheme = address.partition(":")[0]
        try:
            context: Any = spark.sparkContext._jsc  # noqa: SLF001
            self._system = self._path("").getFileSystem(context.hadoopConfiguration())
            self._root = str(self._system.makeQualified(self._path("")))
        except Py4JJavaError as error:
            what = _said(error)
            step = f"Is the address right, and is {scheme}: set up (HADOOP_CONF_DIR)?"
            if any(name in what for name in UNKNOWN_SCHEME):
                step = f"Submit the job with what brings {scheme}:, as " + (
                    "spark-submit --packages org.apache.hadoop:hadoop-aws:VERSION (that of Spark's "
                    "Hadoop)."
                    if scheme in {"s3a", "s3", "s3n"}
                    else "spark-submit --jars FILE."
                )
            raise Missing(f"{address}: {what}", step) from error

    def __str__(self) -> str:
        return self._address

    def file(self, name: str) -> str:
        return f"{self._address}/{name}"

    def is_folder(self) -> bool:
        with _as_os_error():
            return bool(self._system.exists(self._path(""))) and bool(
                self._system.getFileStatus(self._path("")).isDirectory()
            )

    def names(self) -> list[str]:
        found = []
        with _as_os_error():
            files = self._system.listFiles(self._path(""), True)
            while files.hasNext():
                found.append(str(files.next().getPath())[len(self._root) + 1 :])
        return sorted(found)

    def size(self, name: str) -> int:
        with _as_os_error():
            return int(self._system.getFileStatus(self._path(name)).getLen())

    def sha256(self, name: str) -> str:
        with self._opened(name) as stream:
            return str(self._jvm.org.apache.commons.codec.digest.DigestUtils.sha256Hex(stream))

    def read(self, name: str) -> bytes:
        """Small ones: these bytes do come through."""
        with self._opened(name) as stream:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream))

    @contextmanager
    def _opened(self, name: str) -> Iterator[Any]:
        with _as_os_error():
            stream = self._system.open(self._path(name))
            try:
                yield stream
            finally:
                stream.close()

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self.file(name) if name else self._address)


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        kind = FileNotFoundError if NOT_FOUND in _said(error) else OSError
        raise kind(_said(error)) from error


def _said(error: Py4JJavaError) -> str:
    """The first line of what Java says."""
    return str(error.java_exception.toString()).splitlines()[0]
