"""Random programs, broken compilers and what they show: see README.md."""
