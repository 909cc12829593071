"""Which Java is taken for which engine, and what is said when there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakehouse_core.domain.errors import NotInstalledError
from lakehouse_core.runtime.java import (
    any_java,
    find_javas,
    java_for_spark,
    java_for_trino,
    parse_version,
)
from tests.unit.runtime.machines import fake_java, machine

if TYPE_CHECKING:
    from pathlib import Path

# A PATH without a `java`, whatever the machine that runs the tests has.
NO_PATH = "/nonexistent"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15', ("17.0.15", 17)),
        ('java version "1.8.0_402"', ("1.8.0_402", 8)),
        ('openjdk version "25" 2025-09-16', ("25", 25)),
        ('openjdk version "24-ea" 2025-03-18', ("24-ea", 24)),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21.0.1+12"', ("21.0.1+12", 21)),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
        ('version "unknown"', None),
        ("", None),
    ],
)
def test_version_is_read_as_vendors_print_it(text: str, expected: tuple[str, int] | None) -> None:
    assert parse_version(text) == expected


def test_each_engine_gets_the_java_it_runs_on(tmp_path: Path) -> None:
    fake_java(tmp_path / "jvm" / "a-17", "17.0.15")
    fake_java(tmp_path / "jvm" / "b-25", "25.0.3")
    here = machine(tmp_path, PATH=NO_PATH, LAKEHELM_JAVA_DIRS=tmp_path / "jvm" / "*")
    javas = find_javas(here)
    assert java_for_spark(javas).home == tmp_path / "jvm" / "a-17"
    assert java_for_trino(javas).home == tmp_path / "jvm" / "b-25"


def test_java_home_comes_before_the_path_and_the_path_before_folders(tmp_path: Path) -> None:
    first = fake_java(tmp_path / "one", "21.0.1")
    second = fake_java(tmp_path / "two", "17.0.1")
    fake_java(tmp_path / "jvm" / "three", "17.0.2")
    here = machine(
        tmp_path,
        JAVA_HOME=first,
        PATH=second / "bin",
        LAKEHELM_JAVA_DIRS=tmp_path / "jvm" / "*",
    )
    assert [java.origin for java in find_javas(here)][:2] == ["JAVA_HOME", "PATH"]
    assert java_for_spark(find_javas(here)).home == first


def test_one_java_reached_in_two_ways_is_one(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "jvm" / "real", "17.0.15")
    (tmp_path / "jvm" / "alias").symlink_to(home)
    here = machine(tmp_path, JAVA_HOME=home, PATH=home / "bin", LAKEHELM_JAVA_DIRS=f"{home}/../*")
    assert len(find_javas(here)) == 1


def test_a_java_that_does_not_run_is_passed_over(tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "bin" / "java"
    broken.parent.mkdir(parents=True)
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    good = fake_java(tmp_path / "good", "17.0.15")
    here = machine(tmp_path, JAVA_HOME=tmp_path / "broken", PATH=good / "bin")
    assert [java.home for java in find_javas(here)] == [good]


def test_missing_java_says_what_is_needed_what_was_found_and_what_to_do(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "11.0.2")
    javas = find_javas(machine(tmp_path, PATH=NO_PATH, JAVA_HOME=old))
    with pytest.raises(NotInstalledError, match=r"Spark needs Java 17 or 21; found 11\.0\.2 in"):
        java_for_spark(javas)
    with pytest.raises(NotInstalledError, match=r"Trino needs Java 24 or newer.*JAVA_HOME"):
        java_for_trino(javas)


def test_no_java_at_all_is_said_so(tmp_path: Path) -> None:
    assert find_javas(machine(tmp_path, PATH=NO_PATH)) == ()
    with pytest.raises(NotInstalledError, match="no Java was found"):
        java_for_spark(())
    with pytest.raises(NotInstalledError, match="No Java was found"):
        any_java(())
