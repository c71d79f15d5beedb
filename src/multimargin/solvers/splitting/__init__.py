"""All examples at once: for machines whose scores sum to zero, where most dual variables are free."""
