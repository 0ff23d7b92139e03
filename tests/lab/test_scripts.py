# SPDX-License-Identifier: MIT
"""Whole scripts under their own launchers, stopped as people and machines stop them, and launched again: what the
journals hold, and whether audit proves the resumes exact."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import journal

HERE = pathlib.Path(__file__).parent
STEPS, TIMEOUT = 40, 120


def children(pid):
    """Processes that a process started, oldest first."""
    out = []
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            out.append((int(fields[19]), int(status.parent.name)))
    return [child for _, child in sorted(out)]


def interrupt_all(job):
    """Ctrl-C: the terminal sends it to every process of the group."""
    os.killpg(job.pid, signal.SIGINT)


def kill_in_turn(job):
    """The machine dies piece by piece: one rank, then its launcher, then the other rank."""
    first, second = children(job.pid)[-2:]
    os.kill(second, signal.SIGKILL)
    os.kill(job.pid, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)


class Scripts(unittest.TestCase):
    def launch(self, command, root, stop_at=None, stop=None):
        """Run to the end, or until rank 0 has printed a step; the journals that it left."""
        before = set(journal.files(root / "record"))
        with open(root / "stderr", "w") as errors:
            job = subprocess.Popen(
                [*command, str(root), str(STEPS)],
                env=dict(os.environ, GLOO_SOCKET_IFNAME="lo"),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,
            )
            watchdog = threading.Timer(TIMEOUT, os.killpg, [job.pid, signal.SIGKILL])
            watchdog.start()
            for line in job.stdout:
                if line == f"step {stop_at}\n":
                    stop(job)
            job.wait()
            watchdog.cancel()
        if stop is None:
            self.assertEqual(job.returncode, 0, (root / "stderr").read_text()[-3000:])
        return [file for file in journal.files(root / "record") if file not in before]

    def stopped_and_resumed(self, command, ranks, stop):
        with tempfile.TemporaryDirectory(prefix="reprise-lab-", ignore_cleanup_errors=True) as scratch:
            root = pathlib.Path(scratch)
            (root / "record").mkdir()
            for stop_at in (12, 27):
                files = self.launch(command, root, stop_at, stop)
                self.assertEqual(len(files), ranks)
                for file in files:
                    self.assertEqual(journal.gaps(file), [])
                ends = [end["end"] for file in files for end in journal.objects(file, journal.CLOSE)]
            self.launch(command, root)
            done = subprocess.run(
                [os.environ["REPRISE"], "audit", str(root / "record"), "--format", "json"], capture_output=True, text=True, check=False
            )
            report = json.loads(done.stdout)
            blamed = [f["code"] for f in report["findings"] if f["severity"] in ("error", "warning")]
            self.assertEqual((report["verdict"]["word"], blamed), ("EXACT", []), done.stdout)
            attempts = report["tables"]["lineage"]
            self.assertEqual(len(attempts), 3)
            self.assertEqual(attempts[-1]["last_step"], STEPS)
            return ends

    def test_one_process_and_ctrl_c(self):
        ends = self.stopped_and_resumed([sys.executable, str(HERE / "script_accelerate.py")], 1, interrupt_all)
        self.assertEqual(ends, ["KeyboardInterrupt"])

    def test_two_ranks_under_torchrun(self):
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        self.stopped_and_resumed([*launcher, str(HERE / "script_accelerate.py")], 2, kill_in_turn)


if __name__ == "__main__":
    unittest.main(verbosity=1)
