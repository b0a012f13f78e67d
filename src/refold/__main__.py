"""`python -m refold`: the command line."""

from refold._cli.main import main

if __name__ == "__main__":  # not in the processes that a replay starts
    main()
