"""What was built: the report for people, the memory map for tools."""
