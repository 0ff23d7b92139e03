# SPDX-License-Identifier: MIT
"""All of the lab: what the hooks record, then every case trained, killed, resumed and judged."""

import os
import sys
import unittest

import test_lab

suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
hooks = unittest.TextTestRunner(verbosity=1, buffer=True).run(suite)
failed = len(hooks.failures) + len(hooks.errors) + len(hooks.unexpectedSuccesses)
passed = hooks.testsRun - failed - len(hooks.skipped)
more_passed, more_failed = test_lab.main()
print(f"{passed + more_passed} passed, {failed + more_failed} failed")
sys.exit(failed + more_failed > 0)
