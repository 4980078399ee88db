"""report.html in Debian's chromium: phone and desk widths, light and dark, by keyboard, without script, on paper."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipeline.report.changes import compare_releases
from pipeline.report.page import render_page
from pipeline.scan.record import Leak
from tests.fakes.browser import Page, open_browser
from tests.fakes.reported import (
    DEBIAN,
    RUNTIME,
    checks,
    component,
    components,
    dependencies,
    image,
    layer,
    policy,
    release,
    verdict,
)

LONG = "sha256:" + "a" * 64 + "/" + "unbroken" * 40
EVIL = "<img src=/evil onerror=console.error(1)><script src=/evil></script>"
OPEN_ALL = "document.querySelectorAll('details').forEach((fold) => { fold.open = true; }), 1"
VISIBLE = "[...document.querySelectorAll('#checks tbody tr')].filter((row) => row.checkVisibility()).length"
FOCUS = "document.activeElement.id || document.activeElement.dataset.of || document.activeElement.type"


class Site:
    """Serves one page, and remembers every path that it is asked for."""

    def __init__(self, text: str) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200 if self.path == "/report.html" else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                """Tests read `asked`."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/report.html"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def make_text() -> str:
    """A release that does not pass, with hostile and unbroken text, changes, leaks and many rows."""
    leak = Leak(layer=DEBIAN[0], path=LONG, kind="future", reach="buried", how=EVIL)
    packages = [*components(60), component(LONG, EVIL, "pypi", LONG)]
    first = image("format-code-task-000666", results=checks(80, failing=3, text=EVIL), packages=packages, leaks=(leak,))
    second = image(
        "software",
        (DEBIAN, RUNTIME, layer("more", 99_000_000)),
        checks(200, "workflow"),
        packages[:40],
        dependencies(50),
        labels={LONG: LONG},
        title=EVIL,
    )
    names = ("base-pinned", "no-fixtures")
    policies = tuple(policy(name, LONG) for name in names)
    facts = release(first, second, policies=policies, verdicts=(verdict(names[0]), verdict(names[1], "fail", EVIL)))
    old = release(image("software", packages=packages[:20], results=checks(40, "workflow")), date="2026-09-28")
    return render_page(facts, compare_releases(old, facts))


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    made = Site(make_text())
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with open_browser(tmp_path_factory.mktemp("browser") / "profile") as page:
        yield page


@pytest.fixture
def page(browser: Page, site: Site) -> Page:
    site.asked.clear()
    return browser


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 768, 1280, 1920])
def test_it_asks_for_nothing_complains_of_nothing_and_fits(page: Page, site: Site, width: int, dark: bool) -> None:
    page.open(site.url, width, dark=dark)
    for state in ("1", OPEN_ALL):
        page.run(state)
        assert page.run("document.documentElement.scrollWidth") <= width
        # and nothing sticks out of its section, except what scrolls by itself
        outside = page.run(
            "[...document.querySelectorAll('section *')].filter((e) => !e.closest('.scroll, svg')"
            " && e.getBoundingClientRect().right > e.closest('section').getBoundingClientRect().right + 0.5)"
            ".map((e) => e.outerHTML.slice(0, 200))"
        )
        assert outside == []
    assert page.complaints() == []
    assert page.requests() == [site.url]
    assert site.asked == ["/report.html"]


@pytest.mark.parametrize(("dark", "ground"), [(False, "rgb(247, 248, 249)"), (True, "rgb(18, 21, 25)")])
def test_it_follows_the_colour_scheme(page: Page, site: Site, dark: bool, ground: str) -> None:
    page.open(site.url, dark=dark)
    assert page.run("getComputedStyle(document.body).backgroundColor") == ground


def test_checks_are_filtered_by_keyboard_alone(page: Page, site: Site) -> None:
    page.open(site.url)
    before = page.run(VISIBLE)
    assert before == 3  # what did not pass is open, the rest is folded
    _tab_to(page, "checks")
    page.type("workflow shell")
    assert page.run("document.querySelector('.filter output').textContent") == "25 of 280 rows shown"
    assert page.run(VISIBLE) == 25
    page.press("a", "a", 65)
    assert page.run(VISIBLE) == 0
    for _ in range(len("workflow shella")):
        page.press("Backspace", code=8)
    assert page.run("document.querySelector('.filter output').textContent") == ""
    assert page.run(VISIBLE) == before
    assert page.complaints() == []


def test_only_what_did_not_pass_by_keyboard(page: Page, site: Site) -> None:
    page.open(site.url)
    _tab_to(page, "checkbox")
    page.press(" ", " ", 32)
    assert page.run("document.querySelector('.filter output').textContent") == "3 of 280 rows shown"
    assert page.run(VISIBLE) == 3
    page.press(" ", " ", 32)
    assert page.run("document.querySelectorAll('#checks tr[hidden], #checks details[hidden]').length") == 0


def test_packages_are_filtered_by_licence(page: Page, site: Site) -> None:
    page.open(site.url)
    _tab_to(page, "packages")
    page.type("llvm")
    shown = "[...document.querySelectorAll('#packages tbody tr')].filter((row) => row.checkVisibility())"
    assert page.run(f"{shown}.length") == 12
    assert page.run(f"{shown}.every((row) => row.textContent.includes('LLVM'))")


def test_folds_open_by_keyboard_and_the_focus_shows(page: Page, site: Site) -> None:
    page.open(site.url)
    page.run("document.querySelector('#checks details:not([open]) > summary').focus(), 1")
    page.press("Enter", "\r", 13)
    assert page.run("document.activeElement.parentElement.open")
    page.press("Tab", code=9)
    assert page.run("document.activeElement.matches(':focus-visible')")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_its_script_all_content_is_there(page: Page, site: Site) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(site.url)
        assert page.run("document.querySelector('.filter').checkVisibility()") is False
        assert page.run("document.querySelectorAll('#checks tbody tr').length") == 280
        page.run("document.querySelector('#checks details:not([open]) > summary').focus(), 1")
        page.press("Enter", "\r", 13)
        assert page.run("document.activeElement.parentElement.open")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


def test_the_policy_lets_nothing_out(page: Page, site: Site) -> None:
    page.open(site.url)
    attempts = (
        "fetch('/evil').then(() => 'out', () => 'blocked')",
        "new Promise((done) => { const i = new Image(); i.onload = () => done('out');"
        " i.onerror = () => done('blocked'); i.src = '/evil'; })",
        "new Promise((done) => { const s = document.createElement('script'); s.onload = () => done('out');"
        " s.onerror = () => done('blocked'); s.src = '/evil'; document.head.append(s); })",
    )
    assert [page.run(attempt) for attempt in attempts] == ["blocked"] * 3
    assert site.asked == ["/report.html"]
    assert any("Content Security Policy" in complaint for complaint in page.complaints())


@pytest.mark.parametrize("width", [360, 1280])
def test_a_screen_reader_finds_landmarks_tables_and_pictures(page: Page, site: Site, width: int) -> None:
    page.open(site.url, width)
    page.run(OPEN_ALL)
    page.call("Accessibility.enable")
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    page.call("Accessibility.disable")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")
    ]
    roles = [role for role, _ in named]
    for landmark in ("banner", "navigation", "main", "contentinfo"):
        assert roles.count(landmark) == 1
    assert ("region", "Checks") in named
    assert ("table", "Every distinct layer") in named
    assert ("image", "Layers of software by size") in named
    assert roles.count("rowheader") > 300
    assert roles.count("columnheader") > 50
    assert ("searchbox", "Filter checks") in named
    assert ("checkbox", "only what did not pass") in named


def test_on_paper_it_is_black_on_white_without_what_only_a_screen_needs(page: Page, site: Site) -> None:
    page.open(site.url, dark=True, media="print")
    for name in ("nav", ".filter", ".skip"):
        assert page.run(f"document.querySelector('{name}').checkVisibility()") is False
    assert page.run("getComputedStyle(document.body).color") == "rgb(27, 32, 38)"
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    printed = base64.b64decode(page.call("Page.printToPDF", printBackground=False)["data"])
    assert printed.startswith(b"%PDF-")
    assert len(printed) > 50_000


def _tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the element has the focus: it can be reached without a mouse."""
    for _ in range(200):
        page.press("Tab", code=9)
        if page.run(FOCUS) == wanted:
            return
    raise AssertionError(f"no Tab leads to {wanted}")
