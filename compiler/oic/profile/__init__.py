"""What a program does with its time: statements measured, beside what the machine can do at most."""
