"""Makes `.venv`: the hashed requirements and this project, installed so that its source is used in place.

    environment.py run     what a node needs
    environment.py spark   that, and what pipelines need (some 1.2 GB more; Java is not among it)
    environment.py test    that, and what the tests need

Runs on a bare Python ≥ 3.11, so it imports the standard library only. A stamp in the environment remembers what
it was made from; a start with nothing to do costs a few milliseconds. Packages come from wherever pip is told to
look: its settings are handed on to uv, which does the installing.
"""

import ast
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
BUILD = ROOT / "requirements" / "build.txt"
REQUIREMENTS = {purpose: ROOT / "requirements" / f"{purpose}.txt" for purpose in ("run", "spark", "test")}
GOOD_ENOUGH = {"run": ("run", "spark", "test"), "spark": ("spark", "test"), "test": ("test",)}
"""What an environment may have been made for, by what it is wanted for."""
ANNOUNCEMENTS = {
    "run": "Making the environment in .venv (once; the next start is quick) …",
    "spark": "Pipelines run on Spark: adding it and what it needs to .venv, some 1.2 GB (once; the next start is quick) …",
    "test": "Making the environment in .venv for tests, Spark included, some 1.4 GB (once; the next start is quick) …",
}
"""Sizes are of what is on disk afterwards."""
BUILT_HERE = "pyspark"
"""It is published as source only."""

UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
}
"""pip's settings and what uv calls them. Both take several values in one text, parted by white space."""


class CannotInstall(Exception):
    """The environment cannot be made; the text says what to do next."""


def main(purpose: str) -> None:
    if _is_current(purpose):
        return
    ENVIRONMENT.mkdir(exist_ok=True)
    with open(ENVIRONMENT / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two starts at once: the second finds the work done
        if not _is_current(purpose):
            _make(purpose)


def _make(purpose: str) -> None:
    print(ANNOUNCEMENTS[purpose], file=sys.stderr, flush=True)
    uv = shutil.which("uv")
    if uv is None:
        uv = _install_uv()
    elif not PYTHON.exists():
        _call(
            [uv, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(ENVIRONMENT)],
            "uv failed",
        )
    install = [uv, "pip", "install", "--quiet", "--python", str(PYTHON)]
    settings = _settings_for_uv()
    hint = "Installing failed; see above. Packages are looked for where pip looks (pip config list, PIP_* variables)"
    # Build backends are installed and hashed first: nothing unchecked is fetched to build the project or another.
    _call([*install, "--require-hashes", "-r", str(BUILD)], hint, settings)
    chosen = ["--require-hashes", "-r", str(BUILD), "-r", str(REQUIREMENTS[purpose])]
    _call([*install, "--no-build-isolation-package", BUILT_HERE, *chosen], hint, settings)
    _call([*install, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], hint, settings)
    _stamp(purpose).write_text(_fingerprint(purpose))


def _install_uv() -> str:
    """uv in the environment itself, put there by pip."""
    if not PYTHON.exists():
        made = _works([sys.executable, "-m", "venv", str(ENVIRONMENT)])
    else:
        pip = [str(PYTHON), "-m", "pip", "--version"]
        made = _works(pip) or _works([str(PYTHON), "-m", "ensurepip"])
    if not made:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise CannotInstall(
            f"{sys.executable} cannot make a virtual environment (its venv or ensurepip is missing).\n"
            f"Install them (Debian: apt install {version}-venv), or install uv, and start again."
        )
    command = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--require-hashes",
    ]
    _call(
        [*command, "-r", str(BUILD)], "pip could not install uv; see above. Is a package index within reach?"
    )
    return str(ENVIRONMENT / "bin" / "uv")


def _settings_for_uv() -> dict[str, str]:
    """The process environment, with pip's settings added under uv's names; what is set for uv already stays."""
    environment = dict(os.environ)
    # pip may choose from all its indexes; uv stops at the first that knows the name. Every file is checked
    # against its hash, so pip's way is safe here.
    environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    for name, value in _pip_settings().items():
        if name in UV_NAMES and value:
            environment.setdefault(UV_NAMES[name], " ".join(value.split()))
    return environment


def _pip_settings() -> dict[str, str]:
    """pip's own view of its files and variables, the stronger ones last; the variables alone where there is no pip."""
    ranks = {"global": 0, "install": 1, ":env:": 2}
    found = {
        name[4:].lower().replace("_", "-"): (2, value)
        for name, value in os.environ.items()
        if name[:4] == "PIP_"
    }
    for python in (str(PYTHON), sys.executable):
        listing = subprocess.run([python, "-m", "pip", "config", "list"], capture_output=True, text=True)
        if listing.returncode == 0:
            break
    for line in listing.stdout.splitlines():
        place, _, value = line.partition("=")
        section, _, name = place.partition(".")
        if section in ranks and ranks[section] >= found.get(name, (-1, ""))[0]:
            found[name] = ranks[section], str(ast.literal_eval(value))
    return {name: value for name, (_, value) in found.items()}


def _works(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _call(command: list[str], hint: str, environment: dict[str, str] | None = None) -> None:
    if subprocess.run(command, env=environment).returncode:
        raise CannotInstall(hint)


def _is_current(purpose: str) -> bool:
    return any(_was_made_for(each) for each in GOOD_ENOUGH[purpose])


def _was_made_for(purpose: str) -> bool:
    try:
        return _stamp(purpose).read_text() == _fingerprint(purpose)
    except FileNotFoundError:
        return False


def _stamp(purpose: str) -> Path:
    return ENVIRONMENT / f"made-for-{purpose}"


def _fingerprint(purpose: str) -> str:
    """Changes when the requirements, the project's entry points or its place change; a moved environment is remade."""
    digest = hashlib.sha256(str(ROOT).encode())
    for path in (BUILD, REQUIREMENTS[purpose], ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except CannotInstall as error:
        sys.exit(str(error))
