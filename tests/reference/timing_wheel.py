"""A sorted list of timers: the oracle for _core.timing_wheel."""


class Timers:
    def __init__(self, start_ms: int = 0) -> None:
        self.monotonic_ms = start_ms
        self.waiting: list[tuple[int, int, object]] = []
        self.added = 0

    def add(self, deadline_ms: int, callback: object) -> tuple[int, int, object]:
        timer = (deadline_ms, self.added, callback)
        self.added += 1
        self.waiting.append(timer)
        return timer

    def cancel(self, timer: tuple[int, int, object]) -> bool:
        if timer not in self.waiting:
            return False
        self.waiting.remove(timer)
        return True

    def advance(self, monotonic_ms: int) -> list[object]:
        self.monotonic_ms = max(self.monotonic_ms, monotonic_ms)
        expired = sorted(
            (timer for timer in self.waiting if timer[0] <= self.monotonic_ms), key=lambda timer: timer[:2]
        )
        self.waiting = [timer for timer in self.waiting if timer[0] > self.monotonic_ms]
        return [callback for _, _, callback in expired]

    def next_deadline_ms(self) -> int:
        return max(0, min(deadline for deadline, _, _ in self.waiting)) if self.waiting else -1
