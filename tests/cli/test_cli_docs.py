"""The documentation is in the package, and its pages are found by name, section and text."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ropewalk.views.diagnosis.rule import Rule
from ropewalk.views.diagnosis.table import RULES
from ropewalk.views.manual import page_named, pages, text_of
from tests.cli.conftest import Ropewalk, in_terminal

ROOT = Path(__file__).parents[2]


def test_every_page_is_listed_with_its_title(ropewalk: Ropewalk) -> None:
    listed = {each["name"]: each["title"] for each in json.loads(ropewalk("docs", "-o", "json").stdout)}
    assert listed["operating/tls"] == "TLS"
    written = {str(path.relative_to(ROOT / "docs").with_suffix("")) for path in (ROOT / "docs").rglob("*.md")}
    assert set(listed) == written
    assert all(listed.values())
    assert "operating/tls" in ropewalk("docs").stdout


@pytest.mark.parametrize("name", ["operating/tls", "tls", "TLS", "docs/operating/tls.md", "/operating/tls"])
def test_a_page_is_found_by_any_of_its_names(ropewalk: Ropewalk, name: str) -> None:
    assert ropewalk("docs", name).stdout == (ROOT / "docs/operating/tls.md").read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tlss", "did you mean operating/tls?"),
        ("queues", "several pages 'queues': guides/queues, internals/queues"),
        ("nothing-like-it", "there is no page"),
        ("../CHANGELOG", "there is no page"),
        ("tls#nowhere", "no section 'nowhere'; it has tls, certificates"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(ropewalk: Ropewalk, name: str, words: str) -> None:
    result = ropewalk("docs", name)
    assert result.exit_code == 1
    assert words in result.stderr


def test_a_section_ends_where_the_next_of_its_rank_begins(ropewalk: Ropewalk) -> None:
    shown = ropewalk("docs", "tls#Certificates").stdout
    assert shown == ropewalk("docs", "tls#certificates").stdout
    assert shown.startswith("## Certificates\n")
    assert "\n## " not in shown
    between = ropewalk("docs", "tls#between-nodes").stdout
    assert "### An authority for nodes" in between
    assert "## Between nodes" in ropewalk("docs", "tls#tls").stdout


def test_a_comment_in_a_block_of_code_is_no_heading(ropewalk: Ropewalk) -> None:
    shown = ropewalk("docs", "cluster#deploy-three-nodes").stdout
    assert "# /etc/ropewalk/node-0.toml" in shown
    assert "/etc/systemd/system/ropewalk@.service" in shown


def test_a_text_is_found_with_the_section_that_it_stands_in(ropewalk: Ropewalk) -> None:
    found = json.loads(ropewalk("docs", "--search", "CHMOD 600", "-o", "json").stdout)
    assert found
    assert all("chmod 600" in each["line"].lower() for each in found)
    for each in found:
        assert each["line"] in text_of(page_named(each["page"]), each["heading"])
    assert ropewalk("docs", "--search", "no page says this").exit_code == 1
    assert ropewalk("docs", "tls", "--search", "x").exit_code == 2


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_the_doctor_refers_to_can_be_read(rule: Rule) -> None:
    page, _, section = rule.page.partition("#")
    assert text_of(page_named(page), section)


def test_on_a_terminal_a_page_is_set_for_reading() -> None:
    shown, code = in_terminal("docs", "tls#certificates", bootstrap="")
    assert code == 0
    assert "Certificates" in shown
    assert "## Certificates" not in shown


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        return set(opened.namelist())


def test_every_page_is_in_the_wheel(wheel: set[str]) -> None:
    assert {f"ropewalk/docs/{page.name}.md" for page in pages()} <= wheel
