#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Complete command lines in a real bash on a terminal, as a person does, and look at what stands there then."""
import os
import pty
import re
import select
import sys
import tempfile
import time

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.abspath("share/bash-completion/completions/reprise")
WAIT = 20.0  # seconds, after which a bash that does not answer is a failure

# What is typed before the tab, and the words of the line behind it.
CASES = [
    ("reprise ver", "reprise|verify"),
    ("reprise verify --ag", "reprise|verify|--against"),
    ("reprise verify --against ru", "reprise|verify|--against|runs/"),
    ("reprise gate --po", "reprise|gate|--policy"),
    ("reprise gate --policy st", "reprise|gate|--policy|strict"),
    ("reprise gate --policy=qu", "reprise|gate|--policy=quick"),
    ("reprise gate --policy my", "reprise|gate|--policy|my policy.ini"),
    ("reprise show --format js", "reprise|show|--format|json"),
    ("reprise show --color=al", "reprise|show|--color=always"),
    ("reprise get --limit dep", "reprise|get|--limit|depth="),
    ("reprise explain P10", "reprise|explain|P10"),
    ("reprise explain R101 R1", "reprise|explain|R101|R1"),
    ("reprise explain NO_DATA_PO", "reprise|explain|NO_DATA_POSITION"),
    ("reprise ls one\\ more", "reprise|ls|one more.pt"),
    ('reprise ls "one mo', "reprise|ls|one more.pt"),
    ("reprise -q show runs/a", "reprise|-q|show|runs/a.pt"),
    ("reprise -j 3 compare runs/a.pt ru", "reprise|-j|3|compare|runs/a.pt|runs/"),
    ("reprise show -- --o", "reprise|show|--|--odd.pt"),
    # Of other commands, and given already.
    ("reprise show --ag", "reprise|show|--ag"),
    ("reprise verify --quick --qui", "reprise|verify|--quick|--quiet"),
    ("reprise verify --limit depth=3 --lim", "reprise|verify|--limit|depth=3|--limit"),
    # Numbers are no files.
    ("reprise verify --step ru", "reprise|verify|--step|ru"),
    ("reprise nothing --hel", "reprise|nothing|--help"),
]


class Bash:
    def __init__(self, folder):
        pid, self.terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "INPUTRC": "/dev/null", "HISTFILE": "", "LC_ALL": "C.UTF-8"}
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        # What shows the words; its mark is in two pieces, since the terminal echoes what is typed.
        self.say("show() { local IFS='|'; echo 'words'\":$*\"; }; bind 'set bell-style none'; ")
        self.say(f"bind 'set enable-bracketed-paste off'; source {SCRIPT}; show begin\n")
        self.words()

    def say(self, text):
        os.write(self.terminal, text.encode())

    def words(self):
        seen, end = "", time.monotonic() + WAIT
        while not (found := re.search(r"words:(.*)\r\n", seen)):
            if not select.select([self.terminal], [], [], max(end - time.monotonic(), 0))[0]:
                sys.exit(f"bash does not answer; it said: {seen!r}")
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return found[1]

    def complete(self, line):
        """The words of the line after a tab: from its beginning on they become arguments of show."""
        self.say(f"{line}\t\x01show \n")
        return self.words()


def main():
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/runs")
        for name in ("runs/a.pt", "one more.pt", "my policy.ini", "--odd.pt", "other.txt"):
            open(f"{folder}/{name}", "w").close()
        bash = Bash(folder)
        for line, wanted in CASES:
            came = bash.complete(line)
            if came != wanted:
                print(f"{line!r} becomes {came!r}, not {wanted!r}")
                wrong += 1
    print(f"{len(CASES) - wrong} passed, {wrong} failed")
    return 1 if wrong else 0


sys.exit(main())
