"""Figures, not judgements: `make bench` prints medians; nothing here fails because a machine is slow."""
