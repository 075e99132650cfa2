"""What the kernel needs of the outside: one file a port, served by a backend.

A backend is chosen at boot, one for each port. The kernel and other plugins know these
protocols alone.
"""
