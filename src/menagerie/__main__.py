"""`python -m menagerie` is the command `menagerie`."""

from menagerie.console import start

if __name__ == "__main__":
    start()
