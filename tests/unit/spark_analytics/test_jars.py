"""Finding the GraphFrames jar, and a clear word for each thing that is missing. No Spark begins."""

import zipfile
from hashlib import sha256
from pathlib import Path

import pyspark
import pytest

from quipu.spark_analytics import jars
from quipu.spark_analytics.__main__ import main, place_of
from quipu.spark_analytics.hadoop import is_of_hadoop
from quipu.spark_analytics.jars import ARTIFACTS, IVY_SETTINGS_VARIABLE, MARKER, graphframes_jar
from quipu.spark_analytics.requirements import Missing, check_pyspark, java_command
from tests.spark.conftest import or_left_out

UPSTREAM, BUNDLE = ARTIFACTS


def made_jar(path: Path, *names: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"class")
    return path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that Ivy takes for the only repository there is."""
    folder = tmp_path / "repository"
    folder.mkdir()
    pattern = "[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="only"/><resolvers><filesystem name="only" '
        f'm2compatible="true"><artifact pattern="{folder}/{pattern}"/>'
        f'<ivy pattern="{folder}/{pattern}"/></filesystem></resolvers></ivysettings>'
    )
    monkeypatch.setenv(IVY_SETTINGS_VARIABLE, str(settings))
    return folder


def offered(repository: Path, artifact: jars.Artifact, *names: str) -> Path:
    place = Path(artifact.group.replace(".", "/")) / artifact.name / artifact.version
    return made_jar(repository / place / artifact.file, *names)


def test_the_one_that_the_user_names(tmp_path: Path) -> None:
    good = made_jar(tmp_path / "good.jar", MARKER)
    assert graphframes_jar(good, tmp_path) == good
    with pytest.raises(Missing, match="holds no GraphFrames"):
        graphframes_jar(made_jar(tmp_path / "other.jar", "x"), tmp_path)
    (tmp_path / "torn.jar").write_bytes(b"PK")
    with pytest.raises(Missing, match="is no jar"):
        graphframes_jar(tmp_path / "torn.jar", tmp_path)
    with pytest.raises(Missing, match="is no jar"):
        graphframes_jar(tmp_path / "none.jar", tmp_path)


def test_a_cached_one_is_held_to_its_hash(tmp_path: Path) -> None:
    cached = made_jar(tmp_path / UPSTREAM.file, MARKER)
    with pytest.raises(Missing, match="expected one noted beside it"):
        graphframes_jar(None, tmp_path)
    noted = tmp_path / f"{UPSTREAM.file}.sha256"
    noted.write_text(sha256(cached.read_bytes()).hexdigest() + "\n")
    assert graphframes_jar(None, tmp_path) == cached
    made_jar(cached, MARKER, "more")
    with pytest.raises(Missing, match="has SHA-256"):
        graphframes_jar(None, tmp_path)


def test_upstream_is_fetched_first_and_noted(repository: Path, tmp_path: Path) -> None:
    source = offered(repository, UPSTREAM, MARKER)
    cache = tmp_path / "cache"
    found = graphframes_jar(None, cache)
    assert found == cache / UPSTREAM.file
    assert found.read_bytes() == source.read_bytes()
    noted = (cache / f"{UPSTREAM.file}.sha256").read_text().strip()
    assert noted == sha256(source.read_bytes()).hexdigest()


def test_another_bundle_under_the_known_name_is_refused(repository: Path, tmp_path: Path) -> None:
    offered(repository, BUNDLE, MARKER)
    with pytest.raises(Missing) as caught:
        graphframes_jar(None, tmp_path / "cache")
    assert f"{UPSTREAM}: not to be had" in caught.value.what
    assert f"not {BUNDLE.sha256}" in caught.value.what
    assert "--engine dataframe" in caught.value.next_step
    assert not (tmp_path / "cache").exists()


def test_the_cache_is_where_it_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jars.cache_folder() == tmp_path / "quipu" / "jars"


def test_without_java_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Missing, match="there is no Java in JAVA_HOME"):
        java_command()
    assert main([str(tmp_path / "dump"), "--out", str(tmp_path / "out")]) == 1
    assert "apt-get install openjdk-17-jre-headless" in capsys.readouterr().err


def test_an_old_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Missing, match="is Java 11, Spark needs 17"):
        java_command()
    java.write_text("#!/bin/sh\n")
    with pytest.raises(Missing, match="says no version"):
        java_command()


def test_another_series_of_spark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pyspark()
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")
    with pytest.raises(Missing, match=r"pyspark is 3\.5\.1"):
        check_pyspark()


def test_only_file_is_this_machine() -> None:
    for dump, place in {
        "dumps/n1": "dumps/n1",
        "file:///dumps/n1": "/dumps/n1",
        "hdfs://names:8020/dumps/n1": "hdfs://names:8020/dumps/n1",
    }.items():
        assert place_of(dump) == place
        assert is_of_hadoop(place) == dump.startswith("hdfs:")


def test_what_spark_lacks_fails_where_the_suite_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Missing("there is no Java", "Install it.")
    monkeypatch.setenv("CI", "true")
    said = r"there is no Java\. Install it\."
    with pytest.raises(pytest.fail.Exception, match=said), or_left_out():
        raise lacking
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="there is no Java"), or_left_out():
        raise lacking
