"""The HTML report in a real browser: it renders, sorts and filters, asks the network for nothing, and hostile logs stay text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Run

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def payload(minute: int, code: str, operation: str, identifier: str) -> str:
    error = {"code": code, "message": "m", "retryable": code == "Transient"}
    value = {"v": "0.1", "ok": False, "operation": operation, "operation_id": identifier, "error": error}
    return json.dumps({"time": f"2031-05-02T08:{minute:02}:00Z", "payload": value})


LOG = "\n".join(
    [
        *(payload(i, "Transient", "ovstorage_read", f"busy-{i}") for i in range(30)),
        *(payload(i, "NotFound", "ovstorage_stat", f"gone-{i}") for i in range(0, 30, 5)),
        payload(7, HOSTILE, HOSTILE, '"><b id="hostile">'),
        json.dumps(
            {
                "status": "uncertain",
                "scenario": "uncertain",
                "operationId": "op-u",
                "error": {"code": "OUTCOME_UNKNOWN", "retryable": False, "correlationId": "op-u"},
            }
        ),
    ]
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed (on Debian: apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


def opened(browser: Any, run: Run, tmp_path: Path, log: str = LOG) -> tuple[Page, list[str]]:
    """The report of a log in a page, and everything that the page asked for or complained about."""
    path = tmp_path / "report.html"
    assert run("scan", "--format", "html", "--output", str(path), "-", stdin=log).returncode == 0
    page = browser.new_context(offline=True).new_page()
    noted: list[str] = []
    page.on("request", lambda request: noted.append(request.url) if not request.url.startswith("file://") else None)
    page.on("console", lambda message: noted.append(message.text))
    page.on("pageerror", lambda error: noted.append(str(error)))
    page.on("dialog", lambda dialog: noted.append(dialog.message))
    page.goto(path.as_uri())
    return page, noted


def codes(page: Page) -> list[str]:
    return [row.locator("td:nth-child(4) code").inner_text() for row in page.locator("tbody tr:visible").all()]


def test_it_renders_sorts_and_filters_and_asks_for_nothing(browser: Any, run: Run, tmp_path: Path) -> None:
    page, noted = opened(browser, run, tmp_path)
    assert page.locator("h1").inner_text() == "What failed"
    assert codes(page) == ["OUTCOME_UNKNOWN", HOSTILE, "NotFound", "Transient"]
    assert page.locator("svg rect").count() > 10

    page.get_by_role("button", name="Count").click()
    assert codes(page)[0] == "Transient"
    assert page.locator("th").first.get_attribute("aria-sort") == "descending"
    page.get_by_role("button", name="Count").click()
    assert codes(page)[-1] == "Transient"
    page.get_by_role("button", name="Code").click()
    assert codes(page) == sorted(codes(page))
    page.get_by_role("button", name="What to do").click()
    assert codes(page)[0] == "OUTCOME_UNKNOWN"

    page.get_by_label("Find").fill("ovstorage_stat")
    assert codes(page) == ["NotFound"]
    assert page.get_by_role("status").inner_text() == "1 of 4 groups"
    page.get_by_label("Find").fill("")
    page.locator("select#outcome").select_option("uncertain")
    assert codes(page) == ["OUTCOME_UNKNOWN"]
    page.locator("select#outcome").select_option("")
    page.locator("select#action").select_option("retry")
    assert codes(page) == ["Transient"]
    assert noted == []


def test_a_verdict_is_there_in_full_and_its_id_can_be_copied(browser: Any, run: Run, tmp_path: Path) -> None:
    page, noted = opened(browser, run, tmp_path)
    row = page.locator("tbody tr").first
    row.locator("summary").click()
    assert row.locator(".never li").count() >= 1
    assert row.get_by_text("Tell the user").is_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = row.get_by_role("button", name="Copy op-u")
    button.click()
    page.wait_for_function("button => ['copied', 'selected'].includes(button.textContent)", arg=button.element_handle())
    assert noted == []


def test_a_hostile_log_does_not_become_markup(browser: Any, run: Run, tmp_path: Path) -> None:
    page, noted = opened(browser, run, tmp_path)
    assert page.locator("img, b#hostile, main script").count() == 0
    assert page.get_by_text("<img src=x onerror=alert(1)>").count() >= 1
    assert noted == []


def test_it_is_used_with_the_keyboard_alone(browser: Any, run: Run, tmp_path: Path) -> None:
    page, _ = opened(browser, run, tmp_path)
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.textContent.trim() || document.activeElement.id"))
    assert {"text", "Count", "Code"} <= set(seen)
    page.locator("th button").first.focus()
    page.keyboard.press("Enter")
    assert codes(page)[0] == "Transient"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(browser: Any, run: Run, tmp_path: Path, scheme: str) -> None:
    """The contrast of every text is at least 4.5 to 1 (WCAG 2.2, 1.4.3)."""
    page, _ = opened(browser, run, tmp_path)
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.locator("summary").first.click()
    ratios = page.evaluate(
        """() => {
          const light = (color) => {
            const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3).map((part) => {
              const value = part / 255;
              return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const ground = (element) => {
            const color = getComputedStyle(element).backgroundColor;
            return /rgba\\(.*, 0\\)/.test(color) && element.parentElement ? ground(element.parentElement) : color;
          };
          return [...document.querySelectorAll("main *")]
            .filter((element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()) && element.tagName !== "title")
            .map((element) => {
              const [a, b] = [light(getComputedStyle(element).color), light(ground(element))].sort((x, y) => y - x);
              return [(a + 0.05) / (b + 0.05), element.tagName + ": " + element.textContent.slice(0, 40)];
            });
        }"""
    )
    assert len(ratios) > 30
    assert [text for ratio, text in ratios if ratio < 4.5] == []


def test_nothing_to_show_is_said(browser: Any, run: Run, tmp_path: Path) -> None:
    page, noted = opened(browser, run, tmp_path, "all is well\n")
    assert "No failure was found." in page.locator("main").inner_text()
    assert noted == []
