#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Whether a finding of the report on standard input states something.

  stated.py steps CODE A-B      its place is steps A to B
  stated.py says CODE N|M       it states the number N or M: observed, expected, or in its message or cause"""
import json
import re
import sys

GROUPED = re.compile(r"(?<=\d)[ ,\u00a0\u2009\u202f](?=\d{3}(?!\d))")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\d)")


def states(finding, number):
    for value in (finding["observed"], finding["expected"], finding["message"], finding["cause"]):
        if value is None:
            continue
        if isinstance(value, str):
            if any(float(found) == number for found in NUMBER.findall(GROUPED.sub("", value))):
                return True
        elif value == number:
            return True
    return False


def main():
    kind, code, wanted = sys.argv[1:]
    findings = [f for f in json.load(sys.stdin)["findings"] if f["code"] == code]
    if kind == "steps":
        place = [int(step) for step in wanted.split("-")]
        return any(f["where"]["steps"] == place for f in findings)
    return any(states(f, float(number)) for f in findings for number in wanted.split("|"))


if __name__ == "__main__":
    sys.exit(not main())
