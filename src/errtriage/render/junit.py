"""Findings as JUnit XML: a suite for each file, a test case for each finding.

What fails the run is a failure; what does not is written to the suite's output, so that it is not lost. The order and
the attributes satisfy both schemas in use (Ant's, which wants them all, and Jenkins').
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from errtriage.reports import FileReport, LintReport, Located

#: What XML 1.0 has no way to write.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: LintReport, written: datetime | None = None) -> bytes:
    """The report as an XML document; ``written`` is the time that every suite carries (now, where it is not given)."""
    suites = ET.Element("testsuites")
    time = (written or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%S")
    for number, each in enumerate(report.reports):
        suites.append(_suite(report, each, number, time))
    ET.indent(suites)
    return bytes(ET.tostring(suites, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(report: LintReport, file: FileReport, number: int, time: str) -> ET.Element:
    failing = [finding for finding in file.findings if report.fails(finding)]
    others = [finding for finding in file.findings if not report.fails(finding)]
    broken = file.failure is not None
    suite = ET.Element(
        "testsuite",
        {
            "name": _xml(file.file), "package": "errtriage", "id": str(number), "timestamp": time, "hostname": "localhost", "time": "0",
            "tests": str(max(1, len(failing))), "failures": str(len(failing)), "errors": str(int(broken)),
        },
    )  # fmt: skip
    ET.SubElement(suite, "properties")
    if broken:
        ET.SubElement(_case(suite, "can be read", file), "error", {"type": "unread", "message": _xml(file.failure or "")})
    elif not failing:
        _case(suite, f"{file.payloads} {report.unit}s", file)
    for finding in failing:
        case = _case(suite, f"{finding.rule} {finding.pointer or f'(whole {report.unit})'}, line {finding.line}", file)
        ET.SubElement(case, "failure", {"type": finding.rule, "message": _xml(finding.message)}).text = _xml(_line(finding))
    ET.SubElement(suite, "system-out").text = _xml("\n".join(map(_line, others)))
    ET.SubElement(suite, "system-err")
    return suite


def _case(suite: ET.Element, name: str, file: FileReport) -> ET.Element:
    return ET.SubElement(suite, "testcase", {"name": _xml(name), "classname": _xml(file.file), "time": "0"})


def _line(finding: Located) -> str:
    column = f":{finding.column}" if finding.column else ""
    return f"{finding.file}:{finding.line}{column}: {finding.level} {finding.rule} {finding.pointer} {finding.message}"


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
