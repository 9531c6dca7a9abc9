"""``python -m errtriage``."""

from errtriage.cli import app

if __name__ == "__main__":
    app(prog_name="errtriage")
