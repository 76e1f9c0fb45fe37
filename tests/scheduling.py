"""Distribution of test files to the processes of pytest-xdist, which goes on after a process has died.

It repairs two properties of `--dist loadfile` in pytest-xdist 3.8. The successor of a process that died gets one file;
if one test of that file is left, it waits for a second test for ever, although other files are in the queue. And the
test that ended a process is run again by the successor, which it ends as well.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# A process runs a test only if it knows the next one, or has been told that there is none.
FEWEST_TESTS = 2


class FileScheduling(LoadFileScheduling):
    """Assigns whole files of tests to processes until each process has at least two tests that it has not run."""

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the tests of a process that has ended to the queue, without the test that it was running.

        Returns the id of that test, or None if the process had no test left.
        """
        files = self.assigned_work.pop(node)
        running = None
        for name, tests in files.items():
            for test, has_run in tests.items():
                if running is None and not has_run:
                    running = test
                    tests[test] = True
            if not all(tests.values()):
                self.workqueue[name] = tests
        if running is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return running

    def _reschedule(self, node: WorkerController) -> None:
        """Assigns files to a process that needs them, and tells it to end if the queue is empty."""
        if node.shutting_down or node not in self.registered_collections:
            return
        while self.workqueue and self._pending_of(self.assigned_work[node]) <= FEWEST_TESTS:
            self._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()
