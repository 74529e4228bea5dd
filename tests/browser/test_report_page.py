# Copyright: (c) 2026, accel.cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in a real browser: what a reader sees, can reach and can read, and that nothing goes wrong meanwhile.

With ACCEL_SCREENSHOTS=<folder> each picture that was looked at is kept there.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import report_runs
from ansible_collections.accel.cluster.plugins.plugin_utils import report

TEMPLATE = Path(__file__).resolve().parents[2] / "roles/acceptance/templates/report.html.j2"

# Contrast of each piece of text with what is behind it, after WCAG 2.2 (1.4.3): 4.5, for large text 3.
CONTRAST = """
(function () {
  function parse(color) {
    var parts = color.match(/[\\d.]+/g).map(Number);
    return {rgb: parts.slice(0, 3), alpha: parts.length > 3 ? parts[3] : 1};
  }
  function luminance(rgb) {
    var c = rgb.map(function (v) { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  }
  function background(node) {
    for (; node; node = node.parentElement) {
      var color = parse(getComputedStyle(node).backgroundColor);
      if (color.alpha === 1) { return color.rgb; }
      if (color.alpha > 0) { throw new Error("half transparent background"); }
    }
    return [255, 255, 255];
  }
  document.querySelectorAll("details").forEach(function (node) { node.open = true; });
  var bad = [], seen = 0;
  var walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    var node = walker.currentNode.parentElement;
    var words = walker.currentNode.data.trim();
    if (!words || !node.getClientRects().length || node.closest("script, .hidden, .skip, legend, select")) { continue; }
    var style = getComputedStyle(node);
    var front = luminance(parse(style.color).rgb), back = luminance(background(node));
    var ratio = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
    var size = parseFloat(style.fontSize);
    var large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) { bad.push(ratio.toFixed(2) + " " + node.className + " " + words); }
  }
  return {seen: seen, bad: bad};
})()
"""

OVERFLOW = """
(function () {
  var width = document.documentElement.clientWidth;
  return {
    page: document.documentElement.scrollWidth - width,
    // Names of elements that stick out, save those inside a box that scrolls by itself.
    out: Array.from(document.querySelectorAll("body *")).filter(function (node) {
      return node.getBoundingClientRect().right > width + 0.5 && !node.closest("pre, .scroll, .skip, .cell");
    }).map(function (node) { return node.tagName + "." + node.className; }),
  };
})()
"""


def write(folder: Path, run: dict, language: str = "en") -> Path:
    file = folder / "report.html"
    file.write_text(report.render(run, str(TEMPLATE), language), encoding="utf-8")
    return file


def keep(page, name: str) -> None:
    folder = os.environ.get("ACCEL_SCREENSHOTS")
    if folder:
        page.screenshot(Path(folder) / f"{name}.png")


def assert_clean(page, file: Path) -> None:
    assert page.problems == []
    assert page.requests == [file.as_uri()]


def background(page, selector: str) -> str:
    return page.run(f"getComputedStyle(document.querySelector('{selector}')).backgroundColor")


FAILING = '.cell[data-host="gpu-03"][data-label="OAM2"]'
LOST = '.cell[data-host="gpu-01"][data-label="SXM5"]'
PASSING = '.cell[data-host="gpu-02"][data-label="SXM0"]'


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    ("language", "verdict", "why"),
    [
        ("en", "Fail", "2 of 229 checks failed on 2 of 5 hosts."),
        ("zh", "不通过", "229 项检查中有 2 项不通过，涉及 5 台主机中的 2 台。"),
    ],
)
def test_a_reader_sees_the_verdict_and_the_bad_card(page, tmp_path, language, verdict, why, scheme):
    file = write(tmp_path, report_runs.sick(language), language)
    page.open(file, scheme=scheme)
    assert page.run("document.getElementById('verdict').innerText") == verdict
    assert page.run("document.getElementById('why').innerText") == why
    for selector in (FAILING, LOST):
        assert page.run(f"document.querySelector('{selector}').classList.contains('fail')")
        assert background(page, selector) != background(page, PASSING)
    assert page.run(f"document.querySelector('{PASSING}').classList.contains('pass')")
    assert page.run("getComputedStyle(document.body).colorScheme") == "light dark"
    keep(page, f"sick-{language}-{scheme}")
    assert_clean(page, file)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(page, tmp_path, scheme):
    builder = report_runs.Builder()
    builder.host("gpu-01", "h100_sxm")
    builder.change("device.health", "gpu-01", "SXM1", "unknown", "unknown")
    builder.change("device.model", "gpu-01", "SXM2", "not_applicable", "undeclared")
    builder.change("device.count", "gpu-01", "gpu-01", "fail", "lost", expected=8, observed=7)
    builder.dead_host("gpu-02", "h100_sxm")
    for run in (report_runs.sick(), builder.run("unknown"), report_runs.healthy()):
        page.open(write(tmp_path, run), scheme=scheme)
        result = page.run(CONTRAST)
        assert result["seen"] > 80
        assert result["bad"] == []


def test_the_two_schemes_differ(page, tmp_path):
    file = write(tmp_path, report_runs.healthy())
    seen = set()
    for scheme in ("light", "dark"):
        page.open(file, scheme=scheme)
        seen.add(background(page, "body"))
    assert len(seen) == 2


@pytest.mark.parametrize("width", [360, 390, 768])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_narrow_page_does_not_scroll_sideways(page, tmp_path, language, width):
    run = report_runs.sick(language)
    # The worst there is to lay out: words that can't be broken, everywhere.
    long = "x" * 300
    run["site"] = run["run_id"] = long
    run["hosts"][0]["slots"][0]["label"] = run["hosts"][1]["node_type"] = long
    for finding in run["findings"][:3]:
        finding.update(verdict="fail", title=long, message=long, observed=long, hint_text=long)
        finding["evidence"] = [{"command": long, "rc": 1, "excerpt": long}]
    file = write(tmp_path, run, language)
    page.open(file, width=width, height=844)
    page.run("document.querySelectorAll('details').forEach(node => { node.open = true; })")
    assert page.run(OVERFLOW) == {"page": 0, "out": []}
    assert page.run("document.documentElement.clientWidth") == width
    assert_clean(page, file)


def test_a_narrow_page_of_the_usual_run(page, tmp_path):
    page.open(write(tmp_path, report_runs.sick()), width=390, height=844)
    assert page.run(OVERFLOW) == {"page": 0, "out": []}
    # Every name in the map can be read whole.
    cut = "Array.from(document.querySelectorAll('.cell b, .row .name')).filter(n => n.scrollWidth > n.clientWidth)"
    assert page.run(f"{cut}.length") == 0
    keep(page, "sick-en-narrow")


SHOWN = "Array.from(document.querySelectorAll('.finding')).filter(n => !n.closest('[hidden]')).map(n => n.id)"


def test_choosing_a_cell_leaves_the_findings_of_its_card(page, tmp_path):
    file = write(tmp_path, report_runs.sick())
    page.open(file)
    page.run(f"document.querySelector('{FAILING}').click()")
    # Its narrow link, and the row in which its link speed is with its siblings'.
    assert page.run(SHOWN) == ["f-device.link_width--gpu-03--OAM2", ""]
    assert page.run("location.hash") == "#f-device.link_width--gpu-03--OAM2"
    assert page.run("document.getElementById('shown').textContent") == "9 of 17 shown"
    page.run(f"document.querySelector('{LOST}').click()")
    assert page.run(SHOWN) == ["f-device.count--gpu-01"]
    # The link leads to a consequence, inside a fold that is opened for it.
    assert page.run("document.querySelector('#f-device\\\\.count--gpu-01 details.consequences').open")
    page.run("document.querySelector('button[type=reset]').click()")
    page.run("new Promise(done => setTimeout(done, 0))")
    assert len(page.run(SHOWN)) == 4
    assert_clean(page, file)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        ("form.elements.state[0].checked = false", ["f-device.count--gpu-01", "f-host.reachable--gpu-05", ""]),
        ("form.elements.host.value = 'gpu-05'", ["f-host.reachable--gpu-05"]),
        (
            "form.elements.check.value = 'device.link_width'",
            ["f-device.count--gpu-01", "f-device.link_width--gpu-03--OAM2"],
        ),
        ("form.elements.text.value = '40:01.1'", ["f-device.link_width--gpu-03--OAM2"]),
        ("form.elements.text.value = 'no such words'", []),
    ],
)
def test_filters(page, tmp_path, change, shown):
    page.open(write(tmp_path, report_runs.sick()))
    page.run(f"var form = document.getElementById('filters'); {change}; form.dispatchEvent(new Event('input'))")
    assert page.run(SHOWN) == shown
    assert page.run("!document.getElementById('nothing').hidden") == (shown == [])
    # A section whose findings are all filtered away goes with them.
    assert page.run(
        "Array.from(document.querySelectorAll('.group:not([hidden])'))"
        ".every(group => group.querySelector('.finding:not([hidden])'))"
    )
    assert page.problems == []


def test_a_link_is_copied(page, browser, tmp_path):
    file = write(tmp_path, report_runs.sick())
    page.open(file)
    browser.call("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    said = page.run(
        "new Promise(done => {"
        "  new MutationObserver(() => done(document.getElementById('shown').textContent))"
        "    .observe(document.getElementById('shown'), {childList: true});"
        "  document.querySelector('#f-device\\\\.count--gpu-01 a.link').click();"
        "})"
    )
    assert said == "Link copied"
    assert page.run("navigator.clipboard.readText()") == file.as_uri() + "#f-device.count--gpu-01"
    assert_clean(page, file)


def test_the_keyboard_reaches_a_cell_and_uses_it(page, tmp_path):
    file = write(tmp_path, report_runs.sick())
    page.open(file)
    page.press("Tab", 9)
    assert page.run("document.activeElement.className") == "skip"
    for _press in range(80):
        page.press("Tab", 9)
        if page.run(f"document.activeElement === document.querySelector('{LOST}')"):
            break
    assert page.run("document.activeElement.getAttribute('aria-label')").startswith("gpu-01 SXM5: Fail")
    assert page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.press("Enter", 13, "\r")
    assert page.run(SHOWN) == ["f-device.count--gpu-01"]
    assert_clean(page, file)


def test_a_link_to_a_folded_finding_shows_it(page, tmp_path):
    file = write(tmp_path, report_runs.large(100))
    page.open(file)
    page.run("location.hash = '#f-device.link_width--gpu-093--SXM2'")
    page.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    box = "document.getElementById('f-device.link_width--gpu-093--SXM2').getBoundingClientRect()"
    assert page.run(f"{box}.height") > 20
    assert page.run("document.getElementById('f-device.link_width--gpu-093--SXM2').closest('details').open")


def test_without_scripts_everything_can_be_read(page, tmp_path):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    file = write(tmp_path, report_runs.sick())
    page.open(file)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    assert page.run("getComputedStyle(document.getElementById('filters')).display") == "none"
    assert len(page.run(SHOWN)) == 4
    assert page.run("document.getElementById('verdict').innerText") == "Fail"
    assert page.run("document.querySelectorAll('.finding details').length") == 4
    assert_clean(page, file)


def test_on_paper_the_folds_of_findings_are_open_and_the_paper_is_white(page, tmp_path):
    page.open(write(tmp_path, report_runs.sick()), scheme="dark")
    page.run("dispatchEvent(new Event('beforeprint'))")
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert background(page, "body") == "rgb(255, 255, 255)"
    assert page.run("Array.from(document.querySelectorAll('.group details')).every(node => node.open)")
    assert page.run("document.querySelector('#filters select').getClientRects().length") == 0
    assert page.run(CONTRAST)["bad"] == []
    page.call("Emulation.setEmulatedMedia", media="")
    page.run("dispatchEvent(new Event('afterprint'))")
    assert not page.run("document.querySelector('.group details').open")


@pytest.mark.parametrize(
    "run", [report_runs.empty(), report_runs.healthy(), report_runs.large(200)], ids=["empty", "healthy", "large"]
)
def test_other_runs_open_without_a_problem(page, tmp_path, run, request):
    file = write(tmp_path, run)
    page.open(file)
    assert page.run(OVERFLOW) == {"page": 0, "out": []}
    keep(page, request.node.callspec.id)
    assert_clean(page, file)


def test_hostile_text_runs_nothing(page, tmp_path):
    run = report_runs.sick()
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 1'><style>*{color:red}</style>"
    run["site"] = evil
    for finding in run["findings"]:
        finding.update(message=evil, observed=evil, title=evil, evidence=[{"command": evil, "rc": 0, "excerpt": evil}])
    file = write(tmp_path, run)
    page.open(file)
    page.run("document.querySelectorAll('details').forEach(node => { node.open = true; })")
    assert page.run("window.evil") is None
    assert "</script><script>window.evil" in page.run("document.querySelector('.finding .message').innerText")
    assert_clean(page, file)


# -- that the helper sees what goes wrong: without this "no problem" would prove nothing


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("<script>nothere();</script>", "exception: ReferenceError: nothere is not defined"),
        ("<script>var = 1;</script>", "exception: SyntaxError"),
        ("<script>console.error('broken', 7);</script>", "console error: broken 7"),
        ("<script>addEventListener('load', () => { throw new Error('late'); })</script>", "exception: Error: late"),
        ("<script>Promise.reject(new Error('unseen'))</script>", "exception: Error: unseen"),
        ("<img src='missing.png'>", "request failed: net::ERR_FILE_NOT_FOUND"),
        ("<script>fetch('report.json').catch(() => {})</script>", "request failed"),
        ("<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\"><script>1</script>", "log error"),
    ],
)
def test_the_helper_sees_a_problem(page, tmp_path, body, problem):
    file = tmp_path / "broken.html"
    file.write_text(f"<!DOCTYPE html><title>broken</title><body>{body}")
    page.open(file)
    assert any(problem in one for one in page.problems), page.problems
    with pytest.raises(AssertionError):
        assert_clean(page, file)


def test_the_helper_sees_a_request_that_succeeds(page, tmp_path):
    (tmp_path / "style.css").write_text("body { color: red }")
    file = tmp_path / "page.html"
    file.write_text("<!DOCTYPE html><title>outside</title><link rel=stylesheet href=style.css>")
    page.open(file)
    assert page.requests == [file.as_uri(), (tmp_path / "style.css").as_uri()]
    with pytest.raises(AssertionError):
        assert_clean(page, file)


def test_the_helper_sees_a_wide_page_and_pale_text(page, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(
        "<!DOCTYPE html><meta name=viewport content='width=device-width'><title>t</title>"
        "<body style='background: #fff'><p style='width: 900px; color: #888'>pale</p><p style='color: #000'>dark</p>"
    )
    page.open(file, width=390)
    assert page.run(OVERFLOW)["page"] > 500
    result = page.run(CONTRAST)
    assert result["seen"] == 2
    assert [line.split()[0] for line in result["bad"]] == ["3.54"]


def test_a_browser_that_does_not_start_says_why(tmp_path):
    import cdp

    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho cannot open display >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="cannot open display"):
        cdp.Browser(str(program))
