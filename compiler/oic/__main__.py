"""`python -m oic` is the command `oic`."""

from oic.cli.main import main

if __name__ == "__main__":
    main(prog_name="oic")
