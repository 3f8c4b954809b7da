"""`python -m quipu.cli`: the command without its script."""

from quipu.cli.main import main

if __name__ == "__main__":
    main()
