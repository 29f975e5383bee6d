"""The Java that Spark would start: looked at first, because what Spark says without one helps nobody."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

from ropewalk.spark.refusals import WrongUse

JAVA_VERSION_MIN: Final = 17
_PATIENCE_S: Final = 60
_INSTALL: Final = (
    f"install Java {JAVA_VERSION_MIN} or newer (Debian, Ubuntu: apt install openjdk-17-jre-headless),"
    " or set JAVA_HOME to where it is"
)


def check_java(environment: Mapping[str, str]) -> None:
    """Refuses what cannot start Spark. Looked for where Spark looks: JAVA_HOME, then PATH."""
    home = environment.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    if java is None:
        raise WrongUse(f"Spark needs Java, and there is none: {_INSTALL}")
    try:
        told = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise WrongUse(f"{java} cannot be run ({error}): {_INSTALL}") from None
    version = major_version(told.stderr + told.stdout)
    if told.returncode or version is None:
        raise WrongUse(f"{java} does not say which Java it is: {_INSTALL}")
    if version < JAVA_VERSION_MIN:
        raise WrongUse(f"{java} is Java {version}, and Spark needs {JAVA_VERSION_MIN}: {_INSTALL}")


def major_version(told: str) -> int | None:
    """From what `java -version` prints; what was 1.8 is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None
