#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold what is said of snapshots against what is said of the checkpoints that they were taken of.

For each checkpoint that a fixture's `expect` verifies: `verify SNAPSHOT`, also against a snapshot of the
earlier one, has the same findings, verdict and exit status as `verify CHECKPOINT`; what a rule looked at is
the same, or it says that it could not look. What only elements tell of two checkpoints may be missing. Two
snapshots of one checkpoint are the same bytes, for any number of threads.

usage: snapshots.py REPRISE [--all] [FIXTURE...]; without --all every third checkpoint is looked at."""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What needs the elements of two checkpoints: a snapshot holds none.
OF_ELEMENTS = {"O106"}
SAMPLE = 3
AGAIN = 5  # every fifth snapshot is taken twice


def run(reprise, *arguments):
    done = subprocess.run([reprise, *arguments], capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def verify(reprise, path, against):
    command = ["verify", path, "--settle", "0", "--format", "json"]
    if against:
        command += ["--against", against]
    status, out, errors = run(reprise, *command)
    return status, json.loads(out) if out else None, errors


def essence(finding, name):
    """A finding without the part of its place that is before the checkpoint's name."""
    finding = json.loads(json.dumps(finding))
    place = finding["where"].get("file")
    if place and name in place:
        finding["where"]["file"] = place[place.index(name):]
    return json.dumps(finding, sort_keys=True)


def compare(of, taken, name, two):
    """What differs between two reports, as sentences."""
    told = [essence(f, name) for f in of["findings"] if not (two and f["code"] in OF_ELEMENTS)]
    kept = [essence(f, name) for f in taken["findings"] if not (two and f["code"] in OF_ELEMENTS)]
    for finding in told:
        if finding not in kept:
            yield f"lacks {finding}"
    for finding in kept:
        if finding not in told:
            yield f"has {finding}"
    elements = two and any(f["code"] in OF_ELEMENTS for f in of["findings"])
    # The answer says that the earlier one is a snapshot; all else of it is the same.
    evidence = re.sub(r", kept as \S+", "", taken["verdict"]["evidence"] or "")
    if not elements and of["verdict"] != dict(taken["verdict"], evidence=evidence or taken["verdict"]["evidence"]):
        yield f"verdict {taken['verdict']}, not {of['verdict']}"
    if not elements and of["exit"] != taken["exit"]:
        yield f"exit {taken['exit']}, not {of['exit']}"
    looked = {c["rule"]: c for c in taken["coverage"]}
    for cover in of["coverage"]:
        mine = looked.get(cover["rule"])
        if mine is None:
            yield f"says nothing of {cover['rule']}"
        elif mine == cover or (mine["status"] == "not_checked" and "in a snapshot" in mine["reason"]):
            continue
        elif not (two and cover["status"] == "not_checked"):
            # Of an earlier checkpoint a snapshot may know more than was read of its files.
            yield f"looked at {mine}, not {cover}"


class Check:
    def __init__(self, reprise, work):
        self.reprise, self.work = reprise, work
        self.passed = self.failed = 0
        self.seen = {}

    def fail(self, what, why):
        print(f"FAIL {what}: {why}")
        self.failed += 1

    def snapshot(self, path):
        """A snapshot of a checkpoint, or None where it cannot be read at all."""
        real = os.path.realpath(path)
        if real not in self.seen:
            out = os.path.join(self.work, f"{len(self.seen)}.rps")
            status, _, errors = run(self.reprise, "snapshot", path, "-o", out, "-j", "1")
            again = out + ".again"
            if status == 0 and len(self.seen) % AGAIN == 0:
                run(self.reprise, "snapshot", path, "-o", again, "-j", "7")
                with open(out, "rb") as a, open(again, "rb") as b:
                    if a.read() != b.read():
                        self.fail(path, "two snapshots of it differ")
                os.unlink(again)
            elif status not in (0, 3):
                self.fail(path, f"snapshot exits with {status}: {errors}")
            self.seen[real] = out if status == 0 else None
        return self.seen[real]

    def one(self, what, path, against):
        status, report, errors = verify(self.reprise, path, against)
        chosen = [i["path"] for i in report["inputs"] if i["role"] == "checkpoint"] if report else []
        before = [i["path"] for i in report["inputs"] if i["role"] == "against"] if report else []
        if not chosen:
            return
        if chosen[0] != path:
            # Of a root: the pair that was chosen, by name.
            path, against = chosen[0], before[0] if before else None
            status, report, errors = verify(self.reprise, path, against)
        of, earlier = self.snapshot(path), self.snapshot(against) if against else None
        if not of or (against and not earlier):
            return
        status, taken, errors = verify(self.reprise, of, earlier)
        if not taken:
            self.fail(what, f"its snapshot: exit {status}: {errors}")
            return
        wrong = list(compare(report, taken, os.path.basename(os.path.normpath(path)), against is not None))
        for why in wrong:
            self.fail(what, why)
        self.passed += not wrong


def main():
    reprise, every = os.path.abspath(sys.argv[1]), 1 if sys.argv[2:3] == ["--all"] else SAMPLE
    folders = [os.path.abspath(f) for f in sys.argv[2:] if f != "--all"] or [os.path.join(HERE, "fixtures")]
    number = 0
    with tempfile.TemporaryDirectory() as work:
        check = Check(reprise, work)
        for top in folders:
            for folder, _, files in sorted(os.walk(top)):
                if "expect" not in files:
                    continue
                os.chdir(folder)
                with open("expect", encoding="utf-8") as lines:
                    commands = {line.split(" : ")[0].strip() for line in lines}
                for command in sorted(commands):
                    words = shlex.split(command, comments=True)
                    if len(words) not in (2, 4) or words[0] != "verify" or words[2:3] not in ([], ["--against"]):
                        continue
                    number += 1
                    if number % every:
                        continue
                    check.one(f"{os.path.relpath(folder, HERE)}: {command}", words[1], words[3] if words[3:] else None)
    print(f"{check.passed} snapshots passed, {check.failed} failed")
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
