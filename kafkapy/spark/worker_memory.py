"""Makes the garbage collections of Spark's Python workers short.

Spark's daemon collects garbage after each task (`pyspark/daemon.py`), while the JVM may already send the next task to
the worker. With pyspark, pyarrow and the client imported, a collection looks at 47,000 objects that live as long as the
process, and takes 50 to 120 ms.
"""

from __future__ import annotations

import gc

from pyspark import TaskContext


def exempt_imported_modules() -> None:
    """Exempts the objects that exist now from all later garbage collections, if a task of Spark calls this.

    Most of these objects belong to imported modules. Only the first call in a process has an effect. The exempted
    objects are still freed when nothing refers to them; only a cycle of them is never freed. Outside of a task, does
    nothing, because the process is then the user's.
    """
    if gc.get_freeze_count() == 0 and TaskContext.get() is not None:
        gc.freeze()
