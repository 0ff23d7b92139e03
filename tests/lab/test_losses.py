# SPDX-License-Identifier: MIT
"""What a run loses, and how it ends, stands in the record: Ctrl-C and signals at any moment, exceptions, threads,
processes that are forked or spawned. Each loss is a gap, and nothing is claimed that was not recorded."""

import copy
import json
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import unittest
import warnings

import journal
import reprise
from test_hooks import Case, DataLoader, Indexed, ids, raises

HERE = os.path.dirname(os.path.abspath(__file__))


def train_in_child(folder, recorder=None):
    recorder = recorder or reprise.Recorder(folder)
    for step in range(1, 4):
        recorder.step(step, [step])
    recorder.close()


class Interrupted(Exception):
    pass


class Losses(Case):
    def steps(self, index=-1):
        return [step for step, _, _ in journal.steps(journal.files(self.folder)[index])]

    def gaps(self, index=-1):
        return journal.gaps(journal.files(self.folder)[index])

    def left_out(self):
        """Why audit calls the log incomplete."""
        done = subprocess.run(
            [os.environ["REPRISE"], "audit", self.folder, "--format", "json"], capture_output=True, text=True, check=False
        )
        (log,) = [row for row in json.loads(done.stdout)["coverage"] if row["rule"] == "data-log"]
        self.assertEqual(log["status"], "partly")
        return log["reason"]

    def test_a_step_that_fails_in_python_is_a_gap(self):
        recorder = reprise.Recorder(self.folder, from_step=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = recorder.watch(DataLoader(Indexed(16), batch_size=4), key=raises)
            for step, _ in enumerate(loader, 1):
                recorder.step(step)
            recorder.step(5, ["a", 2])
            recorder.step(6, [1, 2])
            recorder.step(7, [1, 2], colour=3)
            recorder.step("eight", [1, 2])
            recorder.step(9, [1, 2], losses=[1.0])
        self.assertTrue(recorder.gap(10, 12, samples=6, reason="not today"))
        summary = recorder.close()
        self.assertEqual((summary["steps"], summary["lost_steps"], summary["failed_calls"]), (1, 11, 8))
        self.assertEqual(self.steps(), [6])
        first, second = self.gaps()
        self.assertEqual(first[:2], (1, 5))
        self.assertIn("KeyError: 'no such field'", first[3])
        self.assertEqual(second[:3], (7, 12, 10))
        self.assertIn("colour", second[3])
        self.assertIn("KeyError: 'no such field'", self.left_out())

    def test_an_interrupt_at_any_moment_loses_no_step_silently(self):
        """A handler that raises, as that of Ctrl-C does, between any two instructions of recorder.step()."""

        def handler(*_):
            raise Interrupted

        class Watched(reprise.Recorder):
            def _record(self, step, *arguments):
                entered.add(step)
                return super()._record(step, *arguments)

        entered = set()
        recorder = Watched(self.folder, from_step=0)
        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        recorder.step(1, [1])
        interrupted = 0
        for step in range(2, 3000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + step % 97))
                recorder.commit([step, -step])
                recorder.step(step)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                interrupted += 1
                recorder.skip()
            self.assertIsNone(recorder._doing)
        signal.setitimer(signal.ITIMER_REAL, 0)
        recorder.close()
        self.assertGreater(interrupted, 50)
        recorded, told = self.steps(), {s for a, b, _, _ in self.gaps() for s in range(a, b + 1)}
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertFalse(set(recorded) & told)
        self.assertFalse(entered - set(recorded) - told)
        self.assertTrue(entered & told)

    def test_a_handler_that_closes_what_it_interrupted(self):
        recorder = reprise.Recorder(self.folder, from_step=0)

        class Slow(list):
            def __len__(self):
                recorder.checkpoint(1, "ckpt")
                recorder.close("preempted")
                return super().__len__()

        recorder.step(1, [1])
        self.assertFalse(recorder.step(2, Slow([2])))
        self.assertEqual(self.steps(), [1])
        self.assertEqual(self.gaps()[0][:2], (2, 2))
        (end,) = journal.objects(journal.files(self.folder)[-1], journal.CLOSE)
        self.assertEqual(end["end"], "preempted")

    def test_batches_that_another_thread_fetches(self):
        def fetch(loader, into):
            for batch in loader:
                into.put(batch)
            into.put(None)

        for ahead in (False, True):
            with self.subTest(ahead=ahead):
                recorder = reprise.Recorder(self.folder, from_step=0)
                loader = recorder.watch(DataLoader(Indexed(32), batch_size=4, shuffle=True), ahead=ahead)
                batches, seen = queue.Queue(maxsize=3), []
                thread = threading.Thread(target=fetch, args=(loader, batches))
                thread.start()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    for step, batch in enumerate(iter(batches.get, None), 1):
                        seen.append(ids(batch))
                        if ahead:
                            recorder.consume()
                        recorder.step(step)
                thread.join()
                recorder.close()
                if ahead:
                    self.assertEqual(self.recorded(), seen)
                    self.assertEqual(self.gaps(), [])
                else:
                    self.assertEqual(self.recorded(), [])
                    self.assertEqual(self.gaps()[0][:2], (1, 8))
                    self.assertIn("another thread", self.gaps()[0][3])

    def test_threads_on_one_loader_do_not_mix_their_samples(self):
        """Each thread has an iterator of its own over the same loader; keys are taken from the samples."""
        recorder = reprise.Recorder(self.folder, from_step=0)
        loader = recorder.watch(DataLoader(Indexed(400), batch_size=4), key=lambda sample: int(sample["x"]), ahead=True)
        watched = recorder._watches[0]
        wrong, interval = [], sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        self.addCleanup(sys.setswitchinterval, interval)
        give = watched.commit

        def run():
            for batch in loader:
                if list(kept.keys) != ids(batch):
                    wrong.append((list(kept.keys), ids(batch)))

        kept = threading.local()
        watched.commit = lambda data: (setattr(kept, "keys", data.keys), give(data))
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertEqual(len(watched.queue), 400)

    def test_a_process_forked_before_the_first_step_records_for_itself(self):
        recorder = reprise.Recorder(self.folder)
        loader = recorder.watch(DataLoader(Indexed(12), batch_size=4))
        child = os.fork()
        if child == 0:
            for step, _ in enumerate(loader, 1):
                recorder.step(step)
            recorder.close()
            os._exit(0)
        os.waitpid(child, 0)
        recorder.step(1, [7])
        recorder.close()
        kept = sorted(self.recorded(i) for i in range(2))
        self.assertEqual(kept, [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [[7]]])

    def test_a_process_forked_later_is_told_and_counted(self):
        recorder = reprise.Recorder(self.folder)
        recorder.step(1, [1])
        child = os.fork()
        if child == 0:
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                done = recorder.step(2, [2]) or recorder.gap(2) or recorder.close()["steps"]
            os._exit(0 if not done and len(told) == 1 and "forked" in str(told[0].message) else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(recorder.close()["forked_calls"], 2)
        self.assertIn("2 calls came from forked processes", self.left_out())

    def test_a_recorder_is_sent_to_a_spawned_process_and_copied(self):
        recorder = reprise.Recorder(self.folder, dataset="points", rank=0)
        again = copy.deepcopy(recorder)
        job = multiprocessing.get_context("spawn").Process(target=train_in_child, args=(self.folder, recorder))
        job.start()
        job.join()
        self.assertEqual(job.exitcode, 0)
        self.assertEqual(self.steps(), [1, 2, 3])
        self.assertEqual(journal.objects(journal.files(self.folder)[-1], journal.OPEN)[0]["dataset"], "points")
        self.assertTrue(again.step(1, [5]))
        with self.assertWarns(RuntimeWarning):
            late = pickle.loads(pickle.dumps(again))
        self.assertFalse(late.step(2, [6]))
        again.close()

    def test_batches_without_a_step_are_told(self):
        recorder = reprise.Recorder(self.folder)
        for _ in recorder.watch(DataLoader(Indexed(16), batch_size=4)):
            pass
        with self.assertWarnsRegex(RuntimeWarning, r"4 batches were handed out, and step\(\) was never called"):
            recorder.close()

    def test_a_hook_that_raises_costs_a_gap_and_not_the_run(self):
        class Callback:
            def __init__(self, recorder):
                self.recorder = recorder

            @reprise.recorder.hook
            def on_step(self, step):
                if step == 2:
                    raise LookupError("what is this?")
                self.recorder.step(step)

        recorder = reprise.Recorder(self.folder, from_step=0)
        callback = Callback(recorder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for step, _ in enumerate(recorder.watch(DataLoader(Indexed(16), batch_size=4)), 1):
                callback.on_step(step)
        recorder.close()
        # The third step's call had the batches of two.
        self.assertEqual(self.steps(), [1, 4])
        self.assertEqual(self.gaps()[0][:3], (3, 3, 8))
        self.assertIn("LookupError: what is this?", self.gaps()[0][3])

    def test_devices_are_not_waited_for(self):
        class Far:
            device = type("device", (), {"type": "cuda", "__str__": lambda self: "cuda:0"})()

            def __float__(self):
                raise AssertionError("waited for")

        recorder = reprise.Recorder(self.folder)
        with self.assertWarnsRegex(RuntimeWarning, "loss is on cuda:0"):
            self.assertTrue(recorder.step(1, [1], loss=Far()))
        recorder.close()
        self.assertEqual(self.steps(), [1])


ENDING = """
import os, signal, sys, time, reprise
recorder = reprise.Recorder(sys.argv[1], from_step=0, dataset="points")
def preempted(*_):
    recorder.checkpoint(recorder._last_step, "ckpt")
    recorder.close("preempted")
    sys.exit(0)
if sys.argv[2] == "usr1":
    signal.signal(signal.SIGUSR1, preempted)
step = 0
while True:
    step += 1
    recorder.step(step, [2 * step, 2 * step + 1])
    print(step, flush=True)
    if step == 20 and sys.argv[2] == "raise":
        raise OverflowError("loss")
    if step == 20 and sys.argv[2] == "exit":
        os._exit(7)
    time.sleep(0.001)
"""


class Endings(Case):
    def test_how_a_process_ended_and_all_that_it_had_recorded(self):
        for how, sent, end in (
            ("int", signal.SIGINT, "KeyboardInterrupt"),
            ("term", signal.SIGTERM, None),
            ("usr1", signal.SIGUSR1, "preempted"),
            ("raise", None, "OverflowError"),
            ("exit", None, None),
        ):
            with self.subTest(how=how):
                job = subprocess.Popen(
                    [sys.executable, "-c", ENDING, self.folder, how], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
                said = 0
                for line in job.stdout:
                    said = int(line)
                    if said == 25:
                        job.send_signal(sent)
                job.wait()
                file = journal.files(self.folder)[-1]
                steps = [step for step, _, _ in journal.steps(file)]
                self.assertEqual(steps, list(range(1, len(steps) + 1)))
                self.assertIn(len(steps), (said, said + 1))
                ends = [o["end"] for o in journal.objects(file, journal.CLOSE)]
                self.assertEqual(ends, [end] if end else [])
                self.assertEqual(journal.gaps(file), [])


if __name__ == "__main__":
    for name in ("RANK", "WORLD_SIZE", "REPRISE_LAUNCH", "REPRISE_REHEARSE"):
        os.environ.pop(name, None)
    unittest.main(verbosity=1)
