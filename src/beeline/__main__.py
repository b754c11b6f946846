"""Run the command line: `python -m beeline`."""

from beeline.cli import main

if __name__ == "__main__":
    main()
