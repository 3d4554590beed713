"""Mixed traffic for a long time, and what the service keeps of it: memory, descriptors and tasks must not grow once it
is warm.

`service` starts the process, `traffic` asks it, `samples` looks at it from outside and judges. `make soak MINUTES=30`
prints figures.
"""
