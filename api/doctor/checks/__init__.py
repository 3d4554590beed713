"""The checks of the doctor, one module a verb."""
