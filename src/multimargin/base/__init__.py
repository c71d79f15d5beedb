"""What everything rests on: files, memory, interrupts, matrices."""
