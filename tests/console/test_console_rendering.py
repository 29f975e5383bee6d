"""What a page writes of names and values that strangers chose, and how numbers and times are written."""

import re
from importlib.resources import files

import pytest

from ropewalk.console.rendering import Rendering, count, duration, rate, size, when
from ropewalk.console.visible import visible


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("orders", "orders"),
        ("größer 数 🚀", "größer 数 🚀"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("user\u202egnp.exe", "user\\u202egnp.exe"),
        ("a\u200bb\u2066c", "a\\u200bb\\u2066c"),
        ("\u2028\u2029\ufeff", "\\u2028\\u2029\\ufeff"),
        ("\x85\x9b", "\\x85\\x9b"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_would_not_be_seen_is_written_out(text: str, seen: str) -> None:
    assert visible(text) == seen


@pytest.fixture(scope="module")
def rendering() -> Rendering:
    return Rendering()


def test_nothing_of_a_reason_is_taken_for_markup(rendering: Rendering) -> None:
    values = {"title": "<b>", "status": 400, "reason": "<script>alert(1)</script>\u202e'\""}
    page = rendering.render("refusal.html", values).decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u202e&#39;&#34;" in page


def test_what_is_sent_back_is_as_it_was(rendering: Rendering) -> None:
    values = {"title": "Log in", "problem": None, "tried": '"\u202e<', "form_token": str, "token_field": "t"}
    page = rendering.render("login.html", values).decode()
    assert 'value="&#34;\u202e&lt;"' in page


def test_files_that_came_from_others_have_their_licences_beside_them(rendering: Rendering) -> None:
    for name in ("htmx", "uplot"):
        assert rendering.files.address(f"{name}.js")
        assert rendering.files.address(f"{name}-license.txt")


def test_no_field_takes_the_place_of_what_scripts_ask_of_its_form() -> None:
    """A field is a property of its form: one that is called `matches` hides what htmx calls."""
    asked = {
        *("matches", "closest", "contains", "children", "attributes", "elements", "dataset", "style", "id"),
        *("before", "after", "remove", "append", "prepend", "submit", "reset", "action", "method", "target"),
        *("parentNode", "parentElement", "firstChild", "nodeType", "length", "focus", "click", "title"),
    }
    pattern = r'(?:<(?:input|select|textarea|button)\b[^>]*?\bname=|\b(?:field|choice)\()"(\w+)"'
    found = {
        name
        for template in (files("ropewalk.console") / "templates").iterdir()
        for name in re.findall(pattern, template.read_text("utf-8"))
    }
    assert {"name", "typed", "setting", "principal"} <= found
    assert found & asked == set()


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(0), "0"),
        (count(1234567), "1,234,567"),
        (count(None), "–"),
        (rate(0.04), "0.0"),
        (rate(9.5), "9.5"),
        (rate(1234.56), "1,235"),
        (rate(None), "–"),
        (size(1023), "1023 B"),
        (size(1 << 20), "1.0 MiB"),
        (size(1 << 60), "1024.0 PiB"),
        (duration(0), "0 ms"),
        (duration(86_400_000 + 3_600_000 + 5000), "1 d 1 h"),
        (str(when(0)), '<time datetime="1970-01-01T00:00:00.000+00:00">1970-01-01 00:00:00 UTC</time>'),
        (str(when(None)), "–"),
        (str(when(10**18)), "–"),
    ],
)
def test_numbers_and_times_are_written_for_people(written: str, expected: str) -> None:
    assert written == expected
