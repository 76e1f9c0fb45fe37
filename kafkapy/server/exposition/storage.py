"""Metrics of log directories and of the log cleaner."""

from __future__ import annotations

from collections import Counter

from kafkapy.metrics import table
from kafkapy.metrics.page import Page
from kafkapy.server.services import Services
from kafkapy.storage.log_cleaner import LogCleaner


def write_storage(page: Page, services: Services, log_cleaner: LogCleaner) -> None:
    directories = list(services.log_manager.directories)
    online = [directory for directory in directories if directory.is_online]
    page.one(table.OFFLINE_DIRECTORIES, len(directories) - len(online))
    page.family(table.DIRECTORY_OFFLINE, [((each.path,), int(not each.is_online)) for each in directories])
    page.family(table.DIRECTORY_USABLE, [((each.path,), each.usable_bytes()) for each in online])
    page.family(table.DIRECTORY_TOTAL, [((each.path,), each.total_bytes()) for each in online])
    _write_cleaner(page, services, log_cleaner, [directory.path for directory in directories])


def _write_cleaner(page: Page, services: Services, log_cleaner: LogCleaner, paths: list[str]) -> None:
    is_on = services.config.log_cleaner_enable
    partitions: Counter[str] = Counter(dict.fromkeys(paths, 0))
    sizes: Counter[str] = Counter(dict.fromkeys(paths, 0))
    for log in log_cleaner.manager.uncleanable_logs():
        partitions[log.directory.path] += 1
        sizes[log.directory.path] += log.size
    page.one(table.CLEANER_DEAD_THREADS, log_cleaner.dead_threads)
    page.one(table.CLEANER_AGE, max(0, services.clock.wall_ms() - log_cleaner.last_pass_ms) if is_on else 0)
    page.one(table.CLEANER_DIRTY, log_cleaner.manager.max_dirty_percent)
    page.family(table.UNCLEANABLE_PARTITIONS, [((path,), count) for path, count in partitions.items()])
    page.family(table.UNCLEANABLE_BYTES, [((path,), size) for path, size in sizes.items()])
