# SPDX-License-Identifier: MIT
"""Train, kill with SIGKILL at a random moment, resume rightly or as people do it wrongly, and ask reprise.

For each case: what `verify` foretold from the newest checkpoint alone before the resume, what `audit` found in
the run's folder afterwards, what `verify` found in the first checkpoint that the resumed attempt saved, and
what was true. A case fails where a wrong resume is named by none of them, where one of those that should name
it does not, or where a right one is blamed at warning or error. LAB_SEED=n kills at other moments.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import journal

HERE = pathlib.Path(__file__).parent
TOOL = os.environ["REPRISE"]
SEED = os.environ.get("LAB_SEED", "1")
STEPS, SAVE_EVERY, TIMEOUT = 34, 5, 300
LEFT_BEHIND = {"I108"}  # a newer checkpoint that the kill cut, rightly passed by
HOW = ("--settle", "0", "--env", sys.prefix)


class Case(NamedTuple):
    framework: str
    way: str  # as train.py names it
    truth: str  # what a person would say that happened
    found: str = ""  # codes of which audit must name one
    foretold: str = ""  # … verify, before the resume
    after: str = ""  # … verify, of the first checkpoint after it
    cuts: tuple = ((12, 14),)  # steps between which each attempt but the last is killed
    ranks: tuple = (1,)  # of each attempt; the last one goes on
    steps: int = STEPS

    @property
    def right(self):
        return not (self.found or self.foretold or self.after)


LATER = ((22, 24),)  # in the second epoch of 12 steps, after its checkpoint 20
CASES = (
    Case("torch", "right", "batches counted and skipped, order seeded by epoch"),
    Case("torch", "right", "the same, resumed twice", cuts=((12, 14), (22, 26))),
    Case("torch", "workers", "the same with two loader workers"),
    Case("torch", "skip-declared", "two steps after the checkpoint left out, declared as intent"),
    Case("torch", "from-the-top", "position not restored", "D101"),
    Case("torch", "new-seed", "position not restored, new shuffle", "D103"),
    Case("torch", "accumulation-factor", "skips updates where it should skip batches", "D102"),
    Case("torch", "skipped-twice", "skips the batches in two places", "D104"),
    Case("torch", "one-too-many", "off by one update", "D104"),
    Case("torch", "epoch-seed-lost", "order of epoch 0 in epoch 1", "D108", cuts=LATER),
    Case("torch", "skip-in-every-epoch", "skip applied again in each later epoch", "D111"),
    Case("torch", "forgets-first-resume", "second resume counts from the first one", "D101 D102", cuts=((6, 8), (11, 11))),
    Case("torch", "optimizer-cold", "optimizer state not loaded", after="T104"),
    Case("torch", "schedule-restarted", "schedule not loaded: warm-up again", after="T101"),
    Case("torch", "random-reseeded", "seeded again instead of restored", after="R104"),
    Case("distributed", "right", "DistributedSampler, set_epoch, batches skipped", ranks=(2,)),
    Case("distributed", "right", "the same, resumed on one process with twice the batch", ranks=(2, 1)),
    Case("distributed", "ranks-unsynchronised", "every rank shuffles by its own seed", "D105", ranks=(2,)),
    Case("distributed", "one-shard-for-all", "all ranks read the shard of rank 0", "D105", ranks=(2,)),
    Case("distributed", "world-factor", "skip multiplied by the number of ranks", "D104", ranks=(2,)),
    Case("distributed", "set-epoch-forgotten", "set_epoch not called after the resume", "D108", cuts=LATER, ranks=(2,)),
    Case("stateful", "right", "StatefulDataLoader with its state"),
    Case("stateful", "state-not-loaded", "the loader's state not loaded", "D101"),
    Case("stateful", "loaded-too-late", "state loaded after iter()", "D101"),
    Case("sources", "right", "two sources, each goes on at its position", steps=200),
    Case("sources", "weights-changed", "share of one source 25 % → 60 %", "M101 M102", steps=200),
    Case("sources", "source-from-the-top", "one of two sources starts again", "D101 D102 D103", steps=200),
    Case("sources", "source-lost", "one of two sources is gone", "M101 M102 M103", steps=200),
    Case("accelerate", "right", "seedable sampler, skip_first_batches"),
    Case("accelerate", "stateful", "stateful loader, load_state"),
    Case("accelerate", "not-skipped", "batches not skipped", "D101"),
    Case("accelerate", "plain-sampler", "batches skipped, but the sampler's order is another one", "D103"),
    Case("transformers", "right", "Trainer with accumulation, resume_from_checkpoint"),
    Case("transformers", "right", "the same in the second epoch", cuts=LATER),
    Case("transformers", "ignore-data-skip", "ignore_data_skip=True", "D101", "P101"),
    Case("transformers", "new-seed", "another seed", "D103"),
    Case("transformers", "batch-halved", "per_device_train_batch_size 4 → 2", "D102"),
    Case("lightning", "right", "stateful loader, random state saved by a callback"),
    Case("lightning", "random-not-saved", "stateful loader; Lightning saves no random state", foretold="R101"),
    Case("lightning", "plain-loader", "plain DataLoader in the middle of an epoch", "D101", "P101"),
)


class Run:
    """The launches of one case, in a folder of its own: the run below `root`, the truth beside it."""

    def __init__(self, case, scratch):
        self.case, self.scratch = case, scratch
        self.root = scratch / "run"
        self.root.mkdir()
        self.attempts = len(case.cuts) + 1
        self.random = random.Random(f"{SEED} {case}")
        self.checkpoint = ""  # that the next attempt resumes from

    def launch(self, attempt):
        """Run one attempt to its end, or until it is killed."""
        case = self.case
        ranks = case.ranks[min(attempt, len(case.ranks)) - 1]
        kill_after = self.random.randint(*case.cuts[attempt - 1]) if attempt < self.attempts else None
        command = [sys.executable, HERE / "train.py", case.framework, case.way, self.root, attempt, case.steps]
        errors = self.scratch / f"stderr-{attempt}"
        jobs = []
        with open(errors, "w") as stderr:
            for rank in range(ranks):
                env = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), GLOO_SOCKET_IFNAME="lo", LAB_CHECKPOINT=self.checkpoint)
                if ranks == 1:
                    del env["RANK"], env["WORLD_SIZE"]
                jobs.append(
                    subprocess.Popen(
                        [str(word) for word in command],
                        env=env,
                        stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                        stderr=stderr,
                        text=True,
                        start_new_session=True,
                    )
                )
        watchdog = threading.Timer(TIMEOUT, kill, [jobs])
        watchdog.start()
        try:
            self.follow(jobs, kill_after)
        finally:
            watchdog.cancel()
            kill(jobs)
        codes = [job.wait() for job in jobs]
        if kill_after is None and any(codes):
            raise AssertionError(f"attempt {attempt} ended with {codes}: {errors.read_text()[-3000:]}")
        if kill_after is not None and not all(code == -signal.SIGKILL for code in codes):
            raise AssertionError(f"attempt {attempt} ended before step {kill_after}: {errors.read_text()[-3000:]}")

    def follow(self, jobs, kill_after):
        """Until rank 0 has ended, or somewhere within the step after `kill_after`, where all are killed."""
        for line in jobs[0].stdout:
            if line.strip() == f"step {kill_after}":
                time.sleep(self.random.random() * 0.01)
                return
        for job in jobs:
            job.wait()

    def recorded(self):
        """{(attempt, dp): {step: [key...]}} as the journals have it, by a reader that is not reprise's."""
        out = {}
        for file in journal.files(self.root / "record"):
            opened = journal.objects(file, journal.OPEN)[0]
            steps = out.setdefault((int(opened["launch"].split("-")[1]), opened["dp"]), {})
            for step, _, keys in journal.steps(file):
                steps.setdefault(step, []).extend(keys)
        return out

    def check_record(self):
        """What the loops say that they read stands in the record, to the last step of the resumed attempt."""
        recorded, newest = self.recorded(), 0
        for file in self.scratch.glob("truth-*.jsonl"):
            lines = file.read_text().split("\n")
            for line in filter(None, lines):
                try:
                    said = json.loads(line)
                except ValueError:
                    continue  # torn by a kill
                newest = max(newest, said["step"])
                there = recorded[said["attempt"], said["dp"]].get(said["step"])
                if there != said["ids"]:
                    raise AssertionError(f"attempt {said['attempt']} step {said['step']}: read {said['ids']}, recorded {there}")
        if newest < self.case.steps:
            raise AssertionError(f"the resumed part ended with step {newest}")

    def first_saved_after(self):
        """Step of the first checkpoint of the last attempt."""
        resumed = min(step for (attempt, _), steps in self.recorded().items() if attempt == self.attempts for step in steps)
        return resumed + -resumed % SAVE_EVERY


def kill(jobs):
    for job in jobs:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)


def ask(*arguments):
    done = subprocess.run([TOOL, *map(str, arguments), "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stderr}")
    report = json.loads(done.stdout)
    if "verdict" not in report:
        raise AssertionError(f"{arguments}: {report}")
    return report


def chosen(report, root):
    """The checkpoint that a report on a root is about; a root that holds one alone is itself named."""
    path = next(i["path"] for i in report["inputs"] if i["role"] == "checkpoint")
    return path if pathlib.Path(path) != root else str(next(root.iterdir()))


class Answer(NamedTuple):
    word: str
    codes: tuple
    evidence: str

    @classmethod
    def of(cls, report):
        named = {f["code"] for f in report["findings"] if f["severity"] in ("error", "warning")} - LEFT_BEHIND
        return cls(report["verdict"]["word"], tuple(sorted(named)), report["verdict"]["evidence"])

    def names(self, wanted):
        return bool(set(wanted.split()) & set(self.codes))

    def __str__(self):
        return f"{self.word} {' '.join(self.codes)}".strip()


class Row(NamedTuple):
    case: Case
    foretold: Answer = None
    found: Answer = None
    after: Answer = None
    fault: str = ""

    def verdict(self):
        """found, foretold, missed, false alarm, or clean."""
        if self.found is None:
            return "failed"
        if self.case.right:
            return "false alarm" if self.foretold.codes or self.found.codes or self.after.codes else "clean"
        words = [w for w in ("foretold", "found", "after") if getattr(self.case, w) and getattr(self, w).names(getattr(self.case, w))]
        return " and ".join("found later" if w == "after" else w for w in words) or "missed"


def judge(case):
    """Train, kill, resume and ask: the case's row."""
    try:
        with tempfile.TemporaryDirectory(prefix="reprise-lab-", ignore_cleanup_errors=True) as scratch:
            run = Run(case, pathlib.Path(scratch))
            foretold = None
            for attempt in range(1, run.attempts + 1):
                if attempt > 1:
                    report = ask("verify", run.root / "ckpt", *HOW)
                    foretold = Answer.of(report)
                    run.checkpoint = chosen(report, run.root / "ckpt")
                run.launch(attempt)
            run.check_record()
            found = Answer.of(ask("audit", run.root))
            after = Answer.of(ask("verify", run.root / "ckpt", *HOW, "--step", run.first_saved_after()))
    except Exception as error:  # noqa: BLE001: the other cases go on
        return Row(case, fault=f"{type(error).__name__}: {error}")
    row = Row(case, foretold, found, after)
    missing = [w for w in ("foretold", "found", "after") if getattr(case, w) and not getattr(row, w).names(getattr(case, w))]
    if missing:
        return row._replace(fault="; ".join(f"{w}: {getattr(case, w)} wanted, not {getattr(row, w)}" for w in missing))
    if row.verdict() == "false alarm":
        return row._replace(fault=f"a right resume is blamed: {foretold}; {found}; {after}")
    return row


def table(rows):
    """The rows in Markdown, and what they amount to."""
    lines = [
        "| framework | the resume | foretold by `verify` | found by `audit` | by `verify` in the next checkpoint | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = (row.case.framework, row.case.truth, row.foretold, row.found, row.after, row.verdict())
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    verdicts = [row.verdict() for row in rows]
    wrong = [v for row, v in zip(rows, verdicts) if not row.case.right]
    lines.append("")
    lines.append(
        f"{len(wrong)} wrong resumes: {sum('foretold' in v for v in wrong)} foretold, "
        f"{sum('found' in v.split(' and ') for v in wrong)} found by audit, "
        f"{sum('found later' in v for v in wrong)} found in the next checkpoint, {wrong.count('missed')} missed; "
        f"{len(rows) - len(wrong)} right ones: {verdicts.count('false alarm')} false alarms"
    )
    return "\n".join(lines)


def main(wanted=""):
    """Run the cases whose name has `wanted` in it, as many at a time as there are cores; (passed, failed)."""
    cases = [case for case in CASES if wanted in f"{case.framework} {case.way}"]

    def run(case):
        began = time.monotonic()
        row = judge(case)
        print(f"{'FAIL' if row.fault else 'ok'}  {case.framework} {case.way} {time.monotonic() - began:.0f} s  {row.fault}", flush=True)
        return row

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(run, cases))
    print("\n" + table(rows))
    failed = sum(bool(row.fault) for row in rows)
    return len(rows) - failed, failed


if __name__ == "__main__":
    passed, failed = main(" ".join(sys.argv[1:]))
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)
