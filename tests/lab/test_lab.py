# SPDX-License-Identifier: MIT
"""Train, kill with SIGKILL at a random step, resume rightly or as people do it wrongly, and ask reprise.

For each case: what `verify` foretold from the newest checkpoint before the resume, what `audit` found in the
record, and what was true. The table is the lab's output; a case fails where a wrong resume is not named or a
right one is blamed.
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).parent
TOOL = os.environ["REPRISE"]
STEPS, RANKS = 34, 2

# framework, way, launches, findings of which one must be there ("" for right), what is foretold (any of; "" none)
CASES = (
    ("torch", "right", 2, "", ""),
    ("torch", "right", 3, "", ""),
    ("torch", "from-the-top", 2, "D101 D102", ""),
    ("torch", "new-seed", 2, "D103", ""),
    ("torch", "accumulation-factor", 2, "D102 D109", ""),
    ("torch", "skipped-twice", 2, "D104 D109", ""),
    ("torch", "one-too-many", 2, "D104 D109", ""),
    ("torch", "epoch-seed-lost", 2, "D108 D109", ""),
    ("torch", "skip-in-every-epoch", 2, "D111 D104", ""),
    ("torch", "forgets-first-resume", 3, "D101 D102 D109", ""),
    ("distributed", "right", 2, "", ""),
    ("distributed", "ranks-unsynchronised", 2, "D105", ""),
    ("distributed", "one-shard-for-all", 2, "D105", ""),
    ("distributed", "world-factor", 2, "D104 D109", ""),
    ("distributed", "set-epoch-forgotten", 2, "D108 D109", ""),
    ("stateful", "right", 2, "", ""),
    ("stateful", "state-not-loaded", 2, "D101 D102 D103", ""),
    ("stateful", "loaded-too-late", 2, "D101 D102 D103", ""),
    ("sources", "right", 2, "", ""),
    ("sources", "weights-changed", 2, "M101 M102", ""),
    ("sources", "source-from-the-top", 2, "D101 D102 D103", ""),
    ("sources", "source-lost", 2, "M102 M103", ""),
    ("accelerate", "right", 2, "", ""),
    ("accelerate", "not-skipped", 2, "D101 D102", ""),
    ("transformers", "right", 2, "", ""),
    ("transformers", "ignore-data-skip", 2, "D101 D102 D103", "P101"),
    ("transformers", "new-seed", 2, "D103 D109", ""),
    ("transformers", "batch-halved", 2, "D109 D102 D104", ""),
    ("lightning", "stateful-loader", 2, "", ""),
    ("lightning", "plain-loader", 2, "D101 D102", "P101"),
)

rows = []


def launch(case, root, attempt, steps):
    framework, way = case[:2]
    command = [sys.executable, str(HERE / "train.py"), framework, way, str(root), str(attempt), str(steps)]
    ranks = RANKS if framework == "distributed" else 1
    jobs = []
    for rank in range(ranks):
        env = dict(os.environ)
        if ranks > 1:
            env.update(
                RANK=str(rank),
                WORLD_SIZE=str(ranks),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(random.randint(20000, 40000) if rank == 0 else port),
            )
            port = env["MASTER_PORT"]
        jobs.append(
            subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    return jobs


def finish(jobs, kill_after=None):
    """Wait for a launch, or kill all of its ranks once the first has finished that step."""
    killed = False
    for line in jobs[0].stdout:
        if line.strip() == f"step {kill_after}":
            for job in jobs:
                job.send_signal(signal.SIGKILL)
            killed = True
            break
    errors = [job.communicate()[1] for job in jobs]
    if not killed and (kill_after is not None or any(job.returncode for job in jobs)):
        raise AssertionError("\n".join(errors)[-3000:])


def ask(*arguments):
    done = subprocess.run([TOOL, *arguments, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise AssertionError(f"{arguments}: exit {done.returncode}\n{done.stderr}")
    report = json.loads(done.stdout)
    if "verdict" not in report:
        raise AssertionError(f"{arguments}: {report}")
    return report


def codes(report, least="warning"):
    severities = ("error", "warning") if least == "warning" else ("error",)
    return sorted({f["code"] for f in report["findings"] if f["severity"] in severities})


class Lab(unittest.TestCase):
    """One test per case; they are made below."""

    def judge(self, case):
        framework, way, launches, found, foretold = case
        right = way in ("right", "stateful-loader")
        rng = random.Random(f"{framework} {way} {launches}")
        with tempfile.TemporaryDirectory(prefix="reprise-lab-") as scratch:
            root = pathlib.Path(scratch)
            verdict, foretold_codes = "", []
            for attempt in range(1, launches + 1):
                last = attempt == launches
                # Inside the second epoch where the way needs one, between two checkpoints otherwise.
                cut = None if last else rng.randint(6, 9) + 6 * attempt + (8 if way in LATER else 0)
                finish(launch(case, root, attempt, STEPS if framework != "sources" else 200), cut)
                if attempt == 1:
                    report = ask("verify", str(root / "ckpt"))
                    verdict, foretold_codes = report["verdict"]["word"], codes(report)
            audit = ask("audit", str(root / "record"))
            seen = codes(audit)
            rows.append((framework, way, launches, verdict, foretold_codes, audit["verdict"]["word"], seen))
            steps = {json.loads(line)["step"] for line in open(root / "truth-0.jsonl")}
            self.assertGreaterEqual(max(steps), STEPS, "the resumed part was not run")
            if right:
                self.assertEqual(seen, [], audit["verdict"])
            else:
                self.assertTrue(set(found.split()) & set(seen), f"{seen}: {audit['verdict']}")
            if foretold:
                self.assertTrue(set(foretold.split()) & set(foretold_codes), f"foretold {foretold_codes}")


LATER = ("epoch-seed-lost", "set-epoch-forgotten")

for number, case in enumerate(CASES):
    name = f"test_{number:02}_{case[0]}_{case[1].replace('-', '_')}_{case[2]}"
    setattr(Lab, name, lambda self, case=case: self.judge(case))


def table():
    print(f"\n{'framework':13} {'resume':22} {'foretold by verify':34} {'found by audit'}")
    for framework, way, launches, verdict, foretold, word, seen in rows:
        what = way if launches == 2 else f"{way} ({launches - 1} resumes)"
        print(f"{framework:13} {what:22} {verdict + ' ' + ' '.join(foretold):34} {word} {' '.join(seen)}")


if __name__ == "__main__":
    program = unittest.main(exit=False)
    table()
    sys.exit(not program.result.wasSuccessful())
