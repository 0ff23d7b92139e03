#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""manual.py BUILD: hold the manual's pages against the tables of commands and options and the public header.

Every command has a page that names its operands and summary, all of its options and no others, and the exit
statuses; libreprise(3) and libreprise-record(3) have every function as the headers declare it; references lead somewhere;
mandoc and groff have nothing to say. The map of the source in src/cli/main.c has every file.
"""
import glob
import os
import re
import subprocess
import sys

os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
tables = sys.argv[1] + "/tables"
pages = {}
for name in sorted(os.listdir("man")):
    if re.fullmatch(r".*\.[0-9]", name):
        with open("man/" + name, encoding="utf-8") as file:
            pages[name] = file.read()
wrong = 0


def complain(text):
    global wrong
    wrong += 1
    print(text)


def rows(*arguments):
    out = subprocess.run([tables, *arguments], check=True, capture_output=True, text=True).stdout
    return [line.split("\t") for line in out.splitlines()]


def section(page, name):
    match = re.search(rf'(?ms)^\.Sh {name}\n(.*?)(?=^\.Sh |\Z)', pages[page])
    if not match:
        complain(f"{page} has no section {name}")
    return match[1] if match else ""


def options_of(text, macro):
    """{(letter, name, argument)} of the lines `.It Fl …` or `.Op Fl …`, or `.Fl …` of what must be given."""
    found = set()
    begin = "(?:Op )?" if macro == "Op" else f"{macro} "
    for line in re.findall(rf"(?m)^\.{begin}(Fl .*)$", text):
        line = line.replace("\\-", "-")
        match = re.fullmatch(r"(?:Fl (\w)(?: , )?)?(?:Fl -([\w-]+))?(?: Ar (\S+))?", line)
        if match:
            found.add((match[1] or "-", match[2] or "-", match[3] or "-"))
        else:
            complain(f"an option is written in an unknown way: {line}")
    return found


def check_options(page, wanted, found):
    for row in wanted - found:
        complain(f"{page}: the option -{row[0]}, --{row[1]} {row[2]} is missing")
    for row in found - wanted:
        complain(f"{page}: there is no option -{row[0]}, --{row[1]} {row[2]}")


def check_command(name, operands, summary, options):
    page = f"reprise-{name}.1"
    if page not in pages:
        complain(f"the command {name} has no page")
        return
    mine = [row for row in options if row[0] == name]
    check_options(page, {tuple(row[1:4]) for row in mine}, options_of(section(page, "OPTIONS"), "It"))
    synopsis = section(page, "SYNOPSIS")
    shown = {letter if letter != "-" else name for letter, name, _ in options_of(synopsis, "Op")}
    for _, letter, option, _, kind in mine:
        if kind == "own" and not shown & {letter, option}:
            complain(f"{page}: --{option} is not in the synopsis")
    for word in shown - {word for row in mine for word in row[1:3]}:
        complain(f"{page}: the synopsis has an unknown option {word}")
    if f".Nd {summary}\n" not in pages[page]:
        complain(f"{page}: its summary is not that of the command: {summary}")
    words = " ".join(re.findall(r"(?m)^\.(?:Op )?Ar ([^\n]*)$", synopsis)).replace("option ...", "").split()
    if words != re.sub(r"[][]|\.\.\.", lambda m: " ..." if m[0] == "..." else "", operands).split():
        complain(f"{page}: its operands are not those of the command: {operands}")


def check_library(header, macro, name_of_page):
    with open(header, encoding="utf-8") as file:
        declared = re.findall(rf"(?s)^{macro} ([^;{{]*?)(\w+)\(([^;]*)\);", file.read(), re.M)
    page = pages[name_of_page]
    shown = {}
    for kind, name, arguments in re.findall(r'(?m)^\.Ft (.*)\n\.Fo (\w+)\n((?:\.Fa .*\n)+)\.Fc', page):
        shown[name] = (kind.strip('"'), re.findall(r'(?m)^\.Fa "?([^"\n]*)"?$', arguments))
    for kind, name, arguments in declared:
        wanted = (" ".join(kind.split()), [" ".join(a.split()) for a in arguments.split(",")])
        if shown.pop(name, None) != wanted:
            complain(f"{name_of_page} does not show {name} as the header declares it: {wanted}")
        if f".Fn {name}" not in page:
            complain(f"{name_of_page} does not describe {name}")
    for name in shown:
        complain(f"{name_of_page}: there is no function {name}")


def check_words(page, text):
    for name, number in re.findall(r"(?m)^\.(?:It )?Xr (\S+) ([0-9])", text):
        if "reprise" in name and f"{name}.{number}" not in pages:
            complain(f"{page}: there is no page {name}({number})")
    if page.endswith(".1") and '.\\" From tables: exit-statuses\n' not in section(page, "EXIT STATUS"):
        complain(f"{page}: its exit statuses are not from the table")
    # Lines of a synopsis are seldom full: they are left as they are.
    for command in (["mandoc", "-T", "lint", "-W", "style"], ["groff", "-dAD=l", "-ww", "-mdoc", "-Tutf8", "-z"]):
        done = subprocess.run([*command, "man/" + page], capture_output=True, text=True)
        for line in (done.stdout + done.stderr).splitlines():
            # Which other pages are installed is the machine's affair.
            if "referenced manual not found" not in line and "mandoc.db" not in line:
                complain(line)


def check_map():
    with open("src/cli/main.c", encoding="utf-8") as file:
        words = set(re.findall(r"\w+", file.read().split("*/\n/* clang-format on */")[0]))
    for path in sorted(glob.glob("src/*/*.[ch]")):
        # What only the parts of one module share goes by the module's name.
        name = os.path.splitext(os.path.basename(path))[0].removesuffix("_parts")
        if name not in words and not name.startswith("cmd_"):
            complain(f"the map in src/cli/main.c does not have {path}")


def main():
    options = rows("options")
    for name, operands, summary in rows("commands"):
        check_command(name, operands, summary, options)
    common = {tuple(row[1:4]) for row in options if row[4] == "common"}
    check_options("reprise.1", common, options_of(section("reprise.1", "OPTIONS"), "It"))
    check_library("include/reprise.h", "RP_API", "libreprise.3")
    check_library("include/reprise_record.h", "RP_RECORD_API", "libreprise-record.3")
    for page, text in pages.items():
        check_words(page, text)
    check_map()
    print(f"{len(pages)} pages of the manual, {wrong} complaints")
    return 1 if wrong else 0


sys.exit(main())
