"""`python -m fuzz.solvers`: random problems until the time or their number is over.

Each problem has a number, its seed, from which it is made again: `python -m fuzz.solvers --seed N` shows it alone.
Leaves with 1 when anything was found wrong: a certificate that is false, a J that is not that of the weights, an
exception, a run without an end, or one that ends far from its tolerance without a word.
"""

from __future__ import annotations

import argparse
import collections
import multiprocessing as mp
import multiprocessing.connection
import sys
import time

from .verdict import Verdict, judge


def main() -> None:
    """Run, and tell."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.solvers", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the number of the first problem")
    parser.add_argument("--problems", type=int, default=10**9, help="how many problems at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long at most")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds after which a problem counts as hanging")
    parser.add_argument("--jobs", type=int, default=mp.cpu_count(), help="processes")
    parser.add_argument("--seed", type=int, help="one problem alone")
    parser.add_argument("--slow", action="store_true", help="list the slowest problems too")
    args = parser.parse_args()
    if args.seed is not None:
        verdict = judge(args.seed)
        print(verdict)
        sys.exit(bool(verdict.faults))
    sys.exit(_Campaign(args).run())


class _Worker:
    """A process that judges one problem after the other."""

    def __init__(self) -> None:
        self.pipe, child = mp.Pipe()
        self.process = mp.Process(target=_serve, args=(child,), daemon=True)
        self.process.start()
        self.seed, self.since = -1, 0.0

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.monotonic()
        self.pipe.send(seed)


def _serve(pipe: multiprocessing.connection.Connection) -> None:
    from beeline.kernels import set_num_threads

    set_num_threads(1)
    while True:
        pipe.send(judge(pipe.recv()))


class _Campaign:
    """All problems of a run, each in one of a few processes, and what was found."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.next = args, args.first
        self.statuses: collections.Counter[str] = collections.Counter()
        self.wrong: list[str] = []
        self.slowest: list[tuple[float, int, str]] = []
        self.end = time.monotonic() + args.seconds

    def run(self) -> int:
        workers = [_Worker() for _ in range(self.args.jobs)]
        for worker in workers:
            self._feed(worker)
        while busy := [worker for worker in workers if worker.seed >= 0]:
            ready = multiprocessing.connection.wait([worker.pipe for worker in busy], timeout=1.0)
            for number, worker in enumerate(workers):
                if worker.seed >= 0 and not self._goes_on(worker, worker.pipe in ready):
                    worker.process.kill()
                    workers[number] = _Worker()
                    self._feed(workers[number])
        return self._tell()

    def _goes_on(self, worker: _Worker, ready: bool) -> bool:
        """Whether the process can be kept; when it has an answer, that is noted and it gets the next problem."""
        if ready:
            try:
                self._note(worker.pipe.recv())
            except EOFError:
                self._fault(worker.seed, "the process ended")
                return False
            self._feed(worker)
        elif time.monotonic() - worker.since > self.args.limit:
            self._fault(worker.seed, f"hangs: no end after {self.args.limit:g} s")
            return False
        return True

    def _feed(self, worker: _Worker) -> None:
        worker.seed = -1
        if self.next < self.args.first + self.args.problems and time.monotonic() < self.end:
            worker.give(self.next)
            self.next += 1

    def _note(self, verdict: Verdict) -> None:
        self.statuses[verdict.status] += 1
        self.slowest = sorted([*self.slowest, (verdict.seconds, verdict.seed, verdict.words)], reverse=True)[:10]
        for fault in verdict.faults:
            self._fault(verdict.seed, f"{fault}\n    {verdict.words}")

    def _fault(self, seed: int, words: str) -> None:
        self.wrong.append(words)
        print(f"problem {seed}: {words}", flush=True)

    def _tell(self) -> int:
        ends = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        print(
            f"{self.next - self.args.first} problems from number {self.args.first} on: {ends}; {len(self.wrong)} faults"
        )
        if self.args.slow:
            for seconds, seed, words in self.slowest:
                print(f"  {seconds:.1f} s: problem {seed}: {words}")
        return bool(self.wrong)


if __name__ == "__main__":
    main()
