"""`python -m api.cli` is `reprieve`."""

from api.cli import main

main()
