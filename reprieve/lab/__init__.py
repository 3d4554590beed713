"""What plays, records or compares decisions. The lab attaches to a backend by its taps (`extender.assembly.backend`).

It is entered by the packages `recordings`, `shadow` and `simulation`, and by `agreement`, whose answers take no engine
to read.
"""
