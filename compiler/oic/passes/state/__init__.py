"""Cache operations become index arithmetic, checks, and loads and stores of boxes of state."""
