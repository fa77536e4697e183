"""`python -m benchmarks.accuracy`."""

from benchmarks.accuracy.command import run

if __name__ == "__main__":
    run()
