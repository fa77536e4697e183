"""`python -m benchmarks.serving`."""

from benchmarks.serving.command import run

if __name__ == "__main__":
    run()
