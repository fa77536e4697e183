"""`python -m benchmarks.inference`."""

from benchmarks.harness import main
from benchmarks.inference.command import measure

if __name__ == "__main__":
    main("inference", measure)
