"""How errors reach the user: one clear line and an exit code; a traceback only on request."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn, TextIO

from beeline.cli.output.exit_codes import BY_SIGNAL, FAILED, USAGE
from beeline.cli.output.spelling import spelled
from beeline.exceptions import BeelineError, ParameterError

__all__ = ["interrupted", "one_line_errors", "print_line", "print_note", "printable", "styled"]

_LATER = 0.01  # seconds


@contextmanager
def one_line_errors(debug: bool) -> Iterator[None]:
    """Turn every exception of a command into one line on standard error and an exit code.

    Parameters
    ----------
    debug
        Print the traceback before that line.
    """
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
        sys.stdout.flush()
    except _Terminated:
        _terminated()
    except KeyboardInterrupt:
        if debug:
            traceback.print_exc()
        interrupted()
    except Exception as error:
        if _comes_of(error, _Terminated):
            _terminated()
        if _comes_of(error, KeyboardInterrupt):
            interrupted()
        if isinstance(error, OSError) and error.errno == errno.EPIPE and not isinstance(error, BeelineError):
            _leave_quietly()
        if debug:
            traceback.print_exc()
        print_line("error", _sentence(error), color="31")
        raise SystemExit(USAGE if isinstance(error, ParameterError) else FAILED) from None


def interrupted() -> NoReturn:
    """Leave after Ctrl-C, with the exit code that shells expect."""
    print_line("interrupted", "stopped before the end, nothing was written", color="33")
    raise SystemExit(BY_SIGNAL + signal.SIGINT)


def _terminated() -> NoReturn:
    print_line("terminated", "stopped before the end, nothing was written", color="33")
    raise SystemExit(BY_SIGNAL + signal.SIGTERM)


def _comes_of(error: BaseException, kind: type[BaseException]) -> bool:
    """Whether an error is what Python made of an end that came while a class was being made: RuntimeError, with it."""
    cause = error.__cause__
    return cause is not None and (isinstance(cause, kind) or _comes_of(cause, kind))


class _Terminated(SystemExit):
    """Someone asked the process to end; what was half written is cleared away, as after Ctrl-C."""


def _terminate(number: int, frame: FrameType | None) -> None:
    # Python's compiler loses an exception that comes in the middle of an import; a moment later it will not.
    if frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        signal.signal(signal.SIGALRM, _terminate)
        signal.setitimer(signal.ITIMER_REAL, _LATER)
        return
    # Whoever asks again must not disturb the clearing away. Nothing is printed here: a write may be under way.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated(BY_SIGNAL + signal.SIGTERM)


def print_line(kind: str, message: str, *, color: str) -> None:
    """Print `beeline: kind: message` as one line on standard error, in color on a terminal."""
    message = printable(" ".join(message.split("\n")))
    sys.stderr.write(f"beeline: {styled(kind, f'1;{color}', sys.stderr)}: {message}\n")


def print_note(sentence: str) -> None:
    """Say how the work is done, where there is a choice."""
    from beeline.cli.output.spelling import spelled

    print_line("note", spelled(sentence), color="36")


def styled(text: str, style: str, stream: TextIO) -> str:
    """The text in a terminal's style (1 bold, 2 dim, 31 red, …), where the stream is a terminal that wants it."""
    wanted = stream.isatty() and not os.environ.get("NO_COLOR")
    return f"\x1b[{style}m{text}\x1b[0m" if wanted else text


def printable(text: str) -> str:
    """Text of the user's data, without what would move the cursor or change colors."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _sentence(error: Exception) -> str:
    if isinstance(error, BeelineError):
        return spelled(error.args[0] if len(error.args) == 1 else str(error))
    if isinstance(error, MemoryError):
        return "not enough memory; give a smaller --memory"
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror[:1].lower()}{error.strerror[1:]}"
    return (
        f"this is a bug in beeline ({type(error).__name__}: {error}); "
        "run the command again with --debug and report what it prints"
    )


def _leave_quietly() -> NoReturn:
    """Leave when the reader of our output has gone, as any tool in a pipe does."""
    # Python flushes standard output at exit, which would fail once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(BY_SIGNAL + signal.SIGPIPE)
